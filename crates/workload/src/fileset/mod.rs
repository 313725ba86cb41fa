//! The files that a file system has before a workload starts: sizes and tree as found on people's
//! machines.
//!
//! The models and their figures are those of Impressions (Agrawal, Arpaci-Dusseau, Arpaci-Dusseau,
//! "Generating Realistic Impressions for File-System Benchmarking", FAST'09, section 3 and table
//! 2); `docs/workloads.md` lists them. Extensions, content, special directories and bytes by depth
//! are left out: sizes do not depend on where a file lies.

mod error;
mod place;
mod prepared;
mod size;
mod tree;

use dovetail_time::Rng;

pub use error::FileSetError;
pub use prepared::Prepared;
pub use size::SizeModel;
pub use tree::TreeModel;

use crate::call::{Call, FileId, Outcome, Step, ThreadId, Workload};
use crate::lay_out::{Filling, LayOut};
use dovetail_time::SimTime;
use place::Places;
use tree::Tree;

/// Assumed: as many paths fit into memory.
const MOST_FILES: u64 = 1 << 24;

/// Amount of files in a file set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Bytes in all files together; what comes out lies between 99 and 100 % of it.
    Bytes(u64),
    /// Files, whatever they hold.
    Files(u64),
    /// So many files that hold so many bytes together, to 5 %.
    FilesOfBytes {
        /// Number of files.
        files: u64,
        /// Bytes in all of them.
        bytes: u64,
    },
}

/// Configuration of a file set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileSetConfig {
    /// Amount of files.
    pub amount: Amount,
    /// The largest file in bytes; larger ones are drawn again. `None`: a tenth of
    /// [`Amount::Bytes`], as one file should not decide the whole, all bytes of
    /// [`Amount::FilesOfBytes`], and 1 TiB with [`Amount::Files`]
    /// (both assumed; the tail has no mean).
    pub largest: Option<u64>,
    /// Sizes.
    pub sizes: SizeModel,
    /// Directories, and how files lie in them.
    pub tree: TreeModel,
}

impl FileSetConfig {
    /// The paper's models.
    pub fn new(amount: Amount) -> Self {
        Self { amount, largest: None, sizes: SizeModel::default(), tree: TreeModel::default() }
    }

    fn largest(&self) -> u64 {
        const OF_FILES: u64 = 1 << 40;
        self.largest.unwrap_or(match self.amount {
            Amount::Bytes(bytes) => bytes.div_ceil(10),
            Amount::FilesOfBytes { bytes, .. } => bytes,
            Amount::Files(_) => OF_FILES,
        })
    }
}

/// A file of the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedFile {
    /// From the root of the file system, without a slash before it.
    pub path: Box<str>,
    /// Bytes.
    pub size: u64,
}

/// A set of files, and the workload that writes them: all in [`Workload::prepare`], one after
/// another, and a sync of everything at the end. Its one thread does nothing.
#[derive(Clone, Debug)]
pub struct FileSet {
    files: Vec<GeneratedFile>,
    lay_out: LayOut,
    synced: bool,
}

impl FileSet {
    /// Draws the set; all of it lies below the directory `root`, and the same seed gives the same
    /// set.
    ///
    /// # Errors
    /// A model's figure out of its range, a root that is not one plain name, or more than
    /// 16,777,216 files.
    pub fn generate(root: &str, config: &FileSetConfig, seed: u64) -> Result<Self, FileSetError> {
        check_root(root)?;
        config.sizes.check()?;
        config.tree.check()?;
        let rng = Rng::new(seed);
        let sizes = size::draw(config, &mut rng.fork(0))?;
        let directories = config.tree.directories(sizes.len() as u64);
        let tree = Tree::grow(root, directories, &mut rng.fork(1));
        let mut places = Places::new(&config.tree, &tree, &mut rng.fork(2));
        let mut rng = rng.fork(3);
        let mut place = |(number, size): (usize, u64)| {
            let directory = tree.path(places.draw(&mut rng));
            GeneratedFile { path: format!("{directory}/f{number}").into(), size }
        };
        let files: Vec<_> = sizes.into_iter().enumerate().map(&mut place).collect();
        Ok(Self { lay_out: lay_out(&files), files, synced: false })
    }

    /// Files of `each` bytes below the directory `root`, `bytes` in all: to fill a volume. The last
    /// one may be shorter.
    ///
    /// # Errors
    /// A root that is not one plain name, or more than 16,777,216 files.
    pub fn filling(root: &str, bytes: u64, each: u64) -> Result<Self, FileSetError> {
        check_root(root)?;
        let count = bytes.div_ceil(each.max(1));
        if count > MOST_FILES {
            return Err(FileSetError::TooMany { most: MOST_FILES });
        }
        let size = |number: u64| each.min(bytes - number * each);
        let file =
            |number| GeneratedFile { path: format!("{root}/f{number}").into(), size: size(number) };
        let files: Vec<_> = (0..count).map(file).collect();
        Ok(Self { lay_out: lay_out(&files), files, synced: false })
    }

    /// The files, in the order in which they are written.
    pub fn files(&self) -> &[GeneratedFile] {
        &self.files
    }

    /// Bytes in all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }
}

fn lay_out(files: &[GeneratedFile]) -> LayOut {
    let filling = |(number, file): (usize, &GeneratedFile)| Filling {
        file: FileId(number as u32),
        size: file.size,
        drop_cache: false,
    };
    LayOut::new(files.iter().enumerate().map(filling).collect())
}

fn check_root(root: &str) -> Result<(), FileSetError> {
    let legal = (1..=255).contains(&root.len())
        && root.bytes().all(|byte| byte != 0 && byte != b'/')
        && root != "."
        && root != "..";
    if legal { Ok(()) } else { Err(FileSetError::Root { root: root.into() }) }
}

impl Workload for FileSet {
    fn threads(&self) -> u32 {
        1
    }

    fn job(&self, _: ThreadId) -> &str {
        "files"
    }

    fn path(&self, file: FileId) -> &str {
        self.files.get(file.0 as usize).map_or("", |file| &file.path)
    }

    fn prepare(&mut self) -> Option<Call> {
        self.lay_out
            .next()
            .or_else(|| (!std::mem::replace(&mut self.synced, true)).then_some(Call::SyncAll))
    }

    fn next(&mut self, _: ThreadId, _: SimTime) -> Step {
        Step::Done
    }

    fn ended(&mut self, _: ThreadId, _: &Call, _: &Outcome) {}
}
