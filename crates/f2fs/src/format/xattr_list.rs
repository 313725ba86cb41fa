//! Laying out extended attributes over the inode's inline area and the xattr node.

use super::xattr::{ENTRY_HEADER, HEADER, XATTR_BYTES_IN_NODE, XATTR_MAGIC, Xattr};

/// The longest name, without its name space.
const MAX_NAME: usize = 255;

/// Encoded list of attributes, split between the inode and the xattr node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XattrLayout {
    /// The inode's inline area.
    pub inline: Vec<u8>,
    /// The first bytes of the xattr node; `None` if the inline area is enough, and the inode has no
    /// xattr node.
    pub node: Option<Box<[u8; XATTR_BYTES_IN_NODE]>>,
}

/// Attributes that do not fit: too many bytes in all, or a name of more than 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no room for the extended attributes")]
pub struct NoRoom;

/// Lays out `list` for an inode whose inline area has `inline_len` bytes. Capacity is that area and
/// 4072 bytes of the node; the zero word that closes the list is left out where the room is used up
/// exactly. An empty list leaves zeros.
///
/// # Errors
/// [`NoRoom`].
pub fn encode_xattrs(list: &[Xattr], inline_len: usize) -> Result<XattrLayout, NoRoom> {
    let mut bytes = list_bytes(list)?;
    let capacity = inline_len + XATTR_BYTES_IN_NODE;
    if bytes.len() > capacity {
        return Err(NoRoom);
    }
    let fits_inline = bytes.len() <= inline_len;
    bytes.resize(capacity, 0);
    let node = bytes[inline_len..].first_chunk().map(|node| Box::new(*node));
    bytes.truncate(inline_len);
    Ok(XattrLayout { inline: bytes, node: node.filter(|_| !fits_inline) })
}

/// Header and entries, without the closing word.
fn list_bytes(list: &[Xattr]) -> Result<Vec<u8>, NoRoom> {
    let mut bytes = Vec::new();
    if !list.is_empty() {
        bytes.extend(XATTR_MAGIC.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes()); // h_refcount
        bytes.resize(HEADER, 0);
    }
    for xattr in list {
        push_entry(&mut bytes, xattr)?;
    }
    Ok(bytes)
}

fn push_entry(bytes: &mut Vec<u8>, xattr: &Xattr) -> Result<(), NoRoom> {
    let value_len = u16::try_from(xattr.value.len()).map_err(|_| NoRoom)?;
    if xattr.name.len() > MAX_NAME {
        return Err(NoRoom);
    }
    bytes.reserve(ENTRY_HEADER + xattr.name.len() + xattr.value.len() + 3);
    bytes.extend([xattr.index.0, xattr.name.len() as u8]);
    bytes.extend(value_len.to_le_bytes());
    bytes.extend(&xattr.name);
    bytes.extend(&xattr.value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::{Nid, XattrIndex, parse_xattrs};

    fn xattr(name_len: usize, value_len: usize) -> Xattr {
        Xattr { index: XattrIndex(1), name: vec![b'n'; name_len], value: vec![7; value_len] }
    }

    fn area(layout: &XattrLayout) -> Vec<u8> {
        let node = layout.node.iter().flat_map(|node| node.iter());
        layout.inline.iter().chain(node).copied().collect()
    }

    proptest! {
        #[test]
        fn what_fits_is_read_back(
            sizes in prop::collection::vec((0..256_usize, 0..700_usize, 1..12_u8), 0..20),
            words in 0..300_usize,
        ) {
            let list: Vec<_> = sizes
                .iter()
                .map(|&(name, value, index)| Xattr { index: XattrIndex(index), ..xattr(name, value) })
                .collect();
            let size: usize = list.iter().map(|x| (4 + x.name.len() + x.value.len()).next_multiple_of(4)).sum();
            match encode_xattrs(&list, words * 4) {
                Ok(layout) => {
                    prop_assert_eq!(layout.inline.len(), words * 4);
                    prop_assert_eq!(layout.node.is_some(), !list.is_empty() && 24 + size > words * 4);
                    prop_assert_eq!(parse_xattrs(&area(&layout), Nid(4)).unwrap(), list);
                }
                Err(NoRoom) => prop_assert!(24 + size > words * 4 + 4072),
            }
        }
    }

    #[test]
    fn the_last_byte_of_the_room_can_be_used() {
        let full = |len: usize| encode_xattrs(&[xattr(1, len - 24 - 5)], 200);
        assert_eq!(full(200).unwrap().node, None);
        assert!(full(201).unwrap().node.is_some());
        let layout = full(4272).unwrap();
        assert_eq!(parse_xattrs(&area(&layout), Nid(4)).unwrap(), [xattr(1, 4272 - 29)]);
        assert_eq!(full(4273), Err(NoRoom));
        assert_eq!(encode_xattrs(&[xattr(256, 0)], 200), Err(NoRoom));
        assert_eq!(encode_xattrs(&[xattr(1, 70_000)], 200), Err(NoRoom));
    }

    #[test]
    fn no_attributes_leave_zeros() {
        assert_eq!(encode_xattrs(&[], 8), Ok(XattrLayout { inline: vec![0; 8], node: None }));
        assert_eq!(encode_xattrs(&[], 0), Ok(XattrLayout { inline: vec![], node: None }));
    }
}
