//! Traces on zoned drives: refused as they are, or played through a log in the host.

use std::fs;
use std::path::{Path, PathBuf};

use dovetail_ftl::{DriveConfig, Overrides, Profile, ZoneConfig, ZoneTimes};
use dovetail_lab::HostCosts;
use dovetail_lab::replay::{Pacing, ReplayError, ReplayJob, replay};
use dovetail_nand::Geometry;
use dovetail_time::Rng;
use dovetail_workload::trace::{BlkEvent, TraceOptions};

/// Lines of the page-mapped drive, and zones of the other; blocks of each.
const ZONES: u32 = 240;
const ZONE_BLOCKS: u64 = 256;
/// Blocks that the host has of them.
const HOST_BLOCKS: u64 = 192 * ZONE_BLOCKS;

fn job(trace: &Path, drive: DriveConfig, zone_log: Option<f64>) -> ReplayJob {
    ReplayJob {
        label: "run".into(),
        trace: trace.into(),
        trace_options: TraceOptions::default(),
        drive,
        pacing: Pacing::Closed { depth: 32 },
        wrap: true,
        precondition: true,
        interval: None,
        host: HostCosts::NONE,
        limit: None,
        zone_log,
    }
}

/// Random writes of a block, and some reads, all over the host's blocks.
fn trace(folder: &Path) -> PathBuf {
    let (mut rng, mut text) = (Rng::new(3), String::from("fio version 2 iolog\n/f add\n/f open\n"));
    for _ in 0..60_000 {
        let kind = if rng.chance(0.1) { "read" } else { "write" };
        text += &format!("/f {kind} {} 4096\n", rng.below(HOST_BLOCKS) * 4096);
    }
    let path = folder.join("random.iolog");
    fs::write(&path, text).unwrap();
    path
}

/// Two channels of two dies, with so many lines of 1 MiB.
fn drive(lines: u32, user_blocks: u64) -> DriveConfig {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: lines,
        pages_per_block: 64,
        page_bytes: 4096,
    };
    DriveConfig { buffer_pages: 256, ..DriveConfig::plain(geometry, user_blocks) }
}

fn zoned() -> DriveConfig {
    let zones = ZoneConfig {
        size: ZONE_BLOCKS,
        capacity: ZONE_BLOCKS,
        conventional: 0,
        dies: 4,
        max_open: 2,
        max_active: 2,
        max_append: 0,
        window: None,
        spare: 2,
        finish_fills: false,
        times: ZoneTimes::default(),
    };
    let own = 20;
    DriveConfig { zones: Some(zones), ..drive(ZONES + own, u64::from(ZONES) * ZONE_BLOCKS) }
}

/// The same flash, the same share of it for the host (192 MiB of 240), uniform random writes: the
/// log in the host writes 2.77 times what it is told to, the one in the drive 2.85 times. Both
/// clean the emptiest of as many units; how many each keeps empty differs.
#[test]
fn a_log_in_the_host_cleans_as_much_as_one_in_the_drive() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path());
    let in_drive = replay(&job(&trace, drive(ZONES, HOST_BLOCKS), None), &mut |_| {}).unwrap();
    let in_host = replay(&job(&trace, zoned(), Some(25.0)), &mut |_| {}).unwrap();
    let log = in_host.zone_log.clone().unwrap();
    assert_eq!(in_host.stack.partition_bytes, HOST_BLOCKS * 4096);
    let on_drive = in_host.totals.device_waf.unwrap();
    assert!((1.0..1.02).contains(&on_drive), "the zoned drive moves nothing: {on_drive}");
    let together = in_host.totals.total_waf.unwrap();
    assert!((together / (log.waf.unwrap() * on_drive) - 1.0).abs() < 1e-9, "{together}");
    assert!((log.spare_percent - 25.0).abs() < 1e-9, "{}", log.spare_percent);
    let (host, drive) = (log.waf.unwrap() * on_drive, in_drive.totals.device_waf.unwrap());
    assert!((host / drive - 1.0).abs() < 0.06, "{host} in the host, {drive} in the drive");
    assert!(drive > 2.0, "there is something to clean: {drive}");
    assert_eq!(log.map_bytes, 4 * (HOST_BLOCKS + u64::from(ZONES) * ZONE_BLOCKS));
    let again = replay(&job(&trace, zoned(), Some(25.0)), &mut |_| {}).unwrap();
    assert_eq!(in_host, again, "the same job gives the same result");
}

