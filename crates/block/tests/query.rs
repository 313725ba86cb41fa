//! Answers of a device through a wrapper.

use dovetail_block::{
    BlockDevice, BlockRange, Command, Data, Hints, Lba, MemoryDevice, Pattern, free_blocks,
    held_blocks, map_bytes,
};
use dovetail_testkit::RecordingDevice;
use dovetail_time::SimTime;

#[test]
fn a_wrapper_passes_answers_on_without_a_line_of_its_own() {
    let (range, data) = (BlockRange::new(Lba(7), 2), Data::Patterns(Pattern::new(1)));
    let mut device = RecordingDevice::new(MemoryDevice::thin(1 << 60, 8));
    let write = Command::Write { range, data, hints: Hints::default(), fua: false };
    Box::new(&mut device).submit(SimTime::ZERO, write).unwrap();
    assert_eq!(free_blocks(&mut device), Ok(Some(6)));
    let all = BlockRange::new(Lba(0), 100);
    assert_eq!(held_blocks(&mut Box::new(&mut device), all, 9), Ok(Some(vec![Lba(7), Lba(8)])));
    assert_eq!(map_bytes(&mut device), Ok(None));
}
