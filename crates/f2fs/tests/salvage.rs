//! Salvage of volumes that a kernel wrote, held against what the kernel found in them: fsck.f2fs
//! and our own check have nothing to say afterwards.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_block::{BlockDevice, BlockRange, Command, Content, Data, Hints, Lba, MemoryDevice};
use dovetail_f2fs::format::{FileType, Nid, SegNo};
use dovetail_f2fs::fsck::{Options, RepairError, Saved, check, repair, salvage};
use dovetail_f2fs::{F2fs, Options as MountOptions, Volume};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::kit::VolumeTree;
use dovetail_vfs::mode::{S_IFDIR, S_IFREG};
use dovetail_vfs::{Caller, FileSystem, Ino, Moment, NewNode};
use serde_json::Value;

use crate::common::kernel_image;
use crate::common::lab::{At, Lab, Referee};
use crate::common::manifest::of_volume;

fn now() -> Moment {
    Moment::at(SimTime::ZERO)
}

fn put(image: &mut MemoryDevice, lba: u64, bytes: [u8; 4096]) {
    let (range, content) = (BlockRange::new(Lba(lba), 1), [Content::Bytes(Arc::new(bytes))]);
    let data = Data::Blocks(&content);
    let write = Command::Write { range, data, hints: Hints::default(), fua: false };
    image.submit(SimTime::ZERO, write).unwrap();
}

type Manifest = BTreeMap<String, Value>;

fn manifest(image: &MemoryDevice) -> Manifest {
    of_volume(&mut Volume::open(image.clone()).unwrap()).into_iter().collect()
}

/// Contents of the regular files that are not empty: checksum and size, each once, without names.
fn contents(manifest: &Manifest) -> Vec<(String, u64)> {
    let of = |line: &Value| Some((line.get("md5")?.as_str()?.into(), line["size"].as_u64()?));
    let mut all: Vec<_> = manifest.values().filter_map(of).filter(|(_, size)| *size > 0).collect();
    all.sort();
    all.dedup();
    all
}

fn errors(image: &MemoryDevice) -> Vec<String> {
    let report = check(image.clone(), Options::default(), |_| {}).unwrap();
    let findings = report.findings.iter();
    let errors =
        findings.filter(|finding| finding.severity() == dovetail_f2fs::fsck::Severity::Error);
    errors.map(ToString::to_string).collect()
}

/// Nothing is wrong with the volume, says fsck.f2fs as well.
fn assert_clean(sound: &MemoryDevice, image: &MemoryDevice, what: &str) {
    assert_eq!(errors(image), Vec::<String>::new(), "{what}");
    let verdict = Referee::new(sound).judge(image);
    assert!(verdict.clean, "{what}: {:?}", verdict.complaints);
}

/// Fills blocks of the NAT, both copies of each.
fn destroy_nat(image: &mut MemoryDevice, blocks: &[u64], fill: impl Fn(u64) -> [u8; 4096]) {
    let start = Volume::open(image.clone()).unwrap().superblock().nat_start.0;
    for block in blocks {
        let first = start + block / 512 * 1024 + block % 512;
        put(image, first, fill(first));
        put(image, first + 512, fill(first + 512));
    }
}

fn garbage(seed: u64) -> [u8; 4096] {
    let (mut random, mut bytes) = (Rng::new(seed), [0; 4096]);
    bytes.chunks_mut(8).for_each(|part| part.copy_from_slice(&random.next_u64().to_le_bytes()));
    bytes
}

