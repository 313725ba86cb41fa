//! Blocks reached by device address, against a model: under cleaning and wear levelling, batches
//! kept and taken back, and power cuts anywhere.
#![allow(clippy::unwrap_used, reason = "a failed call is a failed test")]

use std::collections::BTreeMap;

use dovetail_block::{
    AREA_BLOCKS, AREAS, Answer, BlockDevice, BlockRange, Command, Content, Data, DeviceError,
    Devirtualize, Hints, Inode, Lba, OpenRenames, Pattern, RemapLimits, Rename, RenameId,
    SectorRange,
};
use dovetail_ftl::{ConfigError, Drive, DriveConfig, RemapConfig, RemapStore, mapping};
use dovetail_nand::{FaultPlan, Geometry, PowerCut, Torn};
use dovetail_time::{Rng, SimSpan, SimTime};

const BLOCKS: u64 = 600;

fn config(buffer_pages: u32) -> DriveConfig {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: 30,
        pages_per_block: 8,
        page_bytes: 4096,
    };
    DriveConfig {
        scheme: mapping::scheme("hash").unwrap(),
        idle_after: SimSpan::from_ms(2),
        buffer_pages,
        wear_spread: 4,
        map_access: SimSpan::from_ns(50),
        command: SimSpan::from_ns(100),
        remap: Some(RemapConfig { limits: RemapLimits::of(400, 0), store: RemapStore::Log }),
        devirtualize: Some(400),
        ..DriveConfig::plain(geometry, BLOCKS)
    }
}

/// Content that each address may hold: the newest last; more than one since the last flush. 0 is
/// nothing.
type Model = BTreeMap<Lba, Vec<u64>>;

struct Host {
    drive: Drive,
    now: SimTime,
    model: Model,
    open: Option<OpenRenames>,
    next: u64,
    batch: u64,
}

impl Host {
    fn new(config: DriveConfig) -> Self {
        let mut drive = Drive::new(config).unwrap();
        drive.remember_operations();
        Self { drive, now: SimTime::ZERO, model: Model::new(), open: None, next: 1, batch: 0 }
    }

    fn submit(&mut self, command: Command<'_>) -> Result<Answer, DeviceError> {
        let completion = self.drive.submit(self.now, command)?;
        self.now = completion.done;
        Ok(completion.answer)
    }

    fn ask(&mut self, asked: Devirtualize<'_>) -> Result<Answer, DeviceError> {
        self.submit(Command::Devirtualize(asked))
    }

    /// The address under which the model keeps what the host may reach by two.
    fn name(&self, lba: Lba) -> Lba {
        let renames = self.open.iter().flat_map(|open| &open.renames);
        let found = renames.filter(|rename| rename.from == lba).find_map(|rename| rename.to);
        found.unwrap_or(lba)
    }

    fn holds(&self, lba: Lba) -> u64 {
        self.model.get(&self.name(lba)).and_then(|may| may.last()).copied().unwrap_or(0)
    }

    fn set(&mut self, lba: Lba, value: u64) {
        let name = self.name(lba);
        self.model.entry(name).or_insert_with(|| vec![0]).push(value);
    }

    fn write(&mut self, lba: Lba) -> Result<(), DeviceError> {
        let value = self.next;
        self.next += 1;
        self.set(lba, value);
        let hints = Hints { inode: Inode(1 + (value % 7) as u32), ..Hints::default() };
        let (range, data) = (BlockRange::new(lba, 1), Data::Patterns(Pattern::new(value)));
        self.submit(Command::Write { range, data, hints, fua: false }).map(drop)
    }

    fn discard(&mut self, lba: Lba) -> Result<(), DeviceError> {
        self.set(lba, 0);
        self.submit(Command::Discard { ranges: &[SectorRange::from(BlockRange::new(lba, 1))] })
            .map(drop)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.submit(Command::Flush)?;
        self.model.values_mut().for_each(|may| drop(may.drain(..may.len() - 1)));
        self.model.retain(|_, may| may[0] != 0);
        Ok(())
    }

