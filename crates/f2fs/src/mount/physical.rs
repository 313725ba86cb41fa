//! Needs of a volume with pointers to addresses of the device: its mark, the end of a batch that a
//! power cut left open, and addresses that are given back.
//!
//! Such an address has [`DEVICE_ADDRESS_BIT`](crate::device_addresses::DEVICE_ADDRESS_BIT); `io.rs`
//! makes the device's address of it. SIT and SSA know nothing of such a block, `valid_block_count`
//! does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_block::{Devirtualize, RenameId, Scheduler};
use dovetail_time::SimTime;

use super::F2fs;
use crate::device_addresses::{DeviceAddresses, check_spare_bit};
use crate::error::{Error, Incompatible};
use crate::format::{BLOCKS_IN_SEGMENT, BlockAddr, Extent, Nid};

/// The state of pointers to addresses of the device.
#[derive(Debug, Default)]
pub(super) struct Physical {
    /// The batch that the next checkpoint makes durable: its number is the checkpoint's.
    pub(super) open: Option<RenameId>,
    /// Files of that batch: that their nodes are written is no change.
    pub(super) renaming: BTreeSet<Nid>,
    /// Both copies of the superblock say that the volume needs its drive.
    marked: bool,
    /// DeviceAddresses to which no pointer leads; the last checkpoint may have one.
    freed: Vec<BlockAddr>,
    /// Inodes with blocks that were written since the tool dealt with them, and when; `None` as
    /// long as nobody asks.
    pub(super) changed: Option<BTreeMap<Nid, SimTime>>,
}

impl Physical {
    /// No pointer leads to the address any more.
    pub(super) fn give_up(&mut self, address: BlockAddr) {
        self.freed.push(address);
    }
}

impl<D: Scheduler> F2fs<D> {
    /// Before anything is read by way of pointers: where they may lead, and the end of a batch that
    /// was open.
    pub(super) fn open_device_addresses(&mut self) -> Result<(), Error> {
        let marked = self.superblock.devirtualized;
        if !marked
            && (!self.options.physical_pointers
                || self.check_volume_for_device_addresses().is_err())
        {
            return Ok(());
        }
        self.check_volume_for_device_addresses()?;
        let addresses = DeviceAddresses::of(&self.io.device().info());
        if !addresses.is_some() {
            return Ok(());
        }
        self.io.set_device_addresses(addresses);
        // a block at a device address is given back by a discard or never
        self.options.discard = true;
        if self.state.is_mounted_read_only() {
            return Ok(());
        }
        self.end_open_batch()
    }

    fn check_volume_for_device_addresses(&self) -> Result<(), Incompatible> {
        if !self.space.reuses_addresses() {
            return Err(Incompatible::BarredFromDeviceAddresses {
                what: "an IPLFS volume",
                reason: "its addresses are used once, in order, and that keeps the drive's map small; addresses of flash pages are used \
                         again, in any order",
            });
        }
        if self.remaps() {
            return Err(Incompatible::BarredFromDeviceAddresses {
                what: "a mount with mode=rm-ipu or mode=rm-ipu-adaptive",
                reason: "each update that the drive moves would bring back the map entry that such a pointer saves; use mode=adaptive or \
                         mode=lfs",
            });
        }
        if self.options.gc_remap {
            return Err(Incompatible::BarredFromDeviceAddresses {
                what: "a mount with gc_remap",
                reason: "the drive would be asked for an address that nothing has before the next checkpoint; use nogc_remap",
            });
        }
        check_spare_bit(self.superblock.block_count)
    }

    fn end_open_batch(&mut self) -> Result<(), Error> {
        let asked = self.io.devirtualize(Devirtualize::Open)?;
        let Some(open) = asked.into_open_batch() else { return Ok(()) };
        let keep = self.committed.checkpoint().version >= open.id.0;
        self.io.devirtualize(Devirtualize::End { id: open.id, keep })?;
        Ok(())
    }

