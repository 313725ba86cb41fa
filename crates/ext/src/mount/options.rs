//! Mount options, by the kernel's names.

use dovetail_vfs::kit::{Flag, OptionError, OptionTable, Valued, Values};

/// Order between content and journal (`data=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataMode {
    /// Content is written before the transaction that makes it reachable.
    Ordered,
    /// Content is written whenever; after a crash a file may show what its blocks held before.
    Writeback,
    /// Content goes through the journal as well.
    Journal,
}

/// The options of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `data=ordered|writeback|journal`
    pub data: DataMode,
    /// `barrier|nobarrier`, `barrier=0|1`: commits flush the device's cache.
    pub barrier: bool,
    /// `commit=`: seconds after which the running transaction is committed.
    pub commit_interval_s: u64,
    /// `delalloc|nodelalloc`: blocks get their place when they are written to the device. Only
    /// where files have extents.
    pub delalloc: bool,
    /// `auto_da_alloc|noauto_da_alloc`: content that replaces a file's, by a rename or after a
    /// truncation to nothing, is written before the next commit.
    pub auto_da_alloc: bool,
    /// `discard|nodiscard`: freed blocks are given back to the device after the commit.
    pub discard: bool,
    /// `ro|rw`: nothing is changed, but for the replay of the journal.
    pub read_only: bool,
    /// `noload`, `norecovery`: the journal is not replayed; only with `ro`.
    pub no_load: bool,
    /// Pages of content kept in memory, in bytes. Assumed default: 64 MiB.
    pub page_cache_bytes: u64,
    /// Large writes of bytes go to the device at once, past the page cache: for a mount, above which
    /// there is another cache. Otherwise writes of bytes and of named content take one way.
    pub writes_past_cache: bool,
    /// Dirty content, in bytes, from which the background writes it at once rather than when it is
    /// old (Linux: `dirty_background_ratio`); `None` for never.
    pub dirty_background_bytes: Option<u64>,
    /// Blocks of metadata kept in memory beside those of the running transaction, in bytes. Assumed
    /// default: 32 MiB.
    pub meta_cache_bytes: u64,
    /// A spare bit of block pointers tells physical (device) addresses from those of the volume: a
    /// capability for tools above, no option of the kernel. Without it a pointer with the bit is
    /// damage.
    pub physical_pointers: bool,
    /// Seed of generation numbers and of where new top directories go.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            data: DataMode::Ordered,
            barrier: true,
            commit_interval_s: 5,
            delalloc: true,
            auto_da_alloc: true,
            discard: false,
            read_only: false,
            no_load: false,
            page_cache_bytes: 64 << 20,
            writes_past_cache: false,
            dirty_background_bytes: None,
            meta_cache_bytes: 32 << 20,
            physical_pointers: false,
            seed: 0,
        }
    }
}

/// The options there are.
const TABLE: OptionTable<Options> = OptionTable {
    of: " for ext3 and ext4",
    document: "`dovetail help ext-mount`",
    flags: &FLAGS,
    valued: &VALUED,
    without_effect: &WITHOUT_EFFECT,
    refused: &REFUSED,
};

const FLAGS: [Flag<Options>; 12] = [
    ("barrier", |options| options.barrier = true),
    ("nobarrier", |options| options.barrier = false),
    ("delalloc", |options| options.delalloc = true),
    ("nodelalloc", |options| options.delalloc = false),
    ("auto_da_alloc", |options| options.auto_da_alloc = true),
    ("noauto_da_alloc", |options| options.auto_da_alloc = false),
    ("discard", |options| options.discard = true),
    ("nodiscard", |options| options.discard = false),
    ("ro", |options| options.read_only = true),
    ("rw", |options| options.read_only = false),
    ("noload", |options| options.no_load = true),
    ("norecovery", |options| options.no_load = true),
];

const VALUED: [Valued<Options>; 3] = [
    Valued {
        name: "data",
        allowed: "ordered, writeback or journal",
        values: Values::Words(&[
            ("ordered", |options| options.data = DataMode::Ordered),
            ("writeback", |options| options.data = DataMode::Writeback),
            ("journal", |options| options.data = DataMode::Journal),
        ]),
    },
    Valued {
        name: "barrier",
        allowed: "0 or 1",
        values: Values::Words(&[
            ("0", |options| options.barrier = false),
            ("1", |options| options.barrier = true),
        ]),
    },
    Valued { name: "commit", allowed: "0 to 86400 seconds", values: Values::Parsed(set_commit) },
];

/// As in the kernel, 0 is the default.
fn set_commit(options: &mut Options, value: &str) -> bool {
    let seconds = value.parse::<u64>().ok().filter(|seconds| *seconds <= 86_400);
    options.commit_interval_s = match seconds {
        Some(0) => Options::default().commit_interval_s,
        Some(seconds) => seconds,
        None => options.commit_interval_s,
    };
    seconds.is_some()
}