    fn begin(&mut self, addresses: &[Lba]) -> Result<(), DeviceError> {
        self.batch += 1;
        let id = RenameId(self.batch);
        let renames: Vec<Rename> =
            addresses.iter().map(|&from| Rename { from, to: None }).collect();
        let mut renames = self.ask(Devirtualize::Begin { id, renames: &renames })?.into_renames();
        renames.retain(|rename| rename.to.is_some());
        if !renames.is_empty() {
            self.opened(OpenRenames { id, renames });
        }
        Ok(())
    }

    /// The model follows a batch that has begun: what was renamed is durable, the new name held
    /// nothing.
    fn opened(&mut self, open: OpenRenames) {
        for rename in &open.renames {
            let moved =
                self.model.remove(&rename.from).and_then(|may| may.last().copied()).unwrap_or(0);
            self.model.insert(rename.to.unwrap(), vec![moved]);
        }
        self.open = Some(open);
    }

    fn closed(&mut self, keep: bool) {
        for rename in self.open.take().into_iter().flat_map(|open| open.renames).filter(|_| !keep) {
            if let Some(may) = self.model.remove(&rename.to.unwrap()) {
                self.model.insert(rename.from, may);
            }
        }
    }

    fn end(&mut self, keep: bool) -> Result<(), DeviceError> {
        let Some(id) = self.open.as_ref().map(|open| open.id) else { return Ok(()) };
        self.ask(Devirtualize::End { id, keep })?;
        self.closed(keep);
        Ok(())
    }

    fn read(&mut self, lba: Lba) -> Result<u64, DeviceError> {
        let mut into = [Content::Empty];
        self.submit(Command::Read { range: BlockRange::new(lba, 1), into: Some(&mut into) })?;
        Ok(match into[0] {
            Content::Empty => 0,
            Content::Pattern(pattern) => pattern.number(),
            _ => panic!("neither written"),
        })
    }

    /// Everything reads as the model says, by each of its names.
    fn compare(&mut self, what: &str) {
        self.drive.check().unwrap();
        let first = self.drive.info().capabilities.devirtualize.unwrap().first;
        for lba in self.model.keys().copied().collect::<Vec<_>>() {
            let expected = self.holds(lba);
            let found = match self.read(lba) {
                Err(DeviceError::NoBlock(_)) if lba >= first => 0,
                other => other.unwrap(),
            };
            assert_eq!(found, expected, "{what}: block {lba}");
        }
        for old in self.open.clone().map(|open| open.renames).unwrap_or_default() {
            let expected = self.holds(old.from);
            assert_eq!(self.read(old.from).or_else(gone).unwrap(), expected, "{what}: {old:?}");
        }
    }

    fn step(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        let held: Vec<Lba> =
            self.model.keys().copied().filter(|&lba| self.holds(lba) != 0).collect();
        let any = |rng: &mut Rng| held[rng.below(held.len() as u64) as usize];
        match rng.below(100) {
            0..55 => {
                let room = held.len() < BLOCKS as usize * 9 / 10;
                let lba = if room && rng.chance(0.5) { Lba(rng.below(BLOCKS)) } else { any(rng) };
                // a block of the open batch that was given up has no name to write it by until the
                // batch has ended
                if self.name(lba) != lba && self.holds(lba) == 0 { Ok(()) } else { self.write(lba) }
            }
            55..62 => self.discard(any(rng)),
            62..70 => self.flush(),
            70..85 if self.open.is_none() => {
                let first = rng.below(held.len() as u64) as usize;
                let some: Vec<Lba> =
                    held.into_iter().skip(first).take(1 + rng.below(390) as usize).collect();
                self.begin(&some)
            }
            85..95 => self.end(rng.chance(0.7)),
            _ => {
                self.now += SimSpan::from_ms(rng.below(30));
                let lba = any(rng);
                let (found, expected) = (self.read(lba)?, self.holds(lba));
                assert_eq!(found, expected, "block {lba}");
                Ok(())
            }
        }
    }

