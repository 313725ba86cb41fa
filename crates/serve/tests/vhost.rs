//! The drive of a virtual machine, as its front end sees it.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dovetail_serve::{Address, Pace, Server, ask_status};
use dovetail_time::Rng;
use tempfile::TempDir;

use crate::drive;
use crate::front_end::{
    DISCARD, FLUSH, FrontEnd, GET_ID, MEMORY, NEXT, READ, RING, USER, WRITABLE, WRITE,
    WRITE_ZEROES, addresses, longs, message, parts, words,
};

struct Rig {
    folder: TempDir,
    server: Server,
}

impl Rig {
    fn new(profile: &str, speed: f64, read_only: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Server::new(drive(profile), Pace::new(speed), read_only);
        server.listen_for_front_end(&folder.path().join("socket"), 2).unwrap();
        Self { folder, server }
    }

    /// A drive whose first block holds what [`check`] looks for.
    fn at_once() -> Self {
        let rig = Self::new("femu-32g", 0.0, false);
        assert_eq!(rig.front_end(1).request(0, WRITE, 0, &[0xD0; 4096]), 0);
        rig
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn connect(&self) -> FrontEnd {
        FrontEnd::connect(&self.socket())
    }

    fn front_end(&self, queues: u32) -> FrontEnd {
        let mut front_end = self.connect();
        front_end.begin(queues);
        front_end
    }
}

/// A well-behaved front end is served, and the drive is as it was.
fn check(rig: &Rig) {
    let mut front_end = rig.front_end(1);
    assert_eq!(front_end.read(0, 0, 4096), vec![0xD0; 4096]);
    assert_eq!(front_end.request(0, WRITE, 2048, &[1; 512]), 0);
    assert_eq!(front_end.read(0, 2048, 512), vec![1; 512]);
}

/// A range of a discard.
fn range(sector: u64, sectors: u32, flags: u32) -> Vec<u8> {
    [longs(&[sector]), words(&[sectors, flags])].concat()
}

#[test]
fn a_front_end_is_told_what_the_drive_is() {
    let rig = Rig::new("femu-32g", 0.0, false);
    let mut front_end = rig.connect();
    let bits = |bytes: Vec<u8>| u64::from_ne_bytes(bytes.try_into().unwrap());
    let features = bits(front_end.ask(1, &[]));
    for bit in [9, 12, 13, 14, 30, 32] {
        assert!(features & 1 << bit != 0, "{bit}: {features:x}");
    }
    assert_eq!(features & (1 << 5 | 1 << 17), 0, "neither read-only nor zoned");
    assert_eq!(bits(front_end.ask(15, &[])), 1 | 1 << 3 | 1 << 5 | 1 << 9);
    assert_eq!(bits(front_end.ask(17, &[])), 2, "queues");
    let config = front_end.ask(24, &[words(&[0, 60, 0]), vec![0; 60]].concat());
    assert_eq!(config.len(), 72);
    assert_eq!(config[12..20], (128_u64 << 11).to_le_bytes(), "128 MiB in sectors");
}

#[test]
fn requests_of_each_kind_over_two_queues() {
    let rig = Rig::at_once();
    let mut front_end = rig.front_end(2);
    assert_eq!(front_end.request(1, WRITE, 8, &[7; 12288]), 0);
    assert_eq!(front_end.read(0, 8, 12288), vec![7; 12288]);
    assert_eq!(front_end.request(0, FLUSH, 0, &[]), 0);
    assert_eq!(front_end.request(1, DISCARD, 0, &range(8, 8, 0)), 0);
    assert_eq!(front_end.request(0, WRITE_ZEROES, 0, &range(24, 8, 1)), 0);
    let expected = [[0; 4096], [7; 4096], [0; 4096]].concat();
    assert_eq!(front_end.read(1, 8, 12288), expected);
    assert_eq!(front_end.request(0, GET_ID, 0, &[0; 20]), 0);
    assert_eq!(front_end.request(0, 99, 0, &[]), 2, "unsupported");
    assert_eq!(front_end.request(1, READ, 128 << 11, &[0; 512]), 1, "beyond the end");
    // one under way in each queue
    front_end.prepare(0, WRITE, 80, &[1; 4096]);
    front_end.prepare(1, WRITE, 88, &[2; 4096]);
    front_end.kick(0, 0);
    front_end.kick(1, 0);
    assert_eq!((front_end.finish(1), front_end.finish(0)), (0, 0));
    assert_eq!(front_end.read(0, 80, 8192), [[1; 4096], [2; 4096]].concat());
    let requests = rig.server.status().unwrap().server.requests;
    assert_eq!((requests.write, requests.discard, requests.write_zeroes), (4, 1, 1));
    assert_eq!((requests.flush, requests.failed), (1, 2));
    // one that was made to see whether somebody listens may still be ending
    let connections = || rig.server.status().unwrap().server.connections;
    assert!((0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        connections() == 1
    }));
}

