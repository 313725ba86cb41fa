//! Power on after a cut: the map is rebuilt from the flash, and from non-volatile memory if the drive has it.
//!
//! Recovery only reads. First the drive's own pages are found and read: they say which pages were remapped and which
//! blocks were discarded. Then, of the pages with the same owner, the one with the greatest sequence number counts (for a
//! remapped page that of its remap), and what is said to be dead is dropped. Lines that were being filled are filled on
//! (otherwise a drive whose power is cut again and again would run out of free lines without ever finishing a
//! cleaning run), lines that were being erased are cleaned again. So power cuts during recovery change nothing.

use dovetail_block::{BlockRange, DeviceError, Lba};
use dovetail_nand::{BlockId, FaultPlan, Lpn, Nand, NandError, Oob, Ppn, Seq};
use dovetail_time::{SimSpan, SimTime};

use super::frontier::OpenLine;
use super::nvm::Survivor;
use super::reverse::Remapped;
use super::said::{Bitmap, Said};
use super::{Drive, device_error, system_pages};
use crate::config::DriveConfig;
use crate::lines::{Found, LineId};

/// A drive whose power was cut: only its flash is left, and its non-volatile memory.
#[derive(Debug)]
pub struct UnrecoveredDrive {
    config: DriveConfig,
    nand: Nand,
    nvm: Option<Survivor>,
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
    /// Pages on flash that do not belong to whom their out-of-band area names: remapped since.
    pub remapped_pages: u64,
    /// Pages of the journal itself that could not be read: discards and remaps in them may be undone.
    pub lost_journal_pages: u64,
    /// How long it took.
    pub duration: SimSpan,
}

/// The newest version of each logical page.
struct Scan {
    newest: Vec<Option<(Seq, Ppn)>>,
    said: Said,
    report: RecoveryReport,
    last_seq: Seq,
}

impl UnrecoveredDrive {
    pub(super) fn new(config: DriveConfig, nand: Nand, nvm: Option<Survivor>) -> Self {
        Self { config, nand, nvm }
    }

    /// The drive around a flash that was kept, without non-volatile memory.
    pub(crate) fn from_flash(config: DriveConfig, nand: Nand) -> Self {
        Self::new(config, nand, None)
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
        if let Some(nvm) = &mut self.nvm {
            nvm.redo();
        }
        let mut found = match scan(&self.config, &mut self.nand, self.nvm.as_ref()) {
            Ok(found) => found,
            Err(error) => return Err(Box::new((self, error))),
        };
        let mut drive = Drive::assemble(self.config, self.nand);
        drive.seq = Seq(found.last_seq.max(found.said.last_seq).0 + 1);
        drive.adopt_lines();
        drive.adopt_pages(&found);
        drive.apply_discards(&mut found);
        drive.find_stranded();
        drive.journal.distrust(drive.bitmap_pages());
        found.report.duration = drive.nand.idle_from().since(SimTime::ZERO);
        drive.adopt_remaps(found.said);
        if let Some(survivor) = self.nvm {
            drive.adopt_survivor(survivor);
        }
        Ok((drive, found.report))
    }
}

fn scan(config: &DriveConfig, nand: &mut Nand, survivor: Option<&Survivor>) -> Result<Scan, DeviceError> {
    let mut found = Scan::new(config, Said::new(nand, survivor));
    let pages = programmed_pages(nand);
    for &ppn in &pages {
        found.count(read_oob(nand, ppn)?);
    }
    // Owners are known only when the drive's own pages are read; those are never remapped.
    let is_system = |oob: Oob| oob.lpn.0 >= config.user_pages();
    for &ppn in &pages {
        nand.oob(ppn).filter(|&oob| is_system(oob)).into_iter().for_each(|oob| found.see(ppn, oob));
    }
    for (_, ppn) in found.newest[config.user_pages() as usize..].iter().flatten() {
        found.said.read(nand, *ppn)?;
    }
    found.said.complete(|ppn| nand.oob(ppn));
    for &ppn in &pages {
        nand.oob(ppn).filter(|&oob| !is_system(oob)).into_iter().for_each(|oob| found.see(ppn, oob));
    }
    for block in (0..nand.geometry().blocks()).map(BlockId) {
        found.last_seq = found.last_seq.max(nand.last_seq(block));
    }
    Ok(found)
}

/// Every programmed page, by block.
fn programmed_pages(nand: &Nand) -> Vec<Ppn> {
    let geometry = *nand.geometry();
    let readable = (0..geometry.blocks()).map(BlockId).filter(|&block| !nand.is_half_erased(block));
    let pages = |block| (0..nand.programmed_pages(block)).map(move |page| geometry.ppn(block, page));
    readable.flat_map(pages).collect()
}

/// Reads a page's out-of-band area at the cost of a page read without its data; `None` where it is torn.
fn read_oob(nand: &mut Nand, ppn: Ppn) -> Result<Option<Oob>, DeviceError> {
    match nand.read(SimTime::ZERO, ppn, 0) {
        Ok(_) | Err(NandError::Unreadable(_)) => Ok(nand.oob(ppn)),
        Err(error) => Err(device_error(&error)),
    }
}

impl Scan {
    fn new(config: &DriveConfig, said: Said) -> Self {
        let logical_pages = config.user_pages() + system_pages(config);
        let report = RecoveryReport {
            pages_read: 0,
            torn_pages: 0,
            mapped_pages: 0,
            discarded_blocks: 0,
            remapped_pages: 0,
            lost_journal_pages: 0,
            duration: SimSpan::ZERO,
        };
        Self { newest: vec![None; logical_pages as usize], said, report, last_seq: Seq(0) }
    }

    fn count(&mut self, oob: Option<Oob>) {
        self.report.pages_read += 1;
        self.report.torn_pages += u64::from(oob.is_none());
    }

    fn see(&mut self, ppn: Ppn, oob: Oob) {
        self.last_seq = self.last_seq.max(oob.seq);
        let (lpn, seq) = match self.said.reverse.get(ppn) {
            Some(Remapped { lpn, seq }) => (lpn, seq),
            None => (oob.lpn, oob.seq),
        };
        let newest = &mut self.newest[lpn.0 as usize];
        if newest.is_none_or(|(present, _)| seq > present) {
            *newest = Some((seq, ppn));
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
    fn apply_discards(&mut self, found: &mut Scan) {
        for record in std::mem::take(&mut found.said.records) {
            self.bury(found, record.range, record.seq);
        }
        for Bitmap { first, seq, bits } in std::mem::take(&mut found.said.bitmaps) {
            self.bury_bits(found, first, seq, &bits);
        }
        found.report.lost_journal_pages = found.said.lost;
        found.report.mapped_pages = self.lines.ids().map(|line| u64::from(self.lines.valid(line))).sum();
        found.report.remapped_pages = found.said.reverse.iter().count() as u64;
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
