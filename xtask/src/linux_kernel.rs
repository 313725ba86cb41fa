//! The kernel of Linux stacks and of the tests that ask one, with what building it takes.

use std::path::Path;

use dovetail_kernel::{SOURCE, build, default_kernel};

use crate::install;

/// Debian packages of the build, and of file systems that guests make; with what tells whether each
/// is there.
const PACKAGES: [(&str, &str); 8] = [
    ("linux-source-6.12", SOURCE),
    ("xz-utils", "xz"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("btrfs-progs", "mkfs.btrfs"),
    ("xfsprogs", "mkfs.xfs"),
];

/// Builds it where all find it, as `dovetail linux build` does, unless it is there.
pub(crate) fn linux_kernel(_: &[String]) -> Result<(), String> {
    install(&PACKAGES)?;
    let program = match default_kernel() {
        Ok(program) => program,
        Err(_) => build(Path::new(SOURCE), &mut |_| {}).map_err(|error| error.to_string())?,
    };
    println!("{}", program.display());
    Ok(())
}
