//! The figures of F2FS and IPLFS.

use dovetail_vfs::{Figure, Figures};

/// All of them.
pub const FIGURES: Figures = Figures { written: &WRITTEN, events: &EVENTS };

const fn blocks(key: &'static str, title: &'static str, about: &'static str) -> Figure {
    Figure { key, title, unit: "blocks", about }
}

pub(super) static WRITTEN: [Figure; 7] = [
    blocks("data", "blocks of data", "content of files, directories and links"),
    blocks("node", "nodes", "inodes and pointer nodes"),
    blocks("checkpoint", "checkpoints", "checkpoint packs"),
    blocks("nat", "NAT", "the node address table"),
    blocks("sit", "SIT", "the segment information table"),
    blocks("ssa", "SSA", "summaries of segments"),
    blocks(
        "cleaning",
        "moved by cleaning",
        "of data and nodes, moved by cleaning: they are not counted above",
    ),
];

pub(super) static EVENTS: [Figure; 9] = [
    Figure { key: "checkpoints", title: "checkpoints", unit: "checkpoints", about: "written" },
    Figure {
        key: "foreground_cleanings",
        title: "sections cleaned while calls wait",
        unit: "sections",
        about: "cleaned because there was no room",
    },
    Figure {
        key: "background_cleanings",
        title: "sections cleaned in the background",
        unit: "sections",
        about: "cleaned in the background",
    },
    blocks("moved_blocks", "blocks moved by cleaning", "moved by cleaning"),
    blocks(
        "gc_remapped_blocks",
        "of these remapped",
        "of the moved ones: moved by the drive, nothing was copied",
    ),
    blocks("ssr_blocks", "blocks into holes", "written into holes of used segments"),
    blocks("lfs_blocks", "blocks to the end of a log", "written to the end of a log"),
    blocks("in_place_blocks", "blocks rewritten in place", "written over what they replace"),
    blocks("remapped_blocks", "blocks remapped", "written to a log and moved to where they were"),
];
