//! Devices that an image is put on: one without zones, one with, or two of which the second has.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each test uses a part of this")]

use dovetail_block::{
    BlockDevice, Command, Completion, DeviceError, DeviceInfo, JoinedDevice, Lba, MemoryDevice,
    ZoneState, ZonedDevice, Zones, performs_at_once,
};
use dovetail_f2fs::format::{FileType, Inode};
use dovetail_f2fs::mkfs::{DevicePart, mkfs};
use dovetail_f2fs::{F2fs, Options, Volume};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode, SetAttr};

use super::zoned::{zoned_options, zones};

const MIB: u64 = 256;

/// One of the devices that a volume lies on.
#[derive(Clone, Debug)]
enum Part {
    Plain(MemoryDevice),
    Zoned(ZonedDevice<MemoryDevice>),
}

impl BlockDevice for Part {
    fn info(&self) -> DeviceInfo {
        match self {
            Self::Plain(device) => device.info(),
            Self::Zoned(device) => device.info(),
        }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match self {
            Self::Plain(device) => device.submit(at, command),
            Self::Zoned(device) => device.submit(at, command),
        }
    }
}

performs_at_once!(Part);

/// The zones of a volume's devices as they were found; none for an ordinary device.
#[derive(Clone, Debug, Default)]
pub struct Bed {
    /// Blocks of the device before the one with zones; 0 if there is none.
    first: u64,
    zones: Option<Zones>,
    /// The state of each sequential zone, and its written blocks.
    pub states: Vec<(ZoneState, u64)>,
}

impl Bed {
    /// The device with the image on it.
    pub fn device(&self, image: &MemoryDevice) -> BedDevice {
        let blocks = image.info().blocks;
        let Some(zones) = self.zones else {
            let parts = [(Part::Plain(image.clone()), blocks)];
            return BedDevice { joined: JoinedDevice::new(parts).unwrap(), bed: self.clone() };
        };
        let mut parts = Vec::new();
        let mut last = image.clone();
        if self.first > 0 {
            let (mut before, mut after) =
                (MemoryDevice::new(self.first), MemoryDevice::new(blocks - self.first));
            for (lba, content) in image.used() {
                match lba.0.checked_sub(self.first) {
                    None => before.set(lba, content.clone()),
                    Some(block) => after.set(Lba(block), content.clone()),
                }
            }
            parts.push((Part::Plain(before), self.first));
            last = after;
        }
        let zoned = ZonedDevice::found(last, zones, self.states.iter().copied());
        parts.push((Part::Zoned(zoned), blocks - self.first));
        BedDevice { joined: JoinedDevice::new(parts).unwrap(), bed: self.clone() }
    }

    /// Puts a few zones into states in which the volume did not leave them.
    pub fn contradict(&mut self, rng: &mut Rng) {
        let capacity = self.capacity();
        for _ in 0..=rng.below(3) {
            let zone = rng.below(self.states.len() as u64) as usize;
            let written = self.states[zone].1;
            self.states[zone] = match rng.below(6) {
                0 => (ZoneState::Empty, 0),
                1 => (ZoneState::Full, capacity),
                2 => (ZoneState::ReadOnly, written),
                3 => (ZoneState::Offline, 0),
                4 => (ZoneState::Closed, (written + 1).min(capacity - 1)),
                _ => (ZoneState::Closed, 1 + rng.below(capacity - 1)),
            };
        }
    }

    /// It has zones.
    pub fn is_zoned(&self) -> bool {
        self.zones.is_some()
    }

    /// Blocks of a sequential zone that can be written.
    pub fn capacity(&self) -> u64 {
        self.zones.unwrap().capacity
    }

    /// The zone, from 0, that a block of the volume lies in.
    pub fn zone_of(&self, block: u64) -> Option<usize> {
        let block = block.checked_sub(self.first)?;
        Some(self.zones?.index(Lba(block))? as usize)
    }
}

/// A [`Bed`] with an image: a command that its zones refuse ends the test, unless it reads what is
/// lost.
#[derive(Clone, Debug)]
pub struct BedDevice {
    joined: JoinedDevice<Part>,
    bed: Bed,
}

impl BedDevice {
    /// The blocks of all devices, in order.
    pub fn image(&self) -> MemoryDevice {
        let mut members = self.joined.members();
        let (first, last) = (members.next().unwrap(), members.next());
        let memory = |part: &Part| match part {
            Part::Plain(device) => device.clone(),
            Part::Zoned(device) => device.below().clone(),
        };
        let mut image = memory(first);
        if let Some(last) = last.map(memory) {
            image.resize(self.info().blocks);
            last.used().for_each(|(lba, content)| {
                image.set(Lba(lba.0 + self.bed.first), content.clone());
            });
        }
        image
    }

