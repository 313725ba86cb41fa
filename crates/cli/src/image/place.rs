//! The two ways to name a path in an image: `IMAGE PATH` and `IMAGE:/PATH`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Splits `IMAGE:/path`; `None` for everything else.
pub(super) fn split(text: &OsStr) -> Option<(PathBuf, OsString)> {
    let bytes = text.as_bytes();
    let at = bytes.windows(2).position(|pair| pair == b":/").filter(|at| *at > 0)?;
    let (image, path) = (&bytes[..at], &bytes[at + 1..]);
    Some((OsStr::from_bytes(image).into(), OsString::from_vec(path.to_vec())))
}

/// An image and the path in it, if one was given; a file that is there is an image, whatever its
/// name.
pub(super) fn of(image: &Path, path: Option<&OsStr>) -> (PathBuf, Option<OsString>) {
    let whole = || (image.to_path_buf(), path.map(OsStr::to_os_string));
    match path {
        None if !image.exists() => {
            split(image.as_os_str()).map_or_else(whole, |(image, path)| (image, Some(path)))
        }
        _ => whole(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stands_behind_the_colon() {
        let split = |text: &str| split(OsStr::new(text));
        assert_eq!(split("a.img:/b/c"), Some(("a.img".into(), "/b/c".into())));
        assert_eq!(split("a.img"), None);
        assert_eq!(split(":/b"), None);
        let apart = of(Path::new("no.img:/b"), None);
        assert_eq!(apart, ("no.img".into(), Some("/b".into())));
        assert_eq!(of(Path::new("/"), None), ("/".into(), None));
    }
}
