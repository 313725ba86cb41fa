//! Names in `/lost+found` for inodes that have none, and "." and ".." for directories.

use std::collections::{BTreeMap, HashSet};

use dovetail_block::{BlockDevice, Scheduler};
use dovetail_vfs::mode::S_IFDIR;
use dovetail_vfs::{Caller, Error as CallError, FileSystem, MAX_NAME, Moment, NewNode, check_name};

use super::super::{Checker, Finding};
use super::Saved;
use crate::format::{Inode, Nid};
use crate::mount::{BackgroundGc, F2fs, Options as MountOptions};
use crate::volume::Volume;

const LOST_FOUND: &[u8] = b"lost+found";
/// Permissions of `/lost+found`, as mkfs.f2fs and mke2fs give them.
const LOST_FOUND_MODE: u16 = 0o700;

/// An inode without a name.
struct Lost {
    ino: Nid,
    /// The name that it has itself.
    own: Vec<u8>,
    /// Its name to be.
    name: Vec<u8>,
}

/// Names that are missing: of inodes in `/lost+found`, and "." and ".." in directories.
pub(super) struct Names {
    lost: Vec<Lost>,
    /// Directories without "." or "..", and their parents.
    dots: Vec<(Nid, Nid)>,
}

impl Names {
    /// The names that a check misses. None of them is in `/lost+found` already.
    pub(super) fn of<D: BlockDevice>(checker: &mut Checker<'_, D>) -> Self {
        let lost_found = lost_found_of(&mut checker.volume);
        let (mut lost, mut dots, mut taken) = (Vec::new(), Vec::new(), HashSet::new());
        for finding in &checker.report.findings {
            match finding {
                Finding::InodeUnreachable { ino, name } => {
                    let volume = &mut checker.volume;
                    let mut is_there = |name: &[u8]| {
                        let dir = lost_found.as_ref();
                        dir.is_some_and(|dir| matches!(volume.lookup(dir, name), Ok(Some(_))))
                    };
                    let is_free = |name: &Vec<u8>| !taken.contains(name) && !is_there(name);
                    let Some(free) = names_for(*ino, &name.0).find(is_free) else { continue };
                    taken.insert(free.clone());
                    lost.push(Lost { ino: *ino, own: name.0.clone(), name: free });
                }
                Finding::Dots { ino, .. } => {
                    let parent = checker.inodes.get(ino).map_or(Nid::NONE, |inode| inode.parent);
                    dots.push((*ino, parent));
                }
                _ => {}
            }
        }
        Self { lost, dots }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lost.is_empty() && self.dots.is_empty()
    }

    /// The paths to be.
    pub(super) fn paths(&self) -> BTreeMap<Nid, Vec<u8>> {
        self.lost.iter().map(|lost| (lost.ino, path(&lost.name))).collect()
    }
}

fn path(name: &[u8]) -> Vec<u8> {
    [b"/", LOST_FOUND, b"/", name].concat()
}

/// The directory `/lost+found`, if it is there and can be read.
fn lost_found_of<D: BlockDevice>(volume: &mut Volume<D>) -> Option<Inode> {
    let root = volume.root().ok()?;
    let entry = volume.lookup(&root, LOST_FOUND).ok()??;
    volume.inode(entry.ino).ok().filter(Inode::is_dir)
}

/// Names that an inode may get, the best first: its own, that with its number, more numbers.
fn names_for(ino: Nid, own: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let is_name = check_name(own).is_ok() && !matches!(own, b"." | b"..");
    let own = if is_name { own.to_vec() } else { Vec::new() };
    let numbered = |number: String, own: &[u8]| -> Vec<u8> {
        let dash: &[u8] = if own.is_empty() { b"" } else { b"-" };
        [number.as_bytes(), dash, own].concat().into_iter().take(MAX_NAME).collect()
    };
    let first = is_name.then(|| own.clone());
    let second = numbered(format!("#{ino}"), &own);
    let more = (2_u32..).map(move |number| numbered(format!("#{ino}-{number}"), &own));
    first.into_iter().chain([second]).chain(more)
}

/// The path that an inode was to get, and the one that it got, or why it got none.
type Path = (Vec<u8>, Result<Vec<u8>, String>);

/// The names that were given, and why others were not.
#[derive(Default)]
pub(super) struct Given {
    paths: BTreeMap<Nid, Path>,
    /// Directories whose "." and ".." could not be mended.
    dots: Vec<(Nid, String)>,
}

impl Given {
    /// Nothing was given.
    fn nothing(names: &Names, why: &str) -> Self {
        let failed = |lost: &Lost| (lost.ino, (path(&lost.name), Err(why.to_string())));
        Self {
            paths: names.lost.iter().map(failed).collect(),
            dots: names.dots.iter().map(|(dir, _)| (*dir, why.to_string())).collect(),
        }
    }

