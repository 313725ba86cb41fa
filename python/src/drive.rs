//! A drive to experiment with.

use std::sync::{Mutex, MutexGuard, PoisonError};

use dovetail_block::{
    BlockDevice, BlockRange, Command, Data, Hints, Lba, Pattern, SectorRange, StreamId,
};
use dovetail_ftl::{Overrides, Profile, Storage};
use dovetail_serve::{DriveStatus, DriveWork};
use dovetail_time::{Ratio, SimTime, parse_bytes};
use pyo3::prelude::*;

use crate::errors::{UsageError, failed, of_profile, refused};

/// A simulated drive in virtual time, for one thread after the other.
#[pyclass(frozen, module = "dovetail._dovetail")]
pub(crate) struct Drive {
    blocks: u64,
    state: Mutex<State>,
}

/// Blocks of a list's commands that are performed between two looks at signals (assumed): some
/// milliseconds. A command counts as a block more than it has.
const BLOCKS: u64 = 16_384;
/// The latest time at which a command may be submitted (assumed): half of what the clock counts.
const LAST_NS: u64 = 1 << 63;

struct State {
    drive: Storage,
    /// Completion of the last command.
    now: SimTime,
    /// Content of the next block that is written.
    next: u64,
}

impl State {
    fn range(&self, block: u64, count: u64) -> PyResult<BlockRange> {
        let blocks = self.drive.info().blocks;
        if count == 0 {
            return Err(refused("a command has at least one block"));
        }
        match block.checked_add(count).filter(|end| *end <= blocks) {
            Some(_) => Ok(BlockRange::new(Lba(block), count)),
            None => Err(refused(format!(
                "blocks {block} to {} are not on the drive, which has {blocks}",
                block.saturating_add(count) - 1
            ))),
        }
    }

    fn submit(&mut self, at: Option<u64>, command: Command<'_>) -> PyResult<u64> {
        if let Some(at) = at.filter(|at| *at > LAST_NS) {
            return Err(refused(format!(
                "at_ns is {at}: the latest is 2**63 nanoseconds (292 years)"
            )));
        }
        let at = at.map_or(self.now, SimTime::from_ns);
        let done = self.drive.submit(at, command).map_err(failed)?.done;
        self.now = self.now.max(done);
        Ok(done.as_ns())
    }
}

/// Kind, block, count and time, which may be left out.
type Given = (String, u64, u64, Option<u64>);

impl State {
    fn read(&mut self, block: u64, count: u64, at: Option<u64>) -> PyResult<u64> {
        let range = self.range(block, count)?;
        self.submit(at, Command::Read { range, into: None })
    }

    fn write(
        &mut self,
        block: u64,
        count: u64,
        at: Option<u64>,
        (fua, stream): (bool, u8),
    ) -> PyResult<u64> {
        let range = self.range(block, count)?;
        let data = Data::Patterns(Pattern::new(self.next));
        self.next += count;
        let hints = Hints { stream: StreamId(stream), ..Hints::default() };
        self.submit(at, Command::Write { range, data, hints, fua })
    }

    fn discard(&mut self, block: u64, count: u64, at: Option<u64>) -> PyResult<u64> {
        let ranges = [SectorRange::from(self.range(block, count)?)];
        self.submit(at, Command::Discard { ranges: &ranges })
    }

    /// A command of a list.
    fn one(&mut self, (kind, block, count, at): &Given) -> PyResult<u64> {
        match kind.as_str() {
            "read" => self.read(*block, *count, *at),
            "write" => self.write(*block, *count, *at, (false, 0)),
            "flush" => self.submit(*at, Command::Flush),
            "discard" => self.discard(*block, *count, *at),
            _ => Err(refused(format!("\"{kind}\" is none of read, write, flush, discard"))),
        }
    }
}

impl Drive {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the drive, and waits for it, without Python's lock.
    fn apart<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut State) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| work(&mut self.state()))
    }
}

