//! The choices of an IPLFS volume: space on the device is freed, and a checkpoint is due for its
//! discards.

/// The space of the device that is taken, and that is about to be. All in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadroomFacts {
    /// Blocks of the device that content and nodes may take.
    pub(crate) limit: u64,
    /// In use, and on the device.
    pub(crate) placed: u64,
    /// Given up, and still held by the device.
    pub(crate) dead: u64,
    /// Blocks in use that the next checkpoint writes anew, or a recovery would.
    pub(crate) pending: u64,
    /// Blocks of the next checkpoint's pack and NAT, which `limit` leaves out.
    pub(crate) metadata: u64,
    /// Free blocks of the device; `None` if it does not say.
    pub(crate) device: Option<u64>,
}

/// Blocks that may be written between two looks at the headroom: a few pages of content, the nodes
/// that point to them, and what one call changes beside them. Assumed.
pub(crate) const HEADROOM_MARGIN: u64 = 64;

/// Dead blocks have to be discarded before more is written.
pub(crate) const fn is_tight(facts: &HeadroomFacts) -> bool {
    let coming = facts.pending.saturating_add(HEADROOM_MARGIN);
    let short = match facts.device {
        Some(free) => free < coming.saturating_add(facts.metadata),
        None => false,
    };
    short || facts.placed.saturating_add(facts.dead).saturating_add(coming) > facts.limit
}

/// An fsync may write so many dirty nodes as records: each leaves a dead one behind, and a recovery
/// writes it once more, since a power cut can come before space is freed.
pub(crate) const fn can_log(facts: &HeadroomFacts, nodes: u64) -> bool {
    !is_tight(&HeadroomFacts { pending: facts.pending.saturating_add(nodes), ..*facts })
}

/// Half of the discard log is spoken for by what was given up since the last checkpoint.
pub(crate) const fn log_is_due(fresh_bytes: u64, log_bytes: u64) -> bool {
    fresh_bytes > log_bytes / 2
}

/// Extents of earlier logs that the device was not told of go into this log too, if they fit.
/// Otherwise the device is told before this checkpoint is complete: its last flush makes that
/// durable.
pub(crate) const fn can_carry(fresh_bytes: u64, carried_bytes: u64, log_bytes: u64) -> bool {
    fresh_bytes.saturating_add(carried_bytes) <= log_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_freed_before_the_device_is_full() {
        let base = HeadroomFacts {
            limit: 1000,
            placed: 500,
            dead: 400,
            pending: 36,
            ..HeadroomFacts::default()
        };
        assert!(!is_tight(&base));
        assert!(is_tight(&HeadroomFacts { dead: 401, ..base }));
        assert!(is_tight(&HeadroomFacts { pending: 37, ..base }));
        assert!(
            is_tight(&HeadroomFacts { device: Some(99), ..base })
                && !is_tight(&HeadroomFacts { device: Some(100), ..base })
                && is_tight(&HeadroomFacts { device: Some(100), metadata: 1, ..base })
        );
    }

    #[test]
    fn figures_of_a_damaged_volume_do_not_overflow() {
        let most = HeadroomFacts {
            limit: 1000,
            placed: 5,
            dead: u64::MAX,
            pending: u64::MAX,
            ..HeadroomFacts::default()
        };
        assert!(
            is_tight(&most) && is_tight(&HeadroomFacts { device: Some(7), metadata: 9, ..most })
        );
    }

    #[test]
    fn a_record_leaves_space_for_its_recovery() {
        let base = HeadroomFacts {
            limit: 1000,
            placed: 500,
            dead: 400,
            pending: 0,
            ..HeadroomFacts::default()
        };
        assert!(can_log(&base, 36) && !can_log(&base, 37));
        assert!(!can_log(&base, u64::MAX));
    }

    #[test]
    fn a_log_is_never_larger_than_it_may_be() {
        assert!(log_is_due(51, 100) && !log_is_due(50, 100));
        assert!(can_carry(60, 40, 100) && !can_carry(60, 41, 100));
        assert!(!can_carry(1, u64::MAX, 100));
    }
}
