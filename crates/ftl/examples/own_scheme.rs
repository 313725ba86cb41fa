//! A mapping scheme of one's own, on a drive, beside the one that drives have by default.
//!
//! `chunks` is a table of two levels: 512 logical pages share a chunk, and a chunk takes memory
//! from its first page on. `docs/tutorials/own-mapping-scheme.md` explains it line by line, and
//! says how to add a scheme to `dovetail` itself.
//!
//! `cargo run --release -p dovetail-ftl --example own_scheme`

#![allow(clippy::print_stdout, reason = "an example prints what it found")]
#![allow(clippy::unwrap_used, reason = "an example may stop at a broken set-up")]

use std::ops::Range;

use dovetail_block::{BlockDevice, BlockRange, Command, Data, Hints, Lba, Pattern};
use dovetail_ftl::mapping::{self, MapCost, MapShape, Mapping, Scheme, look_up_each};
use dovetail_ftl::{Drive, Overrides, Profile};
use dovetail_nand::{Lpn, Ppn};
use dovetail_time::{Rng, SimSpan, SimTime};

static SCHEME: Scheme = Scheme {
    name: "chunks",
    about: "table of two levels: 4 bytes for each page of a chunk, 8 for each chunk",
    sparse: false,
    reach: u64::MAX,
    build: |shape| Box::new(ChunkMap::new(shape)),
};

/// Logical pages that share a chunk.
const PAGES: u64 = 512;
const TWO: MapCost = MapCost { accesses: 2 };

/// An entry is the physical page plus one, 0 where the logical page is not mapped.
#[derive(Clone, Debug)]
struct ChunkMap {
    chunks: Vec<Option<Box<[u32; PAGES as usize]>>>,
}

impl ChunkMap {
    fn new(shape: MapShape) -> Self {
        let mut chunks = Vec::new();
        chunks.resize_with(shape.pages.div_ceil(PAGES) as usize, || None);
        Self { chunks }
    }
}

impl Mapping for ChunkMap {
    fn lookup(&self, lpn: Lpn) -> (Option<Ppn>, MapCost) {
        let chunk = self.chunks[(lpn.0 / PAGES) as usize].as_ref();
        let entry = chunk.map_or(0, |chunk| chunk[(lpn.0 % PAGES) as usize]);
        (entry.checked_sub(1).map(Ppn), TWO)
    }

    fn update(&mut self, lpn: Lpn, to: Option<Ppn>) -> (Option<Ppn>, MapCost) {
        let chunk = self.chunks[(lpn.0 / PAGES) as usize].get_or_insert_with(|| Box::new([0; 512]));
        let entry = to.map_or(0, |ppn| ppn.0 + 1);
        let before = std::mem::replace(&mut chunk[(lpn.0 % PAGES) as usize], entry);
        (before.checked_sub(1).map(Ppn), TWO)
    }

    fn memory_bytes(&self) -> u64 {
        let used = self.chunks.iter().flatten().count() as u64;
        self.chunks.len() as u64 * 8 + used * PAGES * 4
    }

    fn mapped(&self) -> u64 {
        let entries = self.chunks.iter().flatten().flat_map(|chunk| chunk.iter());
        entries.filter(|&&entry| entry != 0).count() as u64
    }

    fn find_mapped(&self, pages: Range<u64>, most: usize, found: &mut Vec<(Lpn, Ppn)>) -> MapCost {
        look_up_each(self, pages, most, found)
    }
}

/// A new drive of 512 MiB with that map, an access to which takes 100 ns.
fn drive(scheme: &'static Scheme) -> Drive {
    let overrides = Overrides { scale: "1/64".parse().ok(), ..Overrides::default() };
    let mut config = Profile::load("femu-32g").unwrap().resolve(&overrides).unwrap();
    (config.scheme, config.map_access) = (scheme, SimSpan::from_ns(100));
    Drive::new(config).unwrap()
}

fn main() {
    for scheme in [mapping::scheme("page").unwrap(), &SCHEME] {
        let mut drive = drive(scheme);
        let empty = drive.mapping_memory_bytes();
        // the first half of the addresses, written four times over
        let blocks = drive.config().user_blocks;
        let (mut rng, mut now) = (Rng::new(1), SimTime::ZERO);
        for version in 0..2 * blocks {
            let range = BlockRange::new(Lba(rng.below(blocks / 2)), 1);
            let data = Data::Patterns(Pattern::new(version));
            let write = Command::Write { range, data, hints: Hints::default(), fua: false };
            now = drive.submit(now, write).unwrap().done;
        }
        let range = BlockRange::new(Lba(0), 1);
        let read = drive.submit(now, Command::Read { range, into: None }).unwrap().done.since(now);
        println!(
            "{}: {empty} bytes when new, {} half full; a read takes {} ns; write amplification {:.3}",
            scheme.name,
            drive.mapping_memory_bytes(),
            read.as_ns(),
            drive.counters().waf(1).unwrap(),
        );
        drive.check().unwrap();
    }
}
