//! Flowops by their names in Filebench, and the attributes that each takes.

use dovetail_time::SimSpan;

use super::error::PersonalityError;
use super::model::{Action, Flowop, Io, Measure, SetId, SetSpec};
use super::schema::{self, Thread};
use super::values::Values;

/// Every flowop there is, for the message about one that is not.
const NAMES: &str = "createfile, openfile, closefile, deletefile, statfile, fsync, fsyncset, read, readwholefile, write, \
writewholefile, appendfile, appendfilerand, aiowrite, aiowait, hog, delay, semblock, sempost, eventlimit, iopslimit, \
opslimit, bwlimit, finishoncount, finishonbytes";

/// Filebench's `THREADFLOW_MAXFD`.
const MOST_FDS: u64 = 128;
/// Assumed: one turn of Filebench's `hog` loop is one store, about a nanosecond on today's
/// processors.
const HOG_LOOP_NS: u64 = 1;
const MOST_IO: u64 = 1 << 30;
const MOST_VALUE: u64 = 1 << 40;
/// Direct I/O is in whole blocks.
const BLOCK: u64 = 4096;

/// The flowop's attributes on their way to an [`Action`].
struct Attributes<'a> {
    raw: &'a schema::Flowop,
    key: String,
    thread: &'a Thread,
    sets: &'a [SetSpec],
    values: Values<'a>,
}

/// Resolves one flowop; `key` names its thread.
pub(super) fn resolve(
    key: &str,
    raw: &schema::Flowop,
    thread: &Thread,
    sets: &[SetSpec],
    values: Values<'_>,
) -> Result<Flowop, PersonalityError> {
    let attributes = Attributes { raw, key: format!("{key}.{}", raw.name), thread, sets, values };
    let iters = values.number(&attributes.at("iters"), raw.iters.as_ref(), 1, (1, MOST_VALUE))?;
    Ok(Flowop { name: raw.name.clone(), iters, action: attributes.action()? })
}

