//! A drive as a disk of this machine's own Linux: `/dev/ublkbN`.
//!
//! Linux' driver ublk hands the requests of a disk to a process: a thread of ours takes those of a
//! queue and commits each when the drive would be done. A device belongs to the server; it goes when
//! the server ends, or is killed.

mod control;
mod queue;
mod wire;

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dovetail_block::{BLOCK_SIZE, SECTOR_SIZE, SECTORS_IN_BLOCK};
use rustix::io::Errno;

use crate::served::Served;
use control::Control;
use queue::Queue;
use wire::{DeviceInfo, Parameters, control as command};

/// Requests of a queue at most.
const DEPTH: u16 = 128;
/// Bytes of a request at most: Linux sends 1.25 MiB by default.
const MAX_REQUEST: u32 = 2 << 20;
/// Sectors that one request to write zeroes covers: 32 MiB.
const MAX_ZEROES: u32 = 1 << 16;
/// The kernel gives the device a number.
const ANY: u32 = u32::MAX;
/// Longest time until the device of requests is there; udev may have to make it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reason why a disk is not there.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// A kernel without ublk.
    #[error("this Linux has no ublk (/dev/ublk-control): `modprobe ublk_drv`, Linux 6.5 or newer")]
    NoUblk,
    /// Somebody who may not.
    #[error("a disk of this machine takes root's rights (CAP_SYS_ADMIN)")]
    NotAllowed,
    /// A kernel whose ublk is too old.
    #[error("the ublk of this Linux is too old: it takes 6.5 or newer")]
    TooOld,
    /// Another server has a disk of that number.
    #[error("/dev/ublkb{0} is there already; end its server, or give another number")]
    InUse(u32),
    /// A drive that is not served in this way.
    #[error(
        "the drive has zones, which are not served as a disk of this machine; --vhost serves them"
    )]
    Zoned,
    /// A step failed.
    #[error("{what}: {why}")]
    Step {
        /// The step.
        what: &'static str,
        /// The error of the system.
        why: io::Error,
    },
}

fn step(what: &'static str) -> impl FnOnce(io::Error) -> UblkError {
    move |why| UblkError::Step { what, why }
}

/// A disk; it is to be [ended](Disk::end).
#[derive(Debug)]
pub(crate) struct Disk {
    number: u32,
    queues: Vec<JoinHandle<()>>,
    ending: Arc<AtomicBool>,
}

impl Disk {
    /// Makes a disk of a drive, with so many queues (1 to 16) at most; `number` 0 makes
    /// `/dev/ublkb0`, `None` the first that is free.
    pub(crate) fn begin(
        served: &Arc<Served>,
        number: Option<u32>,
        queues: u16,
    ) -> Result<Self, UblkError> {
        let mut control = open()?;
        let info = add(&mut control, number.unwrap_or(ANY), queues)?;
        let mut disk = Self { number: info.device, queues: Vec::new(), ending: Arc::default() };
        match disk.start(&mut control, served, &info) {
            Ok(()) => Ok(disk),
            Err(error) => {
                disk.end();
                Err(error)
            }
        }
    }

    /// The disk's name.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/dev/ublkb{}", self.number).into()
    }

    fn start(
        &mut self,
        control: &mut Control,
        served: &Arc<Served>,
        info: &DeviceInfo,
    ) -> Result<(), UblkError> {
        let told = control.exchange(command::SET_PARAMS, self.number, &mut parameters(served));
        told.map_err(step("the kernel does not take the disk's parameters"))?;
        let device = Arc::new(self.open_requests()?);
        let (ready, is_ready) = mpsc::channel();
        for number in 0..info.queues {
            let (served, device) = (Arc::clone(served), Arc::clone(&device));
            let (ready, depth, ending) = (ready.clone(), info.depth, Arc::clone(&self.ending));
            let run = move || {
                let queue = Queue::new(served, device, number, depth, ending);
                let (queue, begun) = match queue {
                    Ok(queue) => (Some(queue), Ok(())),
                    Err(error) => (None, Err(error)),
                };
                // who waits for it is there until every queue has told
                let _ = ready.send(begun);
                drop(ready);
                if let Some(Err(error)) = queue.map(Queue::run) {
                    tracing::error!(%error, "a queue of the disk has failed; the disk is gone");
                }
            };
            let thread = thread::Builder::new().name("queue".into()).spawn(run);
            self.queues.push(thread.map_err(step("a queue gets no thread"))?);
        }
        drop(ready);
        // a disk is started when each of its queues has asked for requests, and not before
        is_ready
            .iter()
            .take(info.queues.into())
            .collect::<io::Result<()>>()
            .map_err(step("a queue cannot be made ready"))?;
        let process = u64::from(std::process::id());
        let started = control.tell(command::START_DEV, self.number, process);
        started.map_err(step("the kernel does not start the disk"))
    }

    /// The device by which requests come, as soon as it is there.
    fn open_requests(&self) -> Result<File, UblkError> {
        let path = format!("/dev/ublkc{}", self.number);
        let begun = Instant::now();
        loop {
            match OpenOptions::new().read(true).write(true).open(&path) {
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound && begun.elapsed() < PATIENCE =>
                {
                    thread::sleep(Duration::from_millis(10));
                }
                opened => return opened.map_err(step("the disk's requests cannot be opened")),
            }
        }
    }

    /// Stops the disk, which writes back what the kernel has of it, and deletes it; answers wait for
    /// their time no more. A disk that is still mounted fails from then on.
    pub(crate) fn end(self) {
        self.ending.store(true, Ordering::Relaxed);
        let ended = Control::open().and_then(|mut control| {
            control.tell(command::STOP_DEV, self.number, 0)?;
            for queue in self.queues {
                if queue.join().is_err() {
                    tracing::error!("a queue of the disk has panicked");
                }
            }
            delete(&mut control, self.number)
        });
        if let Err(error) = ended {
            tracing::error!(%error, "the disk cannot be deleted");
        }
    }
}

