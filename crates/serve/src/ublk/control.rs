//! Commands to ublk's control device, one at a time.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

use io_uring::squeue::Entry128;
use io_uring::{IoUring, cqueue, opcode, types};
use rustix::io::Errno;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::wire::ControlCommand;

const PATH: &str = "/dev/ublk-control";
/// The queue of a command that is about none.
const NO_QUEUE: u16 = u16::MAX;
/// The command as a part of a submission.
const SPACE: usize = 80;

/// The control device.
pub(super) struct Control {
    ring: IoUring<Entry128, cqueue::Entry>,
    file: File,
}

impl Control {
    pub(super) fn open() -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(PATH)?;
        Ok(Self { ring: IoUring::builder().build(2)?, file })
    }

    /// Performs a command about a device that carries one number.
    pub(super) fn tell(&mut self, number: u32, device: u32, data: u64) -> io::Result<()> {
        let command = ControlCommand { device, queue: NO_QUEUE, data, ..Default::default() };
        self.perform(number, command)
    }

    /// Performs a command about a device that reads, or fills, a structure.
    pub(super) fn exchange<T: FromBytes + IntoBytes + Immutable>(
        &mut self,
        number: u32,
        device: u32,
        with: &mut T,
    ) -> io::Result<()> {
        let bytes = with.as_mut_bytes();
        let command = ControlCommand {
            device,
            queue: NO_QUEUE,
            len: bytes.len() as u16,
            address: bytes.as_mut_ptr() as u64,
            ..Default::default()
        };
        self.perform(number, command)
    }

    /// Performs a command and waits for its end. Its address leads to memory that nobody else uses.
    fn perform(&mut self, number: u32, command: ControlCommand) -> io::Result<()> {
        let mut bytes = [0; SPACE];
        bytes[..size_of::<ControlCommand>()].copy_from_slice(command.as_bytes());
        let file = types::Fd(self.file.as_raw_fd());
        let entry = opcode::UringCmd80::new(file, number).cmd(bytes).build();
        // SAFETY: the file, and what the address leads to, outlive the command, since it has ended
        // when this function returns.
        #[allow(unsafe_code, reason = "io_uring takes addresses")]
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(io::Error::other)?;
        loop {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                submitted => drop(submitted?),
            }
            if let Some(ended) = self.ring.completion().next() {
                return match ended.result() {
                    0.. => Ok(()),
                    error => Err(Errno::from_raw_os_error(-error).into()),
                };
            }
        }
    }
}