#[test]
fn a_destroyed_nat_costs_nothing() {
    for name in ["f2fs-default", "f2fs-features", "f2fs-largenat-sections"] {
        let sound = kernel_image(name);
        let truth = manifest(&sound);
        assert!(truth.len() > 1000);
        for (what, fill) in [("zeros", None), ("ones", Some(0xFF)), ("garbage", Some(0))] {
            let mut image = sound.clone();
            destroy_nat(&mut image, &[0, 1, 2, 3], |at| match fill {
                None => [0; 4096],
                Some(0) => garbage(at),
                Some(byte) => [byte; 4096],
            });
            assert!(!errors(&image).is_empty());
            let before = image.clone();
            let refused = repair(&mut image);
            assert!(refused.is_err(), "{name} {what}: {refused:?}");
            let (found, left) = (manifest_or_none(&image), manifest_or_none(&before));
            assert_eq!(found, left, "a refusal writes nothing");

            let saved = salvage(&mut image, now()).unwrap();
            let [Saved::Nodes { count }] = saved[..] else { panic!("{name} {what}: {saved:?}") };
            assert!(count > 900, "{name} {what}: {count}");
            assert!(manifest(&image) == truth, "{name} {what}");
            assert_clean(&sound, &image, &format!("{name} {what}"));
            assert_eq!(salvage(&mut image, now()).unwrap(), [], "nothing is left to be done");
        }
    }
}

/// Paths that are still found; none where the root is not.
fn manifest_or_none(image: &MemoryDevice) -> Option<usize> {
    let mut volume = Volume::open(image.clone()).unwrap();
    volume.root().ok().map(|root| volume.names_in(&root).map_or(0, |(names, _)| names.len()))
}

#[test]
fn names_whose_inodes_are_there_are_not_removed() {
    let sound = kernel_image("f2fs-default");
    // one entry of a file that lies in its inode: all that a check sees is a name that leads nowhere
    let mut volume = Volume::open(sound.clone()).unwrap();
    let small = manifest(&sound).into_keys().find_map(|path| {
        let inode = volume.resolve_link(path.as_bytes()).unwrap();
        let is_small = inode.file_type() == FileType::REGULAR && inode.blocks == 1;
        (is_small && inode.links == 1).then_some(inode.ino)
    });
    let nid = small.unwrap();
    let start = volume.superblock().nat_start.0;
    let (block, slot) = (u64::from(nid.0) / 455, nid.0 as usize % 455);
    let mut image = sound.clone();
    for at in [start + block, start + block + 512] {
        let mut bytes = *sound.bytes(Lba(at)).cloned().unwrap_or_else(|| Arc::new([0; 4096]));
        bytes[9 * slot..9 * slot + 9].fill(0);
        put(&mut image, at, bytes);
    }
    let refused = repair(&mut image);
    assert!(matches!(refused, Err(RepairError::NodesAstray { count: 1 })), "{refused:?}");
    assert_eq!(salvage(&mut image, now()).unwrap(), [Saved::Nodes { count: 1 }]);
    assert!(manifest(&image) == manifest(&sound));
    assert_clean(&sound, &image, "one entry");
}

/// A NAT block of an older checkpoint, beside a newer SIT.
#[test]
fn nodes_in_use_are_not_given_up_for_their_old_copies() {
    let mut image = kernel_image("f2fs-default");
    with_beaches(&mut image, 1);
    let mut volume = Volume::open(image.clone()).unwrap();
    let ino = volume.resolve_link(b"/p0/beach.txt").unwrap().ino;
    let old = volume.nat(ino).unwrap().address;
    let old_bytes = **image.bytes(Lba(old.0)).unwrap();
    mounted(&mut image, |fs| {
        let file = Ino(ino.0.into());
        fs.write(&caller(), file, 0, b"the newest").unwrap();
    });
    put(&mut image, old.0, old_bytes); // as on a device that discards nothing
    let (sound, truth) = (image.clone(), manifest(&image));
    let mut lab = Lab::new(image);
    let entry = lab.nat(ino.0).plus(5);
    assert_ne!(lab.u32(entry), old.0 as u32, "it was written to another place");
    lab.set(entry, &(old.0 as u32).to_le_bytes());
    let mut image = lab.image;
    assert!(!errors(&image).is_empty());
    let refused = repair(&mut image);
    assert!(matches!(refused, Err(RepairError::NodesAstray { count: 1 })), "{refused:?}");
    assert_eq!(salvage(&mut image, now()).unwrap(), [Saved::Nodes { count: 1 }]);
    assert!(manifest(&image) == truth);
    assert_clean(&sound, &image, "an old NAT entry");
}

