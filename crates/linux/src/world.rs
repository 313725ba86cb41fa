//! A guest, its clock and its drive: what is due next happens.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use dovetail_block::BlockDevice;
use dovetail_serve::Export;
use dovetail_serve::vhost::{BlockTarget, Done, Kind, Message, Notify, Stage, VhostError};
use dovetail_time::{SimSpan, SimTime};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::LinuxError;
use crate::calendar::Calendar;
use crate::guest::{Guest, Running};

/// Real time between two looks at whether the run is to be ended.
const LOOK: Duration = Duration::from_secs(1);
/// Longest real time in which a guest takes note of an interrupt. Assumed; it is microseconds.
const ACKNOWLEDGED: Duration = Duration::from_secs(30);
/// The disk's serial number in the guest.
const NAME: &str = "dovetail";

/// The mark before what is measured.
pub const BEGIN: &str = "begin";
/// The mark after it.
pub const END: &str = "end";

/// The time at which the power goes. Numbers and times count from the mark [`BEGIN`] on; if they are
/// not reached before the mark [`END`], the power does not go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The drive has taken so many requests.
    Request(u64),
    /// So much virtual time has passed.
    After(SimSpan),
    /// The mark [`END`] has come.
    End,
}

/// A guest that has ended.
#[derive(Debug)]
pub struct Ended<D> {
    /// The drive.
    pub drive: D,
    /// The virtual time.
    pub at: SimTime,
    /// Requests that the drive took.
    pub requests: u64,
    /// The power was cut.
    pub was_cut: bool,
}

/// A run of a guest on a drive.
pub struct World<'a, D> {
    /// The guest.
    pub guest: &'a Guest,
    /// The time at which the power goes, if it does.
    pub cut: Option<Cut>,
    /// Tells that the run is to be ended.
    pub stop: &'a dyn Fn() -> bool,
    /// Is shown each request with the time of its issue, each mark, and the drive after them.
    pub seen: &'a mut dyn FnMut(SimTime, Event<'_>, &D),
}

/// A thing that happened at the drive.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A request is taken now.
    Arrival,
    /// The drive has carried a request out.
    Request(&'a Done),
    /// The guest's script has come to a mark.
    Mark(&'a str),
}

/// A sign of life.
enum Sign {
    Clock,
    Drive,
}

impl<D: BlockDevice> World<'_, D> {
    /// Runs the guest on `drive` until its script ends, or the power is cut.
    ///
    /// # Errors
    /// The guest cannot run, hangs, or its script fails; see [`LinuxError`]. The drive is lost then.
    pub fn run(self, drive: D) -> Result<Ended<D>, LinuxError> {
        let running = self.guest.start()?;
        let mut connected = Connected::wait(self, running, drive)?;
        let was_cut = connected.play()?;
        let Connected { calendar, target, running, .. } = connected;
        drop(running);
        let (at, requests) = (calendar.now(), target.taken());
        Ok(Ended { drive: target.into_export().into_device(), at, requests, was_cut })
    }
}

/// A guest with its connections.
struct Connected<'a, D> {
    world: World<'a, D>,
    running: Running,
    calendar: Calendar,
    drive: Option<UnixStream>,
    target: BlockTarget<D>,
    /// Marks of the script so far.
    marks: usize,
    /// Requests taken and the time at [`BEGIN`]; `None` before it and after [`END`].
    begun: Option<(u64, SimTime)>,
    /// The mark [`END`] has come, at which the power goes.
    cut_at_end: bool,
    ended: bool,
}

impl<'a, D: BlockDevice> Connected<'a, D> {
    /// Waits for the guest's clock.
    fn wait(world: World<'a, D>, mut running: Running, drive: D) -> Result<Self, LinuxError> {
        let limit = Instant::now() + world.guest.silence;
        loop {
            let ready = wait_for(&[running.clock.as_fd()], LOOK)?;
            if ready[0] {
                break;
            }
            if running.has_ended() || Instant::now() > limit {
                return Err(LinuxError::Died { console: running.console() });
            }
            if (world.stop)() {
                return Err(LinuxError::Stopped);
            }
        }
        let clock = running.clock.accept().map_err(LinuxError::io("the guest's clock"))?.0;
        let target = BlockTarget::new(Export::new(drive), NAME, 1, Notify::InBand);
        let calendar = Calendar::new(clock)?;
        Ok(Self {
            world,
            running,
            calendar,
            drive: None,
            target,
            marks: 0,
            begun: None,
            cut_at_end: false,
            ended: false,
        })
    }

