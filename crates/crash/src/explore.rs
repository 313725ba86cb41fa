//! Many runs on many stacks: which are made, which of their moments are cut, and what becomes of a
//! violation.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dovetail_lab::bench::Stack;
use dovetail_lab::run_all;
use dovetail_testkit::crash::Clock;
use dovetail_time::Rng;

use crate::judge::Judge;
use crate::language::{Action, show};
use crate::player::{Player, Stop};
use crate::results::{CrashResults, SCHEMA, SCHEMA_VERSION, Totals};
use crate::rig::Rig;
use crate::script::{Line, List, Random, Script, Threads};
use crate::shrink::shortest;
use crate::wire::{Choice, Cut};
use crate::{CrashError, Violation};

/// The moments of a job are dealt out to so many runs of it, so that they can be judged beside each
/// other.
const SHARES: u64 = 8;
/// Files of a personality for each of its threads at least: at the scale of so small a drive it would
/// have fewer files than threads that want one.
const FILES_PER_THREAD: u64 = 8;
/// Violations of a stack after which it is not explored further.
const ENOUGH: usize = 5;

/// A workload.
#[derive(Clone, Debug)]
pub enum Source {
    /// Lists of operations, each a run of its own.
    Lists {
        /// Their common name.
        name: String,
        /// The lists.
        lists: Vec<Vec<Action>>,
        /// Each with every clock; otherwise with one of them in turn.
        every_clock: bool,
    },
    /// Random operations.
    Random {
        /// The seeds, each a run of its own.
        seeds: Range<u64>,
        /// Operations of a run.
        steps: u64,
    },
    /// A workload of `bench`; its threads make their calls in turn.
    Job {
        /// The workload.
        job: Box<dovetail_lab::bench::Source>,
        /// Calls that its threads make together at most.
        calls: u64,
    },
}

impl Source {
    fn name(&self) -> &str {
        match self {
            Self::Lists { name, .. } => name,
            Self::Random { .. } => "random",
            Self::Job { job, .. } => job.name(),
        }
    }

    /// Its runs: number, clock, and which share of the moments.
    fn runs(&self) -> Vec<(u64, Clock, Option<u64>)> {
        let in_turn = Clock::of;
        match self {
            Self::Lists { lists, every_clock: true, .. } => {
                let numbers = 0..lists.len() as u64;
                numbers.flat_map(|number| Clock::ALL.map(|clock| (number, clock, None))).collect()
            }
            Self::Lists { lists, .. } => {
                (0..lists.len() as u64).map(|number| (number, in_turn(number), None)).collect()
            }
            Self::Random { seeds, .. } => {
                seeds.clone().map(|number| (number, in_turn(number), None)).collect()
            }
            Self::Job { .. } => {
                (0..SHARES).map(|share| (0, Clock::StandsStill, Some(share))).collect()
            }
        }
    }
}

/// The choice of moments that are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// Every moment.
    All,
    /// So many moments of each run, and each return of an operation that promised something.
    Sampled(u64),
}

/// The progress of an exploration.
#[derive(Debug, Default)]
pub struct Progress {
    /// Runs that have ended.
    pub runs: AtomicU64,
    /// Cuts that were judged.
    pub cuts: AtomicU64,
}

/// An exploration: a workload on stacks.
#[derive(Debug)]
pub struct Exploration<'a> {
    /// The workload.
    pub source: &'a Source,
    /// The stacks.
    pub stacks: &'a [Stack],
    /// The moments that are cut.
    pub cuts: Cuts,
    /// The size of the drives.
    pub drive_bytes: u64,
    /// Bytes of each stack's page cache; `None`: the stack's own by the size of its drive.
    pub memory_bytes: Option<u64>,
    /// Seeds what is chosen, and the drives.
    pub seed: u64,
    /// Index (from 0) and number of parts: the runs whose index modulo the parts is that one;
    /// (0, 1) for all.
    pub part: (u64, u64),
    /// The file systems' own checkers are asked about each volume, too.
    pub with_referee: bool,
    /// Set from outside to end early; what was found until then is kept.
    pub stop: &'a AtomicBool,
}