/// An inode of which nothing was checked, found again: its room for pointers is less than nothing.
#[test]
fn an_inode_that_makes_no_sense_is_found_all_the_same() {
    for (field, value) in [(360, 4000_u16), (362, 910)] {
        let mut lab = Lab::new(kernel_image("f2fs-features"));
        let (ino, node) = (lab.ino("a/rnd"), lab.in_inode("a/rnd", 0));
        lab.set(node.plus(field), &value.to_le_bytes());
        let entry = lab.nat(ino);
        lab.set(entry, &[0; 9]);
        let mut volume = Volume::open(lab.image.clone()).unwrap();
        assert_eq!(volume.find_nodes().unwrap().found, 1);
        let refused = salvage(&mut lab.image, now());
        assert!(matches!(refused, Err(RepairError::Hidden(_))), "{refused:?}");
    }
}

/// Directories of an image with more than `least` entries: path, inode, its block.
fn directories(image: &MemoryDevice, least: usize) -> Vec<(String, u64)> {
    let mut volume = Volume::open(image.clone()).unwrap();
    let mut found = Vec::new();
    for (path, line) in manifest(image) {
        let is_dir = line["mode"].as_str().is_some_and(|mode| mode.starts_with("0o4"));
        if path == "." || !is_dir {
            continue;
        }
        let inode = volume.resolve_link(path.as_bytes()).unwrap();
        if inode.file_type() == FileType::DIRECTORY
            && volume.names_in(&inode).unwrap().0.len() >= least
        {
            found.push((path, volume.nat(inode.ino).unwrap().address.0));
        }
    }
    found
}

#[test]
fn files_of_a_destroyed_directory_go_to_lost_found() {
    for name in ["f2fs-default", "f2fs-features"] {
        let sound = kernel_image(name);
        let truth = manifest(&sound);
        let folders = directories(&sound, 1);
        assert!(folders.len() > 2, "{name}: {folders:?}");
        for (path, block) in folders {
            let mut image = sound.clone();
            put(&mut image, block, [0; 4096]);
            let saved = salvage(&mut image, now()).unwrap_or_else(|why| panic!("{path}: {why}"));
            let found = manifest(&image);
            assert!(contents(&found) == contents(&truth), "{name} {path}: no content is lost");
            let removed = saved.iter().filter(|saved| matches!(saved, Saved::NameRemoved { .. }));
            assert_eq!(removed.count(), 1, "{name} {path}: {saved:?}");
            let again: Vec<_> = saved
                .iter()
                .filter_map(|saved| match saved {
                    Saved::Reconnected { path, .. } => String::from_utf8(path.clone()).ok(),
                    _ => None,
                })
                .collect();
            assert!(!again.is_empty(), "{name} {path}");
            for path in again {
                let path = path.trim_start_matches('/');
                assert!(found.keys().any(|found| found.trim_start_matches("./") == path), "{path}");
            }
            assert_clean(&sound, &image, &format!("{name} {path}"));
        }
    }
}

/// A volume with more files; `make` makes them.
fn mounted(image: &mut MemoryDevice, make: impl FnOnce(&mut F2fs<&mut MemoryDevice>)) {
    let mut fs = F2fs::mount(image, MountOptions::default(), now()).unwrap();
    make(&mut fs);
    Box::new(fs).unmount().unwrap();
}

/// Makes a file, or a directory for `mode` [`S_IFDIR`].
fn make(fs: &mut impl FileSystem, dir: Ino, name: &str, mode: u16) -> Ino {
    let node = NewNode { mode: mode | 0o755, rdev: (0, 0) };
    fs.create(&caller(), dir, name.as_bytes(), &node).unwrap().ino
}

fn caller() -> Caller {
    Caller { uid: 0, gid: 0, now: now().date }
}

