//! The library that lets user-mode Linux run on hosts with wide registers, without user-mode Linux.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]
#![cfg(target_arch = "x86_64")]

use std::process::Command;

use crate::common::uml::{cannot_run, compile, wide_registers};

/// EFAULT.
const BAD_ADDRESS: i64 = 14;
/// Bytes that the program sets.
const SHORT: i64 = 576;

/// Output of the program: the size of the host's image, the errno, whether the registers are set,
/// what it peeks at.
fn set_short_image(preload: Option<&std::path::Path>) -> [i64; 4] {
    let mut program =
        Command::new(compile("wide_registers_test.c", &["-O1", "-Wall"], "wide_registers_test"));
    program.envs(preload.map(|library| ("LD_PRELOAD", library)));
    let text = String::from_utf8(program.output().unwrap().stdout).unwrap();
    let numbers: Vec<i64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

#[test]
fn a_short_image_of_the_registers_is_taken_with_the_library() {
    let [size, errno, ..] = set_short_image(None);
    let refused = if size > SHORT { BAD_ADDRESS } else { 0 };
    assert_eq!(errno, refused, "the host's image has {size} bytes");
    assert_eq!(set_short_image(wide_registers().as_deref()), [size, 0, 1, 4711]);
}

#[test]
fn a_guest_that_cannot_run_is_told_from_one_that_fails() {
    assert!(
        cannot_run("Kernel panic: ptrace set fp regs failed, errno = 14")
            .unwrap()
            .contains("DOVETAIL_WITHOUT")
    );
    assert_eq!(cannot_run("Kernel panic - not syncing: VFS: Unable to mount root fs"), None);
}
