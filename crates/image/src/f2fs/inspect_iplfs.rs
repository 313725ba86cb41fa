//! The structures of an IPLFS volume. An address is shown as its area and how far into it it lies.

use dovetail_block::AREA_BLOCKS;
use dovetail_f2fs::format::BlockAddr;
use dovetail_f2fs::fsck::{Area, Options, Severity, check};
use serde_json::{Map, Value, json};

use super::check::area_json;
use super::inspect::Image;
use super::segments::LOGS;
use crate::Error;

/// Area 0 is for metadata, 1 to 6 are the logs.
fn place(address: BlockAddr) -> Value {
    json!({"area": address.0 / AREA_BLOCKS, "offset": address.0 % AREA_BLOCKS})
}

pub(super) fn superblock(volume: &Image) -> Value {
    let s = volume.superblock();
    json!({
        "format": "iplfs",
        "version": format!("{}.{}", s.version.0, s.version.1),
        "label": s.label,
        "uuid": s.uuid.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        "features": s.features.to_string(),
        "addresses": s.block_count,
        "address_bytes": s.variant.address_bytes(),
        "area_blocks": s.variant.area_blocks(),
        "capacity": s.capacity,
        "room_for_files": s.room_for_files(),
        "cp_blkaddr": s.cp_start.0,
        "pack_blocks": s.pack_blocks,
        "cp_payload": s.cp_payload,
        "discard_log_blocks": s.discard_log_blocks(),
        "orphan_blocks": s.orphan_blocks(),
        "nat_blkaddr": s.nat_start.0,
        "nat_blocks": s.nat_blocks,
        "last_kernel": s.last_kernel,
        "made_by": s.made_by,
    })
}

pub(super) fn checkpoint(volume: &Image) -> Value {
    let c = volume.checkpoint();
    // one past the last block of an area is where a log stands that has come to its end
    let position = |(log, address): (usize, &BlockAddr)| {
        let area = log as u64 + 1;
        json!({"area": area, "offset": address.0 - area * AREA_BLOCKS})
    };
    let positions = c.positions.iter().enumerate().map(position);
    let logs: Map<_, _> = LOGS.iter().map(ToString::to_string).zip(positions).collect();
    json!({
        "pack": c.pack,
        "version": c.version,
        "flags": c.flags.to_string(),
        "user_block_count": c.user_block_count,
        "valid_block_count": c.valid_block_count,
        "valid_nodes": c.valid_nodes,
        "valid_inodes": c.valid_inodes,
        "next_free_nid": c.next_free_nid,
        "elapsed_seconds": c.elapsed_s,
        "total_blocks": c.total_blocks,
        "discard_log_bytes": c.discard_log_bytes,
        "checksum": format!("{:#010x}", c.checksum),
        "logs": logs,
    })
}

pub(super) fn discard_log(volume: &mut Image) -> Result<Value, Error> {
    let extents = volume.discard_log().map_err(Error::failed)?;
    let blocks: u64 = extents.iter().fold(0, |sum, extent| sum.saturating_add(extent.blocks));
    let entry = |(number, extent): (usize, &dovetail_f2fs::format::Extent)| {
        let mut entry = place(extent.start);
        entry["blocks"] = extent.blocks.into();
        (number.to_string(), entry)
    };
    let entries: Map<_, _> = extents.iter().enumerate().map(entry).collect();
    Ok(json!({
        "bytes": volume.checkpoint().discard_log_bytes,
        "blocks": blocks,
        "extents": entries,
    }))
}

/// Areas of the logs, as a check of the volume counts them on the way.
pub(super) fn areas(volume: Image) -> Result<Value, Error> {
    let report = check(volume.into_device(), Options::default(), |_| {}).map_err(Error::failed)?;
    let row = |area: &Area| {
        let mut facts = area_json(area);
        facts["area"] = (area.log + 1).into();
        (LOGS[usize::from(area.log)].to_string(), facts)
    };
    let areas: Map<_, _> = report.counts.areas.iter().map(row).collect();
    let errors = report.count(Severity::Error);
    Ok(json!({"errors": errors, "areas": areas}))
}
