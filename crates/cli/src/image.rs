//! `dovetail ls|cat|extract|inspect`: looking into a file-system image without mounting it.

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use dovetail_block::ImageDevice;
use dovetail_f2fs::format::{FileType, Inode, Nid, Timestamp};
use dovetail_f2fs::{Error, Visit, Volume, WalkEntry};
use serde_json::{Map, Value, json};

use crate::{Failure, print};

type Image = Volume<ImageDevice>;

/// Bytes copied at a time.
const CHUNK: usize = 1 << 20;

/// An image, and a path in it.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// The image file, or a block device.
    image: PathBuf,
    /// A file or directory in it.
    #[arg(default_value = "/")]
    path: OsString,
}

/// An image, and a file in it.
#[derive(Debug, Args)]
pub(crate) struct CatArguments {
    /// The image file, or a block device.
    image: PathBuf,
    /// The file in it.
    path: OsString,
}

/// An image, and where its files go.
#[derive(Debug, Args)]
pub(crate) struct ExtractArguments {
    /// The image file, or a block device.
    image: PathBuf,
    /// The directory to write to; made if it is not there, otherwise it must be empty.
    directory: PathBuf,
    /// Extract only this file, or what this directory holds.
    #[arg(default_value = "/")]
    path: OsString,
}

/// An image, and a structure in it.
#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// The image file, or a block device.
    image: PathBuf,
    #[command(subcommand)]
    what: What,
    /// Write JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// What the volume is, and where its areas lie.
    Superblock,
    /// The last checkpoint.
    Checkpoint,
    /// A node: its NAT entry, and the inode if it is one.
    Nid {
        /// Its id.
        nid: u32,
    },
    /// The inode that a path leads to; a symbolic link at the end is not followed.
    Path {
        /// The path.
        path: OsString,
    },
}

fn open(image: &Path) -> Result<Image, Failure> {
    let shown = image.display();
    let device = ImageDevice::open_read_only(image)
        .map_err(|error| Failure::Failed(format!("{shown} cannot be opened: {error}")))?;
    Volume::open(device).map_err(|error| Failure::Failed(format!("{shown}: {error}")))
}

pub(crate) fn list(arguments: &ListArguments) -> Result<(), Failure> {
    let mut volume = open(&arguments.image)?;
    let inode = volume.resolve(arguments.path.as_bytes()).map_err(Failure::failed)?;
    if !inode.is_dir() {
        return print(&line(&mut volume, &inode, &arguments.path.to_string_lossy())?);
    }
    let mut entries = volume.entries(&inode).map_err(Failure::failed)?;
    entries.retain(|entry| !entry.is_dot());
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let mut out = String::new();
    for entry in entries {
        let inode = volume.inode(entry.ino).map_err(Failure::failed)?;
        out += &line(&mut volume, &inode, &shown(&entry.name))?;
    }
    print(&out)
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).escape_debug().to_string()
}

fn line(volume: &mut Image, inode: &Inode, name: &str) -> Result<String, Failure> {
    let mode = mode_text(inode);
    let size = match inode.file_type() {
        FileType::CHAR_DEVICE | FileType::BLOCK_DEVICE => {
            format!("{}, {}", inode.device().0, inode.device().1)
        }
        _ => inode.size.to_string(),
    };
    let target = if inode.file_type() == FileType::SYMLINK {
        format!(" -> {}", shown(&volume.read_link(inode).map_err(Failure::failed)?))
    } else {
        String::new()
    };
    let (uid, gid, links, time) = (inode.uid, inode.gid, inode.links, date(inode.mtime));
    Ok(format!("{mode} {links:>3} {uid:>5} {gid:>5} {size:>12} {time} {name}{target}\n"))
}

