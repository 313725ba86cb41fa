//! Blocks that get addresses of the device, and back.
//!
//! Before a batch comes a checkpoint, so that no record of an fsync leads to what is renamed. The
//! device then lets both addresses lead to the same block, all pointers of the batch are rewritten
//! in memory, and the next checkpoint, whoever asks for it, makes them durable: in the nodes that
//! it writes, in NAT entries for nodes. Until then fsyncs write that checkpoint. Its version is the
//! batch's number, so that nothing has to be added to the format: a mount after a power cut keeps
//! the new names if the elected checkpoint is not older than the batch.
//!
//! On the way back content is renamed, to blocks that a log gives; nodes are written anew, as F2FS
//! moves them at any time.

use std::collections::BTreeSet;

use dovetail_block::{BlockRange, Devirtualize as Asked, Rename, RenameId, Scheduler, map_bytes};
use dovetail_time::SimTime;
use dovetail_vfs::{Address, Devirtualize, Error as CallError, Holder, Ino as Number, Target, Way};

use super::F2fs;
use super::data::{INLINE_PINNED, WritebackReason};
use super::pointers::{Found, Pointer};
use super::policy::{Log, data_log};
use super::walk::nid_of;
use crate::device_addresses::DEVICE_ADDRESS_BIT;
use crate::error::Error;
use crate::format::{BlockAddr, CheckpointFlags, Extent, InodeFlags, NatEntry, Nid, Summary};

/// Renames at once at most: they make so many nodes dirty, and each an inode, that still fit into
/// two segments.
const MOST: u32 = 512;

/// The pointer to a block.
#[derive(Clone, Copy, Debug)]
enum BlockPointer {
    /// A block of the file's content.
    Content(u64),
    /// The NAT's entry of a node.
    Node(Nid),
}

/// A block that is renamed.
#[derive(Clone, Copy, Debug)]
struct RenamedBlock {
    ino: Nid,
    pointer_kind: BlockPointer,
    /// The node that holds the pointer; of a node's address itself.
    node: Nid,
    from: BlockAddr,
    to: BlockAddr,
}

impl RenamedBlock {
    fn is_content(&self) -> bool {
        matches!(self.pointer_kind, BlockPointer::Content(_))
    }
}

impl<D: Scheduler> F2fs<D> {
    fn most_renames(&self) -> Result<u32, Error> {
        Ok(self.check_device_addresses()?.space().map_or(0, |space| space.most.min(MOST)))
    }

    fn prepare_batch(&mut self, targets: &[Target]) -> Result<(), CallError> {
        self.check_writable()?;
        let blocks: u64 = targets.iter().map(|target| u64::from(target.blocks)).sum();
        if blocks > self.most_renames()?.into() {
            return Err(CallError::Invalid("more blocks than are renamed at once"));
        }
        self.mark_volume()?;
        for ino in targets.iter().map(|target| nid_of(target.ino)).collect::<BTreeSet<_>>() {
            if self.is_there_as_inode(ino)? {
                self.write_back(ino, WritebackReason::Background)?;
            }
        }
        self.balance()?;
        Ok(self.checkpoint_if_dirty()?)
    }

    fn begin_batch(&mut self, targets: &[Target], way: Way) -> Result<u32, Error> {
        // the batch before, and what was logged since it was prepared
        self.checkpoint_if_dirty()?;
        let mut steps = self.steps(targets, way)?;
        self.check_space_for_batch(&steps, way)?;
        let rewritten = self.rewrite_nodes(&mut steps, way)?;
        if way == Way::ToVolume {
            self.take_blocks(&mut steps)?;
        }
        self.begin(&mut steps, way)?;
        if steps.is_empty() && rewritten == 0 {
            return Ok(0);
        }
        self.physical.renaming = targets.iter().map(|target| nid_of(target.ino)).collect();
        let redirected = self.redirect(&steps);
        // a batch of which not all pointers were rewritten must not become durable
        self.state.stop_if(redirected.is_err());
        // until a checkpoint has the new names, no record of an fsync may have them
        self.since.break_chain();
        redirected?;
        Ok(steps.len() as u32 + rewritten)
    }