    /// Corrects an account in which all names were given as they were to be.
    pub(super) fn settle(&self, saved: &mut Vec<Saved>) {
        for (ino, (from, given)) in &self.paths {
            match given {
                Ok(to) if to == from => {}
                Ok(to) => saved.iter_mut().for_each(|saved| saved.rename(from, to)),
                Err(why) => saved.iter_mut().for_each(|saved| {
                    saved.rename(from, format!("/#{ino}").as_bytes());
                    saved.unname(*ino, why);
                }),
            }
        }
        saved.extend(self.dots.iter().map(|(dir, why)| Saved::Unfinished {
            what: format!("\".\" and \"..\" of inode {dir}"),
            why: why.clone(),
        }));
    }
}

/// Mounts the volume, and gives names to what has none.
pub(super) fn reconnect<D: Scheduler>(device: D, names: &Names, now: Moment) -> Given {
    let options = MountOptions { background_gc: BackgroundGc::Off, ..MountOptions::default() };
    let mut fs = match F2fs::mount(device, options, now) {
        Ok(fs) => fs,
        Err(why) => return Given::nothing(names, &why.to_string()),
    };
    let caller = Caller { uid: 0, gid: 0, now: now.date };
    let given = name_all(&mut fs, &caller, names);
    match Box::new(fs).unmount() {
        Ok(()) => given,
        Err(why) => Given::nothing(names, &why.to_string()),
    }
}

fn name_all<D: Scheduler>(fs: &mut F2fs<D>, caller: &Caller, names: &Names) -> Given {
    let mut given = Given::default();
    for (dir, parent) in &names.dots {
        if let Err(why) = fs.mend_dots(*dir, *parent) {
            given.dots.push((*dir, why.to_string()));
        }
    }
    if names.lost.is_empty() {
        return given;
    }
    let lost_found = lost_found_made(fs, caller);
    for lost in &names.lost {
        let name = lost_found.clone().and_then(|dir| adopted(fs, caller, lost, dir));
        let given_path = name.map(|name| path(&name)).map_err(|why| why.to_string());
        given.paths.insert(lost.ino, (path(&lost.name), given_path));
    }
    given
}

/// The directory `/lost+found`, made where there is none.
fn lost_found_made<D: Scheduler>(fs: &mut F2fs<D>, caller: &Caller) -> Result<Nid, CallError> {
    let root = FileSystem::root(fs);
    let found = match FileSystem::lookup(fs, root, LOST_FOUND) {
        Err(CallError::NotFound) => {
            let node = NewNode { mode: S_IFDIR | LOST_FOUND_MODE, rdev: (0, 0) };
            FileSystem::create(fs, caller, root, LOST_FOUND, &node)?
        }
        found => found?,
    };
    Ok(Nid(u32::try_from(found.ino.0).unwrap_or(0)))
}

/// Names an inode, and returns the name: another one where names that differ only in case are the
/// same.
fn adopted<D: Scheduler>(
    fs: &mut F2fs<D>,
    caller: &Caller,
    lost: &Lost,
    dir: Nid,
) -> Result<Vec<u8>, CallError> {
    for name in std::iter::once(lost.name.clone()).chain(names_for(lost.ino, &lost.own)) {
        match fs.adopt(caller, lost.ino, dir, &name) {
            Err(CallError::Exists) => {}
            done => return done.map(|()| name),
        }
    }
    Err(CallError::Exists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_where_they_can_be() {
        let first = |own: &[u8]| names_for(Nid(7), own).take(3).collect::<Vec<_>>();
        assert_eq!(first(b"beach.txt"), [&b"beach.txt"[..], b"#7-beach.txt", b"#7-2-beach.txt"]);
        for none in [&b""[..], b".", b"..", b"a/b", b"a\0b"] {
            assert_eq!(first(none), [&b"#7"[..], b"#7-2", b"#7-3"]);
        }
        assert!(first(&[b'x'; 255]).iter().all(|name| name.len() == 255));
    }

    #[test]
    fn an_account_tells_the_names_that_were_given() {
        let reconnected = |ino, path: &[u8]| Saved::Reconnected {
            ino: Nid(ino),
            name: b"a".to_vec(),
            path: path.to_vec(),
        };
        let lost = |path: &[u8]| Saved::ContentLost { path: path.to_vec(), nid: Nid(9) };
        let mut saved = vec![
            reconnected(5, b"/lost+found/a"),
            lost(b"/lost+found/a/b"),
            reconnected(6, b"/lost+found/ab"),
            lost(b"/lost+found/ab/c"),
        ];
        let mut given = Given::default();
        let to = Ok(b"/lost+found/#5-a".to_vec());
        given.paths.insert(Nid(5), (b"/lost+found/a".to_vec(), to));
        given.paths.insert(Nid(6), (b"/lost+found/ab".to_vec(), Err("full".into())));
        given.settle(&mut saved);
        let unnamed = Saved::Unnamed { ino: Nid(6), name: b"a".to_vec(), why: "full".into() };
        let expected = [
            reconnected(5, b"/lost+found/#5-a"),
            lost(b"/lost+found/#5-a/b"),
            unnamed,
            lost(b"/#6/c"),
        ];
        assert_eq!(saved, expected);
    }
}
