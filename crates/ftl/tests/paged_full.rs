//! A demand-paged map on a drive with as little room to spare as it takes: cleaning comes to an
//! end, though what is moved makes garbage of translation pages.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_block::{BlockDevice, BlockRange, Command, Content, Data, Hints, Lba, Pattern};
use dovetail_ftl::lines::LineShape;
use dovetail_ftl::{Drive, DriveConfig, MapCacheConfig, cache, victim};
use dovetail_nand::Geometry;
use dovetail_time::{Rng, SimTime};

/// The largest drive of 64 lines that is accepted.
fn fullest(policy: &'static victim::Policy) -> DriveConfig {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 64,
        pages_per_block: 64,
        page_bytes: 4096,
    };
    let map_cache =
        MapCacheConfig { policy: cache::policy("dftl").unwrap(), bytes: 64, page_entries: 64 };
    let of = |user_blocks| DriveConfig {
        policy,
        shape: LineShape::Block,
        map_cache: Some(map_cache),
        ..DriveConfig::plain(geometry, user_blocks)
    };
    (2000..4096).rev().find_map(|user_blocks| of(user_blocks).checked().ok()).unwrap()
}

#[test]
fn random_writes_go_on_for_ever() {
    for policy in &victim::POLICIES {
        let config = fullest(policy);
        let blocks = config.user_blocks;
        let (mut drive, mut rng, mut now) =
            (Drive::new(config).unwrap(), Rng::new(1), SimTime::ZERO);
        for write in 0..4 * blocks {
            let lba = if write < blocks { write } else { rng.below(blocks) };
            let content = [Content::Pattern(Pattern::new(write))];
            let (range, data) = (BlockRange::new(Lba(lba), 1), Data::Blocks(&content));
            let command = Command::Write { range, data, hints: Hints::default(), fua: false };
            now = drive
                .submit(now, command)
                .unwrap_or_else(|error| panic!("{}: {error}", policy.name))
                .done;
        }
        drive.check().unwrap();
    }
}
