//! Power on after a cut: the map is rebuilt from the flash alone.
//!
//! Recovery only reads. Of the pages with the same logical number the one with the greatest sequence number
//! counts; the discard journal then says which blocks of it are dead. Lines that were being filled are filled on
//! (otherwise a drive whose power is cut again and again would run out of free lines without ever finishing a
//! cleaning run), lines that were being erased are cleaned again. So power cuts during recovery change nothing.

use dovetail_block::{BLOCK_SIZE, BlockRange, Content, DeviceError, Lba};
use dovetail_nand::{BlockId, FaultPlan, Lpn, Nand, NandError, Oob, Ppn, Seq};
use dovetail_time::{SimSpan, SimTime};

use super::frontier::OpenLine;
use super::journal::{SystemPage, decode};
use super::{Drive, device_error, system_pages};
use crate::config::DriveConfig;
use crate::lines::{Found, LineId};

/// A drive whose power was cut: only its flash is left.
#[derive(Debug)]
pub struct UnrecoveredDrive {
    config: DriveConfig,
    nand: Nand,
}

/// What recovery found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Programmed pages whose out-of-band areas were read.
    pub pages_read: u64,
    /// Pages torn by power cuts or failed programs.
    pub torn_pages: u64,
    /// Logical pages that are mapped again, the drive's own among them.
    pub mapped_pages: u64,
    /// Blocks that the journal of discards kept dead.
    pub discarded_blocks: u64,
    /// Pages of the journal itself that could not be read: discards in them may have come back.
    pub lost_journal_pages: u64,
    /// How long it took.
    pub duration: SimSpan,
}

/// The newest version of each logical page.
struct Scan {
    newest: Vec<Option<(Seq, Ppn)>>,
    report: RecoveryReport,
    last_seq: Seq,
}

impl UnrecoveredDrive {
    pub(super) fn new(config: DriveConfig, nand: Nand) -> Self {
        Self { config, nand }
    }

    /// Reads, programs and erases of the flash so far: recovery goes on counting from here.
    pub fn flash_operations(&self) -> u64 {
        self.nand.operations()
    }

    /// Puts faults over the flash, a power cut during recovery for example.
    pub fn set_faults(&mut self, plan: FaultPlan) {
        self.nand.set_faults(plan);
    }

    /// Switches the power on and rebuilds the drive's map.
    ///
    /// # Errors
    /// The power was cut again ([`DeviceError::PowerLost`]): the drive comes back as it was, to be recovered
    /// anew.
    pub fn recover(mut self) -> Result<(Drive, RecoveryReport), Box<(Self, DeviceError)>> {
        self.nand.power_on();
        let mut found = match scan(&self.config, &mut self.nand) {
            Ok(found) => found,
            Err(error) => return Err(Box::new((self, error))),
        };
        let mut drive = Drive::assemble(self.config, self.nand);
        drive.seq = Seq(found.last_seq.0 + 1);
        drive.adopt_lines();
        drive.adopt_pages(&found);
        if let Err(error) = drive.apply_discards(&mut found) {
            return Err(Box::new((drive.into_unrecovered(), error)));
        }
        drive.find_stranded();
        drive.journal.distrust(drive.bitmap_pages());
        found.report.duration = drive.nand.idle_from().since(SimTime::ZERO);
        Ok((drive, found.report))
    }
}

fn scan(config: &DriveConfig, nand: &mut Nand) -> Result<Scan, DeviceError> {
    let logical_pages = config.user_pages() + system_pages(config);
    let mut found = Scan {
        newest: vec![None; logical_pages as usize],
        report: RecoveryReport {
            pages_read: 0,
            torn_pages: 0,
            mapped_pages: 0,
            discarded_blocks: 0,
            lost_journal_pages: 0,
            duration: SimSpan::ZERO,
        },
        last_seq: Seq(0),
    };
    for block in (0..nand.geometry().blocks()).map(BlockId) {
        found.last_seq = found.last_seq.max(nand.last_seq(block));
        if nand.is_half_erased(block) {
            continue;
        }
        for page in 0..nand.programmed_pages(block) {
            let ppn = nand.geometry().ppn(block, page);
            found.see(ppn, read_oob(nand, ppn)?);
        }
    }
    Ok(found)
}

