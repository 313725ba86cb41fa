//! Zoned volumes between the two sides: what they look like, and how they come into the guest.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use dovetail_block::{
    BlockDevice, Lba, MemoryDevice, ZoneReport, ZoneState, ZonedDevice, Zones, zones,
};
use dovetail_f2fs::format::{Features, Timestamp};
use dovetail_f2fs::mkfs::{DevicePart, MkfsOptions, mkfs};

/// Blocks of a MiB.
const MIB: u64 = 256;

/// A volume of which all blocks, of one device or two, are one address space: those of an ordinary
/// device, if there is one, lie before the first zone.
pub(crate) type Device = ZonedDevice<MemoryDevice>;

/// Devices of a volume; sizes in MiB.
#[derive(Debug)]
pub(crate) struct Geometry {
    pub(crate) name: &'static str,
    /// Size of an ordinary device in front; none if 0.
    pub(crate) ordinary: u64,
    pub(crate) zoned: u64,
    pub(crate) zone: u64,
    pub(crate) capacity: u64,
    pub(crate) conventional: u64,
}

pub(crate) const GEOMETRIES: [Geometry; 4] = [
    Geometry { name: "whole", ordinary: 0, zoned: 512, zone: 16, capacity: 16, conventional: 4 },
    Geometry { name: "capacity", ordinary: 0, zoned: 512, zone: 16, capacity: 12, conventional: 2 },
    Geometry { name: "segments", ordinary: 0, zoned: 256, zone: 2, capacity: 2, conventional: 16 },
    Geometry { name: "two", ordinary: 64, zoned: 512, zone: 16, capacity: 16, conventional: 0 },
];

impl Geometry {
    /// The zones, in the address space of the volume.
    fn zones(&self) -> Zones {
        let conventional = self.conventional * self.zone;
        let first = Lba((self.ordinary + conventional) * MIB);
        let blocks = (self.zoned - conventional) * MIB;
        Zones::covering(first, blocks, self.zone * MIB, self.capacity * MIB)
    }

    /// A new volume of our own.
    pub(crate) fn made(&self, features: Features) -> Device {
        let blocks = (self.ordinary + self.zoned) * MIB;
        let mut device = ZonedDevice::new(MemoryDevice::new(blocks), self.zones());
        let part = |path: &str, mib: u64| DevicePart { path: path.into(), blocks: mib * MIB };
        let devices = match self.ordinary {
            0 => Vec::new(),
            ordinary => vec![part("/dev/a", ordinary), part("/dev/z", self.zoned)],
        };
        let options = MkfsOptions {
            features: features.with(Features::BLKZONED),
            devices,
            checkpoint_version: 0x1234_5678,
            time: Timestamp { seconds: 1_700_000_000, nanoseconds: 0 },
            ..MkfsOptions::default()
        };
        mkfs(&mut device, &options).unwrap();
        device
    }

    /// Empty devices with the zones of a report of the last one.
    pub(crate) fn of_report(&self, text: &str) -> Device {
        let blocks = (self.ordinary + self.zoned) * MIB;
        let states = ZoneReport::parse(text).unwrap().states;
        ZonedDevice::found(MemoryDevice::new(blocks), self.zones(), states)
    }

    /// The devices in the guest, as a list for the agent; mounted is the first.
    pub(crate) fn devices(&self) -> &'static str {
        if self.ordinary == 0 { "/dev/z" } else { "/dev/a,/dev/z" }
    }

    /// The device that is formatted, checked and mounted.
    pub(crate) fn mounted(&self) -> &'static str {
        if self.ordinary == 0 { "/dev/z" } else { "/dev/a" }
    }

    /// Makes the devices in the guest.
    pub(crate) fn attach(&self, script: &mut String) {
        if self.ordinary > 0 {
            writeln!(script, "disk a size={} discard=1", self.ordinary).unwrap();
        }
        writeln!(
            script,
            "disk z size={} zoned=1 zone_size={} zone_capacity={} zone_nr_conv={}",
            self.zoned, self.zone, self.capacity, self.conventional
        )
        .unwrap();
    }

    /// Takes them away.
    pub(crate) fn detach(&self, script: &mut String) {
        if self.ordinary > 0 {
            script.push_str("no_disk a\n");
        }
        script.push_str("no_disk z\n");
    }

    /// Formats them with mkfs.f2fs.
    pub(crate) fn format(&self, script: &mut String) {
        let more = if self.ordinary == 0 { "" } else { "-c /dev/z " };
        writeln!(script, "mkfs.f2fs -q -f -m {more}{} > /dev/null", self.mounted()).unwrap();
    }
}

/// Files of a volume: its content and the report of its zones, those of the last device.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(crate) image: PathBuf,
    pub(crate) report: PathBuf,
}

impl Files {
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        let path = |kind| folder.join(format!("{name}.{kind}"));
        Self { image: path("img"), report: path("zones") }
    }

    /// Writes the volume, as a power cut finds it.
    pub(crate) fn write(&self, geometry: &Geometry, device: &Device) {
        device.below().write_to(&self.image).unwrap();
        let offset = geometry.ordinary * MIB;
        let ours = *device.table().zones();
        let first = Lba(ours.first.0 - offset);
        let zones_of_last = Zones { first, ..ours };
        let blocks = device.info().blocks - offset;
        let states = states(device);
        let mut last = ZonedDevice::found(MemoryDevice::new(blocks), zones_of_last, states);
        let report = zones(&mut last).unwrap();
        fs::write(&self.report, ZoneReport::text(&zones_of_last, &report)).unwrap();
    }

    /// Reads the volume.
    pub(crate) fn read(&self, geometry: &Geometry) -> Device {
        let mut device = geometry.of_report(&fs::read_to_string(&self.report).unwrap());
        *device.below_mut() = MemoryDevice::from_image(&self.image).unwrap();
        device
    }
}

/// State and written blocks of each zone.
pub(crate) fn states(device: &Device) -> Vec<(ZoneState, u64)> {
    let table = device.table();
    (0..table.zones().count).map(|zone| (table.state(zone), table.written(zone))).collect()
}
