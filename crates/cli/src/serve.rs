//! `dovetail serve`: a drive for programs that speak NBD or vhost-user-blk or as a disk of this
//! machine, and the state of one that is served.

mod status;

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use dovetail_block::BLOCK_SIZE;
use dovetail_ftl::{Overrides, Storage, builtin_profiles};
use dovetail_serve::{Address, Drive, Pace, Server};
use dovetail_time::{Ratio, format_bytes};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::mount::ImageLock;
use crate::{Failure, complain, drive, memory, print};

fn speed(text: &str) -> Result<f64, String> {
    let is_known = |speed: &f64| *speed == 0.0 || (1e-6..=1e3).contains(speed);
    text.parse::<f64>().ok().filter(is_known).ok_or_else(|| {
        "give a number from 0.000001 to 1000: 2 is twice as fast as the drive; or 0 for answers at once".into()
    })
}

/// Serve a drive as a block device for other programs, in real time.
///
/// Clients are all that speak NBD: qemu, nbdcopy, fio's nbd engine, the kernel's nbd; with --vhost
/// a virtual machine, which may see zones and several queues; with --ublk this machine's own Linux.
/// Ends with Ctrl-C or SIGTERM. What a drive file holds is there when it is served again.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("queued").args(["vhost", "ublk"]).multiple(true))]
pub(crate) struct Arguments {
    /// A profile's name or .toml file, for a new drive in memory; or a drive file.
    #[arg(required_unless_present = "status")]
    drive: Option<String>,
    /// Listen on a unix socket at this path; the one of a server that was killed is replaced.
    #[arg(long, value_name = "PATH", help_heading = "Server")]
    unix: Option<PathBuf>,
    /// Listen on a port of TCP, 0 for one that is free; reached from this machine alone if no
    /// address is given.
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = Address::tcp, help_heading = "Server")]
    tcp: Option<Address>,
    /// Let --tcp listen where other machines can reach it. Nobody is asked for a password, and
    /// nothing is encrypted.
    #[arg(long, requires = "tcp", help_heading = "Server")]
    allow_remote: bool,
    /// Let one front end at a time have the drive as a vhost-user-blk device: QEMU or user-mode
    /// Linux, which connect to a unix socket at this path. Drives with zones are served here only.
    #[arg(long, value_name = "PATH", help_heading = "Server")]
    vhost: Option<PathBuf>,
    /// Make the drive a disk of this machine, /dev/ublkbN; without N the first that is free. Takes
    /// root, and the driver ublk of Linux 6.5 or newer.
    #[arg(
        long, value_name = "N", num_args = 0..=1, require_equals = true, help_heading = "Server",
        value_parser = clap::value_parser!(u32).range(0..1 << 20)
    )]
    ublk: Option<Option<u32>>,
    /// Queues of the virtual machine's device, and of the disk.
    #[arg(
        long, value_name = "N", default_value = "1", requires = "queued", help_heading = "Server",
        value_parser = clap::value_parser!(u16).range(1..=16)
    )]
    queues: u16,
    /// Answer so many times faster than the drive; 0 answers at once.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed, help_heading = "Server")]
    speed: f64,
    /// Stay awake for the last 50 us before an answer: less late where processors are free, later
    /// where they are not.
    #[arg(long, help_heading = "Server")]
    busy_wait: bool,
    /// Refuse everything that would change the drive.
    #[arg(long, help_heading = "Server")]
    read_only: bool,
    /// Shrink the capacity of a new drive and keep its ratios.
    #[arg(long, value_name = "RATIO", value_parser = drive::scale, help_heading = "New drive")]
    scale: Option<Ratio>,
    /// Spare space in percent of the capacity.
    #[arg(long, alias = "op", value_name = "PERCENT", help_heading = "New drive")]
    over_provisioning: Option<f64>,
    /// Scheme by which it maps pages.
    #[arg(long, value_name = "SCHEME", help_heading = "New drive")]
    map: Option<String>,
    /// Seed of its faults, if it has any.
    #[arg(long, value_name = "SEED", help_heading = "New drive")]
    seed: Option<u64>,
    /// Show the counters of the drive that is served at this unix socket or port, or as this
    /// /dev/ublkbN: what was written, how worn it is.
    #[arg(
        long, value_name = "SOCKET", help_heading = "Status",
        conflicts_with_all = ["drive", "unix", "tcp", "vhost", "ublk", "speed", "busy_wait", "read_only", "scale", "over_provisioning", "map", "seed"]
    )]
    status: Option<String>,
    /// Show them as JSON.
    #[arg(long, requires = "status", help_heading = "Status")]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match (&arguments.status, &arguments.drive) {
        (Some(socket), _) => status::run(&Address::of(socket), arguments.json),
        (None, Some(drive)) => serve(drive, arguments),
        (None, None) => Err(Failure::Usage("give a drive to serve".into())),
    }
}