#[test]
fn a_read_only_drive_stays_as_it_is() {
    let rig = Rig::new("femu-32g", 0.0, true);
    let mut front_end = rig.front_end(1);
    assert!(front_end.ask(1, &[])[0] & 1 << 5 != 0);
    assert_eq!(front_end.request(0, WRITE, 0, &[1; 512]), 1);
    assert_eq!(front_end.read(0, 0, 512), vec![0; 512]);
}

#[test]
fn a_zoned_drive_has_its_zones() {
    let rig = Rig::new("femu-32g-zoned", 0.0, false);
    let mut front_end = rig.front_end(1);
    assert!(front_end.ask(1, &[])[2] & 1 << 1 != 0);
    let config = front_end.ask(24, &[words(&[0, 96, 0]), vec![0; 96]].concat());
    let config = &config[12..];
    let sectors = u64::from_le_bytes(config[..8].try_into().unwrap());
    let zone_sectors = u64::from(u32::from_le_bytes(config[72..76].try_into().unwrap()));
    let zone = sectors - zone_sectors; // the first ones are conventional
    assert_eq!(front_end.request(0, WRITE, zone, &[1; 4096]), 0);
    assert_eq!(front_end.request(0, WRITE, zone, &[1; 4096]), 4, "not at the write pointer");
    assert_eq!(front_end.request(0, 24, zone, &[]), 0, "reset");
    assert_eq!(front_end.request(0, WRITE, zone, &[2; 4096]), 0);
    assert_eq!(front_end.request(0, 24, 1 << 50, &[]), 3, "no such zone");
    // a report, into a buffer that the device writes
    front_end.prepare(0, 16, zone, &[0; 128]);
    front_end.describe(0, 1, parts(0)[3] + 4096, 128, NEXT | WRITABLE, 2);
    front_end.kick(0, 0);
    assert_eq!(front_end.finish(0), 0);
    let mut report = [0; 128];
    front_end.memory.read_exact_at(&mut report, parts(0)[3] + 4096).unwrap();
    assert_eq!(report[0], 1, "one zone");
    assert_eq!(report[80..88], (zone + 8).to_le_bytes(), "its write pointer");
    assert_eq!(rig.server.status().unwrap().server.requests.zone, 3);
}

#[test]
fn answers_take_the_time_of_the_drive() {
    let rig = Rig::new("femu-32g", 0.01, false);
    let mut front_end = rig.front_end(1);
    let begun = Instant::now();
    assert_eq!(front_end.request(0, WRITE, 0, &[1; 4096]), 0);
    // 507 us at a hundredth of the speed
    assert!(begun.elapsed() > Duration::from_millis(45), "{:?}", begun.elapsed());
}

#[test]
fn a_queue_that_ends_hands_back_what_is_under_way() {
    let rig = Rig::new("femu-32g", 0.01, false);
    let mut front_end = rig.front_end(1);
    front_end.prepare(0, WRITE, 0, &[1; 4096]);
    front_end.kick(0, 0);
    let position = loop {
        // the kick may come after the question
        if rig.server.status().unwrap().server.requests.write == 1 {
            break front_end.ask(11, &words(&[0, 0]));
        }
    };
    assert_eq!(position, words(&[0, 1]));
    let mut used = [0; 2];
    front_end.memory.read_exact_at(&mut used, parts(0)[2] + 2).unwrap();
    assert_eq!(used, [1, 0]);
}

