//! A drive whose power goes at an operation of its flash, or at a time, while a record of commands
//! is played to it.

use std::ops::Range;

use dovetail_block::{
    BlockDevice, BlockRange, Command, Content, Data, DeviceError, Hints, Lba, MemoryDevice, Pattern,
};
use dovetail_ftl::lines::LineShape;
use dovetail_ftl::{
    Drive, DriveConfig, MapCacheConfig, RemapConfig, UnrecoveredDrive, cache, mapping, victim,
};
use dovetail_nand::{FaultPlan, Geometry, PowerCut, Torn};
use dovetail_testkit::Event;
use dovetail_time::{Rng, SimSpan, SimTime};

/// Flash pages that such a drive offers.
pub(crate) const BLOCKS: u64 = (64 << 20) / 4096;

/// A small drive with little room to spare.
pub(crate) fn config(
    remap: Option<RemapConfig>,
    addresses: Option<u64>,
    page_bytes: u32,
    rng: &mut Rng,
) -> DriveConfig {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 150,
        pages_per_block: 64,
        page_bytes,
    };
    // on a thin drive any map but a dense one
    let schemes: Vec<_> =
        mapping::SCHEMES.iter().filter(|scheme| addresses.is_none() || scheme.sparse).collect();
    let map_cache = rng.chance(0.5).then(|| paged(rng));
    DriveConfig {
        addresses,
        map_cache,
        scheme: schemes[rng.below(schemes.len().min(2) as u64) as usize],
        policy: &victim::POLICIES[rng.below(victim::POLICIES.len() as u64) as usize],
        shape: if rng.chance(0.5) { LineShape::Superblock } else { LineShape::Block },
        gc_apart: rng.chance(0.5),
        buffer_pages: [0, 4, 32][rng.below(3) as usize],
        wear_spread: [0, 3][rng.below(2) as usize],
        map_access: SimSpan::from_ns(50),
        command: SimSpan::from_us(5),
        remap,
        seed: rng.next_u64(),
        ..DriveConfig::plain(geometry, BLOCKS * u64::from(page_bytes / 4096))
    }
}

/// A map that is paged on demand, by any policy.
fn paged(rng: &mut Rng) -> MapCacheConfig {
    MapCacheConfig {
        policy: &cache::POLICIES[rng.below(cache::POLICIES.len() as u64) as usize],
        bytes: [200, 4000, 40_000][rng.below(3) as usize],
        page_entries: [128, 512][rng.below(2) as usize],
    }
}

/// A drive, and the time at which its last command was through.
pub(crate) struct Bench {
    pub(crate) drive: Drive,
    now: SimTime,
}

impl Bench {
    /// A drive with `image` on it and something in each other block of `filled`, so often
    /// overwritten that it has begun to clean.
    pub(crate) fn new(
        config: DriveConfig,
        image: &MemoryDevice,
        filled: BlockRange,
        rng: &mut Rng,
    ) -> Self {
        let mut bench = Self { drive: Drive::new(config).unwrap(), now: SimTime::ZERO };
        image.used().for_each(|(lba, _)| bench.put(image, BlockRange::new(lba, 1)));
        for start in (filled.start.0..filled.end().0).step_by(64) {
            bench.put(image, BlockRange::new(Lba(start), 64.min(filled.end().0 - start)));
        }
        while bench.drive.counters().erases < 4 {
            bench.put(image, BlockRange::new(Lba(filled.start.0 + rng.below(filled.blocks)), 1));
        }
        bench.submit(Command::Flush).unwrap();
        bench
    }

    fn put(&mut self, image: &MemoryDevice, range: BlockRange) {
        let block = |lba: Lba| match image.get(lba) {
            Content::Empty => Content::Pattern(Pattern::new(lba.0)),
            content => content.clone(),
        };
        let contents: Vec<Content> = range.iter().map(block).collect();
        self.write(range, &contents, false).unwrap();
    }

    fn submit(&mut self, command: Command<'_>) -> Result<(), DeviceError> {
        self.now = self.drive.submit(self.now, command)?.done;
        Ok(())
    }

    fn write(
        &mut self,
        range: BlockRange,
        contents: &[Content],
        fua: bool,
    ) -> Result<(), DeviceError> {
        self.submit(Command::Write {
            range,
            data: Data::Blocks(contents),
            hints: Hints::default(),
            fua,
        })
    }

    fn play(&mut self, event: &Event) -> Result<(), DeviceError> {
        match event {
            Event::Write { range, contents, fua } => self.write(*range, contents, *fua),
            Event::Flush => self.submit(Command::Flush),
            Event::Discard { ranges } => self.submit(Command::Discard { ranges }),
            Event::Remap { pairs, when } => self.submit(Command::Remap { pairs, when: *when }),
        }
    }

    /// Plays events until the power goes, at an operation or at a time; returns the drive,
    /// recovered, and how many events were through.
    pub(crate) fn cut(self, events: &[Event], rng: &mut Rng) -> (Drive, usize) {
        let at = rng.below(events.len() as u64 + 1) as usize;
        match rng.chance(0.5) {
            true => self.cut_in(events, at, rng),
            false => self.cut_at_a_time(events, at, rng),
        }
    }

    /// Plays the events until the power goes during or after number `at`; returns the drive,
    /// recovered, and how many events were through.
    fn cut_in(mut self, events: &[Event], at: usize, rng: &mut Rng) -> (Drive, usize) {
        events[..at].iter().for_each(|event| self.play(event).unwrap());
        let within = if rng.chance(0.5) { 3 } else { 60 };
        let torn = [Torn::Untouched, Torn::Garbage, Torn::Finished][rng.below(3) as usize];
        let at_operation = self.drive.flash_operations() + rng.below(within);
        let cut = PowerCut { at_operation, torn };
        self.drive.set_faults(FaultPlan { power_cut: Some(cut), ..FaultPlan::default() });
        let through = events[at..].iter().take_while(|event| self.play(event).is_ok()).count();
        (recover(self.drive.into_unrecovered()), at + through)
    }

    /// The same with the power cut at a time during number `at`: operations of all dies under way
    /// are torn.
    fn cut_at_a_time(mut self, events: &[Event], at: usize, rng: &mut Rng) -> (Drive, usize) {
        self.drive.remember_operations();
        events[..at].iter().for_each(|event| self.play(event).unwrap());
        let start = self.now;
        let through = events.get(at).map(|event| self.play(event).unwrap());
        let during = self.now.since(start).as_ns();
        let time = start + SimSpan::from_ns(rng.below(during + 1));
        let through = usize::from(through.is_some() && time >= self.now);
        (recover(self.drive.into_unrecovered_at(time)), at + through)
    }
}

/// Recovers, anew if a cut that was not reached before comes in the midst; the maps of what comes
/// out agree.
pub(crate) fn recover(drive: UnrecoveredDrive) -> Drive {
    let again = |lost: Box<(UnrecoveredDrive, DeviceError)>| {
        assert_eq!(lost.1, DeviceError::PowerLost);
        lost.0.recover().unwrap()
    };
    let (mut drive, _) = drive.recover().unwrap_or_else(again);
    drive.set_faults(FaultPlan::default());
    drive.check().unwrap();
    drive
}

/// The workloads that are run: all, or those that the environment asks for.
pub(crate) fn seeds() -> Range<u64> {
    match variable("DOVETAIL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("DOVETAIL_SEEDS").unwrap_or(12),
    }
}

/// All blocks of a drive that were erased.
pub(crate) fn erased(drive: &Drive) -> u64 {
    drive.erase_counts().map(u64::from).sum()
}

/// A number in the environment.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}
