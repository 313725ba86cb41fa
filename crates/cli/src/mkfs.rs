//! `dovetail mkfs`: making a file system.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use dovetail_block::{BLOCK_SIZE, BlockDevice};
use dovetail_ext::format::Compat;
use dovetail_ext::mkfs::Kind;
use dovetail_f2fs::format::{AddressWidth, BLOCKS_IN_SEGMENT, Features, Timestamp, Variant};
use dovetail_f2fs::mkfs::{DevicePart, MkfsOptions, MkfsReport, existing_content, mkfs};
use dovetail_image::{Medium, NewZones, Source, is_drive};
use dovetail_time::{did_you_mean, format_bytes, parse_bytes};
use uuid::Uuid;

use crate::mount::ImageLock;
use crate::{Failure, print};

/// File system to make.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make an F2FS volume, as mkfs.f2fs does, by the same letters.
    F2fs(F2fsArguments),
    /// Make an IPLFS volume, F2FS whose logs are never cleaned, on a drive with more addresses
    /// than room.
    Iplfs(IplfsArguments),
    /// Make an ext2 volume, as mke2fs does with its defaults.
    Ext2(ExtArguments),
    /// Make an ext3 volume: with a journal and block maps.
    Ext3(ExtArguments),
    /// Make an ext4 volume: with a journal, extents and checksums.
    Ext4(ExtArguments),
}

/// Place of the new volume.
#[derive(Clone, Debug, Args)]
struct Target {
    /// The image file, a block device, or a drive file (`dovetail drive make`).
    image: PathBuf,
    /// Make the file, or extend it, to this size; it takes no room until it is filled.
    #[arg(long, value_parser = size)]
    size: Option<u64>,
    /// Overwrite what is there.
    #[arg(short, long)]
    force: bool,
    #[arg(skip)]
    devices: Devices,
}

/// Further devices of an F2FS volume, and zones.
#[derive(Clone, Debug, Default, Args)]
struct Devices {
    /// Another device of the same volume, once for each; a zoned one comes last.
    #[arg(short = 'c', long = "device", value_name = "PATH")]
    others: Vec<PathBuf>,
    /// On an image of a zoned device: the zone report, as `blkzone report` prints it; with
    /// --zone-size it is made.
    #[arg(long, value_name = "FILE")]
    zones: Option<PathBuf>,
    /// Bytes of a zone, of which the image (of several the last) gets as many as it has room for.
    #[arg(long, value_parser = size, requires = "zones")]
    zone_size: Option<u64>,
    /// Bytes of a zone that can be written; all of them if it is left out.
    #[arg(long, value_parser = size, requires = "zone_size")]
    zone_capacity: Option<u64>,
    /// Zones at the start that are written in any order.
    #[arg(long, default_value_t = 0, requires = "zone_size", value_name = "N")]
    conventional: u64,
}

impl Devices {
    fn of(&self, image: &Path) -> Source {
        Source::from(image).with_devices(self.others.clone()).with_zones(self.zones.clone())
    }

    fn new_zones(&self) -> Option<NewZones> {
        let size = self.zone_size?;
        let capacity = self.zone_capacity.unwrap_or(size);
        Some(NewZones { size, capacity, conventional: self.conventional })
    }
}

