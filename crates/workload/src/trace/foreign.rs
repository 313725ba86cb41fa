//! Files that people take for traces and that are something else, told by their first bytes.

/// A kind of file, and what to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Foreign {
    /// Kind of the file, with its article.
    pub kind: &'static str,
    /// Advice, as a clause.
    pub instead: &'static str,
}

/// Offset of a tar header's magic (POSIX.1-1988, ustar).
const TAR_MAGIC_AT: usize = 257;

/// The kind of a text that begins with `sample`, after decompression, if it is no trace of blocks.
pub(super) fn foreign(sample: &[u8]) -> Option<Foreign> {
    let of = |kind, instead| Some(Foreign { kind, instead });
    match sample {
        [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => {
            of("compressed with xz", "unpack it: xz -dc FILE | dovetail replay -")
        }
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => {
            of("compressed with bzip2", "unpack it: bzip2 -dc FILE | dovetail replay -")
        }
        [0x04, 0x22, 0x4D, 0x18, ..] => {
            of("compressed with lz4", "unpack it: lz4 -dc FILE | dovetail replay -")
        }
        [b'P', b'K', 3, 4, ..] => {
            of("a zip archive", "unpack it: unzip -p FILE | dovetail replay -")
        }
        // BLK_IO_TRACE_MAGIC and its version in linux/blktrace_api.h, little-endian
        [0x07, 0x74, 0x61, 0x65, ..] => {
            of("a binary trace of blktrace", "make it text: blkparse -i FILE | dovetail replay -")
        }
        _ if sample.get(TAR_MAGIC_AT..TAR_MAGIC_AT + 5) == Some(b"ustar") => {
            of("a tar archive", "unpack it and give a file of it: tar -xf FILE")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_their_first_bytes() {
        let mut tar = b"usr_0.csv".to_vec();
        tar.resize(512, 0);
        tar[257..262].copy_from_slice(b"ustar");
        for (bytes, kind) in [
            (&b"\xFD7zXZ\0\0"[..], "compressed with xz"),
            (b"BZh91AY", "compressed with bzip2"),
            (b"\x04\x22\x4D\x18d", "compressed with lz4"),
            (b"PK\x03\x04", "a zip archive"),
            (b"\x07tae\0", "a binary trace of blktrace"),
            (&tar, "a tar archive"),
        ] {
            assert_eq!(foreign(bytes).map(|found| found.kind), Some(kind));
        }
        assert_eq!(foreign(b"128166372003061629,usr,0,Read,7014609920,24576,41286\n"), None);
        assert_eq!(foreign(b""), None);
    }
}
