//! Listings in pieces.

use dovetail_vfs::{Caller, Error, FileSystem, Ino};

use super::apply::{Answer, Subject};
use super::op::Op;

/// Takes at most `chunk` names and returns the cookie to go on at, `None` at the end.
fn take<F: FileSystem>(
    fs: &mut F,
    dir: Ino,
    cookie: u64,
    chunk: usize,
    names: &mut Vec<Vec<u8>>,
) -> Result<Option<u64>, Error> {
    let (mut taken, mut next) = (0, None);
    fs.readdir(dir, cookie, &mut |entry| {
        if taken == chunk.max(1) {
            return false;
        }
        taken += 1;
        next = Some(entry.cookie);
        names.push(entry.name);
        true
    })?;
    Ok(next)
}

fn take_rest<F: FileSystem>(
    fs: &mut F,
    dir: Ino,
    mut cookie: Option<u64>,
    chunk: usize,
    names: &mut Vec<Vec<u8>>,
) -> Result<(), Error> {
    while let Some(at) = cookie {
        cookie = take(fs, dir, at, chunk, names)?;
    }
    Ok(())
}

fn all_names<F: FileSystem>(fs: &mut F, dir: Ino, chunk: usize) -> Result<Vec<Vec<u8>>, Error> {
    let mut names = Vec::new();
    take_rest(fs, dir, Some(0), chunk, &mut names)?;
    names.sort();
    Ok(names)
}

pub(super) fn list<F: FileSystem>(fs: &mut F, dir: Ino, chunk: usize) -> Result<Answer, Error> {
    all_names(fs, dir, chunk).map(Answer::Names)
}

pub(super) fn list_during<F: FileSystem>(
    subject: &mut Subject<F>,
    caller: &Caller,
    dir: Ino,
    chunk: usize,
    between: &Op,
) -> Result<Answer, Error> {
    let before = all_names(&mut subject.fs, dir, usize::MAX)?;
    let mut names = Vec::new();
    let cookie = take(&mut subject.fs, dir, 0, chunk, &mut names)?;
    let outcome = subject.perform(caller, between);
    match take_rest(&mut subject.fs, dir, cookie, chunk, &mut names) {
        Err(Error::NotFound) => return outcome, // the directory itself has gone
        rest => rest?,
    }
    let after = all_names(&mut subject.fs, dir, usize::MAX)?;
    let stayed = before.iter().filter(|name| after.contains(name));
    for name in stayed {
        let times = names.iter().filter(|found| *found == name).count();
        if times != 1 {
            let name = String::from_utf8_lossy(name);
            return Ok(Answer::Wrong(format!("{name} was listed {times} times")));
        }
    }
    outcome
}
