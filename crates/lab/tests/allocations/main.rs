//! Memory that a run asks for call by call, once it is under way. A program of its own: it counts
//! what is allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use dovetail_lab::bench::{Experiment, Source, Stack};
use dovetail_lab::{Progress, Stage};

struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator as it came; beside it a number is added.
#[allow(unsafe_code, reason = "an allocator that counts")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise about the arguments is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise about `pointer` and `layout` is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Four threads overwrite a file each, at random, with an fsync after every tenth write.
const JOB: &str = "[update]\nrw=randwrite\nbs=4k\nnumjobs=4\nsize=1g\nio_size=8g\nnorandommap\n\
                   fsync=10\noverwrite=1\n";
const SCALE: &str = "1/64";

/// Allocations for each call in the second half of a run. Results are made after its end.
#[allow(clippy::unwrap_used, reason = "a test may stop at a broken set-up")]
fn allocations_a_call(stack: &Stack) -> f64 {
    let source = Source::fio(JOB, "updates.fio", &[]).unwrap();
    let told = Mutex::new(Vec::with_capacity(1 << 10));
    let tell = |_, progress: Progress| {
        if progress.stage == Stage::Run && is_past_half(progress) {
            told.lock().unwrap().push((progress.requests, COUNT.load(Ordering::Relaxed)));
        }
    };
    let experiment = Experiment {
        scale: SCALE.parse().unwrap(),
        progress: &tell,
        ..Experiment::new(&source, std::slice::from_ref(stack))
    };
    let (results, failures) = experiment.run(1, &|_| ());
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(results.runs[0].error, None);
    let told = told.into_inner().unwrap();
    let [(calls_before, before), .., (calls, after)] = told[..] else { panic!("told {told:?}") };
    assert!(calls - calls_before > 50_000, "{told:?}");
    (after - before) as f64 / (calls - calls_before) as f64
}

const fn is_past_half(progress: Progress) -> bool {
    assert!(progress.total > 0, "the length of the job is known");
    2 * progress.done >= progress.total
}

/// Stacks with the most that a call may allocate. What is left is not of calls: the windows of the
/// series over time, checkpoints and commits, and with rm-ipu the reverse map's entries of a block.
const MOST: [(&str, f64); 4] = [("f2fs", 0.17), ("rm-ipu", 0.2), ("ext4", 0.14), ("iplfs", 0.1)];

#[test]
fn calls_allocate_next_to_nothing_once_a_run_is_under_way() {
    let measure = |(name, most)| (name, allocations_a_call(&Stack::load(name).unwrap()), most);
    let report = MOST.map(measure);
    println!("{report:.3?}");
    for (name, a_call, most) in report {
        assert!(a_call > 0.0 && a_call <= most, "{name}: {a_call:.3}, at most {most}: {report:?}");
    }
}
