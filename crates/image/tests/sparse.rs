//! Android sparse images: read as the plain image is, damaged in every way, and held against
//! libsparse's own programs.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::{Path, PathBuf};
use std::process::Command;

use dovetail_block::{BLOCK_SIZE, BlockDevice, BlockRange, Command as Block, Content, Lba};
use dovetail_image::{FORMATS, Medium, OpenError, Source, SparseError, format_of, list};
use dovetail_image::{SparseImage, to_plain, to_sparse};
use dovetail_time::SimTime;

/// All bytes of a device.
fn bytes(device: &mut impl BlockDevice) -> Vec<u8> {
    let range = BlockRange::new(Lba(0), device.info().blocks);
    let mut into = vec![Content::Empty; range.blocks as usize];
    device.submit(SimTime::ZERO, Block::Read { range, into: Some(&mut into) }).unwrap();
    let block = |content| match content {
        Content::Bytes(bytes) => bytes.to_vec(),
        _ => vec![0; BLOCK_SIZE as usize],
    };
    into.into_iter().flat_map(block).collect()
}

/// A header for blocks of `block` bytes.
fn header(block: u32, blocks: u32, chunks: u32) -> Vec<u8> {
    let mut bytes = vec![0x3A, 0xFF, 0x26, 0xED, 1, 0, 0, 0, 28, 0, 12, 0];
    bytes.extend([block, blocks, chunks, 0].iter().flat_map(|word| word.to_le_bytes()));
    bytes
}

fn chunk(kind: u16, blocks: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind.to_le_bytes()[0], kind.to_le_bytes()[1], 0, 0];
    bytes.extend(blocks.to_le_bytes());
    bytes.extend((12 + content.len() as u32).to_le_bytes());
    bytes.extend(content);
    bytes
}

/// A disk of 16 blocks of 1 KiB with a chunk of each kind, and what it holds.
fn by_hand() -> (Vec<u8>, Vec<u8>) {
    let raw: Vec<u8> = (0..3 * 1024_u32).map(|n| (n / 7) as u8).collect();
    let parts = [
        header(1024, 16, 5),
        chunk(0xCAC1, 3, &raw),
        chunk(0xCAC2, 6, &[1, 2, 3, 4]),
        chunk(0xCAC4, 0, &[9; 4]),
        chunk(0xCAC3, 5, &[]),
        chunk(0xCAC1, 2, &raw[..2048]),
    ];
    let fill: Vec<u8> = [1, 2, 3, 4].repeat(6 * 256);
    let plain = [raw.clone(), fill, vec![0; 5 * 1024], raw[..2048].to_vec()].concat();
    (parts.concat(), plain)
}

fn stored(folder: &Path, bytes: &[u8]) -> PathBuf {
    let path = folder.join("sparse");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn every_kind_of_chunk_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (sparse, plain) = by_hand();
    let path = stored(folder.path(), &sparse);
    assert!(bytes(&mut Medium::open_read_only(path.as_path()).unwrap()) == plain);
    let part = Source::from(path.as_path()).with_offset(4 * 512);
    assert!(bytes(&mut Medium::open_read_only(part).unwrap()) == plain[2048..2048 + 3 * 4096]);
    let refused = Medium::open_read_write(path.as_path()).unwrap_err();
    assert!(matches!(refused, OpenError::Sparse(SparseError::ReadOnly)), "{refused}");
    assert!(refused.to_string().contains("dovetail image unsparse"), "{refused}");
    let out = folder.path().join("plain");
    assert_eq!(to_plain(&path, &out, &mut |_, _| {}).unwrap(), plain.len() as u64);
    assert!(std::fs::read(&out).unwrap() == plain);
}

