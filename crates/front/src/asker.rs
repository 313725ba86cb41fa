//! Facts about the asking thread that the kernel's rules about set-id bits need, and FUSE does not
//! pass on: all its groups, and its right to keep such bits. The kernel lists both in /proc.

use std::fs;
use std::path::PathBuf;

use dovetail_vfs::Caller;
use fuser::Request;

use crate::clock;

/// CAP_FSETID of capabilities(7): may keep set-id bits of what it changes, and give a file to any
/// group with setgid.
const FSETID: u32 = 4;

/// A thread that asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    /// Its user and group, those that count for files.
    pub(crate) caller: Caller,
    /// Its number; 0 for what the kernel does on its own, or if it lives in a name space that we
    /// cannot see.
    thread: u32,
}

impl Asker {
    pub(crate) fn of(request: &Request) -> Self {
        let caller = Caller { uid: request.uid(), gid: request.gid(), now: clock::now() };
        Self { caller, thread: request.pid() }
    }

    /// It has CAP_FSETID on this system: not only in a user name space of its own. Where /proc does
    /// not tell, root has it.
    pub(crate) fn keeps_set_id(&self) -> bool {
        let capabilities = self.status().and_then(|status| capabilities(&status));
        capabilities
            .map_or(self.caller.uid == 0, |set| set >> FSETID & 1 != 0 && self.shares_our_users())
    }

    /// The group is one of its own. Where /proc does not tell, it has but one.
    pub(crate) fn is_in_group(&self, gid: u32) -> bool {
        self.caller.gid == gid || self.status().is_some_and(|status| has_group(&status, gid))
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        (self.thread != 0).then(|| PathBuf::from(format!("/proc/{}/{name}", self.thread)))
    }

    fn status(&self) -> Option<String> {
        fs::read(self.file("status")?).ok().map(|text| String::from_utf8_lossy(&text).into_owned())
    }

    fn shares_our_users(&self) -> bool {
        let theirs = self.file("ns/user").and_then(|path| fs::read_link(path).ok());
        theirs.is_some_and(|theirs| {
            fs::read_link("/proc/self/ns/user").is_ok_and(|ours| ours == theirs)
        })
    }
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

fn capabilities(status: &str) -> Option<u64> {
    u64::from_str_radix(field(status, "CapEff")?.trim(), 16).ok()
}

fn has_group(status: &str, gid: u32) -> bool {
    let groups = field(status, "Groups").unwrap_or_default();
    groups.split_whitespace().any(|group| group.parse() == Ok(gid))
}

#[cfg(test)]
impl Asker {
    /// One whom /proc does not know.
    pub(crate) fn unknown(caller: Caller) -> Self {
        Self { caller, thread: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tsh\nGid:\t5\t5\t5\t5\nGroups:\t7 100 \nCapPrm:\t0000000000000010\n\
                          CapEff:\t000001ffffffffef\n";

    #[test]
    fn groups_and_capabilities_are_those_of_proc() {
        assert_eq!(capabilities(STATUS), Some(0x1ff_ffff_ffef));
        assert_eq!([7, 100, 5, 10].map(|gid| has_group(STATUS, gid)), [true, true, false, false]);
        assert_eq!((capabilities("CapEff:\tx\n"), has_group("", 0)), (None, false));
    }

    #[test]
    fn one_who_is_not_in_proc_is_told_by_user_and_group() {
        let asker = |uid| Asker::unknown(Caller { uid, gid: 7, ..Caller::default() });
        assert!(asker(0).keeps_set_id() && !asker(1).keeps_set_id());
        assert!(asker(1).is_in_group(7) && !asker(1).is_in_group(8));
    }

    #[test]
    fn this_thread_is_found() {
        let own = Asker {
            caller: Caller::default(),
            thread: nix::unistd::gettid().as_raw().cast_unsigned(),
        };
        let status = own.status().unwrap();
        assert_eq!(own.keeps_set_id(), capabilities(&status).unwrap() & 0x10 != 0);
    }
}