#[test]
fn a_trace_that_breaks_the_rules_of_zones_is_told_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.iolog");
    let zone = ZONE_BLOCKS * 4096;
    let text = format!(
        "fio version 2 iolog\n/f add\n/f open\n/f write {zone} 8192\n/f write {} 4096\n/f write {} 4096\n",
        zone + 8192,
        zone + 4096
    );
    fs::write(&path, text).unwrap();
    let plain = ReplayJob { precondition: false, ..job(&path, zoned(), None) };
    let error = replay(&plain, &mut |_| {}).unwrap_err();
    assert!(matches!(error, ReplayError::Zones { number: 3, .. }), "{error}");
    let (error, at) = (error.to_string(), format!("request 3, a write at byte {}", zone + 4096));
    for part in [at.as_str(), "its next block is 259", "--zone-translate"] {
        assert!(error.contains(part), "{error}");
    }
    let two = ReplayJob { limit: Some(2), ..plain.clone() };
    assert_eq!(replay(&two, &mut |_| {}).unwrap().totals.written_bytes, 3 * 4096);
    let log = ReplayJob { zone_log: Some(7.0), ..plain };
    assert_eq!(replay(&log, &mut |_| {}).unwrap().totals.written_bytes, 4 * 4096);
}

/// A write that covers a block in part waits for a read, one after a flush for that; the next one
/// to the zone waits for them.
#[test]
fn writes_to_a_zone_keep_their_order_behind_one_that_waits() {
    let folder = tempfile::tempdir().unwrap();
    let sectors = |first: u64, sectors: u64| format!("{} + {sectors}", ZONE_BLOCKS * 8 + first);
    let partial = [("WS", 0, 12), ("WS", 16, 8), ("WS", 24, 8)];
    let preflush = [("WS", 0, 8), ("FWS", 8, 8), ("WS", 16, 8)];
    for (requests, blocks) in [(partial, 4), (preflush, 3)] {
        let mut text = String::new();
        for (number, (kind, first, count)) in requests.into_iter().enumerate() {
            let at = format!("0.00000{number}000");
            text += &format!("8,0 0 {number} {at} 1 Q {kind} {} [a]\n", sectors(first, count));
        }
        let path = folder.path().join("order.txt");
        fs::write(&path, text).unwrap();
        let trace_options = TraceOptions { blk_event: BlkEvent::Queue, ..TraceOptions::default() };
        for pacing in [Pacing::Timed { speed: 1.0 }, Pacing::Closed { depth: 8 }] {
            for host in [HostCosts::NONE, HostCosts::default()] {
                let plain = job(&path, zoned(), None);
                let trace_options = trace_options.clone();
                let job = ReplayJob { precondition: false, trace_options, pacing, host, ..plain };
                let result = replay(&job, &mut |_| {}).unwrap();
                assert_eq!(result.requests.by_kind.write.count, 3);
                assert_eq!(result.requests.by_kind.write.bytes, blocks * 4096);
            }
        }
    }
}

#[test]
fn a_drive_with_few_zones_takes_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path());
    let small = Overrides { scale: "1/512".parse().ok(), ..Overrides::default() };
    let mut drive = Profile::load("zn540-1t").unwrap().resolve(&small).unwrap();
    drive.user_blocks = 3 * drive.zones.unwrap().capacity;
    let error = replay(&job(&trace, drive, Some(7.0)), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("needs 7 zones at least") && error.contains("larger scale"), "{error}");
}
