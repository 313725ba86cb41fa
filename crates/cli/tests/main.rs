//! The command, as a user calls it.
//!
//! All tests of this folder are modules of this one program: a program each would take far longer
//! to build. To run one of them: `cargo test -p dovetail-cli --test all bench::`.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod bench;
mod bench_choices;
mod change;
mod command;
mod common {
    //! The place where the guest looks for it.
    pub(crate) use crate::uml;
}
mod compare;
mod cp;
mod devirtualize;
mod ext;
mod extract;
mod first_steps;
#[allow(dead_code, reason = "a part of it is used")]
#[path = "../../serve/tests/front_end/mod.rs"]
mod front_end;
#[allow(dead_code, reason = "a part of it is used")]
#[path = "../../f2fs/tests/kernel/guest.rs"]
mod guest;
mod image;
mod linux;
mod linux_kill;
#[allow(dead_code, unreachable_pub, reason = "a part of it is used")]
#[path = "../../f2fs/tests/common/manifest.rs"]
mod manifest;
mod mkfs;
mod mount;
mod mounted;
#[path = "../../serve/tests/client/mod.rs"]
mod nbd_client;
mod referee;
mod report;
mod salvage;
mod scales;
mod serve;
mod serve_kernel;
mod serve_ublk;
mod serve_vhost;
mod sweep;
mod tutorials;
#[allow(dead_code, unreachable_pub, reason = "a part of it is used")]
#[path = "../../f2fs/tests/common/uml.rs"]
mod uml;
mod zoned;

// of which file system `manifest` tells: of the one whose types stand beside it
use dovetail_f2fs::format::{FileType, Inode};
use dovetail_f2fs::{Visit, Volume};

/// The content of a file compressed by zstd.
fn unzstd(path: &std::path::Path) -> Vec<u8> {
    let mut content = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(file).unwrap();
    std::io::Read::read_to_end(&mut decoder, &mut content).unwrap();
    content
}
