//! A job file, read and checked.

use super::check;
use super::error::FioError;
use super::ini::{Line, Section, sections};
use super::options::{self, JobOption, Rejected};
use super::settings::{Generator, Settings};
use super::suggest::nearest;
use super::text::{JobText, SectionText};
use super::value::Value;
use super::variables::{Unexpanded, Variables};

/// The jobs of a job file, in its order.
#[derive(Clone, Debug)]
pub struct JobFile {
    pub(super) name: String,
    pub(super) globals: Vec<(String, String)>,
    pub(super) jobs: Vec<Job>,
    texts: Vec<SectionText>,
    source: String,
    variables: Variables,
}

/// One section that is not global.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub name: String,
    pub line: u32,
    pub options: Vec<(String, String)>,
    pub settings: Settings,
}

/// An option of a line, its value expanded.
struct Given<'a> {
    line: &'a Line<'a>,
    option: &'static JobOption,
    value: String,
}

/// Reads lines of one file.
struct Parser<'a> {
    file: &'a str,
    variables: &'a Variables,
}

impl JobFile {
    /// Reads the text of a job file; `name` is what messages call it.
    ///
    /// # Errors
    /// Error of the first bad line, or of the first job whose options do not go together.
    pub fn parse(text: &str, name: &str, variables: &Variables) -> Result<Self, FioError> {
        let parser = Parser { file: name, variables };
        let (mut defaults, mut globals, mut jobs) = (Settings::default(), Vec::new(), Vec::new());
        let mut texts = Vec::new();
        for section in &sections(text, name)? {
            let kilo = if section.is_global() {
                globals.extend(parser.read(section, &mut defaults)?);
                defaults.kilo
            } else {
                let job = parser.job(section, &defaults)?;
                let kilo = job.settings.kilo;
                jobs.push(job);
                kilo
            };
            texts.push(parser.text(section, kilo)?);
        }
        if jobs.is_empty() {
            return Err(FioError::NoJobs { file: name.to_owned() });
        }
        let (source, variables) = (text.to_owned(), variables.clone());
        let file = Self { name: name.to_owned(), globals, jobs, texts, source, variables };
        check::check(&file)?;
        Ok(file)
    }

    /// The text that was read.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The variables that were given, with their values.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter()
    }

    /// The same jobs with all sizes (files, offsets, amounts of I/O; not blocks, not times) shrunk
    /// to `share` of theirs, above 0 and at most 1, in whole pages.
    #[must_use]
    pub fn scaled(&self, share: f64) -> Self {
        let job = |job: &Job| Job { settings: job.settings.scaled(share), ..job.clone() };
        Self { jobs: self.jobs.iter().map(job).collect(), ..self.clone() }
    }

    /// The jobs as fio reads them, variables expanded, all sizes shrunk as [`Self::scaled`] does,
    /// with their files below the folder `root`.
    pub fn to_text(&self, share: f64, root: &str) -> JobText {
        let mut jobs = JobText { text: String::new(), folders: Vec::new() };
        self.texts.iter().for_each(|section| section.add_to(&mut jobs, share, root));
        jobs
    }

    /// Some threads go through a file in the order of a shift register (`random_generator=lfsr`).
    pub fn has_registers(&self) -> bool {
        self.jobs.iter().any(|job| job.settings.generator == Generator::Lfsr)
    }

    /// The phase of each of fio's groups, by its number: groups of one phase run at a time, a
    /// `stonewall` begins the next one.
    pub fn phases(&self) -> Vec<usize> {
        let mut phases = vec![0];
        for settings in self.jobs.iter().skip(1).map(|job| &job.settings) {
            let last = phases.last().copied().unwrap_or(0);
            if settings.stonewall || settings.new_group {
                phases.push(last + usize::from(settings.stonewall));
            }
        }
        phases
    }

    /// The job that a job of that name waits for (`wait_for`).
    pub fn waits_for(&self, name: &str) -> Option<&str> {
        self.named(name).find_map(|settings| settings.wait_for.as_deref())
    }

    /// The longest time after which a job of that name begins (`startdelay`), in ns.
    pub fn start_delay_ns(&self, name: &str) -> u64 {
        self.named(name).map(|settings| settings.startdelay_ns.1).max().unwrap_or(0)
    }

    /// The longest time that a job of that name is not measured (`ramp_time`), in ns.
    pub fn ramp_ns(&self, name: &str) -> u64 {
        self.named(name).map(|settings| settings.ramp_ns).max().unwrap_or(0)
    }

    /// Time from the begin to the first call that counts, behind a `startdelay` and a `ramp_time`,
    /// in ns.
    pub fn unmeasured_ns(&self) -> u64 {
        let later = self.jobs.iter().skip(1).position(|job| job.settings.stonewall);
        let first_phase = &self.jobs[..later.map_or(self.jobs.len(), |jobs| jobs + 1)];
        let at_once = first_phase.iter().filter(|job| job.settings.wait_for.is_none());
        let counts =
            at_once.map(|Job { settings, .. }| settings.startdelay_ns.1 + settings.ramp_ns);
        counts.min().unwrap_or(0)
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &Settings> {
        self.jobs.iter().filter(move |job| job.name == name).map(|job| &job.settings)
    }

    /// Name of the file in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The options of the global sections, as given.
    pub fn global_options(&self) -> &[(String, String)] {
        &self.globals
    }

    /// An error about one job.
    pub(super) fn job_error(&self, job: &Job, problem: impl Into<String>) -> FioError {
        FioError::Job {
            file: self.name.clone(),
            line: job.line,
            job: job.name.clone(),
            problem: problem.into(),
        }
    }
}

