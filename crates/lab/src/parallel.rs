//! Independent runs on the machine's cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs `work` for each job on up to `threads` threads; results come in the order of the jobs,
/// whatever the number of threads.
pub fn run_all<J: Sync, R: Send>(
    jobs: &[J],
    threads: usize,
    work: impl Fn(usize, &J) -> R + Sync,
) -> Vec<R> {
    let order: Vec<usize> = (0..jobs.len()).collect();
    run_in_order(jobs, &order, threads, work)
}

/// Runs jobs as [`run_all`] does, begun in an order of their indices; results come in that of the
/// jobs.
pub fn run_in_order<J: Sync, R: Send>(
    jobs: &[J],
    order: &[usize],
    threads: usize,
    work: impl Fn(usize, &J) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(jobs.len()));
    let worker = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(&index) = order.get(place) else { return };
            let Some(job) = jobs.get(index) else { continue };
            let result = work(index, job);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(worker);
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..100).collect();
        for threads in [1, 2, 7] {
            assert_eq!(
                run_all(&jobs, threads, |_, job| job * 2),
                jobs.iter().map(|j| j * 2).collect::<Vec<_>>()
            );
        }
        let order: Vec<usize> = (0..100).rev().collect();
        assert_eq!(run_in_order(&jobs, &order, 3, |_, job| *job), jobs);
        assert_eq!(run_all(&[] as &[u64], 2, |_, job| *job), Vec::<u64>::new());
    }
}
