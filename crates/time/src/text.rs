//! Small text files: jobs, profiles, stacks.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes that such a file may have. Assumed: a job file of 10,000 sections has 1 MB.
const MAX_BYTES: u64 = 16 << 20;

/// The text of a file, without a byte order mark. It may be a pipe or a device: no more is read
/// than a text may have.
///
/// # Errors
/// Errors of the system; [`io::ErrorKind::FileTooLarge`]; [`io::ErrorKind::InvalidData`] for text
/// that is not UTF-8.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("it has more than {} MiB, which no such text has", MAX_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_goes_and_what_is_no_text_is_refused() {
        let path = std::env::temp_dir().join(format!("dovetail-text-{}", std::process::id()));
        for (bytes, text) in [(&b"\xef\xbb\xbf[a]\n"[..], "[a]\n"), (b"b", "b"), (b"", "")] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read_text(&path).unwrap(), text);
        }
        std::fs::write(&path, b"\xff\xfe[\0").unwrap();
        assert_eq!(read_text(&path).unwrap_err().to_string(), "it is not UTF-8 text");
        std::fs::remove_file(&path).unwrap();
        let endless = read_text("/dev/zero").unwrap_err();
        assert_eq!(endless.to_string(), "it has more than 16 MiB, which no such text has");
    }
}
