//! Power cuts of a recorded device: which states it may be in, and one of them for each cut.
//!
//! Cut `n` happens when the first `n` events of the record are done. What came before the last
//! flush is durable, and so is every FUA write. Of the rest any subset of blocks may have reached
//! the medium: blocks of one command are not atomic together, and their order counts only where
//! they meet in one place: the newest of those that survive is what the block holds. A remap is
//! durable as a whole, with what it moves.

use dovetail_block::{Content, HeldRemaps, Lba, MemoryDevice, RemapPair};
use dovetail_time::Rng;

use super::recording::{Event, Recording};

/// Choice of the blocks that survive a power cut, among those written or discarded since the last
/// flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivors {
    /// None of them.
    None,
    /// All of them.
    All,
    /// The first ones, up to a random one.
    Prefix,
    /// Each with probability 1/2.
    Random,
    /// All but a random one.
    AllButOne,
    /// Those of the newest command.
    OnlyNewest,
}

impl Survivors {
    /// All choices.
    pub const ALL: [Self; 6] =
        [Self::None, Self::All, Self::Prefix, Self::Random, Self::AllButOne, Self::OnlyNewest];

    fn draw(rng: &mut Rng) -> Self {
        Self::ALL[rng.below(Self::ALL.len() as u64) as usize]
    }
}

/// The state of a device after a power cut.
#[derive(Clone, Debug)]
pub struct Crash {
    /// Number of events before the cut.
    pub cut: usize,
    /// Choice of the unflushed blocks that were left.
    pub survivors: Survivors,
    /// Number of unflushed blocks.
    pub unflushed: usize,
    /// The device.
    pub device: MemoryDevice,
}

impl Recording {
    /// Number of cuts: one before the first event, one after each.
    pub fn cuts(&self) -> usize {
        self.position() + 1
    }

    /// The state after cut `cut` (the last one when there are fewer) with the survivors of choice;
    /// where the choice is random, `rng` makes it.
    pub fn image_at(&self, cut: usize, survivors: Survivors, rng: &mut Rng) -> MemoryDevice {
        let mut medium = Medium::new(self.base().clone());
        self.events().iter().take(cut).for_each(|event| medium.apply(event));
        medium.after_cut(survivors, rng)
    }

    /// One state for each cut, in order, all chosen by `seed`. What is recorded later is not seen.
    pub fn crashes(&self, seed: u64) -> Crashes {
        let medium = Medium::new(self.base().clone());
        Crashes { events: self.events(), medium, cut: 0, rng: Rng::new(seed) }
    }
}

/// See [`Recording::crashes`]. Skipping ahead with [`Iterator::nth`] and its kin is cheap.
#[derive(Clone, Debug)]
pub struct Crashes {
    events: Vec<Event>,
    medium: Medium,
    cut: usize,
    rng: Rng,
}

impl Crashes {
    fn advance(&mut self) {
        if let Some(event) = self.events.get(self.cut) {
            self.medium.apply(event);
        }
        self.cut += 1;
    }

    fn crash(&self) -> Crash {
        let mut rng = self.rng.fork(self.cut as u64);
        let survivors = Survivors::draw(&mut rng);
        let device = self.medium.after_cut(survivors, &mut rng);
        Crash { cut: self.cut, survivors, unflushed: self.medium.unflushed.len(), device }
    }
}

impl Iterator for Crashes {
    type Item = Crash;

    fn next(&mut self) -> Option<Crash> {
        self.nth(0)
    }

    fn nth(&mut self, n: usize) -> Option<Crash> {
        for _ in 0..n.min(self.len()) {
            self.advance();
        }
        if self.len() == 0 {
            return None;
        }
        let crash = self.crash();
        self.advance();
        Some(crash)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.events.len() + 1).saturating_sub(self.cut);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Crashes {}

/// A block that is written and not yet durable.
#[derive(Clone, Debug)]
struct Unflushed {
    command: usize,
    lba: Lba,
    content: Content,
}

/// State of a device: what is durable, and what is not yet.
#[derive(Clone, Debug)]
struct Medium {
    durable: MemoryDevice,
    newest: MemoryDevice,
    unflushed: Vec<Unflushed>,
    held: HeldRemaps,
    commands: usize,
}

impl Medium {
    fn new(base: MemoryDevice) -> Self {
        let (newest, held) = (base.clone(), HeldRemaps::default());
        Self { durable: base, newest, unflushed: Vec::new(), held, commands: 0 }
    }