    /// The number is an inode's. That of a file that was deleted may be another file's node by now.
    pub(super) fn is_there_as_inode(&mut self, ino: Nid) -> Result<bool, Error> {
        if let Some(node) = self.nodes.get(ino) {
            return Ok(node.is_of(ino, 0));
        }
        let entry = self.nat_entry(ino)?;
        if entry.ino != ino || entry.address == BlockAddr::NULL {
            return Ok(false);
        }
        self.inode(ino).map(|_| true)
    }

    /// The checkpoint that ends the batch must not find the volume full. It may use the reserve, as
    /// any: it writes the inodes, the nodes that hold pointers to content, and on the way back all
    /// nodes.
    fn check_space_for_batch(&self, steps: &[RenamedBlock], way: Way) -> Result<(), Error> {
        let written = steps.iter().filter(|step| way == Way::ToVolume || step.is_content());
        let nodes = written.flat_map(|step| [step.ino, step.node]).collect::<BTreeSet<_>>().len();
        let blocks = if way == Way::ToVolume { steps.len() } else { 0 };
        let facts = self.space_facts();
        let sections = (nodes + blocks).div_ceil(facts.section_blocks as usize) + Log::ALL.len();
        if facts.free_sections as usize > sections { Ok(()) } else { Err(Error::NoSpace) }
    }

    /// Files of which the device has left blocks at addresses of the volume are dealt with again.
    fn note_left(&mut self, steps: &[RenamedBlock], answer: &[Rename]) {
        let answers = steps.iter().zip(answer);
        let left = answers
            .filter(|(step, rename)| rename.to.is_none() && !self.is_device_address(step.from));
        for ino in left.map(|(step, _)| step.ino).collect::<BTreeSet<_>>() {
            self.note_rewritten(ino);
        }
    }

    /// The blocks that can be renamed now.
    fn steps(&mut self, targets: &[Target], way: Way) -> Result<Vec<RenamedBlock>, Error> {
        let (mut steps, mut seen) = (Vec::new(), BTreeSet::new());
        for target in targets {
            let ino = nid_of(target.ino);
            if !self.is_there_as_inode(ino)? {
                continue;
            }
            let found = match target.is_metadata {
                true if target.place.holder == Holder::Table => {
                    self.node_step(ino, Nid(target.place.slot))?
                }
                true => Vec::new(),
                false => self.content_steps(ino, target, way)?,
            };
            let wanted =
                |step: &RenamedBlock| way == Way::ToDevice || self.is_device_address(step.from);
            steps.extend(found.into_iter().filter(|step| wanted(step) && seen.insert(step.from)));
        }
        Ok(steps)
    }

    fn node_step(&mut self, ino: Nid, nid: Nid) -> Result<Vec<RenamedBlock>, Error> {
        let entry = self.nat_entry(nid)?;
        if entry.ino != ino || entry.address == BlockAddr::NULL || self.nodes.is_dirty(nid) {
            return Ok(Vec::new());
        }
        Ok(vec![RenamedBlock {
            ino,
            pointer_kind: BlockPointer::Node(nid),
            node: nid,
            from: entry.address,
            to: entry.address,
        }])
    }

    fn content_steps(
        &mut self,
        ino: Nid,
        target: &Target,
        way: Way,
    ) -> Result<Vec<RenamedBlock>, Error> {
        let raw = self.inode(ino)?;
        let fixed =
            raw.i_flags.get() & InodeFlags::COMPRESSED.0 != 0 || raw.i_inline & INLINE_PINNED != 0;
        if !self.has_block_pointers(ino)? || (fixed && way == Way::ToDevice) {
            return Ok(Vec::new());
        }
        let mut steps = Vec::new();
        let first = target.place.file_block;
        for block in first..first.saturating_add(target.blocks.into()) {
            if let Some(pointer) = self.pointer_to_block(ino, block)? {
                let (pointer_kind, from) = (BlockPointer::Content(block), pointer.address);
                steps.push(RenamedBlock { ino, pointer_kind, node: pointer.nid, from, to: from });
            }
        }
        Ok(steps)
    }

