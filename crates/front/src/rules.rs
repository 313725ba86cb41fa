//! Rules that the kernel leaves to a FUSE file system beyond the plain changes: umask and default
//! ACLs of new inodes, ACLs that follow the mode and the mode that follows them, set-id bits that
//! go, writes on a volume that gets full.

use dovetail_vfs::mode::{S_IALLUGO, S_IFREG, S_ISGID, S_ISUID};
use dovetail_vfs::{Attr, Caller, Error, FileSystem, Ino, NewNode, SetAttr, XattrFlags};

use crate::acl::{ACCESS, Acl, DEFAULT};
use crate::asker::Asker;

/// Place of a new inode, and the permissions that its maker never gives.
pub(crate) struct Place<'a> {
    pub(crate) dir: Ino,
    pub(crate) name: &'a [u8],
    pub(crate) umask: u32,
}

const GROUP_EXECUTES: u16 = 0o010;
const PERMISSIONS: u16 = 0o777;
/// Unit of room, in bytes.
const BLOCK: usize = 4096;

/// An ACL of an inode; none where the file system has no such attribute.
fn acl(fs: &mut dyn FileSystem, ino: Ino, which: &[u8]) -> Result<Option<Acl>, Error> {
    match fs.getxattr(ino, which) {
        Ok(value) => Ok(Acl::parse(&value)),
        Err(Error::NoAttribute | Error::Unsupported(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes an inode, held once for the kernel: with the directory's default ACL if it has one, else
/// with the umask.
pub(crate) fn create(
    fs: &mut dyn FileSystem,
    caller: &Caller,
    place: &Place<'_>,
    node: NewNode,
) -> Result<Attr, Error> {
    let Some(default) = acl(fs, place.dir, DEFAULT)? else {
        let node = NewNode { mode: node.mode & !(place.umask as u16 & PERMISSIONS), ..node };
        return held(fs, |fs| fs.create(caller, place.dir, place.name, &node));
    };
    let access = default.clone().inherited(node.mode);
    let node = NewNode { mode: node.mode & !PERMISSIONS | access.mode(), ..node };
    let attr = held(fs, |fs| fs.create(caller, place.dir, place.name, &node))?;
    let given = inherit(fs, caller, &attr, &default, &access);
    given.map(|()| attr).inspect_err(|_| undo_create(fs, caller, place, &attr))
}

fn inherit(
    fs: &mut dyn FileSystem,
    caller: &Caller,
    attr: &Attr,
    default: &Acl,
    access: &Acl,
) -> Result<(), Error> {
    if !access.is_mode() {
        fs.setxattr(caller, attr.ino, ACCESS, &access.value(), XattrFlags::default())?;
    }
    if attr.is_dir() {
        fs.setxattr(caller, attr.ino, DEFAULT, &default.value(), XattrFlags::default())?;
    }
    Ok(())
}

/// Takes back an inode that could not get its ACL; if even that fails, it stays with what it has.
fn undo_create(fs: &mut dyn FileSystem, caller: &Caller, place: &Place<'_>, attr: &Attr) {
    let removed = if attr.is_dir() {
        fs.rmdir(caller, place.dir, place.name)
    } else {
        fs.unlink(caller, place.dir, place.name)
    };
    let _ = removed.and_then(|()| fs.forget(attr.ino, 1));
}

/// Attributes of the inode that an old file handle leads to; the kernel asks for it as "." of any
/// kind of inode. An inode without names is as good as gone: were it open, the kernel would know
/// it. Only the kernel's word that it has forgotten it is still on its way.
pub(crate) fn find_by_handle(fs: &mut dyn FileSystem, ino: Ino) -> Result<Attr, Error> {
    let attr = fs.attr_of_handle(ino)?;
    if attr.links == 0 { Err(Error::NotFound) } else { Ok(attr) }
}

/// Finds an inode, and holds it until the kernel forgets it.
pub(crate) fn held(
    fs: &mut dyn FileSystem,
    find: impl FnOnce(&mut dyn FileSystem) -> Result<Attr, Error>,
) -> Result<Attr, Error> {
    let attr = find(fs)?;
    fs.hold(attr.ino);
    Ok(attr)
}

fn is_regular(attr: &Attr) -> bool {
    attr.kind() == S_IFREG
}

/// The bits are kept only while a regular file has them: what runs with the rights of others is
/// looked at anew each time.
pub(crate) fn has_set_id(attr: &Attr) -> bool {
    is_regular(attr) && attr.mode & (S_ISUID | S_ISGID) != 0
}

/// Its group says who may use setgid: those in it, and those who may keep such bits anyway.
fn may_set_group(asker: &Asker, attr: &Attr) -> bool {
    asker.is_in_group(attr.gid) || asker.keeps_set_id()
}

/// The mode without the bits that a change of content or owner takes away: setuid, and setgid where
/// the group may execute or `asker` may not set it.
fn without_set_id(asker: &Asker, attr: &Attr, mode: u16) -> u16 {
    let goes = mode & S_ISGID != 0 && (mode & GROUP_EXECUTES != 0 || !may_set_group(asker, attr));
    mode & S_IALLUGO & !S_ISUID & !(if goes { S_ISGID } else { 0 })
}

/// Takes the set-id bits away from a regular file whose content `asker` is about to change.
pub(crate) fn drop_set_id(fs: &mut dyn FileSystem, asker: &Asker, ino: Ino) -> Result<(), Error> {
    let attr = fs.getattr(ino)?;
    if !has_set_id(&attr) {
        return Ok(());
    }
    let mode = without_set_id(asker, &attr, attr.mode);
    if mode != attr.mode & S_IALLUGO {
        fs.setattr(&asker.caller, ino, &SetAttr { mode: Some(mode), ..SetAttr::default() })?;
    }
    Ok(())
}

/// Changes attributes. A new owner takes set-id bits away from all but directories, a new size from
/// regular files unless `asker` may keep them, and a new mode changes the ACL.
pub(crate) fn set_attributes(
    fs: &mut dyn FileSystem,
    asker: &Asker,
    ino: Ino,
    mut changes: SetAttr,
) -> Result<Attr, Error> {
    let owner = changes.uid.is_some() || changes.gid.is_some();
    // a chown that names neither, or a write, whose own request takes the bits away as well
    let empty = changes == SetAttr::default();
    if owner || empty || changes.size.is_some() {
        let attr = fs.getattr(ino)?;
        let mode = changes.mode.unwrap_or(attr.mode) & S_IALLUGO;
        let may_change = owner || empty && [0, attr.uid].contains(&asker.caller.uid);
        let goes = may_change && !attr.is_dir()
            || changes.size.is_some() && has_set_id(&attr) && !asker.keeps_set_id();
        if goes && mode & (S_ISUID | S_ISGID) != 0 {
            changes.mode = Some(without_set_id(asker, &attr, mode));
        }
    }
    let caller = &asker.caller;
    let acl = changes.mode.map_or(Ok(None), |_| acl(fs, ino, ACCESS))?;
    let (Some(mode), Some(acl)) = (changes.mode, acl) else {
        return fs.setattr(caller, ino, &changes);
    };
    let old = acl.value();
    fs.setxattr(caller, ino, ACCESS, &acl.with_mode(mode).value(), XattrFlags::default())?;
    let set = fs.setattr(caller, ino, &changes);
    set.inspect_err(|_| restore_acl(fs, caller, ino, Some(&old)))
}

/// Gives an inode the ACL back that it had before a change that failed later on.
fn restore_acl(fs: &mut dyn FileSystem, caller: &Caller, ino: Ino, old: Option<&[u8]>) {
    // the caller is told why the change failed
    let _ = match old {
        Some(value) => fs.setxattr(caller, ino, ACCESS, value, XattrFlags::default()),
        None => fs.removexattr(caller, ino, ACCESS),
    };
}

/// Sets an attribute. An ACL that decides access sets the mode too, as a chmod does: setgid goes if
/// `asker` may not set it. It is not kept if the mode says all that it says.
pub(crate) fn set_xattr(
    fs: &mut dyn FileSystem,
    asker: &Asker,
    ino: Ino,
    (name, value): (&[u8], &[u8]),
    flags: XattrFlags,
) -> Result<(), Error> {
    let caller = &asker.caller;
    if name != ACCESS {
        return fs.setxattr(caller, ino, name, value, flags);
    }
    let acl = Acl::parse(value).ok_or(Error::Invalid("the value is no access control list"))?;
    let attr = fs.getattr(ino)?;
    let setgid = attr.mode & S_ISGID != 0 && may_set_group(asker, &attr);
    let kept = attr.mode & 0o7000 & !(if setgid { 0 } else { S_ISGID });
    let mode = kept | acl.mode();
    let old = fs.getxattr(ino, ACCESS).ok();
    if acl.is_mode() {
        match fs.removexattr(caller, ino, ACCESS) {
            Ok(()) | Err(Error::NoAttribute) => {}
            Err(error) => return Err(error),
        }
    } else {
        fs.setxattr(caller, ino, ACCESS, value, flags)?;
    }
    let set = fs.setattr(caller, ino, &SetAttr { mode: Some(mode), ..SetAttr::default() });
    set.map(drop).inspect_err(|_| restore_acl(fs, caller, ino, old.as_deref()))
}

/// Writes as much as there is room for, and returns how many bytes: only if not one block fits it
/// is an error.
pub(crate) fn write_what_fits(
    fs: &mut dyn FileSystem,
    caller: &Caller,
    ino: Ino,
    at: u64,
    bytes: &[u8],
) -> Result<usize, Error> {
    let lies_in_one_block = (at % BLOCK as u64) as usize + bytes.len() <= BLOCK;
    match fs.write(caller, ino, at, bytes) {
        Ok(()) => return Ok(bytes.len()),
        Err(Error::NoSpace | Error::FileTooBig) if !lies_in_one_block => {}
        Err(error) => return Err(error),
    }
    let mut written = 0;
    while written < bytes.len() {
        let start = at + written as u64;
        let part = (BLOCK - (start % BLOCK as u64) as usize).min(bytes.len() - written);
        match fs.write(caller, ino, start, &bytes[written..written + part]) {
            Ok(()) => written += part,
            Err(_) if written > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use dovetail_block::MemoryDevice;
    use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
    use dovetail_ext::{Ext, Options};
    use dovetail_time::SimTime;
    use dovetail_vfs::NewNode;

    use super::*;

    fn ext4(blocks: u64) -> Ext<MemoryDevice> {
        let mut device = MemoryDevice::new(blocks);
        let options = MkfsOptions { block_size: Some(4096), ..MkfsOptions::new(Kind::Ext4) };
        mkfs(&mut device, &options).unwrap();
        Ext::mount(device, Options::default(), SimTime::ZERO).unwrap()
    }

    #[test]
    fn a_change_that_fails_leaves_the_acl_as_it_was() {
        let mut fs = ext4(4096);
        let (asker, root) = (Asker::unknown(Caller::default()), fs.root());
        let node = NewNode { mode: 0o100_664, rdev: (0, 0) };
        let ino = fs.create(&asker.caller, root, b"file", &node).unwrap().ino;
        // u::rw-, u:1000:rw-, g::rw-, m::rw-, o::r--
        let entries = [
            (1, 6, u32::MAX),
            (2, 6, 1000),
            (4, 6, u32::MAX),
            (16, 6, u32::MAX),
            (32, 4, u32::MAX),
        ];
        let entry = |(tag, may, id): (u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &may.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        let value = [2_u32.to_le_bytes().to_vec(), entries.map(entry).concat()].concat();
        set_xattr(&mut fs, &asker, ino, (ACCESS, &value), XattrFlags::default()).unwrap();
        let too_large = SetAttr { mode: Some(0o600), size: Some(1 << 60), ..SetAttr::default() };
        assert_eq!(set_attributes(&mut fs, &asker, ino, too_large), Err(Error::FileTooBig));
        assert_eq!(fs.getxattr(ino, ACCESS).unwrap(), value);
        assert_eq!(fs.getattr(ino).unwrap().mode, 0o100_664);
    }

    /// The first part of a write of less than a block has room in the file's last block.
    #[test]
    fn a_write_that_fits_in_part_tells_how_much_fits() {
        const SIZE: u64 = 3 * 4096 - 53;
        let mut fs = ext4(4096);
        let (caller, root) = (Caller::default(), fs.root());
        let make = |fs: &mut Ext<MemoryDevice>, name: &str| {
            let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
            fs.create(&caller, root, name.as_bytes(), &node).unwrap().ino
        };
        let ino = make(&mut fs, "log");
        fs.write(&caller, ino, 0, &vec![1; SIZE as usize]).unwrap();
        let fill = make(&mut fs, "fill");
        let mut end = 0;
        while let Ok(written) = write_what_fits(&mut fs, &caller, fill, end, &[2; 65_536]) {
            end += written as u64;
        }
        assert_eq!(write_what_fits(&mut fs, &caller, ino, SIZE, &[3; 1000]), Ok(53));
        assert_eq!(fs.getattr(ino).unwrap().size, SIZE + 53);
        assert_eq!(
            write_what_fits(&mut fs, &caller, ino, SIZE + 53, &[3; 1000]),
            Err(Error::NoSpace)
        );
        assert_eq!(fs.getattr(ino).unwrap().size, SIZE + 53);
    }
}
