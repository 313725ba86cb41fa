//! Mounts an input, and reads everything or changes some of it.

use dovetail_f2fs::{F2fs, Mode, Options};
use dovetail_testkit::exercise::{Changes, read_everything};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::FileSystem;

use crate::input::Input;

/// Bytes of content that are read at most.
const MAX_CONTENT: usize = 1 << 20;
/// Entries that changes choose from.
const MAX_ENTRIES: usize = 200;
/// Changes of one mount at most.
const MAX_CHANGES: u64 = 24;

/// Mounts the input read-only, walks and reads.
pub(crate) fn read(input: &mut Input<'_>) {
    let options = Options { read_only: true, ..Options::default() };
    let Ok(mut fs) = F2fs::mount(input, options, SimTime::ZERO) else { return };
    read_everything(&mut fs, MAX_CONTENT);
    let _ = fs.unmount();
}

/// Mounts the input, which recovers what there is, and changes it; then once more, perhaps as after
/// a power cut.
pub(crate) fn change(input: &mut Input<'_>, rng: &mut Rng) {
    for _ in 0..2 {
        let options = Options {
            mode: if rng.below(4) == 0 || input.is_zoned() { Mode::Lfs } else { Mode::Adaptive },
            page_cache_bytes: 64 << (10 + rng.below(11)),
            node_cache_bytes: 64 << (10 + rng.below(10)),
            ..Options::default()
        };
        let (count, cut) = (rng.below(MAX_CHANGES), rng.below(4) == 0);
        let Ok(fs) = F2fs::mount(&mut *input, options, SimTime::ZERO) else { return };
        let mut changes = Changes::new(fs, MAX_ENTRIES, rng);
        (0..count).for_each(|_| changes.change());
        changes.sync();
        changes.read_some(MAX_CONTENT / 8);
        if cut {
            changes.change();
            changes.into_inner().into_device();
        } else {
            let _ = FileSystem::unmount(Box::new(changes.into_inner()));
        }
    }
}
