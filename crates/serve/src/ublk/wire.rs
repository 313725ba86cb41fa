//! Numbers and structures of Linux' ublk, in the machine's own byte order.
//!
//! Source: `include/uapi/linux/ublk_cmd.h` of Linux 6.12.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Commands to the control device.
pub(super) mod control {
    use super::{ControlCommand, numbered};

    const READ: u32 = 2;
    const READ_WRITE: u32 = 3;
    const SIZE: usize = size_of::<ControlCommand>();

    pub(crate) const GET_DEV_INFO: u32 = numbered(READ, 0x02, SIZE);
    pub(crate) const ADD_DEV: u32 = numbered(READ_WRITE, 0x04, SIZE);
    pub(crate) const DEL_DEV: u32 = numbered(READ_WRITE, 0x05, SIZE);
    pub(crate) const START_DEV: u32 = numbered(READ_WRITE, 0x06, SIZE);
    pub(crate) const STOP_DEV: u32 = numbered(READ_WRITE, 0x07, SIZE);
    pub(crate) const SET_PARAMS: u32 = numbered(READ_WRITE, 0x08, SIZE);
    pub(crate) const GET_FEATURES: u32 = numbered(READ, 0x13, SIZE);
    pub(crate) const DEL_DEV_ASYNC: u32 = numbered(READ, 0x14, SIZE);
}

/// Commands to the device of requests.
pub(super) mod request {
    use super::{RequestCommand, numbered};

    const SIZE: usize = size_of::<RequestCommand>();

    pub(crate) const FETCH: u32 = numbered(3, 0x20, SIZE);
    pub(crate) const COMMIT_AND_FETCH: u32 = numbered(3, 0x21, SIZE);
}

/// Kinds of requests, and flags above them.
pub(super) mod operation {
    pub(crate) const READ: u8 = 0;
    pub(crate) const WRITE: u8 = 1;
    pub(crate) const FLUSH: u8 = 2;
    pub(crate) const DISCARD: u8 = 3;
    pub(crate) const WRITE_ZEROES: u8 = 5;
    pub(crate) const FUA: u32 = 1 << 13;
    pub(crate) const NO_UNMAP: u32 = 1 << 15;
}

/// Commands have the numbers of ioctls.
pub(super) const F_IOCTL_NUMBERS: u64 = 1 << 6;
/// Data move by reads and writes of the device of requests.
pub(super) const F_USER_COPY: u64 = 1 << 7;

pub(super) const ATTR_READ_ONLY: u32 = 1 << 0;
pub(super) const ATTR_VOLATILE_CACHE: u32 = 1 << 2;
pub(super) const ATTR_FUA: u32 = 1 << 3;
pub(super) const PARAM_BASIC: u32 = 1 << 0;
pub(super) const PARAM_DISCARD: u32 = 1 << 1;
/// State of a device whose server is gone.
pub(super) const DEAD: u16 = 0;

/// The most that a queue can hold, by which the descriptors of queues lie apart.
const MAX_DEPTH: u64 = 4096;
const PAGE: u64 = 4096;
/// Bytes of a request's descriptor.
pub(super) const DESCRIPTOR: usize = 24;
/// Offset of the data of requests in the device of requests.
const DATA: u64 = 0x8000_0000;
const TAG_BITS: u32 = 25;
const QUEUE_BITS: u32 = 41;

/// A command's number, as `_IOC` makes it.
const fn numbered(direction: u32, number: u32, size: usize) -> u32 {
    direction << 30 | (size as u32) << 16 | (b'u' as u32) << 8 | number
}

/// Offset of a queue's descriptors in the device of requests.
pub(super) const fn descriptors_of(queue: u16) -> u64 {
    queue as u64 * (MAX_DEPTH * DESCRIPTOR as u64).next_multiple_of(PAGE)
}

/// Offset of a request's data in the device of requests.
pub(super) const fn data_of(queue: u16, tag: u16) -> u64 {
    DATA + ((queue as u64) << QUEUE_BITS) + ((tag as u64) << TAG_BITS)
}

#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct ControlCommand {
    pub(super) device: u32,
    pub(super) queue: u16,
    pub(super) len: u16,
    pub(super) address: u64,
    pub(super) data: u64,
    pub(super) path_len: u16,
    pub(super) pad: u16,
    pub(super) reserved: u32,
}

#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct DeviceInfo {
    pub(super) queues: u16,
    pub(super) depth: u16,
    pub(super) state: u16,
    pub(super) pad0: u16,
    pub(super) max_request_bytes: u32,
    pub(super) device: u32,
    pub(super) process: i32,
    pub(super) pad1: u32,
    pub(super) flags: u64,
    pub(super) server_flags: u64,
    pub(super) owner: [u32; 2],
    pub(super) reserved: [u64; 2],
}

#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct RequestCommand {
    pub(super) queue: u16,
    pub(super) tag: u16,
    pub(super) result: i32,
    pub(super) address: u64,
}

/// Parameters of a disk: `ublk_params` without what is not set here.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Parameters {
    pub(super) len: u32,
    pub(super) types: u32,
    pub(super) attributes: u32,
    pub(super) logical_shift: u8,
    pub(super) physical_shift: u8,
    pub(super) best_shift: u8,
    pub(super) least_shift: u8,
    pub(super) max_sectors: u32,
    pub(super) chunk_sectors: u32,
    pub(super) sectors: u64,
    pub(super) boundary_mask: u64,
    pub(super) discard_alignment: u32,
    pub(super) discard_granularity: u32,
    pub(super) max_discard_sectors: u32,
    pub(super) max_zeroes_sectors: u32,
    pub(super) max_discard_segments: u16,
    pub(super) reserved: [u16; 3],
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that the header gives when a C compiler is asked.
    #[test]
    fn numbers_and_offsets_are_those_of_the_header() {
        assert_eq!(size_of::<ControlCommand>(), 32);
        assert_eq!(size_of::<DeviceInfo>(), 64);
        assert_eq!(size_of::<RequestCommand>(), 16);
        assert_eq!(size_of::<Parameters>(), 64);
        assert_eq!(control::ADD_DEV, 0xc020_7504);
        assert_eq!(control::GET_FEATURES, 0x8020_7513);
        assert_eq!(request::COMMIT_AND_FETCH, 0xc010_7521);
        assert_eq!(descriptors_of(3), 3 * 98_304);
        assert_eq!(data_of(1, 2), 0x8000_0000 + (1 << 41) + (2 << 25));
    }
}
