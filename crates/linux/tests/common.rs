//! A drive, and guests on it.

use std::path::Path;
use std::time::Duration;

use dovetail_block::{BlockDevice, Command, Completion, DeviceError, DeviceInfo};
use dovetail_ftl::{Overrides, Profile, Storage};
use dovetail_linux::{Cut, Ended, Event, Guest, LinuxError, World, default_kernel};
use dovetail_time::SimTime;

/// A drive of a profile at a scale.
pub(crate) fn drive(profile: &str, scale: &str) -> Storage {
    let overrides = Overrides { scale: Some(scale.parse().unwrap()), ..Overrides::default() };
    Storage::new(Profile::load(profile).unwrap().resolve(&overrides).unwrap()).unwrap()
}

/// A guest with a script, that may write to a folder; `None` if there is no kernel.
pub(crate) fn guest(script: &str, out: &Path) -> Option<Guest> {
    let kernel = match default_kernel() {
        Ok(kernel) => kernel,
        Err(error) => {
            println!("linux: SKIPPED: {error}");
            return None;
        }
    };
    Some(Guest {
        kernel,
        memory: 256 << 20,
        seed: 1,
        syscall_ns: 1000,
        request_ns: 2000,
        script: format!("exec > $OUT/log 2>&1\n{script}"),
        out: out.into(),
        silence: Duration::from_secs(120),
    })
}

/// A request: time, kind, first sector, bytes, end.
pub(crate) type Line = (u64, String, u64, u64, u64);

/// Runs a guest, and lists what it asked the drive for.
pub(crate) fn run<D: BlockDevice>(
    guest: &Guest,
    drive: D,
    cut: Option<Cut>,
) -> Result<(Ended<D>, Vec<Line>), LinuxError> {
    let mut lines = Vec::new();
    let seen = &mut |at: SimTime, event: Event<'_>, _: &D| {
        let Event::Request(done) = event else { return };
        let kind = format!("{:?}", done.kind);
        lines.push((at.as_ns(), kind, done.sector, done.bytes, done.at.as_ns()));
    };
    let ended = World { guest, cut, stop: &|| false, seen }.run(drive)?;
    Ok((ended, lines))
}

/// The text of a file that the guest wrote to its folder.
pub(crate) fn text(out: &Path, name: &str) -> String {
    std::fs::read_to_string(out.join(name)).unwrap_or_default()
}

/// A drive that fails every read.
pub(crate) struct Unreadable(pub(crate) Storage);

impl BlockDevice for Unreadable {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Read { range, .. } => Err(DeviceError::Unreadable(range.start)),
            command => self.0.submit(at, command),
        }
    }
}
