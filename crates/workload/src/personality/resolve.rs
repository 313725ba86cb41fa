//! From the file to the plan: parameters put in, names looked up, ranges checked.

use dovetail_time::SimSpan;

use super::error::PersonalityError;
use super::flowop;
use super::model::{Action, Plan, SetSpec, ThreadSpec};
use super::schema::{File, Fileset, Process, Thread};
use super::values::Values;

/// Filebench's default shape for sizes and directories (`fileset_define`: 1500 thousandths).
const DEFAULT_GAMMA: f64 = 1.5;
/// Assumed: as many paths fit into memory.
const MOST_FILES: u64 = 1 << 24;
const MOST_THREADS: u64 = 1 << 16;
const MOST_BYTES: u64 = 1 << 50;
const MOST_SECONDS: u64 = 1 << 30;

pub(super) fn resolve(file: &File, values: Values<'_>) -> Result<Plan, PersonalityError> {
    let sets =
        file.fileset.iter().map(|set| set_spec(set, values)).collect::<Result<Vec<_>, _>>()?;
    distinct(sets.iter().map(|set| set.name.as_str()), "fileset", values)?;
    let threads = threads(&file.process, &sets, values)?;
    let any = (0, u64::MAX);
    let seconds = values.number("runtime", file.runtime.as_ref(), 0, (0, MOST_SECONDS))?;
    let operations = values.number("operations", file.operations.as_ref(), 0, any)?;
    let rate = values.number("eventrate", file.eventrate.as_ref(), 0, (0, 1_000_000_000))?;
    let some = |number: u64| (number > 0).then_some(number);
    Ok(Plan {
        runtime: some(seconds).map(|seconds| SimSpan::from_ms(seconds * 1000)),
        operations: some(operations),
        event_rate: some(rate),
        sets,
        threads,
    })
}

fn distinct<'a>(
    names: impl Iterator<Item = &'a str>,
    what: &str,
    values: Values<'_>,
) -> Result<(), PersonalityError> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(values.wrong(&format!("{what}.name"), name, "a name that no other has"));
        }
    }
    Ok(())
}

/// A name that may stand in a path: it cannot lead out of its directory.
fn legal_name(key: &str, name: &str, values: Values<'_>) -> Result<String, PersonalityError> {
    let legal = (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && name.bytes().any(|byte| byte != b'.');
    let allowed = "1 to 64 letters, digits, '-', '_' and '.'";
    if legal { Ok(name.into()) } else { Err(values.wrong(key, name, allowed)) }
}

fn set_spec(set: &Fileset, values: Values<'_>) -> Result<SetSpec, PersonalityError> {
    let name = legal_name("fileset.name", &set.name, values)?;
    let key = |key: &str| format!("fileset.{name}.{key}");
    for part in set.path.split('/').filter(|part| !part.is_empty()) {
        legal_name(&key("path"), part, values)?;
    }
    values.flag(&key("reuse"), set.reuse.as_ref())?;
    Ok(SetSpec {
        root: set
            .path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(|part| format!("{part}/"))
            .collect(),
        entries: values.needed(&key("entries"), set.entries.as_ref(), (1, MOST_FILES))? as u32,
        mean_size: values.needed(&key("size"), set.size.as_ref(), (0, MOST_BYTES))?,
        size_gamma: values.shape(
            &key("filesizegamma"),
            set.filesizegamma.as_ref(),
            DEFAULT_GAMMA,
        )?,
        dir_width: values.needed(
            &key("dirwidth"),
            set.dirwidth.as_ref(),
            (2, u64::from(u32::MAX)),
        )?,
        dir_gamma: values.shape(&key("dirgamma"), set.dirgamma.as_ref(), DEFAULT_GAMMA)?,
        prealloc_percent: values.number(&key("prealloc"), set.prealloc.as_ref(), 0, (0, 100))?,
        read_only: values.flag(&key("readonly"), set.readonly.as_ref())?,
        cached: values.flag(&key("cached"), set.cached.as_ref())?,
        name,
    })
}

fn threads(
    processes: &[Process],
    sets: &[SetSpec],
    values: Values<'_>,
) -> Result<Vec<ThreadSpec>, PersonalityError> {
    let mut threads = Vec::new();
    for process in processes {
        let key = format!("process.{}.instances", process.name);
        let instances = values.number(&key, process.instances.as_ref(), 1, (1, MOST_THREADS))?;
        for thread in &process.thread {
            threads.push(thread_spec(process, thread, instances, sets, values)?);
        }
    }
    if threads.is_empty() {
        return Err(values.missing("process.thread"));
    }
    check_posts(&threads, values)?;
    let all: u64 = threads.iter().map(|spec| u64::from(spec.instances)).sum();
    let allowed = format!("at most {MOST_THREADS} over all processes");
    if all > MOST_THREADS {
        Err(values.wrong("instances", &all.to_string(), allowed))
    } else {
        Ok(threads)
    }
}

fn thread_spec(
    process: &Process,
    thread: &Thread,
    processes: u64,
    sets: &[SetSpec],
    values: Values<'_>,
) -> Result<ThreadSpec, PersonalityError> {
    let key = format!("process.{}.{}", process.name, thread.name);
    let most = MOST_THREADS / processes;
    let each = values.number(
        &format!("{key}.instances"),
        thread.instances.as_ref(),
        1,
        (1, most.max(1)),
    )?;
    if thread.flowops.is_empty() {
        return Err(values.missing(&format!("{key}.flowops")));
    }
    distinct(
        thread.flowops.iter().map(|flowop| flowop.name.as_str()),
        &format!("{key}.flowops"),
        values,
    )?;
    let flowops =
        thread.flowops.iter().map(|flowop| flowop::resolve(&key, flowop, thread, sets, values));
    Ok(ThreadSpec {
        process: process.name.clone(),
        instances: (each * processes) as u32,
        flowops: flowops.collect::<Result<_, _>>()?,
    })
}

/// Each `sempost` has a `semblock` to post to.
fn check_posts(threads: &[ThreadSpec], values: Values<'_>) -> Result<(), PersonalityError> {
    let flowops = || threads.iter().flat_map(|spec| &spec.flowops);
    let blocks: Vec<&str> = flowops()
        .filter(|flowop| matches!(flowop.action, Action::SemBlock { .. }))
        .map(|flowop| flowop.name.as_str())
        .collect();
    for flowop in flowops() {
        if let Action::SemPost { target, .. } = &flowop.action
            && !blocks.contains(&target.as_str())
        {
            let allowed = format!("the name of a semblock: {}", blocks.join(", "));
            return Err(values.wrong(&format!("{}.target", flowop.name), target, allowed));
        }
    }
    Ok(())
}
