//! Commands that a gatherer issues.

use dovetail_block::{Content, Gatherer, Hints, MemoryDevice, Pattern, StreamId};
use dovetail_testkit::{Event, RecordingDevice};
use dovetail_time::SimTime;

fn hints(stream: u8) -> Hints {
    Hints { stream: StreamId(stream), ..Hints::default() }
}

fn pattern(n: u64) -> Content {
    Content::Pattern(Pattern::new(n))
}

#[test]
fn neighbours_are_one_command_and_what_is_read_is_the_newest() {
    let device = RecordingDevice::new(MemoryDevice::new(64));
    let recording = device.recording();
    let mut io = Gatherer::new(device, [0, 1].map(hints), 4, SimTime::ZERO);
    for lba in [10, 11, 12, 13, 14, 30, 31] {
        io.write(0, lba, pattern(lba)).unwrap();
    }
    io.write(1, 15, pattern(15)).unwrap();
    io.write_part(0, 31, pattern(99)).unwrap();
    let mut found = [Content::Empty, Content::Empty];
    io.start_read(14, &mut found).unwrap();
    assert_eq!(found, [pattern(14), pattern(15)]);
    io.flush().unwrap();
    let starts: Vec<_> = recording
        .events()
        .into_iter()
        .map(|event| match event {
            Event::Write { range, .. } => (range.start.0, range.blocks),
            _ => (0, 0),
        })
        .collect();
    assert_eq!(starts, [(10, 4), (14, 1), (15, 1), (30, 2), (0, 0)]);
    io.start_read(30, &mut found).unwrap();
    assert_eq!(found, [pattern(30), pattern(99)]);
}
