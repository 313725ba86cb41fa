//! The stacks of a bench: each that was named, with each combination of what was given for all.

use dovetail_lab::bench::{BenchError, Stack};
use dovetail_time::format_bytes;

use super::Arguments;
use crate::choices::choices;
use crate::{Failure, drive};

/// Every combination in the order in which they were named, under names that tell them apart.
pub(super) fn stacks(arguments: &Arguments) -> Result<Vec<Stack>, Failure> {
    let mut all = Vec::new();
    for name in &arguments.stack {
        let stack = load(arguments, name)?;
        for profile in choices(&arguments.drive) {
            let stack = on_drive(arguments, &stack, profile.as_deref())?;
            for stack in with_map_caches(arguments, &stack) {
                for stack in with_spare(arguments, &stack) {
                    all.extend(with_mounts(arguments, &stack)?);
                }
            }
        }
    }
    Ok(all)
}

fn failed(error: BenchError) -> Failure {
    match error {
        BenchError::UnknownStack(_) => Failure::Usage(error.to_string()),
        _ => Failure::failed(error),
    }
}

fn load(arguments: &Arguments, name: &str) -> Result<Stack, Failure> {
    let mut stack = Stack::load(name).map_err(failed)?;
    if let Some(schedule) = &arguments.devirtualize {
        stack.devirtualize = Some(schedule.clone());
    }
    Ok(stack)
}

fn on_drive(arguments: &Arguments, stack: &Stack, profile: Option<&str>) -> Result<Stack, Failure> {
    let mut stack = stack.clone();
    if let Some(profile) = profile {
        let name = drive::load(profile)?.name;
        stack.drive = profile.into();
        if arguments.drive.len() > 1 {
            stack.name += &format!(", {name}");
        }
    }
    Ok(stack)
}

/// A stack with each of the maps and caches that were asked for.
fn with_map_caches(arguments: &Arguments, stack: &Stack) -> Vec<Stack> {
    let mut all = Vec::new();
    for map in choices(&arguments.map) {
        for cache in choices(&arguments.cache) {
            for size in choices(&arguments.cache_size) {
                let mut with = stack.with_map_cache(map.as_deref(), cache.as_deref(), size);
                let mut differs = |several: bool, shown: Option<String>| {
                    shown
                        .filter(|_| several)
                        .into_iter()
                        .for_each(|shown| with.name += &format!(" {shown}"));
                };
                differs(arguments.map.len() > 1, map.clone());
                differs(arguments.cache.len() > 1, cache.clone());
                differs(arguments.cache_size.len() > 1, size.map(format_bytes));
                all.push(with);
            }
        }
    }
    all
}

/// A stack with each of the policies and amounts of spare flash that were asked for.
fn with_spare(arguments: &Arguments, stack: &Stack) -> Vec<Stack> {
    let spare = &arguments.spare;
    let mut all = Vec::new();
    for gc in choices(&spare.gc) {
        for op in choices(&spare.op) {
            let mut with = stack.with_spare(gc.as_deref(), op);
            let shown = spare.shown(gc.as_deref(), op);
            shown.iter().for_each(|shown| with.name += &format!(", {shown}"));
            all.push(with);
        }
    }
    all
}

/// A stack with each of the lists of mount options that were given.
fn with_mounts(arguments: &Arguments, stack: &Stack) -> Result<Vec<Stack>, Failure> {
    let with = |options: Option<String>| {
        let Some(options) = options.filter(|options| !options.is_empty()) else {
            return Ok(stack.clone());
        };
        let mut with = stack.with_mount(&options).map_err(Failure::failed)?;
        if arguments.mount.len() > 1 {
            with.name += &format!(", {options}");
        }
        Ok(with)
    };
    choices(&arguments.mount).into_iter().map(with).collect()
}
