//! All semaphores of a run: one pair for each thread's instance of each `semblock`.

use std::collections::BTreeMap;

use super::model::{Action, Plan};
use super::semaphore::Semaphore;
use super::thread::Thread;

#[derive(Clone, Debug, Default)]
pub(super) struct Semaphores {
    all: Vec<Semaphore>,
    /// By thread and place in its list of flowops.
    own: BTreeMap<(usize, usize), usize>,
    /// By the flowop's name: those of all instances.
    targets: BTreeMap<String, Vec<usize>>,
}

impl Semaphores {
    pub(super) fn new(plan: &Plan, threads: &[Thread]) -> Self {
        let mut semaphores = Self::default();
        for (number, thread) in threads.iter().enumerate() {
            for (at, flowop) in plan.threads[thread.spec].flowops.iter().enumerate() {
                if let Action::SemBlock { highwater, .. } = flowop.action {
                    let place = semaphores.all.len();
                    semaphores.all.push(Semaphore::new(highwater));
                    semaphores.own.insert((number, at), place);
                    semaphores.targets.entry(flowop.name.clone()).or_default().push(place);
                }
            }
        }
        semaphores
    }

    pub(super) fn own(&mut self, thread: usize, at: usize) -> Option<&mut Semaphore> {
        self.own.get(&(thread, at)).map(|&place| &mut self.all[place])
    }

    /// The instance number `index` of the `semblock` of that name.
    pub(super) fn target(&mut self, name: &str, index: u64) -> Option<&mut Semaphore> {
        let place = *self.targets.get(name)?.get(index as usize)?;
        Some(&mut self.all[place])
    }
}
