//! Files of PyTorch before 1.6: a bare pickle, recognised and not read. The error has the command that converts it.

use std::path::Path;

/// The number that stands before the pickle of an old file.
const OLD: &[u8] = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19";

/// Writes the tensors of a file by name, or by number where they have none.
const PROGRAM: &str = "import sys, numpy, torch; d = torch.load(sys.argv[1], map_location='cpu', weights_only=False); \
                       d = d if isinstance(d, dict) else dict(enumerate(d)) if isinstance(d, (list, tuple)) else {'data': d}; \
                       numpy.savez(sys.argv[2], **{str(k): numpy.asarray(torch.as_tensor(v).detach()) for k, v in d.items() \
                       if isinstance(v, (torch.Tensor, numpy.ndarray))})";

/// The command that converts the file to npz; `None` where no old PyTorch wrote it.
pub(in crate::data::formats) fn conversion(start: &[u8], path: &Path) -> Option<String> {
    let pickled = start.first() == Some(&0x80) && start.get(2..).is_some_and(|rest| rest.starts_with(OLD));
    pickled.then(|| command(path))
}

/// The command that converts a file of PyTorch to npz.
pub(super) fn command(path: &Path) -> String {
    let [from, to] = [path.to_owned(), path.with_extension("npz")].map(|path| quoted(&path.to_string_lossy()));
    format!("python -c \"{PROGRAM}\" {from} {to}")
}

/// A path as an argument for a shell.
fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "_-+./\\:,=@".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_files_of_pytorch_are_recognised_and_other_pickles_are_not() {
        let found = |start: &[u8]| conversion(start, Path::new("my data/a.pt"));
        let told = found(&[b"\x80\x02", OLD, b"."].concat()).unwrap();
        assert!(told.ends_with(" 'my data/a.pt' 'my data/a.npz'"), "{told}");
        assert_eq!(found(b"PK\x03\x04........archive/data.pkl..."), None);
        assert_eq!(found(b"\x80\x04stuff"), None);
    }
}