/// Options of an ext volume.
#[derive(Debug, Args)]
pub(crate) struct ExtArguments {
    #[command(flatten)]
    target: Target,
    /// The label.
    #[arg(short = 'L', long, default_value = "")]
    label: String,
    /// The UUID; a random one if it is left out.
    #[arg(short = 'U', long)]
    uuid: Option<Uuid>,
    /// Bytes in a block: 1024, 2048 or 4096; by the size if it is left out.
    #[arg(short, long, value_name = "BYTES", value_parser = size_32)]
    block_size: Option<u32>,
    /// Blocks of a group; as many as a block has bits if it is left out.
    #[arg(short = 'g', long, value_name = "N")]
    blocks_per_group: Option<u32>,
    /// Bytes in an inode.
    #[arg(short = 'I', long, default_value = "256", value_name = "BYTES", value_parser = size_32)]
    inode_size: u32,
    /// Bytes of the volume for each inode; by the size if it is left out.
    #[arg(short = 'i', long, value_name = "BYTES", value_parser = size_32)]
    inode_ratio: Option<u32>,
    /// Inodes of the volume, in place of a ratio; rounded so that all groups have as many.
    #[arg(short = 'N', long, value_name = "N", conflicts_with = "inode_ratio")]
    inodes: Option<u32>,
    /// A journal of so many MiB; by the volume's size if it is left out.
    #[arg(short = 'J', long, value_name = "size=MIB", value_parser = journal_mib)]
    journal: Option<u32>,
    /// Features beside the usual ones, joined by commas: NAME adds one, ^NAME takes it away, none
    /// all of them.
    #[arg(short = 'O', long, value_delimiter = ',', value_name = "[^]FEATURE,...")]
    features: Vec<String>,
    /// Percent of the blocks that only root may fill.
    #[arg(short = 'm', long, default_value_t = 5, value_name = "PERCENT")]
    reserved_percent: u32,
}

/// Options that F2FS and its variant have in common.
#[derive(Debug, Args)]
struct Named {
    /// The label.
    #[arg(short, long, default_value = "")]
    label: String,
    /// Features, joined by commas: extra_attr, inode_checksum, sb_checksum, flexible_inline_xattr,
    /// inode_crtime, lost_found, project_quota, compression, verity, casefold, encrypt.
    #[arg(short = 'O', long, value_delimiter = ',', value_name = "FEATURE,...")]
    features: Vec<String>,
    /// The UUID; a random one if it is left out.
    #[arg(short = 'U', long)]
    uuid: Option<Uuid>,
}

/// Drive and options of an IPLFS volume.
#[derive(Debug, Args)]
pub(crate) struct IplfsArguments {
    /// A drive file with more addresses than room
    /// (`dovetail drive make FILE --addresses iplfs --map interval`).
    drive: PathBuf,
    /// Bytes of a block address: with 4, as in the published code, a node holds twice the pointers,
    /// and each log ends after 2 TiB.
    #[arg(long, value_name = "4|8", default_value = "8", value_parser = address_width)]
    address_bytes: AddressWidth,
    /// Overwrite what is there.
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    named: Named,
}

/// Options of an F2FS volume.
#[derive(Debug, Args)]
pub(crate) struct F2fsArguments {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    devices: Devices,
    #[command(flatten)]
    named: Named,
    /// For a device that is written in zones: sections are its zones.
    #[arg(short = 'm', long)]
    zoned: bool,
    /// Segments (2 MiB) in a section, the unit of cleaning.
    #[arg(short, long, default_value_t = 1, value_name = "N")]
    segments_per_section: u32,
    /// Sections in a zone.
    #[arg(short = 'z', long, default_value_t = 1, value_name = "N")]
    sections_per_zone: u32,
    /// Percent kept from users; the best for the size if it is left out.
    #[arg(short, long, value_name = "PERCENT")]
    overprovision: Option<f64>,
    /// Make room for more files: a fifth as many as there are blocks.
    #[arg(short = 'i', long)]
    large_nat: bool,
}

fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|error| error.to_string())
}

fn size_32(text: &str) -> Result<u32, String> {
    size(text)?.try_into().map_err(|_| "it must be less than 4 GiB".into())
}

