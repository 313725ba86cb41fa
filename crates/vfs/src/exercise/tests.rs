use super::*;
use crate::{Ino, Limits, Model, SetAttr, XattrFlags};

fn model() -> Model {
    Model::new(Limits::F2FS, &Caller { now: time_of(0), ..Caller::default() })
}

fn nothing(_: &mut dyn FileSystem, _: u64) -> Result<(), String> {
    Ok(())
}

#[test]
fn a_model_does_as_a_model() {
    for seed in 0..20 {
        let plan = Plan { seed, operations: 2000, compare_every: 500 };
        run(&mut model(), &mut model(), &plan, &mut nothing).unwrap();
    }
}

#[test]
fn the_operations_do_something() {
    let (mut fs, mut hand, mut generator) = (model(), Hand::default(), Generator::new(Rng::new(1)));
    let mut succeeded = std::collections::BTreeMap::<String, (u32, u32)>::new();
    for number in 0..20_000 {
        let (op, who) = generator.next();
        let result = hand.apply(&mut fs, &Caller { now: time_of(number), ..who }, &op);
        if result.is_ok() {
            generator.learn(&op);
        }
        let name = format!("{op:?}").split(|c: char| !c.is_alphanumeric()).next().unwrap().to_string();
        let counts = succeeded.entry(name).or_default();
        counts.0 += 1;
        counts.1 += u32::from(result.is_ok());
    }
    assert_eq!(succeeded.len(), 24, "{succeeded:?}");
    let rare: Vec<_> = succeeded.iter().filter(|(_, counts)| counts.1 < 5).collect();
    assert!(rare.is_empty(), "{rare:?} of {succeeded:?}");
}

/// A tree with something of everything, to be damaged.
fn tree() -> (Model, Caller, Ino, Ino) {
    let (mut fs, caller) = (model(), Caller { now: time_of(1), ..Caller::default() });
    let new = |mode| crate::NewNode { mode, rdev: (0, 0) };
    let dir = fs.create(&caller, fs.root(), b"dir", &new(0o040_755)).unwrap().ino;
    let file = fs.create(&caller, dir, b"file", &new(0o100_644)).unwrap().ino;
    fs.write(&caller, file, 10_000, b"content").unwrap();
    fs.setxattr(&caller, file, b"user.a", b"value", XattrFlags::default()).unwrap();
    fs.link(&caller, file, dir, b"link").unwrap();
    fs.symlink(&caller, dir, b"symlink", b"target").unwrap();
    (fs, caller, dir, file)
}

#[test]
fn each_difference_is_found() {
    type Change = fn(&mut Model, &Caller, Ino, Ino) -> Result<(), crate::Error>;
    let changes: [(&str, Change); 9] = [
        ("attributes", |fs, caller, _, file| {
            fs.setattr(caller, file, &SetAttr { mode: Some(0o600), ..SetAttr::default() }).map(drop)
        }),
        ("attributes", |fs, caller, dir, _| {
            let mtime = Some(Timestamp { nanoseconds: 1, ..caller.now });
            fs.setattr(caller, dir, &SetAttr { mtime, ..SetAttr::default() }).map(drop)
        }),
        ("byte 10002", |fs, caller, _, file| fs.write(caller, file, 10_002, b"x")),
        ("attributes", |fs, caller, _, file| fs.write(caller, file, 10_002, b"longer content")),
        ("extended attributes", |fs, caller, _, file| {
            fs.setxattr(caller, file, b"user.a", b"other", XattrFlags::default())
        }),
        ("extended attributes", |fs, caller, _, file| fs.removexattr(caller, file, b"user.a")),
        ("entries", |fs, caller, dir, _| {
            fs.rename(caller, (dir, b"link"), (dir, b"other"), crate::RenameFlags::default())
        }),
        ("target", |fs, caller, dir, _| {
            fs.unlink(caller, dir, b"symlink")?;
            fs.symlink(caller, dir, b"symlink", b"tarGet").map(drop)
        }),
        ("entries", |fs, caller, dir, _| {
            fs.unlink(caller, dir, b"symlink")?;
            fs.create(caller, dir, b"symlink", &crate::NewNode { mode: 0o100_777, rdev: (0, 0) }).map(drop)
        }),
    ];
    let mut reference = tree().0;
    compare_trees(&mut tree().0, &mut reference).unwrap();
    for (found, change) in changes {
        let (mut fs, caller, dir, file) = tree();
        change(&mut fs, &caller, dir, file).unwrap();
        let difference = compare_trees(&mut fs, &mut reference).unwrap_err();
        assert!(difference.contains(found), "{difference} is not about {found}");
    }
}

#[test]
fn a_copy_in_the_place_of_a_link_is_found() {
    let two = |link: bool| {
        let (mut fs, caller) = (model(), Caller { now: time_of(1), ..Caller::default() });
        let node = crate::NewNode { mode: 0o100_644, rdev: (0, 0) };
        let inos = [b"a", b"b"].map(|name| fs.create(&caller, fs.root(), name, &node).unwrap().ino);
        // two names for each: "a" and "b", "c" and "d", where c belongs to a or to b
        let others = if link { inos } else { [inos[1], inos[0]] };
        fs.link(&caller, others[0], fs.root(), b"c").unwrap();
        fs.link(&caller, others[1], fs.root(), b"d").unwrap();
        fs
    };
    compare_trees(&mut two(true), &mut two(true)).unwrap();
    let difference = compare_trees(&mut two(true), &mut two(false)).unwrap_err();
    assert!(difference.contains("which inode"), "{difference}");
}

#[test]
fn a_run_stops_at_the_first_difference() {
    // A model that can store less refuses what the other accepts.
    let mut small = Model::new(
        Limits { xattr_bytes: 100, ..Limits::F2FS },
        &Caller { now: time_of(0), ..Caller::default() },
    );
    let plan = Plan { seed: 3, operations: 50_000, compare_every: 0 };
    let difference = run(&mut small, &mut model(), &plan, &mut nothing).unwrap_err();
    assert!(difference.operation.starts_with("SetXattr"), "{difference}");
    assert!(difference.difference.contains("NoSpace"), "{difference}");
}