    fn pointer_to_block(&mut self, ino: Nid, block: u64) -> Result<Option<Pointer>, Error> {
        let is_block = |address: BlockAddr| !address.is_hole() && address != BlockAddr::COMPRESSED;
        Ok(match self.find_pointer(ino, block)? {
            Found::Pointer(pointer) if is_block(pointer.address) => Some(pointer),
            _ => None,
        })
    }

    /// On the way back nodes become dirty instead of being renamed; returns how many.
    fn rewrite_nodes(&mut self, steps: &mut Vec<RenamedBlock>, way: Way) -> Result<u32, Error> {
        let mut rewritten = 0;
        if way == Way::ToVolume {
            for step in steps.iter() {
                if let BlockPointer::Node(nid) = step.pointer_kind {
                    self.load_any_node(nid)?;
                    self.edit_node(nid)?;
                    rewritten += 1;
                }
            }
            steps.retain(|step| matches!(step.pointer_kind, BlockPointer::Content(_)));
        }
        Ok(rewritten)
    }

    /// Gives each block an address of the volume, of which the device holds nothing; none if there
    /// is no space for all.
    fn take_blocks(&mut self, steps: &mut [RenamedBlock]) -> Result<(), Error> {
        for taken in 0..steps.len() {
            match self.take_block(&steps[taken]) {
                Ok(to) => steps[taken].to = to,
                Err(error) => {
                    steps[..taken].iter().try_for_each(|step| self.free_block(step.to))?;
                    return Err(error);
                }
            }
        }
        let taken: Vec<_> = steps.iter().map(|step| Extent { start: step.to, blocks: 1 }).collect();
        Ok(self.io.discard(taken.into_iter())?)
    }

    fn take_block(&mut self, step: &RenamedBlock) -> Result<BlockAddr, Error> {
        let BlockPointer::Content(block) = step.pointer_kind else { return Ok(step.to) };
        let Found::Pointer(pointer) = self.find_pointer(step.ino, block)? else {
            return Ok(step.to);
        };
        let mut facts = self.data_facts(step.ino, 0)?;
        facts.cleaning = true;
        let version = self.node_version(pointer.nid);
        let owner = Summary { nid: pointer.nid, version, offset: pointer.index };
        self.allocate(data_log(self.options.logs, facts), owner)
    }

    /// Asks the device; what it does not rename is dropped. No pointer has changed before it has
    /// answered.
    fn begin(&mut self, steps: &mut Vec<RenamedBlock>, way: Way) -> Result<(), Error> {
        if steps.is_empty() {
            return Ok(());
        }
        let (addresses, id) = (
            self.io.device_addresses(),
            RenameId(self.committed.checkpoint().version.wrapping_add(1)),
        );
        let rename = |step: &RenamedBlock| Rename {
            from: addresses.lba(step.from),
            to: (way == Way::ToVolume).then(|| addresses.lba(step.to)),
        };
        let renames: Vec<Rename> = steps.iter().map(rename).collect();
        let answer = self.io.devirtualize(Asked::Begin { id, renames: &renames })?;
        let answer = answer.into_renames();
        self.note_left(steps, &answer);
        let answers = std::mem::take(steps).into_iter().zip(answer);
        steps.extend(answers.filter_map(|(step, rename)| {
            let to = rename.to?;
            Some(RenamedBlock {
                to: if way == Way::ToDevice { addresses.address(to) } else { step.to },
                ..step
            })
        }));
        self.physical.open = (!steps.is_empty()).then_some(id);
        Ok(())
    }

