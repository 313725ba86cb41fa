//! The remap command: content moves to other addresses without being programmed again.
//!
//! The order of what happens is the argument for its atomicity:
//! 1. Sources that are in the write buffer only are sent to flash; their programs are waited for.
//! 2. What says where each page belongs now is made durable, as one: in non-volatile memory, or in
//!    log pages on flash. The command is acknowledged when that is done.
//! 3. The map points the destinations at the pages, the sources nowhere.
//!
//! State changes at issue, time follows: between issue and acknowledgement a power cut at a time
//! takes the remap back. So nothing that rests on it may be durable earlier: remaps complete in
//! order, a page that is moved on behalf of its new owner waits for the remap, and so do erases,
//! bitmap pages and flushes.

use dovetail_block::{DeviceError, Lba, RemapPair, RemapWhen};
use dovetail_nand::{Lpn, Ppn, Seq};
use dovetail_time::{SimSpan, SimTime};

use super::{Drive, PageSpan, unless_worn_out};
use crate::cache::Access;
use crate::ownership::Move;

impl Drive {
    /// Moves pairs of blocks, now or later; returns when that is durable.
    pub(super) fn remap(
        &mut self,
        at: SimTime,
        pairs: &[RemapPair],
        when: RemapWhen,
    ) -> Result<SimTime, DeviceError> {
        let all = self.ownership.admit(&self.device_info(), pairs, when)?;
        let done = self.execute(at, &all)?;
        self.counters.remaps += 1;
        // It is carried out: a host that was told of an error would repeat it and find nothing at
        // its sources.
        unless_worn_out(self.empty_condemned(at))?;
        Ok(done)
    }

    /// Executes pairs as one; returns when that is durable.
    pub(super) fn execute(
        &mut self,
        at: SimTime,
        pairs: &[RemapPair],
    ) -> Result<SimTime, DeviceError> {
        if pairs.is_empty() {
            return Ok(at);
        }
        for pair in pairs {
            self.send_dirty(at, pair.from)?;
            // Capacitors keep what is in the buffer: behind a remap that is on flash when the power
            // goes, it would come back as newer.
            if self.config.power_loss_protection {
                self.send_dirty(at, pair.to)?;
            }
        }
        let at = self.want_pairs(at, pairs)?;
        self.make_room_in_log(at, pairs.len())?;
        self.make_room_in_segments(at, pairs)?;
        self.carry_out(at, pairs)
    }

    /// Sends a block to flash that is only in the write buffer.
    pub(super) fn send_dirty(&mut self, at: SimTime, lba: Lba) -> Result<(), DeviceError> {
        if self.buffer.dirty_mut(page_of(lba)).is_some() {
            self.send(at, page_of(lba))?;
        }
        Ok(())
    }

    /// Executes pairs whose sources are on flash, and for which there is room in the log: from here
    /// on no page moves until the map has changed.
    pub(super) fn carry_out(
        &mut self,
        at: SimTime,
        pairs: &[RemapPair],
    ) -> Result<SimTime, DeviceError> {
        let mut moves = std::mem::take(&mut self.moves);
        moves.clear();
        let done = self.carry_out_as(at, pairs, &mut moves);
        self.moves = moves;
        done
    }

    /// The same; `moves` is empty, and becomes the pairs with their pages.
    fn carry_out_as(
        &mut self,
        at: SimTime,
        pairs: &[RemapPair],
        moves: &mut Vec<Move>,
    ) -> Result<SimTime, DeviceError> {
        let looked_up = self.resolve(at, pairs, moves);
        let ready = self.ownership.content_is_durable(looked_up, moves);
        let seq = self.medium.take_seq();
        let end = match self.nvm() {
            Some(_) => self.write_intent(ready, seq, moves)?,
            None => self.without_erasing(|drive| drive.write_log(ready, seq, moves))?,
        };
        let updated = self.move_map(moves);
        self.apply_intent(end, seq, moves);
        self.counters.remapped_pairs += pairs.len() as u64;
        self.ownership.note_remap(at, seq, end);
        self.write_full_records(at)?;
        Ok(end + updated)
    }

    fn want_pairs(&mut self, mut at: SimTime, pairs: &[RemapPair]) -> Result<SimTime, DeviceError> {
        for pair in pairs {
            at = self.want(at, page_of(pair.from), Access::Remap)?;
            at = self.want(at, page_of(pair.to), Access::Remap)?;
        }
        Ok(at)
    }

    /// Looks the sources up; returns when that is done.
    fn resolve(&mut self, at: SimTime, pairs: &[RemapPair], moves: &mut Vec<Move>) -> SimTime {
        let mut spent = SimSpan::ZERO;
        for pair in pairs {
            let (to, from) = (page_of(pair.to), page_of(pair.from));
            let (ppn, cost) = self.translation.lookup(from);
            spent += self.charge(cost);
            moves.push(Move { ppn, to, from });
        }
        at + spent
    }

    /// Points the destinations at the pages and the sources nowhere; returns what the map takes for
    /// it.
    fn move_map(&mut self, moves: &[Move]) -> SimSpan {
        let mut spent = SimSpan::ZERO;
        for &Move { ppn, to, from } in moves {
            self.drop_from_buffer(to);
            self.drop_from_buffer(from);
            let (_, unmapped) = self.point_at(from, None);
            let (before, mapped) = self.point_at(to, ppn);
            spent += self.charge(unmapped);
            spent += self.charge(mapped);
            if let Some(before) = before {
                self.invalidate(before);
            }
        }
        spent
    }

    fn drop_from_buffer(&mut self, lpn: Lpn) {
        self.discard_in_buffer(PageSpan { lpn, first_subpage: 0, subpages: 1, offset: 0 });
    }

    /// The logical page to which a programmed page belongs, and the remap that made it so, if one
    /// did.
    pub(super) fn owner(&self, ppn: Ppn) -> (Lpn, Option<Seq>) {
        self.ownership.owner(self.medium.nand(), ppn)
    }

    /// Checks that reverse and forward map agree.
    pub(super) fn check_reverse(&self) -> Result<(), String> {
        self.ownership.check(self.medium.nand(), |lpn, ppn| {
            !self.medium.lines().is_valid(ppn) || self.translation.lookup(lpn).0 == Some(ppn)
        })
    }
}

/// The page of a block, on a drive whose pages are blocks.
pub(super) fn page_of(lba: Lba) -> Lpn {
    Lpn(lba.0)
}
