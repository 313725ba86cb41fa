//! F2FS in a stack.

use std::num::NonZeroU32;

use dovetail_block::Scheduler;
use dovetail_f2fs::format::{AddressWidth, Features, Variant};
use dovetail_f2fs::fsck::{self, Severity};
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{F2fs, GcSleep, IpuPolicy, Mode, Options, RemapOrder};
use dovetail_host::Planner;
use dovetail_time::{AtFloor, Ratio, SimTime};
use dovetail_vfs::kit::Throttle;
use dovetail_vfs::{Guarantees, Limits};
use serde::Deserialize;

use crate::kept::Kept;
use crate::kind::{Device, Mounted, Setup, SetupError, VolumeKind, table};

/// Dirty nodes at which a checkpoint is written, at the smallest scale: its own blocks stay few
/// beside the nodes.
const FEWEST_DIRTY_NODES: f64 = 64.0;

/// Nodes in memory, in parts of the page cache: as much of it as a mount's defaults give them. Linux
/// keeps nodes in the page cache itself, without a bound of their own, so they grow with it.
const PAGE_CACHE_TO_NODES: u64 = 2;

/// Up to this size the kernel (6.1) treats a volume as small: it overwrites in place.
const SMALL_VOLUME: f64 = (16_u64 << 30) as f64;

/// The stack's table `[mkfs]`, by the names of `dovetail mkfs f2fs`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Mkfs {
    overprovision: Option<f64>,
    segs_per_sec: Option<u32>,
    secs_per_zone: Option<u32>,
    large_nat: bool,
    discard: Option<bool>,
    address_bytes: Option<u32>,
}

impl Mkfs {
    /// The variant of a kind of file system; of IPLFS with the width that is asked for.
    fn variant(&self, kind: Variant) -> Result<Variant, SetupError> {
        let Some(bytes) = self.address_bytes else { return Ok(kind) };
        let width = AddressWidth::of_bytes(bytes).filter(|_| kind.is_iplfs());
        width.map(Variant::Iplfs).ok_or_else(|| {
            SetupError::settings("[mkfs] address-bytes: IPLFS has 4 or 8, F2FS always 4")
        })
    }
}

/// The stack's table `[sysfs]`, by the kernel's names.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Sysfs {
    ipu_policy: Option<u32>,
    min_ipu_util: Option<u32>,
    min_fsync_blocks: Option<u32>,
    max_discard_request: Option<NonZeroU32>,
    gc_urgent: Option<u32>,
    gc_min_sleep_time: Option<u32>,
    gc_max_sleep_time: Option<u32>,
    gc_no_gc_sleep_time: Option<u32>,
    gc_urgent_sleep_time: Option<u32>,
    cp_interval: Option<u64>,
}

/// Values of `ipu_policy` that Linux takes: bits of eight policies.
const IPU_POLICY_MAX: u32 = 255;
/// Values of `gc_urgent` that Linux takes: normal, high, low, mid.
const GC_URGENT_MAX: u32 = 3;

impl Sysfs {
    /// Linux answers EINVAL to these.
    fn check(&self) -> Result<(), String> {
        let limits = [
            ("ipu_policy", self.ipu_policy, IPU_POLICY_MAX),
            ("gc_urgent", self.gc_urgent, GC_URGENT_MAX),
            ("min_ipu_util", self.min_ipu_util, 100),
        ];
        match limits.iter().find(|(_, value, most)| value.is_some_and(|value| value > *most)) {
            Some((key, value, most)) => Err(format!(
                "[sysfs] {key} is {}, allowed is 0 to {most}, a number without quotes",
                value.unwrap_or_default()
            )),
            None => Ok(()),
        }
    }

    /// Those of `options`, with the ones that are given in their place.
    fn gc_sleep(&self, options: GcSleep) -> GcSleep {
        // a thread that does not sleep would stop virtual time
        let or = |given: Option<u32>, default| given.map_or(default, |ms| u64::from(ms).max(1));
        GcSleep {
            min_ms: or(self.gc_min_sleep_time, options.min_ms),
            max_ms: or(self.gc_max_sleep_time, options.max_ms),
            nothing_ms: or(self.gc_no_gc_sleep_time, options.nothing_ms),
            urgent_ms: or(self.gc_urgent_sleep_time, options.urgent_ms),
        }
    }
}