/// Reads a page's out-of-band area at the cost of a page read without its data; `None` where it is torn.
fn read_oob(nand: &mut Nand, ppn: Ppn) -> Result<Option<Oob>, DeviceError> {
    match nand.read(SimTime::ZERO, ppn, 0) {
        Ok(_) | Err(NandError::Unreadable(_)) => Ok(nand.oob(ppn)),
        Err(error) => Err(device_error(&error)),
    }
}

impl Scan {
    fn see(&mut self, ppn: Ppn, oob: Option<Oob>) {
        self.report.pages_read += 1;
        let Some(oob) = oob else {
            self.report.torn_pages += 1;
            return;
        };
        self.last_seq = self.last_seq.max(oob.seq);
        let newest = &mut self.newest[oob.lpn.0 as usize];
        if newest.is_none_or(|(seq, _)| oob.seq > seq) {
            *newest = Some((oob.seq, ppn));
        }
    }

    fn seq_of(&self, lpn: Lpn) -> Option<Seq> {
        self.newest[lpn.0 as usize].map(|(seq, _)| seq)
    }
}

impl Drive {
    fn adopt_lines(&mut self) {
        for line in self.lines.ids() {
            let erases = self.lines.blocks(line).map(|b| self.nand.erases(b)).max().unwrap_or(0);
            let missing = self.missing_pages(line);
            let found = self.line_as_found(line);
            self.lines.found(line, erases, missing, found);
        }
    }

    /// Says what a line is, and gives one that can be filled on to a frontier.
    fn line_as_found(&mut self, line: LineId) -> Found {
        let mut good = self.lines.blocks(line).filter(|&block| !self.nand.is_bad(block));
        let untouched = |block| self.nand.programmed_pages(block) == 0 && !self.nand.is_half_erased(block);
        if good.all(untouched) {
            return Found::Erased;
        }
        match self.next_page_of(line) {
            Some(next) if self.reopen(line, next) => Found::Open,
            _ => Found::Filled(self.filled_at(line)),
        }
    }

    /// The index from which on a line that was being filled can be filled on; `None` when its blocks were not
    /// filled in step (it was being erased) or it is full.
    fn next_page_of(&self, line: LineId) -> Option<u32> {
        let geometry = self.nand.geometry();
        let is_programmed = |index: u32| {
            let (block, page) = geometry.locate(self.lines.page(line, index));
            (!self.nand.is_bad(block)).then(|| page < self.nand.programmed_pages(block))
        };
        let half_erased = self.lines.blocks(line).any(|block| self.nand.is_half_erased(block));
        let pages = 0..self.lines.pages_per_line();
        let next = pages.clone().rev().find(|&index| is_programmed(index) == Some(true))? + 1;
        let in_step = pages.clone().take(next as usize).all(|index| is_programmed(index) != Some(false));
        (next < pages.end && in_step && !half_erased).then_some(next)
    }

    /// Gives a line to the first frontier that has no line in its place.
    fn reopen(&mut self, line: LineId, next: u32) -> bool {
        let slot = self.lines.group(line);
        let vacant = self.frontiers.iter_mut().find(|frontier| frontier.slots[slot].is_none());
        let Some(frontier) = vacant else { return false };
        frontier.slots[slot] = Some(OpenLine { line, next });
        true
    }

    fn filled_at(&self, line: LineId) -> Seq {
        self.lines.blocks(line).map(|block| self.nand.last_seq(block)).max().unwrap_or_default()
    }

    fn adopt_pages(&mut self, found: &Scan) {
        for (lpn, newest) in found.newest.iter().enumerate() {
            let Some((_, ppn)) = *newest else { continue };
            let lpn = Lpn(lpn as u32);
            self.adopt_parts(lpn, ppn);
            if self.live_mask(lpn) != 0 {
                self.map.update(lpn, Some(ppn));
                self.lines.adopt(ppn);
            }
        }
    }

