//! Zoned devices and volumes of tests.

use dovetail_block::{BlockDevice, Lba, MemoryDevice, ZoneReport, ZoneState, ZonedDevice, Zones};
use dovetail_f2fs::format::{Features, Timestamp};
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};

use super::{images, kernel_image};

const MIB: u64 = 256;

/// A kernel's image with the zones of its report.
pub fn zoned_image(image: &str, report: &str) -> ZonedDevice<MemoryDevice> {
    let ZoneReport { zones, states } = zone_report(report);
    ZonedDevice::found(kernel_image(image), zones, states)
}

/// A zone report of tests/images.
pub fn zone_report(name: &str) -> ZoneReport {
    let text = std::fs::read_to_string(images().join(format!("{name}.zones.txt"))).unwrap();
    ZoneReport::parse(&text).unwrap()
}

/// Zones of a device of so many MiB: their size and capacity in MiB, and the conventional ones.
pub fn zones(mib: u64, size: u64, capacity: u64, conventional: u64) -> Zones {
    let first = conventional * size * MIB;
    Zones::covering(Lba(first), mib * MIB - first, size * MIB, capacity * MIB)
}

/// A new zoned volume.
pub fn zoned_volume(mib: u64, zones: Zones) -> ZonedDevice<MemoryDevice> {
    let mut device = ZonedDevice::new(MemoryDevice::new(mib * MIB), zones);
    mkfs(&mut device, &zoned_options()).unwrap();
    device
}

/// Options with which zoned volumes of tests are made.
pub fn zoned_options() -> MkfsOptions {
    MkfsOptions {
        features: Features::BLKZONED,
        checkpoint_version: 0x6B8B_4567,
        time: Timestamp { seconds: 1_700_000_000, nanoseconds: 0 },
        ..MkfsOptions::default()
    }
}

/// The states that a device's content lets its zones be in: each is written up to its last block.
/// A power cut that took earlier blocks and left this one is harder than a real one.
pub fn states_of(device: &MemoryDevice, zones: &Zones) -> Vec<(ZoneState, u64)> {
    let mut written = vec![0; zones.count as usize];
    for (lba, _) in device.used() {
        if let Some(zone) = zones.index(lba) {
            written[zone as usize] = lba.0 - zones.start(zone).0 + 1;
        }
    }
    let state = |written: u64| match written {
        0 => (ZoneState::Empty, 0),
        written if written == zones.capacity => (ZoneState::Full, written),
        written => (ZoneState::Closed, written),
    };
    written.into_iter().map(state).collect()
}

/// A device of tests, and the memory that it is over.
pub trait InMemory {
    /// The memory.
    fn memory(&self) -> &MemoryDevice;
}

impl InMemory for MemoryDevice {
    fn memory(&self) -> &MemoryDevice {
        self
    }
}

impl InMemory for ZonedDevice<MemoryDevice> {
    fn memory(&self) -> &MemoryDevice {
        self.below()
    }
}

/// Conditions of the sequential zones, by their short names in `blkzone report`, with the blocks
/// written of those that are open.
pub fn shown(device: &mut impl BlockDevice) -> Vec<String> {
    let zones = dovetail_block::zones(device).unwrap();
    let show = |zone: &dovetail_block::Zone| match zone.state? {
        ZoneState::Empty => Some("empty".to_string()),
        ZoneState::Full => Some("full".to_string()),
        _ => Some(format!("{}", zone.written())),
    };
    zones.iter().filter_map(show).collect()
}
