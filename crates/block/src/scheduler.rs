//! Hints between commands: where the issuer of commands waits, and which locks it holds.
//!
//! A file system runs a call as plain code and issues commands. A device that carries commands out
//! at once has no use for more. A scheduler that records a call as a plan, to be played in virtual
//! time, must also know where the call waits. Such a scheduler stands before a device; the file
//! system sees one object that is both.

use crate::addr::Lba;
use crate::device::BlockDevice;

/// A lock that several calls of a file system share, by a number that the file system chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(pub u8);

/// An event that one call signals and another awaits, by a number that the file system chooses. Bit
/// 63 is set in those of a host's read-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u64);

/// A step of a call between two commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulingHint {
    /// The call goes on when all its reads so far are done.
    WaitReads,
    /// The call goes on when all its commands so far are done.
    WaitAll,
    /// The call takes a lock.
    Lock {
        /// Number of the lock.
        lock: LockId,
        /// Others may share it.
        shared: bool,
    },
    /// The call releases a lock.
    Unlock {
        /// Number of the lock.
        lock: LockId,
    },
    /// The call signals an event.
    Signal(EventId),
    /// The call goes on when the event has been signalled.
    Await(EventId),
    /// So many pages that the call writes back are on their way until all its commands so far are
    /// done.
    OnTheirWay(usize),
    /// So many pages of the file system are dirty now, without those on their way.
    Dirty(usize),
    /// The call goes on when no more than so many pages are dirty or on their way, or none is on
    /// its way. It comes last in a call, which holds no lock then: pages of later steps and later
    /// calls may be among those that it waits for.
    AwaitRoom(usize),
    /// The file system will not read this block before it has written it again; recovery may until
    /// the next [`Self::Committed`]. Nothing changes for a drive, which learns of it by a discard; a
    /// simulation need not keep the content.
    Dead(Lba),
    /// Recovery begins here from now on. It reads no block that was said to be dead before.
    Committed,
}

/// A device as a file system issues commands to it: with hints for whoever schedules them.
///
/// A device that carries a command out when it is submitted implements it by
/// [`performs_at_once!`](crate::performs_at_once). A wrapper of a scheduler forwards all methods.
pub trait Scheduler: BlockDevice {
    /// Takes a hint.
    fn hint(&mut self, hint: SchedulingHint);

    /// Returns whether this event has been signalled.
    fn is_signalled(&self, event: EventId) -> bool;

    /// Pages that are on their way by [`SchedulingHint::OnTheirWay`].
    fn pages_on_their_way(&self) -> usize;
}

/// Implements [`Scheduler`] for a device that carries a command out when it is submitted: hints
/// change nothing, and an event is signalled as soon as a call has said so.
#[macro_export]
macro_rules! performs_at_once {
    (impl[$($generics:tt)*] $device:ty) => {
        impl<$($generics)*> $crate::Scheduler for $device {
            fn hint(&mut self, _: $crate::SchedulingHint) {}

            fn is_signalled(&self, _: $crate::EventId) -> bool {
                true
            }

            fn pages_on_their_way(&self) -> usize {
                0
            }
        }
    };
    ($device:ty) => {
        $crate::performs_at_once!(impl[] $device);
    };
}

impl<D: Scheduler + ?Sized> Scheduler for &mut D {
    fn hint(&mut self, hint: SchedulingHint) {
        (**self).hint(hint);
    }

    fn is_signalled(&self, event: EventId) -> bool {
        (**self).is_signalled(event)
    }

    fn pages_on_their_way(&self) -> usize {
        (**self).pages_on_their_way()
    }
}

impl<D: Scheduler + ?Sized> Scheduler for Box<D> {
    fn hint(&mut self, hint: SchedulingHint) {
        (**self).hint(hint);
    }

    fn is_signalled(&self, event: EventId) -> bool {
        (**self).is_signalled(event)
    }

    fn pages_on_their_way(&self) -> usize {
        (**self).pages_on_their_way()
    }
}
