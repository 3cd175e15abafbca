//! Files of `torch.save`: a zip archive with a pickle, or a bare pickle before PyTorch 1.6. They are programs that build
//! Python objects, so they are recognised and not read; the error says how to convert them.

use std::path::Path;

/// The number that stands before the pickle of an old file.
const OLD: &[u8] = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19";

/// Writes the tensors of a file by name, or by number where they have none.
const PROGRAM: &str = "import sys, numpy, torch; d = torch.load(sys.argv[1], map_location='cpu'); \
                       d = d if isinstance(d, dict) else {'data': d} if torch.is_tensor(d) else dict(enumerate(d)); \
                       numpy.savez(sys.argv[2], **{str(k): v.numpy() for k, v in d.items() if torch.is_tensor(v)})";

/// The command that converts the file to npz; `None` where PyTorch did not write it.
pub(super) fn conversion(start: &[u8], path: &Path) -> Option<String> {
    let zipped = start.starts_with(b"PK\x03\x04") && start.windows(9).any(|bytes| bytes == b"/data.pkl");
    let pickled = start.first() == Some(&0x80) && start.get(2..).is_some_and(|rest| rest.starts_with(OLD));
    (zipped || pickled).then(|| {
        let [from, to] = [path.to_owned(), path.with_extension("npz")].map(|path| quoted(&path.to_string_lossy()));
        format!("python -c \"{PROGRAM}\" {from} {to}")
    })
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
    fn both_formats_of_pytorch_are_recognised_and_an_npz_file_is_not() {
        let found = |start: &[u8]| conversion(start, Path::new("my data/a.pt"));
        let told = found(b"PK\x03\x04........archive/data.pkl...").unwrap();
        assert!(told.ends_with(" 'my data/a.pt' 'my data/a.npz'"), "{told}");
        assert!(found(&[b"\x80\x02", OLD, b"."].concat()).is_some());
        assert_eq!(found(b"PK\x03\x04........arr_0.npy..."), None);
        assert_eq!(found(b"\x80\x04stuff"), None);
    }
}
