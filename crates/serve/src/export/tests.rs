use dovetail_block::{Completion, DeviceInfo, MemoryDevice, Pattern};
use dovetail_time::SimSpan;
use proptest::prelude::*;

use super::*;

const BLOCKS: u64 = 9;
const BYTES: usize = (BLOCKS * BLOCK_SIZE) as usize;
const NOW: SimTime = SimTime::from_ns(1000);

/// A device in memory with the times of a drive.
struct Timed(MemoryDevice);

const READ: SimSpan = SimSpan::from_us(50);
const WRITE: SimSpan = SimSpan::from_us(300);

impl BlockDevice for Timed {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        let span = match command {
            Command::Read { .. } => READ,
            Command::Write { .. } => WRITE,
            _ => SimSpan::from_ns(1),
        };
        let completion = self.0.submit(at, command)?;
        Ok(Completion { done: completion.done + span, ..completion })
    }
}

/// A drive of another kind: it takes no discards, and does not tell what it holds.
struct Plain(MemoryDevice);

impl BlockDevice for Plain {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { blocks: self.0.info().blocks, capabilities: Default::default() }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Discard { .. } | Command::Query(_) => Err(command.unsupported()),
            command => self.0.submit(at, command),
        }
    }
}

fn export() -> Export<Timed> {
    Export::new(Timed(MemoryDevice::new(BLOCKS)))
}

fn read_all<D: BlockDevice>(export: &mut Export<D>) -> Vec<u8> {
    let mut bytes = vec![0xAA; export.bytes() as usize];
    export.read(NOW, 0, &mut bytes).unwrap();
    bytes
}

#[derive(Clone, Debug)]
enum Step {
    Read,
    Write(u8, bool),
    Discard,
    Zero(bool, bool),
}

fn step() -> impl Strategy<Value = (Step, Range<usize>)> {
    let kind = prop_oneof![
        Just(Step::Read),
        (1..=255_u8, any::<bool>()).prop_map(|(fill, fua)| Step::Write(fill, fua)),
        Just(Step::Discard),
        (any::<bool>(), any::<bool>()).prop_map(|(discard, fua)| Step::Zero(discard, fua)),
    ];
    // whole blocks, whole sectors and any bytes
    let unit = prop_oneof![Just(4096_usize), Just(512), Just(1)];
    (kind, unit, 0..=BYTES, 0..=BYTES).prop_map(|(kind, unit, a, b)| {
        let (a, b) = (a / unit * unit, b / unit * unit);
        (kind, a.min(b)..a.max(b))
    })
}

fn discard_model(model: &mut [u8], range: &Range<usize>) {
    let (start, end) = (range.start.next_multiple_of(BLOCK), range.end / BLOCK * BLOCK);
    if start < end {
        model[start..end].fill(0);
    }
}

fn run<D: BlockDevice>(device: D, steps: Vec<(Step, Range<usize>)>) {
    let mut export = Export::new(device);
    let mut model = vec![0_u8; BYTES];
    for (step, range) in steps {
        let bytes = range.start as u64..range.end as u64;
        match step {
            Step::Read => {
                let mut into = vec![0xAA; range.len()];
                export.read(NOW, bytes.start, &mut into).unwrap();
                assert_eq!(into, model[range]);
            }
            Step::Write(fill, fua) => {
                let data: Vec<u8> = range.clone().map(|i| fill.wrapping_add(i as u8)).collect();
                export.write(NOW, bytes.start, &data, fua).unwrap();
                model[range].copy_from_slice(&data);
            }
            Step::Discard if export.discards() => {
                export.discard(NOW, &[bytes], false).unwrap();
                discard_model(&mut model, &range);
            }
            Step::Discard => {
                let refused = export.discard(NOW, &[bytes], false).unwrap_err();
                assert_eq!(refused.errno(), rustix::io::Errno::OPNOTSUPP);
            }
            Step::Zero(may_discard, fua) => {
                export.write_zeroes(NOW, bytes, may_discard, fua).unwrap();
                model[range].fill(0);
            }
        }
        check_allocation(&mut export, &model);
    }
    assert_eq!(read_all(&mut export), model);
}

/// Extents cover the drive without gaps, and what is not allocated is zeros.
fn check_allocation<D: BlockDevice>(export: &mut Export<D>, model: &[u8]) {
    let end = export.bytes();
    for start in [0, 700, 4096, end - 1, end] {
        let mut at = start;
        while at < end {
            let extents = export.allocation(at..end).unwrap();
            assert!(!extents.is_empty(), "it goes on");
            for extent in extents {
                let bytes = &model[at as usize..(at + extent.len) as usize];
                let is_zero = bytes.iter().all(|byte| *byte == 0);
                assert!(extent.allocated || is_zero, "{extent:?} at {at}");
                at += extent.len;
            }
        }
        assert_eq!(at, end);
    }
}