/// As `ls -l` shows it.
fn mode_text(inode: &Inode) -> String {
    let kind = ["?", "-", "d", "c", "b", "p", "s", "l"].get(usize::from(inode.file_type().0)).unwrap_or(&"?");
    let mut text = (*kind).to_string();
    for (shift, special, mark) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = inode.mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (inode.mode & special != 0, bits & 1 != 0) {
            (true, true) => mark,
            (true, false) => mark.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// Date and time in UTC; the civil calendar from days, after Howard Hinnant's `civil_from_days`.
fn date(time: Timestamp) -> String {
    let (days, second) = (time.seconds.div_euclid(86_400), time.seconds.rem_euclid(86_400));
    let shifted = i128::from(days) + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

pub(crate) fn cat(arguments: &CatArguments) -> Result<(), Failure> {
    let mut volume = open(&arguments.image)?;
    let inode = volume.resolve(arguments.path.as_bytes()).map_err(Failure::failed)?;
    if inode.file_type() != FileType::REGULAR {
        return Err(Failure::failed(Error::NotAFile(arguments.path.to_string_lossy().into_owned())));
    }
    let mut buffer = vec![0; CHUNK];
    let (mut out, mut at) = (std::io::stdout().lock(), 0);
    loop {
        let len = volume.read(&inode, at, &mut buffer).map_err(Failure::failed)?;
        match out.write_all(&buffer[..len]) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(Failure::Failed(format!("standard output cannot be written: {error}"))),
            Ok(()) if len == 0 => return Ok(()),
            Ok(()) => at += len as u64,
        }
    }
}

/// What an extraction did.
#[derive(Default)]
struct Extracted {
    files: u64,
    special: u64,
    errors: Vec<String>,
}

pub(crate) fn extract(arguments: &ExtractArguments) -> Result<(), Failure> {
    let mut volume = open(&arguments.image)?;
    let start = volume.resolve(arguments.path.as_bytes()).map_err(Failure::failed)?;
    let to = &arguments.directory;
    prepare(to)?;
    let name = Path::new(&arguments.path).file_name().unwrap_or_default().as_bytes().to_vec();
    let single = !start.is_dir();
    let mut done = Extracted::default();
    volume.walk(start, |volume, mut entry| {
        if single {
            entry.path.clone_from(&name);
        }
        if let Err(error) = extract_entry(volume, &entry, to, &mut done) {
            done.errors.push(format!("/{}: {error}", shown(&entry.path)));
            return Visit::Skip; // what lies in a directory that could not be made would follow a link of its name
        }
        Visit::Enter
    });
    finish(&done, to)
}

/// An empty directory: nothing that is there already, and no link out of it, gets in the way.
fn prepare(to: &Path) -> Result<(), Failure> {
    let fail = |error| Failure::Failed(format!("{} cannot be written to: {error}", to.display()));
    std::fs::create_dir_all(to).map_err(fail)?;
    match std::fs::read_dir(to).map_err(fail)?.next() {
        None => Ok(()),
        Some(_) => Err(Failure::Usage(format!("{} is not empty; give a new directory", to.display()))),
    }
}

fn finish(done: &Extracted, to: &Path) -> Result<(), Failure> {
    let mut text = format!("{} files in {}\n", done.files, to.display());
    if done.special > 0 {
        text += &format!("{} devices, fifos and sockets were left out\n", done.special);
    }
    print(&text)?;
    match done.errors.as_slice() {
        [] => Ok(()),
        errors => {
            Err(Failure::Failed(format!("{} could not be extracted:\n{}", errors.len(), errors.join("\n"))))
        }
    }
}

/// Writes one entry. Directories come before what they hold, and no name has a slash or leads up, so nothing lands
/// outside; a damaged directory that has a link and a directory of one name is not entered, so no link is written through.
fn extract_entry(
    volume: &mut Image,
    entry: &WalkEntry,
    to: &Path,
    done: &mut Extracted,
) -> Result<(), String> {
    let inode = entry.inode.as_ref().map_err(Error::to_string)?;
    let path = to.join(std::ffi::OsStr::from_bytes(&entry.path));
    let text = |error: std::io::Error| error.to_string();
    match inode.file_type() {
        FileType::DIRECTORY if entry.path.is_empty() => Ok(()),
        FileType::DIRECTORY => std::fs::create_dir(&path).map_err(text),
        FileType::SYMLINK => {
            let target = volume.read_link(inode).map_err(|error| error.to_string())?;
            std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(&target), &path).map_err(text)?;
            done.files += 1;
            Ok(())
        }
        FileType::REGULAR => {
            copy(volume, inode, &path)?;
            done.files += 1;
            Ok(())
        }
        _ => {
            done.special += 1;
            Ok(())
        }
    }
}

/// Copies a file with its permissions (without setuid and setgid) and its time of change; holes stay holes.
fn copy(volume: &mut Image, inode: &Inode, path: &Path) -> Result<(), String> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let text = |error: std::io::Error| error.to_string();
    let options = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = options.map_err(text)?;
    write_content(volume, inode, &file)?;
    file.set_len(inode.size).map_err(text)?;
    file.set_permissions(std::fs::Permissions::from_mode(u32::from(inode.mode & 0o777))).map_err(text)?;
    let since = u64::try_from(inode.mtime.seconds).unwrap_or(0);
    let nanoseconds = inode.mtime.nanoseconds.min(999_999_999);
    let since = std::time::Duration::new(since, nanoseconds);
    match std::time::SystemTime::UNIX_EPOCH.checked_add(since) {
        Some(time) => file.set_modified(time).map_err(text),
        None => Ok(()),
    }
}

fn write_content(volume: &mut Image, inode: &Inode, file: &std::fs::File) -> Result<(), String> {
    use std::io::{Seek, SeekFrom};
    let text = |error: std::io::Error| error.to_string();
    let mut out = BufWriter::new(file);
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    loop {
        at = volume.next_data(inode, at).map_err(|error| error.to_string())?;
        let len = volume.read(inode, at, &mut buffer).map_err(|error| error.to_string())?;
        if len == 0 {
            return out.flush().map_err(text);
        }
        out.seek(SeekFrom::Start(at)).map_err(text)?;
        out.write_all(&buffer[..len]).map_err(text)?;
        at += len as u64;
    }
}

