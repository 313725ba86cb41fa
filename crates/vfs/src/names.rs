//! Names.

use crate::Error;

/// A name that a file can have. Names that are too long are told where they are looked up.
///
/// # Errors
/// [`Error::Invalid`]: it is empty, or has a NUL or a slash.
pub fn check_name(name: &[u8]) -> Result<(), Error> {
    if name.is_empty() || name.iter().any(|&byte| byte == 0 || byte == b'/') {
        return Err(Error::Invalid("a name has 1 to 255 bytes without NUL and slash"));
    }
    Ok(())
}
