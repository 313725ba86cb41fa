//! Jobs on a drive without a file system: `filename=/dev/...` is the drive, as in fio.

use super::error::FioError;
use super::job_file::{Job, JobFile};

/// The folder in which Linux has its drives.
const DRIVES: &str = "/dev/";

impl JobFile {
    /// The name of the drive that a job is on, such as `/dev/nvme0n1`: on a volume it is a file.
    pub fn drive_name(&self) -> Option<&str> {
        let names = self.jobs.iter().flat_map(|job| &job.settings.filenames);
        let is_drive = |name: &&String| name.starts_with(DRIVES) && !name.starts_with("/dev/shm/");
        names.into_iter().find(is_drive).map(String::as_str)
    }
}

/// The jobs as they are on a drive: there is no folder, and a drive cannot be unlinked.
///
/// # Errors
/// A job that is not on the drive, or would need a page cache.
pub(super) fn on_drive(mut jobs: JobFile) -> Result<JobFile, FioError> {
    let name = jobs.jobs.iter().find_map(|job| job.settings.filenames.first().cloned());
    for job in &jobs.jobs {
        if let Some(problem) = problem(job, name.as_deref().unwrap_or_default()) {
            return Err(jobs.job_error(job, problem));
        }
    }
    for job in &mut jobs.jobs {
        job.settings.directory.clear();
        job.settings.unlink = false;
    }
    Ok(jobs)
}

/// `drive` is the name that the first job gives it.
fn problem(job: &Job, drive: &str) -> Option<String> {
    let settings = &job.settings;
    let other = settings.filenames.iter().find(|name| !name.starts_with(DRIVES));
    if settings.filenames.is_empty() || other.is_some() {
        let files = other.map_or("files of its own".into(), |name| format!("the file \"{name}\""));
        return Some(format!(
            "is on {files}, and a raw drive has none; add filename=/dev/nvme0n1 for the drive \
             itself"
        ));
    }
    if let Some(other) = settings.filenames.iter().find(|name| *name != drive) {
        return Some(format!(
            "is on {other}, another one on {drive}: a stack has one drive; give both one name"
        ));
    }
    let does_io = settings.pattern.reads || settings.pattern.writes;
    if does_io && !settings.direct {
        return Some(
            "is buffered, and a raw drive has no page cache here; add direct=1".to_owned(),
        );
    }
    settings.file_append.then(|| "would append to a drive; remove file_append".to_owned())
}
