//! Threads of a workload, and the part of which file each of them works on.

use std::collections::HashMap;

use dovetail_time::Rng;

use super::error::FioError;
use super::job_file::{Job, JobFile};
use super::layout::{Layout, Task};
use super::settings::Settings;
use super::value::Extent;
use crate::call::FileId;

/// Files of all jobs together at most, so that a slip of the pen does not fill the memory
/// (assumed).
const FILES_MAX: usize = 1 << 22;

/// Blocks in the random maps of one job's threads together at most: 2 GiB of memory.
const MAP_BLOCKS_MAX: u64 = 1 << 34;

/// Sizes beyond this are a slip (assumed); it keeps sums of offsets far from overflow.
const BYTES_MAX: u64 = 1 << 50;

/// Stream of the random numbers for file sizes.
const SIZES: u64 = 0x5153;

/// All threads, files and the calls that make the files.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub threads: Vec<ThreadPlan>,
    pub files: Files,
    pub layout: Vec<Task>,
    /// Bytes of the drive that all jobs are on; `None` with a file system.
    drive: Option<u64>,
}

/// One thread.
#[derive(Clone, Debug)]
pub(super) struct ThreadPlan {
    /// The job's place in the job file.
    pub job: usize,
    /// For results: jobs until a `new_group` or a `stonewall` are one group.
    pub group: u32,
    /// It starts when all threads of earlier phases are done.
    pub phase: u32,
    /// The job that must be done before, by its place in the job file (`wait_for`).
    pub waits_for: Option<usize>,
    pub files: Vec<Region>,
    /// Bytes of one pass: `size`, or what the files have.
    pub size: u64,
    /// `io_size` in bytes: those of all passes.
    pub io_size: Option<u64>,
}

/// The part of a file that a thread works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub file: FileId,
    pub start: u64,
    pub len: u64,
    /// Bytes of the file once it is laid out.
    pub file_len: u64,
}

/// Files by name, and how large they are once they are laid out.
#[derive(Debug, Default)]
pub(super) struct Files {
    paths: Vec<String>,
    by_path: HashMap<String, FileId>,
    /// `None` before a job has made the file.
    pub sizes: Vec<Option<u64>>,
}

impl Files {
    pub(super) fn path(&self, file: FileId) -> &str {
        self.paths.get(file.0 as usize).map_or("", String::as_str)
    }

    fn intern(&mut self, path: String) -> FileId {
        *self.by_path.entry(path).or_insert_with_key(|path| {
            self.paths.push(path.clone());
            self.sizes.push(None);
            FileId(self.paths.len() as u32 - 1)
        })
    }

    pub(super) fn size(&self, file: FileId) -> u64 {
        self.sizes[file.0 as usize].unwrap_or(0)
    }
}

impl Plan {
    /// `drive` is the size of the drive that all jobs are on; `None` with a file system.
    pub(super) fn new(jobs: &JobFile, rng: &Rng, drive: Option<u64>) -> Result<Self, FioError> {
        let mut plan = Self { drive, ..Self::default() };
        let mut sizes = rng.fork(SIZES);
        let (mut group, mut phase) = (0, 0);
        for (index, job) in jobs.jobs.iter().enumerate() {
            let settings = &job.settings;
            let waits_for = awaited(jobs, index)?;
            group += u32::from(index > 0 && (settings.stonewall || settings.new_group));
            phase += u32::from(index > 0 && settings.stonewall);
            for clone in 0..settings.numjobs {
                let thread = plan.thread(job, clone, &mut sizes);
                let thread = thread.map_err(|problem| jobs.job_error(job, problem))?;
                plan.threads.push(ThreadPlan { job: index, group, phase, waits_for, ..thread });
            }
        }
        Ok(plan)
    }

