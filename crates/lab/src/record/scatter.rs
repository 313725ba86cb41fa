//! Addresses and times of the commands of a measurement.

use std::cell::RefCell;
use std::rc::Rc;

use dovetail_block::{AREA_BLOCKS, BLOCK_SIZE};
use dovetail_host::{Observer, Request, RequestKind};
use dovetail_time::SimTime;

use super::repeats::Repeats;
use super::sample::Sample;
use crate::lane::Machine;
use crate::results::{RepeatsResult, ScatterPoint};

/// Sees the commands of a run.
pub type Watcher = Rc<RefCell<dyn FnMut(&Request)>>;

/// A sample of the commands that reach the drive.
pub(crate) struct Scatter {
    seed: u64,
    sample: Rc<RefCell<Sample>>,
    repeats: Rc<RefCell<Repeats>>,
    /// Sees all of them.
    pub(crate) watcher: Option<Watcher>,
}

impl Scatter {
    pub(crate) fn new(seed: u64) -> Self {
        let sample = Rc::new(RefCell::new(Sample::new(seed)));
        Self { seed, sample, repeats: Rc::default(), watcher: None }
    }

    /// Forgets what was sampled; commands from now on count, and time counts from now.
    pub(crate) fn begin(&mut self, machine: &mut Machine) {
        let observer = self.observer(machine.now());
        machine.observe(observer);
    }

    /// The same for commands that `start` and the observer's owner tell of.
    pub(crate) fn observer(&mut self, start: SimTime) -> Observer {
        self.sample = Rc::new(RefCell::new(Sample::new(self.seed)));
        self.repeats = Rc::default();
        let sample = Rc::clone(&self.sample);
        let repeats = Rc::clone(&self.repeats);
        let watcher = self.watcher.clone();
        Box::new(move |request| {
            repeats.borrow_mut().count(request);
            if let Some(watcher) = &watcher {
                (*watcher.borrow_mut())(request);
            }
            if let Some(point) = point(request, start) {
                sample.borrow_mut().offer(point);
            }
        })
    }

    /// Numbers of blocks by how often they were accessed.
    pub(crate) fn repeats(&self) -> RepeatsResult {
        self.repeats.borrow().result()
    }

    /// The sample in the order of time.
    pub(crate) fn finish(&self) -> Vec<ScatterPoint> {
        self.sample.borrow_mut().finish()
    }
}

fn point(request: &Request, start: SimTime) -> Option<ScatterPoint> {
    let op = match request.kind {
        RequestKind::Read => 'r',
        RequestKind::Write => 'w',
        RequestKind::Discard => 'd',
        RequestKind::Flush | RequestKind::Remap | RequestKind::Zone => return None,
    };
    Some(ScatterPoint {
        t: request.at.since(start).as_secs_f64(),
        // from the start of the address's area: those of a huge address space are drawn over each
        // other
        at: (request.range.start.0 % AREA_BLOCKS).saturating_mul(BLOCK_SIZE),
        len: request.range.blocks.saturating_mul(BLOCK_SIZE),
        op,
    })
}
