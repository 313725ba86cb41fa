//! Every file of an image, whatever its file system is.
//!
//! `cargo run -p dovetail-image --example list_image -- IMAGE`
//!
//! prints the file system that IMAGE holds, then a line for each file: its size in bytes and its
//! path. IMAGE is an image file, a block device or a drive in a file; nothing is written to it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints what it found")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use dovetail_image::{Error, Source, Tree, format_of};
use dovetail_vfs::{Ino, shown};

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: list_image IMAGE");
        return ExitCode::from(2);
    };
    match list(&Source::from(PathBuf::from(path))) {
        Ok(files) => {
            println!("{files} files");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the image's file system and files; returns how many there are.
fn list(image: &Source) -> Result<u64, Error> {
    let format = format_of(image)?;
    println!("{}: {}", image.display(), format.variant_on(image)?);
    let mut files = format.files(image, Ok(()), &mut |damage| eprintln!("{damage}"))?;
    walk(files.tree.as_mut())
}

/// Goes through the whole tree. A directory of a damaged volume may lead back to one above it: none
/// is entered twice.
fn walk(tree: &mut dyn Tree) -> Result<u64, Error> {
    let mut count = 0;
    let mut seen = BTreeSet::from([tree.root()]);
    let mut todo: Vec<(Ino, Vec<u8>)> = vec![(tree.root(), Vec::new())];
    while let Some((dir, path)) = todo.pop() {
        let mut cookie = 0;
        loop {
            let entries = tree.list(dir, cookie).map_err(Error::failed)?;
            let Some(last) = entries.last() else { break };
            cookie = last.cookie;
            for entry in entries {
                let path = [&path, b"/".as_slice(), &entry.name].concat();
                match tree.attr(entry.ino) {
                    Ok(attr) if attr.is_dir() && !seen.insert(entry.ino) => {}
                    Ok(attr) if attr.is_dir() => todo.push((entry.ino, path)),
                    Ok(attr) => {
                        count += 1;
                        println!("{:>12} {}", attr.size, shown(&path));
                    }
                    Err(error) => eprintln!("{}: {error}", shown(&path)),
                }
            }
        }
    }
    Ok(count)
}