    fn thread(&mut self, job: &Job, clone: u64, rng: &mut Rng) -> Result<ThreadPlan, String> {
        let settings = &job.settings;
        let files = self.files_of(job, clone)?;
        let regions: Vec<Region> = (files.iter())
            .map(|file| self.region(settings, *file, files.len() as u64, clone, rng))
            .collect::<Result<_, _>>()?;
        check_map(settings, &regions)?;
        regions.iter().try_for_each(|region| check_zones(settings, region.len))?;
        for region in &regions {
            self.layout.extend(Layout { settings, region }.plan(&mut self.files));
        }
        let (size, io_size) = bytes_to_do(settings, &regions);
        let block = smallest_block(settings);
        if size < block {
            return Err(format!(
                "is over after {size} bytes, less than a block of {block}; make size or io_size larger"
            ));
        }
        Ok(ThreadPlan {
            job: 0,
            group: 0,
            phase: 0,
            waits_for: None,
            files: regions,
            size,
            io_size,
        })
    }

    fn files_of(&mut self, job: &Job, clone: u64) -> Result<Vec<FileId>, String> {
        let settings = &job.settings;
        // files that have names are all in the first folder, as in fio
        let turn = if settings.filenames.is_empty() { clone as usize } else { 0 };
        let folder = match settings.directory.as_slice() {
            [] => "",
            folders => &folders[turn % folders.len()],
        };
        let names: Vec<String> = if settings.filenames.is_empty() {
            (0..settings.nrfiles.unwrap_or(1)).map(|number| file_name(job, clone, number)).collect()
        } else {
            settings.filenames.clone()
        };
        if self.files.paths.len() + names.len() > FILES_MAX {
            return Err(format!("has the file that is one too many: {FILES_MAX} are the most"));
        }
        let drive = self.drive;
        let mut intern = |path| {
            let file = self.files.intern(path);
            if drive.is_some() {
                self.files.sizes[file.0 as usize] = drive;
            }
            file
        };
        names.iter().map(|name| path(folder, name).map(&mut intern)).collect()
    }

    /// As fio 3.33: the size divided by the number of files, whole blocks or not.
    fn region(
        &mut self,
        settings: &Settings,
        file: FileId,
        files: u64,
        clone: u64,
        rng: &mut Rng,
    ) -> Result<Region, String> {
        let known = self.files.size(file);
        let whole = file_size(settings, known, rng);
        // of what the file has before the job, as in fio: of a new file, nothing
        let of = |extent: Extent| extent.of(known);
        let increment =
            of(settings.offset_increment).checked_mul(clone).filter(|bytes| *bytes <= BYTES_MAX);
        let start =
            of(settings.offset).saturating_add(increment.ok_or("has an offset beyond 1 PiB")?);
        let of_percent = [settings.offset, settings.offset_increment]
            .iter()
            .any(|extent| matches!(extent, Extent::Percent(_)));
        let start =
            if of_percent { start.next_multiple_of(smallest_block(settings)) } else { start };
        let start = if settings.file_append { start + known } else { start };
        let all = whole.unwrap_or(known);
        let rest = all.saturating_sub(start);
        let len = match (whole, settings.size) {
            (_, Some(percent @ Extent::Percent(_))) => {
                whole_blocks(settings, percent.of(all).min(rest))
            }
            (None, Some(Extent::Bytes(size))) => size / files,
            (Some(_), _) | (None, None) => rest,
        };
        if len == 0 && all > 0 && start >= all {
            return Err(format!(
                "begins at byte {start}, and its file ends at {all}; make offset smaller"
            ));
        }
        if let Some(drive) = self.drive.filter(|drive| start.saturating_add(len) > *drive) {
            return Err(format!(
                "ends at byte {} of a drive of {drive}; make size or offset smaller",
                start.saturating_add(len)
            ));
        }
        check_region(settings, start, len)?;
        Ok(Region { file, start, len, file_len: known.max(start + len) })
    }
}

/// `size` and `io_size` as fio takes them: the files may be smaller than `size`, and a share of
/// `io_size` is one of the files and no more than `size`.
fn bytes_to_do(settings: &Settings, regions: &[Region]) -> (u64, Option<u64>) {
    let whole: u64 = regions.iter().map(|region| region.len).sum();
    let (most, io_size) = match settings.io_size {
        Some(share @ Extent::Percent(_)) => (share.of(whole), None),
        Some(Extent::Bytes(bytes)) => (whole, Some(bytes)),
        None => (whole, None),
    };
    let size = match settings.size {
        Some(Extent::Bytes(bytes)) => bytes.min(most),
        Some(Extent::Percent(_)) | None => most,
    };
    let is_one_pass = settings.passes_are_one();
    (size, io_size.map(|bytes| if is_one_pass { bytes.min(size) } else { bytes }))
}

