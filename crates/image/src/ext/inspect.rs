//! The structures of an ext volume.

use dovetail_ext::format::{GroupNo, Ino, InodeFlags};
use dovetail_ext::{Corrupt, Damage, Error as ExtError, Volume};
use dovetail_vfs::kit::VolumeTree;
use serde_json::{Value, json};

use crate::line::mode_text;
use crate::{Error, Medium, Structure};

type Image = Volume<Medium>;

pub(super) fn inspect(volume: &mut Image, structure: &Structure) -> Result<Value, Error> {
    match structure {
        Structure::Superblock => Ok(superblock(volume)),
        Structure::Group(number) => group(volume, *number),
        Structure::Inode(ino) => numbered_inode(volume, Ino(*ino)),
        Structure::Path(path) => {
            let found = volume.resolve_link(path).map_err(Error::failed)?;
            inode(volume, found.ino)
        }
        _ => Err(Error::Usage(
            "an ext volume has groups and inodes: use superblock, group, inode or path".into(),
        )),
    }
}

/// Superblock of the volume as JSON.
fn superblock(volume: &Image) -> Value {
    let s = volume.superblock();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_string();
    json!({
        "label": text(&s.label),
        "uuid": s.uuid.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        "last_mounted": text(&s.last_mounted),
        "compat": s.compat.to_string(),
        "incompat": s.incompat.to_string(),
        "ro_compat": s.ro_compat.to_string(),
        "state": s.state.0,
        "block_size": s.block_size(),
        "blocks_count": s.blocks_count,
        "free_blocks": s.free_blocks,
        "reserved_blocks": s.reserved_blocks,
        "inodes_count": s.inodes_count,
        "free_inodes": s.free_inodes,
        "inode_size": s.inode_size,
        "group_count": s.group_count(),
        "blocks_per_group": s.blocks_per_group,
        "inodes_per_group": s.inodes_per_group,
        "groups_per_flex": s.groups_per_flex(),
        "reserved_gdt_blocks": s.reserved_gdt_blocks,
        "journal_ino": s.journal_ino.0,
        "last_orphan": s.last_orphan.0,
        "mkfs_time": s.mkfs_time,
        "write_time": s.write_time,
        "kbytes_written": s.kbytes_written,
        "error_count": s.error_count,
        "blocks_in_journal": volume.recovery().map(|recovery| recovery.blocks),
    })
}

/// An inode that was asked for by its number: one that is free, or not there, is no damage.
fn numbered_inode(volume: &mut Image, ino: Ino) -> Result<Value, Error> {
    let last = volume.superblock().inodes_count;
    if !(1..=last).contains(&ino.0) {
        return Err(Error::Failed(format!("there is no inode {ino}; the volume has 1 to {last}")));
    }
    match volume.inode(ino) {
        Err(ExtError::Corrupt(Corrupt::Format(Damage::FreeInode(_)))) => {
            Err(Error::Failed(format!("inode {ino} is not in use")))
        }
        _ => inode(volume, ino),
    }
}

/// The descriptor of a group.
fn group(volume: &mut Image, number: u32) -> Result<Value, Error> {
    let groups = volume.superblock().group_count();
    if number >= groups {
        let last = groups.saturating_sub(1);
        return Err(Error::Failed(format!(
            "there is no group {number}; the volume has 0 to {last}"
        )));
    }
    let group = volume.group(GroupNo(number)).map_err(Error::failed)?;
    Ok(json!({
        "group": number,
        "first_block": volume.superblock().group_start(GroupNo(number)).0,
        "blocks": volume.superblock().group_blocks(GroupNo(number)),
        "has_superblock": volume.superblock().has_superblock(GroupNo(number)),
        "block_bitmap": group.block_bitmap.0,
        "inode_bitmap": group.inode_bitmap.0,
        "inode_table": group.inode_table.0,
        "free_blocks": group.free_blocks,
        "free_inodes": group.free_inodes,
        "used_dirs": group.used_dirs,
        "itable_unused": group.itable_unused,
        "flags": group.flags.0,
        "checksum": group.checksum,
    }))
}

/// An inode, and its runs of blocks as far as its size goes, the first hundred of them.
fn inode(volume: &mut Image, ino: Ino) -> Result<Value, Error> {
    let inode = volume.inode(ino).map_err(Error::failed)?;
    let mut runs = Vec::new();
    let (mut at, end) = (0, inode.size.div_ceil(volume.superblock().block_size().into()));
    let inside =
        inode.is_fast_symlink(volume.superblock()) || !matches!(inode.file_type().0, 1 | 2 | 7);
    while at < end && runs.len() < 100 && !inside {
        let run = volume.run(&inode, at).map_err(Error::failed)?;
        let len = run.len.min(end - at);
        runs.push(json!(format!("{at}+{len}: {}", mapped(run.mapped))));
        at += len;
    }
    Ok(json!({
        "ino": ino.0,
        "mode": mode_text(inode.mode),
        "uid": inode.uid,
        "gid": inode.gid,
        "links": inode.links,
        "size": inode.size,
        "sectors": inode.sectors,
        "mtime": inode.mtime.seconds,
        "flags": inode.flags.0,
        "mapped_by": if inode.flags.has(InodeFlags::EXTENTS) { "extents" } else { "pointers" },
        "generation": inode.generation,
        "xattr_block": inode.xattr_block.0,
        "runs": runs,
    }))
}

fn mapped(mapped: dovetail_ext::Mapped) -> String {
    match mapped {
        dovetail_ext::Mapped::Hole => "hole".into(),
        dovetail_ext::Mapped::Unwritten(at) => format!("block {at}, unwritten"),
        dovetail_ext::Mapped::Data(at) => format!("block {at}"),
    }
}