    /// Recovers, and takes what a cut may leave as what is there now.
    fn recover(mut self, mut drive: dovetail_ftl::UnrecoveredDrive, what: &str) -> Self {
        drive.set_faults(FaultPlan::default());
        self.drive = drive.recover().map_err(|failed| failed.1).unwrap().0;
        self.drive.remember_operations();
        self.now = SimTime::ZERO;
        self.drive.check().unwrap();
        self.adopt_batch();
        let first = self.drive.info().capabilities.devirtualize.unwrap().first;
        for lba in self.model.keys().copied().collect::<Vec<_>>() {
            let may = self.model[&lba].clone();
            let found = match self.read(lba) {
                Err(DeviceError::NoBlock(_)) if lba >= first => 0,
                other => other.unwrap(),
            };
            assert!(may.contains(&found), "{what}: block {lba} holds {found}, may hold {may:?}");
            self.model.insert(lba, vec![found]);
        }
        self.model.retain(|_, may| may[0] != 0);
        self.nothing_else(what);
        self
    }

    /// A batch was cut while it began or ended: the drive says which.
    fn adopt_batch(&mut self) {
        let found = self.ask(Devirtualize::Open).unwrap().into_open_batch();
        match (&self.open, found) {
            (None, Some(found)) => self.opened(found),
            (Some(open), Some(found)) => {
                let sorted = |open: &OpenRenames| {
                    let mut all = open.renames.clone();
                    all.sort_by_key(|rename| rename.from);
                    all
                };
                assert_eq!((open.id, sorted(open)), (found.id, sorted(&found)));
            }
            (Some(_), None) => {
                // ended, one way or the other
                let renames = self.open.as_ref().unwrap().renames.clone();
                let kept =
                    renames.iter().all(|rename| self.read(rename.from).or_else(gone).unwrap() == 0);
                self.closed(kept);
            }
            (None, None) => {}
        }
    }

    /// No device address leads to a block that the model has not: none was leaked.
    fn nothing_else(&mut self, what: &str) {
        let space = self.drive.info().capabilities.devirtualize.unwrap();
        let range = BlockRange::new(space.first, space.blocks);
        for lba in self.ask(Devirtualize::Held { range }).unwrap().into_addresses() {
            assert!(
                self.model.contains_key(&lba),
                "{what}: {lba} leads to a block that nobody has"
            );
        }
    }
}

fn gone(error: DeviceError) -> Result<u64, DeviceError> {
    if matches!(error, DeviceError::NoBlock(_)) { Ok(0) } else { Err(error) }
}

fn fill(host: &mut Host, blocks: u64) {
    (0..blocks).for_each(|lba| host.write(Lba(lba)).unwrap());
    host.flush().unwrap();
}

#[test]
fn a_devirtualised_drive_forgets_its_map_and_moves_bring_entries_back() {
    let mut host = Host::new(config(0));
    let empty = host.drive.mapping_memory_bytes();
    fill(&mut host, 400);
    let full = host.drive.mapping_memory_bytes();
    host.begin(&(0..400).map(Lba).collect::<Vec<_>>()).unwrap();
    host.compare("open");
    host.end(true).unwrap();
    assert_eq!(host.drive.mapping_memory_bytes(), empty, "{full} before");
    host.compare("ended");
    assert_eq!(host.ask(Devirtualize::Moved).unwrap().into_inodes(), []);
    let mut rng = Rng::new(1);
    (0..3000).for_each(|_| host.write(Lba(400 + rng.below(150))).unwrap());
    assert!(host.drive.counters().gc_runs > 20);
    host.compare("cleaned");
    let moved = host.ask(Devirtualize::Moved).unwrap().into_inodes();
    assert!(!moved.is_empty() && moved.iter().all(|inode| (1..=7).contains(&inode.0)));
    let held: Vec<Lba> = host.model.keys().copied().collect();
    let before = host.drive.mapping_memory_bytes();
    for some in held.chunks(400) {
        host.begin(some).unwrap();
        host.end(true).unwrap();
    }
    assert!(host.drive.mapping_memory_bytes() < before / 4);
    host.compare("again");
}

