//! In-place updates: the conditions under which a block is rewritten at its address.

/// The conditions under which data is written in place, as bits by the kernel's names (sysfs
/// `ipu_policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpuPolicy(pub u32);

impl IpuPolicy {
    /// Always.
    pub const FORCE: Self = Self(1);
    /// While free segments are so few that holes are filled (SSR).
    pub const SSR: Self = Self(1 << 1);
    /// While the volume is more than 70 % full (sysfs `min_ipu_util`).
    pub const UTIL: Self = Self(1 << 2);
    /// Both of the above.
    pub const SSR_UTIL: Self = Self(1 << 3);
    /// In an fdatasync, or an fsync of at most 8 pages (sysfs `min_fsync_blocks`).
    pub const FSYNC: Self = Self(1 << 4);
    /// A rewrite by background writeback.
    pub const ASYNC: Self = Self(1 << 5);
    /// Accepted and without effect here: how the kernel builds its requests.
    pub const NOCACHE: Self = Self(1 << 6);
    /// Accepted and without effect here: there is no request for out-of-place writes to honour.
    pub const HONOR_OPU_WRITE: Self = Self(1 << 7);

    /// The kernel's default: in place for small fsyncs, on volumes of at most 16 GiB always.
    pub(crate) const fn default_for(small_volume: bool) -> Self {
        if small_volume { Self(Self::FORCE.0 | Self::HONOR_OPU_WRITE.0) } else { Self::FSYNC }
    }

    const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// 16 GiB of main area: up to there the kernel (6.1) treats a volume as small.
pub(crate) const SMALL_VOLUME_SEGMENTS: u32 = 8192;

/// The facts of the choice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UpdateFacts {
    /// `mode=lfs`.
    pub(crate) lfs: bool,
    /// A block of a directory.
    pub(crate) dir: bool,
    /// Cleaning moves it.
    pub(crate) cleaning: bool,
    /// The file is pinned or marked cold.
    pub(crate) fixed: bool,
    /// See [`super::need_ssr`].
    pub(crate) need_ssr: bool,
    /// Written for an fdatasync, or for an fsync of few pages.
    pub(crate) small_fsync: bool,
    /// Written by background writeback.
    pub(crate) asynchronous: bool,
    /// Written past the page cache.
    pub(crate) direct: bool,
    /// More of the user's blocks are in use than sysfs `min_ipu_util` says.
    pub(crate) full: bool,
}

/// A block that has an address is written there again (Linux 6.1).
pub(crate) const fn in_place(policy: IpuPolicy, facts: UpdateFacts) -> bool {
    if facts.lfs || facts.dir || facts.cleaning {
        return false;
    }
    if facts.direct {
        return true;
    }
    facts.fixed
        || policy.has(IpuPolicy::FORCE)
        || (policy.has(IpuPolicy::SSR) && facts.need_ssr)
        || (policy.has(IpuPolicy::UTIL) && facts.full)
        || (policy.has(IpuPolicy::SSR_UTIL) && facts.need_ssr && facts.full)
        || (policy.has(IpuPolicy::FSYNC) && facts.small_fsync)
        || (policy.has(IpuPolicy::ASYNC) && facts.asynchronous)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_needs_its_condition() {
        let base = UpdateFacts::default();
        let full = UpdateFacts { full: true, ..base };
        assert!(in_place(IpuPolicy::FORCE, base));
        assert!(!in_place(IpuPolicy::FORCE, UpdateFacts { lfs: true, ..base }));
        assert!(!in_place(IpuPolicy::FORCE, UpdateFacts { cleaning: true, ..base }));
        assert!(!in_place(IpuPolicy::UTIL, base));
        assert!(in_place(IpuPolicy::UTIL, full));
        assert!(!in_place(IpuPolicy::SSR_UTIL, full));
        assert!(in_place(IpuPolicy::SSR_UTIL, UpdateFacts { need_ssr: true, ..full }));
        assert!(in_place(IpuPolicy::FSYNC, UpdateFacts { small_fsync: true, ..base }));
        assert!(!in_place(IpuPolicy::FSYNC, base));
        assert!(in_place(IpuPolicy(0), UpdateFacts { fixed: true, ..base }));
        assert!(in_place(IpuPolicy(0), UpdateFacts { direct: true, ..base }));
        assert!(!in_place(IpuPolicy(0), UpdateFacts { direct: true, lfs: true, ..base }));
    }

    #[test]
    fn small_volumes_write_in_place() {
        assert_eq!(IpuPolicy::default_for(true), IpuPolicy(0x81));
        assert_eq!(IpuPolicy::default_for(false), IpuPolicy(0x10));
    }
}
