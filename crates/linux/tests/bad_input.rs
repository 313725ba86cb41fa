//! Guests that fail, hang or find nothing: a sentence each.

use std::time::{Duration, Instant};

use dovetail_ftl::Storage;
use dovetail_linux::{Event, Guest, LinuxError, World};

use crate::common::{Unreadable, drive, guest, run};

fn error_of(change: impl FnOnce(&mut Guest), script: &str) -> Option<LinuxError> {
    let out = tempfile::tempdir().unwrap();
    let mut guest = guest(script, out.path())?;
    change(&mut guest);
    Some(run(&guest, drive("femu-32g", "1/64"), None).map(drop).unwrap_err())
}

#[test]
fn a_kernel_that_is_not_there_is_named() {
    let change = |guest: &mut Guest| guest.kernel = "/no/kernel".into();
    let Some(error) = error_of(change, ":") else { return };
    assert!(
        error.to_string().starts_with("there is no kernel at /no/kernel: `dovetail linux build`")
    );
}

#[test]
fn a_program_that_is_no_kernel_ends_at_once() {
    let change = |guest: &mut Guest| guest.kernel = "/bin/true".into();
    let Some(error) = error_of(change, ":") else { return };
    assert!(matches!(error, LinuxError::Died { .. }), "{error}");
}

#[test]
fn a_script_that_fails_tells_its_status() {
    let Some(error) = error_of(|_| {}, "mark begin\nsh -c 'exit 3'\nmark end") else { return };
    assert!(error.to_string().contains("ended with status 3"), "{error}");
}

#[test]
fn a_guest_that_hangs_is_ended() {
    let change = |guest: &mut Guest| guest.silence = Duration::from_secs(3);
    let Some(error) = error_of(change, "while :; do :; done") else { return };
    assert!(matches!(error, LinuxError::Hangs { .. }), "{error}");
}

/// A guest that works never lets the other side wait, and is stopped all the same.
#[test]
fn a_busy_guest_can_be_stopped() {
    let out = tempfile::tempdir().unwrap();
    let script =
        "while :; do dd if=/dev/vda of=/dev/null bs=4k count=64 iflag=direct 2>/dev/null; done";
    let Some(guest) = guest(script, out.path()) else { return };
    let begun = Instant::now();
    let stop = || begun.elapsed() > Duration::from_secs(2);
    let world = World { guest: &guest, cut: None, stop: &stop, seen: &mut |_, _, _: &Storage| {} };
    let error = world.run(drive("femu-32g", "1/64")).unwrap_err();
    assert!(matches!(error, LinuxError::Stopped), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// Whoever asks for the disk's name has not come to a mark.
#[test]
fn a_question_for_the_name_of_the_disk_is_no_mark() {
    let out = tempfile::tempdir().unwrap();
    let script = "cat /sys/block/vda/serial\nmark begin\ncat /sys/block/vda/serial\nmark end";
    let Some(guest) = guest(script, out.path()) else { return };
    let mut marks = Vec::new();
    let seen = &mut |_, event: Event<'_>, _: &Storage| {
        if let Event::Mark(mark) = event {
            marks.push(mark.to_owned());
        }
    };
    let world = World { guest: &guest, cut: None, stop: &|| false, seen };
    world.run(drive("femu-32g", "1/64")).unwrap();
    assert_eq!(marks, ["begin", "end", "over"]);
}

#[test]
fn a_guest_sees_the_errors_of_its_drive() {
    let out = tempfile::tempdir().unwrap();
    let script = "dd if=/dev/vda of=/dev/null bs=4k count=1 iflag=direct && exit 7 || :";
    let Some(guest) = guest(script, out.path()) else { return };
    let drive = Unreadable(drive("femu-32g", "1/64"));
    run(&guest, drive, None).unwrap();
    let log = std::fs::read_to_string(out.path().join("log")).unwrap();
    assert!(log.contains("Input/output error"), "{log}");
}
