//! A request, performed, and the bytes of its answer.

use std::time::Instant;

use rustix::io::Errno;
use zerocopy::IntoBytes;
use zerocopy::big_endian::{U16, U32, U64};

use super::handshake::Agreed;
use super::wire::{
    Chunk, Descriptor, Request, SIMPLE_REPLY, STATE_HOLE, STATE_ZERO, STRUCTURED_REPLY,
    SimpleReply, chunk, command, flag,
};
use super::{ALLOCATION_ID, MAX_REQUEST};
use crate::export::{ExportError, Extent};
use crate::served::{Kind, Served};

/// Reason why a request has no answer but an error.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("unknown command {0}")]
    Command(u16),
    #[error("unknown flags {0:#x} of the command")]
    Flags(u16),
    #[error("{0} bytes in one request; 32 MiB is the most")]
    TooLong(u32),
    #[error("a block status was not agreed on")]
    NotAgreed,
    #[error("a request of no bytes")]
    Nothing,
    #[error("{0}")]
    Export(ExportError, bool),
}

impl Refusal {
    /// The error of the protocol, which are some of Linux's.
    fn errno(&self) -> Errno {
        let Self::Export(error, is_write) = self else { return Errno::INVAL };
        match (error, error.errno()) {
            (ExportError::Beyond { .. }, _) if *is_write => Errno::NOSPC,
            (_, Errno::ROFS) => Errno::PERM,
            (_, errno) => errno,
        }
    }
}

type Due = Option<Instant>;

/// Performs `request`, whose data is `data`, and appends the answer to `reply`; returns when it may
/// leave, `None` for at once.
pub(super) fn answer(
    served: &Served,
    agreed: &Agreed,
    request: &Request,
    data: &[u8],
    reply: &mut Vec<u8>,
) -> Due {
    let start = reply.len();
    perform(served, agreed, request, data, reply).unwrap_or_else(|refusal| {
        tracing::debug!(%refusal, ?request, "a request is refused");
        reply.truncate(start);
        put_error(agreed, request, &refusal, reply);
        None
    })
}

fn perform(
    served: &Served,
    agreed: &Agreed,
    request: &Request,
    data: &[u8],
    reply: &mut Vec<u8>,
) -> Result<Due, Refusal> {
    let (flags, offset, len) = (request.flags.get(), request.offset.get(), request.len.get());
    let command = request.command.get();
    let known = match command {
        command::READ => flag::DF | flag::FUA,
        command::WRITE_ZEROES => flag::FUA | flag::NO_HOLE,
        command::BLOCK_STATUS => flag::REQ_ONE | flag::FUA,
        _ => flag::FUA,
    };
    if flags & !known != 0 {
        return Err(Refusal::Flags(flags));
    }
    let fua = flags & flag::FUA != 0;
    let range = offset..offset.saturating_add(len.into());
    let result = match command {
        command::READ => return read(served, agreed, request, reply),
        command::BLOCK_STATUS => return block_status(served, agreed, request, reply),
        command::WRITE if len > MAX_REQUEST => return Err(Refusal::TooLong(len)),
        command::WRITE => {
            served.request(Kind::Write, |export, at| export.write(at, offset, data, fua))
        }
        command::FLUSH => served.request(Kind::Flush, |export, at| export.flush(at)),
        command::TRIM => served.request(Kind::Discard, |export, at| {
            export.discard(at, std::slice::from_ref(&range), fua)
        }),
        command::WRITE_ZEROES => served.request(Kind::WriteZeroes, |export, at| {
            export.write_zeroes(at, range, flags & flag::NO_HOLE == 0, fua)
        }),
        unknown => return Err(Refusal::Command(unknown)),
    };
    let is_write = matches!(command, command::WRITE | command::WRITE_ZEROES);
    let due = result.map_err(|error| Refusal::Export(error, is_write))?;
    put_done(agreed, request, reply);
    Ok(due)
}