    /// Plays until the script or the power ends; returns whether the power did.
    fn play(&mut self) -> Result<bool, LinuxError> {
        loop {
            while !self.calendar.waits() {
                self.hear()?;
                if self.ended || self.is_cut() {
                    return self.outcome();
                }
            }
            let (done, wish) = (self.target.next_done(), self.calendar.wish());
            let next = done.into_iter().chain(wish).min();
            if let (Some(cut), Some(next)) = (self.cut_at(), next)
                && next >= cut
            {
                self.calendar.move_to(cut);
                return Ok(true);
            }
            match (done, wish) {
                (Some(done), wish) if wish.is_none_or(|wish| done <= wish) => {
                    self.complete(done)?;
                }
                (_, Some(wish)) => {
                    if !self.calendar.run(wish, self.horizon())? {
                        return Err(self.died());
                    }
                }
                // nothing is due: only the guest can go on
                _ => self.hear()?,
            }
            if self.ended {
                return self.outcome();
            }
        }
    }

    /// The time up to which the guest may run by itself.
    fn horizon(&self) -> Option<SimTime> {
        self.target.next_done().into_iter().chain(self.cut_at()).min()
    }

    /// The virtual time at which the power goes, if a time was given.
    fn cut_at(&self) -> Option<SimTime> {
        match (self.world.cut, self.begun) {
            (Some(Cut::After(span)), Some((_, begun))) => Some(begun + span),
            _ => None,
        }
    }

    /// Requests that the drive takes before the power goes.
    fn request_limit(&self) -> u64 {
        match (self.world.cut, self.begun) {
            (Some(Cut::Request(number)), Some((begun, _))) => begun.saturating_add(number),
            _ => u64::MAX,
        }
    }

    fn is_cut(&self) -> bool {
        self.cut_at_end
            || self.target.taken() >= self.request_limit()
            || self.cut_at().is_some_and(|at| self.calendar.now() >= at)
    }

    fn outcome(&self) -> Result<bool, LinuxError> {
        if self.is_cut() {
            return Ok(true);
        }
        match self.world.guest.end() {
            Some(end) if end == "done" => Ok(false),
            Some(end) => {
                let console = self.running.console();
                let shown = if console.is_empty() { "" } else { "; its console ends with:\n" };
                Err(LinuxError::Script(format!("{end}{shown}{console}")))
            }
            None => Err(self.died()),
        }
    }

    fn died(&self) -> LinuxError {
        LinuxError::Died { console: self.running.console() }
    }

    /// Waits for a message of the guest, and answers it.
    fn hear(&mut self) -> Result<(), LinuxError> {
        match self.listen()? {
            Sign::Clock => {
                if !self.calendar.answer()? {
                    return Err(self.died());
                }
            }
            Sign::Drive => match &self.drive {
                None => {
                    let drive = self.running.drive.accept();
                    self.drive = Some(drive.map_err(LinuxError::io("the guest's drive"))?.0);
                }
                Some(_) => self.serve()?,
            },
        }
        Ok(())
    }

    /// Waits until the guest says something; the drive first, whose message may change the time.
    fn listen(&mut self) -> Result<Sign, LinuxError> {
        let since = Instant::now();
        loop {
            if (self.world.stop)() {
                return Err(LinuxError::Stopped);
            }
            let drive = match &self.drive {
                Some(drive) => drive.as_fd(),
                None => self.running.drive.as_fd(),
            };
            let ready = wait_for(&[drive, self.calendar.socket().as_fd()], LOOK)?;
            if ready[0] {
                return Ok(Sign::Drive);
            }
            if ready[1] {
                return Ok(Sign::Clock);
            }
            if self.running.has_ended() {
                return Err(self.died());
            }
            let limit = self.world.guest.silence;
            if since.elapsed() > limit {
                let console = self.running.console();
                return Err(LinuxError::Hangs { limit, at: self.calendar.now(), console });
            }
        }
    }

