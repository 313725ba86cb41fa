//! A run over files, batch by batch.

use std::collections::{HashMap, VecDeque};

use dovetail_time::SimSpan;
use dovetail_vfs::{Address, Devirtualize, Error, Holder, Ino, MetadataBlock, Pointer, Target};

use crate::select::Selection;

/// Addresses to which pointers are to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the device's own addresses.
    ToDevice,
    /// Back to addresses of the volume.
    ToVolume,
}

/// Results of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Files dealt with.
    pub files: u64,
    /// Files left because they are hot.
    pub hot_files: u64,
    /// Pointers to content that were rewritten, in blocks.
    pub content_blocks: u64,
    /// Pointers to blocks of pointers that were rewritten.
    pub metadata_blocks: u64,
    /// Batches.
    pub batches: u64,
    /// Virtual time that batches of content took.
    pub content_time: SimSpan,
    /// Virtual time that batches of metadata took.
    pub metadata_time: SimSpan,
    /// Virtual time of the rest: reading metadata, writing it to its place.
    pub other_time: SimSpan,
}

impl Report {
    /// All of it.
    pub fn time(&self) -> SimSpan {
        self.content_time + self.metadata_time + self.other_time
    }
}

/// A run that is under way.
#[derive(Debug)]
pub struct Run {
    way: Way,
    most: u32,
    files: Vec<Ino>,
    /// Level of the blocks in work: 0 content, 1 blocks of pointers to content, and so on.
    wave: u32,
    last_wave: u32,
    /// The next file of the wave.
    next: usize,
    queue: VecDeque<Target>,
    queued: u64,
    report: Report,
}

impl Run {
    /// Begins a run over the selected files.
    ///
    /// # Errors
    /// [`Error::Unsupported`], in a sentence, where file system or device cannot.
    pub fn new(
        fs: &(impl Devirtualize + ?Sized),
        way: Way,
        selection: Selection,
    ) -> Result<Self, Error> {
        let most = fs.renames_at_once()?;
        let report = Report { hot_files: selection.hot, ..Report::default() };
        let (queue, queued) = (VecDeque::new(), 0);
        Ok(Self {
            way,
            most,
            files: selection.files,
            wave: 0,
            last_wave: 0,
            next: 0,
            queue,
            queued,
            report,
        })
    }

    /// Results so far.
    pub fn report(&self) -> Report {
        self.report
    }

    /// Deals with one batch; returns whether there was one. Files that are gone are passed over.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn step(&mut self, fs: &mut (impl Devirtualize + ?Sized)) -> Result<bool, Error> {
        let begun = fs.now();
        loop {
            self.fill(fs)?;
            if !self.queue.is_empty() {
                break;
            }
            if self.wave == self.last_wave {
                self.report.other_time += fs.now().since(begun);
                return Ok(false);
            }
            fs.settle_metadata()?;
            (self.wave, self.next) = (self.wave + 1, 0);
        }
        self.report.other_time += fs.now().since(begun);
        self.rename(fs)?;
        Ok(true)
    }

    /// Goes on to the end.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn finish(mut self, fs: &mut (impl Devirtualize + ?Sized)) -> Result<Report, Error> {
        while self.step(fs)? {}
        Ok(self.report)
    }

    fn rename(&mut self, fs: &mut (impl Devirtualize + ?Sized)) -> Result<(), Error> {
        let begun = fs.now();
        let batch = self.batch();
        let renamed = match self.way {
            Way::ToDevice => fs.devirtualize(&batch)?,
            Way::ToVolume => fs.virtualize(&batch)?,
        };
        let (spent, renamed) = (fs.now().since(begun), u64::from(renamed));
        self.report.batches += 1;
        if self.wave == 0 {
            // runs that were cut may have taken blocks of pointers
            self.last_wave = self.last_wave.max(u32::from(renamed > 0));
            self.report.content_blocks += renamed;
            self.report.content_time += spent;
        } else {
            self.report.metadata_blocks += renamed;
            self.report.metadata_time += spent;
        }
        Ok(())
    }

    /// Looks for blocks of the wave until there are enough for a batch.
    fn fill(&mut self, fs: &mut (impl Devirtualize + ?Sized)) -> Result<(), Error> {
        while self.queued < self.most.into() && self.next < self.files.len() {
            let ino = self.files[self.next];
            self.next += 1;
            if self.wave == 0 {
                // what changes from here on is another run's
                fs.forget_change(ino);
                self.report.files += 1;
            }
            match fs.metadata_of(ino) {
                Ok(blocks) => self.take(ino, &blocks),
                Err(Error::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn take(&mut self, ino: Ino, blocks: &[MetadataBlock]) {
        let levels: HashMap<Holder, u32> =
            blocks.iter().map(|block| (block.holder, block.level)).collect();
        for block in blocks {
            for pointer in &block.pointers {
                let wave = wave_of(pointer, &levels);
                self.last_wave = self.last_wave.max(wave);
                if wave == self.wave && self.is_wanted(pointer) {
                    let place = block.place_of(pointer);
                    self.queued += u64::from(pointer.blocks);
                    let (blocks, is_metadata) = (pointer.blocks, pointer.is_metadata);
                    self.queue.push_back(Target { ino, place, blocks, is_metadata });
                }
            }
        }
    }

    fn is_wanted(&self, pointer: &Pointer) -> bool {
        let away = matches!(pointer.target, Address::Physical(_));
        pointer.written && (self.way == Way::ToDevice || away)
    }

    /// As many blocks as can be renamed at once; a long run of content is cut.
    fn batch(&mut self) -> Vec<Target> {
        let (mut batch, mut room) = (Vec::new(), self.most);
        while room > 0
            && let Some(target) = self.queue.pop_front()
        {
            let blocks = target.blocks.min(room);
            batch.push(Target { blocks, ..target });
            if blocks < target.blocks {
                let mut rest = Target { blocks: target.blocks - blocks, ..target };
                rest.place.file_block += u64::from(blocks);
                self.queue.push_front(rest);
            }
            room -= blocks;
        }
        self.queued -= u64::from(self.most - room);
        batch
    }
}

/// After a run [`Way::ToVolume`] over all files: the volume no longer needs its device.
///
/// # Errors
/// [`Error::Unsupported`], in a sentence, if pointers still lead to the device's addresses; what
/// the file system says.
pub fn leave(fs: &mut (impl Devirtualize + ?Sized)) -> Result<(), Error> {
    if fs.leave_device()? {
        return Ok(());
    }
    let what = "some blocks are still reached by the drive's addresses, and the volume still needs its drive: undo it again";
    Err(Error::Unsupported(what.into()))
}

/// Content is of wave 0, a block of pointers comes after all that it leads to.
fn wave_of(pointer: &Pointer, levels: &HashMap<Holder, u32>) -> u32 {
    match pointer.is_metadata {
        true => 1 + levels.get(&Holder::Block(pointer.target)).copied().unwrap_or(0),
        false => 0,
    }
}