    fn apply(&mut self, event: &Event) {
        self.commands += 1;
        match event {
            Event::Write { range, contents, fua } => {
                for (lba, content) in range.iter().zip(contents) {
                    self.put(lba, content.clone(), *fua);
                }
                if *fua {
                    self.unflushed.retain(|block| !(range.start..range.end()).contains(&block.lba));
                }
            }
            Event::Discard { ranges } => {
                for lba in ranges
                    .iter()
                    .flat_map(|range| self.newest.discardable(*range))
                    .collect::<Vec<_>>()
                {
                    self.put(lba, Content::Empty, false);
                }
            }
            Event::Flush => {
                self.durable = self.newest.clone();
                self.unflushed.clear();
            }
            Event::Remap { pairs, when } => {
                self.held.take(pairs, *when).into_iter().for_each(|pair| self.remap(pair));
            }
        }
    }

    fn remap(&mut self, pair: RemapPair) {
        let content = self.newest.get(pair.from).clone();
        self.put(pair.to, content, true);
        self.put(pair.from, Content::Empty, true);
        self.unflushed.retain(|block| block.lba != pair.to && block.lba != pair.from);
    }

    fn put(&mut self, lba: Lba, content: Content, durable: bool) {
        self.newest.set(lba, content.clone());
        if durable {
            self.durable.set(lba, content);
        } else {
            self.unflushed.push(Unflushed { command: self.commands, lba, content });
        }
    }

    fn after_cut(&self, survivors: Survivors, rng: &mut Rng) -> MemoryDevice {
        let mut device = self.durable.clone();
        for (block, survives) in self.unflushed.iter().zip(self.choose(survivors, rng)) {
            if survives {
                device.set(block.lba, block.content.clone());
            }
        }
        device
    }

    /// Marks the unflushed blocks that survive.
    fn choose(&self, survivors: Survivors, rng: &mut Rng) -> Vec<bool> {
        let count = self.unflushed.len();
        let drawn = rng.below(count as u64 + 1) as usize;
        let newest = self.unflushed.last().map(|block| block.command);
        let survives = |i: usize| match survivors {
            Survivors::None => false,
            Survivors::All => true,
            Survivors::Prefix => i < drawn,
            Survivors::Random => rng.chance(0.5),
            Survivors::AllButOne => i != drawn.min(count - 1),
            Survivors::OnlyNewest => Some(self.unflushed[i].command) == newest,
        };
        (0..count).map(survives).collect()
    }
}

#[cfg(test)]
mod tests {
    use dovetail_time::SimTime;

    use super::super::recording::RecordingDevice;
    use super::super::reference::ReferenceDevice;
    use super::*;
    use dovetail_block::{
        BatchId, BlockDevice, BlockRange, Command, Data, Hints, Pattern, RemapWhen, SectorRange,
    };

    const BLOCKS: u64 = 24;

    fn pattern(n: u64) -> Content {
        Content::Pattern(Pattern::new(n))
    }

    fn write(device: &mut impl BlockDevice, range: BlockRange, first: u64, fua: bool) {
        let data = Data::Patterns(Pattern::new(first));
        device
            .submit(SimTime::ZERO, Command::Write { range, data, hints: Hints::default(), fua })
            .unwrap();
    }

    fn flush(device: &mut impl BlockDevice) {
        device.submit(SimTime::ZERO, Command::Flush).unwrap();
    }

    /// A random command to the device and to the model.
    fn step(
        rng: &mut Rng,
        number: u64,
        device: &mut impl BlockDevice,
        model: &mut ReferenceDevice,
    ) {
        let start = rng.below(BLOCKS);
        let range = BlockRange::new(Lba(start), 1 + rng.below((BLOCKS - start).min(5)));
        match rng.below(11) {
            10 if range.blocks > 1 => {
                let pair = RemapPair { to: range.start, from: Lba(range.end().0 - 1) };
                let remap = Command::Remap { pairs: &[pair], when: RemapWhen::Now };
                device.submit(SimTime::ZERO, remap).unwrap();
                model.remap(&[pair]);
            }
            0 => {
                flush(device);
                model.flush();
            }
            1 | 2 => {
                let range = SectorRange::new(rng.below(BLOCKS * 8), rng.below(6 * 8));
                device.submit(SimTime::ZERO, Command::Discard { ranges: &[range] }).unwrap();
                model.discard(range);
            }
            n => {
                write(device, range, number * 10, n == 3);
                for (i, lba) in range.iter().enumerate() {
                    model.write(lba, pattern(number * 10 + i as u64), n == 3);
                }
            }
        }
    }

    /// The models as of each cut, and the record.
    fn random_run(seed: u64) -> (Recording, Vec<ReferenceDevice>) {
        let mut rng = Rng::new(seed);
        let mut device = RecordingDevice::new(MemoryDevice::new(BLOCKS));
        let mut models = vec![ReferenceDevice::new()];
        for number in 1..80 {
            let mut model = models[models.len() - 1].clone();
            step(&mut rng, number, &mut device, &mut model);
            models.push(model);
        }
        (device.recording(), models)
    }

