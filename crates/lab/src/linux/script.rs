//! The work of a guest as a shell script: a volume, a job or a command on it, a check.

use dovetail_linux::{FIO_CLOCK, FileSystem, quoted};
use dovetail_time::Ratio;
use dovetail_vfs::kit::Throttle;
use dovetail_workload::fio::{JobFile, JobText};

use crate::bench::Stack;

/// The folder of the volume in a guest.
const VOLUME: &str = "/mnt/volume";
/// The mark between the job and the sync at its end.
pub(super) const RAN: &str = "ran";

/// Linux lets volumes of up to 16 GiB overwrite in place whenever they can
/// (`f2fs_tuning_parameters`); with `mode=lfs` there is nothing to set. A volume that stands for a
/// larger one has that one's policy: in place for fsync of few pages only.
const IPU_POLICY: (&str, &str) = ("ipu_policy", "16");
/// On such volumes Linux looks for a free segment from the start of the volume. A volume that stands
/// for a larger one looks from the log's place.
const ALLOC_MODE: (&str, &str) = ("alloc_mode", "default");

/// Mount options: the stack's own, and what a shrunk volume takes to behave as a large one.
fn mount_options(system: FileSystem, stack: &Stack, is_shrunk: bool) -> String {
    let own = stack.mount.split(',').filter(|option| !option.is_empty());
    let mut options: Vec<String> = own.map(str::to_owned).collect();
    let (name, value) = ALLOC_MODE;
    let is_set = options.iter().any(|option| option.split('=').next() == Some(name));
    if system.name == "f2fs" && is_shrunk && !is_set {
        options.push(format!("{name}={value}"));
    }
    options.join(",")
}

/// Settings of sysfs: the stack's own, and what a shrunk volume takes to behave as a large one.
fn settings(system: FileSystem, stack: &Stack, is_shrunk: bool) -> String {
    if system.name != "f2fs" {
        return String::new();
    }
    let own = stack.sysfs.iter().map(|(name, value)| (name.as_str(), value.to_string()));
    let mut settings: Vec<(&str, String)> = own.collect();
    let is_log = stack.mount.split(',').any(|option| option == "mode=lfs") || is_zoned(stack);
    if is_shrunk && !is_log && !stack.sysfs.contains_key(IPU_POLICY.0) {
        settings.push((IPU_POLICY.0, IPU_POLICY.1.into()));
    }
    let line = |(name, value): (&str, String)| {
        format!("echo {} > /sys/fs/f2fs/vda/{name}\n", quoted(&value))
    };
    settings.into_iter().map(line).collect()
}

/// A volume on zones is a log, whatever its mount options.
fn is_zoned(stack: &Stack) -> bool {
    mkfs_options(stack).split_whitespace().any(|option| option == "-m")
}

fn mkfs_options(stack: &Stack) -> &str {
    stack.mkfs.get("options").and_then(|value| value.as_str()).unwrap_or_default()
}

/// Work in a guest, between two marks.
pub(super) struct Work<'a> {
    pub(super) stack: &'a Stack,
    /// `None` for the raw drive.
    pub(super) system: Option<FileSystem>,
    pub(super) scale: Ratio,
    /// Commands before the first mark, and those after it.
    pub(super) prepare: &'a str,
    pub(super) run: &'a str,
}

impl Work<'_> {
    fn mount(&self, system: FileSystem) -> String {
        let is_shrunk = self.scale.value() < 1.0;
        system.mount(&mount_options(system, self.stack, is_shrunk))
            + &settings(system, self.stack, is_shrunk)
    }

    /// Limits on dirty pages, of the stack's page cache. Linux takes shares of all memory that can
    /// become page cache, and the guest has more, for other things.
    fn dirty_limits(&self) -> String {
        let bytes = self.stack.memory_bytes(self.scale);
        let limits = [
            ("dirty_bytes", Throttle::limit_bytes(bytes)),
            ("dirty_background_bytes", Throttle::background_bytes(bytes)),
        ];
        limits.map(|(name, bytes)| format!("echo {bytes} > /proc/sys/vm/{name}\n")).concat()
    }

    /// Makes and mounts a volume, works on it between two marks, checks it.
    pub(super) fn script(&self) -> String {
        let (begin, end) = match self.system {
            Some(system) => {
                let make = system.make(mkfs_options(self.stack));
                (format!("{make}{}cd {VOLUME}\n", self.mount(system)), system.check())
            }
            None => (String::new(), String::new()),
        };
        let Self { prepare, run, .. } = self;
        let dirty = self.dirty_limits();
        format!("exec > $OUT/log 2>&1\n{dirty}{begin}{prepare}mark begin\n{run}mark end\n{end}")
    }

    /// Mounts the volume after a power cut, between the marks, and checks it.
    pub(super) fn recovery(&self) -> String {
        let (mount, check) = match self.system {
            Some(system) => (self.mount(system), system.check()),
            None => (String::new(), String::new()),
        };
        format!("exec > $OUT/log 2>&1\nmark begin\n{mount}mark end\n{check}")
    }
}

