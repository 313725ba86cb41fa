//! The state of free sections: enough to go on, too few for new segments, or only holes left.

/// The facts of the choices. Dirty counts are blocks that a checkpoint would write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SpaceFacts {
    /// Sections without any valid block that may be written now.
    pub(crate) free_sections: u32,
    /// Sections that the volume keeps for cleaning.
    pub(crate) reserved_sections: u32,
    /// Blocks in a section.
    pub(crate) section_blocks: u32,
    /// Dirty node blocks.
    pub(crate) dirty_nodes: u32,
    /// Dirty directory blocks.
    pub(crate) dirty_dents: u32,
    /// Dirty blocks of files, where they count: with `mode=lfs`, as in Linux 6.12.
    pub(crate) dirty_data: u32,
    /// Blocks of a node log's section that hold nothing, the smallest of the three.
    pub(crate) node_log_left: u32,
    /// The same of the hot data log.
    pub(crate) dent_log_left: u32,
    /// The same of the three data logs.
    pub(crate) data_log_left: u32,
    /// `mode=lfs`.
    pub(crate) lfs: bool,
}

/// Enough free sections for what is dirty, with the reserve untouched (Linux 6.12:
/// `has_enough_free_secs`).
pub(crate) const fn enough_free(facts: &SpaceFacts) -> bool {
    let (dents, data, size) = (facts.dirty_dents, facts.dirty_data, facts.section_blocks);
    let nodes = facts.dirty_nodes + dents;
    let lower = nodes / size + dents / size + data / size;
    let upper = nodes.div_ceil(size) + dents.div_ceil(size) + data.div_ceil(size);
    let needed = facts.reserved_sections;
    if facts.free_sections > upper + needed {
        return true;
    }
    if facts.free_sections <= lower + needed {
        return false;
    }
    nodes % size <= facts.node_log_left
        && dents % size <= facts.dent_log_left
        && data % size <= facts.data_log_left
}

/// Free sections are so few that holes in used segments are filled instead (Linux 6.1).
pub(crate) const fn need_ssr(facts: &SpaceFacts) -> bool {
    if facts.lfs {
        return false;
    }
    let nodes = facts.dirty_nodes.div_ceil(facts.section_blocks);
    let dents = facts.dirty_dents.div_ceil(facts.section_blocks);
    // min_ssr_sections defaults to the reserve, which counts a second time.
    facts.free_sections <= nodes + 2 * dents + 2 * facts.reserved_sections
}

/// Logs that a recovery moves to free sections before it writes anything.
const MOVED_LOGS: u32 = 6;

/// A recovery would have free sections for so many blocks, most of them nodes: the last checkpoint
/// and the chain of records keep theirs until it is through. Of each log the last section may be
/// used in part only; the one that each log moves to makes up for that.
pub(crate) const fn has_room_to_recover(facts: &SpaceFacts, blocks: u64) -> bool {
    let sections = facts.free_sections.saturating_sub(MOVED_LOGS);
    blocks <= sections as u64 * facts.section_blocks as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: SpaceFacts = SpaceFacts {
        free_sections: 0,
        reserved_sections: 10,
        section_blocks: 512,
        dirty_nodes: 0,
        dirty_dents: 0,
        dirty_data: 0,
        node_log_left: 0,
        dent_log_left: 0,
        data_log_left: 0,
        lfs: false,
    };

    #[test]
    fn the_reserve_and_what_is_dirty_must_fit() {
        let free = |free_sections| SpaceFacts { free_sections, ..BASE };
        assert!(!enough_free(&free(10)));
        assert!(enough_free(&free(11)));
        let dirty = SpaceFacts { dirty_nodes: 100, ..free(11) };
        assert!(!enough_free(&dirty), "neither a section nor a rest of the log");
        assert!(enough_free(&SpaceFacts { node_log_left: 100, ..dirty }));
        assert!(enough_free(&SpaceFacts { free_sections: 12, ..dirty }));
    }

    #[test]
    fn dirty_data_need_room_in_their_logs_as_well() {
        let logs = SpaceFacts { node_log_left: 9, dent_log_left: 9, ..BASE };
        let dirty = |free_sections, left| {
            let both = SpaceFacts { dirty_nodes: 5, dirty_data: 5, ..logs };
            SpaceFacts { free_sections, data_log_left: left, ..both }
        };
        assert!(enough_free(&dirty(13, 0)), "a section for each kind");
        assert!(!enough_free(&dirty(12, 4)) && enough_free(&dirty(12, 5)));
        assert!(enough_free(&dirty(11, 5)) && !enough_free(&dirty(10, 5)));
    }

    #[test]
    fn a_recovery_needs_sections_beside_those_that_the_logs_move_to() {
        let free = |free_sections| SpaceFacts { free_sections, ..BASE };
        assert!(has_room_to_recover(&free(8), 1024) && !has_room_to_recover(&free(8), 1025));
        assert!(has_room_to_recover(&free(6), 0) && !has_room_to_recover(&free(5), 1));
    }

    #[test]
    fn holes_are_filled_when_twice_the_reserve_is_left() {
        assert!(need_ssr(&SpaceFacts { free_sections: 20, ..BASE }));
        assert!(!need_ssr(&SpaceFacts { free_sections: 21, ..BASE }));
        assert!(need_ssr(&SpaceFacts { free_sections: 23, dirty_dents: 513, ..BASE }));
        assert!(!need_ssr(&SpaceFacts { free_sections: 1, lfs: true, ..BASE }));
    }
}