/// One run on one stack.
struct Item {
    stack: usize,
    number: u64,
    clock: Clock,
    share: Option<u64>,
}

/// The rigs, to be copied by all threads.
struct Locked(Vec<Mutex<Rig>>);

impl Locked {
    fn copy(&self, stack: usize) -> Rig {
        lock(&self.0[stack]).copy()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The outcome of a run.
struct Outcome {
    totals: Totals,
    violation: Option<Violation>,
}

/// The outcomes of a stack's runs so far: one run's distributions alone take a megabyte.
#[derive(Default)]
struct Sum {
    totals: Totals,
    /// By the index of the run.
    violations: BTreeMap<usize, Violation>,
}

impl Sum {
    fn add(&mut self, index: usize, outcome: Outcome) {
        self.totals.merge(&outcome.totals);
        self.violations.extend(outcome.violation.map(|violation| (index, violation)));
    }
}

/// A cut that was played again.
#[derive(Debug)]
pub struct Replayed {
    /// The operations up to the cut, each with the virtual time at which it had returned, as text.
    pub timeline: String,
    /// The violation; `None` if the promises explain the state found.
    pub violation: Option<String>,
}

impl<'a> Exploration<'a> {
    /// Every moment of all runs of `source` on the stacks, on drives of that size, with seed 1; the
    /// fields change that.
    pub fn new(source: &'a Source, stacks: &'a [Stack], drive_bytes: u64) -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Self {
            source,
            stacks,
            cuts: Cuts::All,
            drive_bytes,
            memory_bytes: None,
            seed: 1,
            part: (0, 1),
            with_referee: false,
            stop: &NEVER,
        }
    }
}

impl Exploration<'_> {
    fn rigs(&self) -> Result<Vec<Rig>, CrashError> {
        self.stacks.iter().map(|stack| self.rig(stack)).collect()
    }

    fn rig(&self, stack: &Stack) -> Result<Rig, CrashError> {
        Rig::new(stack, self.drive_bytes / 4096, self.memory_bytes, self.seed)
    }

    /// The runs of the part that is explored.
    fn runs(&self) -> Vec<(u64, Clock, Option<u64>)> {
        let (part, parts) = self.part;
        let mut runs: Vec<_> = (0..).zip(self.source.runs()).collect();
        runs.retain(|(index, _)| index % parts.max(1) == part);
        runs.into_iter().map(|(_, run)| run).collect()
    }

    fn items(&self) -> Vec<Item> {
        let runs = self.runs();
        let stacks = 0..self.stacks.len();
        let of_stack = |stack| {
            runs.iter().map(move |&(number, clock, share)| Item { stack, number, clock, share })
        };
        stacks.flat_map(of_stack).collect()
    }

    /// The number of runs.
    pub fn count(&self) -> u64 {
        (self.runs().len() * self.stacks.len()) as u64
    }

    /// Explores, with as many runs at a time as there are `threads`. The results do not depend on
    /// `threads`, unless there are violations: then a stack is not explored to its end.
    ///
    /// # Errors
    /// [`CrashError`]: a stack or the workload cannot be played.
    pub fn run(&self, threads: usize, progress: &Progress) -> Result<CrashResults, CrashError> {
        let rigs = Locked(self.rigs()?.into_iter().map(Mutex::new).collect());
        let items = self.items();
        let sums: Vec<Mutex<Sum>> = self.stacks.iter().map(|_| Mutex::default()).collect();
        let error: Mutex<Option<CrashError>> = Mutex::new(None);
        run_all(&items, threads, |index, item| {
            let sum = &sums[item.stack];
            let enough = lock(sum).violations.len() >= ENOUGH;
            if enough || lock(&error).is_some() || self.stop.load(Ordering::Relaxed) {
                return;
            }
            match self.explore(&rigs.copy(item.stack), item, progress) {
                Ok(outcome) => lock(sum).add(index, outcome),
                Err(reason) => drop(lock(&error).get_or_insert(reason)),
            }
            progress.runs.fetch_add(1, Ordering::Relaxed);
        });
        if let Some(error) = error.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        Ok(self.results(sums))
    }