/// The MiB of `size=MIB`.
fn journal_mib(text: &str) -> Result<u32, &'static str> {
    let mib = text.strip_prefix("size=").and_then(|mib| mib.parse().ok());
    mib.filter(|mib| (1..=1 << 20).contains(mib)).ok_or("give size=MIB, such as size=64")
}

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::F2fs(arguments) => {
            let options = options(arguments)?;
            let target = Target { devices: arguments.devices.clone(), ..arguments.target.clone() };
            let report = at(&target, |device, sizes| {
                let devices = parts(&target, sizes)?;
                mkfs(device, &MkfsOptions { devices, ..options }).map_err(|e| e.to_string())
            })?;
            print(&summary(&target.image, &report))
        }
        Command::Iplfs(arguments) => iplfs(arguments),
        Command::Ext2(arguments) => ext(arguments, Kind::Ext2),
        Command::Ext3(arguments) => ext(arguments, Kind::Ext3),
        Command::Ext4(arguments) => ext(arguments, Kind::Ext4),
    }
}

/// Makes a volume at `target`; a file that was made for it goes away again when that fails.
fn at<R>(
    target: &Target,
    make_on: impl FnOnce(&mut Medium, &[u64]) -> Result<R, String>,
) -> Result<R, Failure> {
    let before = fs::metadata(&target.image).ok().map(|metadata| metadata.len());
    let made = make(target, before, make_on);
    if made.is_err() && target.size.is_some() {
        restore(&target.image, before);
    }
    made
}

fn ext(arguments: &ExtArguments, kind: Kind) -> Result<(), Failure> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut options = dovetail_ext::mkfs::MkfsOptions {
        label: arguments.label.clone(),
        uuid: *arguments.uuid.unwrap_or_else(Uuid::new_v4).as_bytes(),
        hash_seed: *Uuid::new_v4().as_bytes(),
        time: since_1970.as_secs(),
        block_size: arguments.block_size,
        blocks_per_group: arguments.blocks_per_group,
        inode_size: arguments.inode_size,
        inode_ratio: arguments.inode_ratio,
        inodes: arguments.inodes,
        reserved_percent: arguments.reserved_percent,
        ..dovetail_ext::mkfs::MkfsOptions::new(kind)
    };
    for feature in &arguments.features {
        options.change_feature(feature).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    if arguments.journal.is_some() {
        options.compat = options.compat.with(Compat::HAS_JOURNAL);
    }
    let make_on = |device: &mut Medium, _: &[u64]| {
        let block = options.block_size_on(device.info().blocks * BLOCK_SIZE);
        let in_blocks = |mib: u32| ((u64::from(mib) << 20) / u64::from(block.max(1))) as u32;
        options.journal_blocks = arguments.journal.map(in_blocks);
        dovetail_ext::mkfs::mkfs(device, &options).map_err(|e| e.to_string())
    };
    let report = at(&arguments.target, make_on)?;
    let (s, image) = (&report.superblock, arguments.target.image.display());
    let size = format_bytes(s.blocks_count * u64::from(s.block_size()));
    let journal = match report.journal_blocks {
        0 => "no journal".to_string(),
        blocks => format!("a journal of {blocks} blocks"),
    };
    print(&format!(
        "{image}: an {} volume of {size}, UUID {}, label {:?}\n{} blocks of {} bytes, {} inodes, {journal}\n",
        format!("{kind:?}").to_lowercase(),
        Uuid::from_bytes(s.uuid),
        arguments.label,
        s.blocks_count,
        s.block_size(),
        s.inodes_count,
    ))
}

fn iplfs(arguments: &IplfsArguments) -> Result<(), Failure> {
    let variant = Variant::Iplfs(arguments.address_bytes);
    let options = MkfsOptions { variant, ..named_options(&arguments.named)? };
    let drive = &arguments.drive;
    if !is_thin(drive)? {
        let drive = drive.display();
        return Err(Failure::Failed(format!(
            "{drive}: IPLFS never writes an address again and needs a drive with more addresses than room; make one with: \
             dovetail drive make {drive} --addresses iplfs --map interval"
        )));
    }
    let devices = Devices::default();
    let target = Target { image: drive.clone(), size: None, force: arguments.force, devices };
    let report = at(&target, |device, _| mkfs(device, &options).map_err(|e| e.to_string()))?;
    print(&iplfs_summary(drive, &report))
}