/// Directories `/p0`, `/p1` and so on, with a file `beach.txt` in each, which holds the directory's
/// name.
fn with_beaches(image: &mut MemoryDevice, count: u64) {
    mounted(image, |fs| {
        for number in 0..count {
            let root = fs.root();
            let dir = make(fs, root, &format!("p{number}"), S_IFDIR);
            let file = make(fs, dir, "beach.txt", S_IFREG);
            fs.write(&caller(), file, 0, format!("p{number}").as_bytes()).unwrap();
        }
    });
}

/// Fills the node of the inode at `path`.
fn destroy(image: &mut MemoryDevice, path: &str) {
    let mut volume = Volume::open(image.clone()).unwrap();
    let ino = volume.resolve_link(path.as_bytes()).unwrap().ino;
    put(image, volume.nat(ino).unwrap().address.0, [0; 4096]);
}

/// The names in `/lost+found` of files called `beach.txt`, and what they hold.
fn beaches(image: &MemoryDevice) -> Vec<(String, String)> {
    let mut volume = Volume::open(image.clone()).unwrap();
    let dir = volume.resolve_link(b"/lost+found").unwrap();
    let (names, _) = volume.names_in(&dir).unwrap();
    let mut found = Vec::new();
    for name in names.iter().filter_map(|(name, _)| std::str::from_utf8(name).ok()) {
        let file = volume.resolve_link(format!("/lost+found/{name}").as_bytes()).unwrap();
        let mut text = vec![0; file.size as usize];
        volume.read(&file, 0, &mut text).unwrap();
        found.push((name.to_string(), String::from_utf8(text).unwrap()));
    }
    found.retain(|(name, _)| name.ends_with("beach.txt"));
    found.sort();
    found
}

#[test]
fn a_name_that_lost_found_has_is_not_given_again() {
    let mut image = kernel_image("f2fs-default");
    with_beaches(&mut image, 3);
    let sound = image.clone();
    let mut inodes = Volume::open(image.clone()).unwrap();
    let mut ino_of = |number| {
        let path = format!("/p{number}/beach.txt");
        inodes.resolve_link(path.as_bytes()).unwrap().ino
    };
    let mut expected = vec![("beach.txt".to_string(), "p0".to_string())];
    for number in 0..3 {
        if number == 2 {
            // the next name is taken as well
            let taken = format!("#{}-beach.txt", ino_of(2));
            mounted(&mut image, |fs| {
                let dir = fs.lookup(fs.root(), b"lost+found").unwrap().ino;
                make(fs, dir, &taken, S_IFREG);
            });
            expected.push((taken, String::new()));
        }
        destroy(&mut image, &format!("/p{number}"));
        let saved = salvage(&mut image, now()).unwrap();
        let path = saved.iter().find_map(|saved| match saved {
            Saved::Reconnected { path, .. } => String::from_utf8(path.clone()).ok(),
            _ => None,
        });
        let name = match number {
            0 => "beach.txt".to_string(),
            1 => format!("#{}-beach.txt", ino_of(1)),
            _ => format!("#{}-2-beach.txt", ino_of(2)),
        };
        assert_eq!(path, Some(format!("/lost+found/{name}")), "{saved:?}");
        if number > 0 {
            expected.push((name, format!("p{number}")));
        }
        expected.sort();
        assert_eq!(beaches(&image), expected);
        assert_clean(&sound, &image, &format!("/p{number}"));
    }
}

