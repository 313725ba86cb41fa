//! Room that a copy into an image takes at least, before anything is written.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dovetail_vfs::{Attr, Error, FileSystem, Ino};

/// Bytes of a block.
const BLOCK: u64 = 4096;
/// Files below this size may be stored with their inodes, without a block of their own.
const MAY_BE_INLINE: u64 = BLOCK;
/// Bytes by which `st_blocks` counts.
const STAT_BLOCK: u64 = 512;

/// Bytes of content that the files at and below a path have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Bytes that are read.
    pub bytes: u64,
    /// Bytes of blocks that they take in the image at least: holes take none.
    pub least: u64,
}

/// Adds up the files at `path`, and below it. What cannot be read counts for nothing: the copy
/// tells it.
pub fn content_of(path: &Path, follow: bool) -> Content {
    let meta = if follow { fs::metadata(path) } else { fs::symlink_metadata(path) };
    let (mut sum, mut seen) = (Content::default(), HashSet::new());
    let mut todo: Vec<(PathBuf, Metadata)> =
        meta.into_iter().map(|meta| (path.to_path_buf(), meta)).collect();
    while let Some((path, meta)) = todo.pop() {
        if meta.is_dir() {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            todo.extend(entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?))));
        } else if meta.is_file() && (meta.nlink() == 1 || seen.insert((meta.dev(), meta.ino()))) {
            sum.bytes = sum.bytes.saturating_add(meta.len());
            sum.least = sum.least.saturating_add(least(&meta));
        }
    }
    sum
}

/// Bytes of blocks that a file takes at least.
pub(crate) fn least(meta: &Metadata) -> u64 {
    if meta.len() < MAY_BE_INLINE {
        return 0;
    }
    let stored = meta.blocks().saturating_mul(STAT_BLOCK);
    meta.len().min(stored) / BLOCK * BLOCK
}

/// Bytes that are given back when `name` in `dir` is replaced by `source`: those of the files that
/// have counterparts there.
pub fn replaced(fs: &mut dyn FileSystem, source: &Path, dir: Ino, name: &[u8]) -> u64 {
    use std::os::unix::ffi::OsStrExt;
    let (mut sum, mut todo) = (0_u64, vec![(source.to_path_buf(), dir, name.to_vec())]);
    while let Some((source, dir, name)) = todo.pop() {
        let Ok(there) = fs.lookup(dir, &name) else { continue };
        if !there.is_dir() {
            sum = rounded_up(there.size).saturating_add(sum);
            continue;
        }
        let entries = fs::read_dir(&source).into_iter().flatten().flatten();
        todo.extend(
            entries.map(|entry| (entry.path(), there.ino, entry.file_name().as_bytes().to_vec())),
        );
    }
    sum
}

/// Bytes of the blocks of so many bytes; a damaged inode may have any size.
const fn rounded_up(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK).saturating_mul(BLOCK)
}

/// A new file of at least `least` bytes does not fit beside the old one into the bytes that are
/// free, and would in its place. An old one with further names gives nothing back.
pub(crate) fn fits_only_instead(least: u64, free: u64, old: &Attr) -> bool {
    let given_back = if old.links > 1 { 0 } else { old.blocks.saturating_mul(STAT_BLOCK) };
    free < least && least <= free.saturating_add(given_back)
}

/// Bytes that are free on a volume, those kept for the system among them.
///
/// # Errors
/// The file system.
pub fn free_bytes(fs: &mut dyn FileSystem) -> Result<u64, Error> {
    Ok(fs.statfs()?.free.saturating_mul(BLOCK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn an_old_file_makes_way_only_where_that_helps() {
        let old = |links, blocks| Attr { links, blocks, ..Attr::default() };
        assert!(fits_only_instead(100 << 10, 60 << 10, &old(1, 80)));
        assert!(!fits_only_instead(100 << 10, 60 << 10, &old(1, 79)), "it would not fit");
        assert!(!fits_only_instead(100 << 10, 60 << 10, &old(2, 80)), "its blocks stay");
        assert!(!fits_only_instead(60 << 10, 60 << 10, &old(1, 80)), "both fit");
        assert!(fits_only_instead(u64::MAX, 1, &old(1, u64::MAX)));
    }

    #[test]
    fn any_size_is_rounded_up() {
        let sizes = [0, 1, 4096, 4097, u64::MAX].map(rounded_up);
        assert_eq!(sizes, [0, 4096, 4096, 8192, u64::MAX]);
    }

    #[test]
    fn holes_and_further_names_take_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("small"), "x").unwrap();
        fs::write(path("large"), vec![1; 100_000]).unwrap();
        fs::hard_link(path("large"), path("again")).unwrap();
        let sparse = fs::File::create(path("sparse")).unwrap();
        sparse.write_all_at(&[1; 8192], 1 << 20).unwrap();
        sparse.set_len(1 << 30).unwrap();
        sparse.sync_all().unwrap();
        std::os::unix::fs::symlink("large", path("link")).unwrap();
        let content = content_of(folder.path(), false);
        assert_eq!(content.bytes, 1 + 100_000 + (1 << 30));
        assert!((98_304..98_304 + (1 << 20)).contains(&content.least), "{content:?}");
        assert_eq!(content_of(&path("link"), false), Content::default());
        assert_eq!(content_of(&path("link"), true).least, 98_304);
        assert_eq!(content_of(&path("none"), true), Content::default());
    }
}
