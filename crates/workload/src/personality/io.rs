//! Flowops that read and write.

use super::ending::Ending;
use super::files::Wanted;
use super::model::Io;
use super::run::PersonalityWorkload;
use super::thread::{Descriptor, Effect, Stage};
use super::turn::Turn;
use crate::call::{Call, FileId};

/// Direct I/O is in whole blocks.
const BLOCK: u64 = 4096;

impl PersonalityWorkload {
    /// The open descriptor of the flowop; the call that opens it if it is not open.
    fn target(&mut self, t: usize, io: &Io) -> Result<(Descriptor, FileId), Turn> {
        if self.threads[t].stage == Stage::Begin {
            let fd = self.choose_fd(t, io.set, io.fd, io.rotate);
            self.threads[t].fd = fd;
            self.threads[t].stage = Stage::Running;
        }
        let thread = &self.threads[t];
        match thread.open(thread.fd) {
            Some(descriptor) => Ok((descriptor, self.namespace.id(descriptor.file))),
            None => Err(self.open(t, io.set, thread.fd, io.rotate, Wanted::Existing)),
        }
    }

    fn working_set(&self, io: &Io, descriptor: Descriptor) -> u64 {
        if io.working_set > 0 { io.working_set } else { self.namespace.size(descriptor.file) }
    }

    /// Offset of a read or write: a random multiple of its size, or the position of the descriptor.
    fn place(&mut self, t: usize, io: &Io, descriptor: Descriptor) -> Result<u64, Turn> {
        if !io.random {
            return Ok(descriptor.position);
        }
        let size = self.working_set(io, descriptor);
        let places = size / io.io_size;
        if places == 0 {
            return Err(Turn::End(Ending::TooSmall { flowop: self.flowop_name(t), size }));
        }
        Ok(self.threads[t].rng.below(places) * io.io_size)
    }

    pub(super) fn read(&mut self, t: usize, io: &Io) -> Turn {
        let place = self.target(t, io).and_then(|(descriptor, file)| {
            let offset = self.place(t, io, descriptor)?;
            Ok(Call::Read { file, offset, len: io.io_size, direct: io.direct })
        });
        let effect = Effect::Moved { sequential: !io.random, then: Stage::Over };
        place.map_or_else(|turn| turn, |call| Turn::Call(call, effect))
    }

    pub(super) fn write(&mut self, t: usize, io: &Io) -> Turn {
        if self.threads[t].stage == Stage::Durable {
            return self.make_durable(t);
        }
        let place = self.target(t, io).and_then(|(descriptor, file)| {
            let offset = self.place(t, io, descriptor)?;
            Ok(Call::Write { file, offset, len: io.io_size, direct: io.direct })
        });
        let effect = Effect::Moved { sequential: !io.random, then: after_write(io) };
        place.map_or_else(|turn| turn, |call| Turn::Call(call, effect))
    }

    /// Syncs after a write, as O_SYNC asks.
    fn make_durable(&mut self, t: usize) -> Turn {
        let fd = self.threads[t].fd;
        self.sync(t, fd)
    }

    /// Reads up to the end of the file, wherever that is by now.
    pub(super) fn read_whole(&mut self, t: usize, io: &Io) -> Turn {
        let (descriptor, file) = match self.target(t, io) {
            Ok(target) => target,
            Err(turn) => return turn,
        };
        let len = if io.io_size > 0 { io.io_size } else { self.working_set(io, descriptor) };
        if len == 0 {
            return Turn::Over;
        }
        let offset = self.threads[t].progress;
        Turn::Call(
            Call::Read { file, offset, len, direct: io.direct },
            Effect::ReadPart { asked: len },
        )
    }

    /// Writes as much as the file of `source` is to have.
    pub(super) fn write_whole(&mut self, t: usize, io: &Io, source: u32) -> Turn {
        if self.threads[t].stage == Stage::Durable {
            return self.make_durable(t);
        }
        let (descriptor, file) = match self.target(t, io) {
            Ok(target) => target,
            Err(turn) => return turn,
        };
        let size = match self.threads[t].descriptors.get(&source) {
            Some(from) => self.namespace.size(from.file),
            None if source != 0 => return self.not_open(t, source),
            None => self.working_set(io, descriptor),
        };
        let left = size.saturating_sub(self.threads[t].progress);
        if left == 0 {
            return self.wrote_all(t, io, size);
        }
        let part = if io.io_size > 0 { io.io_size.min(left) } else { left };
        let len = if io.direct { part.next_multiple_of(BLOCK) } else { part };
        let call = Call::Write { file, offset: descriptor.position, len, direct: io.direct };
        Turn::Call(call, Effect::WrotePart { len })
    }

    fn wrote_all(&mut self, t: usize, io: &Io, size: u64) -> Turn {
        if size == 0 || !io.dsync {
            return Turn::Over;
        }
        self.threads[t].stage = Stage::Durable;
        self.make_durable(t)
    }

    /// Appends `iosize` bytes, or a random number below it; none at all is no call.
    pub(super) fn append(&mut self, t: usize, io: &Io) -> Turn {
        if self.threads[t].stage == Stage::Durable {
            return self.make_durable(t);
        }
        if self.threads[t].stage == Stage::Begin {
            let thread = &mut self.threads[t];
            thread.progress = if io.random { thread.rng.below(io.io_size) } else { io.io_size };
        }
        let len = self.threads[t].progress;
        if len == 0 {
            return Turn::Over;
        }
        match self.target(t, io) {
            Ok((_, file)) => {
                let effect = Effect::Moved { sequential: false, then: after_write(io) };
                Turn::Call(Call::Append { file, len }, effect)
            }
            Err(turn) => turn,
        }
    }

    pub(super) fn aio_write(&mut self, t: usize, io: &Io) -> Turn {
        let (descriptor, file) = match self.target(t, io) {
            Ok(target) => target,
            Err(turn) => return turn,
        };
        if self.threads[t].stage == Stage::Durable {
            self.threads[t].stage = Stage::Over;
            return Turn::Background { call: Call::Sync { file, data_only: false }, last: true };
        }
        let offset = match self.place(t, io, descriptor) {
            Ok(offset) => offset,
            Err(turn) => return turn,
        };
        self.threads[t].stage = after_write(io);
        self.threads[t].moved = io.io_size;
        let call = Call::Write { file, offset, len: io.io_size, direct: io.direct };
        Turn::Background { call, last: !io.dsync }
    }

    /// Waits for half of the writes under way, one at least (`fb_lfsflow_aiowait`).
    pub(super) fn aio_wait(&mut self, t: usize) -> Turn {
        let thread = &mut self.threads[t];
        if thread.stage == Stage::Begin {
            thread.aio_goal =
                thread.aio.len() - (thread.aio.len() / 2).max(1).min(thread.aio.len());
            thread.stage = Stage::Running;
        }
        if thread.aio.len() <= thread.aio_goal { Turn::Over } else { Turn::Own }
    }
}

fn after_write(io: &Io) -> Stage {
    if io.dsync { Stage::Durable } else { Stage::Over }
}
