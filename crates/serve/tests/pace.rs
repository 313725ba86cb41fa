//! Answers leave when the drive is done.

use std::time::{Duration, Instant};

use crate::Rig;
use crate::client::{READ, WRITE};

/// One program of femu-32g is 500 us, and its answer must not come earlier.
const PROGRAM: Duration = Duration::from_micros(500);

#[test]
fn no_answer_leaves_before_its_time() {
    for speed in [0.02, 0.1, 1.0] {
        let rig = Rig::new(speed, false);
        let mut client = rig.client();
        for n in 0..5 {
            let begun = Instant::now();
            client.write(n * 4096, &[1; 4096]).unwrap();
            let least = PROGRAM.div_f64(speed);
            assert!(begun.elapsed() >= least, "{:?} at speed {speed}", begun.elapsed());
        }
    }
}

#[test]
fn the_drive_works_on_many_requests_at_once() {
    let rig = Rig::new(0.005, false); // a write takes 100 ms
    let mut client = rig.client();
    let begun = Instant::now();
    for n in 0..32 {
        client.request(WRITE, 0, n * 4096, 4096, &[1; 4096]);
    }
    for _ in 0..32 {
        client.reply(0);
    }
    let elapsed = begun.elapsed();
    assert!(elapsed < Duration::from_millis(32 * 100 / 2), "{elapsed:?}: one after the other");
}

#[test]
fn answers_overtake_each_other() {
    let rig = Rig::new(0.002, false); // a write takes 250 ms, a read of nothing about 1 ms
    let mut client = rig.client();
    let write = client.request(WRITE, 0, 0, 4096, &[1; 4096]);
    let read = client.request(READ, 0, 1 << 20, 4096, &[]);
    assert_eq!((client.reply(0).cookie, client.reply(0).cookie), (read, write));
}

#[test]
fn at_speed_0_answers_leave_at_once_and_time_goes_on() {
    let rig = Rig::at_once();
    let mut client = rig.client();
    for n in 0..1000 {
        client.write(n * 4096, &[1; 4096]).unwrap();
    }
    let status = rig.server.status().unwrap();
    assert!(status.server.drive_seconds >= 0.5, "1000 programs: {status:?}");
}
