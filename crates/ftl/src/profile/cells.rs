//! Cells, their modes, and what reads have to do with them.

use dovetail_nand::{BusPhases, Cells, Geometry, MOST_BITS, Retry, SingleTiming, Suspend};
use dovetail_time::SimSpan;

use super::schema::Times4;
use super::{Profile, ProfileError};
use crate::single::{SingleCache, WhenFull};

impl Profile {
    /// Bits of a cell; 1 where pages are all alike.
    fn bits(&self) -> Result<u32, ProfileError> {
        match self.flash.cell.as_deref() {
            None | Some("slc") => Ok(1),
            Some("mlc") => Ok(2),
            Some("tlc") => Ok(3),
            Some("qlc") => Ok(4),
            Some(other) => Err(self.value("flash.cell", other, "slc, mlc, tlc or qlc".into())),
        }
    }

    /// Pages of the model in a page of the flash: one, unless the map names parts of it.
    pub(super) fn parts(&self) -> Result<u32, ProfileError> {
        let page = self.bytes("flash.page", &self.flash.page)?;
        let Some(unit) = &self.flash.map_unit else { return Ok(1) };
        let bytes = self.bytes("flash.map_unit", unit)?;
        if matches!(bytes, 4096 | 8192 | 16384) && bytes <= page {
            return Ok((page / bytes) as u32);
        }
        let allowed = "4KiB, 8KiB or 16KiB, and at most a page".into();
        Err(self.value("flash.map_unit", unit, allowed))
    }

    fn is_one_shot(&self) -> Result<bool, ProfileError> {
        match self.flash.program.as_deref() {
            None | Some("page") => Ok(false),
            Some("one-shot") => Ok(true),
            Some(other) => Err(self.value("flash.program", other, "one-shot or page".into())),
        }
    }

    pub(super) fn planes_read_apart(&self) -> Result<bool, ProfileError> {
        match self.flash.plane_reads.as_deref() {
            None | Some("together") => Ok(false),
            Some("apart") => Ok(true),
            Some(other) => Err(self.value("flash.plane_reads", other, "together or apart".into())),
        }
    }

    /// The cells of a drive whose pages are told apart.
    pub(super) fn cells(&self) -> Result<Option<Cells>, ProfileError> {
        let (bits, one_shot) = (self.bits()?, self.is_one_shot()?);
        let parts = self.parts()?;
        if one_shot && bits == 1 {
            let allowed = "page, where a cell has one bit".into();
            return Err(self.value("flash.program", "one-shot", allowed));
        }
        if self.flash.pages_per_block % i64::from(bits) != 0 {
            let allowed = format!("a multiple of the {bits} bits of a cell");
            let pages = self.flash.pages_per_block.to_string();
            return Err(self.value("flash.pages_per_block", &pages, allowed));
        }
        if bits == 1 && parts == 1 {
            return Ok(None);
        }
        if one_shot && matches!(self.timing.program_us, Times4::ByPage(_)) {
            let allowed = "one number with program = \"one-shot\": the time of a word line";
            return Err(self.value("timing.program_us", "a list", allowed.into()));
        }
        let read = self.by_page("timing.read_us", &self.timing.read_us, bits)?;
        let program = self.by_page("timing.program_us", &self.timing.program_us, bits)?;
        Ok(Some(Cells { bits, one_shot, parts, read, program }))
    }

    fn by_page(
        &self,
        key: &'static str,
        times: &Times4,
        bits: u32,
    ) -> Result<[SimSpan; MOST_BITS], ProfileError> {
        let mut spans = [SimSpan::ZERO; MOST_BITS];
        match times {
            Times4::All(us) => spans = [self.us(key, *us)?; MOST_BITS],
            Times4::ByPage(list) if list.len() == bits as usize => {
                for (span, us) in spans.iter_mut().zip(list) {
                    *span = self.us(key, *us)?;
                }
            }
            Times4::ByPage(list) => {
                let allowed = format!("one, or one for each of the {bits} pages of a word line");
                return Err(self.value(key, &format!("{} times", list.len()), allowed));
            }
        }
        Ok(spans)
    }

    /// The time of a page, or the mean of those of a word line.
    pub(super) fn mean(&self, key: &'static str, times: &Times4) -> Result<SimSpan, ProfileError> {
        match times {
            Times4::All(us) => self.us(key, *us),
            Times4::ByPage(list) => {
                let bits = self.bits()?;
                let spans = self.by_page(key, times, bits)?;
                let sum: u64 = spans[..list.len()].iter().map(|span| span.as_ns()).sum();
                Ok(SimSpan::from_ns(sum / u64::from(bits)))
            }
        }
    }

    /// Pages of a scaled block: whole word lines, at least `least` pages.
    pub(super) fn whole_word_lines(&self, pages: f64, least: f64) -> Result<f64, ProfileError> {
        let bits = f64::from(self.bits()? * self.parts()?);
        let whole = |pages: f64| (pages / bits).round() * bits;
        Ok(whole(pages).max((least / bits).ceil() * bits))
    }

