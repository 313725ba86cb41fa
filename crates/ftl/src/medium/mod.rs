//! The medium: NAND flash in lines, and the only code that programs and erases it.
//!
//! It fills lines through frontiers, numbers its programs, keeps which pages count, and retires
//! blocks that fail. It knows no logical-to-physical map and no policy. Its user says which
//! frontier takes a page, which line is emptied and when it is erased. A page gets to flash through
//! [`Medium::program`] alone: the [`Nand`] is private, and [`Medium::nand`] lends it for looking
//! only.

mod bad_blocks;
mod erase;
mod fill_order;
mod frontier;
pub mod lines;
mod log_lines;
mod program;
mod recover;
mod unrecovered;
mod validity;

use dovetail_block::{BlockBytes, Content, DeviceError};
use dovetail_nand::{
    BackingStore, BlockId, FaultPlan, GeometryError, Nand, NandConfig, NandError, Ppn, Seq, Token,
};
use dovetail_time::SimTime;

pub(crate) use erase::ErasedBlock;
use frontier::Frontier;
pub(crate) use frontier::{FrontierId, FrontierKind};
use lines::{FoundLine, LineId, LineShape, Lines, WordLines};
pub(crate) use program::{ErasedPage, PageToProgram, Programmed};
pub(crate) use unrecovered::UnrecoveredMedium;
use validity::LiveSubpages;

/// Flash that is filled line by line.
#[derive(Clone, Debug)]
pub(crate) struct Medium {
    nand: Nand,
    lines: Lines,
    frontiers: Vec<Frontier>,
    /// Live subpages of pages that have several.
    live: Option<LiveSubpages>,
    /// The sequence number of the next program.
    seq: Seq,
    /// Bad blocks that may still hold valid pages.
    condemned: Vec<BlockId>,
    /// End of the last program issued so far.
    programs_end: SimTime,
}

impl Medium {
    /// New flash: all lines are erased.
    ///
    /// # Errors
    /// A geometry out of range.
    pub(crate) fn new(
        nand: NandConfig,
        shape: LineShape,
        frontiers: &[FrontierKind],
    ) -> Result<Self, GeometryError> {
        let mut medium = Self::around(Nand::new(nand)?, shape, frontiers);
        for line in medium.lines.ids() {
            let missing = medium.missing_pages(line);
            medium.lines.found(line, 0, missing, FoundLine::Erased);
        }
        Ok(medium)
    }

    /// A flash whose lines are in no state yet.
    fn around(nand: Nand, shape: LineShape, frontiers: &[FrontierKind]) -> Self {
        let (geometry, timing) = (*nand.geometry(), nand.config().timing);
        let lines = Lines::new(geometry, shape, WordLines::of(&timing));
        let groups = lines.groups();
        Self {
            frontiers: frontiers.iter().map(|&kind| Frontier::new(groups, kind)).collect(),
            live: LiveSubpages::new(geometry.pages(), geometry.subpages_per_page()),
            seq: Seq(0),
            condemned: Vec::new(),
            programs_end: SimTime::ZERO,
            lines,
            nand,
        }
    }

    /// The flash, to be looked at: pages, blocks, contents. Looking takes no time; [`Medium::read`]
    /// does.
    #[inline]
    pub(crate) fn nand(&self) -> &Nand {
        &self.nand
    }

    /// The lines: what is free, filled and worn.
    #[inline]
    pub(crate) fn lines(&self) -> &Lines {
        &self.lines
    }

    /// The sequence number that the next program will have.
    #[inline]
    pub(crate) fn next_seq(&self) -> Seq {
        self.seq
    }

    /// Takes a sequence number for something other than a program.
    #[inline]
    pub(crate) fn take_seq(&mut self) -> Seq {
        let seq = self.seq;
        self.seq = Seq(seq.0 + 1);
        seq
    }

    /// End of the last program issued so far.
    pub(crate) fn programs_end(&self) -> SimTime {
        self.programs_end
    }