#[test]
fn what_is_no_blocks_address_is_refused() {
    let mut host = Host::new(config(0));
    fill(&mut host, 10);
    let space = host.drive.info().capabilities.devirtualize.unwrap();
    assert_eq!((space.first, space.blocks), (Lba(BLOCKS), 960));
    let name = Lba(BLOCKS + 3);
    assert_eq!(host.read(name), Err(DeviceError::NoBlock(name)));
    assert_eq!(host.write(name), Err(DeviceError::NoBlock(name)));
    host.model.remove(&name);
    let beyond = Lba(BLOCKS + 960);
    assert!(matches!(host.read(beyond), Err(DeviceError::OutOfRange { .. })));
    let across = Command::Read { range: BlockRange::new(Lba(BLOCKS - 1), 2), into: None };
    assert!(matches!(host.submit(across), Err(DeviceError::OutOfRange { .. })));
    host.begin(&[Lba(1)]).unwrap();
    assert_eq!(host.begin(&[Lba(2)]), Err(DeviceError::RenamesOpen));
    let Some(OpenRenames { renames, .. }) = host.open.clone() else {
        panic!("nothing was renamed")
    };
    host.discard(renames[0].to.unwrap()).unwrap();
    assert!(matches!(host.write(Lba(1)), Err(DeviceError::NoBlock(_))), "it was given up");
    host.model.remove(&host.name(Lba(1)));
    host.end(true).unwrap();
    host.write(Lba(1)).unwrap();
    let dense = DriveConfig { scheme: mapping::scheme("page").unwrap(), ..config(0) };
    assert_eq!(Drive::new(dense).err(), Some(ConfigError::Devirtualize));
    let interval = mapping::scheme("interval").unwrap();
    let wide = DriveConfig { scheme: interval, addresses: Some(AREAS * AREA_BLOCKS), ..config(0) };
    assert_eq!(Drive::new(wide).err(), Some(ConfigError::BeyondMap("interval")));
}

/// A command counts once, however many old names are in its range.
#[test]
fn commands_on_old_names_count_once() {
    let mut host = Host::new(config(0));
    fill(&mut host, 10);
    host.begin(&[Lba(1), Lba(2)]).unwrap();
    let before = host.drive.counters();
    let command = |start, blocks| {
        let (range, data) = (BlockRange::new(Lba(start), blocks), Data::Patterns(Pattern::new(99)));
        Command::Write { range, data, hints: Hints::default(), fua: false }
    };
    host.submit(command(0, 4)).unwrap();
    host.submit(Command::Read { range: BlockRange::new(Lba(0), 4), into: None }).unwrap();
    let counted = host.drive.counters() - before;
    assert_eq!((counted.writes, counted.written_blocks), (1, 4));
    assert_eq!((counted.reads, counted.read_blocks), (1, 4));
}

#[test]
fn cuts_between_commands_and_within_them() {
    let rounds: u64 = std::env::var("DOVETAIL_FSDV_CUTS").map_or(300, |text| text.parse().unwrap());
    for buffer in [0, 8] {
        let mut rng = Rng::new(77 + u64::from(buffer));
        let mut host = Host::new(config(buffer));
        fill(&mut host, 300);
        for round in 0..rounds {
            let what = format!("buffer {buffer}, round {round}");
            let cut = rng.chance(0.6).then(|| host.drive.flash_operations() + 1 + rng.below(200));
            if let Some(operation) = cut {
                let torn = [Torn::Untouched, Torn::Garbage, Torn::Finished][rng.below(3) as usize];
                let power_cut = Some(PowerCut { at_operation: operation, torn });
                host.drive.set_faults(FaultPlan { power_cut, ..FaultPlan::default() });
            }
            let mut result = Ok(());
            for _ in 0..1 + rng.below(120) {
                result = host.step(&mut rng);
                if result.is_err() {
                    break;
                }
            }
            assert!(matches!(result, Ok(()) | Err(DeviceError::PowerLost)), "{what}: {result:?}");
            let at = host.now;
            let replaced = Drive::new(config(buffer)).unwrap();
            let drive = std::mem::replace(&mut host.drive, replaced);
            let off = match result {
                Err(_) => drive.into_unrecovered(),
                Ok(()) => drive.into_unrecovered_at(at),
            };
            host = host.recover(off, &what);
        }
        assert!(host.batch > rounds / 4);
    }
}