    fn adopt_parts(&mut self, lpn: Lpn, ppn: Ppn) {
        let parts = u64::from(self.config.parts());
        let Some(live) = &mut self.live else { return };
        for part in 0..parts {
            let block = u64::from(lpn.0) * parts + part;
            if block < self.config.user_blocks
                && self.nand.token(ppn, part as usize) != dovetail_nand::Token::EMPTY
            {
                live.set(block);
            }
        }
    }

    /// Unmaps what the journal says is dead.
    fn apply_discards(&mut self, found: &mut Scan) -> Result<(), DeviceError> {
        let first = self.config.user_pages();
        for lpn in (first..first + system_pages(&self.config)).map(Lpn) {
            let Some((_, ppn)) = found.newest[lpn.0 as usize] else { continue };
            match self.read_system(ppn)? {
                Some(SystemPage::Journal(records)) => {
                    for record in records {
                        self.go_beyond(record.seq);
                        self.bury(found, record.range, record.seq);
                    }
                }
                Some(SystemPage::Bitmap { first, seq, bits }) => {
                    self.go_beyond(seq);
                    self.bury_bits(found, first, seq, &bits);
                }
                None => found.report.lost_journal_pages += 1,
            }
        }
        found.report.mapped_pages = self.lines.ids().map(|line| u64::from(self.lines.valid(line))).sum();
        Ok(())
    }

    /// New sequence numbers must be above those of discards, too.
    fn go_beyond(&mut self, seen: Seq) {
        self.seq = self.seq.max(Seq(seen.0 + 1));
    }

    fn bury_bits(&mut self, found: &mut Scan, first: Lba, seq: Seq, bits: &[u8]) {
        let room = self.config.user_blocks.saturating_sub(first.0).min(bits.len() as u64 * 8);
        for bit in (0..room).filter(|bit| bits[(bit / 8) as usize] >> (bit % 8) & 1 == 1) {
            self.bury(found, BlockRange::new(Lba(first.0 + bit), 1), seq);
        }
    }

    /// Versions of these blocks older than `seq` are dead.
    fn bury(&mut self, found: &mut Scan, range: BlockRange, seq: Seq) {
        let room = self.config.user_blocks.saturating_sub(range.start.0);
        for piece in self.pieces(BlockRange::new(range.start, range.blocks.min(room))) {
            if found.seq_of(piece.lpn).is_none_or(|newest| newest >= seq)
                || self.map.lookup(piece.lpn).0.is_none()
            {
                continue;
            }
            let mask = piece.mask() & self.live_mask(piece.lpn);
            found.report.discarded_blocks += u64::from(mask.count_ones());
            self.kill_parts(piece.lpn, mask);
        }
    }

    fn read_system(&mut self, ppn: Ppn) -> Result<Option<SystemPage>, DeviceError> {
        let page_bytes = self.nand.geometry().page_bytes;
        match self.nand.read(SimTime::ZERO, ppn, page_bytes) {
            Ok(_) => {}
            Err(NandError::Unreadable(_)) => return Ok(None),
            Err(error) => return Err(device_error(&error)),
        }
        let mut bytes = Vec::with_capacity(page_bytes as usize);
        for part in 0..self.config.parts() as usize {
            match self.nand.content(self.nand.token(ppn, part)) {
                Some(Content::Bytes(block)) => bytes.extend_from_slice(&block[..]),
                Some(_) => bytes.resize(bytes.len() + BLOCK_SIZE as usize, 0),
                None => return Ok(None),
            }
        }
        Ok(decode(&bytes))
    }

    /// Bad blocks that still hold valid pages are emptied with the next write.
    fn find_stranded(&mut self) {
        let geometry = *self.nand.geometry();
        let bad = (0..geometry.blocks()).map(BlockId).filter(|&block| self.nand.is_bad(block));
        let holds = |block: &BlockId| {
            (0..self.nand.programmed_pages(*block))
                .any(|page| self.lines.is_valid(geometry.ppn(*block, page)))
        };
        self.condemned = bad.filter(holds).collect();
    }
}
