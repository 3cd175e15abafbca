//! What a file of an unknown format may be, and how it becomes one that is read.

use super::pytorch;

/// First bytes of files that are not read, and what they are.
const KNOWN: &[(&[u8], &str)] = &[
    (b"version https://git-lfs", "a Git LFS pointer without its file"),
    (b"MATLAB 7.3", "a MAT v7.3 header without its file"),
    (b"\x1f\x8b", "a gzip file to be unpacked first"),
    (b"CDF\x01", "netCDF-3 (nccopy -k netCDF-4 makes HDF5 of it)"),
    (b"CDF\x02", "netCDF-3 (nccopy -k netCDF-4 makes HDF5 of it)"),
    (b"CDF\x05", "netCDF-3 (nccopy -k netCDF-4 makes HDF5 of it)"),
    (b"PAR1", "Parquet (pandas writes it as CSV)"),
    (b"{", "JSON"),
    (b"[", "JSON"),
    (b"FoamFile", "a file of OpenFOAM (foamToVTK writes meshes with its fields)"),
    (b"/*---", "a file of OpenFOAM (foamToVTK writes meshes with its fields)"),
    (b"TITLE", "Tecplot (ParaView saves it as vtu)"),
    (b"VARIABLES", "Tecplot (ParaView saves it as vtu)"),
    (b"#!TDV", "Tecplot (ParaView saves it as vtu)"),
    (b"ply\n", "PLY (meshio convert makes vtu of it)"),
    (b"NDIME", "SU2 (meshio convert makes vtu of it)"),
    (b"<Xdmf", "XDMF (meshio convert makes vtu of it)"),
    (b"<!DOCTYPE Xdmf", "XDMF (meshio convert makes vtu of it)"),
    (b"<?xml", "XML of another kind"),
    (b"<", "a web page"),
];

/// What a file with these first bytes looks like.
pub(super) fn looks_like(start: &[u8]) -> String {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    if start.is_empty() {
        return "an empty file".to_owned();
    }
    if is_pickle(start) {
        return "a pickle of Python (save its arrays with numpy.savez)".to_owned();
    }
    if pytorch::sniff(start, start.len() as u64) {
        return "a file of PyTorch".to_owned(); // where only some formats are read
    }
    if is_mat4(start) {
        return "MAT v4 (save it with -v7)".to_owned();
    }
    let known = KNOWN.iter().find(|(bytes, _)| start.starts_with(bytes) || text.starts_with(bytes));
    known.map_or_else(|| first_line(start), |(_, name)| (*name).to_owned())
}

/// The first line of a text, else the first bytes.
fn first_line(start: &[u8]) -> String {
    const SHOWN: usize = 40;
    let line = start.trim_ascii_start().split(|byte| b"\r\n".contains(byte)).next().unwrap_or_default();
    let plain = line.iter().all(|byte| (b' '..=b'~').contains(byte) || *byte == b'\t');
    match std::str::from_utf8(&line[..line.len().min(SHOWN)]) {
        Ok(line) if plain && !line.is_empty() => format!("text that begins `{}`", line.trim_end()),
        _ => format!("the bytes {:02x?}", &start[..start.len().min(8)]),
    }
}

/// A pickle of protocol 2 to 5.
fn is_pickle(start: &[u8]) -> bool {
    matches!(start, [0x80, 2..=5, ..])
}

/// MAT v4 begins with five words: type, rows, columns, whether the numbers are complex, bytes of the name. The name ends with 0.
fn is_mat4(start: &[u8]) -> bool {
    let word = |place: usize| Some(u32::from_le_bytes(start.get(4 * place..4 * place + 4)?.try_into().ok()?));
    let words = [0, 1, 2, 3, 4].map(word);
    let [Some(kind), Some(rows), Some(columns), Some(complex), Some(letters)] = words else { return false };
    let name = start.get(20..20 + (letters as usize).min(64)).unwrap_or_default();
    let named = matches!(name, [first, .., 0] if first.is_ascii_alphabetic());
    kind < 53 && kind % 10 < 3 && rows > 0 && columns > 0 && complex < 2 && named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_formats_are_called_by_their_names() {
        let mat4 = [0_u32, 12, 8, 0, 2].map(u32::to_le_bytes).concat();
        for (start, expected) in [
            (&b""[..], "an empty file"),
            (&[&mat4[..], b"a\0", &[0; 16]].concat(), "MAT v4 (save it with -v7)"),
            (b"\x80\x04\x95....", "a pickle of Python (save its arrays with numpy.savez)"),
            (b"CDF\x01\0\0", "netCDF-3 (nccopy -k netCDF-4 makes HDF5 of it)"),
            (b"TITLE = \"x\"\nVARIABLES = \"X\"", "Tecplot (ParaView saves it as vtu)"),
            (b"\n{\"a\": 1}", "JSON"),
            (b"<html>", "a web page"),
            (b"one two three\n4", "text that begins `one two three`"),
            (b"\x01\x02\x03", "the bytes [01, 02, 03]"),
            (&[0; 64], "the bytes [00, 00, 00, 00, 00, 00, 00, 00]"),
        ] {
            assert_eq!(looks_like(start), expected);
        }
    }
}
