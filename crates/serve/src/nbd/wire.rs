//! The bytes of the NBD protocol: newstyle handshake and transmission. Names and numbers are those
//! of its specification (doc/proto.md of the NetworkBlockDevice project).

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// First word of the server: "NBDMAGIC".
pub(super) const NBDMAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Before each option: "IHAVEOPT".
pub(super) const IHAVEOPT: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// Before each reply to an option.
pub(super) const OPTION_REPLY: u64 = 0x0003_E889_0455_65A9;
/// Before each request.
pub(super) const REQUEST: u32 = 0x2560_9513;
/// Before each simple reply.
pub(super) const SIMPLE_REPLY: u32 = 0x6744_6698;
/// Before each chunk of a structured reply.
pub(super) const STRUCTURED_REPLY: u32 = 0x668E_33EF;

/// `NBD_FLAG_FIXED_NEWSTYLE` and `NBD_FLAG_NO_ZEROES`, of server and client.
pub(super) const FIXED_NEWSTYLE: u16 = 1;
pub(super) const NO_ZEROES: u16 = 2;

/// The first words of the server.
#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Greeting {
    pub(super) nbdmagic: U64,
    pub(super) ihaveopt: U64,
    pub(super) flags: U16,
}

/// Before the data of an option.
#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct OptionHeader {
    pub(super) magic: U64,
    pub(super) option: U32,
    pub(super) len: U32,
}

/// Before the data of a reply to an option.
#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct OptionReply {
    pub(super) magic: U64,
    pub(super) option: U32,
    pub(super) kind: U32,
    pub(super) len: U32,
}

/// `NBD_INFO_EXPORT`, and without its kind the answer to `NBD_OPT_EXPORT_NAME`.
#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ExportInfo {
    pub(super) kind: U16,
    pub(super) size: U64,
    pub(super) flags: U16,
}

/// `NBD_INFO_BLOCK_SIZE`.
#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct BlockSizes {
    pub(super) kind: U16,
    pub(super) minimum: U32,
    pub(super) preferred: U32,
    pub(super) maximum: U32,
}

/// A request; the data of a write follows.
#[derive(Clone, Copy, Debug, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Request {
    pub(super) magic: U32,
    pub(super) flags: U16,
    pub(super) command: U16,
    pub(super) cookie: U64,
    pub(super) offset: U64,
    pub(super) len: U32,
}

/// A simple reply; the data of a read follows.
#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct SimpleReply {
    pub(super) magic: U32,
    pub(super) error: U32,
    pub(super) cookie: U64,
}

/// Before the data of a chunk.
#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Chunk {
    pub(super) magic: U32,
    pub(super) flags: U16,
    pub(super) kind: U16,
    pub(super) cookie: U64,
    pub(super) len: U32,
}

/// An extent of a block status.
#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Descriptor {
    pub(super) len: U32,
    pub(super) flags: U32,
}

/// Options.
pub(super) mod option {
    pub(in crate::nbd) const EXPORT_NAME: u32 = 1;
    pub(in crate::nbd) const ABORT: u32 = 2;
    pub(in crate::nbd) const LIST: u32 = 3;
    pub(in crate::nbd) const INFO: u32 = 6;
    pub(in crate::nbd) const GO: u32 = 7;
    pub(in crate::nbd) const STRUCTURED_REPLY: u32 = 8;
    pub(in crate::nbd) const LIST_META_CONTEXT: u32 = 9;
    pub(in crate::nbd) const SET_META_CONTEXT: u32 = 10;
    /// Of Dovetail alone: the state of the drive, as JSON in an `ACK`. Other servers answer that
    /// they do not know it.
    pub(in crate::nbd) const STATUS: u32 = u32::from_be_bytes(*b"dove");
}

