//! Disks inside the guest: an image and a zone report put on them, and taken from them again.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::process::Command;

use dovetail_block::{ZoneReport, ZoneState};
use rustix::fs::OFlags;

const BLOCK: usize = 4096;
/// Bytes of a request.
const CHUNK: usize = 1 << 18;

/// `put IMAGE REPORT DEVICES`: the devices, separated by commas, hold the image, one after the
/// other, and the zones of the last are written as far as the report says. `take IMAGE REPORT
/// DEVICES`: the other way round.
pub(super) fn run(arguments: &[&str]) {
    let [way, image, report, devices] = arguments[..] else { panic!("{arguments:?}") };
    let put = way == "put";
    let last = devices.split(',').next_back().unwrap();
    if !put {
        fs::write(report, zones_of(last)).unwrap();
    }
    let zones = ZoneReport::parse(&fs::read_to_string(report).unwrap()).unwrap();
    let image = OpenOptions::new().read(true).write(!put).create(!put).open(image).unwrap();
    let mut base = 0;
    for device in devices.split(',') {
        let mut disk = Disk::open(device, put);
        let parts = if device == last { zoned_parts(&zones) } else { vec![(0, disk.len, false)] };
        for (start, len, in_order) in parts {
            disk.copy(&image, base, start, len, put, in_order);
        }
        base += disk.len;
    }
    if put {
        check_zones(&zones, last);
    } else {
        image.set_len(base).unwrap();
    }
}

/// A report of the device's zones.
fn zones_of(device: &str) -> Vec<u8> {
    let report = Command::new("blkzone").args(["report", device]).output().unwrap();
    assert!(report.status.success(), "{report:?}");
    report.stdout
}

/// Starts and lengths in bytes of what can be read or written of a zoned device, and whether it has
/// to be written in order: the conventional zones, then what is written of each other one.
fn zoned_parts(report: &ZoneReport) -> Vec<(u64, u64, bool)> {
    let bytes = |blocks: u64| blocks * BLOCK as u64;
    let zones = report.states.iter().enumerate();
    let zones = zones.map(|(zone, (_, written))| {
        (bytes(report.zones.start(zone as u32).0), bytes(*written), true)
    });
    [(0, bytes(report.zones.first.0), false)].into_iter().chain(zones).collect()
}

/// The device's zones are what the report says, an open one for a closed one.
fn check_zones(report: &ZoneReport, device: &str) {
    let found = ZoneReport::parse(std::str::from_utf8(&zones_of(device)).unwrap()).unwrap();
    assert_eq!(found.zones, report.zones);
    let is_open = |state| !matches!(state, ZoneState::Full | ZoneState::Empty);
    for (zone, (wanted, found)) in report.states.iter().zip(&found.states).enumerate() {
        let same = wanted.0 == found.0 || (is_open(wanted.0) && is_open(found.0));
        assert!(same && wanted.1 == found.1, "zone {zone}: {found:?} and not {wanted:?}");
    }
}

/// A block device without the guest's cache.
struct Disk {
    file: File,
    len: u64,
    buffer: Vec<u8>,
}

impl Disk {
    fn open(path: &str, writes: bool) -> Self {
        let flags = OFlags::DIRECT.bits() as i32;
        let mut file =
            OpenOptions::new().read(true).write(writes).custom_flags(flags).open(path).unwrap();
        let len = file.seek(SeekFrom::End(0)).unwrap();
        Self { file, len, buffer: vec![0; CHUNK + BLOCK] }
    }

    /// Copies `len` bytes from `start`, which lie at `base + start` of the image. What need not be
    /// written in order is left out where it is zeros.
    fn copy(&mut self, image: &File, base: u64, start: u64, len: u64, put: bool, in_order: bool) {
        let aligned = self.buffer.as_ptr().align_offset(BLOCK);
        for at in (start..start + len).step_by(CHUNK) {
            let size = CHUNK.min((start + len - at) as usize);
            let bytes = &mut self.buffer[aligned..aligned + size];
            let is_zero = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
            if put {
                image.read_exact_at(bytes, base + at).unwrap();
                if in_order || !is_zero(bytes) {
                    self.file.write_all_at(bytes, at).unwrap();
                }
            } else {
                self.file.read_exact_at(bytes, at).unwrap();
                if !is_zero(bytes) {
                    image.write_all_at(bytes, base + at).unwrap();
                }
            }
        }
    }
}