#[test]
fn a_salvage_that_can_give_no_names_tells_what_it_wrote() {
    let mut image = kernel_image("f2fs-default");
    with_beaches(&mut image, 1);
    mounted(&mut image, |fs| {
        let root = fs.root();
        make(fs, root, "lost+found", S_IFREG);
    });
    destroy(&mut image, "/p0");
    let saved = salvage(&mut image, now()).unwrap();
    let [Saved::NameRemoved { path, .. }, Saved::Unnamed { name, .. }] = &saved[..] else {
        panic!("{saved:?}")
    };
    assert_eq!((&path[..], &name[..]), (&b"/p0"[..], &b"beach.txt"[..]));
    assert!(saved[1].is_loss());
    let said = saved[1].to_string();
    assert!(said.contains(", once called beach.txt, has no name in /lost+found yet: "), "{said}");
    // what is in the way is moved, and the next salvage goes on
    mounted(&mut image, |fs| {
        let root = fs.root();
        fs.unlink(&caller(), root, b"lost+found").unwrap();
    });
    salvage(&mut image, now()).unwrap();
    assert_eq!(beaches(&image), [("beach.txt".to_string(), "p0".to_string())]);
}

#[test]
fn a_lost_node_of_a_file_becomes_a_hole() {
    let sound = kernel_image("f2fs-default");
    let mut volume = Volume::open(sound.clone()).unwrap();
    let truth = manifest(&sound);
    let mut tried = 0;
    for path in truth.keys() {
        let inode = volume.resolve_link(path.as_bytes()).unwrap();
        let nids = inode.nids.iter().copied().filter(|nid| nid.is_some());
        if inode.file_type() != FileType::REGULAR {
            continue;
        }
        for nid in nids.collect::<Vec<_>>() {
            let mut image = sound.clone();
            put(&mut image, volume.nat(nid).unwrap().address.0, [0xAA; 4096]);
            let saved = salvage(&mut image, now()).unwrap();
            let is_lost = |saved: &Saved| matches!(saved, Saved::ContentLost { nid: lost, .. } if *lost == nid);
            assert!(saved.iter().any(is_lost), "{path}: {saved:?}");
            let found = manifest(&image);
            let different: Vec<_> =
                truth.iter().filter(|(path, line)| found.get(*path) != Some(line)).collect();
            // a file with several names is found by each
            let is_it = |(_, line): &(&String, &Value)| line["md5"] == truth[path]["md5"];
            assert!(different.iter().all(is_it), "{path}: {different:?}");
            assert_eq!(found[path]["size"], truth[path]["size"]);
            assert_clean(&sound, &image, path);
            tried += 1;
        }
        if tried > 12 {
            break;
        }
    }
    assert!(tried > 5, "{tried}");
}

#[test]
fn a_node_below_a_lost_one_is_given_up_and_its_file_is_not() {
    let mut image = kernel_image("f2fs-default");
    mounted(&mut image, |fs| {
        let root = fs.root();
        let file = make(fs, root, "long", S_IFREG);
        fs.write(&caller(), file, 0, b"first").unwrap();
        // beyond the pointers of the inode and of two direct nodes
        fs.write(&caller(), file, 4096 * 4000, b"last").unwrap();
    });
    let mut volume = Volume::open(image.clone()).unwrap();
    let inode = volume.resolve_link(b"/long").unwrap();
    let indirect = inode.nids[2];
    put(&mut image, volume.nat(indirect).unwrap().address.0, [0; 4096]);
    let saved = salvage(&mut image, now()).unwrap();
    let dropped = saved.iter().find(|saved| matches!(saved, Saved::NodeDropped { .. })).unwrap();
    let Saved::NodeDropped { nid, ino } = dropped else { panic!() };
    assert_eq!(*ino, inode.ino);
    let said = format!("node {nid} of inode {ino} was given up with its blocks");
    assert_eq!(dropped.to_string(), said, "the inode lives");
    assert!(saved.contains(&Saved::ContentLost { path: b"/long".to_vec(), nid: indirect }));
    assert_eq!(Volume::open(image).unwrap().resolve_link(b"/long").unwrap().size, inode.size);
}

