//! Mount options: tables of names, values and what they set.

use dovetail_time::nearest;

/// A reason why a list of mount options cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// No option of that name.
    #[error("there is no mount option \"{option}\"{of}{hint}; {document} lists those there are")]
    Unknown {
        /// The option as it was given.
        option: String,
        /// The file systems, as in " for ext3 and ext4"; may be empty.
        of: &'static str,
        /// The page that lists the options.
        document: &'static str,
        /// The option that may have been meant, as a clause; may be empty.
        hint: String,
    },
    /// An option of the kernel that would change what the mount does, and is not done here.
    #[error("mount option \"{option}\" is not supported: {reason}; leave it out")]
    Refused {
        /// The option as it was given.
        option: String,
        /// Reason for the refusal.
        reason: &'static str,
    },
    /// An option with a value that it cannot have.
    #[error("mount option \"{name}\" cannot be \"{value}\": allowed is {allowed}")]
    Value {
        /// The option.
        name: &'static str,
        /// The value as it was given.
        value: String,
        /// The values there are.
        allowed: &'static str,
    },
}

/// An option without a value, and what it sets.
pub type Flag<O> = (&'static str, fn(&mut O));

/// An option with a value.
#[derive(Debug)]
pub struct Valued<O: 'static> {
    /// Its name.
    pub name: &'static str,
    /// The values there are, in words.
    pub allowed: &'static str,
    /// The values.
    pub values: Values<O>,
}

/// The values of an option.
#[derive(Debug)]
pub enum Values<O: 'static> {
    /// Words, and what each sets.
    Words(&'static [Flag<O>]),
    /// Anything that the function takes; it returns whether it did.
    Parsed(fn(&mut O, &str) -> bool),
}

impl<O> Valued<O> {
    fn set(&self, options: &mut O, value: &str) -> Result<(), OptionError> {
        let is_taken = match &self.values {
            Values::Words(words) => {
                let word = words.iter().find(|word| word.0 == value);
                word.map(|(_, set)| set(options)).is_some()
            }
            Values::Parsed(set) => set(options, value),
        };
        let refused =
            || OptionError::Value { name: self.name, value: value.into(), allowed: self.allowed };
        if is_taken { Ok(()) } else { Err(refused()) }
    }
}

/// All options of a file system, whose settings are `O`.
#[derive(Debug)]
pub struct OptionTable<O: 'static> {
    /// The file systems, as in " for ext3 and ext4"; may be empty.
    pub of: &'static str,
    /// The command that lists the options.
    pub document: &'static str,
    /// Options without a value.
    pub flags: &'static [Flag<O>],
    /// Options with a value.
    pub valued: &'static [Valued<O>],
    /// Options of the kernel that change nothing here, since they tune what an implementation does
    /// not have. One that ends with `=` takes any value.
    pub without_effect: &'static [&'static str],
    /// Options of the kernel that are not done here, by name without value, and the reason.
    pub refused: &'static [(&'static str, &'static str)],
}

impl<O: Default> OptionTable<O> {
    /// Takes in one option, "name" or "name=value".
    ///
    /// # Errors
    /// An unknown name, a value that the option cannot have.
    pub fn set(&self, options: &mut O, option: &str) -> Result<(), OptionError> {
        if let Some((_, set)) = self.flags.iter().find(|flag| flag.0 == option) {
            set(options);
            return Ok(());
        }
        if self.is_without_effect(option) {
            return Ok(());
        }
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        if let Some((_, reason)) = self.refused.iter().find(|refused| refused.0 == name) {
            return Err(OptionError::Refused { option: option.into(), reason });
        }
        let (of, document) = (self.of, self.document);
        let valued = self.valued.iter().find(|valued| valued.name == name);
        let names = self.flags.iter().map(|flag| flag.0);
        let names = names.chain(self.valued.iter().map(|valued| valued.name));
        let unknown = || {
            let hint = nearest(name, names).map(|found| format!(" (did you mean {found:?}?)"));
            OptionError::Unknown {
                option: option.into(),
                of,
                document,
                hint: hint.unwrap_or_default(),
            }
        };
        valued.ok_or_else(unknown)?.set(options, value)
    }

    fn is_without_effect(&self, option: &str) -> bool {
        let is_it = |known: &str| match known.strip_suffix('=') {
            Some(name) => option.split_once('=').is_some_and(|(given, _)| given == name),
            None => option == known,
        };
        self.without_effect.iter().any(|known| is_it(known))
    }

    /// Takes in options separated by commas, as `mount -o` has them. Empty ones say nothing.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn parse(&self, list: &str) -> Result<O, OptionError> {
        let mut options = O::default();
        let mut given = list.split(',').filter(|option| !option.is_empty());
        given.try_for_each(|option| self.set(&mut options, option))?;
        Ok(options)
    }

    /// Every option that is taken, as it is given; those with values that are no words are left
    /// out, or end with `=`.
    pub fn accepted(&self) -> Vec<String> {
        let words = self.valued.iter().flat_map(|valued| match valued.values {
            Values::Words(words) => {
                words.iter().map(|word| format!("{}={}", valued.name, word.0)).collect()
            }
            Values::Parsed(_) => Vec::new(),
        });
        let plain = self.flags.iter().map(|flag| flag.0).chain(self.without_effect.iter().copied());
        words.chain(plain.map(String::from)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Settings {
        mode: u32,
        discard: bool,
        interval: u64,
    }

    const TABLE: OptionTable<Settings> = OptionTable {
        of: " for a test",
        document: "a page",
        flags: &[("discard", |s| s.discard = true), ("nodiscard", |s| s.discard = false)],
        valued: &[
            Valued {
                name: "mode",
                allowed: "one or two",
                values: Values::Words(&[("one", |s| s.mode = 1), ("two", |s| s.mode = 2)]),
            },
            Valued {
                name: "interval",
                allowed: "a number",
                values: Values::Parsed(|s, value| {
                    value.parse().map(|number| s.interval = number).is_ok()
                }),
            },
        ],
        without_effect: &["acl", "extension="],
        refused: &[("quota", "nobody counts")],
    };

    #[test]
    fn the_last_of_two_holds_and_empty_ones_say_nothing() {
        let settings =
            TABLE.parse("mode=one,,discard,acl,interval=7,extension=jpg,mode=two,").unwrap();
        assert_eq!(settings, Settings { mode: 2, discard: true, interval: 7 });
        assert_eq!(
            TABLE.accepted(),
            ["mode=one", "mode=two", "discard", "nodiscard", "acl", "extension="]
        );
    }

    #[test]
    fn what_is_refused_is_named() {
        let says = |list| TABLE.parse(list).unwrap_err().to_string();
        let unknown = |option| {
            format!("there is no mount option {option:?} for a test; a page lists those there are")
        };
        assert_eq!(["quotas", "acl="].map(says), ["quotas", "acl="].map(unknown));
        assert_eq!(
            says("quota=usr"),
            "mount option \"quota=usr\" is not supported: nobody counts; leave it out"
        );
        assert!(
            says("moed=one").contains("\"moed=one\" for a test (did you mean \"mode\"?); a page")
        );
        assert_eq!(
            says("mode=three"),
            "mount option \"mode\" cannot be \"three\": allowed is one or two"
        );
        assert_eq!(
            says("interval"),
            "mount option \"interval\" cannot be \"\": allowed is a number"
        );
    }
}
