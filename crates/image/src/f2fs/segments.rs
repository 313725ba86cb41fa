//! The segments of an F2FS volume: what lies where.

use dovetail_f2fs::format::{BLOCKS_IN_SEGMENT, Nid, SegNo, SitEntry, Summary};
use dovetail_vfs::shown;
use serde_json::{Map, Value, json};

use super::inspect::Image;
use crate::{Error, Inspected};

/// The logs by the kernel's names, in the order of their numbers.
pub(super) const LOGS: [&str; 6] =
    ["hot_data", "warm_data", "cold_data", "hot_node", "warm_node", "cold_node"];

/// Directories above a file that are named; a damaged tree may have a loop.
const PATH_MAX_DEPTH: usize = 200;

fn log_name(log: u8) -> String {
    LOGS.get(usize::from(log)).map_or_else(|| format!("unknown ({log})"), ToString::to_string)
}

/// A segment is free, or a log goes on in it, or it is in use.
fn state(volume: &Image, segno: SegNo, entry: &SitEntry) -> &'static str {
    if volume.checkpoint().logs.iter().any(|log| log.segment == segno) {
        "log"
    } else if entry.valid_blocks == 0 {
        "free"
    } else {
        "used"
    }
}

fn entry_of(volume: &mut Image, segno: SegNo) -> Result<SitEntry, Error> {
    let last = volume.superblock().segment_count_main - 1;
    if segno.0 > last {
        return Err(Error::Failed(format!(
            "there is no segment {segno}; the main area has 0 to {last}"
        )));
    }
    volume.segment(segno).map_err(Error::failed)
}

pub(super) fn segment(volume: &mut Image, segno: SegNo) -> Result<Value, Error> {
    let entry = entry_of(volume, segno)?;
    let summaries = volume.summaries(segno).map_err(Error::failed)?;
    let valid = (0..BLOCKS_IN_SEGMENT).filter(|&offset| entry.is_valid(offset));
    let block = |offset: u32| {
        let facts = block(volume, entry.log >= 3, summaries[offset as usize]);
        let address = volume.block_in_segment(segno, offset).0;
        (address.to_string(), facts)
    };
    let blocks: Map<_, _> = valid.map(block).collect();
    Ok(json!({
        "segment": segno.0,
        "state": state(volume, segno, &entry),
        "type": log_name(entry.log),
        "valid_blocks": entry.valid_blocks,
        "mtime_seconds": entry.mtime_s,
        "first_block": volume.block_in_segment(segno, 0).0,
        "blocks": blocks,
    }))
}

/// Owner of a block by its summary, or the reason why that cannot be told.
fn block(volume: &mut Image, is_node: bool, summary: Summary) -> Value {
    let mut facts = json!({"nid": summary.nid.0});
    if !is_node {
        facts["version"] = summary.version.into();
        facts["index"] = summary.offset.into();
    }
    match volume.owner(summary, is_node) {
        Ok(owner) => {
            facts["ino"] = owner.ino.0.into();
            facts["node_offset"] = owner.node_offset.into();
            if let Some(block) = owner.file_block {
                facts["file_block"] = block.into();
            }
            facts["path"] = path(volume, owner.ino).into();
        }
        Err(error) => facts["note"] = error.to_string().into(),
    }
    facts
}

/// The path by the names that inodes keep: the last one that was given, of several.
fn path(volume: &mut Image, ino: Nid) -> Option<String> {
    let (mut names, mut ino) = (Vec::new(), ino);
    while ino != volume.superblock().root {
        let inode = volume.inode(ino).ok()?;
        if names.len() == PATH_MAX_DEPTH || inode.links == 0 {
            return None;
        }
        names.push(shown(&inode.name));
        ino = inode.parent;
    }
    names.reverse();
    Some(format!("/{}", names.join("/")))
}

/// One line a segment, and all of them as JSON.
pub(super) fn segments(volume: &mut Image) -> Result<Inspected, Error> {
    let (mut rows, mut text) = (Vec::new(), String::new());
    for segno in (0..volume.superblock().segment_count_main).map(SegNo) {
        let entry = entry_of(volume, segno)?;
        let (state, kind, valid) =
            (state(volume, segno, &entry), log_name(entry.log), entry.valid_blocks);
        text += &format!("{:>8}  {state:4}  {kind:9}  {valid:>3}\n", segno.0);
        rows.push(json!({
            "segment": segno.0,
            "state": state,
            "type": kind,
            "valid_blocks": valid,
            "mtime_seconds": entry.mtime_s,
        }));
    }
    Ok(Inspected { facts: json!({"segments": rows}), text: Some(text) })
}
