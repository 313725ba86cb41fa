//! What the kernel leaves to a FUSE file system beyond the plain changes: umask and default ACLs of new inodes, ACLs that
//! follow the mode and the mode that follows them, set-id bits that go, times that a cached write must not touch.

use dovetail_vfs::{Attr, Caller, Error, FileSystem, Ino, NewNode, SetAttr, XattrFlags};

use crate::acl::{ACCESS, Acl, DEFAULT};

/// Where a new inode goes, and which permissions its maker never gives.
pub(crate) struct Place<'a> {
    pub(crate) dir: Ino,
    pub(crate) name: &'a [u8],
    pub(crate) umask: u32,
}

const SETUID: u16 = 0o4000;
const SETGID: u16 = 0o2000;
const GROUP_EXECUTES: u16 = 0o010;
const PERMISSIONS: u16 = 0o777;

/// An ACL of an inode; none where the file system has no such attribute.
fn acl(fs: &mut dyn FileSystem, ino: Ino, which: &[u8]) -> Result<Option<Acl>, Error> {
    match fs.getxattr(ino, which) {
        Ok(value) => Ok(Acl::parse(&value)),
        Err(Error::NoAttribute | Error::Unsupported(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes an inode, held once for the kernel: with the directory's default ACL if it has one, else with the umask.
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

/// What the kernel learns of is held for it until it forgets.
pub(crate) fn held(
    fs: &mut dyn FileSystem,
    find: impl FnOnce(&mut dyn FileSystem) -> Result<Attr, Error>,
) -> Result<Attr, Error> {
    let attr = find(fs)?;
    fs.hold(attr.ino);
    Ok(attr)
}

/// The mode without the bits that a write by others, or a new owner, takes away: setuid, and setgid where the group may
/// execute (elsewhere it means mandatory locking).
const fn without_set_id(mode: u16) -> u16 {
    let setgid = if mode & GROUP_EXECUTES != 0 { SETGID } else { 0 };
    mode & 0o7777 & !(SETUID | setgid)
}

fn is_regular(attr: &Attr) -> bool {
    attr.kind() == 0o100_000
}

/// Changes attributes. A new owner takes set-id bits away, a new size does so unless root sets it, and a new mode changes
/// the ACL.
pub(crate) fn set_attributes(
    fs: &mut dyn FileSystem,
    caller: &Caller,
    ino: Ino,
    mut changes: SetAttr,
) -> Result<Attr, Error> {
    let owner = changes.uid.is_some() || changes.gid.is_some();
    if owner || (changes.size.is_some() && caller.uid != 0) {
        let attr = fs.getattr(ino)?;
        let mode = changes.mode.unwrap_or(attr.mode) & 0o7777;
        if is_regular(&attr) && without_set_id(mode) != mode {
            changes.mode = Some(without_set_id(mode));
        }
    }
    if let Some(mode) = changes.mode
        && let Some(acl) = acl(fs, ino, ACCESS)?
    {
        fs.setxattr(caller, ino, ACCESS, &acl.with_mode(mode).value(), XattrFlags::default())?;
    }
    fs.setattr(caller, ino, &changes)
}

/// Sets an attribute. An ACL that decides access sets the mode too, and is not kept if the mode says all that it says.
pub(crate) fn set_xattr(
    fs: &mut dyn FileSystem,
    caller: &Caller,
    ino: Ino,
    (name, value): (&[u8], &[u8]),
    flags: XattrFlags,
) -> Result<(), Error> {
    if name != ACCESS {
        return fs.setxattr(caller, ino, name, value, flags);
    }
    let acl = Acl::parse(value).ok_or(Error::Invalid("the value is no access control list"))?;
    let mode = fs.getattr(ino)?.mode & 0o7000 | acl.mode();
    if acl.is_mode() {
        match fs.removexattr(caller, ino, ACCESS) {
            Ok(()) | Err(Error::NoAttribute) => {}
            Err(error) => return Err(error),
        }
    } else {
        fs.setxattr(caller, ino, ACCESS, value, flags)?;
    }
    fs.setattr(caller, ino, &SetAttr { mode: Some(mode), ..SetAttr::default() }).map(drop)
}

/// Writes, and takes the set-id bits away: the writer may not keep them.
pub(crate) fn write_and_kill(
    fs: &mut dyn FileSystem,
    caller: &Caller,
    ino: Ino,
    at: u64,
    bytes: &[u8],
) -> Result<(), Error> {
    fs.write(caller, ino, at, bytes)?;
    let mode = fs.getattr(ino)?.mode;
    let kept = without_set_id(mode);
    if kept != mode & 0o7777 {
        fs.setattr(caller, ino, &SetAttr { mode: Some(kept), ..SetAttr::default() })?;
    }
    Ok(())
}

/// Writes what the kernel collected: the bytes change, the times do not, because the kernel sends those by itself.
pub(crate) fn write_back(
    fs: &mut dyn FileSystem,
    caller: &Caller,
    ino: Ino,
    at: u64,
    bytes: &[u8],
) -> Result<(), Error> {
    let before = fs.getattr(ino)?;
    fs.write(&Caller { now: before.mtime, ..*caller }, ino, at, bytes)?;
    if before.ctime != before.mtime {
        fs.setattr(caller, ino, &SetAttr { ctime: Some(before.ctime), ..SetAttr::default() })?;
    }
    Ok(())
}
