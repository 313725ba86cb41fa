//! The mounted volume does what the reference model does, operation for operation, and fsck.f2fs finds nothing to say.
//! `DOVETAIL_SEEDS=100` compares more sequences.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod common;

use common::{mkfs, strict_fsck};
use dovetail_block::MemoryDevice;
use dovetail_f2fs::{F2fs, Options};
use dovetail_time::SimTime;
use dovetail_vfs::exercise::{Generator, Profile, Subject, compare_run};
use dovetail_vfs::{Caller, FileSystem, Limits, Model, SetAttr};

const VOLUME: u64 = 512 << 20;
const STEPS: u64 = 1000;

/// A model with a root directory like that of the volume.
fn model_of(fs: &mut F2fs<MemoryDevice>) -> Model {
    let root = fs.getattr(fs.root()).unwrap();
    let mut model = Model::new(Limits::default(), &Caller::default());
    let same = SetAttr {
        mode: Some(root.mode & 0o7777),
        uid: Some(root.uid),
        gid: Some(root.gid),
        size: None,
        atime: Some(root.atime),
        mtime: Some(root.mtime),
        ctime: Some(root.ctime),
    };
    model.setattr(&Caller::default(), model.root(), &same).unwrap();
    model
}

fn check_seed(seed: u64) {
    let mut fs = F2fs::mount(mkfs(VOLUME, &[]), Options::default(), SimTime::ZERO).unwrap();
    let mut model = Subject::new(model_of(&mut fs));
    let mut volume = Subject::new(fs);
    let mut operations = Generator::new(seed, Profile::default());
    compare_run(&mut model, &mut volume, &mut operations, STEPS, 1).unwrap();
    assert_eq!(strict_fsck(volume.fs.device()), "", "seed {seed}, while mounted");
    volume.release_all().unwrap();
    let device = volume.fs.unmount().unwrap();
    assert_eq!(strict_fsck(&device), "", "seed {seed}, after the unmount");
}

#[test]
fn outcomes_and_trees_are_those_of_the_model() {
    let seeds = std::env::var("DOVETAIL_SEEDS").map_or(4, |seeds| seeds.parse().unwrap());
    (0..seeds).for_each(check_seed);
}
