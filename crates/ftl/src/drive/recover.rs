//! Power on after a cut: the map is rebuilt from the flash, and from non-volatile memory if the
//! drive has it.
//!
//! Recovery only reads. First the drive's own pages are found and read: they say which pages were
//! remapped and what is dead. Then, of the pages with the same owner, the one with the greatest
//! sequence number counts (for a remapped page that of its remap), and only then what is said to be
//! dead of it is dropped: as long as it is there, it keeps older versions from counting, of which
//! nothing may be said yet. No more memory is needed than for the map itself. Lines that were being
//! filled are filled on (otherwise a drive whose power is cut again and again would run out of free
//! lines without ever finishing a cleaning run), lines that were being erased are cleaned again. So
//! power cuts during recovery change nothing.

use dovetail_block::DeviceError;
use dovetail_nand::{FaultPlan, Lpn, Nand, Oob, Ppn, Seq, Token};
use dovetail_time::{SimSpan, SimTime};

use super::Drive;
use super::capacitors::Kept;
use crate::cache::TranslationPage;
use crate::config::DriveConfig;
use crate::medium::UnrecoveredMedium;
use crate::metadata::{Invalidations, RecoveredMetadata, system_pages};
use crate::ownership::{Remapped, Survivor};
use crate::translation::{FoundTranslations, first_translation};

/// A drive whose power was cut: only its flash is left, and its non-volatile memory.
#[derive(Debug)]
pub struct UnrecoveredDrive {
    config: DriveConfig,
    flash: UnrecoveredMedium,
    nvm: Option<Survivor>,
    kept: Option<Kept>,
}

/// The findings of a recovery.
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
    /// Pages of the drive's own that could not be read, or tell of pages that there are not:
    /// discards and remaps in them may be undone.
    pub lost_journal_pages: u64,
    /// Duration of the recovery.
    pub duration: SimSpan,
}

/// The pages found on flash.
struct Scan {
    /// The first of the drive's own pages, and of its translation pages.
    first_own: u64,
    first_translation: u64,
    /// Every programmed page, by block.
    pages: Vec<Ppn>,
    /// The newest copy of each page of the drive's own.
    own: Vec<Option<(Seq, Ppn)>>,
    /// The newest copy of each translation page.
    translations: FoundTranslations,
    metadata: RecoveredMetadata,
    report: RecoveryReport,
    last_seq: Seq,
}

impl UnrecoveredDrive {
    pub(super) fn new(
        config: DriveConfig,
        flash: UnrecoveredMedium,
        nvm: Option<Survivor>,
        kept: Option<Kept>,
    ) -> Self {
        Self { config, flash, nvm, kept }
    }

    /// The drive around a flash that was kept, without non-volatile memory.
    pub(crate) fn from_flash(config: DriveConfig, nand: Nand) -> Self {
        Self::new(config, UnrecoveredMedium::new(nand), None, None)
    }

