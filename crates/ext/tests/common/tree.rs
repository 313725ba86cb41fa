//! Trees for mke2fs -d: files of all sorts in a folder.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{XattrFlags, lsetxattr};

/// `len` bytes that depend on `seed`.
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Files of many sizes, holes, many names, links, attributes, below `root`.
pub fn populate(root: &Path) {
    for (n, size) in [0, 1, 59, 60, 1023, 1024, 1025, 12 << 10, 13 << 10, 300 << 10, 2 << 20]
        .into_iter()
        .enumerate()
    {
        fs::write(root.join(format!("size-{size}")), bytes(n as u64, size)).unwrap();
    }
    let mut sparse = fs::File::create(root.join("sparse")).unwrap();
    for n in 0..300 {
        sparse.seek(SeekFrom::Start(n * 20_000)).unwrap();
        sparse.write_all(&bytes(n, 100)).unwrap();
    }
    sparse.set_len(80 << 20).unwrap();
    fs::create_dir_all(root.join("many/deep/er")).unwrap();
    for n in 0..900 {
        fs::write(root.join(format!("many/a-somewhat-longer-name-{n:05}")), []).unwrap();
    }
    fs::write(root.join("many").join("n".repeat(255)), b"long").unwrap();
    fs::write(root.join("many/\u{e4}\u{f6}\u{fc} \u{65e5}\u{672c}"), b"utf-8").unwrap();
    symlink("size-60", root.join("link")).unwrap();
    symlink("x/".repeat(30), root.join("link-60")).unwrap();
    symlink("deep/".repeat(80), root.join("link-long")).unwrap();
    fs::hard_link(root.join("size-60"), root.join("many/deep/hard")).unwrap();
    fs::set_permissions(root.join("size-1024"), fs::Permissions::from_mode(0o4711)).unwrap();
    let set = |path: &str, name: &str, value: &[u8]| {
        lsetxattr(root.join(path), name, value, XattrFlags::empty()).unwrap();
    };
    set("size-60", "user.small", b"value");
    set("size-1023", "user.large", &bytes(7, 700));
    set("size-1023", "user.odd", b"");
    set("many/deep", "user.dir", b"d");
}
