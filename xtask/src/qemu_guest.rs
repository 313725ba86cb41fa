//! `cargo xtask qemu-guest`: a real machine's Linux under QEMU on a drive that is served by
//! vhost-user-blk. It fills a volume and goes; then this machine looks at what it left, over NBD.

mod linux;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::mounts::{Workplace, dovetail};
use crate::{install, run};
use linux::Linux;

/// Programs of this machine that guests, or we, run.
const PACKAGES: [(&str, &str); 8] = [
    ("qemu-system-x86", "qemu-system-x86_64"),
    ("busybox", "busybox"),
    ("xz-utils", "xz"),
    ("fio", "fio"),
    ("f2fs-tools", "mkfs.f2fs"),
    ("e2fsprogs", "mkfs.ext4"),
    ("libnbd-bin", "nbdcopy"),
    ("qemu-utils", "qemu-img"),
];
const FILE_SYSTEMS: [&str; 2] = ["ext4", "f2fs"];
const PROFILE: &str = "evo970-500g";
/// 1.8 GiB.
const SCALE: &str = "1/256";
const QUEUES: &str = "2";
/// Longest time of a guest; without KVM it takes three minutes (assumed for a busy machine).
const PATIENCE: Duration = Duration::from_secs(1800);
/// Longest time for a server to begin.
const BEGINNING: Duration = Duration::from_secs(60);

/// The beginning and the end of a guest's script.
const SCRIPT: &str = "export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/mnt OUT=/mnt/out
cd /mnt
exec > $OUT/log 2>&1
set -ex
disk_node=/dev/vda
trap 'status=$?; dmesg > $OUT/dmesg; echo \"ended with status $status\" > $OUT/end' EXIT
@WORK@
dmesg > $OUT/dmesg
trap - EXIT
echo done > $OUT/end
";

/// A program that is ended with this value.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Result<Self, String> {
        let shown = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        child.map(Self).map_err(|error| format!("{shown} cannot be started: {error}"))
    }

    /// Waits until it ends by itself.
    fn end(&mut self, within: Duration) -> Result<(), String> {
        let begun = Instant::now();
        while begun.elapsed() < within {
            match self.0.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("it ended with {status}")),
                Ok(None) => std::thread::sleep(Duration::from_millis(100)),
                Err(error) => return Err(error.to_string()),
            }
        }
        Err(format!("it has not ended within {within:?}"))
    }

    /// Asks it to end, as Ctrl-C does, and waits.
    fn stop(mut self) -> Result<(), String> {
        run(Command::new("kill").arg(self.0.id().to_string()))?;
        self.end(BEGINNING)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// Fails at the first thing that is not as it should be. Arguments are file systems.
pub(crate) fn qemu_guest(arguments: &[String]) -> Result<(), String> {
    install(&PACKAGES)?;
    let program = dovetail()?;
    let kept = program.parent().unwrap_or(Path::new("target")).join("../qemu-guest");
    let linux = Linux::find(&kept)?;
    let place = Workplace::new("qemu-guest")?;
    let root = place.path.join("root.gz");
    linux.make_root(&place.folder("root")?, &root)?;
    for name in FILE_SYSTEMS {
        if !arguments.is_empty() && !arguments.iter().any(|wanted| wanted == name) {
            continue;
        }
        let begun = Instant::now();
        let trial = Trial { name, program: &program, linux: &linux, root: &root, place: &place };
        trial.run()?;
        println!("{name}, Linux {}: done in {} s", linux.version, begun.elapsed().as_secs());
    }
    Ok(())
}

/// One guest and its drive.
struct Trial<'a> {
    name: &'static str,
    program: &'a Path,
    linux: &'a Linux,
    root: &'a Path,
    place: &'a Workplace,
}

