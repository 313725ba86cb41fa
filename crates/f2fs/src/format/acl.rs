//! POSIX access control lists: what the disk holds is shorter than what the system shows.
//!
//! On disk: u32 version 1, then entries of u16 tag, u16 permissions, and a u32 id only for named users and groups.
//! The system's form (acl(5), `posix_acl_xattr.h`): u32 version 2, and every entry with an id, all ones where
//! there is none.

const DISK_VERSION: u32 = 1;
const SYSTEM_VERSION: u32 = 2;
const NAMED_USER: u16 = 0x02;
const NAMED_GROUP: u16 = 0x08;

/// The system's form of the list in `disk`; `None` if that is no list.
pub(super) fn to_system(disk: &[u8]) -> Option<Vec<u8>> {
    let (version, mut rest) = disk.split_first_chunk()?;
    if u32::from_le_bytes(*version) != DISK_VERSION {
        return None;
    }
    let mut system = SYSTEM_VERSION.to_le_bytes().to_vec();
    while let Some((entry, after)) = rest.split_first_chunk::<4>() {
        rest = after;
        system.extend(entry);
        let tag = u16::from_le_bytes([entry[0], entry[1]]);
        if tag == NAMED_USER || tag == NAMED_GROUP {
            let (id, after) = rest.split_first_chunk::<4>()?;
            rest = after;
            system.extend(id);
        } else {
            system.extend([0xFF; 4]);
        }
    }
    rest.is_empty().then_some(system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_entries_have_an_id_on_disk() {
        let disk = [1, 0, 0, 0, 1, 0, 7, 0, 2, 0, 7, 0, 0xE8, 3, 0, 0];
        let system = [2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 2, 0, 7, 0, 0xE8, 3, 0, 0];
        assert_eq!(to_system(&disk).unwrap(), system);
        assert_eq!(to_system(&disk[..14]), None, "cut");
        assert_eq!(to_system(&[9; 8]), None, "another version");
    }
}