    /// The devices as they are now.
    pub fn bed(&self) -> Bed {
        let Some(Part::Zoned(last)) = self.joined.members().last() else { return Bed::default() };
        let table = last.table();
        let states = (0..table.zones().count).map(|zone| (table.state(zone), table.written(zone)));
        Bed { states: states.collect(), ..self.bed.clone() }
    }
}

impl BlockDevice for BedDevice {
    fn info(&self) -> DeviceInfo {
        self.joined.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        let reads = matches!(command, Command::Read { .. });
        let done = self.joined.submit(at, command);
        if let Err(DeviceError::Zone(refused)) = &done {
            assert!(reads, "a command that the zones refuse: {refused}");
        }
        done
    }
}

performs_at_once!(BedDevice);

/// An empty volume on one device of so many MiB.
pub fn on_one(mib: u64, size: u64, capacity: u64, conventional: u64) -> BedDevice {
    on_devices(0, mib, zones(mib, size, capacity, conventional))
}

/// An empty volume on an ordinary device of so many MiB and one with sequential zones only.
pub fn on_two(first: u64, mib: u64, size: u64, capacity: u64) -> BedDevice {
    on_devices(first * MIB, mib, zones(mib, size, capacity, 0))
}

fn on_devices(first: u64, mib: u64, zones: Zones) -> BedDevice {
    let part = |path: &str, blocks| DevicePart { path: path.into(), blocks };
    let mut options = zoned_options();
    if first > 0 {
        options.devices = vec![part("/dev/a", first), part("/dev/z", mib * MIB)];
    }
    let empty = vec![(ZoneState::Empty, 0); zones.count as usize];
    let bed = Bed { first, zones: Some(zones), states: empty };
    let mut device = bed.device(&MemoryDevice::new(first + mib * MIB));
    mkfs(&mut device, &options).unwrap();
    device
}

/// The volumes that the tests of damage go over: on one device with conventional zones, and on two.
pub fn zoned_beds() -> [(&'static str, BedDevice); 2] {
    [("one zoned device", on_one(512, 16, 16, 4)), ("two devices", on_two(128, 512, 16, 16))]
}

/// Copies a tree, extended attributes aside, to an empty volume; the bed is as after an unmount.
pub fn copied(tree: MemoryDevice, to: BedDevice) -> BedDevice {
    let mut fs = F2fs::mount(to, Options::default(), SimTime::ZERO).unwrap();
    let mut volume = Volume::open(tree).unwrap();
    let root = volume.root().unwrap();
    let mut known = std::collections::BTreeMap::from([(root.ino.0, fs.root())]);
    let mut dirs = vec![root];
    while let Some(dir) = dirs.pop() {
        for entry in volume.entries(&dir).unwrap() {
            if entry.is_dot() {
                continue;
            }
            let inode = volume.inode(entry.ino).unwrap();
            let into = known[&dir.ino.0];
            if let Some(ino) = known.get(&inode.ino.0) {
                fs.link(&Caller::default(), *ino, into, &entry.name).unwrap();
                continue;
            }
            let ino = copy_one(&mut volume, &inode, &mut fs, (into, &entry.name));
            known.insert(inode.ino.0, ino);
            if inode.is_dir() {
                dirs.push(inode);
            }
        }
    }
    fs.unmount().unwrap()
}

fn copy_one(
    volume: &mut Volume<MemoryDevice>,
    inode: &Inode,
    fs: &mut F2fs<BedDevice>,
    (dir, name): (Ino, &[u8]),
) -> Ino {
    let caller = Caller::default();
    if inode.file_type() == FileType::SYMLINK {
        let target = volume.read_link(inode).unwrap();
        return fs.symlink(&caller, dir, name, &target).unwrap().ino;
    }
    let is_device = matches!(inode.file_type(), FileType::CHAR_DEVICE | FileType::BLOCK_DEVICE);
    let rdev = if is_device { inode.device() } else { (0, 0) };
    let node = NewNode { mode: inode.mode, rdev };
    let ino = fs.create(&caller, dir, name, &node).unwrap().ino;
    if inode.file_type() == FileType::REGULAR {
        let (mut buffer, mut at) = (vec![0; 1 << 16], 0);
        while let Ok(next) = volume.next_data(inode, at) {
            let len = volume.read(inode, next, &mut buffer).unwrap();
            if len == 0 {
                break;
            }
            fs.write(&caller, ino, next, &buffer[..len]).unwrap();
            at = next + len as u64;
        }
        let size = SetAttr { size: Some(inode.size), ..SetAttr::default() };
        fs.setattr(&caller, ino, &size).unwrap();
    }
    ino
}
