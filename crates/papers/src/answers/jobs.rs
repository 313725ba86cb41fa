//! The workloads of the comparison, each at a share of the drive that its data and other files take
//! together.

use std::io::Cursor;
use std::sync::Arc;

use dovetail_lab::bench::{BenchError, FileTraceSource, Fill, FillAmount, FillWith, Source};
use dovetail_time::Ratio;
use dovetail_workload::file_trace::{ClosedLoop, FileTrace, Pace};
use dovetail_workload::personality::Personality;

use crate::Setting;

/// Capacity that the page-mapped drives of the comparison offer.
pub(super) const CAPACITY: f64 = 32.0 * 1_073_741_824.0;
/// The recording, and the bytes of its database at the end.
const TPCC: &[u8] = include_bytes!("../../jobs/mariadb-tpcc.file.tsv.zst");
const TPCC_NAME: &str = "mariadb-tpcc.file.tsv.zst";
const TPCC_BYTES: f64 = 836e6;
/// The least scale at which the database fits the drive; below, the recording is shrunk.
const TPCC_LEAST: f64 = 1.0 / 32.0;
/// Assumed, as in figure 4 of RM-IPU.
const CPUS: u32 = 4;

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Random updates of 4 KiB in four files, with an fsync after every sixteenth of a thread.
    Updates,
    /// A file server: files come, grow and go as wholes.
    FileServer,
    /// TPC-C on MariaDB, recorded.
    Database,
    /// A mail server: small files, an fsync each.
    Mail,
    /// A cache that evicts: small objects at random places, large ones round and round.
    Cache,
}

impl Work {
    pub(super) const ALL: [Self; 5] =
        [Self::Updates, Self::FileServer, Self::Database, Self::Mail, Self::Cache];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Updates => "updates",
            Self::FileServer => "file server",
            Self::Database => "database",
            Self::Mail => "mail",
            Self::Cache => "cache",
        }
    }

    /// The workload and the files beside it, which take `percent` of the capacity together.
    pub(crate) fn at(
        self,
        setting: &Setting<'_>,
        percent: u32,
    ) -> Result<(Source, Option<Fill>), BenchError> {
        let bytes = CAPACITY * f64::from(percent) / 100.0;
        match self {
            Self::Updates => Ok((updates(bytes)?, None)),
            Self::Cache => Ok((cache(bytes)?, None)),
            Self::FileServer => {
                let source = personality("fileserver", setting, FILE_SERVER)?;
                Ok((source, beside(bytes - FILE_SERVER.bytes)))
            }
            Self::Mail => Ok((personality("varmail", setting, MAIL)?, beside(bytes - MAIL.bytes))),
            Self::Database => {
                let whole_at = if setting.scale.value() < TPCC_LEAST {
                    Ratio::new(TPCC_LEAST).unwrap_or(Ratio::ONE)
                } else {
                    setting.scale
                };
                Ok((database(whole_at)?, beside(bytes - TPCC_BYTES / whole_at.value())))
            }
        }
    }
}

/// Other files of so many bytes at full scale.
fn beside(bytes: f64) -> Option<Fill> {
    let amount = FillAmount::Bytes(bytes.max(0.0) as u64);
    Some(Fill { amount, with: FillWith::Large })
}

/// Each thread updates as often as the drive has blocks for it.
fn updates(bytes: f64) -> Result<Source, BenchError> {
    let (size, writes) = ((bytes / 4.0) as u64 >> 12 << 12, (CAPACITY / 4.0) as u64);
    let text = format!(
        "[updates]\nrw=randwrite\nbs=4k\nnumjobs=4\nsize={size}\nio_size={writes}\nnorandommap\nfsync=16\noverwrite=1\ngroup_reporting\n"
    );
    Source::fio(&text, "updates.fio", &[])
}

/// Small objects take 4 % of the cache, as in FDP CacheLib (EuroSys'25). Large ones get three times
/// the bytes (assumed), and both a pace that all drives here can keep (assumed). The program says
/// which of them live shortly.
fn cache(bytes: f64) -> Result<Source, BenchError> {
    const SMALL: f64 = 0.04;
    let blocks = |bytes: f64, unit: u64| bytes as u64 / unit * unit;
    let (small, large) = (blocks(bytes * SMALL, 4096), blocks(bytes * (1.0 - SMALL), 1 << 18));
    let (written, more) = (CAPACITY as u64 / 2, CAPACITY as u64 / 2 * 3);
    let text = format!(
        "[global]\ndirect=1\noverwrite=1\nnorandommap\n\
         [small]\nrw=randwrite\nbs=4k\nsize={small}\nio_size={written}\nrate=20m\niodepth=16\nioengine=libaio\nwrite_hint=short\n\
         [large]\nrw=write\nbs=256k\nsize={large}\nio_size={more}\nrate=60m\niodepth=4\nioengine=libaio\nwrite_hint=extreme\n"
    );
    Source::fio(&text, "cache.fio", &[])
}

/// The size of a personality's run at full scale.
#[derive(Clone, Copy)]
struct Size {
    /// Bytes of its files.
    bytes: f64,
    file: &'static str,
    files: u64,
    threads: &'static str,
    operations: f64,
}

/// Files of 2 MiB, of which four fifths are there at a time; operations are those of Filebench,
/// eleven a round.
const FILE_SERVER: Size = Size {
    bytes: 8192.0 * 2_097_152.0 * 0.8,
    file: "2m",
    files: 8192,
    threads: "16",
    operations: 11.0 * 16_384.0,
};
/// Mails of 16 KiB on the mean; thirteen operations a round, of which two are an fsync.
const MAIL: Size = Size {
    bytes: 200_000.0 * 20_480.0 * 0.8,
    file: "16k",
    files: 200_000,
    threads: "16",
    operations: 13.0 * 400_000.0,
};

fn personality(name: &str, setting: &Setting<'_>, size: Size) -> Result<Source, BenchError> {
    let failed = |error: &dyn std::error::Error| BenchError::Workload(error.to_string());
    let mut personality = Personality::load(name).map_err(|error| failed(&error))?;
    let (files, operations) =
        (size.files.to_string(), ((size.operations * setting.scale.value()) as u64).to_string());
    let changes = [
        ("nfiles", files.as_str()),
        ("meanfilesize", size.file),
        ("nthreads", size.threads),
        ("operations", operations.as_str()),
        ("runtime", "100000"),
    ];
    personality.set(changes).map_err(|error| failed(&error))?;
    Ok(Source::Personality(Box::new(personality)))
}

/// The recording, as it is at that scale.
fn database(whole_at: Ratio) -> Result<Source, BenchError> {
    let failed = |error: &dyn std::error::Error| BenchError::Workload(error.to_string());
    let trace = FileTrace::read(TPCC_NAME, Cursor::new(TPCC)).map_err(|error| failed(&error))?;
    let pace = Pace::Closed(ClosedLoop { cpus: CPUS, lead: ClosedLoop::LEAD });
    let trace = Arc::new(trace);
    Ok(Source::FileTrace(FileTraceSource { trace, pace, loops: 0.95, whole_at }))
}
