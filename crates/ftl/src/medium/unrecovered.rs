//! The flash after a power cut: it can be read, and nothing else.

use dovetail_block::{BLOCK_SIZE, Content, DeviceError};
use dovetail_nand::{BlockId, FaultPlan, Nand, NandError, Oob, Ppn, Seq};
use dovetail_time::SimTime;

use super::Medium;
use super::device_error;
use super::frontier::FrontierKind;
use super::lines::LineShape;

/// Flash whose lines are not known yet.
#[derive(Debug)]
pub(crate) struct UnrecoveredMedium {
    nand: Nand,
}

impl UnrecoveredMedium {
    /// Around a flash whose power is off.
    pub(crate) fn new(nand: Nand) -> Self {
        Self { nand }
    }

    /// Another one like it.
    pub(crate) fn copy(&self) -> Self {
        Self { nand: self.nand.clone() }
    }

    /// The flash, to be looked at.
    pub(crate) fn nand(&self) -> &Nand {
        &self.nand
    }

    /// Puts faults over the flash.
    pub(crate) fn set_faults(&mut self, plan: FaultPlan) {
        self.nand.set_faults(plan);
    }

    /// Switches the power on; time starts at 0.
    pub(crate) fn power_on(&mut self) {
        self.nand.power_on();
    }

    /// Every programmed page, by block.
    pub(crate) fn programmed_pages(&self) -> Vec<Ppn> {
        let geometry = *self.nand.geometry();
        let whole =
            (0..geometry.blocks()).map(BlockId).filter(|&block| !self.nand.is_half_erased(block));
        let pages = |block| {
            (0..self.nand.programmed_pages(block)).map(move |page| geometry.ppn(block, page))
        };
        whole.flat_map(pages).collect()
    }

    /// The greatest sequence number that any page has, or had before it was erased.
    pub(crate) fn last_seq(&self) -> Seq {
        let blocks = (0..self.nand.geometry().blocks()).map(BlockId);
        blocks.map(|block| self.nand.last_seq(block)).max().unwrap_or_default()
    }

    /// Reads a page's out-of-band area at the cost of a page read without its data; `None` where it
    /// is torn.
    pub(crate) fn read_oob(&mut self, ppn: Ppn) -> Result<Option<Oob>, DeviceError> {
        self.read(ppn, 0)?;
        Ok(self.nand.oob(ppn))
    }

    /// Reads a whole page; whether it can be read.
    pub(crate) fn read_page(&mut self, ppn: Ppn) -> Result<bool, DeviceError> {
        self.read(ppn, self.nand.geometry().page_bytes)
    }

    /// Reads the bytes of a page; `None` where they cannot be read.
    pub(crate) fn read_bytes(&mut self, ppn: Ppn) -> Result<Option<Vec<u8>>, DeviceError> {
        if !self.read_page(ppn)? {
            return Ok(None);
        }
        let geometry = self.nand.geometry();
        let mut bytes = Vec::with_capacity(geometry.page_bytes as usize);
        for subpage in 0..geometry.subpages_per_page() as usize {
            match self.nand.content(self.nand.token(ppn, subpage)) {
                Some(Content::Bytes(block)) => bytes.extend_from_slice(&block[..]),
                Some(_) => bytes.resize(bytes.len() + BLOCK_SIZE as usize, 0),
                None => return Ok(None),
            }
        }
        Ok(Some(bytes))
    }

    fn read(&mut self, ppn: Ppn, bytes: u32) -> Result<bool, DeviceError> {
        match self.nand.read(SimTime::ZERO, ppn, bytes) {
            Ok(_) => Ok(true),
            Err(NandError::Unreadable(_)) => Ok(false),
            Err(error) => Err(device_error(&error)),
        }
    }

    /// The medium with its lines as they are found. No page counts yet; programs are numbered from
    /// `seq` on.
    pub(crate) fn recover(self, shape: LineShape, frontiers: &[FrontierKind], seq: Seq) -> Medium {
        debug_assert!(seq > self.last_seq(), "sequence numbers must rise");
        Medium::found(self.nand, shape, frontiers, seq)
    }
}
