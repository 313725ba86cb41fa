//! Preferred address of the next block of a file.

/// A mapped block of the file near the one that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Neighbour {
    /// Its number in the file.
    pub(in super::super) block: u32,
    /// Its address.
    pub(in super::super) at: u64,
}

/// As far from the neighbour as in the file, so that what is written between and behind fits;
/// without one, the start of the inode's group (ext4's documentation, "Block and Inode Allocation
/// Policy").
pub(in super::super) fn goal(block: u32, neighbour: Option<Neighbour>, group_start: u64) -> u64 {
    match neighbour {
        Some(near) if block >= near.block => near.at + u64::from(block - near.block),
        Some(near) => near.at.saturating_sub((near.block - block).into()).max(1),
        None => group_start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_on_where_they_ended() {
        let near = Some(Neighbour { block: 9, at: 109 });
        assert_eq!(goal(10, near, 7), 110);
        assert_eq!(goal(5, near, 7), 105);
        assert_eq!(goal(5, Some(Neighbour { block: 9, at: 2 }), 7), 1);
        assert_eq!(goal(5, None, 7), 7);
    }
}
