//! One thing that is another in a figure's stacks: the experiment that shows the cause of a
//! difference.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use dovetail_ftl::{Profile, ProfileError};
use dovetail_lab::bench::{BenchError, Stack};

/// A key of a stack's file with another value, on all stacks of a figure or on one. Mount options
/// come to those that the stack has, and override them.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The stack; all if there is none.
    stack: Option<String>,
    key: String,
    value: String,
}

impl FromStr for Change {
    type Err = String;

    /// Reads `KEY=VALUE` or `STACK:KEY=VALUE`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (left, value) = text
            .split_once('=')
            .ok_or("it takes KEY=VALUE, such as drive.host.command_serial_us=7")?;
        let (stack, key) = match left.split_once(':') {
            Some((stack, key)) => (Some(stack.to_owned()), key),
            None => (None, left),
        };
        if key.is_empty() {
            return Err("there is no key before the =".into());
        }
        Ok(Self { stack, key: key.into(), value: value.into() })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(stack) = &self.stack {
            write!(f, "{stack}:")?;
        }
        write!(f, "{}={}", self.key, self.value)
    }
}

impl Change {
    /// A stack is named as a whole, or its variants together by what stands before their commas.
    fn is_meant_for(&self, name: &str) -> bool {
        let Some(meant) = &self.stack else { return true };
        name.strip_prefix(meant.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
    }

    /// The stack with the change, if it is meant; `None` if it is not.
    fn applied(&self, stack: &Stack) -> Result<Option<Stack>, BenchError> {
        if !self.is_meant_for(&stack.name) {
            return Ok(None);
        }
        if self.key == "mount" {
            return stack.with_mount(&self.value).map(Some);
        }
        if let Some(figure) = self.key.strip_prefix("drive.") {
            let mut changed = stack.clone();
            changed.drive_figures.insert(figure.into(), self.value());
            return Ok(Some(changed));
        }
        let failed = |reason: String| BenchError::StackFile {
            file: format!("{} with {}={}", stack.name, self.key, self.value),
            reason,
        };
        let mut table = toml::Table::try_from(stack).map_err(|error| failed(error.to_string()))?;
        self.put(&mut table).map_err(failed)?;
        Stack::parse(&table.to_string(), &stack.name)
            .map(Some)
            .map_err(|error| failed(error.to_string()))
    }

    /// Puts the value to its key, `table.key` or `key`.
    fn put(&self, table: &mut toml::Table) -> Result<(), String> {
        let mut place = table;
        let mut key = self.key.as_str();
        while let Some((outer, inner)) = key.split_once('.') {
            let entry = place.entry(outer).or_insert_with(|| toml::Table::new().into());
            place = entry.as_table_mut().ok_or_else(|| format!("{outer} is no table"))?;
            key = inner;
        }
        place.insert(key.into(), self.value());
        Ok(())
    }

    /// The value as TOML has it; else a text.
    fn value(&self) -> toml::Value {
        let parsed = format!("x = {}", self.value).parse::<toml::Table>();
        let value = parsed.ok().and_then(|mut table| table.remove("x"));
        value.unwrap_or_else(|| self.value.clone().into())
    }
}

/// Changes that a run of figures is asked to make.
#[derive(Debug, Default)]
pub struct Changes {
    /// Each with whether a stack or a drive has taken it.
    all: Vec<(Change, AtomicBool)>,
}

impl Changes {
    /// The changes, in the order in which they are made.
    pub fn new(all: Vec<Change>) -> Self {
        Self { all: all.into_iter().map(|change| (change, AtomicBool::new(false))).collect() }
    }

    /// The changes that no stack took: the figure is the same as without them.
    pub fn missed(&self) -> impl Iterator<Item = &Change> {
        let missed = self.all.iter().filter(|(_, was_used)| !was_used.load(Ordering::Relaxed));
        missed.map(|(change, _)| change)
    }

    /// A drive without a stack, with all changes of drives' figures; its name stands for a stack's.
    pub(crate) fn profile(&self, name: &str) -> Result<Profile, BenchError> {
        let failed = |error: ProfileError| BenchError::Drive(error.to_string());
        let of_drive = |(change, was_used): &(Change, AtomicBool)| {
            let key = change.key.strip_prefix("drive.").filter(|_| change.is_meant_for(name))?;
            was_used.store(true, Ordering::Relaxed);
            Some((key.to_owned(), change.value()))
        };
        let figures: Vec<_> = self.all.iter().filter_map(of_drive).collect();
        let profile = Profile::load(name).map_err(failed)?;
        let figures = figures.iter().map(|(key, value)| (key.as_str(), value.clone()));
        profile.with_figures(figures).map_err(failed)
    }

