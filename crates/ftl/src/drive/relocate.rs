//! Relocation: valid pages are copied away from lines that are cleaned, and from bad blocks.

use dovetail_block::{DeviceError, StreamId};
use dovetail_nand::{Lpn, Ppn, Seq, Token};
use dovetail_time::SimTime;

use super::Drive;
use crate::buffer::MAX_SUBPAGES;
use crate::medium::{FrontierId, PageToProgram};
use crate::stats::{Cause, ReadCause};

/// A valid page that is moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    pub(super) ppn: Ppn,
    /// Its owner.
    lpn: Lpn,
    /// The remap that made it so.
    remap: Option<Seq>,
    stream: StreamId,
    /// Set if it was read and could be.
    pub(super) readable: bool,
}

impl Drive {
    /// A valid page with what moving it needs, not read yet.
    #[inline]
    pub(super) fn moving(&self, ppn: Ppn) -> Moving {
        let (own, stream) = self.medium.nand().owner(ppn);
        let (lpn, remap) = match self.ownership.remapped(ppn) {
            Some(entry) => (entry.lpn, Some(entry.seq)),
            None => (own, None),
        };
        Moving { ppn, lpn, remap, stream, readable: false }
    }

    /// Moves what bad blocks still hold.
    pub(super) fn empty_condemned(&mut self, at: SimTime) -> Result<(), DeviceError> {
        while let Some(block) = self.medium.newest_condemned() {
            for page in 0..self.medium.nand().programmed_pages(block) {
                let ppn = self.geometry().ppn(block, page);
                if self.medium.lines().is_valid(ppn) {
                    self.make_room(at)?;
                }
                if self.medium.lines().is_valid(ppn) {
                    self.move_page(at, ppn, Cause::Retire)?;
                }
            }
            self.medium.forget_condemned(block);
        }
        Ok(())
    }

    /// Copies a valid page to a new place. Data that cannot be read any more is kept as lost: reads
    /// of it fail instead of returning something older.
    #[inline]
    pub(super) fn move_page(
        &mut self,
        at: SimTime,
        ppn: Ppn,
        cause: Cause,
    ) -> Result<(), DeviceError> {
        let mut moving = self.moving(ppn);
        let ready = self.read_moving(at, &mut moving)?;
        self.move_read_page(ready, moving, cause)?;
        self.complete_word_lines()
    }

    /// The frontier that a page goes to when it is moved.
    pub(super) fn frontier_for(&self, ppn: Ppn) -> FrontierId {
        let moving = self.moving(ppn);
        self.frontier_of_moved(moving.lpn, moving.stream)
    }

    /// Reads a page that is to be moved; returns when.
    #[inline]
    pub(super) fn read_moving(
        &mut self,
        at: SimTime,
        moving: &mut Moving,
    ) -> Result<SimTime, DeviceError> {
        let (ready, readable) = self.read_for(at, moving.ppn, ReadCause::Move)?;
        moving.readable = readable;
        Ok(ready)
    }

    /// Lets the host fetch the map entry of a page that is moved soon.
    #[inline]
    pub(super) fn expect_move(&self, moving: &Moving) {
        if !self.translation.is_own(moving.lpn) {
            self.translation.expect(moving.lpn);
        }
    }

    /// Copies a valid page that was read, from `ready` on; others may follow in its word line.
    pub(super) fn move_read_page(
        &mut self,
        ready: SimTime,
        moving: Moving,
        cause: Cause,
    ) -> Result<(), DeviceError> {
        self.move_read_page_to(ready, moving, None, cause)
    }

    /// As [`Drive::move_read_page`], to a frontier that is given.
    #[inline]
    pub(super) fn move_read_page_to(
        &mut self,
        ready: SimTime,
        moving: Moving,
        to: Option<FrontierId>,
        cause: Cause,
    ) -> Result<(), DeviceError> {
        let Moving { ppn, lpn, remap, stream, readable } = moving;
        let inode = self.medium.nand().inode(ppn);
        if !readable && self.translation.is_own(lpn) {
            self.replace_system_page(lpn);
            return Ok(());
        }
        let subpages = self.config.subpages() as usize;
        let mut tokens = [Token::EMPTY; MAX_SUBPAGES];
        let live = self.medium.live_mask(ppn);
        self.carry_subpages(ppn, live, readable, &mut tokens);
        let page = PageToProgram { lpn, live, tokens: &tokens[..subpages], stream, inode };
        let ready = ready.max(self.ownership.durable_at(remap)).max(self.durable_below(lpn));
        let to = to.unwrap_or_else(|| self.frontier_of_moved(lpn, stream));
        self.program_moved(ready, ppn, to, page, cause)?;
        self.note_moved(lpn, inode);
        Ok(())
    }

