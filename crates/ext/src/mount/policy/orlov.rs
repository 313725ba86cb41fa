//! Group for a new inode: directories go by Orlov's rule (Orlov, 2000; described in ext4's
//! documentation), files to their directory's group.

/// Facts about a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct DirGroup {
    /// Inodes that are not used.
    pub(in super::super) free_inodes: u32,
    /// Blocks that hold nothing.
    pub(in super::super) free_blocks: u32,
    /// Directories.
    pub(in super::super) dirs: u32,
}

/// Top directories are spread: of the groups with more free inodes and blocks than the average the
/// one with fewest directories, from `start` on. Others stay near their parent, in the first group
/// that has not become too full, nor too full of directories.
pub(in super::super) fn directory_group(
    groups: &[DirGroup],
    start: u32,
    top: bool,
    (inodes_per_group, blocks_per_group): (u32, u32),
) -> Option<u32> {
    let count = groups.len().max(1) as u32;
    let average = |of: fn(&DirGroup) -> u32| {
        (groups.iter().map(|group| u64::from(of(group))).sum::<u64>() / u64::from(count)) as u32
    };
    let (inodes, blocks) = (average(|group| group.free_inodes), average(|group| group.free_blocks));
    let dirs = average(|group| group.dirs);
    let order = (0..count).map(|step| (start + step) % count);
    let group = |index: u32| groups.get(index as usize).filter(|group| group.free_inodes > 0);
    if top {
        let good = |&index: &u32| {
            group(index)
                .is_some_and(|group| group.free_inodes >= inodes && group.free_blocks >= blocks)
        };
        if let Some(best) =
            order.clone().filter(good).min_by_key(|&index| group(index).map(|group| group.dirs))
        {
            return Some(best);
        }
    }
    let max_dirs = dirs + inodes_per_group / 16;
    let min_inodes = inodes.saturating_sub(inodes_per_group / 4).max(1);
    let min_blocks = blocks.saturating_sub(blocks_per_group / 4);
    let good = |&index: &u32| {
        group(index).is_some_and(|group| {
            group.dirs < max_dirs
                && group.free_inodes >= min_inodes
                && group.free_blocks >= min_blocks
        })
    };
    order.clone().find(good).or_else(|| order.clone().find(|&index| group(index).is_some()))
}

/// The group of the directory if there is room for inode and content; otherwise one found by steps
/// that double, then any.
pub(in super::super) fn file_group(
    free: impl Fn(u32) -> (u32, u32),
    parent: u32,
    count: u32,
) -> Option<u32> {
    let count = count.max(1);
    let has_both = |&group: &u32| free(group).0 > 0 && free(group).1 > 0;
    let doubling =
        (0..32).map(|power| ((u64::from(parent) + (1 << power)) % u64::from(count)) as u32);
    let jumps = std::iter::once(parent).chain(doubling.take(count.ilog2() as usize));
    let all = (0..count).map(|step| (parent + step) % count);
    jumps.chain(all.clone()).find(has_both).or_else(|| all.clone().find(|&group| free(group).0 > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: DirGroup = DirGroup { free_inodes: 0, free_blocks: 0, dirs: 9 };

    fn group(free_inodes: u32, free_blocks: u32, dirs: u32) -> DirGroup {
        DirGroup { free_inodes, free_blocks, dirs }
    }

    #[test]
    fn top_directories_are_spread() {
        let groups = [group(100, 1000, 3), group(100, 1000, 1), FULL, group(100, 1000, 1)];
        let size = (128, 2000);
        assert_eq!(directory_group(&groups, 0, true, size), Some(1));
        assert_eq!(directory_group(&groups, 2, true, size), Some(3));
        assert_eq!(directory_group(&[FULL; 3], 0, true, size), None);
    }

    #[test]
    fn others_stay_near_their_parent() {
        let groups =
            [group(100, 1000, 3), group(10, 1000, 1), group(100, 100, 1), group(90, 900, 2)];
        let size = (128, 2000);
        assert_eq!(directory_group(&groups, 0, false, size), Some(0));
        assert_eq!(directory_group(&groups, 1, false, size), Some(3), "few inodes, few blocks");
        let last = [FULL, FULL, group(1, 0, 99)];
        assert_eq!(directory_group(&last, 0, false, size), Some(2));
    }

    #[test]
    fn files_stay_with_their_directory() {
        let free = |group: u32| [(5, 5), (0, 5), (5, 0), (5, 5)][group as usize];
        assert_eq!(file_group(free, 0, 4), Some(0));
        assert_eq!(file_group(free, 1, 4), Some(3));
        assert_eq!(file_group(|group| (group, 0), 1, 4), Some(1));
        assert_eq!(file_group(|_| (0, 9), 1, 4), None);
    }
}