/// A fio job for a guest.
pub(super) struct FioJob {
    /// The job file, `$OUT/job.fio`.
    pub(super) text: String,
    /// Makes the folders and lays out the files.
    pub(super) lay_out: String,
}

impl FioJob {
    /// The job at a scale. Its clock must be the guest's, not the processor's, and each latency is
    /// kept.
    pub(super) fn new(file: &JobFile, share: f64, seed: u64) -> Self {
        let JobText { text, folders } = file.to_text(share, VOLUME);
        let folders: String =
            folders.iter().map(|folder| format!("mkdir -p {}\n", quoted(folder))).collect();
        // fio 3.33 moves the registers of a job's clones with the seed, here they stay
        let seed = match file.has_registers() {
            true => String::new(),
            false => format!("allrandrepeat=1\nrandseed={seed}\n"),
        };
        Self {
            text: format!(
                "[global]\n{FIO_CLOCK}\ndirectory={VOLUME}\n{seed}lat_percentiles=1\nthread=1\n{text}"
            ),
            lay_out: format!(
                "{folders}fio --create_only=1 --output=$OUT/layout.txt $OUT/job.fio\nsync\n"
            ),
        }
    }
}

/// Plays `$OUT/job.fio`; results are in `$OUT/fio.json`. A sync at the end comes after the mark
/// [`RAN`].
pub(super) fn play(final_sync: bool) -> String {
    let sync = if final_sync { "sync\n" } else { "" };
    format!(
        "fio --output-format=json+ --output=$OUT/fio.json $OUT/job.fio || :\nmark {RAN}\n{sync}"
    )
}

#[cfg(test)]
mod tests {
    use dovetail_workload::fio::Variables;

    use super::*;

    #[test]
    fn options_reach_the_guest_as_words() {
        let mut stack = Stack::load("linux-f2fs").unwrap();
        stack.mount = "mode=lfs,x='; rm -rf /'".into();
        stack.mkfs.insert("options".into(), "-O extra_attr".into());
        let (system, scale) = (FileSystem::find("f2fs"), Ratio::new(1.0 / 16.0).unwrap());
        let work = Work { stack: &stack, system, scale, prepare: "", run: "true\n" };
        let script = work.script();
        assert!(script.contains("(mkfs.f2fs -q -f -O extra_attr /dev/vda 2>&1)"), "{script}");
        let mount = format!("{},alloc_mode=default", stack.mount);
        assert!(script.contains(&format!("-o {} /dev/vda", quoted(&mount))), "{script}");
        assert!(!script.contains(IPU_POLICY.0), "a log has none");
        assert!(script.contains("echo 13421760 > /proc/sys/vm/dirty_bytes\n"), "{script}");
        stack.mount = String::new();
        let work = Work { stack: &stack, system, scale, prepare: "", run: "true\n" };
        assert!(work.script().contains("echo '16' > /sys/fs/f2fs/vda/ipu_policy\n"));
        stack.mount = "alloc_mode=reuse".into();
        let work = Work { stack: &stack, system, scale, prepare: "", run: "true\n" };
        assert!(work.script().contains("-o 'alloc_mode=reuse' /dev/vda"), "{}", work.script());
        stack.mount = String::new();
        let scale = Ratio::new(1.0).unwrap();
        let full = Work { stack: &stack, system, scale, prepare: "", run: "true\n" };
        assert!(!full.script().contains("alloc_mode"), "a volume of its own size has its own way");
        stack.mkfs.insert("options".into(), "-m".into());
        let work = Work { stack: &stack, system, scale, prepare: "", run: "true\n" };
        assert!(!work.script().contains(IPU_POLICY.0), "neither has a volume on zones");
    }

    /// With a seed clones would begin at other places than ours, and than without a guest.
    #[test]
    fn registers_are_where_fio_has_them() {
        let text = |generator| {
            let job =
                format!("[a]\nrw=randwrite\nnumjobs=4\nrandom_generator={generator}\nsize=1m\n");
            let file = JobFile::parse(&job, "job", &Variables::default()).unwrap();
            FioJob::new(&file, 1.0, 7).text
        };
        let lfsr = text("lfsr");
        assert!(!lfsr.contains("randseed") && !lfsr.contains("randrepeat"), "{lfsr}");
        assert!(text("tausworthe").contains("\nrandseed=7\n"));
    }

    #[test]
    fn every_example_is_a_job_on_the_volume() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
        let jobs = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        for path in jobs.filter(|path| path.extension().is_some_and(|e| e == "fio")) {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text.split("${").skip(1).filter_map(|rest| rest.split('}').next());
            let variables = Variables::from_iter(names.map(|name| (name, "4")));
            let file = JobFile::parse(&text, "job", &variables).unwrap();
            let job = FioJob::new(&file, 0.5, 7);
            let files = job.text.lines().filter(|line| line.starts_with("directory="));
            assert!(
                files.clone().all(|line| line.starts_with("directory=/mnt/volume")),
                "{path:?}"
            );
            let names = job.text.lines().filter_map(|line| line.strip_prefix("filename="));
            assert!(names.clone().all(|name| !name.starts_with('/')), "{path:?}");
        }
    }
}
