//! Remapped cleaning (`gc_remap`): a valid block of a victim gets an address in a log, and the
//! device is told to move it there. Nothing is read or written for the block itself.
//!
//! A remap unmaps its source, which the last checkpoint still leads to. So the pairs are held until
//! the next checkpoint: its pack is written and flushed without its last block, and one atomic
//! remap moves that block and the pairs. A power cut before leaves the last checkpoint with all it
//! leads to, one after it the next checkpoint with every block at its new address.
//!
//! No record of an fsync may lead to a new address before: the fsync of a file with such blocks is
//! a checkpoint. Nodes are moved as ever, for their footers change. `docs/f2fs-cleaning.md` has the
//! argument.

use std::sync::Arc;

use dovetail_block::{BlockBytes, Content, RemapPair, Scheduler};

use super::F2fs;
use super::cleaner::Owner;
use super::io::{Channel, WriteClass};
use super::policy::{DataFacts, data_log};
use crate::error::{Error, Incompatible};
use crate::format::{BlockAddr, Nid, Summary};

impl<D: Scheduler> F2fs<D> {
    /// Refuses the option on a device that cannot move blocks.
    pub(super) fn check_remapped_cleaning(
        device: &D,
        options: &super::Options,
    ) -> Result<(), Incompatible> {
        let limits = device.info().capabilities.remap;
        let remaps = limits.is_some_and(|limits| limits.pairs_per_command > 0);
        let refused = options.gc_remap && !remaps;
        if refused { Err(Incompatible::NoRemap { option: "gc_remap" }) } else { Ok(()) }
    }

    /// Cleaning can have one more block moved with the next checkpoint: its remap is one piece, and
    /// half of that is left to updates that wait for an fsync.
    pub(super) fn can_hold_move(&self) -> bool {
        self.options.gc_remap && self.io.held_moves.len() < self.atomic_pairs() / 2
    }

    /// Gives a block of content an address in a log, and has the device move it there with the next
    /// checkpoint. An update that waits goes on waiting, for the new address.
    pub(super) fn remap_owned(&mut self, owner: &Owner) -> Result<(), Error> {
        let old = owner.pointer.address;
        let mut facts = self.data_facts(owner.ino, 0)?;
        facts.cleaning = true;
        let stored_at = self.io.held_moves.stored_at(old);
        let update = self.io.pending_remaps.remove(old);
        let moved = self.readdress(owner.ino, &owner.pointer, facts);
        self.redirect_update(update, *moved.as_ref().map_or(&old, |(address, _)| address));
        let (address, _) = moved?;
        self.io.held_moves.add(address, stored_at);
        self.since.note_held_move(owner.ino);
        self.events.moved_blocks += 1;
        self.events.gc_remapped_blocks += 1;
        Ok(())
    }

    /// Before the SIT is written: a block for the last one of the checkpoint's pack to wait in, if
    /// moves are held. It is used and given up at once: nothing leads there, and it is not written
    /// again before the checkpoint is complete.
    ///
    /// Without space for it, or with more pairs than the device moves as one, the content of held
    /// moves is copied, as cleaning without remaps does.
    pub(super) fn stage_tail(&mut self, file: Option<Nid>) -> Result<Option<BlockAddr>, Error> {
        let held = self.io.held_moves.len();
        if held == 0 {
            return Ok(None);
        }
        let updates = file.map_or(0, |file| self.io.pending_remaps.count_of(file));
        let log = data_log(self.options.logs, DataFacts { cleaning: true, ..Default::default() });
        let staged = if held + updates < self.atomic_pairs() {
            self.allocate(log, Summary { nid: Nid::NONE, version: 0, offset: 0 })
        } else {
            Err(Error::NoSpace)
        };
        match staged {
            Ok(address) => {
                self.free_block(address)?;
                Ok(Some(address))
            }
            Err(Error::NoSpace) => self.copy_held_moves().map(|()| None),
            Err(error) => Err(error),
        }
    }

    /// Writes the content of held moves at its new addresses, which have been taken already.
    fn copy_held_moves(&mut self) -> Result<(), Error> {
        let log = data_log(self.options.logs, DataFacts { cleaning: true, ..Default::default() });
        for RemapPair { to, .. } in self.io.held_moves.pairs() {
            let address = BlockAddr(to.0);
            let mut content = [Content::Empty];
            let done = self.io.start_read_stored(address, &mut content)?;
            self.io.wait_read(done);
            let [content] = content;
            self.io.write(Channel(log as u8), WriteClass::Cleaning, address, content)?;
        }
        self.events.gc_remapped_blocks -= self.io.held_moves.len() as u64;
        self.io.held_moves.clear();
        Ok(())
    }

    /// Writes the last block of a checkpoint's pack where it waits, and has it moved as one with
    /// the held moves and the updates of `file`.
    pub(super) fn commit_held_moves(
        &mut self,
        file: Option<Nid>,
        tail: RemapPair,
        block: Arc<BlockBytes>,
    ) -> Result<(), Error> {
        let from = BlockAddr(tail.from.0);
        self.io.write_bytes(Channel::UPDATES, WriteClass::Checkpoint, from, block)?;
        let updates = file.map_or_else(Vec::new, |file| self.io.pending_remaps.of(file));
        updates.iter().for_each(|pair| self.io.held_moves.remove(BlockAddr(pair.to.0)));
        let mut pairs = self.io.held_moves.pairs();
        pairs.extend(updates.iter().copied().chain([tail]));
        self.io.remap_as_one(&pairs)?;
        self.io.held_moves.clear();
        self.settle(&updates);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dovetail_block::{
        BlockDevice, Command, Completion, DeviceError, DeviceInfo, Lifetime, MemoryDevice,
        performs_at_once,
    };
    use dovetail_time::SimTime;
    use dovetail_vfs::{Caller, FileSystem, NewNode};

    use super::super::Options;
    use super::super::pointers::Found;
    use super::*;
    use crate::mkfs::{MkfsOptions, mkfs};

    /// Remembers stream and lifetime of all writes.
    #[derive(Debug)]
    struct Watched {
        device: MemoryDevice,
        seen: Vec<(u8, Lifetime)>,
    }

    impl BlockDevice for Watched {
        fn info(&self) -> DeviceInfo {
            self.device.info()
        }

        fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
            if let Command::Write { hints, .. } = &command {
                self.seen.push((hints.stream.0, hints.lifetime));
            }
            self.device.submit(at, command)
        }
    }

    performs_at_once!(Watched);

    #[test]
    fn held_moves_that_are_copied_have_the_hints_of_cleaning() {
        let mut device = MemoryDevice::new((64 << 20) / 4096);
        mkfs(&mut device, &MkfsOptions::default()).unwrap();
        let device = Watched { device, seen: Vec::new() };
        let options = Options::parse("mode=lfs,gc_remap").unwrap();
        let mut fs = F2fs::mount(device, options, SimTime::ZERO).unwrap();
        let (caller, root) = (Caller::default(), fs.root());
        let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
        let number = fs.create(&caller, root, b"file", &node).unwrap().ino;
        fs.write(&caller, number, 0, &[1; 8192]).unwrap();
        fs.sync().unwrap();

        let ino = Nid(number.0 as u32);
        for block in 0..2 {
            let Found::Pointer(pointer) = fs.find_pointer(ino, block).unwrap() else { panic!() };
            fs.remap_owned(&Owner { ino, pointer, block }).unwrap();
        }
        fs.device_mut().seen.clear();
        fs.copy_held_moves().unwrap();
        fs.io.wait().unwrap();
        assert_eq!(fs.device().seen, [(2, Lifetime::Extreme)]);
    }
}
