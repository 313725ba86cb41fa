//! Answers leave when the drive is done.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use dovetail_serve::Pace;

use crate::Rig;
use crate::client::{READ, WRITE, request_bytes};

/// One program of femu-32g is 500 us, and its answer must not come earlier.
const PROGRAM: Duration = Duration::from_micros(500);

#[test]
fn no_answer_leaves_before_its_time() {
    for (speed, awake) in [(0.02, false), (0.1, true), (1.0, false), (1.0, true)] {
        let rig = Rig::with_pace(Pace::new(speed).staying_awake(awake), false);
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
fn more_requests_than_may_wait_are_taken_later() {
    let rig = Rig::new(0.1, false);
    let mut client = rig.client();
    let most = 3000;
    let mut stream = client.stream.try_clone().unwrap();
    let sending = thread::spawn(move || {
        for n in 0..most {
            let request = request_bytes(WRITE, 0, n, n % 100 * 512, 1);
            stream.write_all(&[&request[..], &[n as u8]].concat()).unwrap();
        }
    });
    let mut answered: Vec<u64> = (0..most).map(|_| client.reply(0).cookie).collect();
    sending.join().unwrap();
    answered.sort_unstable();
    assert!(answered.into_iter().eq(0..most));
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
