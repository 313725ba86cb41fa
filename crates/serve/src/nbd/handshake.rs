//! The handshake: options, until the client wants to begin.

use std::io;
use std::os::fd::OwnedFd;

use dovetail_block::{BLOCK_SIZE, SECTOR_SIZE};
use zerocopy::IntoBytes;
use zerocopy::big_endian::{U16, U32, U64};

use super::socket::{Input, send_all};
use super::wire::{
    BlockSizes, ExportInfo, FIXED_NEWSTYLE, Greeting, IHAVEOPT, NBDMAGIC, NO_ZEROES, OPTION_REPLY,
    OptionHeader, OptionReply, info, option, parse, reply, transmission,
};
use super::{ALLOCATION, ALLOCATION_ID, MAX_REQUEST};
use crate::served::Served;

/// Bytes of data of an option at most: names have 4096, and a client asks for a few contexts.
const MAX_OPTION: usize = 64 << 10;
/// Options of one client at most.
const MAX_OPTIONS: usize = 1000;

/// The agreement of client and server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Agreed {
    /// Reads are answered in chunks.
    pub(super) structured: bool,
    /// The client may ask which blocks hold something.
    pub(super) allocation: bool,
}

/// The consequence of an option.
enum Next {
    /// More options.
    Option,
    /// Requests.
    Transmission,
    /// Nothing.
    End,
}

struct Handshake<'a> {
    served: &'a Served,
    socket: &'a OwnedFd,
    input: &'a mut Input,
    no_zeroes: bool,
    agreed: Agreed,
}

/// Talks with a client until it wants to send requests; `None` if it only asked.
///
/// # Errors
/// Those of the socket, and [`io::ErrorKind::InvalidData`] for a client that talks nonsense.
pub(super) fn negotiate(
    served: &Served,
    socket: &OwnedFd,
    input: &mut Input,
) -> io::Result<Option<Agreed>> {
    let greeting = Greeting {
        nbdmagic: U64::new(NBDMAGIC),
        ihaveopt: U64::new(IHAVEOPT),
        flags: U16::new(FIXED_NEWSTYLE | NO_ZEROES),
    };
    send_all(socket, greeting.as_bytes())?;
    input.wait_for(socket, size_of::<U32>())?;
    let flags = parse::<U32>(input.bytes()).ok_or_else(nonsense)?.get();
    input.consume(size_of::<U32>());
    if flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
        return Err(nonsense());
    }
    let no_zeroes = flags & u32::from(NO_ZEROES) != 0;
    let mut handshake = Handshake { served, socket, input, no_zeroes, agreed: Agreed::default() };
    for _ in 0..MAX_OPTIONS {
        match handshake.option()? {
            Next::Option => {}
            Next::Transmission => return Ok(Some(handshake.agreed)),
            Next::End => return Ok(None),
        }
    }
    Err(nonsense())
}

pub(super) fn nonsense() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

impl Handshake<'_> {
    fn option(&mut self) -> io::Result<Next> {
        let size = size_of::<OptionHeader>();
        self.input.wait_for(self.socket, size)?;
        let header: OptionHeader = parse(self.input.bytes()).ok_or_else(nonsense)?;
        let (option, len) = (header.option.get(), header.len.get() as usize);
        if header.magic.get() != IHAVEOPT {
            return Err(nonsense());
        }
        if len > MAX_OPTION {
            self.reply(option, reply::ERR_TOO_BIG, b"an option of more than 64 KiB")?;
            return Err(nonsense());
        }
        self.input.wait_for(self.socket, size + len)?;
        let data = self.input.bytes()[size..size + len].to_vec();
        self.input.consume(size + len);
        self.perform(option, &data)
    }

    fn perform(&mut self, option: u32, data: &[u8]) -> io::Result<Next> {
        match option {
            option::EXPORT_NAME => return self.begin_by_name(data),
            option::ABORT => {
                // whoever has gone away without waiting for it needs no answer
                let _ = self.reply(option, reply::ACK, &[]);
                return Ok(Next::End);
            }
            option::LIST => self.list(data)?,
            option::INFO | option::GO => return self.inform(option, data),
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.agreed.structured = true;
                self.reply(option, reply::ACK, &[])?;
            }
            option::STRUCTURED_REPLY => self.invalid(option)?,
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(option, data)?,
            option::STATUS => self.status()?,
            _ => self.reply(option, reply::ERR_UNSUP, &[])?,
        }
        Ok(Next::Option)
    }

    fn reply(&self, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
        let header = OptionReply {
            magic: U64::new(OPTION_REPLY),
            option: U32::new(option),
            kind: U32::new(kind),
            len: U32::new(data.len() as u32),
        };
        send_all(self.socket, &[header.as_bytes(), data].concat())
    }

    fn invalid(&self, option: u32) -> io::Result<()> {
        self.reply(option, reply::ERR_INVALID, b"the data of the option are malformed")
    }

    fn is_known(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.served.name().as_bytes()
    }

    /// `NBD_OPT_EXPORT_NAME` has no error reply: the connection ends.
    fn begin_by_name(&mut self, name: &[u8]) -> io::Result<Next> {
        if !self.is_known(name) {
            return Ok(Next::End);
        }
        let export = self.export_info();
        let mut bytes = export.as_bytes()[size_of::<U16>()..].to_vec();
        if !self.no_zeroes {
            bytes.extend([0; 124]);
        }
        send_all(self.socket, &bytes)?;
        Ok(Next::Transmission)
    }

    fn export_info(&self) -> ExportInfo {
        ExportInfo {
            kind: U16::new(info::EXPORT),
            size: U64::new(self.served.bytes()),
            flags: U16::new(flags(self.served, self.agreed.structured)),
        }
    }

    fn list(&self, data: &[u8]) -> io::Result<()> {
        if !data.is_empty() {
            return self.invalid(option::LIST);
        }
        let name = self.served.name().as_bytes();
        let len = U32::new(name.len() as u32);
        self.reply(option::LIST, reply::SERVER, &[len.as_bytes(), name].concat())?;
        self.reply(option::LIST, reply::ACK, &[])
    }

    fn inform(&mut self, option: u32, data: &[u8]) -> io::Result<Next> {
        let mut fields = Fields(data);
        let (Some(name), Some(wanted)) = (fields.text(), fields.numbers()) else {
            self.invalid(option)?;
            return Ok(Next::Option);
        };
        if !self.is_known(name) {
            self.reply(option, reply::ERR_UNKNOWN, b"there is no such drive here")?;
            return Ok(Next::Option);
        }
        self.reply(option, reply::INFO, self.export_info().as_bytes())?;
        self.reply(option, reply::INFO, block_sizes().as_bytes())?;
        for (kind, text) in
            [(info::NAME, self.served.name()), (info::DESCRIPTION, "a simulated flash drive")]
        {
            if wanted.contains(&kind) {
                let text = [U16::new(kind).as_bytes(), text.as_bytes()].concat();
                self.reply(option, reply::INFO, &text)?;
            }
        }
        self.reply(option, reply::ACK, &[])?;
        Ok(if option == option::GO { Next::Transmission } else { Next::Option })
    }

    fn contexts(&mut self, option: u32, data: &[u8]) -> io::Result<()> {
        let is_list = option == option::LIST_META_CONTEXT;
        let mut fields = Fields(data);
        let (Some(name), Some(queries)) = (fields.text(), fields.texts()) else {
            return self.invalid(option);
        };
        if !is_list {
            self.agreed.allocation = false;
            if !self.agreed.structured {
                return self.invalid(option);
            }
        }
        if !self.is_known(name) {
            return self.reply(option, reply::ERR_UNKNOWN, b"there is no such drive here");
        }
        let is_asked = |query: &&[u8]| *query == ALLOCATION || (is_list && *query == b"base:");
        if queries.iter().any(is_asked) || (is_list && queries.is_empty()) {
            let id = U32::new(if is_list { 0 } else { ALLOCATION_ID });
            self.reply(option, reply::META_CONTEXT, &[id.as_bytes(), ALLOCATION].concat())?;
            self.agreed.allocation |= !is_list;
        }
        self.reply(option, reply::ACK, &[])
    }

    fn status(&self) -> io::Result<()> {
        let status = self.served.status().map_err(io::Error::other)?;
        self.reply(option::STATUS, reply::ACK, &serde_json::to_vec(&status)?)
    }
}

