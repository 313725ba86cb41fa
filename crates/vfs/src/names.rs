//! Names, and what entries say that they name.

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

/// The type bits of a mode for the type in a directory entry, a number that ext and F2FS share with the kernel's VFS
/// (`FT_REG_FILE` and its kin); 0 for a number that has no meaning.
pub const fn entry_kind(file_type: u8) -> u16 {
    match file_type {
        1 => 0o100_000,
        2 => 0o040_000,
        3 => 0o020_000,
        4 => 0o060_000,
        5 => 0o010_000,
        6 => 0o140_000,
        7 => 0o120_000,
        _ => 0,
    }
}
