//! Power cuts: what is there after a replay is what some row of whole transactions left, all that
//! had returned among them.

use std::collections::BTreeMap;

use dovetail_block::MemoryDevice;
use dovetail_testkit::RecordingDevice;
use dovetail_time::Rng;

use super::*;

type State = BTreeMap<u64, u64>;

/// The states after each transaction, and the positions in the record when each had returned.
struct History {
    states: Vec<State>,
    positions: Vec<usize>,
}

/// Transactions that rewrite blocks, free some and use those for content, which ordered mode writes
/// before the commit.
fn run(
    seed: u64,
    features: JournalFeatures,
    size: usize,
) -> (dovetail_testkit::Recording, History) {
    let mut rng = Rng::new(seed);
    let mut io = opened(MemoryDevice::new(VOLUME), size);
    let mut journal = new_journal(&mut io, 48, features, Tid(u32::MAX - 5));
    io.flush().unwrap();
    let device = RecordingDevice::new(memory(&mut io));
    let recording = device.recording();
    let mut io = opened(device, size);
    let mut history = History { states: vec![State::new()], positions: vec![0] };
    for n in 1..60_u64 {
        let mut state = history.states[history.states.len() - 1].clone();
        let mut transaction = Transaction::default();
        for _ in 0..1 + rng.below(6) {
            let block = rng.below(60);
            transaction.write(block, filled(n));
            state.insert(block, n);
        }
        let freed = rng.below(60);
        if rng.chance(0.4) {
            transaction.revoke(freed);
            state.remove(&freed);
        }
        journal.commit(&mut io, transaction, BARRIER).unwrap();
        history.states.push(state);
        history.positions.push(recording.position());
        if rng.chance(0.5) && !history.states[n as usize].contains_key(&freed) {
            // free since the last commit: a file may have it
            io.write(Channel::Data, freed, filled(1_000_000 + n)).unwrap();
        }
        if rng.chance(0.1) {
            journal.checkpoint_all(&mut io).unwrap();
        }
    }
    (recording, history)
}

/// The content of the device, in memory.
fn memory(io: &mut Io<impl Scheduler>) -> MemoryDevice {
    let mut copy = Io::new(MemoryDevice::new(VOLUME), io.block_size(), SimTime::ZERO);
    for block in 0..VOLUME {
        let content = io.read(block).unwrap();
        copy.write(Channel::Home, block, content).unwrap();
    }
    copy.kick().unwrap();
    copy.into_device()
}

fn explains(state: &State, io: &mut Io<impl Scheduler>) -> bool {
    state.iter().all(|(&block, &fill)| content_of(io, block) == fill)
}

fn check_cuts(seed: u64, features: JournalFeatures, size: usize) -> usize {
    let (recording, history) = run(seed, features, size);
    let mut cuts = 0;
    for crash in recording.crashes(seed) {
        let place =
            format!("seed {seed}, {features}, {size}: cut {} {:?}", crash.cut, crash.survivors);
        let mut io = opened(crash.device, size);
        let (_, found) = Journal::open(&mut io, map(48), VOLUME, UseOfLog::Replay)
            .unwrap_or_else(|e| panic!("{place}: {e}"));
        let complete = history.positions.partition_point(|&position| position <= crash.cut) - 1;
        let last = (complete + 1).min(history.states.len() - 1);
        let explained = (complete..=last).any(|n| explains(&history.states[n], &mut io));
        assert!(explained, "{place}: neither transaction {complete} nor {last}, {found:?}");
        cuts += 1;
    }
    cuts
}

#[test]
fn a_prefix_of_the_transactions_is_left() {
    let mut cuts = 0;
    for seed in 0..6 {
        for features in [JournalFeatures(0), JournalFeatures(0x12), JournalFeatures(0x8)] {
            for size in [1024, 4096] {
                cuts += check_cuts(seed, features, size);
            }
        }
    }
    assert!(cuts > 5000, "{cuts}");
}
