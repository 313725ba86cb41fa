//! Extended attributes: one list over the inode's inline area and the xattr node.

use dovetail_vfs::kit::{XattrNameSpace, shared_xattr_prefix};

use super::u32_at;
use crate::error::{Corrupt, Damage, Place};
use crate::format::Nid;

/// The magic number at the list's start.
pub(super) const XATTR_MAGIC: u32 = 0xF2F5_2011;
pub(super) const HEADER: usize = 24;
pub(super) const ENTRY_HEADER: usize = 4;

/// Bytes of the list that an xattr node holds.
pub const XATTR_BYTES_IN_NODE: usize = 4072;

/// The name space of a name. "system.advise" is no attribute that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct XattrIndex(pub u8);

impl XattrNameSpace for XattrIndex {
    fn of_number(number: u8) -> Self {
        Self(number)
    }

    fn number(self) -> u8 {
        self.0
    }

    fn prefix(self) -> Option<&'static str> {
        Some(match self.0 {
            5 => "lustre.",
            7 => "system.advise",
            11 => "verity.",
            number => return shared_xattr_prefix(number),
        })
    }
}

/// An extended attribute.
pub type Xattr = dovetail_vfs::kit::Xattr<XattrIndex>;

/// The attributes in `area`, of inode `ino`. An area of zeros has none.
///
/// # Errors
/// Another magic number, an entry that goes beyond the area.
pub fn parse_xattrs(area: &[u8], ino: Nid) -> Result<Vec<Xattr>, Corrupt> {
    let mut list = Vec::new();
    let magic = u32_at(area, 0);
    if magic == 0 {
        return Ok(list);
    }
    Corrupt::check_equal(Place::Xattrs(ino), "h_magic", magic, XATTR_MAGIC)?;
    let mut at = HEADER;
    while u32_at(area, at) != 0 {
        let (xattr, size) = parse_entry(area, at).ok_or(Damage::XattrOverrun {
            ino,
            offset: at as u64,
            end: area.len() as u64,
        })?;
        list.push(xattr);
        at += size;
    }
    Ok(list)
}

/// The entry at `at` and its size; `None` if it goes beyond the end.
fn parse_entry(area: &[u8], at: usize) -> Option<(Xattr, usize)> {
    let entry = area.get(at..)?;
    let &[index, name_len, low, high] = entry.first_chunk()?;
    let value_len = usize::from(u16::from_le_bytes([low, high]));
    let value_start = ENTRY_HEADER + usize::from(name_len);
    let xattr = Xattr {
        index: XattrIndex(index),
        name: entry.get(ENTRY_HEADER..value_start)?.to_vec(),
        value: entry.get(value_start..value_start + value_len)?.to_vec(),
    };
    Some((xattr, (value_start + value_len).next_multiple_of(4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area() -> Vec<u8> {
        let mut area = XATTR_MAGIC.to_le_bytes().to_vec();
        area.resize(HEADER, 0);
        area.extend([1, 3, 2, 0]);
        area.extend(b"abcxy\0\0\0");
        area.extend([6, 1, 1, 0]);
        area.extend(b"sv\0\0");
        area
    }

    #[test]
    fn entries_are_padded_to_four_bytes_and_the_closing_zero_may_be_missing() {
        let list = parse_xattrs(&area(), Nid(4)).unwrap();
        let shown: Vec<_> = list.iter().map(|x| (x.full_name(), x.value.as_slice())).collect();
        assert_eq!(shown, [("user.abc".into(), &b"xy"[..]), ("security.s".into(), &b"v"[..])]);
    }

    #[test]
    fn names_of_the_system_have_a_name_space_and_mostly_a_rest() {
        let shown =
            |name: &str| XattrIndex::of_name(name.as_bytes()).map(|(index, rest)| (index.0, rest));
        assert_eq!(shown("user.a.b"), Some((1, b"a.b".to_vec())));
        assert_eq!(shown("security.selinux"), Some((6, b"selinux".to_vec())));
        assert_eq!(shown("system.posix_acl_access"), Some((2, vec![])));
        for refused in
            ["user.", "user", "system.posix_acl_accessx", "system.advise", "lustre.x", ""]
        {
            assert_eq!(shown(refused), None, "{refused}");
        }
        let refused = Xattr::from_system(b"system.posix_acl_default", b"xx");
        assert_eq!(refused, Err(dovetail_vfs::kit::XattrRefused::Acl));
        let stored = Xattr::from_system(b"trusted.t", b"xx").unwrap();
        assert_eq!(
            (stored.full_name(), stored.system_value()),
            ("trusted.t".into(), b"xx".to_vec())
        );
    }

    #[test]
    fn an_entry_beyond_the_end_is_named() {
        let mut area = area();
        area[HEADER + 2] = 200;
        let error = parse_xattrs(&area, Nid(4)).unwrap_err();
        assert_eq!(error, Damage::XattrOverrun { ino: Nid(4), offset: 24, end: 44 }.into());
        assert_eq!(parse_xattrs(&[0; 200], Nid(4)), Ok(vec![]));
    }
}
