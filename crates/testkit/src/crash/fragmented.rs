//! A volume that cleans from the start: a file lies in pieces all over it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use dovetail_block::MemoryDevice;
use dovetail_time::Rng;
use dovetail_vfs::{Caller, FileSystem, Guarantees, Limits, NewNode};

use super::Mountable;
use crate::RecordingDevice;

const FILLER: &[u8] = b"filler";
/// Writes to the file between two fsyncs.
const WRITES_A_SYNC: u64 = 100;

/// A volume on which a file of two thirds of its room lies in pieces. The file loses its name when
/// a workload begins, and its blocks when the volume is mounted again: so no tree shows it, and
/// until then cleaning finds something to move.
#[derive(Debug)]
pub struct Fragmented<M> {
    volume: M,
    /// The same volume as it is mounted to be filled: it should append what is overwritten.
    filler: M,
    filled: OnceLock<MemoryDevice>,
    /// The next mount begins a workload.
    is_fresh: AtomicBool,
}

impl<M: Mountable> Fragmented<M> {
    /// Fills the fresh volumes of `volume`, mounted as `filler` mounts them.
    pub fn new(volume: M, filler: M) -> Self {
        Self { volume, filler, filled: OnceLock::new(), is_fresh: AtomicBool::new(false) }
    }

    fn fill(&self) -> Result<MemoryDevice, dovetail_vfs::Error> {
        let device = RecordingDevice::new(self.filler.format());
        let recording = device.recording();
        let failed = |_| dovetail_vfs::Error::Invalid("a fresh volume cannot be mounted");
        let mut fs = self.filler.mount(device).map_err(failed)?;
        let (root, node) = (fs.root(), NewNode { mode: 0o100_600, rdev: (0, 0) });
        let ino = fs.create(&Caller::default(), root, FILLER, &node)?.ino;
        let (mut rng, blocks) = (Rng::new(1), fs.statfs()?.free * 2 / 3);
        for number in 0..2 * blocks {
            let at = if number < blocks { number } else { rng.below(blocks) };
            fs.write(&Caller::default(), ino, at * 4096, &[7; 4096])?;
            if number % WRITES_A_SYNC == 0 {
                fs.fsync(ino, false)?;
            }
        }
        fs.sync()?;
        Ok(recording.newest())
    }

    /// Removes the file's name. In a workload somebody has it open, so that its blocks stay.
    fn unlink(&self, fs: &mut M::Mounted) -> Result<(), dovetail_vfs::Error> {
        let root = fs.root();
        let Ok(found) = fs.lookup(root, FILLER) else { return Ok(()) };
        if self.is_fresh.swap(false, Relaxed) {
            fs.hold(found.ino);
        }
        fs.unlink(&Caller::default(), root, FILLER)?;
        fs.sync()
    }
}

impl<M: Mountable> Mountable for Fragmented<M> {
    type Mounted = M::Mounted;

    fn format(&self) -> MemoryDevice {
        self.is_fresh.store(true, Relaxed);
        let fill = || self.fill().unwrap_or_else(|error| panic!("the volume is filled: {error}"));
        self.filled.get_or_init(fill).clone()
    }

    fn mount(&self, device: RecordingDevice<MemoryDevice>) -> Result<Self::Mounted, String> {
        let mut fs = self.volume.mount(device)?;
        self.unlink(&mut fs).map_err(|error| error.to_string())?;
        Ok(fs)
    }

    fn guarantees(&self) -> Guarantees {
        self.volume.guarantees()
    }

    fn limits(&self) -> Limits {
        self.volume.limits()
    }

    fn check(&self, device: &MemoryDevice) -> Vec<String> {
        self.volume.check(device)
    }
}