fn serve(name: &str, arguments: &Arguments) -> Result<(), Failure> {
    let addresses: Vec<Address> =
        [arguments.unix.clone().map(Address::Unix), arguments.tcp.clone()]
            .into_iter()
            .flatten()
            .collect();
    if addresses.is_empty() && arguments.vhost.is_none() && arguments.ublk.is_none() {
        return Err(Failure::Usage(
            "say where to listen: --unix PATH for a unix socket, --tcp PORT for a port of this machine, \
             --vhost PATH for a virtual machine, --ublk for a disk of this machine"
                .into(),
        ));
    }
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(Failure::failed)?;
    let (drive, _lock) = open(name, arguments)?;
    if let Some(note) = memory::note_if_filled(drive.storage().config()) {
        complain(&note);
    }
    let shown = shown(&drive, arguments);
    let pace = Pace::new(arguments.speed).staying_awake(arguments.busy_wait);
    let mut server = Server::new(drive, pace, arguments.read_only);
    let listening = listen(&mut server, &addresses, &shown, arguments);
    if listening.is_ok()
        && let Some(signal) = signals.forever().next()
    {
        tracing::info!(signal, "a signal ends the server");
    }
    let ended = server.end();
    listening?;
    ended.map_err(|error| Failure::Failed(format!("{name} could not be flushed: {error}")))
}

fn listen(
    server: &mut Server,
    addresses: &[Address],
    shown: &str,
    arguments: &Arguments,
) -> Result<(), Failure> {
    for address in addresses {
        let bound = server.listen(address, arguments.allow_remote).map_err(Failure::failed)?;
        print(&format!("serving {shown} at {}\n", bound.uri()))?;
    }
    if let Some(path) = &arguments.vhost {
        server.listen_for_front_end(path, arguments.queues).map_err(Failure::failed)?;
        print(&format!("serving {shown} to a virtual machine at {}\n", path.display()))?;
    }
    if let Some(number) = arguments.ublk {
        let disk = server.make_disk(number, arguments.queues).map_err(Failure::failed)?;
        print(&format!("serving {shown} as {}\n", disk.display()))?;
    }
    Ok(())
}

fn shown(drive: &Drive, arguments: &Arguments) -> String {
    let config = drive.storage().config();
    let read_only = if arguments.read_only { ", read-only" } else { "" };
    format!("{} ({}{read_only})", config.name, format_bytes(config.user_blocks * BLOCK_SIZE))
}

/// The drive, and the lock on its file.
fn open(name: &str, arguments: &Arguments) -> Result<(Drive, Option<ImageLock>), Failure> {
    let path = Path::new(name);
    if dovetail_image::is_drive(path) {
        return open_file(path, arguments);
    }
    let is_profile = name.ends_with(".toml") || builtin_profiles().any(|known| known == name);
    if path.exists() && !is_profile {
        return Err(Failure::Failed(format!(
            "{name} is no drive file: `dovetail drive make` makes one, whose size a profile says"
        )));
    }
    let profile = drive::load(name)?;
    let overrides = Overrides {
        scale: arguments.scale,
        over_provisioning: arguments.over_provisioning,
        map: arguments.map.clone(),
        seed: arguments.seed.unwrap_or(1),
        ..Overrides::default()
    };
    let config = profile.resolve(&overrides).map_err(Failure::failed)?;
    memory::check(std::iter::once(&config), 1, |_| None)?;
    let storage = Storage::new(config).map_err(Failure::failed)?;
    Ok((Drive::InMemory(Box::new(storage)), None))
}

fn open_file(path: &Path, arguments: &Arguments) -> Result<(Drive, Option<ImageLock>), Failure> {
    let is_changed = arguments.scale.is_some()
        || arguments.over_provisioning.is_some()
        || arguments.map.is_some()
        || arguments.seed.is_some();
    if is_changed {
        return Err(Failure::Usage(format!(
            "{} is a drive file, and its drive stays as it was made: leave out the options of a new drive",
            path.display()
        )));
    }
    let (lock, drive, found) = drive::open_file(path, !arguments.read_only)?;
    tracing::info!(?found, "the drive is switched on");
    Ok((Drive::InFile(Box::new(drive)), Some(lock)))
}
