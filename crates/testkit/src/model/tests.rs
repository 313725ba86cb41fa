use dovetail_vfs::mode::S_IFREG;
use dovetail_vfs::{Fallocate, FileSystem, NewNode, RenameFlags, SetAttr, XattrFlags};

use super::*;

const MOVE: RenameFlags = RenameFlags { no_replace: false, exchange: false };

fn at(seconds: i64) -> Caller {
    Caller { uid: 10, gid: 20, now: Timestamp { seconds, nanoseconds: 5 } }
}

fn model() -> Model {
    Model::new(Limits::default(), &at(1))
}

fn new(model: &mut Model, dir: Ino, name: &str, mode: u16) -> Ino {
    let node = NewNode { mode, ..NewNode::default() };
    model.create(&at(2), dir, name.as_bytes(), &node).unwrap().ino
}

fn links(model: &Model, ino: Ino) -> u32 {
    model.node(ino).unwrap().attr.links
}

fn names(model: &mut Model, dir: Ino, cookie: u64, most: usize) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let mut take = |entry: dovetail_vfs::DirEntry| {
        if found.len() == most {
            return false;
        }
        found.push((String::from_utf8(entry.name).unwrap(), entry.cookie));
        true
    };
    model.readdir(dir, cookie, &mut take).unwrap();
    found
}

#[test]
fn directories_count_their_subdirectories() {
    let mut model = model();
    let a = new(&mut model, ROOT, "a", S_IFDIR | 0o755);
    let b = new(&mut model, ROOT, "b", S_IFDIR | 0o755);
    new(&mut model, a, "c", S_IFDIR | 0o755);
    assert_eq!((links(&model, ROOT), links(&model, a), links(&model, b)), (4, 3, 2));
    model.rename(&at(3), (a, b"c"), (b, b"c"), MOVE).unwrap();
    assert_eq!((links(&model, ROOT), links(&model, a), links(&model, b)), (4, 2, 3));
    assert_eq!(model.rmdir(&at(3), ROOT, b"b"), Err(Error::NotEmpty));
    model.rename(&at(3), (b, b"c"), (ROOT, b"a"), MOVE).unwrap();
    assert_eq!((links(&model, ROOT), links(&model, b)), (4, 2));
    assert_eq!(model.getattr(a), Err(Error::NotFound));
}

#[test]
fn a_directory_cannot_go_below_itself() {
    let mut model = model();
    let a = new(&mut model, ROOT, "a", S_IFDIR | 0o755);
    let b = new(&mut model, a, "b", S_IFDIR | 0o755);
    let below = model.rename(&at(3), (ROOT, b"a"), (b, b"x"), MOVE).unwrap_err();
    assert_eq!(below.errno(), 22);
    assert_eq!(model.rename(&at(3), (a, b"b"), (ROOT, b"a"), MOVE), Err(Error::NotEmpty));
    let exchange = RenameFlags { exchange: true, ..MOVE };
    assert_eq!(model.rename(&at(3), (a, b"b"), (ROOT, b"a"), exchange).unwrap_err().errno(), 22);
}

#[test]
fn exchanged_directories_change_parents() {
    let mut model = model();
    let a = new(&mut model, ROOT, "a", S_IFDIR | 0o755);
    let inner = new(&mut model, a, "inner", S_IFDIR | 0o755);
    let file = new(&mut model, ROOT, "file", S_IFREG | 0o644);
    let exchange = RenameFlags { exchange: true, ..MOVE };
    model.rename(&at(9), (a, b"inner"), (ROOT, b"file"), exchange).unwrap();
    assert_eq!(model.find(a, b"inner"), Ok(file));
    assert_eq!(model.find(inner, b".."), Ok(ROOT));
    assert_eq!((links(&model, ROOT), links(&model, a)), (4, 2));
    assert_eq!(model.getattr(file).unwrap().ctime.seconds, 9);
}

#[test]
fn what_is_held_outlives_its_name() {
    let mut model = model();
    let file = new(&mut model, ROOT, "file", S_IFREG | 0o644);
    model.hold(file);
    model.hold(file);
    model.unlink(&at(3), ROOT, b"file").unwrap();
    model.write(&at(4), file, 0, b"still").unwrap();
    model.forget(file, 1).unwrap();
    assert_eq!(model.getattr(file).unwrap().links, 0);
    assert_eq!(model.link(&at(5), file, ROOT, b"again"), Err(Error::NotFound));
    model.forget(file, 1).unwrap();
    assert_eq!(model.getattr(file), Err(Error::NotFound));
}

#[test]
fn content_has_holes() {
    let mut model = model();
    let file = new(&mut model, ROOT, "file", S_IFREG | 0o644);
    model.write(&at(3), file, 3 * 4096 - 1, b"ab").unwrap();
    assert_eq!(model.seek_data(file, 0), Ok(2 * 4096));
    assert_eq!(model.seek_hole(file, 2 * 4096 + 7), Ok(3 * 4096 + 1));
    model.fallocate(&at(4), file, Fallocate::PunchHole, 100, 3 * 4096 - 100).unwrap();
    assert_eq!(model.seek_data(file, 0), Ok(3 * 4096));
    let mut bytes = [9; 4];
    assert_eq!(model.read(file, 3 * 4096 - 2, &mut bytes), Ok(3));
    assert_eq!(bytes, [0, 0, b'b', 9]);
    model.fallocate(&at(5), file, Fallocate::Reserve { keep_size: true }, 8 * 4096, 1).unwrap();
    let attr = model.getattr(file).unwrap();
    assert_eq!((attr.size, attr.blocks, attr.mtime.seconds), (3 * 4096 + 1, 16, 5));
    assert_eq!(model.seek_data(file, 4 * 4096), Err(Error::BeyondEnd));
}