    /// Rewrites the pointers. Blocks of the volume are free from now on, as far as the next
    /// checkpoint goes; an old address of the device is dropped with the batch.
    fn redirect(&mut self, steps: &[RenamedBlock]) -> Result<(), Error> {
        let prefree = self.space.prefree_count();
        for step in steps {
            if !self.is_device_address(step.from) {
                self.free_block(step.from)?;
            }
            match step.pointer_kind {
                BlockPointer::Content(block) => {
                    if let Some(pointer) = self.pointer_to_block(step.ino, block)? {
                        self.set_pointer(step.ino, &pointer, step.to)?;
                    }
                }
                BlockPointer::Node(nid) => {
                    let entry = self.nat_entry(nid)?;
                    self.nat.set(nid, NatEntry { address: step.to, ..entry });
                }
            }
        }
        self.events.left_segments += u64::from(self.space.prefree_count().saturating_sub(prefree));
        Ok(())
    }

    /// All inodes that the NAT knows.
    fn all_inodes(&mut self) -> Result<Vec<Nid>, Error> {
        let mut inodes = Vec::new();
        for page in 0..self.superblock.nat_blocks {
            self.load_nat_page(page)?;
            let first = self.superblock.variant.first_nid(page).0;
            let entries = (first..).zip(self.nat.page(page).into_iter().flatten());
            let used = entries.filter(|(nid, entry)| {
                entry.ino.0 == *nid
                    && entry.address != BlockAddr::NULL
                    && *nid >= self.superblock.root.0
            });
            inodes.extend(used.map(|(nid, _)| Nid(nid)));
        }
        Ok(inodes)
    }

    /// The addresses of the device that pointers of the file, and to its nodes, lead to.
    fn device_addresses_of(&mut self, ino: Nid) -> Result<Vec<u64>, Error> {
        let pointers = self.walk_file(ino)?.into_iter().flat_map(|holder| holder.pointers);
        Ok(pointers
            .filter_map(|pointer| match pointer.target {
                Address::Physical(at) => Some(at),
                Address::Logical(_) => None,
            })
            .collect())
    }

    /// The addresses that the device holds a block by.
    fn held_addresses(&mut self) -> Result<Vec<u64>, Error> {
        let Some(space) = self.check_device_addresses()?.space() else { return Ok(Vec::new()) };
        let range = BlockRange::new(space.first, space.blocks);
        let held = self.io.devirtualize(Asked::Held { range })?.into_addresses();
        Ok(held.into_iter().map(|lba| lba.0 - space.first.0).collect())
    }

    /// Gives back what a power cut may have left: device addresses that no pointer leads to.
    pub(super) fn recover_device_addresses(&mut self) -> Result<(), Error> {
        if !self.superblock.devirtualized {
            return Ok(());
        }
        self.discard_free_segments()?;
        let clean = self.committed.checkpoint().flags.has(CheckpointFlags::UMOUNT);
        if clean { Ok(()) } else { self.give_back().map(drop) }
    }

    fn give_back(&mut self) -> Result<u64, Error> {
        self.check_device_addresses()?;
        self.check_writable()?;
        self.checkpoint_if_dirty()?;
        let mut reached = BTreeSet::new();
        for ino in self.all_inodes()? {
            reached.extend(self.device_addresses_of(ino)?);
        }
        let held = self.held_addresses()?.into_iter();
        let lost: Vec<BlockAddr> = held
            .filter(|address| !reached.contains(address))
            .map(|address| BlockAddr(address | DEVICE_ADDRESS_BIT))
            .collect();
        let count = lost.len() as u64;
        self.discard_device_addresses(lost)?;
        self.io.flush()?;
        Ok(count)
    }
}

fn number(ino: Nid) -> Number {
    Number(ino.0.into())
}

impl<D: Scheduler> Devirtualize for F2fs<D> {
    fn renames_at_once(&self) -> Result<u32, CallError> {
        Ok(self.most_renames()?)
    }

    fn now(&self) -> SimTime {
        self.io.now()
    }

