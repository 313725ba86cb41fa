//! Damage of a volume: the kinds that every format knows, and those of one format.

use std::error::Error;
use std::fmt::Display;

/// One way of being damaged, with the values that disagree.
///
/// `P` is a place of the format, `I` the number of an inode, `F` the damage that only this format
/// knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corrupt<P: Display, I: Display, F: Error + 'static> {
    /// A field outside the values that it may have.
    #[error("{place}: {field} is {found}, allowed is {min} to {max}")]
    Range {
        /// The place of the field.
        place: P,
        /// The field, by the kernel's name.
        field: &'static str,
        /// The stored value.
        found: u64,
        /// The smallest value allowed.
        min: u64,
        /// The largest value allowed.
        max: u64,
    },
    /// A field that must have another value, because of other fields.
    #[error("{place}: {field} is {found}, not {expected}")]
    Mismatch {
        /// The place of the field.
        place: P,
        /// The field, by the kernel's name.
        field: &'static str,
        /// The stored value.
        found: u64,
        /// The value that follows from the rest.
        expected: u64,
    },
    /// A checksum that does not fit its bytes.
    #[error("{place}: the checksum is {found:#010x}, its bytes give {computed:#010x}")]
    Checksum {
        /// The structure.
        place: P,
        /// The stored checksum.
        found: u32,
        /// The checksum of the stored bytes.
        computed: u32,
    },
    /// A name that no file may have.
    #[error("directory {dir}: an entry is called {name}, which no file may be")]
    Name {
        /// The directory.
        dir: I,
        /// The name, as [`crate::shown`] has it.
        name: String,
    },
    /// An entry that leads to no inode.
    #[error("directory {dir}: {name} leads to inode {ino}, the last one is {last}")]
    EntryInode {
        /// The directory.
        dir: I,
        /// The name, as [`crate::shown`] has it.
        name: String,
        /// The inode.
        ino: I,
        /// The last one that there may be.
        last: u64,
    },
    /// "." or ".." a second time.
    #[error("directory {dir}: a further entry is called {name}")]
    FurtherDot {
        /// The directory.
        dir: I,
        /// The name.
        name: String,
    },
    /// A directory that contains itself, or has two parents.
    #[error("directory {0} is reached twice: the tree has a loop")]
    DirectoryLoop(I),
    /// A contradiction of this format alone.
    #[error(transparent)]
    Format(F),
}

impl<P: Display, I: Display, F: Error + 'static> From<F> for Corrupt<P, I, F> {
    fn from(damage: F) -> Self {
        Self::Format(damage)
    }
}

impl<P: Display, I: Display, F: Error + 'static> Corrupt<P, I, F> {
    /// Nothing if `found` lies in `min..=max`.
    ///
    /// # Errors
    /// [`Self::Range`].
    pub fn check_range<V: Into<u64>>(
        place: P,
        field: &'static str,
        found: V,
        (min, max): (u64, u64),
    ) -> Result<(), Self> {
        let found = found.into();
        if (min..=max).contains(&found) {
            return Ok(());
        }
        Err(Self::Range { place, field, found, min, max })
    }

    /// Nothing if the two are equal.
    ///
    /// # Errors
    /// [`Self::Mismatch`].
    pub fn check_equal<A: Into<u64>, B: Into<u64>>(
        place: P,
        field: &'static str,
        found: A,
        expected: B,
    ) -> Result<(), Self> {
        let (found, expected) = (found.into(), expected.into());
        if found == expected {
            return Ok(());
        }
        Err(Self::Mismatch { place, field, found, expected })
    }

    /// Nothing if the checksums are equal.
    ///
    /// # Errors
    /// [`Self::Checksum`].
    pub fn check_checksum(place: P, found: u32, computed: u32) -> Result<(), Self> {
        if found == computed { Ok(()) } else { Err(Self::Checksum { place, found, computed }) }
    }
}
