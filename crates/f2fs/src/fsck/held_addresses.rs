//! Blocks at places of the device, on a volume whose pointers may lead there: no log, segment or
//! summary knows of them.

use std::collections::HashMap;

use dovetail_block::BlockDevice;

use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{BlockAddr, Nid};

/// The places by which the device holds a block, and whether the block was reached.
#[derive(Debug, Default)]
pub(super) struct HeldAddresses {
    reached: HashMap<BlockAddr, bool>,
}

impl<D: BlockDevice> Checker<'_, D> {
    /// Asks the device; of an ordinary volume there are none.
    pub(super) fn read_device_addresses(&mut self) -> Result<(), Error> {
        let held = self.volume.blocks.held_addresses()?;
        self.held_addresses.reached = held.into_iter().map(|place| (place, false)).collect();
        Ok(())
    }

    pub(super) fn is_held_address(&self, address: BlockAddr) -> bool {
        self.held_addresses.reached.contains_key(&address)
    }

    /// Marks a held place as reached; false if it was before.
    pub(super) fn claim_place(&mut self, address: BlockAddr, nid: Nid) -> bool {
        let first = self.held_addresses.reached.insert(address, true) == Some(false);
        if !first {
            self.found(Finding::BlockShared { address, nid });
        }
        first
    }
}
