//! The file systems that images may hold: one list, and what is asked of each.

use dovetail_block::BlockDevice;
use dovetail_vfs::{FileSystem, Moment};
use serde_json::Value;

use crate::foreign::describe;
use crate::{Check, Error, Found, Medium, Repair, Source, Tree};

/// Takes a sentence about damage that could be done without.
pub type Tell<'a> = &'a mut dyn FnMut(String);

/// The file systems there are, in the order in which an image is looked at.
pub const FORMATS: [&dyn Format; 2] = [&crate::ext::Ext, &crate::f2fs::F2fs];

/// A file system that images may hold, with its variants.
pub trait Format: Sync {
    /// Names of its variants.
    fn variants(&self) -> &'static [&'static str];

    /// The device holds such a volume, whole or damaged: its magic number is there.
    ///
    /// # Errors
    /// A device that cannot be read; features that forbid to look further.
    fn is_on(&self, device: &mut Medium) -> Result<bool, String>;

    /// The device holds a copy of such a volume's superblock, though the first one is lost.
    ///
    /// # Errors
    /// A device that cannot be read.
    fn has_copy_on(&self, device: &mut Medium) -> Result<bool, String> {
        let _ = device;
        Ok(false)
    }

    /// The variant that the image holds, one of [`Self::variants`].
    ///
    /// # Errors
    /// Damage that hides it.
    fn variant_on(&self, image: &Source) -> Result<&'static str, Error>;

    /// The files of an image as the next mount would show them; where that cannot be, as near to it
    /// as possible, told to `tell`. `held` is the lock against who writes to it, or why there is
    /// none.
    ///
    /// # Errors
    /// A volume that cannot be read.
    fn files(
        &self,
        image: &Source,
        held: Result<(), String>,
        tell: Tell<'_>,
    ) -> Result<Files, Error>;

    /// Mounts the image.
    ///
    /// # Errors
    /// Options that there are not; a volume that cannot be mounted.
    fn mount(
        &self,
        image: &Source,
        request: &Mount<'_>,
        tell: Tell<'_>,
    ) -> Result<Box<dyn FileSystem + Send + Sync>, Error>;

    /// Checks the image, and writes nothing. `progress` hears now and then how many inodes were
    /// checked, and how many the volume counts, where the format tells.
    ///
    /// # Errors
    /// A volume that cannot be checked.
    fn check(&self, image: &Source, progress: &mut dyn FnMut(u64, u64)) -> Result<Check, Error>;

    /// Repairs the image without guessing.
    ///
    /// # Errors
    /// A volume that cannot be checked or written.
    fn repair(&self, image: &Source) -> Result<Repair, Error>;

    /// Repairs the image, also where that takes a guess: what is lost is cut off, and what has no
    /// name gets one in `/lost+found`.
    ///
    /// # Errors
    /// A volume that cannot be read or written.
    fn salvage(&self, image: &Source, now: Moment) -> Result<Repair, Error>;

    /// The files of an image as they would be after [`Self::salvage`], which is done in memory; and
    /// its account. Where a salvage is refused `tell` hears why, and files are found by their paths
    /// alone.
    ///
    /// # Errors
    /// A volume that cannot be read; [`Error::Usage`] for a format that has no salvage.
    fn salvaged_files(
        &self,
        image: &Source,
        now: Moment,
        tell: Tell<'_>,
    ) -> Result<(Files, Vec<Found>), Error>;

    /// The label of the image's volume.
    ///
    /// # Errors
    /// A volume that cannot be read.
    fn label(&self, image: &Source) -> Result<String, Error>;

    /// Gives the image's volume a label; `now` is the moment at which a journal is replayed for it.
    ///
    /// # Errors
    /// [`Error::Usage`] for a label that is too long; a volume that cannot be written.
    fn set_label(&self, image: &Source, label: &str, now: Moment) -> Result<(), Error>;

    /// Shows a structure of the image.
    ///
    /// # Errors
    /// [`Error::Usage`] for a structure that the format does not have; one that cannot be read.
    fn inspect(
        &self,
        image: &Source,
        structure: &Structure,
        tell: Tell<'_>,
    ) -> Result<Inspected, Error>;
}

/// The file system of an image.
///
/// # Errors
/// An image that cannot be read, or holds nothing that is known.
pub fn format_of(image: &Source) -> Result<&'static dyn Format, Error> {
    let failed = |error: String| Error::Failed(format!("{}: {error}", image.display()));
    let mut device = device(image, false)?; // once for all: a drive takes its time to be switched on
    if device.info().blocks == 0 {
        return Err(unknown(image));
    }
    for format in FORMATS {
        if format.is_on(&mut device).map_err(failed)? {
            return Ok(format);
        }
    }
    if describe(image).is_none() {
        for format in FORMATS {
            if format.has_copy_on(&mut device).map_err(failed)? {
                return Ok(format);
            }
        }
    }
    Err(unknown(image))
}

/// An image with nothing that is known.
fn unknown(image: &Source) -> Error {
    let variants = FORMATS.into_iter().flat_map(|format| format.variants().iter().copied());
    let names = variants.collect::<Vec<_>>().join(", ");
    let what = describe(image).unwrap_or_else(|| {
        format!("it holds no file system that is known here; known are {names}")
    });
    Error::Failed(format!("{}: {what}", image.display()))
}

/// Opens the medium of an image.
pub(crate) fn device(image: &Source, writable: bool) -> Result<Medium, Error> {
    Medium::open(image, writable)
        .map_err(|error| Error::Failed(format!("{} cannot be opened: {error}", image.display())))
}

/// The failure of a mount.
pub(crate) fn not_mounted(image: &Source, error: impl std::fmt::Display) -> Error {
    Error::Failed(format!("{} cannot be mounted: {error}", image.display()))
}

/// The files of an image.
pub struct Files {
    /// The tree.
    pub tree: Box<dyn Tree>,
    /// Bytes that the files have at most: each block of the volume once.
    pub most_bytes: u64,
    /// Bytes of blocks in use, where most of them belong to files.
    pub used_bytes: Option<u64>,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").field("most_bytes", &self.most_bytes).finish_non_exhaustive()
    }
}

/// Bytes of pages of content that a mount keeps in memory. Assumed; the system below keeps what was
/// read from the image and written to it, so a larger cache would hold it twice.
pub(crate) const PAGE_CACHE: u64 = 16 << 20;

/// A mount that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Mount<'a> {
    /// Nothing is written.
    pub read_only: bool,
    /// The file system's own options, separated by commas.
    pub options: &'a str,
    /// Seed of all that is random.
    pub seed: u64,
    /// The moment at which it begins.
    pub now: Moment,
}

/// A structure of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Structure {
    /// The superblock: sizes and features of the volume, and the places of its areas.
    Superblock,
    /// The last checkpoint.
    Checkpoint,
    /// The discards that the last checkpoint has in its log.
    DiscardLog,
    /// The logs' areas.
    Areas,
    /// A block group by its number.
    Group(u32),
    /// An inode by its number.
    Inode(u32),
    /// A node by its id.
    Nid(u32),
    /// A segment by its number.
    Segment(u32),
    /// All segments.
    Segments,
    /// The inode that a path leads to; a symbolic link at the end is not followed.
    Path(Vec<u8>),
}

/// A structure as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspected {
    /// Its fields.
    pub facts: Value,
    /// Its lines, where they are others than the fields'.
    pub text: Option<String>,
}

impl From<Value> for Inspected {
    fn from(facts: Value) -> Self {
        Self { facts, text: None }
    }
}