pub(crate) fn inspect(arguments: &InspectArguments) -> Result<(), Failure> {
    let mut volume = open(&arguments.image)?;
    let facts = match &arguments.what {
        What::Superblock => superblock(&volume),
        What::Checkpoint => checkpoint(&volume),
        What::Nid { nid } => node(&mut volume, Nid(*nid))?,
        What::Path { path } => {
            let inode = volume.resolve_link(path.as_bytes()).map_err(Failure::failed)?;
            node(&mut volume, inode.ino)?
        }
    };
    if arguments.json {
        return print(&format!("{facts:#}\n"));
    }
    print(&as_text(&facts))
}

fn as_text(facts: &Value) -> String {
    let empty = Map::new();
    let lines = facts.as_object().unwrap_or(&empty).iter().map(|(key, value)| match value {
        Value::String(text) => format!("{key:24} {text}\n"),
        other => format!("{key:24} {other}\n"),
    });
    lines.collect()
}

fn superblock(volume: &Image) -> Value {
    let s = volume.superblock();
    json!({
        "version": format!("{}.{}", s.version.0, s.version.1),
        "label": s.label,
        "uuid": s.uuid.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        "features": s.features.to_string(),
        "block_count": s.block_count,
        "segment_count": s.segment_count,
        "segments_per_section": s.segments_per_section,
        "sections_per_zone": s.sections_per_zone,
        "section_count": s.section_count,
        "segment_count_sit": s.segment_count_sit,
        "segment_count_nat": s.segment_count_nat,
        "segment_count_ssa": s.segment_count_ssa,
        "segment_count_main": s.segment_count_main,
        "cp_blkaddr": s.cp_start.0,
        "sit_blkaddr": s.sit_start.0,
        "nat_blkaddr": s.nat_start.0,
        "ssa_blkaddr": s.ssa_start.0,
        "main_blkaddr": s.main_start.0,
        "cp_payload": s.cp_payload,
        "quota_inodes": s.quota_files.map(|nid| nid.0),
        "last_kernel": s.last_kernel,
        "made_by": s.made_by,
    })
}

fn checkpoint(volume: &Image) -> Value {
    let c = volume.checkpoint();
    let logs = ["hot_data", "warm_data", "cold_data", "hot_node", "warm_node", "cold_node"];
    let logs: Map<_, _> = logs
        .iter()
        .zip(c.logs)
        .map(|(name, log)| {
            let value = json!({"segment": log.segment.0, "offset": log.offset, "ssr": log.in_holes});
            ((*name).to_string(), value)
        })
        .collect();
    json!({
        "pack": c.pack,
        "version": c.version,
        "flags": c.flags.to_string(),
        "user_block_count": c.user_block_count,
        "valid_block_count": c.valid_block_count,
        "reserved_segments": c.reserved_segments,
        "overprovision_segments": c.overprovision_segments,
        "free_segments": c.free_segments,
        "valid_nodes": c.valid_nodes,
        "valid_inodes": c.valid_inodes,
        "next_free_nid": c.next_free_nid,
        "elapsed_seconds": c.elapsed_s,
        "total_blocks": c.total_blocks,
        "checksum": format!("{:#010x}", c.checksum),
        "logs": logs,
    })
}

fn node(volume: &mut Image, nid: Nid) -> Result<Value, Failure> {
    let entry = volume.nat(nid).map_err(Failure::failed)?;
    let mut facts = json!({
        "nid": nid.0,
        "nat_ino": entry.ino.0,
        "nat_block": entry.address.0,
        "nat_version": entry.version,
    });
    if entry.ino == nid && volume.superblock().in_main(entry.address) {
        let inode = inode(volume, nid)?;
        if let (Value::Object(facts), Value::Object(inode)) = (&mut facts, inode) {
            facts.extend(inode);
        }
    }
    Ok(facts)
}

fn inode(volume: &mut Image, ino: Nid) -> Result<Value, Failure> {
    let inode = volume.inode(ino).map_err(Failure::failed)?;
    let xattrs = volume.xattrs(&inode).map_err(Failure::failed)?;
    let xattrs: Map<_, _> = xattrs
        .iter()
        .map(|x| {
            (
                x.full_name(),
                x.system_value().iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
            )
        })
        .collect();
    let time = |time: Timestamp| format!("{}.{:09}", time.seconds, time.nanoseconds);
    Ok(json!({
        "mode": format!("{:o}", inode.mode),
        "type": mode_text(&inode),
        "uid": inode.uid,
        "gid": inode.gid,
        "links": inode.links,
        "size": inode.size,
        "blocks": inode.blocks,
        "atime": time(inode.atime),
        "ctime": time(inode.ctime),
        "mtime": time(inode.mtime),
        "crtime": inode.crtime.map(time),
        "generation": inode.generation,
        "inline_flags": inode.inline.0,
        "flags": inode.flags.0,
        "parent": inode.parent.0,
        "name": String::from_utf8_lossy(&inode.name),
        "pointers": inode.pointer_count(),
        "nids": inode.nids.map(|nid| nid.0),
        "xattr_nid": inode.xattr_nid.0,
        "xattrs": xattrs,
    }))
}