    /// Returns when what a page rests on is durable, if it is the drive's own: its first copy was
    /// programmed after that, on a die that may have a longer queue than that of the next copy.
    fn durable_below(&self, lpn: Lpn) -> SimTime {
        if self.translation.is_own(lpn) { self.journal.programs_end() } else { SimTime::ZERO }
    }

    /// References to the subpages in `mask` of a page that was just read, or the knowledge that
    /// they are lost.
    #[inline]
    pub(super) fn carry_subpages(
        &mut self,
        ppn: Ppn,
        mask: u8,
        readable: bool,
        tokens: &mut [Token; MAX_SUBPAGES],
    ) {
        if mask == 1 {
            tokens[0] = self.carry(ppn, 0, readable);
            return;
        }
        let mut left = mask;
        while left != 0 {
            let subpage = left.trailing_zeros() as usize;
            left &= left - 1;
            tokens[subpage] = self.carry(ppn, subpage, readable);
        }
    }

    #[inline]
    fn carry(&mut self, ppn: Ppn, subpage: usize, readable: bool) -> Token {
        if !readable {
            self.counters.lost_blocks += 1;
            return Token::LOST;
        }
        let token = self.medium.nand().token(ppn, subpage);
        self.medium.retain(token);
        token
    }

    /// Reads a whole page for the drive's own use; returns when, and whether it could be read.
    #[inline]
    pub(super) fn read_for(
        &mut self,
        at: SimTime,
        ppn: Ppn,
        cause: ReadCause,
    ) -> Result<(SimTime, bool), DeviceError> {
        self.counters.flash_reads[cause as usize] += 1;
        let at = self.hand_over(at, 1);
        let read = self.medium.read(at, ppn, self.geometry().page_bytes)?;
        Ok((read.unwrap_or(at), read.is_some()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

    use dovetail_block::{BlockDevice, BlockRange, Command, Data, Hints, Lba, Pattern};
    use dovetail_nand::{Geometry, Lpn};
    use dovetail_time::{Rng, SimTime};

    use crate::lines::LineShape;
    use crate::stats::Cause;
    use crate::{Drive, DriveConfig};

    /// Pages that cleaning moved to another die, and all that it moved.
    fn moves(gc_within_die: bool) -> (u64, u64) {
        let geometry = Geometry {
            channels: 2,
            dies_per_channel: 2,
            planes_per_die: 1,
            blocks_per_plane: 32,
            pages_per_block: 16,
            page_bytes: 4096,
        };
        let (shape, blocks) = (LineShape::Block, 1500);
        let plain = DriveConfig::plain(geometry, blocks);
        let mut drive = Drive::new(DriveConfig { shape, gc_within_die, ..plain }).unwrap();
        let die = |drive: &Drive, lba| {
            drive.page_at(Lpn(lba)).map(|ppn| geometry.locate(ppn).0.0 % geometry.dies())
        };
        let (mut now, mut rng, mut away) = (SimTime::ZERO, Rng::new(1), 0);
        for n in 0..6000 {
            let written = if n < blocks { n } else { rng.below(blocks) };
            let before: Vec<_> = (0..blocks).map(|lba| die(&drive, lba)).collect();
            let (range, data) = (BlockRange::new(Lba(written), 1), Data::Patterns(Pattern::new(n)));
            let write = Command::Write { range, data, hints: Hints::default(), fua: false };
            now = drive.submit(now, write).unwrap().done;
            away += (0..blocks)
                .filter(|&lba| lba != written && die(&drive, lba) != before[lba as usize])
                .count() as u64;
        }
        (away, drive.counters().programs[Cause::Gc as usize])
    }

    #[test]
    fn moved_pages_stay_on_their_die_where_they_are_told_to() {
        let (away, all) = moves(true);
        assert!(all > 1000 && away * 20 < all, "{away} of {all} went to another die");
        let (away, all) = moves(false);
        assert!(away * 2 > all, "without it only {away} of {all} did");
    }
}
