//! Pointers that lead to the device's own addresses, and back.
//!
//! In memory, in the journal and in pointers a place of the device is a block number with
//! `PHYSICAL_BIT`; `io.rs` makes the device's address of it. Bitmaps know nothing of such blocks,
//! the count of free blocks does.
//!
//! A batch begins when the device lets both addresses lead to the same block. All pointers of the
//! batch are rewritten in one transaction, together with the batch's number in the superblock. Other
//! calls may join that transaction. Whichever commits it ends the batch: the device drops the old
//! addresses, and only then blocks of the volume that they were can be taken anew. After a power
//! cut the number says whether the new pointers are durable, and the mount ends the batch one way
//! or the other.

use std::collections::BTreeSet;

use dovetail_block::{
    BlockRange, DeviceSpace, Devirtualize as Asked, DriveSerial, Lba, Rename, RenameId, Scheduler,
    map_bytes,
};
use dovetail_time::SimTime;
use dovetail_vfs::{
    Address, Devirtualize, Error as CallError, Holder, Ino as Number, PointerPlace, Target, Way,
};

use super::Ext;
use super::allocate::Request;
use super::map::{Run, State};
use super::meta::Kind;
use super::vfs::ino_of;
use crate::error::{Corrupt, Damage, Error, Incompatible, Place};
use crate::format::{BlockAddr, FileType, GroupNo, Incompat, Ino, PHYSICAL_BIT, bit, set_pointer};
use crate::places::Places;

/// Pointer that leads to a block.
#[derive(Clone, Copy, Debug)]
enum Link {
    /// A block of the file's content; those of one `piece`, a run of a target, lie in one extent.
    Content {
        block: u32,
        piece: (usize, u32),
    },
    Metadata(PointerPlace),
}

/// A block that is renamed.
#[derive(Clone, Copy, Debug)]
struct Step {
    ino: Ino,
    link: Link,
    from: BlockAddr,
    to: BlockAddr,
}

/// A batch whose pointers are rewritten in the running transaction.
#[derive(Debug)]
pub(super) struct Batch {
    id: RenameId,
    /// Blocks of the volume that are free once the device has dropped them.
    held: Vec<(BlockAddr, u32)>,
}

impl<D: Scheduler> Ext<D> {
    /// After the journal was replayed: what a volume with pointers to places needs, and the end of
    /// a batch that a power cut left open.
    pub(super) fn open_places(&mut self) -> Result<(), Error> {
        let flagged = self.superblock.incompat.has(Incompat::DEVIRTUALIZED);
        if !flagged && self.io.space().is_none() {
            return Ok(());
        }
        if !flagged && !self.options.physical_pointers {
            self.io.set_places(Places::default());
            return Ok(());
        }
        super::physical::check_spare_bit(self.superblock.blocks_count)?;
        self.options.physical_pointers = true;
        // a block at a place is given back by a discard or never, and a batch rests on commits that
        // are durable
        (self.options.discard, self.options.barrier) = (true, true);
        self.groups.set_physical(self.superblock.physical_blocks);
        if self.read_only { Ok(()) } else { self.end_open_batch() }
    }

    fn end_open_batch(&mut self) -> Result<(), Error> {
        let asked = self.io.devirtualize(Asked::Open)?;
        let Some(open) = asked.into_open_batch() else { return Ok(()) };
        let keep = self.superblock.last_batch >= open.id.0;
        self.io.devirtualize(Asked::End { id: open.id, keep })?;
        Ok(())
    }

    /// Cleans up after a power cut, which may have left places that no pointer leads to, and free
    /// blocks of which the device holds something, since discards come after the commit.
    pub(super) fn recover_places(&mut self) -> Result<(), Error> {
        if self.superblock.incompat.has(Incompat::DEVIRTUALIZED) {
            self.give_back()?;
            self.discard_free()?;
        }
        Ok(())
    }

    /// The content of a file changes.
    pub(super) fn note_change(&mut self, ino: Ino) {
        let now = self.io.now();
        if let Some(changed) = &mut self.changed {
            changed.insert(ino, now);
        }
    }

    /// Content of the file that changed earlier gets its place: another change only if that one is
    /// forgotten.
    pub(super) fn note_placed(&mut self, ino: Ino) {
        let since = self.pages.dirty_since(ino.0.into()).unwrap_or(self.io.now());
        if let Some(changed) = &mut self.changed {
            changed.entry(ino).or_insert(since);
        }
    }