fn address_width(bytes: &str) -> Result<AddressWidth, &'static str> {
    bytes.parse().ok().and_then(AddressWidth::of_bytes).ok_or("an address has 4 or 8 bytes")
}

/// Is true if there is a drive at `path` with more addresses than room.
fn is_thin(path: &Path) -> Result<bool, Failure> {
    if !is_drive(path) {
        return Ok(false);
    }
    let drive = Medium::open_read_only(path);
    let drive = drive.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
    Ok(drive.info().capabilities.thin.is_some())
}

/// The devices as a superblock names them; none if there is one only.
fn parts(target: &Target, sizes: &[u64]) -> Result<Vec<DevicePart>, String> {
    if sizes.len() < 2 {
        return Ok(Vec::new());
    }
    let paths = std::iter::once(&target.image).chain(&target.devices.others);
    let part = |(path, &blocks): (&PathBuf, &u64)| {
        let absolute = std::path::absolute(path).map_err(|error| error.to_string())?;
        let path = absolute.to_str().ok_or("a path is no plain text")?.to_string();
        Ok(DevicePart { path, blocks })
    };
    paths.zip(sizes).map(part).collect()
}

fn options(arguments: &F2fsArguments) -> Result<MkfsOptions, Failure> {
    let named = named_options(&arguments.named)?;
    let zoned = if arguments.zoned { Features::BLKZONED } else { Features(0) };
    Ok(MkfsOptions {
        features: named.features.with(zoned),
        segments_per_section: arguments.segments_per_section,
        sections_per_zone: arguments.sections_per_zone,
        overprovision_percent: arguments.overprovision,
        large_nat: arguments.large_nat,
        ..named
    })
}

fn named_options(arguments: &Named) -> Result<MkfsOptions, Failure> {
    let mut features = Features(0);
    for name in &arguments.features {
        let unknown = || {
            let known: Vec<_> = Features::names().collect();
            let hint = did_you_mean(name, known.iter().copied());
            let known = known.join(", ");
            Failure::Usage(format!("there is no feature {name:?}{hint}; there are {known}"))
        };
        features = features.with(Features::named(name).ok_or_else(unknown)?);
    }
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(MkfsOptions {
        label: arguments.label.clone(),
        uuid: *arguments.uuid.unwrap_or_else(Uuid::new_v4).as_bytes(),
        features,
        time: Timestamp { seconds: since_1970.as_secs() as i64, nanoseconds: 0 },
        checkpoint_version: u64::from(Uuid::new_v4().as_fields().0) | 1,
        ..MkfsOptions::default()
    })
}

fn make<R>(
    target: &Target,
    before: Option<u64>,
    make_on: impl FnOnce(&mut Medium, &[u64]) -> Result<R, String>,
) -> Result<R, Failure> {
    let image = &target.image;
    let failed = |error: String| Failure::Failed(format!("{}: {error}", image.display()));
    let _lock = before.map(|_| ImageLock::take(image, true)).transpose()?;
    let open = || Medium::open_read_write(image).map_err(|error| failed(error.to_string()));
    if before.is_some() && !target.force {
        let found = existing_content(&mut open()?).map_err(|error| failed(error.to_string()))?;
        if let Some(found) = found {
            return Err(failed(format!("{found} is there; -f overwrites it")));
        }
    }
    let _locks = lock_others(target)?;
    if let Some(size) = target.size {
        if is_drive(image) {
            return Err(failed("it is a drive, whose size is its own; leave --size out".into()));
        }
        resize(image, before, size)?;
    } else if before.is_none() {
        return Err(failed("there is no such file; --size makes one".into()));
    }
    let source = target.devices.of(image);
    let medium = Medium::open_for_mkfs(&source, target.devices.new_zones());
    let (mut medium, sizes) = medium.map_err(|error| failed(error.to_string()))?;
    make_on(&mut medium, &sizes).map_err(failed)
}

