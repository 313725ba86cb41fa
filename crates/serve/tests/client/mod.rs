//! A small NBD client, written from the protocol's specification alone.

#![allow(dead_code, reason = "other tests use a part of it")]

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const DISC: u16 = 2;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const WRITE_ZEROES: u16 = 6;
pub(crate) const BLOCK_STATUS: u16 = 7;
pub(crate) const FUA: u16 = 1;
pub(crate) const NO_HOLE: u16 = 2;
pub(crate) const REQ_ONE: u16 = 8;

/// Longest wait for the server: a test that would hang fails.
const PATIENCE: Duration = Duration::from_secs(60);
const REPLY_MAGIC: u64 = 0x3E889045565A9;

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    pub(crate) size: u64,
    pub(crate) flags: u16,
    structured: bool,
    cookie: u64,
}

/// A reply: which request, and its data or the number of its error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) cookie: u64,
    pub(crate) result: Result<Vec<u8>, u32>,
}

impl Client {
    /// Connects and takes the greeting.
    pub(crate) fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut client = Self { stream, size: 0, flags: 0, structured: false, cookie: 0 };
        let greeting = client.take(18).unwrap();
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        assert_eq!(greeting[16..], [0, 3], "fixed newstyle, no zeroes");
        client.send(&3_u32.to_be_bytes());
        client
    }

    /// Agrees on what a test wants, and goes on to requests.
    pub(crate) fn begin(&mut self, structured: bool) {
        if structured {
            assert_eq!(self.option(8, &[]), [(1, vec![])]);
            self.structured = true;
            let replies = self.option(10, &contexts("", &["base:allocation"]));
            assert_eq!(replies.last().unwrap().0, 1);
        }
        let replies = self.option(7, &go(""));
        let export = &replies[0].1;
        assert_eq!((replies[0].0, &export[..2]), (3, &[0, 0][..]));
        self.size = u64::from_be_bytes(export[2..10].try_into().unwrap());
        self.flags = u16::from_be_bytes(export[10..12].try_into().unwrap());
    }

    /// Sends an option; returns the replies up to an acknowledgement or an error.
    pub(crate) fn option(&mut self, option: u32, data: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.send(&option_bytes(option, data));
        let mut replies = Vec::new();
        loop {
            let header = self.take(20).unwrap();
            assert_eq!(header[..8], REPLY_MAGIC.to_be_bytes());
            assert_eq!(header[8..12], option.to_be_bytes());
            let kind = u32_at(&header, 12);
            let data = self.take(u32_at(&header, 16) as usize).unwrap();
            replies.push((kind, data));
            if kind == 1 || kind >> 31 == 1 {
                return replies;
            }
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn take(&mut self, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes).map(|()| bytes)
    }

    /// Sends a request and returns its cookie.
    pub(crate) fn request(
        &mut self,
        command: u16,
        flags: u16,
        offset: u64,
        len: u32,
        data: &[u8],
    ) -> u64 {
        self.cookie += 1;
        let mut bytes = request_bytes(command, flags, self.cookie, offset, len);
        bytes.extend(data);
        self.send(&bytes);
        self.cookie
    }

    /// The next reply. Only a read and a block status have data.
    pub(crate) fn reply(&mut self, data: usize) -> Reply {
        let magic = self.take(4).unwrap();
        if !self.structured {
            assert_eq!(u32_at(&magic, 0), 0x67446698);
            let rest = self.take(12).unwrap();
            let (error, cookie) = (u32_at(&rest, 0), u64_at(&rest, 4));
            let result = if error == 0 { Ok(self.take(data).unwrap()) } else { Err(error) };
            return Reply { cookie, result };
        }
        assert_eq!(u32_at(&magic, 0), 0x668E33EF);
        let rest = self.take(16).unwrap();
        assert_eq!(rest[..2], [0, 1], "the only chunk");
        let cookie = u64_at(&rest, 4);
        let data = self.take(u32_at(&rest, 12) as usize).unwrap();
        let result = match u16::from_be_bytes([rest[2], rest[3]]) {
            0 | 5 => Ok(data),
            1 => Ok(data[8..].to_vec()),
            0x8001 => {
                assert_eq!(usize::from(u16::from_be_bytes([data[4], data[5]])), data.len() - 6);
                Err(u32_at(&data, 0))
            }
            other => panic!("chunk of kind {other}"),
        };
        Reply { cookie, result }
    }

    /// Sends a request and awaits its reply.
    pub(crate) fn call(
        &mut self,
        command: u16,
        flags: u16,
        offset: u64,
        len: u32,
        data: &[u8],
    ) -> Result<Vec<u8>, u32> {
        let cookie = self.request(command, flags, offset, len, data);
        let expected = if command == READ { len as usize } else { 0 };
        let reply = self.reply(expected);
        assert_eq!(reply.cookie, cookie);
        reply.result
    }

    pub(crate) fn read(&mut self, offset: u64, len: u32) -> Result<Vec<u8>, u32> {
        self.call(READ, 0, offset, len, &[])
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Result<Vec<u8>, u32> {
        self.call(WRITE, 0, offset, data.len() as u32, data)
    }

    /// The server has closed the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

pub(crate) fn option_bytes(option: u32, data: &[u8]) -> Vec<u8> {
    let len = data.len() as u32;
    [b"IHAVEOPT", &option.to_be_bytes()[..], &len.to_be_bytes(), data].concat()
}

pub(crate) fn request_bytes(
    command: u16,
    flags: u16,
    cookie: u64,
    offset: u64,
    len: u32,
) -> Vec<u8> {
    [
        &0x25609513_u32.to_be_bytes()[..],
        &flags.to_be_bytes(),
        &command.to_be_bytes(),
        &cookie.to_be_bytes(),
        &offset.to_be_bytes(),
        &len.to_be_bytes(),
    ]
    .concat()
}

/// Data of `NBD_OPT_GO` and `NBD_OPT_INFO`: an export, and no wish.
pub(crate) fn go(name: &str) -> Vec<u8> {
    [&(name.len() as u32).to_be_bytes()[..], name.as_bytes(), &[0, 0]].concat()
}

/// Data of the options about metadata contexts.
pub(crate) fn contexts(name: &str, queries: &[&str]) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    let mut data = text(name);
    data.extend((queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|query| data.extend(text(query)));
    data
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap())
}