/// The job that one waits for: fio takes a name that stands once, and above.
fn awaited(jobs: &JobFile, index: usize) -> Result<Option<usize>, FioError> {
    let job = &jobs.jobs[index];
    let Some(name) = &job.settings.wait_for else { return Ok(None) };
    let mut named = (0..).zip(&jobs.jobs[..index]).filter(|(_, job)| job.name == *name);
    match (named.next(), named.next()) {
        (Some((at, _)), None) => Ok(Some(at)),
        (Some(_), Some(_)) => Err(jobs.job_error(
            job,
            format!("waits for \"{name}\", and several jobs are named so; rename one"),
        )),
        (None, _) => Err(jobs.job_error(
            job,
            format!("waits for \"{name}\", but no job above it has that name; correct the name"),
        )),
    }
}

/// Size of a file by `filesize`: one in its range, unless the file has such a size already.
fn file_size(settings: &Settings, known: u64, rng: &mut Rng) -> Option<u64> {
    let (low, high) = settings.file_sizes?;
    if (low..=high).contains(&known) {
        return Some(known);
    }
    Some(if low == high {
        low
    } else {
        whole_blocks(settings, low + rng.below(high - low + 1)).max(low)
    })
}

/// Of all directions, also of those that the job does not have, as in fio.
fn smallest_block(settings: &Settings) -> u64 {
    settings.blocks.iter().map(|sizes| sizes.min).min().unwrap_or(1)
}

fn block_min(settings: &Settings) -> u64 {
    settings.directions().map(|direction| settings.blocks[direction.index()].min).min().unwrap_or(1)
}

fn whole_blocks(settings: &Settings, bytes: u64) -> u64 {
    bytes - bytes % block_min(settings)
}

fn check_region(settings: &Settings, start: u64, len: u64) -> Result<(), String> {
    let block = block_min(settings);
    if start.saturating_add(len) > BYTES_MAX {
        return Err("has a file beyond 1 PiB; make size smaller".into());
    }
    if len == 0 {
        return Err(
            "does not say how large its files are, and no job before it makes them; add size="
                .into(),
        );
    }
    if len < block {
        return Err(format!(
            "has files of {len} bytes, less than a block of {block}; make size larger"
        ));
    }
    if settings.direct && !start.is_multiple_of(4096) {
        return Err(format!(
            "has direct=1 and begins at byte {start}, amid a block of 4096; change offset"
        ));
    }
    Ok(())
}

fn check_map(settings: &Settings, regions: &[Region]) -> Result<(), String> {
    let blocks: u64 = regions.iter().map(|region| region.len / block_min(settings)).sum();
    if settings.has_map() && blocks.saturating_mul(settings.numjobs) > MAP_BLOCKS_MAX {
        return Err(
            "has more random blocks than can be remembered; add norandommap or make bs larger"
                .into(),
        );
    }
    Ok(())
}

/// fio ends the file where a call falls into a zone beyond it, and says so in a line.
fn check_zones(settings: &Settings, len: u64) -> Result<(), String> {
    let most = settings.directions().map(|direction| settings.distribution.zoned_bytes(direction));
    match most.max().filter(|bytes| *bytes > len) {
        Some(bytes) => Err(format!(
            "has zones of {bytes} bytes together (random_distribution=zoned_abs) in a file of {len}; \
             make size larger or the zones smaller"
        )),
        None => Ok(()),
    }
}

fn file_name(job: &Job, clone: u64, number: u64) -> String {
    (job.settings.filename_format)
        .replace("$jobname", &job.name)
        .replace("$jobnum", &clone.to_string())
        .replace("$filenum", &number.to_string())
}

/// Joins and takes slashes at the front away; `.` and empty parts go.
fn path(folder: &str, name: &str) -> Result<String, String> {
    let joined = format!("{folder}/{name}");
    let parts: Vec<&str> =
        joined.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.is_empty() || parts.contains(&"..") {
        return Err(format!("has the file \"{name}\" in \"{folder}\"; give a path without \"..\""));
    }
    Ok(parts.join("/"))
}
