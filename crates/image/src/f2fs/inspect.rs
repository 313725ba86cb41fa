//! The structures of an F2FS volume as of its last checkpoint.

use dovetail_f2fs::Volume;
use dovetail_f2fs::format::{
    BlockAddr, Footer, Member, NIDS_IN_NODE, Nid, SegNo, Timestamp, Variant, XATTR_NODE_OFFSET,
    is_indirect, node_address, node_nid,
};
use dovetail_vfs::kit::VolumeTree;
use serde_json::{Map, Value, json};

use super::inspect_iplfs;
use super::segments::{LOGS, segment, segments};
use crate::line::mode_text;
use crate::{Error, Inspected, Medium, Structure};

pub(super) type Image = Volume<Medium>;

/// Names and values, in the order in which they are shown.
type Facts = Map<String, Value>;

pub(super) fn inspect(mut volume: Image, structure: &Structure) -> Result<Inspected, Error> {
    let endless = volume.superblock().variant.is_iplfs();
    let refused = |why: &str| Err(Error::Usage(why.into()));
    let facts = match structure {
        Structure::Segment(_) | Structure::Segments if endless => {
            return refused(
                "IPLFS has no segments: use checkpoint, discard-log, areas, nid or path",
            );
        }
        Structure::DiscardLog | Structure::Areas if !endless => {
            return refused("only IPLFS has a discard log and areas: use checkpoint or segments");
        }
        Structure::Areas => inspect_iplfs::areas(volume)?,
        Structure::Superblock if endless => inspect_iplfs::superblock(&volume),
        Structure::Checkpoint if endless => inspect_iplfs::checkpoint(&volume),
        Structure::DiscardLog => inspect_iplfs::discard_log(&mut volume)?,
        Structure::Group(_) | Structure::Inode(_) => {
            return refused("F2FS has nodes and segments: use nid, segment or path");
        }
        Structure::Superblock => superblock(&volume),
        Structure::Checkpoint => checkpoint(&volume),
        Structure::Nid(nid) => node(&mut volume, Nid(*nid))?,
        Structure::Segment(segno) => segment(&mut volume, SegNo(*segno))?,
        Structure::Segments => return segments(&mut volume),
        Structure::Path(path) => {
            let inode = volume.resolve_link(path).map_err(Error::failed)?;
            node(&mut volume, inode.ino)?
        }
    };
    Ok(facts.into())
}

fn superblock(volume: &Image) -> Value {
    let s = volume.superblock();
    let mut facts = json!({
        "version": format!("{}.{}", s.version.0, s.version.1),
        "label": s.label,
        "uuid": s.uuid.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        "features": s.features.to_string(),
        "block_count": s.block_count,
        "segment_count": s.segment_count,
        "segments_per_section": s.segments_per_section,
        "sections_per_zone": s.sections_per_zone,
        "section_count": s.section_count,
        "segment_count_sit": s.segment_count_sit,
        "segment_count_nat": s.segment_count_nat,
        "segment_count_ssa": s.segment_count_ssa,
        "segment_count_main": s.segment_count_main,
        "cp_blkaddr": s.cp_start.0,
        "sit_blkaddr": s.sit_start.0,
        "nat_blkaddr": s.nat_start.0,
        "ssa_blkaddr": s.ssa_start.0,
        "main_blkaddr": s.main_start.0,
        "cp_payload": s.cp_payload,
        "quota_inodes": s.quota_files.map(|nid| nid.0),
        "last_kernel": s.last_kernel,
        "made_by": s.made_by,
    });
    if !s.devices.is_empty() {
        let device = |device: &Member| json!([device.path, device.segments]);
        facts["devices"] = s.devices.iter().map(device).collect();
    }
    facts
}

fn checkpoint(volume: &Image) -> Value {
    let c = volume.checkpoint();
    let logs: Map<_, _> = LOGS
        .iter()
        .zip(c.logs)
        .map(|(name, log)| {
            let value =
                json!({"segment": log.segment.0, "offset": log.offset, "ssr": log.in_holes});
            ((*name).to_string(), value)
        })
        .collect();
    json!({
        "pack": c.pack,
        "version": c.version,
        "flags": c.flags.to_string(),
        "user_block_count": c.user_block_count,
        "valid_block_count": c.valid_block_count,
        "reserved_segments": c.reserved_segments,
        "overprovision_segments": c.overprovision_segments,
        "free_segments": c.free_segments,
        "valid_nodes": c.valid_nodes,
        "valid_inodes": c.valid_inodes,
        "next_free_nid": c.next_free_nid,
        "elapsed_seconds": c.elapsed_s,
        "total_blocks": c.total_blocks,
        "checksum": format!("{:#010x}", c.checksum),
        "logs": logs,
    })
}