#[test]
fn what_is_cut_off_does_not_come_back() {
    let mut model = model();
    let file = new(&mut model, ROOT, "file", S_IFREG | 0o644);
    model.write(&at(3), file, 0, &[7; 5000]).unwrap();
    for size in [10, 6000] {
        model.setattr(&at(4), file, &SetAttr { size: Some(size), ..SetAttr::default() }).unwrap();
    }
    let mut bytes = [1; 6000];
    assert_eq!(model.read(file, 0, &mut bytes), Ok(6000));
    assert!(bytes[..10].iter().all(|&byte| byte == 7) && bytes[10..].iter().all(|&byte| byte == 0));
    let too_big = SetAttr { size: Some(Limits::default().file_size + 1), ..SetAttr::default() };
    assert_eq!(model.setattr(&at(4), file, &too_big), Err(Error::FileTooBig));
}

#[test]
fn groups_are_inherited_and_set_id_bits_stay() {
    let mut model = model();
    let dir = new(&mut model, ROOT, "dir", S_IFDIR | 0o2755);
    model.setattr(&at(3), dir, &SetAttr { gid: Some(77), ..SetAttr::default() }).unwrap();
    let inner = new(&mut model, dir, "inner", S_IFDIR | 0o755);
    let file = new(&mut model, dir, "file", S_IFREG | 0o6755);
    assert_eq!(model.getattr(inner).unwrap().mode, S_IFDIR | 0o2755);
    assert_eq!((model.getattr(inner).unwrap().gid, model.getattr(file).unwrap().gid), (77, 77));
    model.write(&at(4), file, 0, b"x").unwrap();
    assert_eq!(model.getattr(file).unwrap().mode, S_IFREG | 0o6755, "the caller's part");
}

#[test]
fn a_listing_goes_on_where_it_stopped() {
    let mut model = model();
    for name in ["a", "b", "c", "d"] {
        new(&mut model, ROOT, name, S_IFREG | 0o644);
    }
    let first = names(&mut model, ROOT, 0, 4);
    assert_eq!(
        first.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        [".", "..", "a", "b"]
    );
    model.unlink(&at(3), ROOT, b"b").unwrap();
    model.unlink(&at(3), ROOT, b"a").unwrap();
    new(&mut model, ROOT, "a", S_IFREG | 0o644);
    let rest = names(&mut model, ROOT, first[3].1, 9);
    assert_eq!(rest.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["c", "d", "a"]);
}

#[test]
fn extended_attributes_have_flags_and_limits() {
    let mut model =
        Model::new(Limits { xattr_value: 20, xattr_total: 40, ..Limits::default() }, &at(1));
    let flags = XattrFlags::default();
    let create = XattrFlags { create: true, ..flags };
    let replace = XattrFlags { replace: true, ..flags };
    let mut set = |name: &str, value: &[u8], flags| {
        model.setxattr(&at(2), ROOT, name.as_bytes(), value, flags)
    };
    assert_eq!(set("user.a", b"1", replace), Err(Error::NoAttribute));
    assert_eq!(set("user.a", b"1", create), Ok(()));
    assert_eq!(set("user.a", b"2", create), Err(Error::Exists));
    assert_eq!(set("user.b", &[0; 21], flags), Err(Error::TooBig));
    assert_eq!(set("user.b", &[0; 20], flags), Ok(()));
    assert_eq!(set("user.c", b"", flags), Err(Error::TooBig));
    assert_eq!(set("other.c", b"", flags).unwrap_err().errno(), 95);
    assert_eq!(model.listxattr(ROOT).unwrap(), [b"user.a".to_vec(), b"user.b".to_vec()]);
    model.removexattr(&at(3), ROOT, b"user.a").unwrap();
    assert_eq!(model.getxattr(ROOT, b"user.a"), Err(Error::NoAttribute));
}

#[test]
fn names_are_checked() {
    let mut model = model();
    let file = NewNode { mode: S_IFREG | 0o644, ..NewNode::default() };
    assert_eq!(model.create(&at(2), ROOT, &[b'x'; 256], &file), Err(Error::NameTooLong));
    assert!(model.create(&at(2), ROOT, &[b'x'; 255], &file).is_ok());
    assert_eq!(model.create(&at(2), ROOT, b".", &file), Err(Error::Exists));
    assert_eq!(model.unlink(&at(2), ROOT, b"."), Err(Error::IsADirectory));
    assert_eq!(model.symlink(&at(2), ROOT, b"s", &[b'x'; 4096]), Err(Error::NameTooLong));
    let dir = new(&mut model, ROOT, "dir", S_IFDIR | 0o755);
    model.hold(dir);
    model.rmdir(&at(3), ROOT, b"dir").unwrap();
    assert_eq!(model.create(&at(4), dir, b"lost", &file), Err(Error::NotFound));
}
