//! Results of the checks of all formats.

use std::fmt;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is wrong; worth knowing.
    Note,
    /// Against the format, without harm to what is stored.
    Warning,
    /// The volume contradicts itself: data may be lost now or by the next write.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A name as it is stored: bytes, shown as [`crate::shown`] does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name(pub Vec<u8>);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::shown(&self.0))
    }
}

/// A kind of finding, without its values; `R` is what a repair does about it, for formats that are
/// repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind<R: 'static = ()> {
    /// The variant's name.
    pub name: &'static str,
    /// Severity of its findings.
    pub severity: Severity,
    /// Action of a repair on its findings.
    pub remedy: R,
    /// Meaning, in a sentence or two.
    pub about: &'static str,
}

/// A finding of one format's check: an enum with a variant for each kind, declared with
/// [`crate::findings`].
pub trait Finding: Sized + 'static {
    /// Action of a repair on a kind.
    type Remedy: Copy;

    /// All kinds, in the order of the documentation.
    const KINDS: &'static [Kind<Self::Remedy>];

    /// The place of this one's kind in [`Self::KINDS`].
    fn index(&self) -> usize;
}

/// Declares a format's findings, one a line: documentation, name, severity, remedy (if the format
/// is repaired), values, and the sentence. From it come the enum `Finding` with its names,
/// severities and values, and [`Finding`] for it.
#[macro_export]
macro_rules! findings {
    (remedy: $remedy_type:ty; $($(#[doc = $doc:literal])+ $name:ident: $severity:ident $(, $remedy:ident)?,
        { $($field:ident: $type:ty),* $(,)? } => $message:literal;)*) => {
        /// Something that a check found. [`Self::severity`] tells how bad it is, `Display` says it
        /// in a sentence.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Finding {
            $($(#[doc = $doc])+ $name { $(
                #[doc = concat!("`", stringify!($field), "` in: ", $message, ".")] $field: $type,
            )* },)*
        }

        impl Finding {
            /// All kinds, in the order of the documentation.
            pub const KINDS: &'static [$crate::check::Kind<$remedy_type>] = &[$($crate::check::Kind {
                name: stringify!($name),
                severity: $crate::check::Severity::$severity,
                remedy: $crate::remedy!($remedy_type $(, $remedy)?),
                about: concat!($($doc),+),
            }),*];

            /// Its kind.
            pub fn kind(&self) -> $crate::check::Kind<$remedy_type> {
                Self::KINDS[$crate::check::Finding::index(self)]
            }

            /// Severity of its kind.
            pub fn severity(&self) -> $crate::check::Severity {
                self.kind().severity
            }

            /// Its values by name.
            pub fn values(&self) -> Vec<(&'static str, String)> {
                match self {
                    $(Self::$name { $($field),* } => vec![$((stringify!($field), $field.to_string())),*],)*
                }
            }
        }

        impl $crate::check::Finding for Finding {
            type Remedy = $remedy_type;

            const KINDS: &'static [$crate::check::Kind<$remedy_type>] = Self::KINDS;

            fn index(&self) -> usize {
                /// The variants without their values, numbered from 0.
                #[derive(Clone, Copy)]
                enum Number { $($name),* }
                (match self { $(Self::$name { .. } => Number::$name),* }) as usize
            }
        }

        impl std::fmt::Display for Finding {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self { $(Self::$name { $($field),* } => write!(f, $message),)* }
            }
        }
    };
}

/// The remedy of a finding, or nothing where a format is not repaired.
#[doc(hidden)]
#[macro_export]
macro_rules! remedy {
    ($type:ty) => {
        ()
    };
    ($type:ty, $remedy:ident) => {
        <$type>::$remedy
    };
}

/// Result of a check: findings `F`, and counts `C` made on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report<F, C> {
    /// The findings in the order of the check; of each kind only the first ones, as many as the
    /// check was told to keep.
    pub findings: Vec<F>,
    /// Sums over the volume.
    pub counts: C,
    seen: Vec<u64>,
}

impl<F, C: Default> Default for Report<F, C> {
    fn default() -> Self {
        Self { findings: Vec::new(), counts: C::default(), seen: Vec::new() }
    }
}

impl<F: Finding, C> Report<F, C> {
    /// Number of findings of a severity, kept or not.
    pub fn count(&self, severity: Severity) -> u64 {
        self.kinds().filter(|&(kind, _)| kind.severity == severity).map(|(_, seen)| seen).sum()
    }

    /// No errors; there may be warnings and notes.
    pub fn is_clean(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    /// Number of findings of each kind that occurred, in the order of [`Finding::KINDS`].
    pub fn kinds(&self) -> impl Iterator<Item = (Kind<F::Remedy>, u64)> {
        F::KINDS.iter().copied().zip(self.seen.iter().copied()).filter(|&(_, seen)| seen > 0)
    }

    /// Counts a finding, and keeps it if there are fewer than `kept` of its kind.
    pub fn push(&mut self, finding: F, kept: usize) {
        let index = finding.index();
        self.seen.resize(F::KINDS.len(), 0);
        self.seen[index] += 1;
        if self.seen[index] <= kept as u64 {
            self.findings.push(finding);
        }
    }
}