pub(crate) const F2FS: VolumeKind = VolumeKind {
    name: "f2fs",
    build: |setup, planner| build(setup, planner, Variant::F2fs),
    remount: |setup, planner| mount(setup, planner),
    make: |setup, device| make(setup, device, Variant::F2fs),
    mount: |setup, device| mount(setup, device),
    check,
    guarantees,
    limits: |_| Limits::default(),
    floors,
    figures: dovetail_f2fs::FIGURES,
    referee: Some(("fsck.f2fs", &["--dry-run"])),
};

/// On a thin drive.
pub(crate) const IPLFS: VolumeKind = VolumeKind {
    name: "iplfs",
    build: |setup, planner| build(setup, planner, Variant::IPLFS),
    make: |setup, device| make(setup, device, Variant::IPLFS),
    limits: iplfs_limits,
    referee: None,
    ..F2FS
};

/// The limits of the width that is asked for; wrong options are told when the volume is made.
fn iplfs_limits(setup: &Setup<'_>) -> Limits {
    let options = mkfs_options(setup, Variant::IPLFS);
    let variant = options.map_or(Variant::IPLFS, |options| options.variant);
    Limits { file_size: variant.write_limit(), ..Limits::default() }
}

fn build(setup: &Setup<'_>, mut planner: Planner, variant: Variant) -> Mounted {
    make(setup, &mut planner, variant)?;
    mount(setup, planner)
}

fn make(setup: &Setup<'_>, device: impl Scheduler, kind: Variant) -> Result<(), SetupError> {
    let mut device = device;
    let mut options = mkfs_options(setup, kind)?;
    if device.info().capabilities.zones.is_some() && kind == Variant::F2fs {
        options.features = options.features.with(Features::BLKZONED);
    }
    let made = match setup.discards() {
        true => mkfs(&mut device, &options),
        false if kind.is_iplfs() => {
            return Err(SetupError::settings(
                "[mkfs] discard is false: IPLFS needs an empty drive",
            ));
        }
        false => mkfs(&mut Kept(device), &options),
    };
    made.map(drop).map_err(SetupError::volume)
}

fn mount(setup: &Setup<'_>, device: impl Scheduler + 'static) -> Mounted {
    let full_bytes = device.info().capacity() as f64 * 4096.0 / setup.scale.value();
    // the kernel's defaults depend on the size: a volume shrunk with its drive keeps those of its
    // full size
    let small_volume = Some(full_bytes <= SMALL_VOLUME);
    let physical_pointers = setup.device_addresses;
    let mut options = Options { small_volume, physical_pointers, ..mount_options(setup)? };
    options.max_dirty_nodes =
        dirty_nodes(setup.scale, options.max_dirty_nodes).max(FEWEST_DIRTY_NODES) as usize;
    Ok(Box::new(F2fs::mount(device, options, SimTime::ZERO).map_err(SetupError::volume)?))
}

/// Dirty nodes at which a checkpoint is written as a scale asks for them, of so many at full scale.
fn dirty_nodes(scale: Ratio, full: usize) -> f64 {
    full as f64 * scale.value()
}

fn floors(scale: Ratio) -> Vec<AtFloor> {
    let asked = dirty_nodes(scale, Options::default().max_dirty_nodes);
    let value = asked.max(FEWEST_DIRTY_NODES);
    let what = "the number of dirty nodes at which F2FS writes a checkpoint";
    AtFloor::find(what, "nodes", (asked, value), scale).into_iter().collect()
}

fn check(device: Device) -> Vec<String> {
    match fsck::check(device, fsck::Options::default(), |_| {}) {
        Ok(report) => {
            let errors = report.findings.iter().filter(|found| found.severity() == Severity::Error);
            errors.map(ToString::to_string).collect()
        }
        Err(error) => vec![error.to_string()],
    }
}

/// With `remap=fsync` a file's updates wait for its fsync; content in an inode comes with any
/// checkpoint. With `lazytime` times may be older than what they belong to.
fn guarantees(setup: &Setup<'_>) -> Guarantees {
    let options = Options::parse(setup.mount).unwrap_or_default();
    let atomic_fsync = options.remap == RemapOrder::WithFsync && options.mode == Mode::RmIpu;
    let updates_wait = atomic_fsync && !options.inline_data;
    Guarantees { atomic_fsync, updates_wait, times: !options.lazytime, ..Guarantees::default() }
}

fn mkfs_options(setup: &Setup<'_>, kind: Variant) -> Result<MkfsOptions, SetupError> {
    let table: Mkfs = table("mkfs", setup.mkfs)?;
    let defaults = MkfsOptions::default();
    Ok(MkfsOptions {
        variant: table.variant(kind)?,
        overprovision_percent: table.overprovision,
        segments_per_section: table.segs_per_sec.unwrap_or(defaults.segments_per_section),
        sections_per_zone: table.secs_per_zone.unwrap_or(defaults.sections_per_zone),
        large_nat: table.large_nat,
        ..defaults
    })
}

