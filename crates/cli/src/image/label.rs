//! `dovetail label`: the label of a volume.

use std::path::PathBuf;

use clap::Args;
use dovetail_image::format_of;
use dovetail_time::SimTime;

use super::Parts;
use crate::mount::ImageLock;
use crate::{Failure, clock, print};

/// An image, and its new label.
#[derive(Debug, Args)]
pub(crate) struct LabelArguments {
    /// The image file, a block device, or a drive file.
    image: PathBuf,
    /// The new label, "" for none: 512 units of UTF-16 for F2FS, 16 bytes for ext. Without it the
    /// label is shown.
    label: Option<String>,
    #[command(flatten)]
    parts: Parts,
}

pub(crate) fn label(arguments: &LabelArguments) -> Result<(), Failure> {
    let _lock = ImageLock::take(&arguments.image, arguments.label.is_some())?;
    let image = arguments.parts.of(&arguments.image)?;
    let format = format_of(&image)?;
    match &arguments.label {
        None => print(&format!("{}\n", format.label(&image)?)),
        Some(label) => Ok(format.set_label(&image, label, clock::mounting_at(SimTime::ZERO))?),
    }
}
