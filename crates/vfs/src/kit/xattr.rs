//! Extended attributes as formats store them: a number for the name space, the rest of the name,
//! and the value.

use crate::{Error, posix_acl};

/// The name space of an attribute, by its number on disk. Numbers of most are the same in ext and
/// F2FS, since the kernel shares them; a few are not.
pub trait XattrNameSpace: Copy {
    /// The name space of a number.
    fn of_number(number: u8) -> Self;

    /// Its number.
    fn number(self) -> u8;

    /// The part of the name that the system puts before the rest; `None` for a number without a
    /// name space.
    fn prefix(self) -> Option<&'static str>;

    /// The name space and the rest of a name that a user may set; `None` for another name space.
    fn of_name(full_name: &[u8]) -> Option<(Self, Vec<u8>)> {
        SETTABLE.iter().find_map(|&number| {
            let space = Self::of_number(number);
            let prefix = space.prefix()?;
            let rest = full_name.strip_prefix(prefix.as_bytes())?;
            (prefix.ends_with('.') != rest.is_empty()).then(|| (space, rest.to_vec()))
        })
    }

    /// A POSIX access control list, which is stored in a shorter form than it is shown.
    fn is_acl(self) -> bool {
        matches!(self.number(), 2 | 3)
    }
}

/// The prefix of a number that ext and F2FS share.
pub const fn shared_xattr_prefix(number: u8) -> Option<&'static str> {
    Some(match number {
        1 => "user.",
        2 => "system.posix_acl_access",
        3 => "system.posix_acl_default",
        4 => "trusted.",
        6 => "security.",
        9 => "encryption.",
        _ => return None,
    })
}

/// "user.", the two access control lists, "trusted." and "security.".
const SETTABLE: [u8; 5] = [1, 2, 3, 4, 6];

/// A reason not to store an attribute of the system's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XattrRefused {
    /// A name space that no attribute may be set in.
    #[error("no attribute of this name space can be set")]
    NameSpace,
    /// A value that is no access control list.
    #[error("the value is no access control list")]
    Acl,
}

impl From<XattrRefused> for Error {
    fn from(refused: XattrRefused) -> Self {
        match refused {
            XattrRefused::NameSpace => {
                Self::Unsupported("this name space of extended attributes".into())
            }
            XattrRefused::Acl => Self::Invalid("the value is no access control list"),
        }
    }
}

/// An extended attribute; `S` is the format's name space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xattr<S> {
    /// Its name space.
    pub index: S,
    /// Its name without the name space.
    pub name: Vec<u8>,
    /// Its value as it is stored.
    pub value: Vec<u8>,
}

impl<S: XattrNameSpace> Xattr<S> {
    /// The stored form of the attribute that the system calls `full_name`.
    ///
    /// # Errors
    /// The name space; a value that is no access control list where one belongs.
    pub fn from_system(full_name: &[u8], value: &[u8]) -> Result<Self, XattrRefused> {
        let (index, name) = S::of_name(full_name).ok_or(XattrRefused::NameSpace)?;
        let acl = index.is_acl().then(|| posix_acl::from_system(value).ok_or(XattrRefused::Acl));
        let value = acl.unwrap_or_else(|| Ok(value.to_vec()))?;
        Ok(Self { index, name, value })
    }

    /// The value as the system shows it: the same but for POSIX ACLs, which are stored in a shorter
    /// form. A list that is damaged is given as it is stored.
    pub fn system_value(&self) -> Vec<u8> {
        let acl = self.index.is_acl().then(|| posix_acl::to_system(&self.value));
        acl.flatten().unwrap_or_else(|| self.value.clone())
    }

    /// The name as the system knows it, "user.comment", byte by byte. A name space without a name
    /// is shown by its number.
    pub fn system_name(&self) -> Vec<u8> {
        let prefix = match self.index.prefix() {
            Some(prefix) => prefix.to_string(),
            None => format!("{}.", self.index.number()),
        };
        [prefix.as_bytes(), &self.name].concat()
    }

    /// The same as text; bytes that are not UTF-8 are replaced.
    pub fn full_name(&self) -> String {
        String::from_utf8_lossy(&self.system_name()).into_owned()
    }
}