/// The transmission flags of a drive. Only structured replies can be asked not to be cut.
fn flags(served: &Served, structured: bool) -> u16 {
    let mut flags = transmission::HAS_FLAGS
        | transmission::SEND_FLUSH
        | transmission::SEND_FUA
        | transmission::SEND_WRITE_ZEROES
        | transmission::CAN_MULTI_CONN;
    if structured {
        flags |= transmission::SEND_DF;
    }
    if served.discards() {
        flags |= transmission::SEND_TRIM;
    }
    if served.is_read_only() {
        flags |= transmission::READ_ONLY;
    }
    flags
}

fn block_sizes() -> BlockSizes {
    BlockSizes {
        kind: U16::new(info::BLOCK_SIZE),
        minimum: U32::new(SECTOR_SIZE as u32),
        preferred: U32::new(BLOCK_SIZE as u32),
        maximum: U32::new(MAX_REQUEST),
    }
}

/// The data of an option, field by field; `None` where it ends before the field does.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(field)
    }

    fn number(&mut self) -> Option<u32> {
        self.bytes(size_of::<U32>()).and_then(parse::<U32>).map(U32::get)
    }

    /// A length, and a text of that length.
    fn text(&mut self) -> Option<&'a [u8]> {
        let len = self.number()?;
        self.bytes(len as usize)
    }

    /// A count, and so many texts; nothing may follow.
    fn texts(&mut self) -> Option<Vec<&'a [u8]>> {
        let count = self.number()?;
        let texts = (0..count).map_while(|_| self.text()).collect::<Vec<_>>();
        (texts.len() == count as usize && self.0.is_empty()).then_some(texts)
    }

    /// A count of 16 bits, and so many numbers of 16 bits; nothing may follow.
    fn numbers(&mut self) -> Option<Vec<u16>> {
        let count = self.bytes(size_of::<U16>()).and_then(parse::<U16>)?;
        let mut numbers = self.0.chunks_exact(size_of::<U16>());
        let found: Vec<u16> = numbers.by_ref().filter_map(parse::<U16>).map(U16::get).collect();
        (found.len() == usize::from(count.get()) && numbers.remainder().is_empty()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_where_the_data_does() {
        let data = [0, 0, 0, 2, b'a', b'b', 0, 0, 0, 1, 0, 0, 0, 1, b'c'];
        let mut fields = Fields(&data);
        assert_eq!(fields.text(), Some(&b"ab"[..]));
        assert_eq!(fields.texts(), Some(vec![&b"c"[..]]));
        for end in 0..data.len() {
            let mut fields = Fields(&data[..end]);
            assert!(fields.text().is_none() || fields.texts().is_none(), "{end}");
        }
        assert_eq!(Fields(&[255; 8]).texts(), None);
        assert_eq!(Fields(&[0, 2, 0, 1, 0, 3]).numbers(), Some(vec![1, 3]));
        for bad in [&[0, 2, 0, 1][..], &[0, 1, 0, 1, 0], &[0], &[]] {
            assert_eq!(Fields(bad).numbers(), None, "{bad:?}");
        }
    }
}
