//! Manifests: what a tree holds, a JSON line for each path, from our side or from the system's. The
//! tests of F2FS and of ext share it; whose volume it is says the module above.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dovetail_block::Scheduler;
use md5::{Digest, Md5};
use rustix::fs::{lgetxattr, llistxattr, major, minor};
use serde_json::{Map, Value, json};

use super::{FileType, Inode, Visit, Volume};

/// A line for each path; "." is the root, everything else begins with "./".
pub type Manifest = BTreeMap<String, Value>;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn md5_of<D: Scheduler>(volume: &mut Volume<D>, inode: &Inode) -> String {
    let (mut md5, mut buffer, mut at) = (Md5::new(), vec![0; 300_001], 0);
    loop {
        let len = volume.read(inode, at, &mut buffer).unwrap();
        if len == 0 {
            return hex(&md5.finalize());
        }
        md5.update(&buffer[..len]);
        at += len as u64;
    }
}

/// Line that the manifest should have for `inode`.
pub fn describe<D: Scheduler>(volume: &mut Volume<D>, path: &str, inode: &Inode) -> Value {
    let mut line = Map::new();
    line.insert("path".into(), path.into());
    line.insert("mode".into(), format!("0o{:o}", inode.mode).into());
    line.insert("uid".into(), inode.uid.into());
    line.insert("gid".into(), inode.gid.into());
    line.insert("nlink".into(), inode.links.into());
    let mtime = (inode.mtime.seconds, i64::from(inode.mtime.nanoseconds));
    line.insert(
        "mtime_ns".into(),
        mtime.0.wrapping_mul(1_000_000_000).wrapping_add(mtime.1).into(),
    );
    match inode.file_type() {
        FileType::REGULAR => {
            line.insert("size".into(), inode.size.into());
            line.insert("md5".into(), md5_of(volume, inode).into());
        }
        FileType::SYMLINK => {
            let target = String::from_utf8(volume.read_link(inode).unwrap()).unwrap();
            line.insert("target".into(), target.into());
        }
        FileType::CHAR_DEVICE | FileType::BLOCK_DEVICE => {
            line.insert("rdev".into(), json!([inode.device().0, inode.device().1]));
        }
        _ => {}
    }
    let mut xattrs = volume.xattrs(inode).unwrap();
    xattrs.retain(|xattr| is_shown(&xattr.full_name(), inode.mode.into()));
    if !xattrs.is_empty() {
        let map: Map<_, _> =
            xattrs.iter().map(|x| (x.full_name(), hex(&x.system_value()).into())).collect();
        line.insert("xattr".into(), map.into());
    }
    line.into()
}

/// Everything in the volume.
pub fn of_volume<D: Scheduler>(volume: &mut Volume<D>) -> Manifest {
    let root = volume.root().unwrap();
    let mut manifest = Manifest::new();
    volume.walk(root, |volume, entry| {
        let path = String::from_utf8(entry.path).unwrap();
        let path = if path.is_empty() { ".".to_string() } else { format!("./{path}") };
        let inode = entry.inode.unwrap_or_else(|error| panic!("{path}: {error}"));
        manifest.insert(path.clone(), describe(volume, &path, &inode));
        Visit::Enter
    });
    manifest
}

/// The line of `path`, which begins with ".", below `root`, by what the system says.
pub fn describe_file(root: &Path, path: &str) -> Value {
    let full = root.join(path);
    let meta = fs::symlink_metadata(&full).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut line = Map::new();
    line.insert("path".into(), path.into());
    line.insert("mode".into(), format!("0o{:o}", meta.mode()).into());
    line.insert("uid".into(), meta.uid().into());
    line.insert("gid".into(), meta.gid().into());
    line.insert("nlink".into(), meta.nlink().into());
    let mtime = meta.mtime().wrapping_mul(1_000_000_000).wrapping_add(meta.mtime_nsec());
    line.insert("mtime_ns".into(), mtime.into());
    match meta.mode() & 0o170_000 {
        0o100_000 => {
            line.insert("size".into(), meta.size().into());
            line.insert("md5".into(), hex(&Md5::digest(fs::read(&full).unwrap())).into());
        }
        0o120_000 => {
            let target = fs::read_link(&full).unwrap();
            line.insert("target".into(), target.to_str().unwrap().into());
        }
        0o020_000 | 0o060_000 => {
            line.insert("rdev".into(), json!([major(meta.rdev()), minor(meta.rdev())]));
        }
        _ => {}
    }
    let xattrs = xattrs_of(&full, meta.mode());
    if !xattrs.is_empty() {
        line.insert("xattr".into(), xattrs.into());
    }
    line.into()
}

/// The kernel gives attributes of users to files and directories only.
fn is_shown(name: &str, mode: u32) -> bool {
    !name.starts_with("user.") || [0o100_000, 0o040_000].contains(&(mode & 0o170_000))
}

fn xattrs_of(path: &Path, mode: u32) -> Map<String, Value> {
    let mut names = vec![0; 65_536];
    let len = llistxattr(path, &mut names[..]).unwrap();
    let names = names[..len].split(|&byte| byte == 0).filter(|name| !name.is_empty());
    let value = |name: &str| {
        let mut value = vec![0; 65_536];
        let len = lgetxattr(path, name, &mut value[..]);
        let len = len
            .unwrap_or_else(|error| panic!("{}, {name} which is listed: {error}", path.display()));
        hex(&value[..len])
    };
    let names = names.map(|name| String::from_utf8(name.to_vec()).unwrap());
    let names = names.filter(|name| is_shown(name, mode));
    names.map(|name| (name.clone(), value(&name).into())).collect()
}

/// Everything below `root`, itself included, by what the system says.
pub fn of_folder(root: &Path) -> Manifest {
    let mut manifest = Manifest::new();
    let mut todo = vec![".".to_string()];
    while let Some(path) = todo.pop() {
        if fs::symlink_metadata(root.join(&path)).unwrap().is_dir() {
            let entries = fs::read_dir(root.join(&path)).unwrap();
            todo.extend(
                entries.map(|entry| {
                    format!("{path}/{}", entry.unwrap().file_name().to_str().unwrap())
                }),
            );
        }
        manifest.insert(path.clone(), describe_file(root, &path));
    }
    manifest
}

/// The lines of a manifest in a file.
pub fn parse(text: &[u8]) -> Manifest {
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    lines.map(|line| (line["path"].as_str().unwrap().to_string(), line)).collect()
}

/// The manifest as text, a line for each path.
pub fn to_text(manifest: &Manifest) -> String {
    manifest.values().map(|line| format!("{line}\n")).collect()
}

/// Differences of two manifests, as text; empty if there are none.
pub fn differences(expected: &Manifest, found: &Manifest) -> String {
    let paths = expected.keys().chain(found.keys().filter(|path| !expected.contains_key(*path)));
    let shown = |line: Option<&Value>| line.map_or("nothing".to_string(), Value::to_string);
    let different = paths.filter(|path| expected.get(*path) != found.get(*path));
    let text = |path: &String| {
        let (expected, found) = (shown(expected.get(path)), shown(found.get(path)));
        format!("{path}:\n  expected {expected}\n  found    {found}\n")
    };
    different.map(text).collect()
}
