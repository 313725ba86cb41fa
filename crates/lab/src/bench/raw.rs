//! A raw drive in the place of a file system: one file, which is the drive. Whatever its name in
//! `/dev`, calls on it are commands to the drive, each waiting for its own alone.

use dovetail_block::{
    BLOCK_SIZE, BlockRange, Command, Content, Data, DeviceError, Hints, Lba, Lifetime, Scheduler,
    SchedulingHint, SectorRange,
};
use dovetail_time::SimTime;
use dovetail_vfs::{
    Attr, Caller, Count, DirEntry, Error, Fallocate, FileSystem, Ino, Moment, NewNode, RenameFlags,
    SetAttr, Simulated, StatFs, XattrFlags,
};

/// The name in stacks and results.
pub(super) const NONE: &str = "none";

const ROOT: Ino = Ino(1);
/// `/dev`.
const FOLDER: Ino = Ino(2);
const DRIVE: Ino = Ino(3);

/// The drive as the one file that there is.
#[derive(Debug)]
pub(super) struct RawDrive<D> {
    device: D,
    now: SimTime,
    /// The hint of what is written from now on.
    lifetime: Lifetime,
}

impl<D: Scheduler> RawDrive<D> {
    pub(super) const fn new(device: D) -> Self {
        Self { device, now: SimTime::ZERO, lifetime: Lifetime::NotSet }
    }

    fn bytes(&self) -> u64 {
        self.device.info().capacity() * BLOCK_SIZE
    }

    fn attr(&self, ino: Ino) -> Attr {
        let (mode, size) = match ino {
            DRIVE => (0o060_660, self.bytes()),
            _ => (0o040_755, 0),
        };
        Attr { ino, mode, links: 1, size, ..Attr::default() }
    }

    /// Issues a command of a call, which goes on when it is done.
    fn perform(&mut self, command: Command<'_>) -> Result<(), Error> {
        self.device.submit(self.now, command).map_err(refused)?;
        self.device.hint(SchedulingHint::WaitAll);
        Ok(())
    }
}

fn refused(error: DeviceError) -> Error {
    let hint = match error {
        DeviceError::Zone(_) => {
            "; a job on a raw drive with zones writes each zone once, in order (rw=write) and no further than the \
             zone's capacity, which can be below its size: for others use a drive without zones, or files on the stack \
             f2fs-zoned"
        }
        _ => "",
    };
    Error::Io(format!("{error}{hint}"))
}

fn no<T>(what: &str) -> Result<T, Error> {
    Err(Error::Unsupported(format!("{what} on a raw drive")))
}

/// A range of bytes as blocks.
fn whole_blocks((offset, len): (u64, u64)) -> Result<BlockRange, Error> {
    if offset.is_multiple_of(BLOCK_SIZE) && len.is_multiple_of(BLOCK_SIZE) {
        return Ok(BlockRange::new(Lba(offset / BLOCK_SIZE), len / BLOCK_SIZE));
    }
    Err(Error::Invalid("a raw drive takes whole blocks of 4096 bytes"))
}

impl<D: Scheduler> Simulated for RawDrive<D> {
    fn returned_at(&self) -> SimTime {
        self.now
    }

    fn write_pages(
        &mut self,
        _: &Caller,
        _: Ino,
        range: (u64, u64),
        contents: &[Content],
        _direct: bool,
    ) -> Result<(), Error> {
        let (range, data) = (whole_blocks(range)?, Data::Blocks(contents));
        let hints = Hints { lifetime: self.lifetime, ..Hints::default() };
        self.perform(Command::Write { range, data, hints, fua: false })
    }

    fn set_lifetime(&mut self, _: Ino, lifetime: Lifetime) {
        self.lifetime = lifetime;
    }

    fn read_pages(
        &mut self,
        _: Ino,
        first: u64,
        into: &mut [Content],
        _direct: bool,
    ) -> Result<(), Error> {
        let range = BlockRange::new(Lba(first), into.len() as u64);
        self.perform(Command::Read { range, into: Some(into) })
    }

    fn is_cached(&self, _: Ino, _: u64) -> bool {
        false
    }

    fn drop_cache(&mut self, _: Ino) {}

    fn written(&self) -> Vec<Count> {
        Vec::new()
    }

    fn events(&self) -> Vec<Count> {
        Vec::new()
    }

    fn pieces(&mut self, _: Ino) -> Result<u64, Error> {
        Ok(1)
    }