    /// The stacks with all changes that are meant for them.
    pub(crate) fn applied(&self, stacks: &[Stack]) -> Result<Vec<Stack>, BenchError> {
        let changed = |stack: &Stack| {
            self.all.iter().try_fold(stack.clone(), |stack, (change, was_used)| {
                let changed = change.applied(&stack)?;
                was_used.fetch_or(changed.is_some(), Ordering::Relaxed);
                Ok(changed.unwrap_or(stack))
            })
        };
        stacks.iter().map(changed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(stack: &str, changes: &[&str]) -> Result<Stack, BenchError> {
        let changes = Changes::new(changes.iter().map(|it| it.parse().unwrap()).collect());
        let stacks = changes.applied(&[Stack::load(stack).unwrap()])?;
        Ok(stacks.into_iter().next().unwrap())
    }

    #[test]
    fn a_key_of_the_stack_or_of_its_drive_is_another() {
        let plain = Stack::load("f2fs").unwrap();
        let stack = changed("f2fs", &["memory=8GiB", "host.wake_ns=7500"]).unwrap();
        assert_eq!((stack.memory.as_str(), stack.mount.as_str()), ("8GiB", plain.mount.as_str()));
        assert_ne!(stack.host, plain.host);
        let stack = changed("f2fs", &["drive.host.command_serial_us=7"]).unwrap();
        assert_eq!(stack.drive_figures["host.command_serial_us"], toml::Value::Integer(7));
        let stack = changed("f2fs", &["mount=nodiscard", "sysfs.gc_urgent=1"]).unwrap();
        assert!(
            stack.mount.ends_with("nodiscard") && stack.sysfs["gc_urgent"].as_integer() == Some(1)
        );
    }

    #[test]
    fn variants_of_a_stack_change_together() {
        let change: Change = "iplfs:memory=8GiB".parse().unwrap();
        let meant = |name: &str| change.is_meant_for(name);
        assert!(meant("iplfs") && meant("iplfs, one stream, lanes, 256 KiB"));
        assert!(!meant("iplfs-2") && !meant("f2fs, iplfs") && !meant("f2fs"));
    }

    #[test]
    fn a_change_of_one_stack_leaves_the_others() {
        let all = ["ext4:memory=2GiB", "f2sf:memory=8GiB"].map(|change| change.parse().unwrap());
        let changes = Changes::new(all.into());
        let stacks = ["f2fs", "ext4"].map(|name| Stack::load(name).unwrap());
        let found = changes.applied(&stacks[..1]).unwrap();
        assert!(found == stacks[..1] && changes.missed().count() == 2);
        assert_eq!(changes.applied(&stacks).unwrap()[1].memory, "2GiB");
        let missed: Vec<String> = changes.missed().map(ToString::to_string).collect();
        assert_eq!(missed, ["f2sf:memory=8GiB"]);
    }

    #[test]
    fn a_drive_without_a_stack_takes_figures_of_drives() {
        let drive = |profile: Profile| format!("{profile:?}");
        let plain = drive(Profile::load("femu-32g").unwrap());
        let changes = Changes::new(vec!["drive.timing.read_us=7".parse().unwrap()]);
        assert_ne!(drive(changes.profile("femu-32g").unwrap()), plain);
        assert_eq!(changes.missed().count(), 0);
        let changes = Changes::new(vec!["femu-32g:drive.timing.read_us=7".parse().unwrap()]);
        assert!(changes.profile("femu-32g-log").is_ok() && changes.missed().count() == 1);
        assert_ne!(drive(changes.profile("femu-32g").unwrap()), plain);
        let changes = Changes::new(vec!["memory=2GiB".parse().unwrap()]);
        assert!(changes.profile("femu-32g").is_ok() && changes.missed().count() == 1);
    }

    #[test]
    fn what_no_stack_has_is_refused() {
        assert!("memory".parse::<Change>().is_err() && "=7".parse::<Change>().is_err());
        for change in ["memroy=1GiB", "memory=lots", "host.queue_depth=0", "name.x=1"] {
            let error = changed("f2fs", &[change]).unwrap_err().to_string();
            assert!(error.contains("f2fs with"), "{error}");
        }
    }
}
