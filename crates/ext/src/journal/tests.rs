//! Transactions that come back, wherever the power is cut; journals that others wrote.

mod crash;
mod referee;
mod round_trip;

use std::sync::Arc;

use dovetail_block::{Content, Scheduler};
use dovetail_time::SimTime;
use dovetail_vfs::Timestamp;

use super::*;
use crate::io::{Channel, Io, bytes};

/// Blocks of the volume in these tests; the journal lies in its second half.
const VOLUME: u64 = 256;

const BARRIER: CommitMode =
    CommitMode { barrier: true, at: Timestamp { seconds: 5, nanoseconds: 6 } };

/// A journal of `blocks` blocks in two runs that are the wrong way round.
fn map(blocks: u32) -> JournalMap {
    let half = blocks / 2;
    JournalMap::new(&[
        JournalExtent { start: 200, blocks: half },
        JournalExtent { start: 128, blocks: blocks - half },
    ])
}

fn filled(fill: u64) -> Content {
    let mut bytes = [0; 4096];
    for chunk in bytes.chunks_exact_mut(8) {
        chunk.copy_from_slice(&fill.to_be_bytes());
    }
    Content::Bytes(Arc::new(bytes))
}

/// Writes an empty journal and opens it.
fn new_journal<D: Scheduler>(
    io: &mut Io<D>,
    blocks: u32,
    features: JournalFeatures,
    sequence: Tid,
) -> Journal {
    let mut superblock = JournalSuperblock::new(io.block_size() as u32, blocks, [7; 16]);
    superblock.sequence = sequence;
    let mut block = [0; 4096];
    block[..1024].copy_from_slice(&superblock.encode());
    let place = map(blocks).physical(0).unwrap();
    io.write_now(Channel::Home, place, Content::Bytes(Arc::new(block)), true).unwrap();
    let (mut journal, _) = Journal::open(io, map(blocks), VOLUME, UseOfLog::Replay).unwrap();
    journal.set_features(features);
    journal
}

fn opened(device: impl Scheduler, block_size: usize) -> Io<impl Scheduler> {
    Io::new(device, block_size, SimTime::ZERO)
}

fn content_of(io: &mut Io<impl Scheduler>, block: u64) -> u64 {
    u64::from_be_bytes(bytes(&io.read(block).unwrap())[..8].try_into().unwrap())
}