/// Locks the other devices of the volume; what is there is overwritten only if that was asked for.
fn lock_others(target: &Target) -> Result<Vec<ImageLock>, Failure> {
    let mut locks = Vec::new();
    for other in &target.devices.others {
        let failed = |error: String| Failure::Failed(format!("{}: {error}", other.display()));
        let place = |path: &Path| path.canonicalize().ok();
        let others = target.devices.others.iter().filter(|again| place(again) == place(other));
        if others.count() > 1 || place(&target.image) == place(other) {
            let other = other.display();
            return Err(Failure::Usage(format!("{other} is given twice: a device is one part")));
        }
        locks.push(ImageLock::take(other, true)?);
        let device = Medium::open_read_only(other).map_err(|error| failed(error.to_string()));
        let found = existing_content(&mut device?).map_err(|error| failed(error.to_string()))?;
        if let Some(found) = found.filter(|_| !target.force) {
            return Err(failed(format!("{found} is there; -f overwrites it")));
        }
    }
    Ok(locks)
}

fn resize(image: &Path, before: Option<u64>, size: u64) -> Result<(), Failure> {
    if let Some(before) = before.filter(|&before| before > size) {
        let (image, before) = (image.display(), format_bytes(before));
        return Err(Failure::Usage(format!(
            "{image} is larger ({before}) than --size, and is not cut"
        )));
    }
    let file = File::options().write(true).create(true).truncate(false).open(image);
    let done = file.and_then(|file| file.set_len(size));
    done.map_err(|error| {
        Failure::Failed(format!("{} cannot be made that large: {error}", image.display()))
    })
}

/// A file that --size made goes away again, one that it extended gets its length back.
fn restore(image: &Path, before: Option<u64>) {
    // the error that is reported is the one before this
    let _ = match before {
        None => fs::remove_file(image),
        Some(len) => File::options().write(true).open(image).and_then(|file| file.set_len(len)),
    };
}

fn iplfs_summary(drive: &Path, report: &MkfsReport) -> String {
    let superblock = &report.superblock;
    let (drive, features) = (drive.display(), superblock.features);
    let size = format_bytes(superblock.capacity * BLOCK_SIZE);
    let uuid = Uuid::from_bytes(superblock.uuid);
    let users = format_bytes(report.user_blocks * BLOCK_SIZE);
    format!(
        "{drive}: an IPLFS volume on a drive of {size}, UUID {uuid}, label {:?}, features {features}\n\
         {users} for files; six logs of 2^{} blocks, addresses of {} bytes\n",
        superblock.label,
        superblock.variant.area_blocks().trailing_zeros(),
        superblock.variant.address_bytes(),
    )
}

fn summary(image: &Path, report: &MkfsReport) -> String {
    let superblock = &report.superblock;
    let (image, features) = (image.display(), superblock.features);
    let size = format_bytes(superblock.block_count * BLOCK_SIZE);
    let uuid = Uuid::from_bytes(superblock.uuid);
    let users = format_bytes(report.user_blocks * BLOCK_SIZE);
    let segments =
        |count: u32| format_bytes(u64::from(count) * u64::from(BLOCKS_IN_SEGMENT) * BLOCK_SIZE);
    let kept = segments(report.overprovision_segments);
    let free = segments(report.reserved_segments);
    let read_only = match features.has(Features::CASEFOLD) {
        true => "a volume with casefold is read here, and written by Linux alone\n",
        false => "",
    };
    format!(
        "{image}: an F2FS volume of {size}, UUID {uuid}, label {:?}, features {features}\n\
         {users} for files; {kept} overprovision, of which {free} stay free for cleaning\n{read_only}",
        superblock.label
    )
}