fn open() -> Result<Control, UblkError> {
    let mut control = Control::open().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => UblkError::NoUblk,
        io::ErrorKind::PermissionDenied => UblkError::NotAllowed,
        _ => step("the control device of ublk cannot be opened")(error),
    })?;
    let mut features = 0_u64;
    let needed = wire::F_USER_COPY | wire::F_IOCTL_NUMBERS;
    match control.exchange(command::GET_FEATURES, ANY, &mut features) {
        Ok(()) if features & needed == needed => Ok(control),
        _ => Err(UblkError::TooOld),
    }
}

/// Adds a device. The one of a server that was killed is replaced.
fn add(control: &mut Control, number: u32, queues: u16) -> Result<DeviceInfo, UblkError> {
    let mut is_new = true;
    loop {
        let mut info = DeviceInfo {
            queues,
            depth: DEPTH,
            max_request_bytes: MAX_REQUEST,
            device: number,
            flags: wire::F_USER_COPY | wire::F_IOCTL_NUMBERS,
            ..Default::default()
        };
        let added = control.exchange(command::ADD_DEV, number, &mut info);
        match added.map_err(|error| (Errno::from_io_error(&error), error)) {
            Ok(()) => return Ok(info),
            Err((Some(Errno::PERM), _)) => return Err(UblkError::NotAllowed),
            Err((Some(Errno::EXIST), _)) if is_new && is_dead(control, number) => {
                is_new = false;
                let deleted = control.tell(command::DEL_DEV, number, 0);
                deleted.map_err(step("the disk of a server that was killed cannot be deleted"))?;
            }
            Err((Some(Errno::EXIST), _)) => return Err(UblkError::InUse(number)),
            Err((_, error)) => return Err(step("the kernel makes no disk")(error)),
        }
    }
}

fn is_dead(control: &mut Control, number: u32) -> bool {
    let mut info = DeviceInfo::default();
    let told = control.exchange(command::GET_DEV_INFO, number, &mut info);
    told.is_ok() && info.state == wire::DEAD && info.process <= 0
}

/// Deletes a device, without waiting for those who have it open.
fn delete(control: &mut Control, number: u32) -> io::Result<()> {
    match control.tell(command::DEL_DEV_ASYNC, number, 0) {
        // Linux before 6.9
        Err(error) if Errno::from_io_error(&error) == Some(Errno::OPNOTSUPP) => {
            control.tell(command::DEL_DEV, number, 0)
        }
        deleted => deleted,
    }
}

fn parameters(served: &Served) -> Parameters {
    let shift = BLOCK_SIZE.trailing_zeros() as u8;
    let read_only = if served.is_read_only() { wire::ATTR_READ_ONLY } else { 0 };
    let discard_types = if served.discards() { wire::PARAM_DISCARD } else { 0 };
    Parameters {
        len: size_of::<Parameters>() as u32,
        types: wire::PARAM_BASIC | discard_types,
        attributes: wire::ATTR_VOLATILE_CACHE | wire::ATTR_FUA | read_only,
        logical_shift: shift,
        physical_shift: shift,
        best_shift: shift,
        least_shift: shift,
        max_sectors: MAX_REQUEST / SECTOR_SIZE as u32,
        sectors: served.bytes() / SECTOR_SIZE,
        discard_granularity: BLOCK_SIZE as u32,
        max_discard_sectors: u32::MAX / SECTORS_IN_BLOCK as u32 * SECTORS_IN_BLOCK as u32,
        max_zeroes_sectors: MAX_ZEROES,
        max_discard_segments: 1,
        ..Default::default()
    }
}