impl Parser<'_> {
    fn job(&self, section: &Section<'_>, defaults: &Settings) -> Result<Job, FioError> {
        let mut settings = defaults.clone();
        let options = self.read(section, &mut settings)?;
        let name = settings.name.clone().unwrap_or_else(|| section.name.to_owned());
        Ok(Job { name, line: section.line, options, settings })
    }

    /// Applies a section's options; returns them as results show them.
    fn read(
        &self,
        section: &Section<'_>,
        settings: &mut Settings,
    ) -> Result<Vec<(String, String)>, FioError> {
        let given: Vec<Given<'_>> =
            section.options.iter().map(|line| self.given(line)).collect::<Result<_, _>>()?;
        // `kb_base` says how the others are read, wherever it stands.
        let (units, others): (Vec<_>, Vec<_>) =
            given.iter().partition(|given| given.option.name == "kb_base");
        for given in units.into_iter().chain(others) {
            self.apply(given, settings)?;
        }
        // fio shows neither aliases nor options without a value.
        let shown = given.into_iter().filter(|given| given.line.value.is_some());
        Ok(shown.map(|given| (given.option.name.to_owned(), given.value)).collect())
    }

    fn text(&self, section: &Section<'_>, kilo: u64) -> Result<SectionText, FioError> {
        let option = |line: &Line<'_>| {
            let Given { option, value, line } = self.given(line)?;
            Ok((option, line.value.map(|_| value)))
        };
        let options = section.options.iter().map(option).collect::<Result<_, _>>()?;
        Ok(SectionText { name: section.name.to_owned(), options, kilo })
    }

    fn given<'a>(&self, line: &'a Line<'a>) -> Result<Given<'a>, FioError> {
        let file = || self.file.to_owned();
        let option = options::find(line.name).ok_or_else(|| FioError::UnknownOption {
            file: file(),
            line: line.number,
            option: line.name.to_owned(),
            nearest: nearest(line.name),
        })?;
        let value = match line.value {
            Some(value) => self.expand(value, line.number)?,
            None if option.bare => "1".to_owned(),
            None => {
                return Err(FioError::NoValue {
                    file: file(),
                    line: line.number,
                    option: line.name.to_owned(),
                });
            }
        };
        Ok(Given { line, option, value })
    }

    fn expand(&self, value: &str, line: u32) -> Result<String, FioError> {
        self.variables.expand(value).map_err(|unexpanded| {
            let (variable, help) = match unexpanded {
                Unexpanded::Unknown(name) => (format!("${{{name}}}"), "give it one: -D NAME=VALUE"),
                Unexpanded::Unclosed => (format!("\"{value}\""), "close ${NAME} with a brace"),
                Unexpanded::Machine(word) => (word.to_owned(), "write the number that you mean"),
            };
            FioError::Variable { file: self.file.to_owned(), line, variable, help }
        })
    }

    fn apply(&self, given: &Given<'_>, settings: &mut Settings) -> Result<(), FioError> {
        let value = Value { text: &given.value, kilo: settings.kilo };
        let (file, line) = (|| self.file.to_owned(), given.line.number);
        given.option.apply(settings, value).map_err(|rejected| match rejected {
            Rejected::Unsupported => {
                let JobOption { name: option, about, .. } = *given.option;
                let instead = if about.is_empty() { "remove the line" } else { about };
                FioError::UnsupportedOption { file: file(), line, option, instead }
            }
            Rejected::Value(expected) => FioError::BadValue {
                file: file(),
                line,
                option: given.line.name.to_owned(),
                expected,
                value: given.value.clone(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::Extent;
    use super::*;

    fn parse(text: &str) -> Result<JobFile, FioError> {
        JobFile::parse(text, "job.fio", &Variables::from_iter([("SIZE", "64m")]))
    }

    fn message(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn jobs_inherit_the_global_sections_above_them() {
        let file = parse("[global]\nbs=8k\n[a]\n[global]\nbs=16k\nsize=${SIZE}\n[b]\niodepth=4\n")
            .unwrap();
        let blocks: Vec<u64> = file.jobs.iter().map(|job| job.settings.blocks[0].min).collect();
        assert_eq!(blocks, [8192, 16384]);
        assert_eq!(file.jobs[1].options, [("iodepth".to_owned(), "4".to_owned())]);
        assert_eq!(file.global_options().last().unwrap().1, "64m");
    }

    #[test]
    fn sizes_shrink_and_blocks_and_shares_stay() {
        let file = parse("[a]\nbs=8k\nsize=64m\nio_size=1g\noffset=50%\nnumber_ios=100\n")
            .unwrap()
            .scaled(1.0 / 16.0);
        let settings = &file.jobs[0].settings;
        assert_eq!(settings.size, Some(Extent::Bytes(4 << 20)));
        assert_eq!(settings.io_size, Some(Extent::Bytes(64 << 20)));
        let file = parse("[a]\nsize=64m\nio_size=0\n").unwrap();
        assert_eq!(file.jobs[0].settings.io_size, None, "as if it were not given");
        assert_eq!((settings.offset, settings.number_ios), (Extent::Percent(50), Some(7)));
        assert_eq!(settings.blocks[0].min, 8192);
    }

    /// As in fio: what a list leaves empty stays as it was.
    #[test]
    fn lists_change_only_what_they_name() {
        let text = "[global]\nbs=64k\nba=8k\nrate=1m\npercentage_random=0\n\
                    [a]\nbssplit=,4k/50:8k/50\nba=,16k\nrate=,2m\npercentage_random=,30\n[b]\nbsrange=,4k-8k\n";
        let file = parse(text).unwrap();
        let a = &file.jobs[0].settings;
        let sizes = |job: usize| {
            let blocks = &file.jobs[job].settings.blocks;
            blocks.each_ref().map(|sizes| (sizes.min, sizes.max))
        };
        assert_eq!(sizes(0), [(65536, 65536), (4096, 8192), (4096, 8192)]);
        assert_eq!(sizes(1), sizes(0));
        assert_eq!(a.align, [8192, 16384, 16384].map(Some));
        assert_eq!(a.rate, [1 << 20, 2 << 20, 2 << 20]);
        assert_eq!(a.random_percent, [0, 30, 30]);
    }

    /// fio aligns random jobs alone.
    #[test]
    fn a_direct_sequential_job_may_have_any_alignment() {
        assert!(parse("[a]\nrw=write\ndirect=1\nbs=4k\nba=512\n").is_ok());
        assert!(parse("[a]\nrw=randwrite\ndirect=1\nbs=4k\nba=512\n").is_err());
    }

    #[test]
    fn kb_base_counts_wherever_it_stands() {
        let file = parse("[a]\nbs=4k\nkb_base=1000").unwrap();
        assert_eq!(file.jobs[0].settings.blocks[1].min, 4000);
    }

    #[test]
    fn errors_say_what_to_do() {
        for (text, expected) in [
            (
                "[a]\niodpeth=1",
                "job.fio:2: option \"iodpeth\" is none of fio's; write \"iodepth\" if you meant that, or remove the line",
            ),
            ("[a]\nxyzzyx=1", "job.fio:2: option \"xyzzyx\" is none of fio's; remove the line"),
            (
                "[a]\n\nzonemode=zbd",
                "job.fio:3: option \"zonemode\" would change the I/O or the results, and is not supported; \
                 F2FS writes zones by itself; see `dovetail help zoned-drives` \
                 (`dovetail help fio-jobs` lists what is)",
            ),
            (
                "[a]\nbs=4x",
                "job.fio:2: option \"bs\" takes a block size from 1 byte to 1 GiB, such as 4k, not \"4x\"",
            ),
            ("[a]\nsize", "job.fio:2: option \"size\" needs a value: write size=VALUE"),
            ("[a]\nsize=${X}", "job.fio:2: ${X} has no value here; give it one: -D NAME=VALUE"),
            ("[global]\nsize=1m", "job.fio: there is no job in it; add a section such as [job1]"),
            (
                "[global]\nrate=1m\n[a]\nrate_iops=,100",
                "job.fio:3: job \"a\" has both rate and rate_iops; remove one of them, or set it to 0",
            ),
            (
                "[a]\nbssplit=4k/50:64k/50\nbsrange=8k-64k",
                "job.fio:1: job \"a\" has sizes in bssplit that bsrange leaves out; remove bsrange or widen it",
            ),
            (
                "[a]\nlog_unix_epoch=1",
                "job.fio:2: option \"log_unix_epoch\" would change the I/O or the results, and is not \
                 supported; times are virtual and begin at 0 (`dovetail help fio-jobs` lists what is)",
            ),
            (
                "[a]\npercentile_list=50:0",
                "job.fio:2: option \"percentile_list\" takes up to 20 percentages above 0, at most 100, \
                 such as 50:99:99.9, not \"50:0\"",
            ),
            (
                "[a]\ntime_based",
                "job.fio:1: job \"a\" has time_based without runtime; add runtime=10s or the like",
            ),
        ] {
            assert_eq!(message(text), expected);
        }
    }
}
