//! Extended attributes.

use dovetail_vfs::{Caller, Error, Ino, XattrFlags, XattrLayout};

use super::Model;

const PREFIXES: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
const WHOLE_NAMES: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];

/// The name without the prefix that a number stands for.
fn stored_name(name: &[u8]) -> Result<&[u8], Error> {
    if WHOLE_NAMES.contains(&name) {
        return Ok(b"");
    }
    let rest = PREFIXES.iter().find_map(|prefix| name.strip_prefix(*prefix));
    match rest {
        None => Err(Error::Unsupported("this name space of extended attributes".to_string())),
        Some(b"") => Err(Error::Invalid("the name of an extended attribute is empty")),
        Some(rest) if rest.len() > 255 => Err(Error::TooBig),
        Some(rest) => Ok(rest),
    }
}

fn room(name: &[u8], value: &[u8], layout: XattrLayout) -> usize {
    let stored = stored_name(name).map_or(0, <[u8]>::len);
    match layout {
        XattrLayout::Together => (4 + stored + value.len()).next_multiple_of(4),
        XattrLayout::Apart => (16 + stored).next_multiple_of(4) + value.len().next_multiple_of(4),
    }
}

impl Model {
    pub(super) fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>, Error> {
        let node = self.node(ino)?;
        stored_name(name)?;
        node.xattrs.get(name).cloned().ok_or(Error::NoAttribute)
    }

    pub(super) fn set_xattr(
        &mut self,
        caller: &Caller,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        flags: XattrFlags,
    ) -> Result<(), Error> {
        let limits = self.limits;
        let node = self.node_mut(ino)?;
        stored_name(name)?;
        if value.len() > limits.xattr_value {
            return Err(Error::TooBig);
        }
        match node.xattrs.contains_key(name) {
            true if flags.create => return Err(Error::Exists),
            false if flags.replace => return Err(Error::NoAttribute),
            _ => {}
        }
        let others = node.xattrs.iter().filter(|(other, _)| other.as_slice() != name);
        let taken: usize =
            others.map(|(other, value)| room(other, value, limits.xattr_layout)).sum();
        if taken + room(name, value, limits.xattr_layout) > limits.xattr_total {
            return Err(match limits.xattr_layout {
                XattrLayout::Together => Error::TooBig,
                XattrLayout::Apart => Error::NoSpace,
            });
        }
        node.xattrs.insert(name.to_vec(), value.to_vec());
        node.changed(caller.now);
        Ok(())
    }

    pub(super) fn remove_xattr(
        &mut self,
        caller: &Caller,
        ino: Ino,
        name: &[u8],
    ) -> Result<(), Error> {
        let node = self.node_mut(ino)?;
        stored_name(name)?;
        node.xattrs.remove(name).ok_or(Error::NoAttribute)?;
        node.changed(caller.now);
        Ok(())
    }
}