#[test]
fn damaged_images_are_refused_or_read_and_never_more() {
    let folder = tempfile::tempdir().unwrap();
    let (sparse, _) = by_hand();
    let look = |bytes: &[u8]| {
        let path = stored(folder.path(), bytes);
        let opened = SparseImage::open(&path);
        if let Ok(mut image) = opened {
            let blocks = image.info().blocks.min(64);
            let (range, mut into) =
                (BlockRange::new(Lba(0), blocks), vec![Content::Empty; blocks as usize]);
            let read = Block::Read { range, into: Some(&mut into) };
            image.submit(SimTime::ZERO, read).unwrap();
            return true;
        }
        false
    };
    let (mut read, mut refused) = (0, 0);
    for len in 0..sparse.len() {
        // what is cut off was needed, but for a gap at the end, which this one has not
        assert!(!look(&sparse[..len]), "{len} bytes");
    }
    let headers = (0..40).chain(3112..3160).chain(3160..3190);
    for (at, bit) in headers.flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut damaged = sparse.clone();
        damaged[at] ^= 1 << bit;
        *(if look(&damaged) { &mut read } else { &mut refused }) += 1;
    }
    assert!(read > 50 && refused > 300, "{read} read, {refused} refused");
    // sums that do not fit into 64 bits, or into the file
    for (block, blocks) in [(u32::MAX - 3, u32::MAX), (4, u32::MAX), (0, 1), (6, 1)] {
        let huge = [header(block, blocks, 1), chunk(0xCAC3, blocks, &[])].concat();
        look(&huge);
        let raw = [header(block, blocks, 1), chunk(0xCAC1, blocks, &[])].concat();
        assert!(!look(&raw), "{block} {blocks}");
    }
}

/// Runs a program of libsparse; a test that needs it fails where it is missing.
fn libsparse(program: &str, from: &Path, to: &Path) {
    let run = Command::new(program).args([from, to]).output();
    let run = run.unwrap_or_else(|error| {
        panic!("{program}: {error}; install it with: apt-get install android-sdk-libsparse-utils")
    });
    assert!(run.status.success(), "{run:?}");
}

#[test]
fn libsparse_and_this_read_each_others_images() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let plain = path("plain");
    std::fs::File::create(&plain).unwrap().set_len(64 << 20).unwrap();
    let mut device = Medium::open_read_write(plain.as_path()).unwrap();
    dovetail_f2fs::mkfs::mkfs(&mut device, &Default::default()).unwrap();
    drop(device);
    let truth = std::fs::read(&plain).unwrap();

    let (theirs, ours) = (path("theirs"), path("ours"));
    libsparse("img2simg", &plain, &theirs);
    let mut told = 0;
    to_sparse(&plain, &ours, &mut |done, _| told = told.max(done)).unwrap();
    assert!(told > 0 && std::fs::metadata(&ours).unwrap().len() < 8 << 20);
    libsparse("simg2img", &ours, &path("back"));
    assert!(std::fs::read(path("back")).unwrap() == truth);
    for (number, sparse) in [&theirs, &ours].into_iter().enumerate() {
        assert!(bytes(&mut SparseImage::open(sparse).unwrap()) == truth);
        let out = path(&format!("plain-{number}"));
        to_plain(sparse, &out, &mut |_, _| {}).unwrap();
        assert!(std::fs::read(&out).unwrap() == truth);

        let source = Source::from(sparse.as_path());
        let format = format_of(&source).unwrap();
        assert_eq!(format.variant_on(&source).unwrap(), "f2fs");
        assert!(format.check(&source, &mut |_, _| {}).unwrap().is_clean);
        let mut files = format.files(&source, Ok(()), &mut |said| panic!("{said}")).unwrap();
        assert_eq!(list(&mut *files.tree, b"/").unwrap().lines, "");
    }
    assert_eq!(FORMATS.len(), 2);
}

#[test]
fn only_the_other_kind_is_converted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (sparse, plain) = by_hand();
    let sparse = stored(folder.path(), &sparse);
    std::fs::write(path("plain"), plain).unwrap();
    let said = |error: dovetail_image::ConvertError| error.to_string();
    let again = said(to_sparse(&sparse, &path("new"), &mut |_, _| {}).unwrap_err());
    assert!(again.ends_with("it is an Android sparse image already"), "{again}");
    let none = said(to_plain(&path("plain"), &path("new"), &mut |_, _| {}).unwrap_err());
    assert!(none.contains("it is no Android sparse image"), "{none}");
    let cut = std::fs::read(&sparse).unwrap();
    std::fs::write(&sparse, &cut[..cut.len() - 1]).unwrap();
    let damaged = said(to_plain(&sparse, &path("new"), &mut |_, _| {}).unwrap_err());
    assert!(damaged.contains("it was cut short"), "{damaged}");
    assert!(!path("new").exists(), "nothing is left of what failed");
}