fn read(
    served: &Served,
    agreed: &Agreed,
    request: &Request,
    reply: &mut Vec<u8>,
) -> Result<Due, Refusal> {
    let (offset, len) = (request.offset.get(), request.len.get());
    if len > MAX_REQUEST {
        return Err(Refusal::TooLong(len));
    }
    if agreed.structured && len == 0 {
        return Err(Refusal::Nothing);
    }
    if agreed.structured {
        put_chunk(request, chunk::OFFSET_DATA, size_of::<U64>() as u32 + len, reply);
        reply.extend(U64::new(offset).as_bytes());
    } else {
        put_simple(request, 0, reply);
    }
    let start = reply.len();
    reply.resize(start + len as usize, 0);
    let into = &mut reply[start..];
    let result = served.request(Kind::Read, |export, at| export.read(at, offset, into));
    result.map_err(|error| Refusal::Export(error, false))
}

fn block_status(
    served: &Served,
    agreed: &Agreed,
    request: &Request,
    reply: &mut Vec<u8>,
) -> Result<Due, Refusal> {
    if !agreed.allocation {
        return Err(Refusal::NotAgreed);
    }
    let (offset, len) = (request.offset.get(), request.len.get());
    if len == 0 {
        return Err(Refusal::Nothing);
    }
    let mut extents = Vec::new();
    let result = served.request(Kind::BlockStatus, |export, at| {
        extents = export.allocation(offset..offset.saturating_add(len.into()))?;
        Ok(at)
    });
    let due = result.map_err(|error| Refusal::Export(error, false))?;
    if request.flags.get() & flag::REQ_ONE != 0 {
        extents.truncate(1);
    }
    let bytes = size_of::<U32>() + extents.len() * size_of::<Descriptor>();
    put_chunk(request, chunk::BLOCK_STATUS, bytes as u32, reply);
    reply.extend(U32::new(ALLOCATION_ID).as_bytes());
    for extent in &extents {
        reply.extend(descriptor(*extent).as_bytes());
    }
    Ok(due)
}

/// An extent of at most the length of a request, which has 32 bits.
fn descriptor(extent: Extent) -> Descriptor {
    let flags = if extent.allocated { 0 } else { STATE_HOLE | STATE_ZERO };
    Descriptor { len: U32::new(extent.len as u32), flags: U32::new(flags) }
}

fn put_simple(request: &Request, error: u32, reply: &mut Vec<u8>) {
    let header = SimpleReply {
        magic: U32::new(SIMPLE_REPLY),
        error: U32::new(error),
        cookie: request.cookie,
    };
    reply.extend(header.as_bytes());
}

/// The header of the only chunk of a reply.
fn put_chunk(request: &Request, kind: u16, len: u32, reply: &mut Vec<u8>) {
    let header = Chunk {
        magic: U32::new(STRUCTURED_REPLY),
        flags: U16::new(chunk::DONE),
        kind: U16::new(kind),
        cookie: request.cookie,
        len: U32::new(len),
    };
    reply.extend(header.as_bytes());
}

fn put_done(agreed: &Agreed, request: &Request, reply: &mut Vec<u8>) {
    if agreed.structured {
        put_chunk(request, chunk::NONE, 0, reply);
    } else {
        put_simple(request, 0, reply);
    }
}

fn put_error(agreed: &Agreed, request: &Request, refusal: &Refusal, reply: &mut Vec<u8>) {
    let errno = refusal.errno().raw_os_error() as u32;
    if !agreed.structured {
        return put_simple(request, errno, reply);
    }
    let text: String = refusal.to_string().chars().take(1000).collect();
    let len = size_of::<U32>() + size_of::<U16>() + text.len();
    put_chunk(request, chunk::ERROR, len as u32, reply);
    reply.extend(U32::new(errno).as_bytes());
    reply.extend(U16::new(text.len() as u16).as_bytes());
    reply.extend(text.as_bytes());
}
