//! Gzip files as gzip(1) reads them: members one after the other, and what comes behind the last
//! one is ignored.

use std::io::{self, BufReader, Chain, Cursor, Read};

use flate2::bufread::GzDecoder;

/// RFC 1952, section 2.3.1.
const MAGIC: [u8; 2] = [0x1F, 0x8B];

type File = BufReader<Box<dyn Read + Send>>;
/// Bytes that were looked at already, then the rest.
type Rest = Chain<Cursor<Vec<u8>>, File>;

/// The text of all members.
pub(super) struct Members {
    /// `None` behind the last one.
    member: Option<GzDecoder<Rest>>,
}

impl Members {
    pub(super) fn new(file: Box<dyn Read + Send>) -> Self {
        let whole = Cursor::new(Vec::new()).chain(BufReader::new(file));
        Self { member: Some(GzDecoder::new(whole)) }
    }
}

impl Read for Members {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            self.member = match self.member.take() {
                Some(ended) => next(ended.into_inner())?,
                None => None,
            };
        }
        Ok(0)
    }
}

/// The next member, if there is one.
fn next(mut rest: Rest) -> io::Result<Option<GzDecoder<Rest>>> {
    let mut start = Vec::with_capacity(MAGIC.len());
    rest.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start)?;
    if start != MAGIC {
        return Ok(None);
    }
    let (seen, file) = rest.into_inner();
    start.extend_from_slice(&seen.get_ref()[seen.position() as usize..]);
    Ok(Some(GzDecoder::new(Cursor::new(start).chain(file))))
}