#[test]
fn damage_at_random_is_salvaged_or_refused() {
    let sound = kernel_image("f2fs-default");
    let truth = contents(&manifest(&sound));
    let mut volume = Volume::open(sound.clone()).unwrap();
    let nodes: Vec<u64> = (4..volume.superblock().max_nid())
        .filter_map(|nid| Some(volume.nat(Nid(nid)).ok()?.address.0).filter(|at| *at > 0))
        .collect();
    let mut no_names = sound.clone();
    mounted(&mut no_names, |fs| {
        let root = fs.root();
        make(fs, root, "lost+found", S_IFREG);
    });
    destroy(&mut no_names, "/a");
    let (mut saved, mut refused, mut unnamed) = (0, 0, 0);
    for seed in 0..32 {
        // the last ones miss names, and none can be given
        let start = if seed < 24 { &sound } else { &no_names };
        let (mut image, mut random) = (start.clone(), Rng::new(seed));
        destroy_nat(&mut image, &[random.next_u64() % 4], garbage);
        let lost = 1 + random.next_u64() % 6;
        for _ in 0..lost {
            let at = nodes[(random.next_u64() % nodes.len() as u64) as usize];
            put(&mut image, at, garbage(at ^ seed));
        }
        let before = image.clone();
        match salvage(&mut image, now()) {
            Ok(account) if seed >= 24 => {
                let is_unnamed = |saved: &Saved| matches!(saved, Saved::Unnamed { .. });
                unnamed += account.iter().filter(|saved| is_unnamed(saved)).count();
            }
            Ok(_) => {
                let kept = contents(&manifest(&image));
                let missing = truth.iter().filter(|file| !kept.contains(file)).count();
                assert!(missing as u64 <= lost, "seed {seed}: {missing} of {lost} nodes");
                assert_clean(&sound, &image, &format!("seed {seed}"));
                saved += 1;
            }
            Err(RepairError::Volume(error)) => panic!("seed {seed}: {error}"),
            Err(why) => {
                let mut changed = before.used().chain(image.used()).map(|(lba, _)| lba);
                let is_changed = |lba: &Lba| before.bytes(*lba) != image.bytes(*lba);
                assert_eq!(changed.find(is_changed), None, "seed {seed}: {why}");
                refused += 1;
            }
        }
    }
    assert!(saved > 18, "{saved} saved, {refused} refused");
    assert!(unnamed > 0);
}

/// One wrong pointer, which the SIT and the SSA contradict: the repair believed it, gave the true
/// block up, and left logs before used blocks, or a segment of both kinds: no mount took that.
#[test]
fn a_pointer_alone_against_both_tables_is_not_believed() {
    let sound = Lab::new(kernel_image("f2fs-default"));
    let mut volume = Volume::open(sound.image.clone()).unwrap();
    let segments = volume.superblock().segment_count_main;
    let free = |volume: &mut Volume<MemoryDevice>, is_node: bool| {
        (0..segments).find_map(|number| {
            let segno = SegNo(number);
            let segment = volume.segment(segno).ok()?;
            let is_of_kind = (segment.log >= 3) == is_node && segment.valid_blocks > 0;
            let within =
                (0..512).find(|bit| segment.valid_map[bit / 8] & (0x80 >> (bit % 8)) == 0)?;
            is_of_kind.then(|| volume.block_in_segment(segno, within as u32).0)
        })
    };
    for is_node in [false, true] {
        let to = free(&mut volume, is_node).unwrap();
        let mut lab = sound.clone();
        let at = lab.in_inode("a/rnd", 360 + 40);
        lab.set(at, &(to as u32).to_le_bytes());
        let before = errors(&lab.image);
        let refused = repair(&mut lab.image).unwrap_err();
        assert!(matches!(refused, RepairError::Hidden(_)), "{refused}");
        assert_eq!(errors(&lab.image), before, "nothing was written");
        let saved = salvage(&mut lab.image, now()).unwrap();
        assert!(matches!(saved[..], [Saved::PointerRestored { .. }]), "{saved:?}");
        assert!(manifest(&lab.image) == manifest(&sound.image));
        assert_clean(&sound.image, &lab.image, &format!("a pointer to {to}"));
    }
}

