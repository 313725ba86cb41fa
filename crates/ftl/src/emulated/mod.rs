//! A drive that lives in a file: its flash is there, and switching it on is recovering from a power
//! cut.
//!
//! So an emulated drive can be formatted, mounted, checked and looked at like an image, with
//! everything that only a drive can: remaps, more addresses than room. The file takes as much room
//! as was ever programmed. In memory is what the drive holds. Times are virtual and begin at 0
//! whenever it is switched on.

mod description;
mod file;
mod layout;
mod parts;

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::PoisonError;

use dovetail_block::{
    BlockDevice, Command, Completion, DeviceError, DeviceInfo, RemapWhen, performs_at_once,
};
use dovetail_time::SimTime;

use crate::config::ConfigError;
use crate::profile::{Overrides, Profile};
use crate::storage::Storage;
use description::Description;
use file::{SharedFile, failed};
use layout::{HEADER_BYTES, MAGIC, PREAMBLE, VERSION, u32_at};
use parts::Parts;

pub use parts::SwitchedOn;

/// An error of making or using a drive file.
#[derive(Debug, thiserror::Error)]
pub enum EmulatedError {
    /// The system below.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A file of another kind.
    #[error("it is no drive file")]
    NotADrive,
    /// A drive file of a later version.
    #[error("it is a drive file of version {0}, this program knows version {VERSION}")]
    Version(u32),
    /// The header is damaged.
    #[error("the header of the drive file is damaged")]
    Header,
    /// A header that describes no possible drive.
    #[error("the drive file's description: {0}")]
    Description(String),
    /// No such drive.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A drive with memory that a file does not keep.
    #[error(
        "this drive keeps its remaps in non-volatile memory, which a drive file does not have; use a profile whose \
         remaps go to a log, as femu-32g-log"
    )]
    NonVolatile,
    /// The flash makes no sense.
    #[error("the flash in the drive file: {0}")]
    Flash(String),
}

/// A drive in a file.
#[derive(Debug)]
pub struct EmulatedDrive {
    drive: Storage,
    shared: SharedFile,
    writable: bool,
}

impl EmulatedDrive {
    /// Makes a file at `path` with a new drive in it, in the place of what was there. Its serial
    /// number follows from profile, seed and the name of the file, and stays when that is renamed.
    ///
    /// # Errors
    /// See [`EmulatedError`].
    pub fn create(
        path: &Path,
        profile: &Profile,
        overrides: &Overrides,
    ) -> Result<(), EmulatedError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let description = Description::new(&name, profile, overrides);
        let config = description.config()?;
        Storage::new(config.clone())?;
        let parts = Parts::of(&config)?;
        let text = toml::to_string(&description)
            .map_err(|error| EmulatedError::Description(error.to_string()))?;
        if PREAMBLE + text.len() > HEADER_BYTES as usize {
            return Err(EmulatedError::Description("the profile is longer than 60 KiB".into()));
        }
        let file = File::create(path)?;
        file.set_len(parts.end())?;
        file.write_all_at(&header(&text), 0)?;
        Ok(file.sync_all()?)
    }

    /// Tells whether the file at `path` is a drive file.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn is_one(path: &Path) -> io::Result<bool> {
        let mut magic = Vec::new();
        File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut magic)?;
        Ok(magic == MAGIC)
    }

    /// Switches on the drive in the file at `path`. Nobody else may have it open to write
    /// meanwhile; that is the caller's to see to.
    ///
    /// # Errors
    /// See [`EmulatedError`].
    pub fn open(path: &Path, writable: bool) -> Result<(Self, SwitchedOn), EmulatedError> {
        let file = OpenOptions::new().read(true).write(writable).open(path)?;
        let config = read_header(&file)?.config()?.checked()?;
        let parts = Parts::of(&config)?;
        if (&file).seek(io::SeekFrom::End(0))? < parts.end() {
            return Err(EmulatedError::Flash("the file is shorter than its flash".into()));
        }
        let shared = SharedFile::new(file);
        let (drive, found) = parts.switch_on(config, &shared, writable)?;
        Ok((Self { drive, shared, writable }, found))
    }

    /// The drive itself: what it has done since it was switched on.
    pub fn drive(&self) -> &Storage {
        &self.drive
    }

    fn check_writable(&self, command: &Command<'_>) -> Result<(), DeviceError> {
        match command {
            Command::Read { .. } | Command::Flush | Command::Query(_) => Ok(()),
            Command::Devirtualize(asked) if !asked.is_durable_change() => Ok(()),
            _ if self.writable => Ok(()),
            _ => Err(DeviceError::NotWritable),
        }
    }

    fn check_file(&self) -> Result<(), DeviceError> {
        let message = |why| DeviceError::Host(format!("the drive file cannot be written: {why}"));
        failed(&self.shared.failure).map_or(Ok(()), |why| Err(message(why)))
    }

    fn sync(&self) -> Result<(), DeviceError> {
        if self.writable
            && let Err(error) = self.shared.file.sync_data()
        {
            // the system tells it once; what it could not write is gone
            self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
        self.check_file()
    }

    /// Tells whether what the command did must be durable when it completes.
    fn is_durable(&self, command: &Command<'_>) -> bool {
        match command {
            Command::Flush
            | Command::Write { fua: true, .. }
            | Command::Append { fua: true, .. }
            | Command::Zone { .. } => true,
            Command::Write { .. } | Command::Append { .. } => self.drive.config().buffer_pages == 0,
            Command::Remap { when, .. } => !matches!(when, RemapWhen::Held(_)),
            Command::Devirtualize(asked) => asked.is_durable_change(),
            _ => false,
        }
    }
}

fn header(text: &str) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend(VERSION.to_le_bytes());
    header.extend(crc32c::crc32c(text.as_bytes()).to_le_bytes());
    header.extend((text.len() as u32).to_le_bytes());
    header.extend(text.as_bytes());
    header
}

fn read_header(file: &File) -> Result<Description, EmulatedError> {
    let mut preamble = [0; PREAMBLE];
    let no_drive = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => EmulatedError::NotADrive,
        _ => error.into(),
    };
    file.read_exact_at(&mut preamble, 0).map_err(no_drive)?;
    if preamble[..MAGIC.len()] != MAGIC {
        return Err(EmulatedError::NotADrive);
    }
    match u32_at(&preamble, 8) {
        VERSION => {}
        version => return Err(EmulatedError::Version(version)),
    }
    let len = u64::from(u32_at(&preamble, 16)).min(HEADER_BYTES - PREAMBLE as u64);
    let mut text = vec![0; len as usize];
    file.read_exact_at(&mut text, PREAMBLE as u64).map_err(|_| EmulatedError::Header)?;
    if crc32c::crc32c(&text) != u32_at(&preamble, 12) {
        return Err(EmulatedError::Header);
    }
    let text = String::from_utf8(text).map_err(|_| EmulatedError::Header)?;
    toml::from_str(&text).map_err(|error| EmulatedError::Description(error.message().into()))
}

impl BlockDevice for EmulatedDrive {
    fn info(&self) -> DeviceInfo {
        self.drive.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        self.check_writable(&command)?;
        let durable = self.is_durable(&command);
        let completion = match command {
            Command::Flush if !self.writable => return Ok(Completion::at(at)),
            command => self.drive.submit(at, command)?,
        };
        if durable {
            self.sync()?;
        } else {
            self.check_file()?;
        }
        Ok(completion)
    }
}

performs_at_once!(EmulatedDrive);
