//! Generated file sets: names, places, seeds, and a workload that runs after one.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::driver;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_workload::fileset::{Amount, FileSet, FileSetConfig, Prepared};
use dovetail_workload::personality::{Ending, Personality, PersonalityWorkload};
use dovetail_workload::{Call, FileId, Workload};

fn files(count: u64, seed: u64) -> FileSet {
    FileSet::generate("home", &FileSetConfig::new(Amount::Files(count)), seed).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_set_and_another_does_not() {
    assert_eq!(files(5000, 1).files(), files(5000, 1).files());
    assert_ne!(files(5000, 1).files(), files(5000, 2).files());
}

#[test]
fn names_are_legal_and_no_path_is_there_twice_or_both_file_and_directory() {
    let set = files(20_000, 3);
    let paths: BTreeSet<&str> = set.files().iter().map(|file| &*file.path).collect();
    assert_eq!(paths.len(), 20_000);
    for path in &paths {
        let mut names = path.split('/');
        assert_eq!(names.next(), Some("home"));
        assert!(names.all(|name| (1..=255).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric())));
        let mut above = *path;
        while let Some((directory, _)) = above.rsplit_once('/') {
            assert!(!paths.contains(directory), "{directory} is a file and a directory");
            above = directory;
        }
    }
}

/// The tree decides how deep files may lie, so the theory is the Poisson distribution below its
/// deepest level.
#[test]
fn depths_of_files_are_poisson_distributed() {
    let set = files(100_000, 4);
    let mut counts: BTreeMap<usize, f64> = BTreeMap::new();
    for file in set.files() {
        *counts.entry(file.path.matches('/').count()).or_default() += 1.0;
    }
    let deepest = *counts.keys().max().unwrap();
    let mut weights = vec![1.0];
    for depth in 1..=deepest {
        weights.push(weights[depth - 1] * 6.49 / depth as f64);
    }
    let whole: f64 = weights[1..].iter().sum();
    for (depth, weight) in weights.iter().enumerate().skip(1) {
        let share = counts.get(&depth).copied().unwrap_or(0.0) / 100_000.0;
        assert!(
            (share - weight / whole).abs() < 0.006,
            "depth {depth}: {share}, {} in theory",
            weight / whole
        );
    }
    assert!(deepest > 10, "{deepest}");
}

#[test]
fn the_set_is_written_to_a_file_system_byte_for_byte() {
    let mut set =
        FileSet::generate("home", &FileSetConfig::new(Amount::Bytes(64 << 20)), 5).unwrap();
    let wanted: Vec<u64> = set.files().iter().map(|file| file.size).collect();
    let report = driver::run(&mut set, 10);
    assert_eq!(report.files.values().copied().collect::<Vec<_>>(), wanted);
    assert_eq!(report.prepared.last(), Some(&Call::SyncAll));
    assert!(report.calls.is_empty());
    let total = set.bytes() as f64 / f64::from(64 << 20);
    assert!((0.99..=1.0).contains(&total), "{total}");
}

/// With a set before it a workload makes the same calls on files with other numbers.
#[test]
fn a_workload_after_a_set_is_the_same_workload() {
    let mut personality = Personality::load("varmail").unwrap();
    personality.set([("operations", "5000")]).unwrap();
    let mut alone = PersonalityWorkload::new(&personality, 9).unwrap();
    let set = files(500, 6);
    let mut after = Prepared::new(set, alone.clone());
    assert_eq!(after.path(FileId(499)), files(500, 6).path(FileId(499)));
    assert_eq!(after.path(FileId(500)), alone.path(FileId(0)));
    let (alone, with_set) = (driver::run(&mut alone, 100_000), driver::run(&mut after, 100_000));
    assert_eq!(after.inner().ending(), Some(&Ending::Operations));
    assert_eq!(alone.calls.len(), with_set.calls.len());
    assert_eq!(alone.end, with_set.end);
    let sizes: Vec<u64> = with_set.files.range(FileId(500)..).map(|(_, size)| *size).collect();
    assert_eq!(sizes, alone.files.values().copied().collect::<Vec<_>>());
}

#[test]
fn messages_say_what_is_allowed() {
    let mut config = FileSetConfig::new(Amount::Files(10));
    let message =
        |root, config: &FileSetConfig| FileSet::generate(root, config, 1).unwrap_err().to_string();
    assert_eq!(
        message("a/b", &config),
        "file set: the directory 'a/b' has to be one name without a slash"
    );
    config.sizes.sigma = f64::NAN;
    assert_eq!(message("a", &config), "file set: sigma is NaN, allowed is 0.01 to 10");
    config = FileSetConfig::new(Amount::Files(1 << 40));
    assert!(message("a", &config).contains("more than 16777216 files"));
}
