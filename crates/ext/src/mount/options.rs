//! Mount options, by the kernel's names.

/// How content and journal depend on each other (`data=`).
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
    /// `delalloc|nodelalloc`: blocks get their place when they are written to the device. Only where files have extents.
    pub delalloc: bool,
    /// `discard|nodiscard`: freed blocks are given back to the device after the commit.
    pub discard: bool,
    /// `ro|rw`: nothing is changed, but for the replay of the journal.
    pub read_only: bool,
    /// `noload`, `norecovery`: the journal is not replayed; only with `ro`.
    pub no_load: bool,
    /// Pages of content kept in memory, in bytes. Assumed default: 64 MiB.
    pub page_cache_bytes: u64,
    /// Blocks of metadata kept in memory beside those of the running transaction, in bytes. Assumed default: 32 MiB.
    pub meta_cache_bytes: u64,
    /// A spare bit of block pointers tells physical (device) addresses from those of the volume: a capability for tools
    /// above, no option of the kernel. Without it a pointer with the bit is damage.
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
            discard: false,
            read_only: false,
            no_load: false,
            page_cache_bytes: 64 << 20,
            meta_cache_bytes: 32 << 20,
            physical_pointers: false,
            seed: 0,
        }
    }
}

/// Why a list of mount options cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// No option of that name.
    #[error("there is no mount option \"{0}\" for ext3 and ext4; docs/ext-mount.md lists those there are")]
    Unknown(String),
    /// An option with a value that it cannot have.
    #[error("mount option \"{name}\" cannot be \"{value}\": allowed is {allowed}")]
    Value {
        /// The option.
        name: &'static str,
        /// What was given.
        value: String,
        /// What may be given.
        allowed: &'static str,
    },
}

/// An option without a value, and what it sets.
type Flag = (&'static str, fn(&mut Options));

const FLAGS: [Flag; 10] = [
    ("barrier", |options| options.barrier = true),
    ("nobarrier", |options| options.barrier = false),
    ("delalloc", |options| options.delalloc = true),
    ("nodelalloc", |options| options.delalloc = false),
    ("discard", |options| options.discard = true),
    ("nodiscard", |options| options.discard = false),
    ("ro", |options| options.read_only = true),
    ("rw", |options| options.read_only = false),
    ("noload", |options| options.no_load = true),
    ("norecovery", |options| options.no_load = true),
];

/// Options of the kernel that change nothing here, since they tune what this implementation does not have.
const WITHOUT_EFFECT: [&str; 14] = [
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
    "auto_da_alloc",
    "noauto_da_alloc",
    "block_validity",
    "noblock_validity",
];

impl Options {
    /// Takes in one option, "name" or "name=value".
    ///
    /// # Errors
    /// An unknown name, a value that the option cannot have.
    pub fn set(&mut self, option: &str) -> Result<(), OptionError> {
        match option.split_once('=') {
            Some((name, value)) => self.set_value(name, value),
            None => self.set_flag(option),
        }
    }

    fn set_flag(&mut self, name: &str) -> Result<(), OptionError> {
        if let Some((_, set)) = FLAGS.iter().find(|flag| flag.0 == name) {
            set(self);
        } else if !WITHOUT_EFFECT.contains(&name) {
            return Err(OptionError::Unknown(name.into()));
        }
        Ok(())
    }

    fn set_value(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        let refuse = |name, allowed| Err(OptionError::Value { name, value: value.into(), allowed });
        match (name, value) {
            ("data", "ordered") => self.data = DataMode::Ordered,
            ("data", "writeback") => self.data = DataMode::Writeback,
            ("data", "journal") => self.data = DataMode::Journal,
            ("data", _) => return refuse("data", "ordered, writeback or journal"),
            ("barrier", "1") => self.barrier = true,
            ("barrier", "0") => self.barrier = false,
            ("barrier", _) => return refuse("barrier", "0 or 1"),
            ("commit", _) => match value.parse::<u64>() {
                // as in the kernel, 0 is the default
                Ok(0) => self.commit_interval_s = 5,
                Ok(seconds @ 1..=86_400) => self.commit_interval_s = seconds,
                _ => return refuse("commit", "0 to 86400 seconds"),
            },
            ("errors", "remount-ro") => {}
            ("errors", _) => return refuse("errors", "remount-ro"),
            _ => return Err(OptionError::Unknown(format!("{name}={value}"))),
        }
        Ok(())
    }

    /// Takes in options separated by commas, as `mount -o` has them. Empty ones say nothing.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn parse(list: &str) -> Result<Self, OptionError> {
        let mut options = Self::default();
        list.split(',').filter(|option| !option.is_empty()).try_for_each(|option| options.set(option))?;
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_by_the_kernels_names() {
        let options =
            Options::parse("data=journal,barrier=0,commit=30,nodelalloc,discard,ro,noload").unwrap();
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
        assert!(error.contains("\"usrquota\""), "{error}");
    }

    /// What stands in backquotes in the first column of the page's table, and in its list of what has no effect.
    fn documented() -> Vec<String> {
        let page = include_str!("../../../../docs/ext-mount.md");
        let (_, options) = page.split_once("## Mount options").unwrap();
        let (options, _) = options.split_once("\n## ").unwrap();
        let (table, rest) = options.split_once("Accepted, and without effect:").unwrap();
        let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
        let names = cells.flat_map(|cell| cell.split(", ").map(|name| name.trim_matches('`')));
        let others = rest.split('`').skip(1).step_by(2);
        names.chain(others).map(str::to_string).collect()
    }

    #[test]
    fn the_page_names_what_is_accepted() {
        let documented = documented();
        for option in &documented {
            assert_eq!(Options::default().set(option), Ok(()), "{option}");
        }
        let flags = FLAGS.iter().map(|flag| flag.0).chain(WITHOUT_EFFECT);
        let missing: Vec<_> = flags.filter(|flag| !documented.iter().any(|name| name == flag)).collect();
        assert_eq!(missing, [""; 0]);
    }
}