/// Options of the kernel that change nothing here, since they tune what this implementation does
/// not have.
const WITHOUT_EFFECT: [&str; 26] = [
    "lazytime",
    "nolazytime",
    "relatime",
    "noatime",
    "user_xattr",
    "nouser_xattr",
    "acl",
    "noacl",
    "dioread_nolock",
    "dioread_lock",
    "block_validity",
    "noblock_validity",
    "journal_checksum",
    "nojournal_checksum",
    "errors=remount-ro",
    "i_version",
    "init_itable",
    "init_itable=",
    "inode_readahead_blks=",
    "nogrpid",
    "sysvgroups",
    "resuid=",
    "resgid=",
    "noinit_itable",
    "noquota",
    "journal_ioprio=",
];

const NO_QUOTA: &str = "quotas are not counted";
const CREATORS_GROUP: &str = "a new file has the group of who makes it, or of a setgid directory";
const TIMES: &str = "the order of commits and their blocks is fixed";

/// Options of the kernel that would change what is written, and the reason why they are not taken.
const REFUSED: [(&str, &str); 16] = [
    ("errors", "an error ends the mount's writing, as errors=remount-ro"),
    ("grpid", CREATORS_GROUP),
    ("bsdgroups", CREATORS_GROUP),
    ("stripe", "blocks are placed without regard to stripes"),
    ("journal_async_commit", TIMES),
    ("min_batch_time", TIMES),
    ("max_batch_time", TIMES),
    ("usrquota", NO_QUOTA),
    ("grpquota", NO_QUOTA),
    ("prjquota", NO_QUOTA),
    ("quota", NO_QUOTA),
    ("usrjquota", NO_QUOTA),
    ("grpjquota", NO_QUOTA),
    ("jqfmt", NO_QUOTA),
    ("dax", "the page cache is always used"),
    ("data_err", "a failed write ends the mount's writing"),
];

impl Options {
    /// Takes in one option, "name" or "name=value".
    ///
    /// # Errors
    /// An unknown name, a value that the option cannot have.
    pub fn set(&mut self, option: &str) -> Result<(), OptionError> {
        TABLE.set(self, option)
    }

    /// Takes in options separated by commas, as `mount -o` has them. Empty ones say nothing.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn parse(list: &str) -> Result<Self, OptionError> {
        TABLE.parse(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_by_the_kernels_names() {
        let options =
            Options::parse("data=journal,barrier=0,commit=30,nodelalloc,discard,ro,noload")
                .unwrap();
        assert_eq!(
            (options.data, options.barrier, options.commit_interval_s),
            (DataMode::Journal, false, 30)
        );
        assert!(!options.delalloc && options.discard && options.read_only && options.no_load);
        assert_eq!(Options::parse("ro,nobarrier,,rw,barrier,noatime").unwrap(), Options::default());
    }

    #[test]
    fn what_is_unknown_is_named() {
        let error = Options::parse("data=none").unwrap_err().to_string();
        assert!(error.contains("ordered, writeback or journal"), "{error}");
        let error = Options::parse("usrquota").unwrap_err().to_string();
        assert!(error.contains("\"usrquota\" is not supported: quotas"), "{error}");
        let error = Options::parse("strip=4").unwrap_err().to_string();
        assert!(error.contains("there is no mount option \"strip=4\""), "{error}");
    }

    /// Options in backquotes in the first column of the page's table, and in its list of those
    /// without effect.
    fn documented() -> Vec<String> {
        let page = include_str!("../../../../docs/ext-mount.md");
        let (_, options) = page.split_once("## Mount options").unwrap();
        let (options, _) = options.split_once("\n## ").unwrap();
        let (table, rest) = options.split_once("Accepted, and without effect:").unwrap();
        let (rest, _) = rest.split_once("\nRefused, with the reason:").unwrap();
        let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
        let names = cells.flat_map(|cell| cell.split(", ").map(|name| name.trim_matches('`')));
        let others = rest.split('`').skip(1).step_by(2);
        names.chain(others).map(str::to_string).collect()
    }

    #[test]
    fn the_page_names_what_is_accepted() {
        let documented = documented();
        for option in &documented {
            let value = if option.ends_with('=') { "1" } else { "" };
            assert_eq!(Options::default().set(&format!("{option}{value}")), Ok(()), "{option}");
        }
        let flags = FLAGS.iter().map(|flag| flag.0).chain(WITHOUT_EFFECT);
        let missing: Vec<_> =
            flags.filter(|flag| !documented.iter().any(|name| name == flag)).collect();
        assert_eq!(missing, [""; 0]);
    }
}
