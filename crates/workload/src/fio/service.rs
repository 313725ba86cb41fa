//! Choice of the file that a thread turns to next: `file_service_type`, `openfiles`.

use dovetail_time::Rng;

use super::settings::{Service, ServiceOrder};

/// So many draws before a file is looked for in order: most files are done then.
const DRAWS_MAX: u32 = 64;

/// The files of a thread, by their place in its list.
#[derive(Debug)]
pub(super) struct FileService {
    service: Service,
    open_max: u64,
    states: Vec<FileState>,
    open: u64,
    done: usize,
    next: usize,
    current: Option<usize>,
    left: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileState {
    Closed,
    Open,
    Done,
}

impl FileService {
    pub(super) fn new(files: usize, service: Service, open_max: u64) -> Self {
        Self {
            service,
            open_max,
            states: vec![FileState::Closed; files],
            open: 0,
            done: 0,
            next: 0,
            current: None,
            left: 0,
        }
    }

    /// All files are closed, and none is done; whose turn it is stays.
    pub(super) fn reset(&mut self) {
        let next = self.next;
        *self = Self { next, ..Self::new(self.states.len(), self.service, self.open_max) };
    }

    pub(super) fn all_done(&self) -> bool {
        self.done == self.states.len()
    }

    /// The next file that is not done; it counts as open from now on.
    pub(super) fn pick(&mut self, rng: &mut Rng) -> Option<usize> {
        if let Some(file) = self.same_again() {
            return Some(file);
        }
        let file = match self.service.order {
            ServiceOrder::RoundRobin | ServiceOrder::Sequential => self.in_turn(),
            ServiceOrder::Random => self.drawn(rng).or_else(|| self.in_turn()),
        }?;
        if self.states[file] == FileState::Closed {
            self.states[file] = FileState::Open;
            self.open += 1;
        }
        self.current = Some(file);
        self.left = self.service.blocks - 1;
        Some(file)
    }

    /// The file gives nothing more in this pass.
    pub(super) fn finish(&mut self, file: usize) {
        if self.states[file] == FileState::Open {
            self.open -= 1;
            self.done += 1;
            self.states[file] = FileState::Done;
        }
    }

    fn same_again(&mut self) -> Option<usize> {
        let current = self.current.filter(|file| self.states[*file] == FileState::Open)?;
        if self.service.order == ServiceOrder::Sequential {
            return Some(current);
        }
        self.left = self.left.checked_sub(1)?;
        Some(current)
    }

    fn is_eligible(&self, file: usize) -> bool {
        match self.states[file] {
            FileState::Open => true,
            FileState::Closed => self.open < self.open_max,
            FileState::Done => false,
        }
    }

    fn in_turn(&mut self) -> Option<usize> {
        let files = self.states.len();
        let found = (0..files)
            .map(|step| (self.next + step) % files)
            .find(|file| self.is_eligible(*file))?;
        self.next = (found + 1) % files;
        Some(found)
    }

    fn drawn(&self, rng: &mut Rng) -> Option<usize> {
        let files = self.states.len() as u64;
        (0..DRAWS_MAX).map(|_| rng.below(files) as usize).find(|file| self.is_eligible(*file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(order: ServiceOrder, blocks: u64, open_max: u64, finish: &[usize]) -> Vec<usize> {
        let mut service = FileService::new(3, Service { order, blocks }, open_max);
        let mut rng = Rng::new(1);
        (0..8)
            .map_while(|step| {
                let file = service.pick(&mut rng)?;
                if finish.contains(&step) {
                    service.finish(file);
                }
                Some(file)
            })
            .collect()
    }

    #[test]
    fn orders() {
        assert_eq!(picks(ServiceOrder::RoundRobin, 1, 3, &[]), [0, 1, 2, 0, 1, 2, 0, 1]);
        assert_eq!(picks(ServiceOrder::RoundRobin, 2, 3, &[]), [0, 0, 1, 1, 2, 2, 0, 0]);
        assert_eq!(picks(ServiceOrder::Sequential, 1, 3, &[1, 4, 6]), [0, 0, 1, 1, 1, 2, 2]);
        assert_eq!(picks(ServiceOrder::RoundRobin, 1, 2, &[3, 4]), [0, 1, 0, 1, 2, 0, 0, 0]);
        let random = picks(ServiceOrder::Random, 1, 3, &[]);
        assert!(random.contains(&0) && random.contains(&1) && random.contains(&2), "{random:?}");
    }
}