fn mount_options(setup: &Setup<'_>) -> Result<Options, SetupError> {
    let sysfs: Sysfs = table("sysfs", setup.sysfs)?;
    sysfs.check().map_err(SetupError::settings)?;
    let options = Options::parse(setup.mount).map_err(SetupError::settings)?;
    Ok(Options {
        ipu_policy: sysfs.ipu_policy.map(IpuPolicy).or(options.ipu_policy),
        min_ipu_util_percent: (sysfs.min_ipu_util).map_or(options.min_ipu_util_percent, u64::from),
        min_fsync_blocks: (sysfs.min_fsync_blocks)
            .map_or(options.min_fsync_blocks, |blocks| blocks as usize),
        max_discard_request: sysfs.max_discard_request.or(options.max_discard_request),
        gc_sleep: sysfs.gc_sleep(options.gc_sleep),
        gc_urgent: sysfs.gc_urgent.map_or(options.gc_urgent, |urgent| urgent != 0),
        checkpoint_interval_s: sysfs.cp_interval.unwrap_or(options.checkpoint_interval_s),
        page_cache_bytes: setup.memory_bytes,
        node_cache_bytes: setup.memory_bytes / PAGE_CACHE_TO_NODES,
        dirty_background_bytes: Some(Throttle::background_bytes(setup.memory_bytes)),
        ..options
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_in_memory_shrink_with_the_page_cache() {
        let (mkfs, sysfs) = Default::default();
        let at = |memory_bytes, scale: &str| {
            let setup = Setup {
                mount: "",
                mkfs: &mkfs,
                sysfs: &sysfs,
                memory_bytes,
                scale: scale.parse().unwrap(),
                device_addresses: false,
            };
            let options = mount_options(&setup).unwrap();
            (options.page_cache_bytes, options.node_cache_bytes)
        };
        let of_a_mount = Options::default();
        let whole = at(of_a_mount.page_cache_bytes, "1");
        assert_eq!(whole, (of_a_mount.page_cache_bytes, of_a_mount.node_cache_bytes));
        assert_eq!(at(whole.0 / 64, "1/64"), (whole.0 / 64, whole.1 / 64));
        assert_eq!(at(1 << 30, "1"), (1 << 30, 1 << 29));
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let narrow = Mkfs { address_bytes: Some(4), ..Mkfs::default() };
        let width = narrow.variant(Variant::IPLFS).unwrap();
        assert_eq!(width, Variant::Iplfs(AddressWidth::Narrow));
        assert!(narrow.variant(Variant::F2fs).is_err(), "F2FS has no choice");
        let odd = Mkfs { address_bytes: Some(6), ..Mkfs::default() };
        assert!(odd.variant(Variant::IPLFS).is_err());
        let sysfs = |text: &str| toml::from_str::<Sysfs>(text);
        assert!(sysfs("max_discard_request = 0").is_err(), "it would never discard");
    }

    #[test]
    fn settings_reach_the_volume() {
        let mkfs = toml::toml! { address-bytes = 4 };
        let sysfs = toml::toml! { max_discard_request = 80_000 };
        let (mount, scale) = ("", "1".parse().unwrap());
        let (memory_bytes, device_addresses) = (1 << 30, false);
        let setup =
            Setup { mount, mkfs: &mkfs, sysfs: &sysfs, memory_bytes, scale, device_addresses };
        let narrow = Variant::Iplfs(AddressWidth::Narrow);
        assert_eq!(mkfs_options(&setup, Variant::IPLFS).unwrap().variant, narrow);
        assert_eq!(iplfs_limits(&setup).file_size, narrow.write_limit());
        let options = mount_options(&setup).unwrap();
        assert_eq!(options.max_discard_request.map(NonZeroU32::get), Some(80_000));
    }

    #[test]
    fn checkpoints_come_at_no_fewer_dirty_nodes_than_the_floor() {
        let at = |scale: &str| floors(scale.parse().unwrap());
        assert_eq!([at("1"), at("1/64")], [vec![], vec![]]);
        let [floor] = at("1/128")[..] else { panic!("{:?}", at("1/128")) };
        assert_eq!((floor.value, floor.asked, floor.from_scale), (64.0, 32.0, 1.0 / 64.0));
    }
}
