//! The choice between a roll-forward record and a whole checkpoint for an fsync.

/// The facts of the choice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FsyncFacts {
    /// Something other than a regular file.
    pub(crate) special: bool,
    /// The file is compressed.
    pub(crate) compressed: bool,
    /// Names of the file.
    pub(crate) links: u32,
    /// The directory that the inode names may not be its parent any more.
    pub(crate) lost_parent: bool,
    /// The parent was made since the last checkpoint.
    pub(crate) new_parent: bool,
    /// The parent's extended attributes changed since the last checkpoint.
    pub(crate) parent_xattrs: bool,
    /// Blocks written since the last checkpoint may not fit when they are recovered.
    pub(crate) no_space_to_recover: bool,
    /// `active_logs=2`: nodes of all kinds share one log, which is no chain.
    pub(crate) two_logs: bool,
    /// The file lost whole nodes since the last checkpoint, by a truncation: no record would say
    /// so.
    pub(crate) dropped_nodes: bool,
    /// Cleaning gave blocks of the file addresses that the device moves them to with the next
    /// checkpoint: a record would lead to what is not there.
    pub(crate) held_moves: bool,
    /// No record can be found from the last checkpoint on: none was written since the mount, so
    /// that what follows the log's place may be of the mount before, under the same version; or the
    /// log was cut off.
    pub(crate) no_chain: bool,
    /// The inode is new, and its parent lost a directory: its name may be that directory's, which
    /// recovery would have to remove with all that the last checkpoint knows below it.
    pub(crate) parent_lost_dir: bool,
    /// `fsync_mode=strict`, the inode is new, and its parent had entries renamed or removed.
    pub(crate) strict_parent_changed: bool,
}

/// An fsync that recovery could not roll forward becomes a checkpoint (Linux 6.1, but for the last
/// four).
pub(crate) const fn must_checkpoint(facts: &FsyncFacts) -> bool {
    facts.special
        || facts.compressed
        || facts.links != 1
        || facts.lost_parent
        || facts.new_parent
        || facts.parent_xattrs
        || facts.no_space_to_recover
        || facts.two_logs
        || facts.strict_parent_changed
        || facts.dropped_nodes
        || facts.held_moves
        || facts.no_chain
        || facts.parent_lost_dir
}
