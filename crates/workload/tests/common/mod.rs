//! Helpers of the tests of fio job files: a player of workloads, and fio as referee.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of this")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::process::Command;

use dovetail_block::BLOCK_SIZE;
use dovetail_time::SimTime;
use dovetail_workload::fio::{FioWorkload, JobFile, Variables};
use dovetail_workload::{Call, Outcome, Step, ThreadId, Workload};

/// A call, who made it, and when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played {
    pub thread: u32,
    pub begin: SimTime,
    pub call: Call,
    /// Number of the thread's calls that were under way with it.
    pub under_way: u32,
}

/// Duration of every call.
pub const CALL_NS: u64 = 10_000;

/// More calls than any test makes: a workload that does not end.
const CALLS_MAX: usize = 3_000_000;

pub fn workload(text: &str, seed: u64) -> FioWorkload {
    FioWorkload::new(JobFile::parse(text, "test.fio", &Variables::new()).unwrap(), seed).unwrap()
}

pub fn prepared(workload: &mut FioWorkload) -> Vec<Call> {
    std::iter::from_fn(|| workload.prepare()).collect()
}

/// Plays a workload to its end: every call takes [`CALL_NS`], and no call waits for another
/// thread's. Its writes touch no more blocks than it says beforehand.
pub fn play(workload: &mut FioWorkload) -> Vec<Played> {
    let most = workload.written_blocks();
    let prepared = prepared(workload);
    let played = Player::default().play(workload);
    let calls = prepared.iter().chain(played.iter().map(|played| &played.call));
    let written: u64 = calls.map(blocks_written).sum();
    assert!(most.is_none_or(|most| written <= most), "{written} blocks written of {most:?}");
    played
}

fn blocks_written(call: &Call) -> u64 {
    match *call {
        Call::Write { offset, len, .. } => {
            (offset + len).div_ceil(BLOCK_SIZE) - offset / BLOCK_SIZE
        }
        _ => 0,
    }
}

/// Time, order of entry, thread, and the call that ends then; `None` wakes.
type Event = (u64, usize, u32, Option<usize>);

#[derive(Default)]
struct Player {
    events: BinaryHeap<Reverse<Event>>,
    played: Vec<Played>,
    /// By thread: calls under way, and whether it waits for others.
    under_way: Vec<u32>,
    waits: Vec<bool>,
    done: Vec<bool>,
    entries: usize,
}

impl Player {
    fn play(mut self, workload: &mut FioWorkload) -> Vec<Played> {
        let threads = workload.threads() as usize;
        (self.under_way, self.waits, self.done) =
            (vec![0; threads], vec![false; threads], vec![false; threads]);
        for thread in 0..threads as u32 {
            self.ask(workload, thread, 0);
        }
        while let Some(Reverse((now, _, thread, call))) = self.events.pop() {
            if let Some(at) = call {
                let Played { begin, call, .. } = self.played[at];
                self.under_way[thread as usize] -= 1;
                let outcome = Outcome { begin, end: SimTime::from_ns(now), bytes: 0 };
                workload.ended(ThreadId(thread), &call, &outcome);
            }
            self.ask(workload, thread, now);
            if call.is_some() {
                for other in 0..threads as u32 {
                    if std::mem::take(&mut self.waits[other as usize]) {
                        self.ask(workload, other, now);
                    }
                }
            }
        }
        assert!(self.done.iter().all(|done| *done), "a thread waits for ever");
        self.played
    }

    fn enter(&mut self, at: u64, thread: u32, call: Option<usize>) {
        self.entries += 1;
        self.events.push(Reverse((at, self.entries, thread, call)));
    }

    fn ask(&mut self, workload: &mut FioWorkload, thread: u32, now: u64) {
        loop {
            match workload.next(ThreadId(thread), SimTime::from_ns(now)) {
                Step::Call(call) => {
                    self.under_way[thread as usize] += 1;
                    let under_way = self.under_way[thread as usize];
                    self.enter(now + CALL_NS, thread, Some(self.played.len()));
                    self.played.push(Played {
                        thread,
                        begin: SimTime::from_ns(now),
                        call,
                        under_way,
                    });
                    assert!(self.played.len() < CALLS_MAX, "the workload does not end");
                }
                Step::Sleep(until) => {
                    assert!(until.as_ns() > now, "sleeps until a time that is over");
                    return self.enter(until.as_ns(), thread, None);
                }
                Step::Wait => {
                    return assert!(self.under_way[thread as usize] > 0, "waits for nothing");
                }
                Step::WaitForOthers => return self.waits[thread as usize] = true,
                Step::Done => return self.done[thread as usize] = true,
            }
        }
    }
}

/// Runs fio in `folder` on a job file; returns what it printed.
pub fn fio(folder: &Path, job: &str, arguments: &[&str]) -> Result<String, String> {
    std::fs::write(folder.join("test.fio"), job).unwrap();
    let output = Command::new("fio")
        .current_dir(folder)
        .args(arguments)
        .arg("test.fio")
        .output()
        .expect("the tests need fio: cargo xtask test installs it, or apt-get install fio");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok(text)
    } else {
        Err(text + &String::from_utf8_lossy(&output.stderr))
    }
}