    /// Another one like it.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self {
            config: self.config.clone(),
            flash: self.flash.copy(),
            nvm: self.nvm.clone(),
            kept: self.kept.clone(),
        }
    }

    /// Reads, programs and erases of the flash so far: recovery goes on counting from here.
    pub fn flash_operations(&self) -> u64 {
        self.flash.nand().operations()
    }

    /// Puts faults over the flash, a power cut during recovery for example.
    pub fn set_faults(&mut self, plan: FaultPlan) {
        self.flash.set_faults(plan);
    }

    /// Switches the power on and rebuilds the drive's map.
    ///
    /// # Errors
    /// The power was cut again ([`DeviceError::PowerLost`]): the drive comes back as it was, to be
    /// recovered anew.
    pub fn recover(mut self) -> Result<(Drive, RecoveryReport), Box<(Self, DeviceError)>> {
        self.flash.power_on();
        if let Some(nvm) = &mut self.nvm {
            nvm.redo();
        }
        let mut found =
            match scan(&self.config, &mut self.flash, self.nvm.as_ref(), self.kept.as_ref()) {
                Ok(found) => found,
                Err(error) => return Err(Box::new((self, error))),
            };
        let next_seq = Seq(found.last_seq.max(found.metadata.last_seq()).0 + 1);
        let medium = self.flash.recover(self.config.shape, &self.config.frontiers(), next_seq);
        let mut drive = Drive::assemble(self.config, medium);
        drive.adopt_own_pages(&found.own);
        found.report.lost_journal_pages = found.metadata.lost();
        found.report.remapped_pages = found.metadata.remapped();
        let invalidations = found.metadata.take_invalidations();
        let (batches, reverse) = (found.metadata.take_batches(), found.metadata.take_reverse());
        drive.ownership.adopt(reverse, found.metadata.logged(), found.metadata.lost() > 0);
        drive.map_newest(&found.pages);
        found.report.discarded_blocks = drive.bury(&found.pages, &invalidations);
        drive.adopt_translations(&found.translations);
        found.report.mapped_pages = drive
            .medium
            .lines()
            .ids()
            .map(|line| u64::from(drive.medium.lines().valid(line)))
            .sum();
        drive.adopt_renames(batches);
        drive.medium.condemn_stranded();
        drive.adopt_logs();
        drive.journal.resume();
        drive.compare_bitmaps(&found.pages, &invalidations);
        found.report.duration = drive.medium.nand().idle_from().since(SimTime::ZERO);
        if let Some(survivor) = self.nvm {
            drive.adopt_survivor(survivor);
        }
        if let Some(kept) = self.kept {
            drive.restore_kept(kept);
        }
        Ok((drive, found.report))
    }
}

fn scan(
    config: &DriveConfig,
    flash: &mut UnrecoveredMedium,
    survivor: Option<&Survivor>,
    kept: Option<&Kept>,
) -> Result<Scan, DeviceError> {
    let records = kept.map_or(&[][..], Kept::records);
    let metadata = RecoveredMetadata::new(config, survivor, records);
    let mut found = Scan::new(config, flash.programmed_pages(), metadata);
    for index in 0..found.pages.len() {
        let ppn = found.pages[index];
        let oob = flash.read_oob(ppn)?;
        found.add(ppn, oob);
    }
    for (_, ppn) in found.own.iter().flatten() {
        found.metadata.read(flash, *ppn)?;
    }
    for (_, ppn, readable) in found.translations.values_mut() {
        *readable = flash.read_page(*ppn)?;
    }
    found.metadata.complete(|ppn| flash.nand().oob(ppn));
    found.last_seq = found.last_seq.max(flash.last_seq());
    Ok(found)
}

impl Scan {
    fn new(config: &DriveConfig, pages: Vec<Ppn>, metadata: RecoveredMetadata) -> Self {
        let report = RecoveryReport {
            pages_read: 0,
            torn_pages: 0,
            mapped_pages: 0,
            discarded_blocks: 0,
            remapped_pages: 0,
            lost_journal_pages: 0,
            duration: SimSpan::ZERO,
        };
        let own = vec![None; system_pages(config) as usize];
        let translations = FoundTranslations::new();
        Self {
            first_own: config.host_pages(),
            first_translation: first_translation(config, system_pages(config)),
            pages,
            own,
            translations,
            metadata,
            report,
            last_seq: Seq(0),
        }
    }

    fn add(&mut self, ppn: Ppn, oob: Option<Oob>) {
        self.report.pages_read += 1;
        self.report.torn_pages += u64::from(oob.is_none());
        let Some(oob) = oob else { return };
        self.last_seq = self.last_seq.max(oob.seq);
        if let Some(index) = oob.lpn.0.checked_sub(self.first_translation) {
            return self.add_translation(TranslationPage(index), ppn, oob.seq);
        }
        // Pages of the drive's own are never remapped.
        let index = oob.lpn.0.checked_sub(self.first_own);
        let newest = index.and_then(|index| self.own.get_mut(usize::try_from(index).ok()?));
        if index.is_some() && newest.is_none() {
            self.metadata.count_lost();
        }
        if let Some(newest) =
            newest.filter(|newest| newest.is_none_or(|(present, _)| oob.seq > present))
        {
            *newest = Some((oob.seq, ppn));
        }
    }