impl Trial<'_> {
    fn run(&self) -> Result<(), String> {
        let drive = self.place.path.join(format!("{}.drive", self.name));
        run(self
            .dovetail(&["drive", "make"])
            .arg(&drive)
            .args(["--profile", PROFILE, "--scale", SCALE])
            .stdout(Stdio::null()))?;
        let out = self.place.folder(self.name)?;
        self.fill(&drive, &out)?;
        self.look(&drive, &out)
    }

    fn dovetail(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command.args(arguments);
        command
    }

    /// Lets a guest do its work on the drive.
    fn fill(&self, drive: &Path, out: &Path) -> Result<(), String> {
        let socket = self.place.path.join("vhost");
        let mut serve = self.dovetail(&["serve"]);
        serve.arg(drive).arg("--vhost").arg(&socket).args(["--queues", QUEUES]);
        let serving = Running::start(&mut serve)?;
        wait_for(&socket)?;
        let before = self.status(&socket)?;
        let serial = before["drive"]["serial"].as_str().unwrap_or_default();
        write(&out.join("serial"), serial)?;
        let work = include_str!("qemu_guest/guest.sh");
        let work = work.replace("@FS@", self.name).replace("@QUEUES@", QUEUES);
        let work = work.replace("@DOVETAIL@", "$OUT/dovetail");
        // the guest has a /tmp of its own, where the program may lie here
        fs::copy(self.program, out.join("dovetail")).map_err(|error| error.to_string())?;
        write(&out.join("script"), &SCRIPT.replace("@WORK@", &work))?;
        let console = out.join("console");
        let mut guest = Running::start(&mut self.machine(&socket, out, &console))?;
        let ended = guest.end(PATIENCE);
        let told = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_default();
        if told("end").trim() != "done" {
            let console = told("console");
            return Err(format!(
                "the guest {}, and QEMU: {ended:?}\n{}\n{}",
                told("end").trim(),
                last_lines(&console),
                last_lines(&told("log"))
            ));
        }
        ended.map_err(|error| format!("QEMU: {error}"))?;
        if let Some(line) = told("dmesg").lines().find(|line| line.contains("I/O error")) {
            // the script writes beyond the end once, which the kernel refuses by itself
            return Err(format!("the guest's kernel says: {line}"));
        }
        let requests = &self.status(&socket)?["server"]["requests"];
        for kind in ["read", "write", "flush", "discard", "write_zeroes"] {
            if requests[kind].as_u64().is_none_or(|count| count == 0) {
                return Err(format!("the guest made no request of the kind {kind}: {requests}"));
            }
        }
        if requests["failed"] != 0 {
            return Err(format!("requests failed: {requests}"));
        }
        println!("{}: {requests}", self.name);
        serving.stop()
    }

    fn machine(&self, socket: &Path, out: &Path, console: &Path) -> Command {
        let share = |path: &Path, tag: &str, rest: &str| {
            let path = path.display();
            format!("local,path={path},mount_tag={tag},security_model=none,multidevs=remap{rest}")
        };
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-nodefaults", "-no-reboot", "-display", "none", "-cpu", "max", "-smp", QUEUES]);
        // in software: the same on every machine
        qemu.args(["-accel", "tcg,thread=multi", "-m", "768M"]);
        qemu.args(["-object", "memory-backend-memfd,id=memory,size=768M,share=on"]);
        qemu.args(["-numa", "node,memdev=memory"]);
        qemu.arg("-chardev").arg(format!("socket,id=drive,path={}", socket.display()));
        let device = format!("vhost-user-blk-pci,chardev=drive,num-queues={QUEUES}");
        qemu.args(["-device", &device]);
        qemu.args(["-virtfs", &share(Path::new("/"), "host", ",readonly=on")]);
        qemu.args(["-virtfs", &share(out, "out", "")]);
        qemu.arg("-serial").arg(format!("file:{}", console.display()));
        qemu.arg("-kernel").arg(&self.linux.kernel).arg("-initrd").arg(self.root);
        qemu.args(["-append", "console=ttyS0 panic=-1 quiet"]);
        qemu
    }

    /// Looks at what the guest left, over NBD.
    fn look(&self, drive: &Path, out: &Path) -> Result<(), String> {
        let (socket, image) = (self.place.path.join("nbd"), self.place.path.join("image"));
        let mut serve = self.dovetail(&["serve"]);
        serve.arg(drive).args(["--read-only", "--speed", "0", "--unix"]).arg(&socket);
        let serving = Running::start(&mut serve)?;
        wait_for(&socket)?;
        let uri = format!("nbd+unix:///?socket={}", socket.display());
        let _ = fs::remove_file(&image); // of the trial before
        run(Command::new("nbdcopy").arg(&uri).arg(&image))?;
        run(Command::new("qemu-img")
            .args(["compare", "-q", "-f", "raw", "-F", "raw", &uri])
            .arg(&image))?;
        serving.stop()?;
        self.check(&image)?;
        let tree = self.place.folder(&format!("{}.tree", self.name))?;
        run(self.dovetail(&["cp"]).arg("-r").arg(format!("{}:/", image.display())).arg(&tree))?;
        let sums = format!("sha256sum --quiet -c '{}'", out.join("sums").display());
        run(Command::new("sh").args(["-c", &sums]).current_dir(&tree))
    }

    fn check(&self, image: &Path) -> Result<(), String> {
        let mut check = match self.name {
            "ext4" => Command::new("e2fsck"),
            _ => Command::new("fsck.f2fs"),
        };
        check.args(if self.name == "ext4" { ["-f", "-n"] } else { ["-f", "--dry-run"] });
        let output = check.arg(image).output().map_err(|error| format!("{check:?}: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complains = ["[ASSERT]", "[FIX]", "[Fail]"].iter().any(|mark| said.contains(mark));
        if output.status.success() && !complains { Ok(()) } else { Err(said) }
    }

    fn status(&self, socket: &Path) -> Result<serde_json::Value, String> {
        let mut ask = self.dovetail(&["serve", "--json", "--status"]);
        let output = ask.arg(socket).output().map_err(|error| error.to_string())?;
        serde_json::from_slice(&output.stdout).map_err(|error| format!("no status: {error}"))
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn wait_for(socket: &Path) -> Result<(), String> {
    let begun = Instant::now();
    while !socket.exists() {
        if begun.elapsed() > BEGINNING {
            return Err(format!("nobody listens at {}", socket.display()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
