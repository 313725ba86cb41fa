//! POSIX ACLs as the system passes them, and what they have to do with the mode (acl(5)).

/// The attribute with the ACL that decides who may access.
pub(crate) const ACCESS: &[u8] = b"system.posix_acl_access";
/// The attribute of a directory with the ACL that new inodes start with.
pub(crate) const DEFAULT: &[u8] = b"system.posix_acl_default";

const VERSION: u32 = 2;
const USER_OBJ: u16 = 0x01;
const GROUP_OBJ: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;
const ENTRY: usize = 8;

/// An ACL: entries of tag, permissions and id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acl {
    entries: Vec<(u16, u16, u32)>,
}

impl Acl {
    /// The ACL in a value; `None` if it is none.
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let (version, entries) = value.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*version) != VERSION || entries.len() % ENTRY != 0 {
            return None;
        }
        let entry = |bytes: &[u8]| {
            let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
            (half(0), half(2), u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]))
        };
        Some(Self { entries: entries.chunks_exact(ENTRY).map(entry).collect() })
    }

    /// The value that it is passed as.
    pub(crate) fn value(&self) -> Vec<u8> {
        let entry = |&(tag, permissions, id): &(u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        VERSION.to_le_bytes().into_iter().chain(self.entries.iter().flat_map(entry)).collect()
    }

    fn of(&self, tag: u16) -> Option<u16> {
        self.entries.iter().find(|entry| entry.0 == tag).map(|entry| entry.1)
    }

    /// The tag whose permissions the group bits of the mode show.
    fn group_tag(&self) -> u16 {
        if self.of(MASK).is_some() { MASK } else { GROUP_OBJ }
    }

    /// The nine permission bits that the mode shows for it.
    pub(crate) fn mode(&self) -> u16 {
        let bits = |tag| self.of(tag).unwrap_or(0) & 7;
        bits(USER_OBJ) << 6 | bits(self.group_tag()) << 3 | bits(OTHER)
    }

    /// The mode says all that it says.
    pub(crate) fn is_mode(&self) -> bool {
        self.entries.iter().all(|entry| [USER_OBJ, GROUP_OBJ, OTHER].contains(&entry.0))
    }

    /// With the permissions that a new mode gives.
    pub(crate) fn with_mode(mut self, mode: u16) -> Self {
        let group = self.group_tag();
        for (tag, permissions, _) in &mut self.entries {
            match *tag {
                USER_OBJ => *permissions = mode >> 6 & 7,
                OTHER => *permissions = mode & 7,
                tag if tag == group => *permissions = mode >> 3 & 7,
                _ => {}
            }
        }
        self
    }

    /// ACL of a new inode that is made with `mode` in a directory with this default ACL.
    pub(crate) fn inherited(self, mode: u16) -> Self {
        let permissions = self.mode() & mode;
        self.with_mode(permissions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acl(entries: &[(u16, u16, u32)]) -> Acl {
        Acl { entries: entries.to_vec() }
    }

    const NAMED_USER: u16 = 0x02;
    const ANY: u32 = u32::MAX;

    #[test]
    fn values_survive() {
        let acl = acl(&[
            (USER_OBJ, 7, ANY),
            (NAMED_USER, 6, 1000),
            (GROUP_OBJ, 5, ANY),
            (MASK, 7, ANY),
            (OTHER, 0, ANY),
        ]);
        assert_eq!(Acl::parse(&acl.value()), Some(acl));
        assert_eq!(Acl::parse(&[1, 0, 0, 0]), None);
        assert_eq!(Acl::parse(&[2, 0, 0, 0, 9]), None);
    }

    #[test]
    fn the_group_bits_show_the_mask() {
        let plain = acl(&[(USER_OBJ, 7, ANY), (GROUP_OBJ, 5, ANY), (OTHER, 1, ANY)]);
        assert_eq!((plain.mode(), plain.is_mode()), (0o751, true));
        let masked = acl(&[
            (USER_OBJ, 7, ANY),
            (NAMED_USER, 7, 5),
            (GROUP_OBJ, 5, ANY),
            (MASK, 6, ANY),
            (OTHER, 1, ANY),
        ]);
        assert_eq!((masked.mode(), masked.is_mode()), (0o761, false));
        let changed = masked.with_mode(0o640);
        assert_eq!(
            (changed.mode(), changed.of(GROUP_OBJ), changed.of(MASK)),
            (0o640, Some(5), Some(4))
        );
    }

    #[test]
    fn new_inodes_get_what_both_the_directory_and_the_caller_allow() {
        let default = acl(&[
            (USER_OBJ, 7, ANY),
            (NAMED_USER, 7, 5),
            (GROUP_OBJ, 5, ANY),
            (MASK, 7, ANY),
            (OTHER, 5, ANY),
        ]);
        assert_eq!(default.inherited(0o666).mode(), 0o664);
    }
}