    fn add_translation(&mut self, page: TranslationPage, ppn: Ppn, seq: Seq) {
        let newest = self.translations.entry(page).or_insert((seq, ppn, false));
        if seq > newest.0 {
            *newest = (seq, ppn, false);
        }
    }
}

impl Drive {
    fn adopt_own_pages(&mut self, newest: &[Option<(Seq, Ppn)>]) {
        for (lpn, newest) in (self.config.host_pages()..).map(Lpn).zip(newest) {
            let Some((_, ppn)) = *newest else { continue };
            self.point_at(lpn, Some(ppn));
            self.medium.adopt(ppn, self.medium.full_mask());
        }
    }

    /// Takes over the translation pages of a demand-paged map, and owes those that say something
    /// else than the map.
    fn adopt_translations(&mut self, found: &FoundTranslations) {
        if !self.translation.is_paged() {
            return;
        }
        let full = self.medium.full_mask();
        for ppn in self.translation.adopt_directory(found) {
            self.medium.adopt(ppn, full);
        }
        let mapped: Vec<Lpn> = self.host_pages_on_flash().collect();
        self.translation.begin_behind(self.medium.nand(), found, mapped.into_iter());
    }

    /// Whom a page of the host's belongs to, and as a version of what age; `None` for others, and
    /// torn ones.
    fn version(&self, ppn: Ppn) -> Option<(Lpn, Seq)> {
        let oob = self.medium.nand().oob(ppn).filter(|oob| !self.translation.is_own(oob.lpn))?;
        match self.ownership.remapped(ppn) {
            Some(Remapped { lpn, seq }) => Some((lpn, seq)),
            None => Some((oob.lpn, oob.seq)),
        }
    }

    /// Points the map at the newest version of each page, dead or not. Nothing counts by that yet.
    fn map_newest(&mut self, pages: &[Ppn]) {
        for &ppn in pages {
            let Some((lpn, seq)) = self.version(ppn) else { continue };
            let present = self.translation.lookup(lpn).0.and_then(|present| self.version(present));
            if present.is_none_or(|(_, present)| seq > present) {
                self.point_at(lpn, Some(ppn));
            }
        }
    }

    /// Unmaps what is dead, and makes the rest count; returns how many blocks are dead of those
    /// that the map would have.
    fn bury(&mut self, pages: &[Ppn], invalidations: &Invalidations) -> u64 {
        let (subpages, mut buried) = (self.config.subpages(), 0);
        for &ppn in pages {
            let Some((lpn, seq)) = self.version(ppn) else { continue };
            if self.translation.lookup(lpn).0 != Some(ppn) {
                continue;
            }
            let written = self.written_subpages(ppn);
            let live =
                written & !invalidations.of_page(ppn, lpn.0 * u64::from(subpages), seq, subpages);
            buried += u64::from((written & !live).count_ones());
            if live == 0 {
                self.point_at(lpn, None);
            } else {
                self.medium.adopt(ppn, live);
            }
        }
        buried
    }

    /// Finds out how far the journal's bitmap pages lag behind what counts now, and whether there
    /// are ghosts.
    fn compare_bitmaps(&mut self, pages: &[Ppn], invalidations: &Invalidations) {
        let subpages = self.config.subpages();
        for &ppn in pages {
            let Some((lpn, seq)) = self.version(ppn) else { continue };
            let dead = self.written_subpages(ppn) & !self.medium.counting_mask(ppn);
            if dead & !invalidations.in_bitmap(ppn, seq, subpages) == 0 {
                continue;
            }
            self.journal.touch(ppn);
            let unsaid =
                dead & !invalidations.of_page(ppn, lpn.0 * u64::from(subpages), seq, subpages);
            if unsaid != 0 && self.translation.lookup(lpn).0.is_none() {
                self.journal.found_ghost();
            }
        }
    }

    /// The subpages of a page that had content when it was programmed; of one that is a single
    /// subpage, that one.
    fn written_subpages(&self, ppn: Ppn) -> u8 {
        let subpages = self.config.subpages();
        let written = |subpage: &u32| {
            subpages == 1 || self.medium.nand().token(ppn, *subpage as usize) != Token::EMPTY
        };
        (0..subpages).filter(written).map(|subpage| 1 << subpage).sum()
    }
}
