//! Flowops on files as a whole: open, create, close, delete, stat, fsync.

use super::ending::Ending;
use super::files::{Pick, Wanted};
use super::model::SetId;
use super::namespace::FileRef;
use super::run::PersonalityWorkload;
use super::thread::{Effect, ROTATING_FDS};
use super::turn::Turn;
use crate::call::Call;

impl PersonalityWorkload {
    /// The descriptor of a flowop: its own, or with `opennext` the next of as many as the set has
    /// files.
    pub(super) fn choose_fd(&mut self, t: usize, set: Option<SetId>, fd: u32, rotate: bool) -> u32 {
        let Some(set) = set.filter(|_| rotate && fd == 0) else { return fd };
        let entries = self.namespace.set(set).spec.entries;
        let thread = &mut self.threads[t];
        let chosen = ROTATING_FDS + thread.rotation % entries;
        thread.rotation = (thread.rotation + 1) % entries;
        chosen
    }

    pub(super) fn open_file(
        &mut self,
        t: usize,
        set: Option<SetId>,
        fd: u32,
        rotate: bool,
    ) -> Turn {
        let before = self.threads[t].rotation;
        let chosen = self.choose_fd(t, set, fd, rotate);
        let turn = self.open(t, set, chosen, rotate, Wanted::Existing);
        if matches!(turn, Turn::Others) {
            self.threads[t].rotation = before;
        }
        turn
    }

    /// Opens a file of the set on `fd`.
    pub(super) fn open(
        &mut self,
        t: usize,
        set: Option<SetId>,
        fd: u32,
        rotate: bool,
        wanted: Wanted,
    ) -> Turn {
        if self.threads[t].open(fd).is_some() {
            return Turn::End(Ending::StillOpen { flowop: self.flowop_name(t), fd });
        }
        let Some(set) = set else { return self.not_open(t, fd) };
        match self.pick(t, set, rotate, wanted) {
            Ok(file) => Turn::Call(
                Call::Open { file: self.namespace.id(file) },
                Effect::Opened { fd, file },
            ),
            Err(turn) => turn,
        }
    }

    /// A file of the set, or what the thread does without one. Threads with `opennext` have a rotor
    /// of their own.
    fn pick(
        &mut self,
        t: usize,
        set: SetId,
        rotate: bool,
        wanted: Wanted,
    ) -> Result<FileRef, Turn> {
        let thread = &mut self.threads[t];
        let files = self.namespace.set(set);
        let pick = if rotate { files.pick_from(wanted, thread.rotor) } else { files.pick(wanted) };
        match pick {
            Pick::File(index) => {
                if rotate {
                    thread.rotor = index + 1;
                }
                Ok(FileRef { set, index })
            }
            Pick::AllBusy => Err(Turn::Others),
            Pick::Empty => {
                let fileset = self.namespace.name(set).into();
                Err(Turn::End(Ending::NoFile { flowop: self.flowop_name(t), fileset }))
            }
        }
    }

    pub(super) fn close(&mut self, t: usize, fd: u32) -> Turn {
        let Some(descriptor) = self.threads[t].open(fd) else { return self.not_open(t, fd) };
        let file = descriptor.file;
        if self.namespace.set(file.set).is_busy(file.index) {
            return Turn::Others;
        }
        self.namespace.set(file.set).set_busy(file.index, true);
        Turn::Call(Call::Close { file: self.namespace.id(file) }, Effect::Closed { fd, file })
    }

    /// Deletes the file of `fd`, or without one the next file; not a file that another thread has
    /// open.
    pub(super) fn delete(&mut self, t: usize, set: Option<SetId>, fd: u32) -> Turn {
        let own = self.threads[t].descriptors.get(&fd).copied().filter(|_| fd > 0);
        let file = match (own, set) {
            (Some(descriptor), _) if self.is_busy(descriptor.file) => return Turn::Others,
            (Some(descriptor), _) => descriptor.file,
            (None, None) => return self.not_open(t, fd),
            (None, Some(set)) => match self.pick(t, set, false, Wanted::Existing) {
                Ok(file) => file,
                Err(turn) => return turn,
            },
        };
        let own_opens = u32::from(own.is_some_and(|descriptor| descriptor.open));
        if own.is_some_and(|descriptor| !descriptor.open) {
            self.threads[t].descriptors.remove(&fd);
        }
        let files = self.namespace.set(file.set);
        let spared = files.opened(file.index) > own_opens;
        files.set_busy(file.index, !spared);
        if spared {
            return Turn::Over;
        }
        Turn::Call(Call::Unlink { file: self.namespace.id(file) }, Effect::Deleted { file })
    }

    fn is_busy(&mut self, file: FileRef) -> bool {
        self.namespace.set(file.set).is_busy(file.index)
    }

    pub(super) fn stat(&mut self, t: usize, set: Option<SetId>, fd: u32) -> Turn {
        let own = self.threads[t].open(fd).filter(|_| fd > 0);
        let (file, picked) = match (own, set) {
            (Some(descriptor), _) => (descriptor.file, None),
            (None, None) => return self.not_open(t, fd),
            (None, Some(set)) => match self.pick(t, set, false, Wanted::Existing) {
                Ok(file) => (file, Some(file)),
                Err(turn) => return turn,
            },
        };
        Turn::Call(Call::Stat { file: self.namespace.id(file) }, Effect::Looked { picked })
    }

    pub(super) fn sync(&mut self, t: usize, fd: u32) -> Turn {
        let Some(descriptor) = self.threads[t].open(fd) else { return self.not_open(t, fd) };
        let file = self.namespace.id(descriptor.file);
        Turn::Call(Call::Sync { file, data_only: false }, Effect::Synced { more: false })
    }

    /// Syncs each file of the set that the thread has open.
    pub(super) fn sync_set(&mut self, t: usize, set: SetId) -> Turn {
        let thread = &mut self.threads[t];
        let next = thread.descriptors.range(thread.progress as u32..);
        let found = next
            .filter(|(_, it)| it.open && it.file.set == set)
            .map(|(&fd, it)| (fd, it.file))
            .next();
        let Some((fd, file)) = found else { return Turn::Over };
        thread.progress = u64::from(fd) + 1;
        let file = self.namespace.id(file);
        Turn::Call(Call::Sync { file, data_only: false }, Effect::Synced { more: true })
    }
}