    /// The device's own addresses, on a mount that may lead pointers there.
    pub(super) fn check_device_addresses(&self) -> Result<DeviceAddresses, Error> {
        self.check_volume_for_device_addresses()?;
        let addresses = Some(self.io.device_addresses()).filter(|addresses| addresses.is_some());
        let missing = Incompatible::DeviceAddresses("a device that gives blocks its own addresses");
        addresses.ok_or_else(|| missing.into())
    }

    pub(super) fn is_device_address(&self, address: BlockAddr) -> bool {
        self.io.device_addresses().has(address)
    }

    /// Says on the volume, before the first pointer to a device address, that it needs its drive. A
    /// power cut may have left a mark on one copy only, so each mount writes both.
    pub(super) fn mark_volume(&mut self) -> Result<(), Error> {
        if self.physical.marked {
            return Ok(());
        }
        self.write_mark(true)?;
        self.physical.marked = true;
        self.discard_free_segments()
    }

    /// The volume needs its drive no longer.
    pub(super) fn unmark_volume(&mut self) -> Result<(), Error> {
        self.physical.marked = false;
        self.write_mark(false)
    }

    fn write_mark(&mut self, devirtualized: bool) -> Result<(), Error> {
        let drive = self.io.device_addresses().space().map(|space| space.drive);
        self.superblock.devirtualized = devirtualized;
        self.superblock.drive = drive.filter(|_| devirtualized).unwrap_or_default();
        for copy in [0, 1].map(BlockAddr) {
            let block = self.superblock.encode(&*self.io.read(copy)?);
            self.io.write_durable(copy, Arc::new(block))?;
        }
        Ok(())
    }

    /// Content of free segments takes the space of blocks at device addresses, and nobody knows how
    /// much of it there is.
    pub(super) fn discard_free_segments(&mut self) -> Result<(), Error> {
        self.space.queue_free_segments();
        self.discard_some(usize::MAX, BLOCKS_IN_SEGMENT).map(drop)
    }

    /// A checkpoint is complete: the device drops the old names of the batch whose pointers it has.
    /// Their addresses are not used before.
    pub(super) fn end_batch(&mut self) -> Result<(), Error> {
        self.physical.renaming.clear();
        let Some(id) = self.physical.open.take() else { return Ok(()) };
        self.io.devirtualize(Devirtualize::End { id, keep: true })?;
        Ok(())
    }

    /// A checkpoint is complete: what it no longer leads to is given back.
    pub(super) fn give_back_device_addresses(&mut self) -> Result<(), Error> {
        if !self.superblock.devirtualized {
            return Ok(());
        }
        let freed = std::mem::take(&mut self.physical.freed);
        self.discard_device_addresses(freed)?;
        self.discard_some(usize::MAX, BLOCKS_IN_SEGMENT).map(drop)
    }

    /// Gives addresses back to the device.
    pub(super) fn discard_device_addresses(
        &mut self,
        mut addresses: Vec<BlockAddr>,
    ) -> Result<(), Error> {
        addresses.sort_unstable();
        let mut runs: Vec<Extent> = Vec::new();
        for address in addresses {
            match runs.last_mut() {
                Some(run) if run.start.plus(run.blocks) == address => run.blocks += 1,
                _ => runs.push(Extent { start: address, blocks: 1 }),
            }
        }
        Ok(self.io.discard(runs.into_iter())?)
    }

    /// A call changes the content of a file.
    pub(super) fn note_change(&mut self, ino: Nid) {
        let now = self.io.now();
        if let Some(changed) = &mut self.physical.changed {
            changed.insert(ino, now);
        }
    }

    /// The file is gone, or was dealt with: it has not changed since.
    pub(super) fn forget_changes(&mut self, ino: Nid) {
        if let Some(changed) = &mut self.physical.changed {
            changed.remove(&ino);
        }
    }

    /// A block of a file gets another address of the volume.
    pub(super) fn note_rewritten(&mut self, ino: Nid) {
        let now = self.io.now();
        if let Some(changed) = &mut self.physical.changed
            && !self.physical.renaming.contains(&ino)
        {
            changed.entry(ino).or_insert(now);
        }
    }
}