    fn check_places(&self) -> Result<DeviceSpace, Error> {
        if self.block_size() != 4096 {
            return Err(Incompatible::DeviceAddresses("blocks of 4 KiB").into());
        }
        let space = self.io.space().filter(|_| self.options.physical_pointers);
        space.ok_or_else(|| {
            Incompatible::DeviceAddresses("a device that gives blocks its own addresses").into()
        })
    }

    fn most_renames(&self, space: DeviceSpace) -> u32 {
        let most = (self.max_transaction() / 3).max(16);
        space.most.min(u32::try_from(most).unwrap_or(u32::MAX))
    }

    /// Says on the volume, before the first pointer to a place, that it needs its drive.
    fn flag_volume(&mut self) -> Result<(), Error> {
        if self.superblock.incompat.has(Incompat::DEVIRTUALIZED) {
            return Ok(());
        }
        self.superblock.drive = self.check_places()?.drive;
        self.superblock.incompat = self.superblock.incompat.with(Incompat::DEVIRTUALIZED);
        self.commit()?;
        self.write_superblock()?;
        // a logical block that is free must take no room of the device's: a place may need it
        self.discard_free()
    }

    fn prepare_batch(&mut self, targets: &[Target]) -> Result<(), CallError> {
        self.check_writable()?;
        let space = self.check_places()?;
        if targets.iter().map(|target| u64::from(target.blocks)).sum::<u64>()
            > self.most_renames(space).into()
        {
            return Err(CallError::Invalid("more blocks than are renamed at once"));
        }
        self.flag_volume()?;
        for ino in targets.iter().map(|target| ino_of(target.ino)).collect::<BTreeSet<_>>() {
            if self.is_file(ino)? {
                self.change(|fs| Ok(fs.write_back_at_once(ino)?))?;
            }
        }
        Ok(self.commit()?)
    }