proptest! {
    #[test]
    fn bytes_are_those_of_a_plain_array(steps in prop::collection::vec(step(), 1..30)) {
        run(Timed(MemoryDevice::new(BLOCKS)), steps.clone());
        run(Plain(MemoryDevice::new(BLOCKS)), steps);
    }
}

#[test]
fn parts_of_blocks_take_the_time_of_a_read_too() {
    let mut export = export();
    let whole = export.write(NOW, 0, &[1; 8192], false).unwrap();
    assert_eq!(whole, NOW + WRITE);
    let part = export.write(NOW, 512, &[2; 512], false).unwrap();
    assert_eq!(part, NOW + READ + WRITE);
    let both_ends = export.write(NOW, 512, &[2; 8192], false).unwrap();
    assert_eq!(both_ends, NOW + READ + WRITE);
    assert_eq!(export.read(NOW, 511, &mut [0; 2]).unwrap(), NOW + READ);
}

#[test]
fn what_reaches_beyond_the_end_is_an_error() {
    let mut export = export();
    let end = export.bytes();
    let over = end..end + 1;
    let far = u64::MAX - 3..u64::MAX;
    for range in [over, far] {
        let len = (range.end - range.start) as usize;
        let errors = [
            export.read(NOW, range.start, &mut vec![0; len]),
            export.write(NOW, range.start, &vec![0; len], false),
            export.discard(NOW, std::slice::from_ref(&range), false),
            export.write_zeroes(NOW, range.clone(), true, false),
            export.allocation(range.clone()).map(|_| NOW),
        ];
        for error in errors {
            let error = error.unwrap_err();
            assert!(matches!(error, ExportError::Beyond { .. }), "{error}");
            assert_eq!(error.errno(), rustix::io::Errno::INVAL);
        }
    }
    assert_eq!(export.read(NOW, u64::MAX, &mut [0; 9]).unwrap_err().errno().raw_os_error(), 22);
    assert_eq!(export.read(NOW, end, &mut []), Ok(NOW), "nothing at the end");
    assert_eq!(export.write(NOW, 5, &[], true), Ok(NOW), "nothing within a block");
}

#[test]
fn a_block_written_by_name_reads_as_its_number() {
    let mut device = MemoryDevice::new(2);
    device.set(Lba(1), Content::Pattern(Pattern::new(0x0102_0304)));
    let mut export = Export::new(device);
    let mut bytes = [0; 12];
    export.read(NOW, 4096 + 2, &mut bytes).unwrap();
    assert_eq!(bytes, [2, 1, 0, 0, 0, 0, 4, 3, 2, 1, 0, 0]);
    export.write(NOW, 4096, &[9], false).unwrap();
    export.read(NOW, 4096, &mut bytes).unwrap();
    assert_eq!(bytes, [9, 3, 2, 1, 0, 0, 0, 0, 4, 3, 2, 1]);
}

#[test]
fn extents_tell_what_was_written() {
    let mut export = export();
    export.write(NOW, 2 * 4096 + 100, &[1; 4096], false).unwrap();
    let extent = |len, allocated| Extent { len, allocated };
    let found = export.allocation(4000..BYTES as u64).unwrap();
    assert_eq!(found, [extent(4192, false), extent(8192, true), extent(20480, false)]);
    export.discard(NOW, std::slice::from_ref(&(2 * 4096..3 * 4096)), false).unwrap();
    let found = export.allocation(0..4 * 4096).unwrap();
    assert_eq!(found, [extent(3 * 4096, false), extent(4096, true)]);
}

#[test]
fn a_size_beyond_that_of_files_is_cut() {
    let export = Export::new(MemoryDevice::thin(u64::MAX, 10));
    assert_eq!(export.bytes(), (1 << 63) - (1 << 30));
}

#[test]
fn zeros_are_written_where_they_may_not_be_discarded() {
    let mut export = export();
    export.write_zeroes(NOW, 0..8192, false, false).unwrap();
    let held = |allocated| [Extent { len: 8192, allocated }];
    assert_eq!(export.allocation(0..8192).unwrap(), held(true));
    export.write_zeroes(NOW, 0..8192, true, true).unwrap();
    assert_eq!(export.allocation(0..8192).unwrap(), held(false));
}
