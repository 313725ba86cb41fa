//! The drive that all connections share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use dovetail_block::DeviceError;
use dovetail_time::SimTime;

use crate::drive::Drive;
use crate::export::{Export, ExportError};
use crate::pace::{Awake, Pace};
use crate::status::{DriveStatus, DriveWork, Requests, ServerStatus, Status};

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Flush,
    Discard,
    WriteZeroes,
    BlockStatus,
    /// An append to a zone, which counts as a write.
    Append,
    /// A command on zones.
    Zone,
    /// A report of zones.
    ZoneReport,
    /// A question that is none about the drive's blocks; not counted.
    Other,
}

/// A drive that is served: one lock around it, its clock and the counts of its requests.
#[derive(Debug)]
pub(crate) struct Served {
    name: String,
    serial: String,
    read_only: bool,
    bytes: u64,
    discards: bool,
    is_paced: bool,
    awake: Awake,
    begun: Instant,
    connections: AtomicU64,
    connections_total: AtomicU64,
    shared: Mutex<Shared>,
}

#[derive(Debug)]
struct Shared {
    export: Export<Drive>,
    pace: Pace,
    requests: Requests,
}

/// A connection, for as long as it is there.
#[derive(Debug)]
pub(crate) struct Connected<'a>(&'a Served);

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Served {
    pub(crate) fn new(drive: Drive, pace: Pace, read_only: bool) -> Self {
        let name = drive.storage().config().name.clone();
        let serial = drive.storage().config().serial.to_string();
        let export = Export::new(drive);
        Self {
            name,
            serial,
            read_only,
            bytes: export.bytes(),
            discards: export.discards(),
            is_paced: pace.is_kept(),
            awake: Awake::new(pace.stays_awake()),
            begun: Instant::now(),
            connections: AtomicU64::new(0),
            connections_total: AtomicU64::new(0),
            shared: Mutex::new(Shared { export, pace, requests: Requests::default() }),
        }
    }

    /// The drive's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The drive's serial number.
    pub(crate) fn serial(&self) -> &str {
        &self.serial
    }

    /// Shows the drive, between two requests.
    pub(crate) fn look<R>(&self, at: impl FnOnce(&Export<Drive>) -> R) -> Result<R, ExportError> {
        Ok(at(&self.lock()?.export))
    }

    /// Size in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn discards(&self) -> bool {
        self.discards
    }

    /// Tells whether answers wait for their time.
    pub(crate) const fn is_paced(&self) -> bool {
        self.is_paced
    }

    /// Leave for threads that wait to stay awake.
    pub(crate) const fn awake(&self) -> &Awake {
        &self.awake
    }

    /// Counts a connection in.
    pub(crate) fn connect(&self) -> Connected<'_> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.connections_total.fetch_add(1, Ordering::Relaxed);
        Connected(self)
    }

    /// Performs a request that comes now: `perform` is given the drive and the time, and tells when
    /// it is done. The answer may leave at the time that is returned; `None` for at once, as
    /// errors do.
    pub(crate) fn request<E: From<ExportError>>(
        &self,
        kind: Kind,
        perform: impl FnOnce(&mut Export<Drive>, SimTime) -> Result<SimTime, E>,
    ) -> Result<Option<Instant>, E> {
        let mut shared = self.lock()?;
        shared.requests.count(kind);
        let at = shared.pace.now();
        let done = if self.read_only && kind.changes() {
            Err(ExportError::from(DeviceError::NotWritable).into())
        } else {
            perform(&mut shared.export, at)
        };
        match done {
            Ok(done) => Ok(shared.pace.due(done)),
            Err(error) => {
                shared.requests.failed += 1;
                Err(error)
            }
        }
    }

    /// The state of the drive and of the server.
    pub(crate) fn status(&self) -> Result<Status, ExportError> {
        let shared = self.lock()?;
        let drive = shared.export.device().storage();
        Ok(Status {
            drive: DriveStatus::of(drive),
            since_power_on: DriveWork::of(drive),
            server: ServerStatus {
                seconds: self.begun.elapsed().as_secs_f64(),
                drive_seconds: shared.pace.now().as_secs_f64(),
                connections: self.connections.load(Ordering::Relaxed),
                connections_total: self.connections_total.load(Ordering::Relaxed),
                requests: shared.requests,
            },
        })
    }

    /// Makes all that was acknowledged durable, before the server ends.
    pub(crate) fn settle(&self) -> Result<(), ExportError> {
        let mut shared = self.lock()?;
        let at = shared.pace.now();
        shared.export.flush(at).map(|_| ())
    }

    /// After a fault of the model nothing more is asked of the drive: what its file holds stays.
    fn lock(&self) -> Result<MutexGuard<'_, Shared>, ExportError> {
        let fault = || DeviceError::Internal("a request ended in the middle".into());
        self.shared.lock().map_err(|_| fault().into())
    }
}

impl Kind {
    const fn changes(self) -> bool {
        matches!(self, Self::Write | Self::Discard | Self::WriteZeroes | Self::Append | Self::Zone)
    }
}

impl Requests {
    fn count(&mut self, kind: Kind) {
        *match kind {
            Kind::Read => &mut self.read,
            Kind::Write | Kind::Append => &mut self.write,
            Kind::Flush => &mut self.flush,
            Kind::Discard => &mut self.discard,
            Kind::WriteZeroes => &mut self.write_zeroes,
            Kind::BlockStatus => &mut self.block_status,
            Kind::Zone | Kind::ZoneReport => &mut self.zone,
            Kind::Other => return,
        } += 1;
    }
}