    fn occupancy(&self, _: usize) -> Vec<f64> {
        Vec::new()
    }
}

impl<D: Scheduler> FileSystem for RawDrive<D> {
    fn root(&self) -> Ino {
        ROOT
    }

    fn statfs(&mut self) -> Result<StatFs, Error> {
        let blocks = self.device.info().capacity();
        Ok(StatFs { blocks, files: 1, ..StatFs::default() })
    }

    fn lookup(&mut self, dir: Ino, name: &[u8]) -> Result<Attr, Error> {
        match dir {
            ROOT if name == b"dev" => Ok(self.attr(FOLDER)),
            FOLDER => Ok(self.attr(DRIVE)),
            _ => Err(Error::NotFound),
        }
    }

    fn getattr(&mut self, ino: Ino) -> Result<Attr, Error> {
        Ok(self.attr(ino))
    }

    fn hold(&mut self, _: Ino) {}

    fn forget(&mut self, _: Ino, _: u64) -> Result<(), Error> {
        Ok(())
    }

    /// A punched hole is a discard.
    fn fallocate(
        &mut self,
        _: &Caller,
        _: Ino,
        how: Fallocate,
        offset: u64,
        len: u64,
    ) -> Result<(), Error> {
        if how != Fallocate::PunchHole {
            return no("to reserve room");
        }
        let range = SectorRange::from(whole_blocks((offset, len))?);
        self.perform(Command::Discard { ranges: &[range] })
    }

    fn fsync(&mut self, _: Ino, _data_only: bool) -> Result<(), Error> {
        self.perform(Command::Flush)
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.perform(Command::Flush)
    }

    fn next_wake(&self) -> Option<SimTime> {
        None
    }

    fn set_now(&mut self, now: Moment) {
        self.now = now.time;
    }

    fn wake(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn unmount(self: Box<Self>) -> Result<(), Error> {
        Ok(())
    }

    fn setattr(&mut self, _: &Caller, _: Ino, _: &SetAttr) -> Result<Attr, Error> {
        no("to change attributes")
    }

    fn readlink(&mut self, _: Ino) -> Result<Vec<u8>, Error> {
        no("to read a link")
    }

    fn create(&mut self, _: &Caller, _: Ino, _: &[u8], _: &NewNode) -> Result<Attr, Error> {
        no("to make a file")
    }

    fn symlink(&mut self, _: &Caller, _: Ino, _: &[u8], _: &[u8]) -> Result<Attr, Error> {
        no("to make a link")
    }

    fn link(&mut self, _: &Caller, _: Ino, _: Ino, _: &[u8]) -> Result<Attr, Error> {
        no("to make a link")
    }

    fn unlink(&mut self, _: &Caller, _: Ino, _: &[u8]) -> Result<(), Error> {
        no("to remove a file")
    }

    fn rmdir(&mut self, _: &Caller, _: Ino, _: &[u8]) -> Result<(), Error> {
        no("to remove a directory")
    }

    fn rename(
        &mut self,
        _: &Caller,
        _: (Ino, &[u8]),
        _: (Ino, &[u8]),
        _: RenameFlags,
    ) -> Result<(), Error> {
        no("to rename")
    }

    fn read(&mut self, _: Ino, _: u64, _: &mut [u8]) -> Result<usize, Error> {
        no("to read bytes")
    }

    fn write(&mut self, _: &Caller, _: Ino, _: u64, _: &[u8]) -> Result<(), Error> {
        no("to write bytes")
    }

    fn seek_data(&mut self, _: Ino, _: u64) -> Result<u64, Error> {
        no("to look for data")
    }

    fn seek_hole(&mut self, _: Ino, _: u64) -> Result<u64, Error> {
        no("to look for holes")
    }

    fn readdir(
        &mut self,
        _: Ino,
        _: u64,
        _: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Result<(), Error> {
        no("to list files")
    }

    fn getxattr(&mut self, _: Ino, _: &[u8]) -> Result<Vec<u8>, Error> {
        no("to read attributes")
    }

    fn setxattr(
        &mut self,
        _: &Caller,
        _: Ino,
        _: &[u8],
        _: &[u8],
        _: XattrFlags,
    ) -> Result<(), Error> {
        no("to set attributes")
    }

    fn listxattr(&mut self, _: Ino) -> Result<Vec<Vec<u8>>, Error> {
        no("to list attributes")
    }

    fn removexattr(&mut self, _: &Caller, _: Ino, _: &[u8]) -> Result<(), Error> {
        no("to remove attributes")
    }
}
