//! Errors of a job file.

/// Reason why a job file cannot be run. Every message names the file, and the line if there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FioError {
    /// An option that fio does not have.
    #[error(
        "{file}:{line}: option \"{option}\" is none of fio's; {}remove the line",
        nearest.map(|name| format!("write \"{name}\" if you meant that, or ")).unwrap_or_default()
    )]
    UnknownOption {
        /// The job file.
        file: String,
        /// The number of the line, from 1.
        line: u32,
        /// As it stands there.
        option: String,
        /// A known option of nearly the same name.
        nearest: Option<&'static str>,
    },
    /// An option of fio that would change the I/O or the results, and is not honoured here.
    #[error(
        "{file}:{line}: option \"{option}\" would change the I/O or the results, and is not supported; \
         {instead} (`dovetail help fio-jobs` lists what is)"
    )]
    UnsupportedOption {
        /// The job file.
        file: String,
        /// The number of the line, from 1.
        line: u32,
        /// Its name in fio.
        option: &'static str,
        /// Advice, as a clause.
        instead: &'static str,
    },
    /// A value that the option cannot have.
    #[error("{file}:{line}: option \"{option}\" takes {expected}, not \"{value}\"")]
    BadValue {
        /// The job file.
        file: String,
        /// The number of the line, from 1.
        line: u32,
        /// As it stands there.
        option: String,
        /// Values that are allowed.
        expected: &'static str,
        /// As it stands there, variables expanded.
        value: String,
    },
    /// An option without `=` and a value.
    #[error("{file}:{line}: option \"{option}\" needs a value: write {option}=VALUE")]
    NoValue {
        /// The job file.
        file: String,
        /// The number of the line, from 1.
        line: u32,
        /// As it stands there.
        option: String,
    },
    /// A line that is no comment, section or option.
    #[error("{file}:{line}: expected {expected}, found \"{found}\"")]
    BadLine {
        /// The job file.
        file: String,
        /// The number of the line, from 1.
        line: u32,
        /// Description of what should stand there.
        expected: &'static str,
        /// Text that stands there.
        found: String,
    },
    /// A variable that was given no value.
    #[error("{file}:{line}: {variable} has no value here; {help}")]
    Variable {
        /// The job file.
        file: String,
        /// The number of the line, from 1.
        line: u32,
        /// As it stands there.
        variable: String,
        /// Advice to the user.
        help: &'static str,
    },
    /// `include FILE`.
    #[error(
        "{file}:{line}: \"include\" is not supported; put the lines of the included file in its place"
    )]
    Include {
        /// The job file.
        file: String,
        /// The number of the line, from 1.
        line: u32,
    },
    /// No section but `[global]`.
    #[error("{file}: there is no job in it; add a section such as [job1]")]
    NoJobs {
        /// The job file.
        file: String,
    },
    /// Options that do not go together, or an impossible job.
    #[error("{file}:{line}: job \"{job}\" {problem}")]
    Job {
        /// The job file.
        file: String,
        /// Line at which the job's section begins, from 1.
        line: u32,
        /// Its name.
        job: String,
        /// Problem, and what to do.
        problem: String,
    },
}