    pub(super) fn single_timing(
        &self,
        blocks_by: f64,
    ) -> Result<Option<SingleTiming>, ProfileError> {
        let Some(slc) = &self.slc else { return Ok(None) };
        Ok(Some(SingleTiming {
            read: self.us("slc.read_us", slc.read_us)?,
            program: self.us("slc.program_us", slc.program_us)?,
            erase: self.us("slc.erase_us", slc.erase_us * blocks_by)?,
        }))
    }

    /// The cache shrinks with the drive, in lines: rounded, and a line at least where there is one.
    /// One of no size is none.
    pub(super) fn single_cache(
        &self,
        geometry: &Geometry,
        scale: f64,
    ) -> Result<Option<SingleCache>, ProfileError> {
        let Some(slc) = &self.slc else { return Ok(None) };
        let line = u64::from(geometry.units() * geometry.pages_per_block / self.bits()?)
            * u64::from(geometry.page_bytes);
        let lines = |key, text| -> Result<u32, ProfileError> {
            let bytes = self.bytes(key, text)? as f64 * scale;
            Ok(if bytes == 0.0 { 0 } else { (bytes / line as f64).round().max(1.0) as u32 })
        };
        let share =
            |key, percent| Ok::<_, ProfileError>(self.range(key, percent, 0.0, 100.0)? / 100.0);
        let (static_lines, dynamic_lines) = (
            lines("slc.static_size", &slc.static_size)?,
            lines("slc.dynamic_size", &slc.dynamic_size)?,
        );
        if (static_lines, dynamic_lines) == (0, 0) {
            return Ok(None);
        }
        let shrink_from = share("slc.shrink_from_percent", slc.shrink_from_percent)?;
        let shrink_to = share("slc.shrink_to_percent", slc.shrink_to_percent)?;
        let when_full = match slc.when_full.as_str() {
            "direct" => WhenFull::Direct,
            "fold" => WhenFull::Fold,
            other => return Err(self.value("slc.when_full", other, "direct or fold".into())),
        };
        Ok(Some(SingleCache {
            static_lines,
            dynamic_lines,
            shrink_from,
            shrink_to: shrink_to.max(shrink_from),
            when_full,
            fold_after: slc.fold_idle_us.map(|us| self.us("slc.fold_idle_us", us)).transpose()?,
        }))
    }

    /// Erases of smaller blocks are shorter, and what they lose by a suspension with them.
    pub(super) fn suspend(&self, blocks_by: f64) -> Result<Option<Suspend>, ProfileError> {
        let Some(suspend) = &self.suspend else { return Ok(None) };
        Ok(Some(Suspend {
            program: self.us("suspend.program_us", suspend.program_us)?,
            erase: self.us("suspend.erase_us", suspend.erase_us * blocks_by)?,
            most_times: self.int("suspend.most_times", suspend.most_times, 0, 1_000_000)?,
        }))
    }

    /// Commands on the channels, and parity with the data.
    pub(super) fn bus(&self) -> Result<Option<BusPhases>, ProfileError> {
        let Some(bus) = &self.bus else { return Ok(None) };
        let parity = self.range("bus.parity_percent", bus.parity_percent, 0.0, 100.0)?;
        Ok(Some(BusPhases {
            read_command: self.us("bus.read_command_us", bus.read_command_us)?,
            program_command: self.us("bus.program_command_us", bus.program_command_us)?,
            parity_per_mille: (parity * 10.0).round() as u32,
        }))
    }

    /// Figures of read retries; the reads of a step shrink with the pages of a block.
    pub(super) fn retry(&self, blocks_by: f64) -> Result<Option<Retry>, ProfileError> {
        let Some(retry) = &self.retry else { return Ok(None) };
        let per = |key, each: f64| {
            let each = self.range(key, each, 0.0, 1e12)?;
            Ok::<_, ProfileError>(if each == 0.0 { 0.0 } else { 1.0 / each })
        };
        Ok(Some(Retry {
            step: self.us("retry.step_us", retry.step_us)?,
            steps_per_erase: per("retry.erases_per_step", retry.erases_per_step)?,
            steps_per_read: per("retry.reads_per_step", retry.reads_per_step)? / blocks_by,
            steps_per_day: per("retry.days_per_step", retry.days_per_step)?,
            days_at_start: self.range("retry.days_at_start", retry.days_at_start, 0.0, 1e6)?,
            most: self.int("retry.most", retry.most, 0, 1000)?,
        }))
    }

    /// Reads of a block after which its line is rewritten; they shrink with its pages.
    pub(super) fn refresh_reads(&self, blocks_by: f64) -> Result<Option<u32>, ProfileError> {
        let reads = self.retry.as_ref().and_then(|retry| retry.refresh_reads);
        let scaled = |reads: u32| ((f64::from(reads) * blocks_by).round() as u32).max(1);
        reads
            .map(|reads| Ok(scaled(self.int("retry.refresh_reads", reads, 1, 1 << 31)?)))
            .transpose()
    }
}
