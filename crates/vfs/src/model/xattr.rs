//! Extended attributes: name spaces and room.

use super::{Limits, Model};
use crate::{Caller, Error, Ino, XattrFlags};

const SPACES: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
const ACLS: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];

/// The name as it is stored, without what the name space says.
fn stored(name: &[u8]) -> Result<&[u8], Error> {
    if ACLS.contains(&name) {
        return Ok(b"");
    }
    let rest = SPACES.iter().find_map(|space| name.strip_prefix(*space)).filter(|rest| !rest.is_empty());
    rest.ok_or_else(|| {
        Error::Unsupported(format!("the extended attribute {}", String::from_utf8_lossy(name)))
    })
}

/// The bytes that an ACL takes: entries that name nobody need no id.
fn acl_bytes(value: &[u8]) -> usize {
    let named = |entry: &&[u8]| matches!(entry[0], 0x02 | 0x08);
    let entries = value[4..].chunks_exact(8);
    let (all, named) = (entries.clone().count(), entries.filter(named).count());
    4 + 4 * all + 4 * named
}

fn entry_bytes(name: &[u8], value: &[u8]) -> Result<usize, Error> {
    let value = if ACLS.contains(&name) { acl_bytes(value) } else { value.len() };
    Ok((4 + stored(name)?.len() + value).next_multiple_of(4))
}

fn check_value(name: &[u8], value: &[u8]) -> Result<(), Error> {
    if value.len() > usize::from(u16::MAX) {
        return Err(Error::TooBig);
    }
    let acl = ACLS.contains(&name);
    if acl && (value.len() < 4 || !(value.len() - 4).is_multiple_of(8) || value[..4] != [2, 0, 0, 0]) {
        return Err(Error::Invalid("the value is no access control list"));
    }
    Ok(())
}

impl Model {
    pub(super) fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>, Error> {
        stored(name)?;
        self.node(ino)?.xattrs.get(name).cloned().ok_or(Error::NoAttribute)
    }

    pub(super) fn set_xattr(
        &mut self,
        caller: &Caller,
        ino: Ino,
        (name, value): (&[u8], &[u8]),
        flags: XattrFlags,
    ) -> Result<(), Error> {
        check_value(name, value)?;
        stored(name)?;
        let Limits { xattr_bytes, .. } = self.limits;
        let node = self.node_mut(ino)?;
        match node.xattrs.contains_key(name) {
            true if flags.create => return Err(Error::Exists),
            false if flags.replace => return Err(Error::NoAttribute),
            _ => {}
        }
        let mut room = entry_bytes(name, value)?;
        for (other, value) in node.xattrs.iter().filter(|(other, _)| *other != name) {
            room += entry_bytes(other, value)?;
        }
        if room > xattr_bytes {
            return Err(Error::NoSpace);
        }
        node.xattrs.insert(name.to_vec(), value.to_vec());
        node.ctime = caller.now;
        Ok(())
    }

    pub(super) fn remove_xattr(&mut self, caller: &Caller, ino: Ino, name: &[u8]) -> Result<(), Error> {
        stored(name)?;
        let node = self.node_mut(ino)?;
        node.xattrs.remove(name).ok_or(Error::NoAttribute)?;
        node.ctime = caller.now;
        Ok(())
    }
}
