//! Finds committed content again, in every form that a journal can have.

use std::collections::BTreeMap;

use dovetail_block::MemoryDevice;
use proptest::prelude::*;

use super::*;

const PLAIN: JournalFeatures = JournalFeatures(0);
const WIDE_V3: JournalFeatures = JournalFeatures(0x1 | 0x2 | 0x10);
const V2: JournalFeatures = JournalFeatures(0x1 | 0x8);
const WIDE_V2: JournalFeatures = JournalFeatures(0x1 | 0x2 | 0x8);

fn any_features() -> impl Strategy<Value = JournalFeatures> {
    prop::sample::select(vec![
        PLAIN,
        JournalFeatures(0x2),
        V2,
        WIDE_V2,
        JournalFeatures(0x10),
        WIDE_V3,
    ])
}

/// Writes as block and fill, and revokes.
type Changes = (Vec<(u64, u64)>, Vec<u64>);

fn transactions() -> impl Strategy<Value = Vec<Changes>> {
    let writes = prop::collection::vec((0..100_u64, any::<u64>()), 0..40);
    let magic = (0..100_u64).prop_map(|block| (block, 0xC03B_3998_0000_0001));
    let writes = (writes, prop::option::of(magic)).prop_map(|(mut writes, magic)| {
        writes.extend(magic);
        writes
    });
    prop::collection::vec((writes, prop::collection::vec(0..100_u64, 0..6)), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Revoked blocks get content past the journal once the revoke is committed, as a file's would.
    #[test]
    fn a_replay_gives_what_was_committed(
        features in any_features(),
        size in prop::sample::select(vec![1024_usize, 2048, 4096]),
        blocks in 48..80_u32,
        sequence in prop::sample::select(vec![1_u32, u32::MAX - 3]),
        transactions in transactions(),
    ) {
        let mut io = opened(MemoryDevice::new(VOLUME), size);
        let mut journal = new_journal(&mut io, blocks, features, Tid(sequence));
        let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
        for (n, (writes, revokes)) in transactions.into_iter().enumerate() {
            let mut transaction = Transaction::default();
            for (block, fill) in writes {
                transaction.write(block, filled(fill));
                expected.insert(block, fill);
            }
            for &block in &revokes {
                transaction.revoke(block);
            }
            journal.commit(&mut io, transaction, BARRIER).unwrap();
            for block in revokes {
                let data = 1_000_000 + n as u64;
                io.write(Channel::Data, block, filled(data)).unwrap();
                expected.insert(block, data);
            }
        }
        io.wait().unwrap();
        let mut io = opened(io.into_device(), size);
        let (again, _) = Journal::open(&mut io, map(blocks), VOLUME, UseOfLog::Replay).unwrap();
        for (&block, &fill) in &expected {
            prop_assert_eq!(content_of(&mut io, block), fill, "block {}", block);
        }
        prop_assert!(!again.next_tid().is_before(journal.next_tid()));
        prop_assert_eq!(again.superblock().start, 0);
    }

    /// No bytes make the reader panic or read without end.
    #[test]
    fn damaged_logs_are_read_without_panic(
        features in any_features(),
        damage in prop::collection::vec((0..64_u32, 0..1024_usize, any::<u8>()), 1..60),
    ) {
        let mut io = opened(MemoryDevice::new(VOLUME), 1024);
        let mut journal = new_journal(&mut io, 64, features, Tid(1));
        for n in 0..6 {
            let mut transaction = Transaction::default();
            (0..n).for_each(|block| transaction.write(block, filled(n)));
            transaction.revoke(50 + n);
            journal.commit(&mut io, transaction, BARRIER).unwrap();
        }
        for (block, byte, value) in damage {
            let place = map(64).physical(block).unwrap();
            let mut content = *bytes(&io.read(place).unwrap());
            content[byte] = value;
            io.write(Channel::Home, place, Content::Bytes(Arc::new(content))).unwrap();
        }
        drop(Journal::open(&mut io, map(64), VOLUME, UseOfLog::Replay));
    }
}

#[test]
fn a_log_that_wraps_many_times_holds_the_newest() {
    let mut io = Io::new(MemoryDevice::new(VOLUME), 4096, SimTime::ZERO);
    let mut journal = new_journal(&mut io, 32, WIDE_V3, Tid(u32::MAX - 20));
    for n in 0..500_u64 {
        let mut transaction = Transaction::default();
        (0..5).for_each(|i| transaction.write((n * 3 + i) % 100, filled(n)));
        journal.commit(&mut io, transaction, BARRIER).unwrap();
        if n % 37 == 0 {
            let mut copy = opened(io.device().clone(), 4096);
            let (again, found) =
                Journal::open(&mut copy, map(32), VOLUME, UseOfLog::Replay).unwrap();
            assert!(
                found.transactions > 0 && again.next_tid() != journal.next_tid(),
                "transaction {n}"
            );
        }
    }
    assert!(journal.events().checkpoints > 20, "{:?}", journal.events());
    journal.checkpoint_all(&mut io).unwrap();
    assert_eq!((journal.waiting(), journal.superblock().start), (0, 0));
    assert_eq!(content_of(&mut io, (499 * 3 + 4) % 100), 499);
}

#[test]
fn what_no_log_can_hold_is_refused_as_a_whole() {
    let mut io = opened(MemoryDevice::new(VOLUME), 4096);
    let mut journal = new_journal(&mut io, 32, PLAIN, Tid(1));
    let mut transaction = Transaction::default();
    (0..31).for_each(|block| transaction.write(block, filled(1)));
    let refused = journal.commit(&mut io, transaction, BARRIER);
    assert_eq!(refused, Err(JournalError::TooLarge { needed: 33, capacity: 31 }));
    let mut transaction = Transaction::default();
    transaction.write(1 << 33, filled(1));
    assert_eq!(journal.commit(&mut io, transaction, BARRIER), Err(JournalError::Narrow(1 << 33)));
}

#[test]
fn unknown_features_are_named() {
    let mut superblock = JournalSuperblock::new(4096, 32, [0; 16]);
    superblock.features = JournalFeatures(0x1 | 0x4 | 0x20);
    let error = JournalSuperblock::parse(&superblock.encode(), 4096, 32).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the journal uses features that are not supported: async_commit,fast_commit"
    );
    let mut bytes = JournalSuperblock::new(4096, 32, [0; 16]).encode();
    bytes[0x1F] = 32;
    let error = JournalSuperblock::parse(&bytes, 4096, 32).unwrap_err();
    assert_eq!(error, JournalError::Range { field: "s_start", found: 32, min: 0, max: 31 });
}

