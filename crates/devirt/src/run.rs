//! A run over files, batch by batch.

use std::collections::{HashMap, VecDeque};

use dovetail_time::SimSpan;
use dovetail_vfs::{
    Address, Devirtualize, Error, Holder, Ino, MetadataBlock, Pointer, Target, Way,
};

use crate::select::Selection;

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
    /// Virtual time of batches in which all pointers lead to content.
    pub content_time: SimSpan,
    /// Virtual time of batches with pointers to blocks of pointers. With [`Unit::MetadataBlock`] an
    /// inode's pointers to content are in the same batch.
    pub metadata_time: SimSpan,
    /// Virtual time of the rest: reading metadata, writing it to its place.
    pub other_time: SimSpan,
}

impl Report {
    /// All of it.
    pub fn time(&self) -> SimSpan {
        self.content_time + self.metadata_time + self.other_time
    }

    fn add(&mut self, batch: &[Target], renamed: u64) {
        self.batches += 1;
        let asked = |is_metadata| {
            let of_kind = batch.iter().filter(|target| target.is_metadata == is_metadata);
            of_kind.map(|target| u64::from(target.blocks)).sum::<u64>()
        };
        let metadata = if asked(false) == 0 { renamed } else { asked(true).min(renamed) };
        self.metadata_blocks += metadata;
        self.content_blocks += renamed - metadata;
    }

    fn add_time(&mut self, batch: &[Target], spent: SimSpan) {
        if batch.iter().any(|target| target.is_metadata) {
            self.metadata_time += spent;
        } else {
            self.content_time += spent;
        }
    }
}

/// Part of the work that is one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// As many blocks as can be renamed at once, of all files together. The paper has no such
    /// batches.
    #[default]
    Most,
    /// The pointers of one metadata block, one file after another: the paper's unit (§III-A). A
    /// metadata block with more pointers than can be renamed at once takes several batches.
    MetadataBlock,
}

