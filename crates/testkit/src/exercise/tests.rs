use dovetail_vfs::{Caller, Limits, SetAttr};

use super::*;
use crate::Model;

fn subject() -> Subject<Model> {
    Subject::new(Model::new(Limits::default(), &Caller::default()))
}

#[test]
fn a_model_agrees_with_itself_and_operations_succeed_often() {
    let (mut one, mut other) = (subject(), subject());
    let mut operations = Generator::new(1, Profile::default());
    compare_run(&mut one, &mut other, &mut operations, 3000, 300).unwrap();
    let mut succeeded = 0;
    for _ in 0..3000 {
        let outcome = one.apply(&operations.next_step());
        assert!(!matches!(outcome, Ok(Answer::Wrong(_))), "{outcome:?}");
        succeeded += u32::from(outcome.is_ok());
    }
    assert!(succeeded > 1000, "{succeeded} of 3000 operations succeeded");
    assert!(one.tree().unwrap().len() > 50);
}

#[test]
fn nothing_stays_of_what_is_let_go() {
    let mut subject = subject();
    let mut operations = Generator::new(2, Profile::default());
    (0..3000).for_each(|_| drop(subject.apply(&operations.next_step())));
    subject.release_all().unwrap();
    let tree = subject.tree().unwrap();
    let inodes: std::collections::BTreeSet<_> = tree.values().map(|entry| &entry.same_as).collect();
    assert_eq!(subject.fs.inodes(), inodes.len());
}

/// Spoils one of two equal models, and returns the difference that the comparison finds.
fn spoiled(spoil: impl FnOnce(&mut Model, dovetail_vfs::Ino)) -> Option<String> {
    let (mut one, mut other) = (subject(), subject());
    let step = |op| Step { caller: Caller::default(), op };
    let path = vec![b"a".to_vec()];
    for subject in [&mut one, &mut other] {
        subject
            .apply(&step(Op::Create { path: path.clone(), mode: 0o100_644, rdev: (0, 0) }))
            .unwrap();
        let target = Target::Path(path.clone());
        subject.apply(&step(Op::Write { target, offset: 9000, len: 10, fill: 3 })).unwrap();
    }
    let root = other.fs.root();
    let ino = other.fs.lookup(root, b"a").unwrap().ino;
    spoil(&mut other.fs, ino);
    first_difference(&one.tree().unwrap(), &other.tree().unwrap())
}

#[test]
fn every_difference_is_seen() {
    let caller = Caller::default();
    let sees = |difference: Option<String>, words: &str| {
        let difference = difference.expect("a difference");
        assert!(difference.contains(words), "{difference}");
    };
    assert_eq!(spoiled(|_, _| {}), None);
    sees(
        spoiled(|fs, ino| fs.write(&caller, ino, 9001, b"!").unwrap()),
        "content of /a differs in pages [2]",
    );
    let mode = SetAttr { mode: Some(0o600), ..SetAttr::default() };
    sees(spoiled(|fs, ino| assert!(fs.setattr(&caller, ino, &mode).is_ok())), "attributes of /a");
    sees(spoiled(|fs, _| fs.unlink(&caller, fs.root(), b"a").unwrap()), "/a is missing");
    let flags = dovetail_vfs::XattrFlags::default();
    sees(spoiled(|fs, ino| fs.setxattr(&caller, ino, b"user.x", b"1", flags).unwrap()), "xattrs");
}
