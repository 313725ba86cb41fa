//! Choices of the page: drives, stacks and workloads.

use serde::Serialize;

/// A thing to choose.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Choice {
    /// Its name, as `dovetail bench` takes it.
    pub name: &'static str,
    /// Its name on the page.
    pub title: &'static str,
    /// Description in a sentence or two.
    pub about: &'static str,
}

/// A drive to choose.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Drive {
    /// Its profile.
    #[serde(flatten)]
    pub choice: Choice,
    /// By how much it is shrunk.
    pub scale: &'static str,
    /// Stacks that it cannot have.
    pub lacks: &'static [&'static str],
}

/// A workload to choose.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    /// Its name and description.
    #[serde(flatten)]
    pub choice: Choice,
    /// A fio job file. `{1/8}` stands for that share of the drive, in MiB.
    pub job: &'static str,
}

/// All that can be chosen. The first of each list is chosen at first.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Catalogue {
    /// Drives.
    pub drives: &'static [Drive],
    /// Stacks.
    pub stacks: &'static [Choice],
    /// Workloads.
    pub workloads: &'static [Sample],
}

const fn choice(name: &'static str, title: &'static str, about: &'static str) -> Choice {
    Choice { name, title, about }
}

/// Choices of the page.
pub const CATALOGUE: Catalogue = Catalogue {
    drives: &[
        Drive {
            choice: choice(
                "femu-32g",
                "32 GB research SSD",
                "The emulated drive of many papers. It can also move a block to another address without writing it.",
            ),
            scale: "1/64",
            lacks: &[],
        },
        Drive {
            choice: choice(
                "nvme-250g-4k",
                "250 GB consumer SSD",
                "A TLC drive as in many computers, with a write buffer and two planes a die. It can move blocks, too.",
            ),
            scale: "1/512",
            lacks: &[],
        },
        Drive {
            choice: choice(
                "zet983-480g",
                "480 GB Z-NAND SSD",
                "A server's drive with very fast flash, one bit a cell, and much spare room.",
            ),
            scale: "1/512",
            lacks: &["rm-ipu"],
        },
        Drive {
            choice: choice(
                "ufs31-256g",
                "256 GB phone storage (UFS)",
                "The flash of a phone: few dies, and a part of it is written fast at first and folded later. A run takes a minute or two.",
            ),
            scale: "1/128",
            lacks: &["rm-ipu"],
        },
    ],
    stacks: &[
        choice(
            "f2fs",
            "F2FS",
            "The log-structured file system of most phones, as Linux mounts it.",
        ),
        choice(
            "ext4",
            "ext4",
            "Linux's usual file system: every block has its place and is overwritten there.",
        ),
        choice(
            "rm-ipu",
            "RM-IPU",
            "F2FS on a drive that moves updates to where they were, without writing them again.",
        ),
        choice(
            "f2fs-lfs",
            "F2FS, pure log",
            "F2FS that never fills holes: it cleans whole segments instead.",
        ),
        choice(
            "iplfs",
            "IPLFS",
            "F2FS with an endless log: nothing is cleaned above, the drive does it alone.",
        ),
        choice("ext3", "ext3", "The older ext: in place, with pointer trees in place of extents."),
    ],
    workloads: &[
        Sample {
            choice: choice(
                "random-updates.fio",
                "Random updates",
                "Four files, half of the drive, are rewritten at random, with an fsync after every tenth write. The hard case.",
            ),
            job: include_str!("../jobs/random-updates.fio"),
        },
        Sample {
            choice: choice(
                "database.fio",
                "A database",
                "A log whose every record is made durable, pages that are rewritten at random and synced now and then, and queries.",
            ),
            job: include_str!("../jobs/database.fio"),
        },
        Sample {
            choice: choice(
                "sequential.fio",
                "Large files",
                "Two files, half of the drive, are written from front to back four times. The easy case.",
            ),
            job: include_str!("../jobs/sequential.fio"),
        },
        Sample {
            choice: choice(
                "mixed.fio",
                "Reads and writes, some blocks hot",
                "One large file, read and rewritten past the page cache. Few blocks get most of the calls, eight at a time.",
            ),
            job: include_str!("../jobs/mixed.fio"),
        },
    ],
};

/// A job of the catalogue on a drive of so many bytes: `{1/8}` is that share of it.
#[cfg(test)]
pub(crate) fn job_for(job: &str, bytes: u64) -> String {
    let mut parts = job.split("{1/");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (share, rest) = part.split_once('}').unwrap_or((part, ""));
        text += &format!("{}m{rest}", bytes / share.parse::<u64>().unwrap_or(1) / (1 << 20));
    }
    text
}