    fn results(&self, sums: Vec<Mutex<Sum>>) -> CrashResults {
        let sums =
            sums.into_iter().map(|sum| sum.into_inner().unwrap_or_else(PoisonError::into_inner));
        let stacks = self.stacks.iter().zip(sums);
        CrashResults {
            schema: SCHEMA.into(),
            version: SCHEMA_VERSION,
            workload: self.source.name().into(),
            drive_bytes: self.drive_bytes,
            memory_bytes: self.memory_bytes,
            seed: self.seed,
            stacks: stacks
                .map(|(stack, sum)| {
                    sum.totals.result(&stack.name, sum.violations.into_values().collect())
                })
                .collect(),
        }
    }

    fn id(&self, item: &Item) -> String {
        format!(
            "{}/{}-{}-{}",
            self.stacks[item.stack].name,
            self.source.name(),
            item.number,
            item.clock
        )
    }

    fn script<'a>(
        &'a self,
        rig: &Rig,
        item: &Item,
    ) -> Result<(Vec<Line>, Box<dyn Script + 'a>), CrashError> {
        Ok(match self.source {
            Source::Lists { lists, .. } => {
                (Vec::new(), Box::new(List(lists[item.number as usize].iter())))
            }
            Source::Random { steps, .. } => {
                let devirtualizes = rig.stack.devirtualize.is_some();
                (Vec::new(), Box::new(Random::new(item.number, *steps, devirtualizes)))
            }
            Source::Job { job, calls } => {
                let workload = job.start_with_files(rig.scale(), self.seed, FILES_PER_THREAD)?;
                let mut threads = Threads::new(workload, *calls);
                (threads.prepare(), Box::new(threads))
            }
        })
    }

    /// Plays a run; `judge` sees each chosen cut.
    fn play(
        &self,
        rig: &Rig,
        item: &Item,
        choice: Choice,
        judge: &mut dyn FnMut(&Player, Cut) -> Result<(), Stop>,
    ) -> Result<(Player, Result<u64, Stop>), CrashError> {
        let (prepare, mut script) = self.script(rig, item)?;
        let mut player = Player::new(rig, item.clock)?;
        let ran = player.prepare(prepare).and_then(|()| player.run(script.as_mut(), choice, judge));
        Ok((player, ran))
    }

    /// The moments that are cut.
    fn choose(&self, rig: &Rig, item: &Item) -> Result<Choice, CrashError> {
        let share = |number: &u64| item.share.is_none_or(|share| number % SHARES == share);
        if self.cuts == Cuts::All && item.share.is_none() {
            return Ok(Choice::All);
        }
        let (player, ran) = self.play(rig, item, Choice::None, &mut |_, _| Ok(()))?;
        let Ok(moments) = ran else { return Ok(Choice::None) }; // what stops it is told when it is played again
        let mut chosen: BTreeSet<u64> = match self.cuts {
            Cuts::All => (0..moments).collect(),
            Cuts::Sampled(count) if count >= moments => (0..moments).collect(),
            Cuts::Sampled(count) => {
                let mut rng = Rng::new(self.seed).fork(item.number);
                let mut chosen = player.persistence_points();
                chosen.extend((0..count).map(|_| rng.below(moments)));
                chosen
            }
        };
        chosen.retain(share);
        Ok(Choice::These(chosen))
    }

    fn explore(&self, rig: &Rig, item: &Item, progress: &Progress) -> Result<Outcome, CrashError> {
        let choice = self.choose(rig, item)?;
        let judge = self.judge(rig, item)?;
        let mut totals = Totals::default();
        let mut on_cut = |player: &Player, cut: Cut| {
            let number = cut.number;
            let finding = judge.judge(player, cut).map_err(|what| {
                let id = format!("{}/{number}", self.id(item));
                Stop::Violation(Violation { id, ..Violation::without_cut(what) })
            })?;
            progress.cuts.fetch_add(1, Ordering::Relaxed);
            totals.add(&finding);
            if self.stop.load(Ordering::Relaxed) { Err(Stop::Early) } else { Ok(()) }
        };
        let (player, ran) = self.play(rig, item, choice, &mut on_cut)?;
        // the shares of a job are one run
        if item.share.unwrap_or(0) == 0 {
            totals.runs = 1;
            totals.operations = player.history.last() as u64;
            totals.promises = player.history.promises() as u64;
            totals.moments = player.moments();
        }
        let violation = match ran {
            Ok(_) | Err(Stop::Early) => None,
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Violation(violation)) => Some(self.explain(rig, item, &player, violation)?),
        };
        Ok(Outcome { totals, violation })
    }

    fn judge<'r>(&self, rig: &'r Rig, item: &Item) -> Result<Judge<'r>, CrashError> {
        let seed = Rng::new(self.seed).fork(item.number).next_u64();
        Ok(Judge {
            volume: rig.volume()?,
            seed,
            run: item.number,
            rig,
            with_referee: self.with_referee,
        })
    }

    /// A violation with the shortest sequence that shows it.
    fn explain(
        &self,
        rig: &Rig,
        item: &Item,
        player: &Player,
        found: Violation,
    ) -> Result<Violation, CrashError> {
        let id = if found.id.is_empty() { format!("{}/-", self.id(item)) } else { found.id };
        let judge = self.judge(rig, item)?;
        let lines = shortest(rig, item.clock, &judge, &player.done)?;
        let sequence = lines.iter().map(|line| show(&line.action) + "\n").collect();
        Ok(Violation { id, what: found.what, sequence })
    }

    /// Plays one cut again.
    ///
    /// # Errors
    /// [`CrashError::NoCut`]; what keeps the run from being played.
    pub fn replay(&self, id: &str) -> Result<Replayed, CrashError> {
        let missing = || CrashError::NoCut(id.into());
        let (run, cut) = id.rsplit_once('/').ok_or_else(missing)?;
        let item =
            self.items().into_iter().find(|item| self.id(item) == run).ok_or_else(missing)?;
        let rig = self.rig(&self.stacks[item.stack])?;
        let judge = self.judge(&rig, &item)?;
        let choice = match cut {
            "-" => Choice::None,
            number => Choice::These(BTreeSet::from([number.parse().map_err(|_| missing())?])),
        };
        let mut seen = None;
        let mut on_cut = |player: &Player, cut: Cut| {
            let at = cut.at;
            let violation = judge.judge(player, cut).err();
            seen = Some(Replayed { timeline: timeline(player, at), violation });
            Err(Stop::Early)
        };
        let (player, ran) = self.play(&rig, &item, choice, &mut on_cut)?;
        match ran {
            Err(Stop::Error(error)) => Err(error),
            Err(Stop::Violation(violation)) => {
                let end = dovetail_time::SimTime::from_ns(u64::MAX);
                Ok(Replayed { timeline: timeline(&player, end), violation: Some(violation.what) })
            }
            _ => seen.ok_or_else(missing),
        }
    }
}

/// The operations, each with the time at which it had returned.
fn timeline(player: &Player, cut: dovetail_time::SimTime) -> String {
    let mut text = String::new();
    let mut is_cut = false;
    for (number, operation) in player.history.operations() {
        let at = dovetail_time::SimTime::from_ns(player.history.position(number));
        if at > cut && !is_cut {
            text += &format!("{cut:>14}  POWER CUT\n");
            is_cut = true;
        }
        text += &format!("{at:>14}  {operation}\n");
    }
    if !is_cut {
        text += &format!("{cut:>14}  POWER CUT\n");
    }
    text
}