    #[test]
    fn every_state_after_a_cut_is_allowed_by_the_reference_model() {
        for seed in 0..60 {
            let (recording, models) = random_run(seed);
            assert_eq!(recording.cuts(), models.len());
            for (cut, model) in models.iter().enumerate() {
                for survivors in Survivors::ALL {
                    let image = recording.image_at(cut, survivors, &mut Rng::new(seed));
                    for lba in (0..BLOCKS).map(Lba) {
                        let allowed = model.check_allowed(lba, image.get(lba));
                        assert_eq!(allowed, Ok(()), "seed {seed}, cut {cut}, {survivors:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn all_survivors_give_the_newest_state() {
        let (recording, models) = random_run(7);
        for (cut, model) in models.iter().enumerate() {
            let image = recording.image_at(cut, Survivors::All, &mut Rng::new(0));
            let found: Vec<_> = (0..BLOCKS).map(|lba| image.get(Lba(lba)).clone()).collect();
            assert_eq!(
                model.check_read(BlockRange::new(Lba(0), BLOCKS), &found),
                Ok(()),
                "cut {cut}"
            );
        }
    }

    /// Two blocks written twice each, then a flush: all nine states occur before it, one after it.
    #[test]
    fn every_allowed_state_occurs() {
        let mut device = RecordingDevice::new(MemoryDevice::new(2));
        write(&mut device, BlockRange::new(Lba(0), 2), 10, false);
        write(&mut device, BlockRange::new(Lba(0), 2), 20, false);
        flush(&mut device);
        let recording = device.recording();
        let mut rng = Rng::new(1);
        let mut states = |cut| {
            let images = (0..200).map(|_| recording.image_at(cut, Survivors::Random, &mut rng));
            let mut states: Vec<_> = images
                .map(|image| format!("{:?} {:?}", image.get(Lba(0)), image.get(Lba(1))))
                .collect();
            states.sort();
            states.dedup();
            states.len()
        };
        assert_eq!((states(0), states(1), states(2), states(3)), (1, 4, 9, 1));
    }

    #[test]
    fn the_walk_over_the_cuts_gives_what_single_cuts_give() {
        let (recording, _) = random_run(3);
        let walk: Vec<Crash> = recording.crashes(5).collect();
        assert_eq!(walk.len(), recording.cuts());
        for (cut, crash) in walk.iter().enumerate() {
            assert_eq!(crash.cut, cut);
            let alone = recording.crashes(5).nth(cut).unwrap();
            assert_eq!(alone.survivors, crash.survivors);
            let same = crash.device.used().eq(alone.device.used());
            assert!(same, "cut {cut}");
        }
        assert!(recording.crashes(5).nth(walk.len()).is_none());
        let mut kinds: Vec<_> = walk.iter().map(|crash| format!("{:?}", crash.survivors)).collect();
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds.len(), Survivors::ALL.len());
    }

    #[test]
    fn a_batch_of_remaps_happens_as_one() {
        let mut device = RecordingDevice::new(MemoryDevice::new(4));
        write(&mut device, BlockRange::new(Lba(2), 2), 10, false);
        let pair = |to, from| RemapPair { to: Lba(to), from: Lba(from) };
        for (pair, when) in [
            (pair(0, 2), RemapWhen::Held(BatchId(1))),
            (pair(1, 3), RemapWhen::WithHeld(BatchId(1))),
        ] {
            device.submit(SimTime::ZERO, Command::Remap { pairs: &[pair], when }).unwrap();
        }
        let recording = device.recording();
        for survivors in Survivors::ALL {
            let held = recording.image_at(2, survivors, &mut Rng::new(1));
            assert_eq!((held.get(Lba(0)), held.get(Lba(1))), (&Content::Empty, &Content::Empty));
            let done = recording.image_at(3, survivors, &mut Rng::new(1));
            let used: Vec<_> = done.used().map(|(lba, content)| (lba.0, content.clone())).collect();
            assert_eq!(used, [(0, pattern(10)), (1, pattern(11))], "{survivors:?}");
        }
    }

    #[test]
    fn a_fua_write_is_not_undone_by_older_ones() {
        let mut device = RecordingDevice::new(MemoryDevice::new(1));
        let block = BlockRange::new(Lba(0), 1);
        write(&mut device, block, 1, false);
        write(&mut device, block, 2, true);
        for survivors in Survivors::ALL {
            let image = device.recording().image_at(2, survivors, &mut Rng::new(1));
            assert_eq!(*image.get(Lba(0)), pattern(2), "{survivors:?}");
        }
    }
}