impl Attributes<'_> {
    fn at(&self, key: &str) -> String {
        format!("{}.{key}", self.key)
    }

    fn action(&self) -> Result<Action, PersonalityError> {
        Ok(match self.raw.flowop.as_str() {
            "createfile" => {
                Action::Create { set: self.writable(self.needed_set()?)?, fd: self.fd()? }
            }
            "openfile" => Action::Open { set: self.set()?, fd: self.fd()?, rotate: self.rotate()? },
            "closefile" => Action::Close { fd: self.fd()? },
            "deletefile" => Action::Delete { set: self.writable_set()?, fd: self.fd()? },
            "statfile" => Action::Stat { set: self.set()?, fd: self.fd()? },
            "fsync" => Action::Sync { fd: self.fd()? },
            "fsyncset" => Action::SyncSet { set: self.needed_set()? },
            "read" => Action::Read(self.io(1)?),
            "readwholefile" => Action::ReadWhole(self.io(0)?),
            "write" => Action::Write(self.writing(1)?),
            "writewholefile" => Action::WriteWhole { io: self.writing(0)?, source: self.source()? },
            "appendfile" => Action::Append(self.append(false)?),
            "appendfilerand" => Action::Append(self.append(true)?),
            "aiowrite" => Action::AioWrite(self.aio()?),
            "aiowait" => Action::AioWait,
            "hog" => Action::Pause(SimSpan::from_ns(self.value(MOST_VALUE)? * HOG_LOOP_NS)),
            "delay" => Action::Pause(SimSpan::from_ms(self.value(1 << 30)? * 1000)),
            "semblock" => {
                Action::SemBlock { value: self.value(MOST_VALUE)?, highwater: self.highwater()? }
            }
            "sempost" => self.post()?,
            "eventlimit" => Action::EventLimit,
            "iopslimit" => Action::Limit { what: Measure::Transfers, target: self.target()? },
            "opslimit" => Action::Limit { what: Measure::Operations, target: self.target()? },
            "bwlimit" => Action::Limit { what: Measure::Bytes, target: self.target()? },
            "finishoncount" => self.finish(Measure::Operations)?,
            "finishonbytes" => self.finish(Measure::Bytes)?,
            other => {
                return Err(self.values.wrong(
                    &self.at("flowop"),
                    other,
                    format!("one of {NAMES}"),
                ));
            }
        })
    }

    fn set(&self) -> Result<Option<SetId>, PersonalityError> {
        let Some(name) = &self.raw.filesetname else { return Ok(None) };
        let known = || self.sets.iter().map(|set| set.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = self.sets.iter().position(|set| set.name == *name);
        found.map(Some).ok_or_else(|| self.values.wrong(&self.at("filesetname"), name, known()))
    }

    fn needed_set(&self) -> Result<SetId, PersonalityError> {
        self.set()?.ok_or_else(|| self.values.missing(&self.at("filesetname")))
    }

    fn writable(&self, set: SetId) -> Result<SetId, PersonalityError> {
        if self.sets[set].read_only {
            let allowed = "a fileset without readonly, as this flowop changes it";
            return Err(self.values.wrong(&self.at("filesetname"), &self.sets[set].name, allowed));
        }
        Ok(set)
    }

    fn writable_set(&self) -> Result<Option<SetId>, PersonalityError> {
        self.set()?.map(|set| self.writable(set)).transpose()
    }

    fn fd(&self) -> Result<u32, PersonalityError> {
        let fd = self.values.number(&self.at("fd"), self.raw.fd.as_ref(), 0, (0, MOST_FDS - 1))?;
        Ok(fd as u32)
    }

    fn source(&self) -> Result<u32, PersonalityError> {
        let fd =
            self.values.number(&self.at("srcfd"), self.raw.srcfd.as_ref(), 0, (0, MOST_FDS - 1))?;
        Ok(fd as u32)
    }

    fn rotate(&self) -> Result<bool, PersonalityError> {
        self.values.flag(&self.at("opennext"), self.raw.opennext.as_ref())
    }

    fn io(&self, least: u64) -> Result<Io, PersonalityError> {
        let (raw, values) = (self.raw, self.values);
        let io = Io {
            set: self.set()?,
            fd: self.fd()?,
            rotate: self.rotate()?,
            io_size: values.needed(&self.at("iosize"), raw.iosize.as_ref(), (least, MOST_IO))?,
            working_set: values.number(
                &self.at("workingset"),
                raw.workingset.as_ref(),
                0,
                (0, 1 << 50),
            )?,
            random: values.flag(&self.at("random"), raw.random.as_ref())?,
            direct: values.flag(&self.at("directio"), raw.directio.as_ref())?,
            dsync: values.flag(&self.at("dsync"), raw.dsync.as_ref())?,
        };
        if io.direct && (io.io_size == 0 || !io.io_size.is_multiple_of(BLOCK)) {
            let allowed = "a multiple of 4096, as directio is set";
            return Err(values.wrong(&self.at("iosize"), &io.io_size.to_string(), allowed));
        }
        Ok(io)
    }

    fn writing(&self, least: u64) -> Result<Io, PersonalityError> {
        let io = self.io(least)?;
        io.set.map(|set| self.writable(set)).transpose()?;
        Ok(io)
    }

    fn append(&self, random: bool) -> Result<Io, PersonalityError> {
        let io = self.writing(1)?;
        if io.direct {
            let allowed = "false: an append does not start at a whole block";
            return Err(self.values.wrong(&self.at("directio"), "true", allowed));
        }
        Ok(Io { random, ..io })
    }

    fn aio(&self) -> Result<Io, PersonalityError> {
        let io = self.writing(1)?;
        if !io.random {
            return Err(self.values.wrong(
                &self.at("random"),
                "false",
                "true: aiowrite is random only",
            ));
        }
        Ok(io)
    }

    fn value(&self, most: u64) -> Result<u64, PersonalityError> {
        self.values.needed(&self.at("value"), self.raw.value.as_ref(), (0, most))
    }

    fn highwater(&self) -> Result<u64, PersonalityError> {
        self.values.number(&self.at("highwater"), self.raw.highwater.as_ref(), 1, (0, MOST_VALUE))
    }

    fn post(&self) -> Result<Action, PersonalityError> {
        let target =
            self.raw.target.clone().ok_or_else(|| self.values.missing(&self.at("target")))?;
        let blocking = self.values.flag(&self.at("blocking"), self.raw.blocking.as_ref())?;
        Ok(Action::SemPost { value: self.value(MOST_VALUE)?, target, blocking })
    }

    /// The flowop of the same thread that a limit looks at; none: all of them.
    fn target(&self) -> Result<Option<usize>, PersonalityError> {
        let Some(name) = &self.raw.target else { return Ok(None) };
        let found = self.thread.flowops.iter().position(|flowop| flowop.name == *name);
        let allowed = "the name of a flowop of the same thread";
        found.map(Some).ok_or_else(|| self.values.wrong(&self.at("target"), name, allowed))
    }

    fn finish(&self, what: Measure) -> Result<Action, PersonalityError> {
        Ok(Action::Finish { what, value: self.value(u64::MAX)?, target: self.target()? })
    }
}