/// A pointer in an inode and one in a node of its own lead out of range, or to a block that is
/// free. SIT and summary still know the right one; without them the file loses a block.
#[test]
fn wrong_pointers_lead_to_their_blocks_again() {
    let mut sound = kernel_image("f2fs-default");
    mounted(&mut sound, |fs| {
        let root = fs.root();
        let file = make(fs, root, "long", S_IFREG);
        let content: Vec<u8> = (0..1000 * 4096_u32).map(|at| (at >> 12) as u8 | 1).collect();
        fs.write(&caller(), file, 0, &content).unwrap();
    });
    let truth = manifest(&sound);
    let mut volume = Volume::open(sound.clone()).unwrap();
    let segments = (0..volume.superblock().segment_count_main).map(SegNo);
    let mut empty = segments.filter(|&segno| volume.segment(segno).unwrap().valid_blocks == 0);
    let segno = empty.next_back().unwrap();
    let free = volume.block_in_segment(segno, 7).0 as u32;
    let long = "long";
    let node = volume.resolve_link(b"/long").unwrap().nids[0].0;
    for (wrong, is_far, is_known) in [
        (5, false, true),
        (5, true, true),
        (free, false, true),
        (free, true, true),
        (5, false, false),
    ] {
        let what = format!("pointer to {wrong}, far: {is_far}, known: {is_known}");
        let mut lab = Lab::new(sound.clone());
        let pointer = if is_far { lab.node(node).plus(12) } else { lab.in_inode(long, 360 + 40) };
        let right = lab.u32(pointer);
        assert_ne!(right, 0, "{what}");
        lab.set(pointer, &wrong.to_le_bytes());
        if !is_known {
            let summary = lab.summary(At { block: right.into(), byte: 0 });
            lab.set(summary, &[0xFF; 7]);
        }
        let before = errors(&lab.image);
        assert!(!before.is_empty(), "{what}");
        assert!(repair(&mut lab.image).is_err(), "{what}: it takes a guess");
        let saved = salvage(&mut lab.image, now()).unwrap();
        match &saved[..] {
            [Saved::PointerRestored { path, address, .. }] if is_known => {
                assert_eq!((path, address.0), (&b"/long".to_vec(), right.into()), "{what}");
                assert!(manifest(&lab.image) == truth, "{what}");
            }
            [Saved::BlockLost { path, .. }] if !is_known => {
                assert_eq!(path, b"/long", "{what}");
                let changed = manifest(&lab.image);
                let differ = truth.iter().filter(|(path, line)| changed.get(*path) != Some(*line));
                let differ: Vec<&str> = differ.map(|(path, _)| path.as_str()).collect();
                assert_eq!(differ, [".".to_owned() + "/" + long], "{what}");
            }
            _ => panic!("{what}: {saved:?}, {before:?}"),
        }
        assert_clean(&sound, &lab.image, &what);
    }
}

/// A node that says to be an inode itself is none: the pointers in it are those of its file.
#[test]
fn a_node_with_a_wrong_footer_has_its_pointers_mended() {
    let mut sound = kernel_image("f2fs-default");
    mounted(&mut sound, |fs| {
        let root = fs.root();
        let file = make(fs, root, "long", S_IFREG);
        fs.write(&caller(), file, 0, &vec![7; 1000 * 4096]).unwrap();
    });
    let mut volume = Volume::open(sound.clone()).unwrap();
    let node = volume.resolve_link(b"/long").unwrap().nids[0].0;
    let mut lab = Lab::new(sound.clone());
    let (pointer, ino) = (lab.node(node).plus(12), lab.node(node).plus(4096 - 20));
    lab.set(pointer, &5_u32.to_le_bytes());
    lab.set(ino, &node.to_le_bytes());
    let saved = salvage(&mut lab.image, now()).unwrap();
    assert!(matches!(saved[..], [Saved::PointerRestored { .. }]), "{saved:?}");
    assert!(manifest(&lab.image) == manifest(&sound));
    assert_clean(&sound, &lab.image, "a footer");
}