fn node(volume: &mut Image, nid: Nid) -> Result<Value, Error> {
    let last = volume.superblock().max_nid() - 1;
    if !(1..=last).contains(&nid.0) {
        return Err(Error::Failed(format!("there is no nid {nid}; the NAT has 1 to {last}")));
    }
    let entry = volume.nat(nid).map_err(Error::failed)?;
    let mut facts = json!({
        "nid": nid.0,
        "nat_ino": entry.ino.0,
        "nat_block": entry.address.0,
        "nat_version": entry.version,
    });
    let Value::Object(map) = &mut facts else { return Ok(facts) };
    if entry.address == BlockAddr::NULL {
        map.insert("note".to_string(), "the nid is free: there is no node".into());
        return Ok(facts);
    }
    let block = volume.node_block(nid).map_err(Error::failed)?;
    map.extend(footer(&Footer::parse(&block)));
    if entry.ino == nid {
        map.extend(inode(volume, nid)?);
    } else {
        map.extend(pointers(&block, volume.superblock().variant));
    }
    Ok(facts)
}

fn inode(volume: &mut Image, ino: Nid) -> Result<Facts, Error> {
    let inode = volume.inode(ino).map_err(Error::failed)?;
    let xattrs = volume.xattrs(&inode).map_err(Error::failed)?;
    let xattrs: Map<_, _> = xattrs
        .iter()
        .map(|x| {
            (
                x.full_name(),
                x.system_value()
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect::<String>()
                    .into(),
            )
        })
        .collect();
    let time = |time: Timestamp| format!("{}.{:09}", time.seconds, time.nanoseconds);
    Ok(facts(json!({
        "mode": format!("{:o}", inode.mode),
        "type": mode_text(inode.mode),
        "uid": inode.uid,
        "gid": inode.gid,
        "links": inode.links,
        "size": inode.size,
        "blocks": inode.blocks,
        "atime": time(inode.atime),
        "ctime": time(inode.ctime),
        "mtime": time(inode.mtime),
        "crtime": inode.crtime.map(time),
        "generation": inode.generation,
        "inline_flags": inode.inline.0,
        "flags": inode.flags.0,
        "parent": inode.parent.0,
        "name": String::from_utf8_lossy(&inode.name),
        "pointers": inode.pointer_count(),
        "nids": inode.nids.map(|nid| nid.0),
        "xattr_nid": inode.xattr_nid.0,
        "xattrs": xattrs,
    })))
}

/// The fields of an object.
fn facts(value: Value) -> Facts {
    match value {
        Value::Object(facts) => facts,
        _ => Map::new(),
    }
}

fn footer(footer: &Footer) -> Facts {
    facts(json!({"footer": {
        "nid": footer.nid.0,
        "ino": footer.ino.0,
        "node_offset": footer.node_offset,
        "cold": footer.cold,
        "fsync_mark": footer.fsync_mark,
        "dentry_mark": footer.dentry_mark,
        "cp_ver": footer.checkpoint,
        "next_blkaddr": footer.next,
    }}))
}

/// Kind of a node that is no inode, and its pointers: those that are not 0, with their places.
fn pointers(block: &dovetail_block::BlockBytes, variant: Variant) -> Facts {
    let offset = Footer::parse(block).node_offset;
    if offset == XATTR_NODE_OFFSET {
        return facts(json!({"node": "extended attributes"}));
    }
    let (node, to) =
        if is_indirect(offset) { ("indirect", "nids") } else { ("direct", "addresses") };
    let count = if is_indirect(offset) { NIDS_IN_NODE } else { variant.direct_pointers() };
    let pointers = (0..count).map(|index| match is_indirect(offset) {
        true => (index, node_nid(block, index).0.into()),
        false => (index, node_address(block, index, variant).0),
    });
    let pointers: Facts = pointers
        .filter(|(_, to)| *to != 0)
        .map(|(index, to)| (index.to_string(), to.into()))
        .collect();
    facts(json!({"node": node, "pointers": pointers.len(), to: pointers}))
}