    /// Reads `bytes` of a page into the controller; returns when they are there, `None` where it is
    /// unreadable.
    ///
    /// # Errors
    /// No power.
    #[inline]
    pub(crate) fn read(
        &mut self,
        at: SimTime,
        ppn: Ppn,
        bytes: u32,
    ) -> Result<Option<SimTime>, DeviceError> {
        match self.nand.read(at, ppn, bytes) {
            Ok(done) => Ok(Some(done)),
            Err(NandError::Unreadable(_)) => Ok(None),
            Err(error) => Err(device_error(&error)),
        }
    }

    /// Takes a line that was filled, to empty it.
    pub(crate) fn take_victim(&mut self, line: LineId) {
        self.lines.take_victim(line);
    }

    /// The token of a content; the caller owns one reference.
    #[inline]
    pub(crate) fn intern(&mut self, content: &Content) -> Token {
        self.nand.intern(content)
    }

    /// As [`Medium::intern`], for a later version of the content of `before`.
    pub(crate) fn intern_version(&mut self, bytes: &BlockBytes, before: Token) -> Token {
        self.nand.intern_version(bytes, before)
    }

    /// Takes another reference to a token.
    #[inline]
    pub(crate) fn retain(&mut self, token: Token) {
        self.nand.retain(token);
    }

    /// Gives back a reference that was not programmed.
    #[inline]
    pub(crate) fn release(&mut self, token: Token) {
        self.nand.release(token);
    }

    /// Exchanges the times until which dies and channels are busy with those of another flash.
    pub(crate) fn swap_timeline(&mut self, other: &mut Nand) {
        self.nand.swap_timeline(other);
    }

    /// Keeps what happened so far before anything that happens from now on, in a drive file.
    pub(crate) fn barrier(&mut self) {
        self.nand.barrier();
    }

    /// Keeps the flash in a store: it is told of every change from now on.
    pub(crate) fn back_with(&mut self, backing: Box<dyn BackingStore>) {
        self.nand.back_with(backing);
    }

    /// Puts faults over the flash.
    pub(crate) fn set_faults(&mut self, plan: FaultPlan) {
        self.nand.set_faults(plan);
    }

    /// Remembers from now on what a power cut at a time needs; memory grows with every command: for
    /// tests.
    pub(crate) fn remember_operations(&mut self) {
        self.nand.remember_operations();
    }

    /// Forgets operations that had ended by `at`: no power cut at an earlier time will be asked
    /// for.
    pub(crate) fn forget_operations_before(&mut self, at: SimTime) {
        self.nand.forget_operations_before(at);
    }

    /// Switches the power off after the operations issued so far.
    pub(crate) fn cut_power(&mut self) {
        self.nand.cut_power();
    }

    /// The flash after a power cut; with a time, operations under way then are torn.
    pub(crate) fn into_unrecovered(mut self, at: Option<SimTime>) -> UnrecoveredMedium {
        match at {
            Some(at) => self.nand.cut_power_at(at),
            None => self.nand.cut_power(),
        }
        UnrecoveredMedium::new(self.nand)
    }

    /// The flash as a power cut at `at` would leave it; this one goes on.
    pub(crate) fn after_power_cut(&self, at: SimTime) -> UnrecoveredMedium {
        UnrecoveredMedium::new(self.nand.after_power_cut(at))
    }

    /// Pages of a line that lie on bad blocks.
    fn missing_pages(&self, line: LineId) -> u32 {
        let bad = self.lines.blocks(line).filter(|&block| self.nand.is_bad(block)).count() as u32;
        bad * self.nand.geometry().pages_per_block
    }
}

/// An error of the flash that the drive cannot work around.
fn device_error(error: &NandError) -> DeviceError {
    match error {
        NandError::PowerLost => DeviceError::PowerLost,
        other => DeviceError::Internal(other.to_string()),
    }
}