    /// A message to the drive. The guest waits for its reply, and must know by then until when it
    /// may run.
    fn serve(&mut self) -> Result<(), LinuxError> {
        let Some(socket) = &self.drive else { return Ok(()) };
        let Some(message) = Message::receive(socket)? else { return Err(self.died()) };
        let handled = self.target.handle(message)?;
        if let Some(ring) = handled.kicked {
            self.take(ring)?;
            if self.ended || self.is_cut() {
                return Ok(());
            }
            if let Some(horizon) = self.horizon() {
                self.calendar.bound(horizon);
            }
        }
        if let Some(socket) = &self.drive {
            BlockTarget::<D>::reply(socket, handled)?;
        }
        Ok(())
    }

    fn take(&mut self, ring: usize) -> Result<(), LinuxError> {
        let now = self.calendar.now();
        if self.cut_at().is_some_and(|at| now >= at) {
            return Ok(());
        }
        let limit = self.request_limit();
        let (mut asked, seen) = (false, &mut self.world.seen);
        self.target.take(ring, now, limit, |stage, drive| match stage {
            Stage::Arrives => seen(now, Event::Arrival, drive),
            Stage::Done(done) => {
                asked |= done.kind == Kind::Identify;
                seen(now, Event::Request(done), drive);
            }
        })?;
        // whoever asks for the disk's name, only a script that has said so has come to a mark
        let marks = if asked { self.world.guest.marks() } else { Vec::new() };
        for mark in marks.iter().skip(self.marks) {
            match mark.as_str() {
                BEGIN => self.begun = Some((self.target.taken(), now)),
                END => {
                    self.begun = None;
                    self.cut_at_end = self.world.cut == Some(Cut::End);
                }
                _ => self.ended = self.world.guest.end().is_some(),
            }
            (self.world.seen)(now, Event::Mark(mark), self.target.drive());
        }
        self.marks = self.marks.max(marks.len());
        Ok(())
    }

    /// Requests are done: the guest is told, and waits again afterwards.
    fn complete(&mut self, at: SimTime) -> Result<(), LinuxError> {
        self.calendar.move_to(at);
        for ring in self.target.complete(at)? {
            let calendar = &mut self.calendar;
            let silence = self.world.guest.silence.min(ACKNOWLEDGED);
            self.target.call(ring, |reply| acknowledged(reply, calendar, silence))?;
        }
        Ok(())
    }
}

/// Waits until the guest's acknowledgement can be read; meanwhile it may speak to its clock.
fn acknowledged(
    reply: BorrowedFd<'_>,
    calendar: &mut Calendar,
    silence: Duration,
) -> Result<(), VhostError> {
    let broken = |error: LinuxError| VhostError::Io(std::io::Error::other(error.to_string()));
    loop {
        let ready = wait_for(&[calendar.socket().as_fd(), reply], silence).map_err(broken)?;
        if ready[0] {
            if !calendar.answer().map_err(broken)? {
                return Err(VhostError::Io(std::io::ErrorKind::UnexpectedEof.into()));
            }
        } else if ready[1] {
            return Ok(());
        } else {
            return Err(VhostError::Io(std::io::ErrorKind::TimedOut.into()));
        }
    }
}

/// Waits until one of the descriptors can be read, or for so long.
fn wait_for<const N: usize>(
    files: &[BorrowedFd<'_>; N],
    most: Duration,
) -> Result<[bool; N], LinuxError> {
    let mut polled = files.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN));
    let most = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
    match poll(&mut polled, Some(&most)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(LinuxError::io("waiting for the guest")(error.into())),
    }
    Ok(std::array::from_fn(|i| !polled[i].revents().is_empty()))
}
