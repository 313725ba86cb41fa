//! Compressed clusters of a file.
//!
//! The first pointer of a compressed cluster is COMPRESS_ADDR, the next ones lead to the compressed
//! bytes, the rest are reserved or released. A cluster that did not shrink is stored plainly and
//! looks like any other blocks.

use dovetail_block::BlockDevice;

use super::Volume;
use crate::compress::decompress;
use crate::error::{ClusterFault, Corrupt, Damage, Error, Incompatible};
use crate::format::{
    BLOCK, BlockAddr, CLUSTER_HEADER, CRC_SEED, ClusterHeader, CompressAlgorithm, Inode, Nid, crc32,
};

/// The cluster that was decompressed last, so that small reads in a row decompress it once.
#[derive(Debug)]
pub(crate) struct Decompressed {
    ino: Nid,
    start: u64,
    bytes: Vec<u8>,
}

/// The first block of the cluster that `block` lies in.
pub(super) fn cluster_start(inode: &Inode, block: u64) -> u64 {
    block - block % u64::from(inode.cluster_blocks)
}

impl<D: BlockDevice> Volume<D> {
    /// The file's block `block` lies in a cluster that is compressed.
    pub(super) fn is_compressed(&mut self, inode: &Inode, block: u64) -> Result<bool, Error> {
        if inode.cluster_blocks == 1 {
            return Ok(false);
        }
        Ok(self.block_of(inode, cluster_start(inode, block))? == BlockAddr::COMPRESSED)
    }

    /// Reads from `offset`, which lies in a compressed cluster, to the end of the cluster or of
    /// `into`.
    pub(super) fn read_compressed(
        &mut self,
        inode: &Inode,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, Error> {
        let start = cluster_start(inode, offset / BLOCK as u64);
        let bytes = self.cluster(inode, start)?;
        let bytes = &bytes[(offset - start * BLOCK as u64) as usize..];
        let len = into.len().min(bytes.len());
        into[..len].copy_from_slice(&bytes[..len]);
        Ok(len)
    }

    /// The content of the compressed cluster that begins at block `start` of the file.
    fn cluster(&mut self, inode: &Inode, start: u64) -> Result<&[u8], Error> {
        let last = self.decompressed.take();
        let cluster = match last {
            Some(last) if (last.ino, last.start) == (inode.ino, start) => last,
            _ => Decompressed { ino: inode.ino, start, bytes: self.decompress(inode, start)? },
        };
        Ok(&self.decompressed.insert(cluster).bytes)
    }

    fn decompress(&mut self, inode: &Inode, start: u64) -> Result<Vec<u8>, Error> {
        let stored = self.stored_blocks(inode, start)?;
        inflate(inode, start, &stored)
    }

    /// The blocks that follow COMPRESS_ADDR, up to the first one that holds nothing.
    fn stored_blocks(&mut self, inode: &Inode, start: u64) -> Result<Vec<u8>, Error> {
        let mut stored = Vec::new();
        for block in start + 1..start + u64::from(inode.cluster_blocks) {
            let address = self.block_of(inode, block)?;
            if address.is_hole() {
                break;
            }
            if address == BlockAddr::COMPRESSED {
                return Err(misplaced(inode, block).into());
            }
            let len = stored.len();
            stored.resize(len + BLOCK, 0);
            self.blocks.data(address, &mut stored[len..])?;
        }
        Ok(stored)
    }
}

/// The content of the compressed cluster that begins at block `start` of the file, from the blocks
/// that follow COMPRESS_ADDR.
pub(crate) fn inflate(inode: &Inode, start: u64, stored: &[u8]) -> Result<Vec<u8>, Error> {
    let fault = |fault| Damage::Cluster { ino: inode.ino, block: start, fault };
    let stream = checked_stream(stored, inode.cluster_checksum).map_err(fault)?;
    let mut bytes = vec![0; inode.cluster_blocks as usize * BLOCK];
    match decompress(inode.compression, stream, &mut bytes) {
        Some(Ok(found)) if found == bytes.len() => Ok(bytes),
        Some(Ok(found)) => Err(fault(ClusterFault::Size { found, expected: bytes.len() }).into()),
        Some(Err(message)) => Err(fault(stream_fault(inode.compression, message)).into()),
        None => {
            Err(Incompatible::Compressed { ino: inode.ino, algorithm: inode.compression }.into())
        }
    }
}

/// COMPRESS_ADDR stands in another slot than the first of a cluster.
pub(super) fn misplaced(inode: &Inode, block: u64) -> Corrupt {
    Damage::Cluster { ino: inode.ino, block, fault: ClusterFault::Misplaced }.into()
}

fn stream_fault(algorithm: CompressAlgorithm, message: String) -> ClusterFault {
    ClusterFault::Stream { algorithm, message }
}

/// The compressed bytes of `stored`, checked as far as its header tells.
fn checked_stream(stored: &[u8], has_checksum: bool) -> Result<&[u8], ClusterFault> {
    let header = ClusterHeader::parse(stored);
    let rest = stored.get(CLUSTER_HEADER..).unwrap_or_default();
    let length = ClusterFault::Length { found: header.len, room: rest.len() };
    let stream = rest.get(..header.len as usize).ok_or(length)?;
    let computed = crc32(CRC_SEED, stream);
    if has_checksum && computed != header.checksum {
        return Err(ClusterFault::Checksum { found: header.checksum, computed });
    }
    Ok(stream)
}