/// Three transactions in a log, a byte of whose block `wrong` is flipped.
fn damaged_log(features: JournalFeatures, wrong: u32, at: usize) -> Io<impl Scheduler> {
    let mut io = opened(MemoryDevice::new(VOLUME), 4096);
    let mut journal = new_journal(&mut io, 32, features, Tid(1));
    for n in 1..=3 {
        let mut transaction = Transaction::default();
        transaction.write(9, filled(n));
        journal.commit(&mut io, transaction, BARRIER).unwrap();
    }
    flip(&mut io, wrong, at);
    io
}

fn flip(io: &mut Io<impl Scheduler>, block: u32, at: usize) {
    let place = map(32).physical(block).unwrap();
    let mut content = *bytes(&io.read(place).unwrap());
    content[at] ^= 1;
    io.write(Channel::Home, place, Content::Bytes(Arc::new(content))).unwrap();
}

/// The kernel's mount fails then, too: writing on would lose what was committed for good.
#[test]
fn a_committed_transaction_that_is_damaged_is_not_passed_over() {
    for (features, wrong) in [(V2, 5), (WIDE_V3, 5), (WIDE_V3, 4), (WIDE_V3, 6)] {
        let mut io = damaged_log(features, wrong, 700);
        let before = content_of(&mut io, 9);
        let opened = Journal::open(&mut io, map(32), VOLUME, UseOfLog::Replay);
        let expected = JournalError::Transaction { tid: Tid(2), at: wrong };
        assert_eq!(opened.map(|_| ()), Err(expected), "{features} {wrong}");
        assert_eq!(content_of(&mut io, 9), before, "nothing was written");
        // a volume that needs no recovery is none the worse, but the third transaction is there
        // still: it must not go on behind new ones
        let (wiped, _) = Journal::open(&mut io, map(32), VOLUME, UseOfLog::Wipe).unwrap();
        assert!(Tid(3).is_before(wiped.next_tid()), "{features} {wrong}: {:?}", wiped.next_tid());
    }
}

#[test]
fn what_was_not_committed_may_be_damaged() {
    for (features, broken) in [(PLAIN, &[6][..]), (WIDE_V3, &[6]), (WIDE_V3, &[4, 6])] {
        let mut io = damaged_log(features, 6, 3); // no magic number where the commit block was
        broken.iter().filter(|block| **block != 6).for_each(|block| flip(&mut io, *block, 700));
        let (_, found) = Journal::open(&mut io, map(32), VOLUME, UseOfLog::Replay).unwrap();
        assert_eq!((found.transactions, found.stop), (1, Stop::End), "{features} {broken:?}");
        assert_eq!(content_of(&mut io, 9), 1);
    }
}

/// Behind the log lies a transaction of an earlier journal with the number that would come next: its
/// checksums are wrong, and its time is before that of the last commit.
#[test]
fn a_transaction_of_an_earlier_journal_is_no_damage() {
    let mut io = damaged_log(WIDE_V3, 4, 700);
    let superblock = Journal::read_superblock(&mut io, &map(32)).unwrap();
    let place = map(32).physical(3).unwrap();
    let mut commit = *bytes(&io.read(place).unwrap());
    let at = Timestamp { seconds: 1_700_000_000, nanoseconds: 0 };
    CommitBlock { sequence: Tid(1), at }.write(&mut commit, WIDE_V3, superblock.seed());
    io.write(Channel::Home, place, Content::Bytes(Arc::new(commit))).unwrap();
    let (again, found) = Journal::open(&mut io, map(32), VOLUME, UseOfLog::Replay).unwrap();
    assert_eq!((found.transactions, found.stop), (1, Stop::Stale));
    assert!(Tid(3).is_before(again.next_tid()), "what lies there must not go on behind new ones");
}
