//! New volumes of any shape: refused with an error, or sound.

use dovetail_block::MemoryDevice;
use dovetail_ext::fsck::{Options as CheckOptions, check};
use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
use dovetail_ext::{Ext, Options};
use dovetail_testkit::exercise::Changes;
use dovetail_time::{Rng, SimTime};

/// Options that mostly fit together, and sometimes do not.
fn options(rng: &mut Rng) -> MkfsOptions {
    let kind = [Kind::Ext2, Kind::Ext3, Kind::Ext4][rng.below(3) as usize];
    let mut options = MkfsOptions::new(kind);
    let (block, ratio, journal) =
        (1024 << rng.below(4), 1 << (9 + rng.below(19)), 900 + rng.below(5000));
    let mut perhaps = |value: u64| (rng.below(3) > 0).then_some(value as u32);
    options.block_size = perhaps(block);
    options.inode_ratio = perhaps(ratio);
    options.journal_blocks = perhaps(journal);
    options.blocks_per_group = (rng.below(3) == 0).then(|| 8 << rng.below(13));
    options.inodes = (rng.below(4) == 0).then(|| 1 << rng.below(24));
    options.inode_size = 64 << rng.below(8);
    options.reserved_percent = rng.below(60) as u32;
    options.lazy_itable_init = rng.below(2) == 0;
    options.time = rng.next_u64() >> (30 + rng.below(34));
    if rng.below(4) == 0 {
        options.compat.0 ^= 1 << rng.below(10);
    }
    if rng.below(4) == 0 {
        options.incompat.0 ^= 1 << rng.below(16);
    }
    if rng.below(4) == 0 {
        options.ro_compat.0 ^= 1 << rng.below(14);
    }
    options
}

/// Makes a volume on a device of any size up to 256 MiB, checks it, and changes it if it has a
/// journal.
pub(crate) fn make(rng: &mut Rng) {
    let log = 4 + rng.below(13);
    let blocks = rng.below(1 << log);
    let options = options(rng);
    let mut device = MemoryDevice::new(blocks);
    if mkfs(&mut device, &options).is_err() {
        return;
    }
    let sound = |device: MemoryDevice| {
        let report = check(device, CheckOptions::default()).unwrap();
        assert!(report.is_clean(), "{blocks} blocks, {options:?}: {:?}", report.findings);
    };
    sound(device.clone());
    let Ok(fs) = Ext::mount(device, Options::default(), SimTime::ZERO) else { return };
    let mut changes = Changes::new(fs, 20, rng);
    (0..12).for_each(|_| changes.change());
    if let Ok(device) = changes.into_inner().unmount() {
        sound(device);
    }
}
