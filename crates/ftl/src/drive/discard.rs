//! Discards: the host no longer needs these blocks.

use dovetail_block::{BlockRange, DeviceError, SectorRange};
use dovetail_nand::Lpn;
use dovetail_time::SimTime;

use super::{Drive, Piece};

impl Drive {
    /// Unmaps the whole blocks of each range. A discard survives a power cut once it is flushed.
    pub(super) fn discard(&mut self, at: SimTime, ranges: &[SectorRange]) -> Result<SimTime, DeviceError> {
        for range in ranges {
            self.check_range(range.blocks_touched())?;
        }
        let mut done = at;
        for range in ranges {
            done = self.discard_range(done, range.blocks_inside())?;
        }
        self.counters.discards += 1;
        self.write_full_records(at)?;
        Ok(done)
    }

    fn discard_range(&mut self, at: SimTime, range: BlockRange) -> Result<SimTime, DeviceError> {
        let (mut done, mut unmapped) = (at, false);
        for piece in self.pieces(range) {
            let accesses = self.counters.map_accesses;
            let (buffered, mapped) = (self.discard_in_buffer(piece), self.discard_on_flash(piece));
            self.counters.discarded_blocks += u64::from((buffered | mapped).count_ones());
            unmapped |= mapped != 0;
            done += self.config.map_access * (self.counters.map_accesses - accesses);
        }
        if unmapped {
            done += self.note_discard(at, range)?;
        }
        Ok(done)
    }

    /// Drops the piece from the buffer; returns which parts were dirty there.
    pub(super) fn discard_in_buffer(&mut self, piece: Piece) -> u8 {
        let gone = piece.mask();
        let Some(entry) = self.buffer.dirty_mut(piece.lpn) else {
            // In flight: flash has it, and the buffer must not answer for it any more.
            self.buffer.forget(piece.lpn);
            return 0;
        };
        let dropped = entry.mask & gone;
        for part in (0..8).filter(|part| dropped >> part & 1 == 1) {
            self.nand.release(std::mem::replace(&mut entry.tokens[part], dovetail_nand::Token::EMPTY));
        }
        entry.mask &= !gone;
        let empty = entry.mask == 0;
        if empty {
            self.buffer.forget(piece.lpn);
        }
        dropped
    }

    /// Unmaps the piece on flash; returns which parts of it were mapped.
    fn discard_on_flash(&mut self, piece: Piece) -> u8 {
        let (found, cost) = self.map.lookup(piece.lpn);
        self.charge(cost);
        if found.is_none() {
            return 0;
        }
        let dropped = self.live_mask(piece.lpn) & piece.mask();
        self.kill_parts(piece.lpn, dropped);
        dropped
    }

    /// The parts in `mask` of a mapped page are dead; a page without live parts is unmapped.
    pub(super) fn kill_parts(&mut self, lpn: Lpn, mask: u8) {
        let parts = u64::from(self.config.parts());
        let mut remains = false;
        if let Some(live) = &mut self.live {
            let first = u64::from(lpn.0) * parts;
            (0..parts).filter(|part| mask >> part & 1 == 1).for_each(|part| live.clear(first + part));
            remains = self.live_mask(lpn) != 0;
        }
        if remains || mask == 0 {
            return;
        }
        let (before, cost) = self.map.update(lpn, None);
        self.charge(cost);
        if let Some(before) = before {
            self.lines.invalidate(before);
        }
    }
}
