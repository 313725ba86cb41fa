//! A copy of a drive goes on as the drive does, and neither feels the other.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_block::{
    BlockDevice, BlockRange, Command, Content, Data, Hints, Lba, Pattern, SectorRange,
};
use dovetail_ftl::{Drive, Overrides, Profile, Storage, builtin_profiles};
use dovetail_time::{Rng, SimSpan, SimTime};

use super::integrity::config;

/// Random commands with their times; what the drive says to each.
fn play(drive: &mut impl BlockDevice, rng: &mut Rng, commands: u32) -> Vec<String> {
    let blocks = drive.info().capacity();
    let mut now = SimTime::from_ns(1 << 40);
    let mut said = Vec::new();
    for number in 0..commands {
        let range = BlockRange::new(Lba(rng.below(blocks)), 1);
        let mut found = [Content::Empty];
        let data = Data::Patterns(Pattern::new(u64::from(number) + rng.below(1 << 30)));
        let ranges = [SectorRange::from(range)];
        let command = match rng.below(20) {
            0 => Command::Flush,
            1 | 2 => Command::Discard { ranges: &ranges },
            3..=5 => Command::Read { range, into: Some(&mut found) },
            _ => Command::Write { range, data, hints: Hints::default(), fua: rng.chance(0.02) },
        };
        let answer = drive.submit(now, command);
        said.push(format!("{answer:?} {found:?}"));
        let longest = if rng.chance(0.02) { 50_000 } else { 100 };
        now += SimSpan::from_us(rng.below(longest));
    }
    said
}

/// The drive as it is after some commands, a copy that goes on after it went on itself, and a copy
/// that was made of the copy.
fn compare(name: &str, mut drive: impl BlockDevice + Clone, rng: &mut Rng, commands: u32) {
    play(&mut drive, rng, commands);
    let (mut copy, later) = (drive.clone(), rng.clone());
    let expected = play(&mut drive, &mut later.clone(), commands);
    let mut second = copy.clone();
    assert!(play(&mut copy, &mut later.clone(), commands) == expected, "{name}");
    assert!(play(&mut second, &mut later.clone(), commands) == expected, "{name}");
    *rng = later;
}

#[test]
fn a_copy_of_any_drive_goes_on_as_the_drive_does() {
    let mut rng = Rng::new(3);
    let mut tried = 0;
    while tried < 150 {
        let config = config(&mut rng);
        let Ok(drive) = Drive::new(config.clone()) else { continue };
        compare(&format!("{config:?}"), drive, &mut rng, 300);
        tried += 1;
    }
}

#[test]
fn a_copy_of_each_profile_goes_on_as_the_drive_does() {
    let overrides = Overrides { scale: "1/256".parse().ok(), ..Overrides::default() };
    let mut rng = Rng::new(4);
    let mut copied = 0;
    for name in builtin_profiles() {
        // a large page may leave no drive at this scale
        let Ok(config) = Profile::load(name).unwrap().resolve(&overrides) else { continue };
        let Ok(drive) = Storage::new(config) else { continue };
        compare(name, drive, &mut rng, 2000);
        copied += 1;
    }
    assert!(copied > 10, "{copied}");
}
