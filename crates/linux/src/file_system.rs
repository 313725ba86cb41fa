//! The file systems that a guest can make, mount and check.

/// A file system of the guest's kernel, with the programs of this machine for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Its name, as mount(8) takes it.
    pub name: &'static str,
    mkfs: &'static str,
    check: &'static str,
}

impl FileSystem {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self { name: "f2fs", mkfs: "mkfs.f2fs -q -f", check: "fsck.f2fs --dry-run" },
        Self { name: "ext4", mkfs: "mkfs.ext4 -q -F", check: "e2fsck -f -n" },
        Self { name: "btrfs", mkfs: "mkfs.btrfs -q -f", check: "btrfs check" },
        Self { name: "xfs", mkfs: "mkfs.xfs -q -f", check: "xfs_repair -n" },
    ];

    /// The file system of that name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|system| system.name == name)
    }

    /// The names of all, for messages.
    pub fn names() -> String {
        Self::ALL.map(|system| system.name).join(", ")
    }

    /// Shell text that makes a volume on the drive, with more options of its mkfs. If that fails,
    /// the last lines of its output go to standard error: mkfs.f2fs has its errors on standard
    /// output.
    pub fn make(self, options: &str) -> String {
        format!(
            "said=$({} {options} /dev/vda 2>&1) || {{ status=$?; \
             echo \"$said\" | tail -n 4 >&2; exit $status; }}\n",
            self.mkfs
        )
    }

    /// Shell text that mounts it at `/mnt/volume`, with mount options if there are any.
    pub fn mount(self, options: &str) -> String {
        let options = match options {
            "" => String::new(),
            options => format!("-o {} ", crate::quoted(options)),
        };
        format!("mount -t {} {options}/dev/vda /mnt/volume\n", self.name)
    }

    /// Shell text that unmounts it and has it checked. The checker's words are in `$OUT/check`;
    /// faults that it finds end the script.
    pub fn check(self) -> String {
        format!(
            "cd /mnt\numount /mnt/volume\n{} /dev/vda > $OUT/check 2>&1 || \
             fail \"$(echo; cat $OUT/check)\"\n",
            self.check
        )
    }
}