#[test]
fn one_front_end_at_a_time_and_then_the_next() {
    let rig = Rig::at_once();
    let mut first = rig.front_end(1);
    assert_eq!(first.read(0, 0, 512), vec![0xD0; 512]);
    let mut second = rig.connect();
    second.say(&message(3, &[]), &[]);
    assert!(second.is_closed());
    let asked = ask_status(&Address::Unix(rig.socket()).connect().unwrap()).unwrap();
    assert_eq!(asked.server.requests.read, 1, "but who asks is answered");
    drop(first);
    check(&rig);
    rig.server.end().unwrap();
}

/// Messages that no front end sends: bytes, and the number of times that its memory comes along.
fn nonsense() -> Vec<(&'static str, Vec<u8>, usize)> {
    let table = |size, offset| message(5, &longs(&[1, 0, size, USER, offset]));
    let [descriptors, available, used, rest] = parts(0);
    let outside = MEMORY - 16;
    vec![
        ("a header of another version", words(&[1, 2, 0]), 0),
        ("an unknown request", message(77, &[]), 0),
        ("a payload of 4 GiB", words(&[2, 1, u32::MAX]), 0),
        ("a payload that is too short", message(8, &[0; 4]), 0),
        ("memory without files", table(MEMORY, 0), 0),
        ("more files than memory", table(MEMORY, 0), 2),
        ("memory beyond the file", table(MEMORY * 2, 0), 1),
        ("an offset beyond the file", table(MEMORY, 1 << 40), 1),
        ("an offset within a page", table(4096, 5), 1),
        ("no memory at all", table(0, 0), 1),
        ("memory beyond all addresses", message(5, &longs(&[1, u64::MAX - 5, MEMORY, USER, 0])), 1),
        ("memory at no address", message(5, &longs(&[1, 0, MEMORY, u64::MAX - 5, 0])), 1),
        ("a table that is cut short", message(5, &longs(&[1, 0, MEMORY])), 1),
        ("a queue of 5 requests", message(8, &words(&[0, 5])), 0),
        ("a queue of 65552 requests", message(8, &words(&[0, 65_552])), 0),
        ("a position of 65536", message(10, &words(&[0, 65_536])), 0),
        ("a queue that is not there", message(8, &words(&[2, 16])), 0),
        ("descriptors elsewhere", message(9, &addresses(0, [1 << 40, available, used, rest])), 0),
        ("descriptors at the end", message(9, &addresses(0, [outside, available, used, rest])), 0),
        ("a ring at the end", message(9, &addresses(0, [descriptors, outside, used, rest])), 0),
        ("used at the end", message(9, &addresses(0, [descriptors, available, outside, rest])), 0),
        ("an odd ring", message(9, &addresses(0, [descriptors, available + 1, used, rest])), 0),
        ("a configuration elsewhere", message(24, &words(&[1 << 30, 8, 0, 0, 0])), 0),
    ]
}

#[test]
fn nonsense_ends_its_own_connection_alone() {
    let rig = Rig::at_once();
    for (what, bytes, files) in nonsense() {
        let mut front_end = rig.front_end(1);
        let files: Vec<BorrowedFd<'_>> = vec![front_end.memory.as_fd(); files];
        front_end.say(&bytes, &files);
        assert!(front_end.is_closed(), "{what}");
        check(&rig);
    }
    // and before anything was agreed on
    for (what, bytes, files) in nonsense() {
        let front_end = rig.connect();
        let files: Vec<BorrowedFd<'_>> = vec![front_end.memory.as_fd(); files];
        front_end.say(&bytes, &files);
        front_end.leave(what.as_bytes());
    }
    check(&rig);
}