/// A run that is under way.
#[derive(Debug)]
pub struct Run {
    way: Way,
    unit: Unit,
    most: u32,
    files: Vec<Ino>,
    /// Level of the blocks in work: 0 content, 1 blocks of pointers to content, and so on. With
    /// [`Unit::MetadataBlock`] the level of the blocks whose pointers are in work.
    wave: u32,
    last_wave: u32,
    /// The next file of the wave.
    next: usize,
    queue: VecDeque<Target>,
    queued: u64,
    /// Pointers of the metadata blocks that come after the one in the queue.
    blocks: VecDeque<Vec<Target>>,
    /// Blocks in work.
    batch: Vec<Target>,
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
        Ok(Self {
            way,
            unit: Unit::default(),
            most: fs.renames_at_once()?,
            files: selection.files,
            wave: 0,
            last_wave: 0,
            next: 0,
            queue: VecDeque::new(),
            queued: 0,
            blocks: VecDeque::new(),
            batch: Vec::new(),
            report: Report { hot_files: selection.hot, ..Report::default() },
        })
    }

    /// Takes that part of the work for a batch. To be called before the first step.
    #[must_use]
    pub fn with_unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
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
        let found = self.find(fs)?;
        let filled = fs.now();
        self.report.other_time += filled.since(begun);
        if !found {
            return Ok(false);
        }
        fs.prepare_renames(&self.batch)?;
        self.begin(fs)?;
        self.end(fs)?;
        self.report.add_time(&self.batch, fs.now().since(filled));
        Ok(true)
    }

    /// The first part of a step: looks for a batch, and prepares the file system for it; returns
    /// whether there is one. Its commands must have completed before the batch begins.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn prepare(&mut self, fs: &mut (impl Devirtualize + ?Sized)) -> Result<bool, Error> {
        let found = self.find(fs)?;
        if found {
            fs.prepare_renames(&self.batch)?;
        }
        Ok(found)
    }

    /// The second part: the pointers of the batch are rewritten in memory.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn begin(&mut self, fs: &mut (impl Devirtualize + ?Sized)) -> Result<(), Error> {
        let renamed = fs.begin_renames(&self.batch, self.way)?;
        if self.unit == Unit::Most && self.wave == 0 {
            // runs that were cut may have taken blocks of pointers
            self.last_wave = self.last_wave.max(u32::from(renamed > 0));
        }
        self.report.add(&self.batch, renamed.into());
        Ok(())
    }

    /// The last part: the rewritten pointers are made durable, and the old addresses dropped.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn end(&mut self, fs: &mut (impl Devirtualize + ?Sized)) -> Result<(), Error> {
        fs.end_renames()
    }

    /// The blocks of the batch that was prepared last.
    pub fn batch(&self) -> &[Target] {
        &self.batch
    }

    /// Goes on to the end.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn finish(mut self, fs: &mut (impl Devirtualize + ?Sized)) -> Result<Report, Error> {
        while self.step(fs)? {}
        Ok(self.report)
    }

    fn find(&mut self, fs: &mut (impl Devirtualize + ?Sized)) -> Result<bool, Error> {
        match self.unit {
            Unit::Most => self.fill_wave(fs)?,
            Unit::MetadataBlock => self.fill_block(fs)?,
        }
        self.batch = self.take_batch();
        Ok(!self.batch.is_empty())
    }

    /// Looks for blocks of a wave until there are enough for a batch; with none left in this wave,
    /// of the next one.
    fn fill_wave(&mut self, fs: &mut (impl Devirtualize + ?Sized)) -> Result<(), Error> {
        loop {
            while self.queued < self.most.into() && self.next < self.files.len() {
                let ino = self.files[self.next];
                self.next += 1;
                if self.wave == 0 {
                    self.begin_file(fs, ino);
                }
                self.take_wave(ino, &blocks_of(fs, ino)?);
            }
            if !self.queue.is_empty() || self.wave == self.last_wave {
                return Ok(());
            }
            fs.settle_metadata()?;
            (self.wave, self.next) = (self.wave + 1, 0);
        }
    }

    /// Looks for the next metadata block with pointers to be rewritten: of the file in work from
    /// the bottom up, then of the next file.
    fn fill_block(&mut self, fs: &mut (impl Devirtualize + ?Sized)) -> Result<(), Error> {
        while self.queue.is_empty() {
            if let Some(block) = self.blocks.pop_front() {
                self.queued = block.iter().map(|target| u64::from(target.blocks)).sum();
                self.queue = block.into();
            } else if self.next < self.files.len() {
                self.take_level(fs)?;
            } else {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The blocks of the file's next level, or the next file. The tree is looked at again for each
    /// level, and once more after the last: runs that were cut may have taken blocks of pointers.
    fn take_level(&mut self, fs: &mut (impl Devirtualize + ?Sized)) -> Result<(), Error> {
        let ino = self.files[self.next];
        if self.wave == 0 {
            self.begin_file(fs, ino);
        }
        let blocks = blocks_of(fs, ino)?;
        if blocks.iter().all(|block| block.level < self.wave) {
            (self.wave, self.next) = (0, self.next + 1);
            return Ok(());
        }
        for block in blocks.iter().filter(|block| block.level == self.wave) {
            let wanted = block.pointers.iter().filter(|pointer| self.is_wanted(pointer));
            let targets: Vec<Target> = wanted.map(|pointer| target(ino, block, pointer)).collect();
            self.blocks.extend((!targets.is_empty()).then_some(targets));
        }
        if self.blocks.iter().flatten().any(|target| target.is_metadata) {
            fs.settle_metadata()?;
        }
        self.wave += 1;
        Ok(())
    }

    fn begin_file(&mut self, fs: &mut (impl Devirtualize + ?Sized), ino: Ino) {
        // what changes from here on is another run's
        fs.forget_change(ino);
        self.report.files += 1;
    }

    fn take_wave(&mut self, ino: Ino, blocks: &[MetadataBlock]) {
        let levels: HashMap<Holder, u32> =
            blocks.iter().map(|block| (block.holder, block.level)).collect();
        for block in blocks {
            for pointer in &block.pointers {
                let wave = wave_of(pointer, &levels);
                self.last_wave = self.last_wave.max(wave);
                if wave == self.wave && self.is_wanted(pointer) {
                    self.queued += u64::from(pointer.blocks);
                    self.queue.push_back(target(ino, block, pointer));
                }
            }
        }
    }

    fn is_wanted(&self, pointer: &Pointer) -> bool {
        let away = matches!(pointer.target, Address::Physical(_));
        pointer.written && (self.way == Way::ToDevice || away)
    }

    /// As many blocks as can be renamed at once; a long run of content is cut.
    fn take_batch(&mut self) -> Vec<Target> {
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

fn target(ino: Ino, block: &MetadataBlock, pointer: &Pointer) -> Target {
    let place = block.place_of(pointer);
    Target { ino, place, blocks: pointer.blocks, is_metadata: pointer.is_metadata }
}

/// The metadata blocks of a file; of one that is gone, none.
fn blocks_of(fs: &mut (impl Devirtualize + ?Sized), ino: Ino) -> Result<Vec<MetadataBlock>, Error> {
    match fs.metadata_of(ino) {
        Err(Error::NotFound) => Ok(Vec::new()),
        found => found,
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