    fn device_map_bytes(&mut self) -> Option<u64> {
        map_bytes(self.io.device_mut()).ok().flatten()
    }

    fn files(&mut self) -> Result<Vec<Number>, CallError> {
        Ok(self.all_inodes()?.into_iter().map(number).collect())
    }

    fn changed_files(&mut self) -> Result<Vec<(Number, SimTime)>, CallError> {
        // what has no address yet would be left, and be changed again when it gets one
        self.sync_all()?;
        if self.physical.changed.is_none() {
            let files = self.all_inodes()?;
            self.physical.changed =
                Some(files.into_iter().map(|ino| (ino, SimTime::ZERO)).collect());
        }
        let changed = self.physical.changed.iter().flatten();
        Ok(changed.map(|(ino, at)| (number(*ino), *at)).collect())
    }

    fn forget_change(&mut self, ino: Number) {
        self.forget_changes(nid_of(ino));
    }

    fn moved_files(&mut self) -> Result<Option<Vec<Number>>, CallError> {
        self.check_device_addresses()?;
        let moved = self.io.devirtualize(Asked::Moved).map_err(Error::from)?.into_inodes();
        let known = moved.iter().all(|inode| inode.0 != 0);
        Ok(known.then(|| moved.into_iter().map(|inode| Number(inode.0.into())).collect()))
    }

    fn settle_metadata(&mut self) -> Result<(), CallError> {
        Ok(self.checkpoint_if_dirty()?)
    }

    fn prepare_renames(&mut self, targets: &[Target]) -> Result<(), CallError> {
        self.prepare_batch(targets)
    }

    fn begin_renames(&mut self, targets: &[Target], way: Way) -> Result<u32, CallError> {
        self.change(|fs| Ok(fs.begin_batch(targets, way)?))
    }

    fn end_renames(&mut self) -> Result<(), CallError> {
        Ok(self.checkpoint_if_dirty()?)
    }

    fn give_back_unreached(&mut self) -> Result<u64, CallError> {
        Ok(self.give_back()?)
    }

    fn leave_device(&mut self) -> Result<bool, CallError> {
        self.check_device_addresses()?;
        self.check_writable()?;
        self.checkpoint_if_dirty()?;
        if !self.held_addresses()?.is_empty() {
            return Ok(false);
        }
        self.unmark_volume()?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use dovetail_block::MemoryDevice;
    use dovetail_vfs::{Caller, FileSystem, NewNode, PointerWalk};

    use super::super::Options;
    use super::*;
    use crate::mkfs::{MkfsOptions, mkfs};

    /// The file is gone, and its number is that of a direct node of another file.
    #[test]
    fn a_deleted_file_whose_number_is_another_files_node_is_gone() {
        let mut device = MemoryDevice::new((64 << 20) / 4096);
        mkfs(&mut device, &MkfsOptions::default()).unwrap();
        let mut fs = F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap();
        let (caller, root) = (Caller::default(), fs.root());
        let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
        let [gone, other] = [b"gone", b"kept"]
            .map(|name| nid_of(fs.create(&caller, root, name, &node).unwrap().ino));
        fs.physical.changed = Some([gone, other].map(|ino| (ino, SimTime::ZERO)).into());
        fs.sync().unwrap();
        fs.unlink(&caller, root, b"gone").unwrap();
        fs.sync().unwrap();
        let changed = fs.physical.changed.clone().unwrap();
        assert!(changed.contains_key(&other) && !changed.contains_key(&gone), "{changed:?}");

        assert!(fs.nat.take_this(gone));
        fs.add_node(gone, other, 1, false);
        for _ in 0..2 {
            assert!(!fs.is_there_as_inode(gone).unwrap());
            assert!(matches!(fs.metadata_of(Number(gone.0.into())), Err(CallError::NotFound)));
            assert!(fs.is_there_as_inode(other).unwrap());
            // once in memory, and once as the NAT has it
            fs.write_dirty_nodes().unwrap();
            fs.nodes.remove(gone);
        }
    }
}
