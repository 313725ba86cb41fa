use std::sync::atomic::{AtomicU64, Ordering};

use dovetail_ftl::{DriveConfig, Overrides, Profile};
use dovetail_nand::Geometry;

use super::*;
use crate::precondition::NotPrepared;
use crate::run_all;

fn drive(seed: u64) -> NewDrive {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 24,
        pages_per_block: 8,
        page_bytes: 4096,
    };
    NewDrive::new(DriveConfig { seed, buffer_pages: 4, ..DriveConfig::plain(geometry, 256) }, None)
}

#[derive(Debug)]
enum Failure {
    Drive,
    Prepare(NotPrepared),
}

impl From<NotPrepared> for Failure {
    fn from(fault: NotPrepared) -> Self {
        Self::Prepare(fault)
    }
}

/// All that there is of a drive at the turn of a run.
fn state(prepared: &Prepared, drive: &NewDrive, stop: bool) -> Result<String, Failure> {
    let turn = prepared.turn(drive.clone());
    let aged = turn.aged(|_| Failure::Drive, &|| stop, &mut |_| {})?;
    Ok(format!("{aged:?}"))
}

fn expected(bytes: u64, runs: &[NewDrive]) -> Prepared {
    let prepared = Prepared::within(bytes);
    runs.iter().for_each(|drive| prepared.expect(drive));
    prepared
}

fn kept(prepared: &Prepared) -> u64 {
    prepared.total - prepared.lock().left
}

#[test]
fn shared_drives_are_those_that_each_run_would_make() {
    let runs: Vec<NewDrive> = (0..24).map(|run| drive(run % 4)).collect();
    let none = Prepared::none();
    let alone: Vec<String> = runs.iter().map(|drive| state(&none, drive, false).unwrap()).collect();
    assert_eq!(none.aged(), 24);
    assert!(alone[0] != alone[1] && alone[0] == alone[4]);
    let size = runs[0].memory_bytes();
    // all fit; one at a time; none
    for (room, threads, least, most) in
        [(100 * size, 1, 4, 4), (100 * size, 5, 4, 4), (size, 1, 5, 24), (size - 1, 3, 24, 24)]
    {
        let prepared = expected(room, &runs);
        let shared = run_all(&runs, threads, |_, drive| state(&prepared, drive, false).unwrap());
        assert!(shared == alone, "{room} {threads}");
        assert!((least..=most).contains(&prepared.aged()), "{room} {threads}: {}", prepared.aged());
        assert_eq!(kept(&prepared), 0, "no run is to come");
    }
}

#[test]
fn a_drive_is_kept_while_a_run_is_to_come_and_makes_room_for_others() {
    let (first, second) = (drive(1), drive(2));
    let size = first.memory_bytes();
    let prepared = expected(2 * size, &[first.clone(), first.clone(), first.clone(), second]);
    state(&prepared, &first, false).unwrap();
    assert_eq!(kept(&prepared), size);
    // a run needs the room: the next one prepares its drive anew
    drop(prepared.reserve(2 * size));
    assert_eq!(kept(&prepared), 0);
    state(&prepared, &first, false).unwrap();
    assert_eq!((prepared.aged(), kept(&prepared)), (2, size));
    // the last run ends before it wants its drive
    drop(prepared.turn(first));
    assert_eq!(kept(&prepared), 0);
}

#[test]
fn a_drive_that_was_not_finished_is_begun_again() {
    let runs = [drive(1), drive(1), drive(1)];
    let prepared = expected(1 << 30, &runs);
    assert!(matches!(
        state(&prepared, &runs[0], true),
        Err(Failure::Prepare(NotPrepared::Stopped))
    ));
    let others = run_all(&runs[1..], 2, |_, drive| state(&prepared, drive, false).unwrap());
    assert_eq!((others[0] == others[1], prepared.aged(), kept(&prepared)), (true, 1, 0));
}

#[test]
fn no_more_than_all_is_reserved_at_a_time() {
    let prepared = Prepared::within(10);
    let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
    run_all(&[3, 4, 5, 20, 6, 1, 9, 2], 8, |_, need| {
        let part = prepared.reserve(*need);
        let sum = now.fetch_add(part.bytes, Ordering::SeqCst) + part.bytes;
        most.fetch_max(sum, Ordering::SeqCst);
        now.fetch_sub(part.bytes, Ordering::SeqCst);
    });
    assert_eq!(most.into_inner(), 10, "20 gets all");
    assert_eq!(kept(&prepared), 0);
}

#[test]
fn every_option_of_a_drive_tells_it_from_others() {
    let profile = Profile::load("femu-32g").unwrap();
    let scale = "1/64".parse().ok();
    let of = |change: fn(&mut Overrides)| {
        let mut overrides = Overrides { scale, ..Overrides::default() };
        change(&mut overrides);
        NewDrive::new(profile.resolve(&overrides).unwrap(), None)
    };
    let all = [
        of(|_| {}),
        of(|o| o.seed = 2),
        of(|o| o.scale = "1/32".parse().ok()),
        of(|o| o.over_provisioning = Some(20.0)),
        of(|o| o.gc = Some("cost-benefit".into())),
        of(|o| o.map = Some("interval".into())),
        of(|o| o.cache = Some("dftl".into())),
        of(|o| o.cache = Some("lru".into())),
        of(|o| (o.cache, o.cache_size) = (Some("dftl".into()), Some(1 << 16))),
        of(|o| o.buffer = Some(1 << 20)),
        NewDrive::new(of(|_| {}).config().clone(), Some(7.0)),
    ];
    let prepared = expected(1, &all);
    let numbers: Vec<usize> = (0..all.len()).collect();
    assert_eq!(prepared.numbers(&all), numbers);
    assert_eq!(prepared.numbers(&[of(|_| {})]), [0], "the same options are the same drive");
}
