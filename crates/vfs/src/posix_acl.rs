//! POSIX access control lists: what the disk holds (the same in F2FS and ext) is shorter than what
//! the system shows.
//!
//! On disk: u32 version 1, then entries of u16 tag, u16 permissions, and a u32 id only for named
//! users and groups. The system's form (acl(5), `posix_acl_xattr.h`): u32 version 2, and every
//! entry with an id, all ones where there is none.

const DISK_VERSION: u32 = 1;
const SYSTEM_VERSION: u32 = 2;
const OWNER: u16 = 0x01;
const NAMED_USER: u16 = 0x02;
const GROUP: u16 = 0x04;
const NAMED_GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;

/// The system's form of the list in `disk`; `None` if that is no list.
pub fn to_system(disk: &[u8]) -> Option<Vec<u8>> {
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

/// Converts `system`, a list in the system's form, to the stored form; `None` if the kernel would
/// not take the list. The kernel takes a list with its entries in order, one each for owner, group
/// and others, and a mask if there are named users or groups. A list without entries is stored as
/// one: whoever sets it means to remove the list.
pub fn from_system(system: &[u8]) -> Option<Vec<u8>> {
    let (version, rest) = system.split_first_chunk()?;
    let (entries, incomplete) = rest.as_chunks::<8>();
    if u32::from_le_bytes(*version) != SYSTEM_VERSION
        || !incomplete.is_empty()
        || !is_valid(entries)
    {
        return None;
    }
    let mut disk = DISK_VERSION.to_le_bytes().to_vec();
    for entry in entries {
        let named = tag(entry) == NAMED_USER || tag(entry) == NAMED_GROUP;
        disk.extend(&entry[..if named { 8 } else { 4 }]);
    }
    Some(disk)
}

fn tag(entry: &[u8; 8]) -> u16 {
    u16::from_le_bytes([entry[0], entry[1]])
}

/// The numbers of the tags ascend in the order that entries must have.
fn is_valid(entries: &[[u8; 8]]) -> bool {
    let count = |wanted: u16| entries.iter().filter(|entry| tag(entry) == wanted).count();
    let known = [OWNER, NAMED_USER, GROUP, NAMED_GROUP, MASK, OTHERS];
    let each =
        entries.iter().all(|entry| known.contains(&tag(entry)) && entry[2] <= 7 && entry[3] == 0);
    let masks = count(MASK);
    let named = count(NAMED_USER) + count(NAMED_GROUP) > 0;
    let counts = [OWNER, GROUP, OTHERS].iter().all(|&tag| count(tag) == 1)
        && masks <= 1
        && (masks == 1 || !named);
    entries.is_empty() || each && counts && entries.is_sorted_by_key(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_the_system_is_stored_and_shown_again() {
        let entries: [(u16, u16, u32); 6] =
            [(1, 7, !0), (2, 5, 1000), (2, 6, 1001), (4, 5, !0), (0x10, 7, !0), (0x20, 4, !0)];
        let list = |entries: &[(u16, u16, u32)]| {
            let entry = |(tag, perm, id): &(u16, u16, u32)| {
                [&tag.to_le_bytes()[..], &perm.to_le_bytes(), &id.to_le_bytes()].concat()
            };
            [vec![2, 0, 0, 0], entries.iter().flat_map(entry).collect()].concat()
        };
        let system = list(&entries);
        let disk = from_system(&system).unwrap();
        assert_eq!(disk.len(), 4 + 4 * 4 + 2 * 8);
        assert_eq!(to_system(&disk).unwrap(), system);
        assert_eq!(from_system(&list(&entries[..4])), None, "no others");
        assert_eq!(
            from_system(&list(&[entries[0], entries[2], entries[3], entries[5]])),
            None,
            "no mask"
        );
        assert!(from_system(&list(&[entries[0], entries[3], entries[5]])).is_some(), "a mode");
        assert_eq!(
            from_system(&list(&[entries[3], entries[0], entries[5]])),
            None,
            "another order"
        );
        assert_eq!(
            from_system(&list(&[entries[0], entries[3], (0x20, 8, !0)])),
            None,
            "a permission"
        );
        assert_eq!(from_system(&system[..system.len() - 1]), None, "cut");
        assert_eq!(from_system(&list(&[])).unwrap(), [1, 0, 0, 0]);
    }

    #[test]
    fn only_named_entries_have_an_id_on_disk() {
        let disk = [1, 0, 0, 0, 1, 0, 7, 0, 2, 0, 7, 0, 0xE8, 3, 0, 0];
        let system = [2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 2, 0, 7, 0, 0xE8, 3, 0, 0];
        assert_eq!(to_system(&disk).unwrap(), system);
        assert_eq!(to_system(&disk[..14]), None, "cut");
        assert_eq!(to_system(&[9; 8]), None, "another version");
    }
}