/// Commands of a list as Python has them.
fn given(commands: &[Bound<'_, PyAny>]) -> PyResult<Vec<Given>> {
    let one = |(number, command): (usize, &Bound<'_, PyAny>)| {
        command.extract().map_err(|_| {
            refused(format!(
                "command {number} is {}: give a tuple (kind, block, count, at_ns), its numbers \
                 whole and from 0 on; at_ns may be None",
                command.repr().map(|shown| shown.to_string()).unwrap_or_default()
            ))
        })
    };
    commands.iter().enumerate().map(one).collect()
}

/// An error with the number of its command.
fn numbered(py: Python<'_>, number: usize, error: &PyErr) -> PyErr {
    let text = format!("command {number}: {}", error.value(py));
    match error.is_instance_of::<UsageError>(py) {
        true => refused(text),
        false => failed(text),
    }
}

/// The end of the commands from `first` on that are performed in one go.
fn end_of_part(commands: &[Given], first: usize) -> usize {
    let (mut blocks, mut end) = (0, first);
    while end < commands.len() && blocks < BLOCKS {
        blocks = commands[end].2.saturating_add(blocks).saturating_add(1);
        end += 1;
    }
    end
}

#[pymethods]
impl Drive {
    /// A new drive: the text of a profile, or its name or file.
    #[new]
    #[pyo3(signature = (profile, text=None, *, scale=None, op=None, gc=None, map=None, cache=None, cache_size=None, buffer=None, seed=1))]
    #[allow(clippy::too_many_arguments, reason = "they are Python's keywords")]
    fn new(
        profile: &str,
        text: Option<&str>,
        scale: Option<&str>,
        op: Option<&str>,
        gc: Option<String>,
        map: Option<String>,
        cache: Option<String>,
        cache_size: Option<&str>,
        buffer: Option<&str>,
        seed: u64,
    ) -> PyResult<Self> {
        let profile = match text {
            Some(text) => Profile::parse(text, profile).map_err(refused),
            None => Profile::load(profile).map_err(of_profile),
        }?;
        let ratio =
            |text: &str| text.parse::<Ratio>().map_err(|error| refused(format!("scale: {error}")));
        let bytes = |name: &str, text: Option<&str>| {
            let named = |error| refused(format!("{name}: {error}"));
            text.map(|text| parse_bytes(text).map_err(named)).transpose()
        };
        let percent =
            |text: &str| text.parse().map_err(|_| refused("op: give a number of percent"));
        let overrides = Overrides {
            scale: scale.map(ratio).transpose()?,
            over_provisioning: op.map(percent).transpose()?,
            gc,
            map,
            cache,
            cache_size: bytes("cache_size", cache_size)?,
            buffer: bytes("buffer", buffer)?,
            seed,
            ..Overrides::default()
        };
        // without the overrides it has been resolved already
        let config = profile.resolve(&overrides).map_err(refused)?;
        let drive = Storage::new(config).map_err(failed)?;
        let blocks = drive.info().blocks;
        Ok(Self { blocks, state: Mutex::new(State { drive, now: SimTime::ZERO, next: 0 }) })
    }

    /// Addresses of the host, in blocks of 4 KiB.
    #[getter]
    fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Virtual time in nanoseconds at which the last command completed.
    #[getter]
    fn now_ns(&self, py: Python<'_>) -> PyResult<u64> {
        self.apart(py, |state| Ok(state.now.as_ns()))
    }

    #[pyo3(signature = (block, count=1, *, at_ns=None))]
    fn read(&self, py: Python<'_>, block: u64, count: u64, at_ns: Option<u64>) -> PyResult<u64> {
        self.apart(py, |state| state.read(block, count, at_ns))
    }

    #[pyo3(signature = (block, count=1, *, at_ns=None, fua=false, stream=0))]
    fn write(
        &self,
        py: Python<'_>,
        block: u64,
        count: u64,
        at_ns: Option<u64>,
        fua: bool,
        stream: u8,
    ) -> PyResult<u64> {
        self.apart(py, |state| state.write(block, count, at_ns, (fua, stream)))
    }

    #[pyo3(signature = (*, at_ns=None))]
    fn flush(&self, py: Python<'_>, at_ns: Option<u64>) -> PyResult<u64> {
        self.apart(py, |state| state.submit(at_ns, Command::Flush))
    }

    #[pyo3(signature = (block, count=1, *, at_ns=None))]
    fn discard(&self, py: Python<'_>, block: u64, count: u64, at_ns: Option<u64>) -> PyResult<u64> {
        self.apart(py, |state| state.discard(block, count, at_ns))
    }

    /// Commands one after the other: kind, block, count and time, of which the last may be None.
    fn submit_all(&self, py: Python<'_>, commands: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<u64>> {
        let commands = given(&commands)?;
        let mut all = Vec::with_capacity(commands.len());
        while all.len() < commands.len() {
            py.check_signals()?;
            let first = all.len();
            let part = &commands[first..end_of_part(&commands, first)];
            let done = self.apart(py, |state| {
                let one = |(number, given)| state.one(given).map_err(|error| (number, error));
                Ok((first..).zip(part).map(one).collect::<Result<Vec<_>, _>>())
            })?;
            all.extend(done.map_err(|(number, error)| numbered(py, number, &error))?);
        }
        Ok(all)
    }

    /// State, and work since it was made, as JSON.
    fn status(&self, py: Python<'_>) -> PyResult<String> {
        self.apart(py, |state| {
            let all = (DriveStatus::of(&state.drive), DriveWork::of(&state.drive));
            serde_json::to_string(&all).map_err(failed)
        })
    }
}
