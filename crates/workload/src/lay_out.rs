//! The calls that write files which are to be there before a workload starts.

use crate::call::{Call, FileId};

/// Bytes of one write: Filebench pre-allocates in blocks of this size.
const CHUNK: u64 = 1 << 20;

/// A file to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filling {
    pub(crate) file: FileId,
    pub(crate) size: u64,
    /// The page cache is to forget it.
    pub(crate) drop_cache: bool,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Open,
    Write { offset: u64 },
}

/// The calls that write `files` one after another: open, writes of at most 1 MiB, close. Where the
/// page cache is to forget some, a sync follows first: a cache keeps what is not on the drive yet.
#[derive(Clone, Debug)]
pub(crate) struct LayOut {
    /// A file of each directory that is made before all files; the next one is the last here.
    directories: Vec<FileId>,
    files: Vec<Filling>,
    at: usize,
    stage: Stage,
    is_synced: bool,
    /// Files that were forgotten, or looked at.
    forgotten: usize,
    /// Calls that forget the file before.
    forgetting: Vec<Call>,
}

impl LayOut {
    pub(crate) fn new(files: Vec<Filling>) -> Self {
        Self {
            directories: Vec::new(),
            files,
            at: 0,
            stage: Stage::Open,
            is_synced: false,
            forgotten: 0,
            forgetting: Vec::new(),
        }
    }

    /// The same, with the directories of these files made before.
    pub(crate) fn with_directories(self, mut files: Vec<FileId>) -> Self {
        files.reverse();
        Self { directories: files, ..self }
    }

    /// The calls after the last close.
    fn forget(&mut self) -> Option<Call> {
        if let Some(call) = self.forgetting.pop() {
            return Some(call);
        }
        let left = &self.files[self.forgotten..];
        let next = left.iter().position(|filling| filling.drop_cache)?;
        if !self.is_synced {
            self.is_synced = true;
            return Some(Call::SyncAll);
        }
        let file = left[next].file;
        self.forgotten += next + 1;
        self.forgetting.extend([Call::Close { file }, Call::DropCache { file }]);
        Some(Call::Open { file })
    }

    fn write(&mut self, filling: Filling, offset: u64) -> Call {
        let len = CHUNK.min(filling.size - offset);
        self.stage = Stage::Write { offset: offset + len };
        Call::Write { file: filling.file, offset, len, direct: false }
    }

    fn close(&mut self, file: FileId) -> Call {
        self.at += 1;
        self.stage = Stage::Open;
        Call::Close { file }
    }
}

impl Iterator for LayOut {
    type Item = Call;

    fn next(&mut self) -> Option<Call> {
        if let Some(file) = self.directories.pop() {
            return Some(Call::MakeDirectories { file });
        }
        let Some(&filling) = self.files.get(self.at) else { return self.forget() };
        let file = filling.file;
        Some(match self.stage {
            Stage::Open => {
                self.stage = Stage::Write { offset: 0 };
                Call::Open { file }
            }
            Stage::Write { offset } if offset < filling.size => self.write(filling, offset),
            Stage::Write { .. } => self.close(file),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_in_pieces_and_closed() {
        let file = FileId(3);
        let empty = FileId(4);
        let files = vec![
            Filling { file, size: CHUNK + 5, drop_cache: true },
            Filling { file: empty, size: 0, drop_cache: false },
        ];
        let write = |offset, len| Call::Write { file, offset, len, direct: false };
        let wanted = [
            Call::Open { file },
            write(0, CHUNK),
            write(CHUNK, 5),
            Call::Close { file },
            Call::Open { file: empty },
            Call::Close { file: empty },
            Call::SyncAll,
            Call::Open { file },
            Call::DropCache { file },
            Call::Close { file },
        ];
        assert_eq!(LayOut::new(files.clone()).collect::<Vec<_>>(), wanted);
        let mut calls = LayOut::new(files).with_directories(vec![FileId(9), file]);
        assert_eq!(calls.next(), Some(Call::MakeDirectories { file: FileId(9) }));
        assert_eq!(calls.next(), Some(Call::MakeDirectories { file }));
        assert_eq!(calls.collect::<Vec<_>>(), wanted);
    }
}
