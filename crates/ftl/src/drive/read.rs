//! Reads.

use dovetail_block::{BLOCK_SIZE, BlockRange, Content, DeviceError, Lba};
use dovetail_nand::{Ppn, Token};
use dovetail_time::SimTime;

use super::{Drive, PageSpan};
use crate::buffer::{BufferEntry, MAX_SUBPAGES};
use crate::cache::Access;
use crate::stats::ReadCause;

impl Drive {
    /// Gives blocks to the host; returns when they have arrived there.
    pub(super) fn read(
        &mut self,
        at: SimTime,
        range: BlockRange,
        mut into: Option<&mut [Content]>,
    ) -> Result<SimTime, DeviceError> {
        self.check_range(range)?;
        self.check_names(range)?;
        if let Some(into) = into.as_ref()
            && into.len() as u64 != range.blocks
        {
            return Err(DeviceError::LengthMismatch {
                range: range.blocks,
                data: into.len() as u64,
            });
        }
        self.begin_request(range);
        let mut ready = at;
        for span in self.spans(range) {
            let (tokens, span_ready) = self.read_span(at, span)?;
            ready = ready.max(span_ready);
            for i in 0..span.subpages {
                let block = span.offset + i as u64;
                let content = self.medium.nand().content(tokens[span.first_subpage + i]);
                let content = content.ok_or(DeviceError::Unreadable(Lba(range.start.0 + block)))?;
                if let Some(into) = into.as_deref_mut() {
                    into[block as usize] = content;
                }
            }
        }
        self.counters.reads += 1;
        self.counters.read_blocks += range.blocks;
        Ok(self.link(at, ready, range.blocks))
    }

    /// The tokens of a page's subpages as the host sees them, those of the span at least, and when
    /// they are in the controller.
    fn read_span(
        &mut self,
        at: SimTime,
        span: PageSpan,
    ) -> Result<([Token; MAX_SUBPAGES], SimTime), DeviceError> {
        let wanted = span.mask();
        let (mut tokens, mut held) = ([Token::EMPTY; MAX_SUBPAGES], 0);
        if let Some(&BufferEntry { tokens: buffered, mask, .. }) = self.buffer.get(span.lpn) {
            (tokens, held) = (buffered, mask);
            self.counters.buffer_read_hits += u64::from((mask & wanted).count_ones());
        }
        if wanted & !held == 0 {
            return Ok((tokens, at));
        }
        let at = self.want(at, span.lpn, Access::Read)?;
        let (found, cost) = self.translation.lookup(span.lpn);
        let at = at + self.charge(cost);
        let live = found.map_or(0, |ppn| self.medium.live_mask(ppn));
        let missing = wanted & !held & live;
        self.counters.empty_read_blocks += u64::from((wanted & !held & !live).count_ones());
        let Some(ppn) = found.filter(|_| missing != 0) else { return Ok((tokens, at)) };
        let first_missing = u64::from(missing.trailing_zeros());
        let lba = Lba(span.lpn.0 * u64::from(self.config.subpages()) + first_missing);
        let ready = self.read_page(at, ppn, missing.count_ones(), lba)?;
        self.note_host_read(ppn);
        for (subpage, token) in
            tokens.iter_mut().enumerate().filter(|(subpage, _)| missing >> subpage & 1 == 1)
        {
            *token = self.medium.nand().token(ppn, subpage);
        }
        Ok((tokens, ready))
    }

    fn read_page(
        &mut self,
        at: SimTime,
        ppn: Ppn,
        subpages: u32,
        lba: Lba,
    ) -> Result<SimTime, DeviceError> {
        self.counters.flash_reads[ReadCause::Host as usize] += 1;
        let at = self.hand_over(at, 1);
        let read = self.medium.read(at, ppn, subpages * BLOCK_SIZE as u32)?;
        read.ok_or(DeviceError::Unreadable(lba))
    }
}
