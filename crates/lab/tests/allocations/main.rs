//! Memory that a run asks for call by call, once it is under way. A program of its own: it counts
//! what is allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use dovetail_lab::bench::{Experiment, Source, Stack};

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

/// Bytes that each of four threads overwrites, at full scale.
const SHORT: u64 = 2 << 30;
const LONG: u64 = 4 << 30;
const SCALE: &str = "1/64";

/// Allocations of a whole run with so many bytes to write for each thread.
#[allow(clippy::unwrap_used, reason = "a test may stop at a broken set-up")]
fn allocations(stack: &Stack, io_size: u64) -> u64 {
    let job = format!(
        "[update]\nrw=randwrite\nbs=4k\nnumjobs=4\nsize=1g\nio_size={io_size}\nnorandommap\nfsync=10\noverwrite=1\n"
    );
    let source = Source::fio(&job, "updates.fio", &[]).unwrap();
    let experiment = Experiment {
        scale: SCALE.parse().unwrap(),
        ..Experiment::new(&source, std::slice::from_ref(stack))
    };
    let before = COUNT.load(Ordering::Relaxed);
    let (results, failures) = experiment.run(1, &|_| ());
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(results.runs[0].error, None);
    COUNT.load(Ordering::Relaxed) - before
}

/// Stacks with the most that a call may allocate. What is left is not of calls: the windows of the
/// series over time (0.1 a call in so short a run), checkpoints and commits. With rm-ipu it is also
/// the drive, which makes lists of the pairs of a remap and pages of its reverse map.
const MOST: [(&str, f64); 4] = [("f2fs", 0.2), ("rm-ipu", 0.7), ("ext4", 0.3), ("iplfs", 0.3)];

/// The calls of a run allocate what twice as long a run allocates beyond the shorter one.
#[test]
fn calls_allocate_next_to_nothing_once_a_run_is_under_way() {
    let mut report = Vec::new();
    for (name, most) in MOST {
        let stack = Stack::load(name).unwrap();
        let more = allocations(&stack, LONG).saturating_sub(allocations(&stack, SHORT));
        let writes = 4 * (LONG - SHORT) / 64 / 4096;
        let calls = writes + writes / 10;
        let a_call = more as f64 / calls as f64;
        report.push((name, a_call, most));
    }
    for (name, a_call, most) in &report {
        let all = format!("{report:?}");
        assert!(*a_call > 0.0 && a_call <= most, "{name}: {a_call:.3}, at most {most}: {all}");
    }
}
