//! A client that only asks how the drive is.

use std::io;
use std::os::fd::OwnedFd;

use zerocopy::IntoBytes;
use zerocopy::big_endian::{U32, U64};

use super::handshake::nonsense;
use super::socket::{Input, send_all};
use super::wire::{
    FIXED_NEWSTYLE, Greeting, IHAVEOPT, NBDMAGIC, NO_ZEROES, OPTION_REPLY, OptionHeader,
    OptionReply, option, parse, reply,
};

/// Bytes of an answer at most.
const MOST: usize = 1 << 20;

/// Asks the server at the other end of a new connection; `None` if it is one of another kind.
///
/// # Errors
/// Those of the socket, and [`io::ErrorKind::InvalidData`] for a server that talks nonsense.
pub(crate) fn ask_status(socket: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
    let mut input = Input::default();
    let greeting: Greeting = take(&mut input, socket)?;
    if greeting.nbdmagic.get() != NBDMAGIC || greeting.ihaveopt.get() != IHAVEOPT {
        return Err(nonsense());
    }
    send_all(socket, U32::new((FIXED_NEWSTYLE | NO_ZEROES).into()).as_bytes())?;
    send_option(socket, option::STATUS)?;
    let answer: OptionReply = take(&mut input, socket)?;
    let len = answer.len.get() as usize;
    if answer.magic.get() != OPTION_REPLY || len > MOST {
        return Err(nonsense());
    }
    input.wait_for(socket, len)?;
    let text = input.bytes()[..len].to_vec();
    send_option(socket, option::ABORT)?;
    Ok((answer.kind.get() == reply::ACK).then_some(text))
}

fn send_option(socket: &OwnedFd, option: u32) -> io::Result<()> {
    let (magic, option) = (U64::new(IHAVEOPT), U32::new(option));
    send_all(socket, OptionHeader { magic, option, len: U32::new(0) }.as_bytes())
}

fn take<T>(input: &mut Input, socket: &OwnedFd) -> io::Result<T>
where
    T: zerocopy::FromBytes + zerocopy::KnownLayout + zerocopy::Immutable + zerocopy::Unaligned,
{
    input.wait_for(socket, size_of::<T>())?;
    let value = parse(input.bytes()).ok_or_else(nonsense)?;
    input.consume(size_of::<T>());
    Ok(value)
}
