//! Block maps, the way of ext2 and ext3: 12 direct pointers, then trees of one, two and three
//! levels.

/// Pointers in the inode that lead to data.
pub const DIRECT_POINTERS: u32 = 12;

/// The way from the inode to a block of a file: `slots[0]` among the inode's 15 pointers, then one
/// slot in each block of pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerWay {
    slots: [u32; 4],
    depth: u32,
}

impl PointerWay {
    /// The way to block `block` of a file, with `per_block` pointers in a block; `None` beyond the
    /// largest file.
    pub fn to(block: u32, per_block: u32) -> Option<Self> {
        if block < DIRECT_POINTERS {
            return Some(Self { slots: [block, 0, 0, 0], depth: 0 });
        }
        let (per_block, mut left) = (u64::from(per_block), u64::from(block - DIRECT_POINTERS));
        for depth in 1..=3 {
            let reach = per_block.pow(depth);
            if left < reach {
                return Some(Self::down(depth, left, per_block));
            }
            left -= reach;
        }
        None
    }

    fn down(depth: u32, left: u64, per_block: u64) -> Self {
        let mut slots = [DIRECT_POINTERS + depth - 1, 0, 0, 0];
        for (level, slot) in (1..=depth).zip(&mut slots[1..]) {
            *slot = (left / per_block.pow(depth - level) % per_block) as u32;
        }
        Self { slots, depth }
    }

    /// Blocks of pointers on the way: 0 to 3.
    pub const fn depth(&self) -> u32 {
        self.depth
    }

    /// The slots, one more than [`Self::depth`].
    pub fn slots(&self) -> &[u32] {
        &self.slots[..=self.depth as usize]
    }
}

/// Number of blocks of a file below a pointer that stands `depth` blocks of pointers above the
/// data.
pub const fn blocks_below(depth: u32, per_block: u32) -> u64 {
    (per_block as u64).pow(depth)
}

/// The first block of a file that lies beyond what pointers reach.
pub const fn blocks_reached(per_block: u32) -> u64 {
    let p = per_block as u64;
    DIRECT_POINTERS as u64 + p + p * p + p * p * p
}

/// Pointer `slot` of a block of pointers; 0 beyond its end.
pub fn pointer(block: &[u8], slot: u32) -> u32 {
    block.as_chunks::<4>().0.get(slot as usize).map_or(0, |word| u32::from_le_bytes(*word))
}

/// Sets pointer `slot` of a block of pointers; nothing beyond its end.
pub fn set_pointer(block: &mut [u8], slot: u32, to: u32) {
    if let Some(word) = block.as_chunks_mut::<4>().0.get_mut(slot as usize) {
        *word = to.to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_follow_each_other() {
        let slots = |block| PointerWay::to(block, 256).map(|way| way.slots().to_vec());
        assert_eq!(slots(11).unwrap(), [11]);
        assert_eq!(slots(12).unwrap(), [12, 0]);
        assert_eq!(slots(12 + 255).unwrap(), [12, 255]);
        assert_eq!(slots(12 + 256).unwrap(), [13, 0, 0]);
        assert_eq!(slots(12 + 256 + 65_535).unwrap(), [13, 255, 255]);
        assert_eq!(slots(12 + 256 + 65_536 + 256 * 3 + 7).unwrap(), [14, 0, 3, 7]);
        let last = (blocks_reached(256) - 1) as u32;
        assert_eq!(slots(last).unwrap(), [14, 255, 255, 255]);
        assert_eq!(slots(last + 1), None);
    }

    #[test]
    fn pointers_are_set_and_read() {
        let mut block = [0; 1024];
        set_pointer(&mut block, 255, 7);
        set_pointer(&mut block, 256, 8);
        assert_eq!((pointer(&block, 255), pointer(&block, 256), block[1020]), (7, 0, 7));
    }
}