    /// A commit is durable: the device drops the old addresses of the batch whose pointers it has.
    pub(super) fn end_batch(&mut self) -> Result<(), Error> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        self.io.devirtualize(Asked::End { id: batch.id, keep: true })?;
        batch.held.iter().try_for_each(|&(start, blocks)| self.keep(start, blocks, false))
    }

    fn is_file(&mut self, ino: Ino) -> Result<bool, Error> {
        match self.inode(ino) {
            Ok(inode) => Ok(inode.file_type() == FileType::REGULAR),
            Err(Error::Corrupt(Corrupt::Format(Damage::FreeInode(_)))) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn begin_batch(&mut self, targets: &[Target], way: Way) -> Result<u32, Error> {
        self.check_places()?;
        // the batch before, and what waits for a commit and could be taken within this one
        self.commit()?;
        let mut steps = self.steps(targets, way)?;
        if steps.is_empty() {
            return Ok(0);
        }
        let files = steps.iter().map(|step| step.ino).collect::<BTreeSet<_>>().len() as u64;
        self.check_room(self.nodes_for(steps.len() as u64) + 4 * files)?;
        if way == Way::ToVolume {
            self.take_places_on_volume(&mut steps)?;
        }
        let id = RenameId(self.superblock.last_batch + 1);
        let renamed = self.begin(id, &mut steps, way)?;
        if renamed == 0 {
            return Ok(0);
        }
        self.note_edit();
        self.superblock.last_batch = id.0;
        self.running.superblock = true;
        let rewritten =
            self.leave(&steps, way).and_then(|held| self.redirect(&steps).map(|()| held));
        // a batch of which not all pointers were rewritten must not be committed
        self.stopped |= rewritten.is_err();
        self.batch = Some(Batch { id, held: rewritten? });
        Ok(renamed)
    }

    /// Asks the device; what it does not rename is dropped. Nothing is edited before it has
    /// answered, on the way there.
    fn begin(&mut self, id: RenameId, steps: &mut Vec<Step>, way: Way) -> Result<u32, Error> {
        let Some(space) = self.io.space() else { return Ok(0) };
        let name = |at: BlockAddr| Lba(self.io.lba(at.0));
        let to = |step: &Step| (way == Way::ToVolume).then(|| name(step.to));
        let renames: Vec<Rename> =
            steps.iter().map(|step| Rename { from: name(step.from), to: to(step) }).collect();
        let answer = self.io.devirtualize(Asked::Begin { id, renames: &renames })?;
        let answer = answer.into_renames();
        self.note_left(steps, &answer);
        let answers = std::mem::take(steps).into_iter().zip(answer);
        steps.extend(answers.filter_map(|(step, rename)| {
            let named = rename.to?;
            let to = match way {
                Way::ToDevice => BlockAddr((named.0 - space.first.0) | PHYSICAL_BIT),
                Way::ToVolume => step.to,
            };
            Some(Step { to, ..step })
        }));
        Ok(steps.len() as u32)
    }

    /// Files of which the device has left blocks at their logical addresses are dealt with again.
    fn note_left(&mut self, steps: &[Step], answer: &[Rename]) {
        let answers = steps.iter().zip(answer);
        let left =
            answers.filter(|(step, rename)| rename.to.is_none() && !self.is_place(step.from));
        for ino in left.map(|(step, _)| step.ino).collect::<BTreeSet<_>>() {
            self.note_placed(ino);
        }
    }

    /// The blocks that can be renamed now.
    fn steps(&mut self, targets: &[Target], way: Way) -> Result<Vec<Step>, Error> {
        let (mut steps, mut seen) = (Vec::new(), BTreeSet::new());
        for (index, target) in targets.iter().enumerate() {
            let ino = ino_of(target.ino);
            if !self.is_file(ino)? || self.journals_content(ino)? {
                continue;
            }
            let found = if target.is_metadata {
                self.metadata_step(ino, target.place)?
            } else {
                self.content_steps(ino, target, index)?
            };
            let wanted = |step: &Step| way == Way::ToDevice || self.is_place(step.from);
            steps.extend(found.into_iter().filter(|step| wanted(step) && seen.insert(step.from)));
        }
        Ok(steps)
    }

    fn metadata_step(&mut self, ino: Ino, place: PointerPlace) -> Result<Vec<Step>, Error> {
        let Ok(pointer) = self.pointer_at(ino, place) else { return Ok(Vec::new()) };
        let from = self.stored(pointer.target, 1)?;
        let in_journal =
            self.journal.as_ref().is_some_and(|journal| journal.committed(from.0).is_some());
        if !pointer.is_metadata || in_journal || self.running.blocks.contains_key(&from) {
            return Ok(Vec::new());
        }
        Ok(vec![Step { ino, link: Link::Metadata(place), from, to: from }])
    }

    /// Each run of the file's map is a piece of the target with this index.
    fn content_steps(
        &mut self,
        ino: Ino,
        target: &Target,
        index: usize,
    ) -> Result<Vec<Step>, Error> {
        let mut steps = Vec::new();
        let Ok(mut block) = u32::try_from(target.place.file_block) else { return Ok(steps) };
        let end = u64::from(block) + u64::from(target.blocks);
        while u64::from(block) < end {
            let run = self.map(ino, block)?;
            let blocks = (run.end().min(end) - u64::from(block)) as u32;
            if let State::Written(at) = run.state {
                let piece = (index, block);
                steps.extend((0..blocks).map(|offset| {
                    let from = BlockAddr(at.0 + u64::from(offset));
                    Step {
                        ino,
                        link: Link::Content { block: block + offset, piece },
                        from,
                        to: from,
                    }
                }));
            }
            block = block.saturating_add(blocks);
        }
        Ok(steps)
    }

    /// Gives each block a place on the volume, of which the device holds nothing.
    fn take_places_on_volume(&mut self, steps: &mut [Step]) -> Result<(), Error> {
        // the room that they take at the device is theirs
        self.groups.set_physical(self.groups.physical().saturating_sub(steps.len() as u64));
        let mut taken = 0;
        while taken < steps.len() {
            let goal =
                self.superblock.group_start(self.superblock.inode_group(steps[taken].ino).0).0;
            let blocks = (steps.len() - taken) as u32;
            let (start, found) =
                self.allocate(Request { ino: None, goal, blocks, size_blocks: 0, reach: 1 << 32 })?;
            self.io.discard(&[(start.0, found.into())])?;
            let places = (start.0..).map(BlockAddr);
            for (step, place) in steps[taken..].iter_mut().take(found as usize).zip(places) {
                step.to = place;
            }
            taken += found as usize;
        }
        Ok(())
    }

    /// The old addresses are given up; returns those of the volume.
    fn leave(&mut self, steps: &[Step], way: Way) -> Result<Vec<(BlockAddr, u32)>, Error> {
        let mut left: Vec<BlockAddr> =
            steps.iter().map(|step| step.from).filter(|&from| !self.is_place(from)).collect();
        left.sort_unstable();
        if way == Way::ToDevice {
            self.groups.set_physical(self.groups.physical() + left.len() as u64);
        }
        let mut held: Vec<(BlockAddr, u32)> = Vec::new();
        let group = |at: BlockAddr| self.superblock.group_of(at).0;
        for at in left {
            let follows = |start: BlockAddr, blocks: u32| {
                start.0 + u64::from(blocks) == at.0 && group(start) == group(at)
            };
            match held.last_mut().filter(|(start, blocks)| follows(*start, *blocks)) {
                Some((_, blocks)) => *blocks += 1,
                None => held.push((at, 1)),
            }
        }
        for &(start, blocks) in &held {
            self.unuse_blocks(start, blocks)?;
        }
        Ok(held)
    }

    /// Rewrites the pointers.
    fn redirect(&mut self, steps: &[Step]) -> Result<(), Error> {
        let mut next = 0;
        while next < steps.len() {
            let Step { ino, link, from, to } = steps[next];
            let more = steps[next + 1..]
                .iter()
                .zip(1..)
                .take_while(|(step, offset)| step.follows(&steps[next], *offset));
            let blocks = 1 + more.count() as u32;
            match link {
                Link::Content { block, .. } => {
                    self.point_content(ino, Run { block, blocks, state: State::Written(to) })?;
                }
                Link::Metadata(place) => {
                    self.point_metadata(ino, place, to)?;
                    self.rename_meta(from, to, ino);
                }
            }
            next += blocks as usize;
        }
        Ok(())
    }

    fn point_content(&mut self, ino: Ino, run: Run) -> Result<(), Error> {
        let State::Written(at) = run.state else { return Ok(()) };
        if self.is_extent_mapped(ino)? {
            self.edit_inode(ino)?;
            return self.move_extent(ino, run);
        }
        self.insert_pointers(ino, run.block, run.blocks, at)
    }

    fn point_metadata(
        &mut self,
        ino: Ino,
        place: PointerPlace,
        to: BlockAddr,
    ) -> Result<(), Error> {
        if self.is_extent_mapped(ino)? {
            return self.set_extent_entry(ino, place.holder, place.slot, to);
        }
        match place.holder {
            Holder::Inode => self.edit_inode(ino)?.set_pointer(place.slot as usize, to.0 as u32),
            Holder::Block(at) => {
                let at = self.holder_block(ino, at)?;
                let bytes = self.edit_meta(at, Kind::Plain, Place::Pointers(ino))?;
                set_pointer(bytes, place.slot, to.0 as u32);
            }
            Holder::Table => return Err(Error::Rewrite("ext has no table of pointers")),
        }
        Ok(())
    }

    /// All regular files that have a name or are kept.
    fn all_files(&mut self) -> Result<Vec<Ino>, Error> {
        let mut files = Vec::new();
        for group in (0..self.superblock.group_count()).map(GroupNo) {
            let first = u64::from(group.0) * u64::from(self.superblock.inodes_per_group);
            let map = self.inode_bits(group)?;
            let used =
                (0..self.superblock.inodes_per_group).filter(|&index| bit(&map, index as usize));
            let numbers = used.map(|index| Ino((first + u64::from(index) + 1) as u32));
            for ino in numbers.filter(|ino| *ino >= self.superblock.first_ino).collect::<Vec<_>>() {
                if self.is_file(ino)? {
                    files.push(ino);
                }
            }
        }
        Ok(files)
    }

    /// The places that a file's pointers lead to.
    fn places_of(&mut self, ino: Ino) -> Result<Vec<u64>, Error> {
        let pointers = self.walk(ino)?.into_iter().flat_map(|block| block.pointers);
        let runs = pointers.filter_map(|pointer| match pointer.target {
            Address::Physical(at) => Some(at..at + u64::from(pointer.blocks)),
            Address::Logical(_) => None,
        });
        Ok(runs.flatten().collect())
    }

    fn give_back(&mut self) -> Result<u64, Error> {
        let space = self.check_places()?;
        self.check_writable()?;
        self.commit()?;
        let range = BlockRange::new(space.first, space.blocks);
        let held = self.io.devirtualize(Asked::Held { range })?.into_addresses();
        if held.len() as u64 == self.groups.physical() {
            return Ok(0);
        }
        let mut reached = BTreeSet::new();
        for ino in self.all_files()? {
            reached.extend(self.places_of(ino)?);
        }
        let places = held.into_iter().map(|lba| lba.0 - space.first.0);
        let lost: Vec<(u64, u64)> = places
            .filter(|place| !reached.contains(place))
            .map(|place| (place | PHYSICAL_BIT, 1))
            .collect();
        self.io.discard(&lost)?;
        self.io.flush()?;
        Ok(lost.len() as u64)
    }
}

impl Step {
    /// It goes on where `first` began, `offset` blocks before: in the file, in its extent and at
    /// the new place.
    fn follows(&self, first: &Self, offset: u32) -> bool {
        let (Link::Content { block, piece }, Link::Content { block: start, piece: same }) =
            (self.link, first.link)
        else {
            return false;
        };
        self.ino == first.ino
            && piece == same
            && block == start + offset
            && self.to.0 == first.to.0 + u64::from(offset)
    }
}

impl<D: Scheduler> Devirtualize for Ext<D> {
    fn renames_at_once(&self) -> Result<u32, CallError> {
        Ok(self.most_renames(self.check_places()?))
    }

    fn now(&self) -> SimTime {
        self.io.now()
    }

    fn device_map_bytes(&mut self) -> Option<u64> {
        map_bytes(self.io.device_mut()).ok().flatten()
    }

    fn files(&mut self) -> Result<Vec<Number>, CallError> {
        Ok(self.all_files()?.into_iter().map(|ino| Number(ino.0.into())).collect())
    }

    fn changed_files(&mut self) -> Result<Vec<(Number, SimTime)>, CallError> {
        if self.changed.is_none() {
            let files = self.all_files()?;
            self.changed = Some(files.into_iter().map(|ino| (ino, SimTime::ZERO)).collect());
        }
        let changed = self.changed.iter().flatten();
        Ok(changed.map(|(ino, at)| (Number(ino.0.into()), *at)).collect())
    }

    fn forget_change(&mut self, ino: Number) {
        if let Some(changed) = &mut self.changed {
            changed.remove(&ino_of(ino));
        }
    }

    fn moved_files(&mut self) -> Result<Option<Vec<Number>>, CallError> {
        self.check_places()?;
        let moved = self.io.devirtualize(Asked::Moved).map_err(Error::from)?.into_inodes();
        let known = moved.iter().all(|inode| inode.0 != 0);
        Ok(known.then(|| moved.into_iter().map(|inode| Number(inode.0.into())).collect()))
    }

    fn settle_metadata(&mut self) -> Result<(), CallError> {
        self.check_writable()?;
        self.commit()?;
        if let Some(journal) = &mut self.journal {
            journal.checkpoint_all(&mut self.io).map_err(Error::from)?;
        }
        Ok(())
    }

    fn prepare_renames(&mut self, targets: &[Target]) -> Result<(), CallError> {
        self.prepare_batch(targets)
    }

    fn begin_renames(&mut self, targets: &[Target], way: Way) -> Result<u32, CallError> {
        self.change(|fs| Ok(fs.begin_batch(targets, way)?))
    }

    fn end_renames(&mut self) -> Result<(), CallError> {
        if self.batch.is_some() {
            self.commit()?;
        }
        Ok(())
    }

    fn give_back_unreached(&mut self) -> Result<u64, CallError> {
        Ok(self.give_back()?)
    }

    fn leave_device(&mut self) -> Result<bool, CallError> {
        self.check_places()?;
        self.check_writable()?;
        if self.groups.physical() > 0 {
            return Ok(false);
        }
        self.settle_metadata()?;
        self.superblock.incompat = self.superblock.incompat.without(Incompat::DEVIRTUALIZED);
        (self.superblock.last_batch, self.superblock.drive) = (0, DriveSerial::default());
        self.write_superblock()?;
        Ok(true)
    }
}