/// Kinds of replies to options.
pub(super) mod reply {
    pub(in crate::nbd) const ACK: u32 = 1;
    pub(in crate::nbd) const SERVER: u32 = 2;
    pub(in crate::nbd) const INFO: u32 = 3;
    pub(in crate::nbd) const META_CONTEXT: u32 = 4;
    pub(in crate::nbd) const ERR_UNSUP: u32 = 1 << 31 | 1;
    pub(in crate::nbd) const ERR_INVALID: u32 = 1 << 31 | 3;
    pub(in crate::nbd) const ERR_UNKNOWN: u32 = 1 << 31 | 6;
    pub(in crate::nbd) const ERR_TOO_BIG: u32 = 1 << 31 | 9;
}

/// Kinds of information about an export.
pub(super) mod info {
    pub(in crate::nbd) const EXPORT: u16 = 0;
    pub(in crate::nbd) const NAME: u16 = 1;
    pub(in crate::nbd) const DESCRIPTION: u16 = 2;
    pub(in crate::nbd) const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags.
pub(super) mod transmission {
    pub(in crate::nbd) const HAS_FLAGS: u16 = 1;
    pub(in crate::nbd) const READ_ONLY: u16 = 1 << 1;
    pub(in crate::nbd) const SEND_FLUSH: u16 = 1 << 2;
    pub(in crate::nbd) const SEND_FUA: u16 = 1 << 3;
    pub(in crate::nbd) const SEND_TRIM: u16 = 1 << 5;
    pub(in crate::nbd) const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub(in crate::nbd) const SEND_DF: u16 = 1 << 7;
    pub(in crate::nbd) const CAN_MULTI_CONN: u16 = 1 << 8;
}

/// Commands.
pub(super) mod command {
    pub(in crate::nbd) const READ: u16 = 0;
    pub(in crate::nbd) const WRITE: u16 = 1;
    pub(in crate::nbd) const DISC: u16 = 2;
    pub(in crate::nbd) const FLUSH: u16 = 3;
    pub(in crate::nbd) const TRIM: u16 = 4;
    pub(in crate::nbd) const WRITE_ZEROES: u16 = 6;
    pub(in crate::nbd) const BLOCK_STATUS: u16 = 7;
}

/// Flags of commands.
pub(super) mod flag {
    pub(in crate::nbd) const FUA: u16 = 1;
    pub(in crate::nbd) const NO_HOLE: u16 = 1 << 1;
    pub(in crate::nbd) const DF: u16 = 1 << 2;
    pub(in crate::nbd) const REQ_ONE: u16 = 1 << 3;
}

/// Chunks of a structured reply.
pub(super) mod chunk {
    /// The last chunk of a reply.
    pub(in crate::nbd) const DONE: u16 = 1;
    pub(in crate::nbd) const NONE: u16 = 0;
    pub(in crate::nbd) const OFFSET_DATA: u16 = 1;
    pub(in crate::nbd) const BLOCK_STATUS: u16 = 5;
    pub(in crate::nbd) const ERROR: u16 = 1 << 15 | 1;
}

/// Flags of an extent of `base:allocation`.
pub(super) const STATE_HOLE: u32 = 1;
pub(super) const STATE_ZERO: u32 = 2;

/// The bytes of `T` at the start of `bytes`, if there are so many.
pub(super) fn parse<T: FromBytes + KnownLayout + Immutable + Unaligned>(bytes: &[u8]) -> Option<T> {
    T::read_from_prefix(bytes).ok().map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_specification() {
        let sizes = [
            size_of::<Greeting>(),
            size_of::<OptionHeader>(),
            size_of::<OptionReply>(),
            size_of::<ExportInfo>(),
            size_of::<BlockSizes>(),
            size_of::<Request>(),
            size_of::<SimpleReply>(),
            size_of::<Chunk>(),
            size_of::<Descriptor>(),
        ];
        assert_eq!(sizes, [18, 16, 20, 12, 14, 28, 16, 20, 8]);
        assert_eq!(NBDMAGIC, 0x4E42_444D_4147_4943);
        assert_eq!(IHAVEOPT, 0x4948_4156_454F_5054);
    }
}
