//! Mapping entries that a drive keeps in its memory when the whole map lies on flash.
//!
//! A [`Cache`] knows keys and no addresses: what is cached, what of it is dirty, and what has to be
//! read from flash and written to it so that an entry can be used. It returns that as
//! [`CacheStep`]s and the drive carries them out. A policy is one file and one line in
//! [`POLICIES`]. See `docs/mapping-caches.md` for what was taken from which paper.

mod cdftl;
mod condensed;
mod dftl;
mod extent;
mod flashsim;
mod lanes;
mod leaftl;
mod list;
mod lru;
#[cfg(test)]
mod model;
mod pages;
mod runs;
mod s_ftl;
mod segmented;
mod single;
mod split;
mod split_bounded;
mod table;
mod tpftl;

/// A mapping entry: the number of its logical page.
pub type Entry = u64;

/// A translation page: the entries `page << shift` to `(page + 1) << shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TranslationPage(pub u64);

/// The reason why an entry is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Its address is read.
    Read,
    /// Its address is changed by a write.
    Write,
    /// Its address is dropped: a trim.
    Trim,
    /// Its address is changed and nothing is written.
    Remap,
}

impl Access {
    /// Its address is changed.
    pub const fn is_change(self) -> bool {
        !matches!(self, Self::Read)
    }
}

/// Something to be done on flash, in the order in which steps are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheStep {
    /// A translation page is written with all changes that the cache had of it. Unless `whole` is
    /// set, the page on flash must be read before: the cache has only a part of it.
    Write {
        /// Number of the translation page.
        page: TranslationPage,
        /// Set if all its entries are cached.
        whole: bool,
    },
    /// A translation page is read.
    Read {
        /// Number of the translation page.
        page: TranslationPage,
    },
}

/// The size and shape of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Bytes of memory for it.
    pub bytes: u64,
    /// Entries of a translation page as a power of two, 0 to 16.
    pub shift: u32,
}

/// Bytes of an entry in a cache of single entries: logical and physical page number (the paper of
/// the split cache, section IV).
pub const ENTRY_BYTES: u64 = 8;
/// Entries that a cache has room for at least, whatever its bytes: below this a segmented list has
/// no segments.
const FEWEST_ENTRIES: u64 = 8;

impl CacheConfig {
    /// Entries of [`ENTRY_BYTES`] that there is room for.
    pub fn entries(&self) -> usize {
        (self.bytes / ENTRY_BYTES).max(FEWEST_ENTRIES) as usize
    }

    fn page_of(&self, entry: Entry) -> TranslationPage {
        TranslationPage(entry >> self.shift)
    }

    fn page_entries(&self) -> u64 {
        1 << self.shift
    }
}

/// The present content of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Entries.
    pub entries: u64,
    /// Of them, those that flash does not have.
    pub dirty: u64,
    /// Of a split cache: entries of the write part.
    pub write_part: u64,
    /// Of a split cache: the multiple access hard threshold.
    pub maht: u64,
}

/// The map as a cache sees it.
pub trait Shape {
    /// Runs of a translation page: entries in a row whose flash pages follow each other, or that
    /// have none.
    fn runs(&self, page: TranslationPage) -> u32;

    /// The flash page of an entry, if it has one; `None` behind the last entry.
    fn place(&self, entry: Entry) -> Option<u64>;

    /// Tells whether the address of the entry behind `entry` follows its own, or both have none.
    fn follows(&self, entry: Entry) -> bool;
}

/// The copy of a cache behind its trait; a cache that is [`Clone`] has it.
pub trait CopyCache {
    /// A cache of its own with the same content.
    fn copy(&self) -> Box<dyn Cache>;
}

impl<C: Cache + Clone + 'static> CopyCache for C {
    fn copy(&self) -> Box<dyn Cache> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Cache> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}

/// A cache of mapping entries.
pub trait Cache: std::fmt::Debug + Send + CopyCache {
    /// Makes `entry` available, marks it dirty if it is for a write, and says whether it was there
    /// before. What has to be done on flash is added to `steps`: first what makes room, then the
    /// read of the entry's translation page.
    ///
    /// `following` entries after it are part of the same request and will be asked for next.
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        following: u32,
        shape: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool;

    /// The drive has moved the page of `entry`. Says whether the cache takes the change, to be
    /// written some time later; otherwise the translation page must be changed on flash. Says
    /// nothing of how much the entry is wanted.
    fn moved(&mut self, entry: Entry) -> bool;

    /// The translation page is about to be written for another reason, with all changes: its
    /// entries are clean.
    fn written(&mut self, page: TranslationPage);

    /// Tells whether the cache has a change of `entry` that flash lacks.
    fn is_dirty(&self, entry: Entry) -> bool;

    /// Returns what is in it.
    fn occupancy(&self) -> Occupancy;
}

/// One cache policy.
#[derive(Debug)]
pub struct Policy {
    /// Its name in profiles and on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// Builds an empty cache.
    pub build: fn(CacheConfig) -> Box<dyn Cache>,
}

impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// All cache policies.
pub static POLICIES: [Policy; 13] = [
    dftl::POLICY,
    split::POLICY,
    split_bounded::POLICY,
    dftl::SINGLE,
    flashsim::POLICY,
    lru::POLICY,
    cdftl::POLICY,
    s_ftl::POLICY,
    leaftl::POLICY,
    leaftl::BOUNDED,
    tpftl::POLICY,
    extent::POLICY,
    lanes::POLICY,
];

/// The policy of that name.
pub fn policy(name: &str) -> Option<&'static Policy> {
    POLICIES.iter().find(|policy| policy.name == name)
}