#[test]
fn damaged_requests_end_the_connection() {
    let buffers = parts(0)[3];
    type Damage = fn(&mut FrontEnd, u64);
    let damages: [(&str, Damage); 9] = [
        ("a loop", |f, at| f.describe(0, 2, at + 16, 1, WRITABLE | NEXT, 1)),
        ("a descriptor that is not there", |f, at| f.describe(0, 1, at, 16, NEXT, 99)),
        ("data outside of the memory", |f, _| f.describe(0, 1, 1 << 40, 512, NEXT, 2)),
        ("data beyond the memory", |f, _| f.describe(0, 1, MEMORY - 8, 512, NEXT, 2)),
        ("a huge length", |f, at| f.describe(0, 1, at, u32::MAX, NEXT, 2)),
        ("no status byte", |f, at| f.describe(0, 2, at, 1, 0, 0)),
        ("half a head", |f, at| f.describe(0, 0, at, 8, 0, 0)),
        ("an indirect table outside", |f, _| f.describe(0, 0, 1 << 40, 48, 4, 0)),
        ("an indirect table of half a descriptor", |f, at| f.describe(0, 0, at, 7, 4, 0)),
    ];
    let rig = Rig::at_once();
    for (what, damage) in damages {
        let mut front_end = rig.front_end(1);
        front_end.prepare(0, WRITE, 4096, &[3; 512]);
        damage(&mut front_end, buffers);
        front_end.kick(0, 0);
        assert!(front_end.is_closed(), "{what}");
        check(&rig);
    }
    let mut front_end = rig.front_end(1);
    front_end.memory.write_all_at(&[0, 0x40], parts(0)[1] + 2).unwrap();
    front_end.kick(0, RING);
    assert!(front_end.is_closed(), "a head that is no descriptor");
    check(&rig);
    let mut front_end = rig.front_end(1);
    front_end.prepare(0, FLUSH, 0, &[]);
    front_end.kick(0, 0);
    assert_eq!(front_end.finish(0), 0);
    front_end.memory.write_all_at(&[0, 0x40], parts(0)[1] + 2).unwrap();
    front_end.say(&message(18, &words(&[0, 1])), &[]);
    assert!(front_end.is_closed(), "16,384 requests in a ring of 16");
    check(&rig);
}

#[test]
fn a_front_end_may_break_off_anywhere() {
    let rig = Rig::at_once();
    let whole = [message(3, &[]), message(1, &[]), message(8, &words(&[0, 16]))].concat();
    for end in 0..whole.len() {
        rig.connect().leave(&whole[..end]);
    }
    // with a request under way
    let mut front_end = rig.front_end(1);
    front_end.prepare(0, WRITE, 4096, &[3; 512]);
    front_end.kick(0, 0);
    drop(front_end);
    check(&rig);
    assert_eq!(rig.front_end(1).read(0, 4096, 512), vec![3; 512], "it was kicked before the end");
}

/// Whatever wrong bits are in messages, rings, descriptors and heads, the drive and its server stay
/// whole. Of what is asked for only an append writes, to a zone.
#[test]
fn two_thousand_mutations_harm_nobody() {
    for (profile, seed) in [("femu-32g", 11), ("femu-32g-zoned", 12)] {
        let rig = Rig::new(profile, 0.0, false);
        assert_eq!(rig.front_end(1).request(0, WRITE, 0, &[0xD0; 4096]), 0);
        let mut random = Rng::new(seed);
        for round in 0..1000 {
            let mut front_end = rig.front_end(1);
            let kinds = [READ, FLUSH, GET_ID, 15, 16, 18, 20, 22, 99];
            let kind = kinds[random.below(kinds.len() as u64) as usize];
            front_end.prepare(0, kind, 1 << 17, &[5; 512]);
            if round % 4 == 0 {
                let (_, mut bytes, files) = nonsense().swap_remove(random.below(23) as usize);
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.below(8);
                let files: Vec<BorrowedFd<'_>> = vec![front_end.memory.as_fd(); files];
                front_end.say(&bytes, &files);
            }
            for _ in 0..=random.below(3) {
                // a descriptor, an index of a ring, or the head, whose kind stays what it is
                let (start, len) = match random.below(3) {
                    0 => (parts(0)[0], 48),
                    1 => (parts(0)[1], 8),
                    _ => (parts(0)[3] + 4, 12),
                };
                let mut byte = [0];
                let at = start + random.below(len);
                front_end.memory.read_exact_at(&mut byte, at).unwrap();
                byte[0] ^= 1 << random.below(8);
                front_end.memory.write_all_at(&byte, at).unwrap();
            }
            front_end.kick(0, random.below(4) as u16);
            front_end.leave(&[]);
        }
        let mut front_end = rig.front_end(1);
        assert_eq!(front_end.read(0, 0, 4096), vec![0xD0; 4096], "{profile}");
        drop(front_end);
        let requests = rig.server.status().unwrap().server.requests;
        let taken = requests.read + requests.flush + requests.zone + requests.failed;
        assert!(taken > 200, "{profile}: of 1,000 damaged requests {taken} were taken");
        rig.server.end().unwrap();
    }
}
