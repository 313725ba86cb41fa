//! A guest as a process of this machine.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use dovetail_kernel::NoKernel;

use crate::LinuxError;
use crate::init::init;
use crate::watcher::Watcher;

/// Lines of the console that an error shows.
const CONSOLE_LINES: usize = 12;

/// A guest: a kernel, what it costs, and what it is to do.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The kernel's program: user-mode Linux with time travel.
    pub kernel: PathBuf,
    /// Bytes of its memory.
    pub memory: u64,
    /// The source of all that is random in it: UUIDs, names of temporary files, addresses.
    pub seed: u64,
    /// CPU time of a system call in ns.
    pub syscall_ns: u64,
    /// CPU time of handing a request to the drive in ns.
    pub request_ns: u64,
    /// The work, as a shell script. The drive is `/dev/vda`, a folder for a volume
    /// `/mnt/volume`, and `$OUT` the folder `out`. `mark begin` and `mark end` stand around what
    /// is measured, and where the power may be cut.
    pub script: String,
    /// A folder of this machine to which the guest may write.
    pub out: PathBuf,
    /// It is ended when it has done nothing for so long in real time.
    pub silence: Duration,
}

/// A guest that runs; it ends with this value.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// Goes when the guest is ended.
    watcher: Option<Watcher>,
    console: PathBuf,
    /// Listens for the drive's connection.
    pub(crate) drive: UnixListener,
    /// Listens for the clock's connection.
    pub(crate) clock: UnixListener,
    _folder: TempDir,
}

impl Guest {
    /// Starts it.
    pub(crate) fn start(&self) -> Result<Running, LinuxError> {
        if !self.kernel.exists() {
            return Err(NoKernel(self.kernel.display().to_string()).into());
        }
        let folder = tempfile::tempdir().map_err(LinuxError::io("a folder for the guest"))?;
        let path = |name: &str| folder.path().join(name);
        let listen = |name: &str| {
            UnixListener::bind(path(name)).map_err(LinuxError::io("a socket for the guest"))
        };
        let (drive, clock) = (listen("drive")?, listen("clock")?);
        let first = path("init");
        fs::write(&first, init(&self.out, &self.script, self.request_ns))
            .map_err(LinuxError::io("the guest's script"))?;
        fs::set_permissions(&first, PermissionsExt::from_mode(0o755))
            .map_err(LinuxError::io("the guest's script"))?;
        let console = path("console");
        let output = File::create(&console).map_err(LinuxError::io("the guest's console"))?;
        let errors = output.try_clone().map_err(LinuxError::io("the guest's console"))?;
        // without -R the guest's memory lies elsewhere in each run; norandmaps does the same for
        // its processes, whose mappings decide where requests are cut
        // it must not outlive this process, whatever ends that: without a clock it would loop
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "taskset", "--cpu-list"]).arg(processor());
        command.args(["setarch", "-R"]).arg(&self.kernel);
        command.args(["rootfstype=hostfs", "rootflags=/", "ro", "quiet", "norandmaps"]);
        command.args(["con=null", "con0=null,fd:1", "selinux=0", "null_blk.nr_devices=0"]);
        command.arg(format!("mem={}K", self.memory >> 10));
        command.arg(format!("um_seed={}", self.seed));
        command.arg(format!("um_syscall_ns={}", self.syscall_ns));
        command.arg(format!("init={}", first.display()));
        command.arg(format!("uml_dir={}", folder.path().display()));
        command.arg(format!("time-travel=ext:{}", path("clock").display()));
        command.arg(format!("virtio_uml.device={}:2", path("drive").display()));
        command.env_clear().stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
        let child = command.spawn().map_err(LinuxError::io("the guest's kernel"))?;
        let mut running = Running { child, watcher: None, console, drive, clock, _folder: folder };
        let watcher = Watcher::over(running.child.id());
        running.watcher = Some(watcher.map_err(LinuxError::io("a watcher of the guest"))?);
        Ok(running)
    }

    /// The marks that the script has made so far.
    pub(crate) fn marks(&self) -> Vec<String> {
        let text = fs::read_to_string(self.out.join("marks")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The script's own word on how it ended; `None` before.
    pub(crate) fn end(&self) -> Option<String> {
        fs::read_to_string(self.out.join("end")).ok().map(|text| text.trim().to_owned())
    }
}

/// The processor of a guest and its processes: the caller's. All of them take turns, and where each
/// turn woke another processor, a run took six times as long (on a virtual machine with two).
fn processor() -> String {
    rustix::thread::sched_getcpu().to_string()
}

impl Running {
    /// The last lines of its console.
    pub(crate) fn console(&self) -> String {
        let text = fs::read(&self.console).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n")
    }

    /// It has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Running {
    /// A guest whose sockets close before it is killed would loop for ever.
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
