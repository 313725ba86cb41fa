//! The figures of ext3 and ext4.

use dovetail_vfs::{Figure, Figures};

/// All of them.
pub const FIGURES: Figures = Figures { written: &WRITTEN, events: &EVENTS };

pub(super) static WRITTEN: [Figure; 3] = [
    Figure { key: "data", title: "blocks of data", unit: "blocks", about: "content of files" },
    Figure { key: "journal", title: "journal", unit: "blocks", about: "the journal" },
    Figure {
        key: "home",
        title: "metadata in place",
        unit: "blocks",
        about: "metadata in their own place",
    },
];

pub(super) static EVENTS: [Figure; 3] = [
    Figure {
        key: "commits",
        title: "commits",
        unit: "transactions",
        about: "committed to the journal",
    },
    Figure {
        key: "logged_blocks",
        title: "blocks logged",
        unit: "blocks",
        about: "of metadata or content, logged",
    },
    Figure {
        key: "checkpoints",
        title: "checkpoints",
        unit: "checkpoints",
        about: "written: journal space was taken back",
    },
];
