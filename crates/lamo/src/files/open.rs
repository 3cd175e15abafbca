//! Opening files to read. Only regular files are opened: opening a named pipe waits until another program writes to it.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Opens a regular file to read it; anything else is refused before it is opened.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, File::options().read(true))
}

/// Opens a regular file that exists, with these options.
pub(crate) fn open_with(path: &Path, options: &OpenOptions) -> io::Result<File> {
    require_regular(&std::fs::metadata(path)?)?;
    let file = options.open(path)?;
    require_regular(&file.metadata()?)?; // something else may have taken the place of the file
    Ok(file)
}

/// All bytes of a regular file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?; // reserves memory for the whole file, or fails
    Ok(bytes)
}

/// The text of a regular file.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// What is at a path that is not a regular file: `a folder`, `a named pipe`; `None` for a regular file.
pub(crate) fn irregular(found: &Metadata) -> Option<&'static str> {
    if found.is_file() {
        return None;
    }
    if found.is_dir() {
        return Some("a folder");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = found.file_type();
        if kind.is_fifo() {
            return Some("a named pipe");
        }
        if kind.is_socket() {
            return Some("a socket");
        }
    }
    Some("a device")
}

fn require_regular(found: &Metadata) -> io::Result<()> {
    irregular(found).map_or(Ok(()), |what| {
        Err(io::Error::new(ErrorKind::InvalidInput, format!("expected a regular file, found {what}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::scratch::Folder;

    #[test]
    #[cfg(unix)]
    fn what_is_no_regular_file_is_refused_and_never_waited_for() {
        let folder = Folder::new("open");
        let pipe = folder.at("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(folder.at("socket")).unwrap();
        for (path, what) in [
            (pipe, "a named pipe"),
            (folder.at("socket"), "a socket"),
            (folder.path().to_owned(), "a folder"),
            ("/dev/zero".into(), "a device"),
        ] {
            let told = [open(&path).unwrap_err(), read(&path).unwrap_err(), read_to_string(&path).unwrap_err()];
            for error in told {
                assert_eq!(error.to_string(), format!("expected a regular file, found {what}"));
            }
        }
        std::fs::write(folder.at("file"), "text").unwrap();
        assert_eq!(read_to_string(&folder.at("file")).unwrap(), "text");
        assert_eq!(open(&folder.at("none")).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
