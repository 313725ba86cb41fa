//! `dovetail inspect`: the structures of a volume as of its last checkpoint.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use dovetail_image::{Structure, format_of};
use serde_json::{Map, Value};

use crate::output::{Outputs, write};
use crate::{Failure, complain, print};

/// An image, and a structure in it.
#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// The image file, a block device, or a drive file.
    image: PathBuf,
    #[command(flatten)]
    parts: super::Parts,
    #[command(subcommand)]
    what: What,
    /// Write JSON: --json FILE to a file, --json alone to standard output.
    #[arg(long, global = true, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The superblock: sizes and features of the volume, and the places of its areas.
    Superblock,
    /// The last checkpoint (F2FS, IPLFS).
    Checkpoint,
    /// Blocks that the last checkpoint gave up and the drive may still hold (IPLFS).
    DiscardLog,
    /// Positions of the logs, and their active regions: from the first live block to the last
    /// (IPLFS). Reads every node.
    Areas,
    /// A block group: its descriptor (ext).
    Group {
        /// Its number.
        number: u32,
    },
    /// An inode: its attributes, and where its blocks lie (ext).
    Inode {
        /// Its number.
        ino: u32,
    },
    /// A node of F2FS: its NAT entry, its footer, and the inode or the pointers that it holds.
    Nid {
        /// Its id.
        nid: u32,
    },
    /// A segment of F2FS's main area: its SIT entry, and whose its blocks are.
    Segment {
        /// Its number.
        segno: u32,
    },
    /// All segments of F2FS's main area, one a line.
    Segments,
    /// The inode that a path leads to; a symbolic link at the end is not followed.
    Path {
        /// The path.
        path: OsString,
    },
}

pub(crate) fn inspect(arguments: &InspectArguments) -> Result<(), Failure> {
    if let Some(path) = &arguments.json {
        let mut outputs = Outputs::default();
        outputs.input(&arguments.image);
        outputs.output("--json", path)?;
    }
    let (image, structure) = (&arguments.parts.of(&arguments.image)?, structure(&arguments.what));
    let shown =
        format_of(image)?.inspect(image, &structure, &mut |sentence| complain(&sentence))?;
    match (&arguments.json, shown.text) {
        (Some(path), _) => write(path, &format!("{:#}\n", shown.facts)),
        (None, Some(text)) => print(&text),
        (None, None) => print(&as_text(&shown.facts)),
    }
}

fn structure(what: &What) -> Structure {
    match what {
        What::Superblock => Structure::Superblock,
        What::Checkpoint => Structure::Checkpoint,
        What::DiscardLog => Structure::DiscardLog,
        What::Areas => Structure::Areas,
        What::Group { number } => Structure::Group(*number),
        What::Inode { ino } => Structure::Inode(*ino),
        What::Nid { nid } => Structure::Nid(*nid),
        What::Segment { segno } => Structure::Segment(*segno),
        What::Segments => Structure::Segments,
        What::Path { path } => Structure::Path(path.as_bytes().to_vec()),
    }
}

fn as_text(facts: &Value) -> String {
    let empty = Map::new();
    let lines = facts.as_object().unwrap_or(&empty).iter().map(|(key, value)| match value {
        Value::String(text) => format!("{key:24} {text}\n"),
        Value::Object(map) if map.values().any(Value::is_object) => {
            let rows = map.iter().map(|(key, value)| format!("  {key:22} {value}\n"));
            format!("{key}\n{}", rows.collect::<String>())
        }
        other => format!("{key:24} {other}\n"),
    });
    lines.collect()
}
