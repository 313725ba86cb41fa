//! Results of several calls as one, where their runs can stand beside each other.

use super::{Provenance, Results};

/// Reason why two results cannot stand beside each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{one} and {other} cannot stand in one report: {what} is {of_one} in the one and {of_other} in the other; give \
     each a report of its own, or compare them"
)]
pub struct BesideError {
    /// Name of the first results.
    pub one: String,
    /// Name of those that do not fit.
    pub other: String,
    /// The thing that is not the same.
    pub what: &'static str,
    /// Its value in the first.
    pub of_one: String,
    /// Its value in the other.
    pub of_other: String,
}

/// Joins results of calls that did the same work, each with its name. Runs whose labels would be
/// the same get the name of their results before it. One alone stays as it is.
///
/// # Errors
/// They differ in workload, scale or seed.
pub fn beside(mut all: Vec<(String, Results)>) -> Result<Option<Results>, BesideError> {
    if all.len() < 2 {
        return Ok(all.pop().map(|(_, results)| results));
    }
    let (one, first) = &all[0];
    for (other, results) in &all[1..] {
        if let Some((what, of_one, of_other)) = difference(first, results) {
            let (one, other) = (one.clone(), other.clone());
            return Err(BesideError { one, other, what, of_one, of_other });
        }
    }
    let labels: Vec<&str> =
        all.iter().flat_map(|(_, results)| &results.runs).map(|run| run.label.as_str()).collect();
    let mut different = labels.clone();
    different.sort_unstable();
    different.dedup();
    let is_named = different.len() < labels.len();
    let shared =
        |is_same: &dyn Fn(&Results) -> bool| all.iter().all(|(_, results)| is_same(results));
    let options = first.options.clone().filter(|_| shared(&|other| other.options == first.options));
    let job = first.job.clone().filter(|_| shared(&|other| other.job == first.job));
    let provenance = provenance(all.iter().map(|(_, results)| results));
    let runs = all.iter().flat_map(|(name, results)| {
        results.runs.iter().cloned().map(move |mut run| {
            if is_named {
                run.label = format!("{name}: {}", run.label);
            }
            run
        })
    });
    let runs = runs.collect();
    Ok(Some(Results { provenance, options, job, runs, ..first.clone() }))
}

fn difference(one: &Results, other: &Results) -> Option<(&'static str, String, String)> {
    let is_replay = |results: &Results| results.runs.iter().any(|run| run.trace.is_some());
    let kind = |results| if is_replay(results) { "a replay" } else { "a bench" }.to_string();
    [
        ("the command", kind(one), kind(other)),
        ("the workload", one.workload.clone(), other.workload.clone()),
        ("the scale", one.scale.to_string(), other.scale.to_string()),
        ("the seed", one.seed.to_string(), other.seed.to_string()),
    ]
    .into_iter()
    .find(|(_, one, other)| one != other)
}

/// The commands of all, a line each; `None` where one is not known or another program made it.
fn provenance<'a>(mut all: impl Iterator<Item = &'a Results>) -> Option<Provenance> {
    let mut joined = all.next()?.provenance.clone()?;
    for results in all {
        let own = results.provenance.as_ref()?;
        if (&own.version, &own.commit) != (&joined.version, &joined.commit) {
            return None;
        }
        joined.command += &format!("\n{}", own.command);
    }
    Some(joined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::RunResult;

    fn results(labels: &[&str], command: &str) -> Results {
        let run = |label: &&str| RunResult { label: (*label).into(), ..RunResult::default() };
        let mut results = Results::of("j".into(), 0.5, 1, labels.iter().map(run).collect());
        results.provenance = Some(Provenance { command: command.into(), ..Provenance::default() });
        results
    }

    fn labels(all: Vec<(String, Results)>) -> Vec<String> {
        beside(all).unwrap().unwrap().runs.into_iter().map(|run| run.label).collect()
    }

    #[test]
    fn runs_of_all_stand_beside_each_other() {
        let pair = |a: &[&str], b: &[&str]| {
            vec![("a".to_string(), results(a, "x")), ("b".to_string(), results(b, "y"))]
        };
        assert_eq!(labels(pair(&["f2fs"], &["ext4"])), ["f2fs", "ext4"]);
        assert_eq!(labels(pair(&["f2fs"], &["f2fs"])), ["a: f2fs", "b: f2fs"]);
        let joined = beside(pair(&["f2fs"], &["ext4"])).unwrap().unwrap();
        assert_eq!(joined.provenance.unwrap().command, "x\ny");
        let alone = results(&["f2fs"], "x");
        assert_eq!(beside(vec![("a".into(), alone.clone())]).unwrap(), Some(alone));
    }

    #[test]
    fn other_work_does_not_stand_beside() {
        let (one, mut other) = (results(&["f2fs"], "x"), results(&["f2fs"], "y"));
        other.scale = 0.25;
        let error = beside(vec![("a".into(), one), ("b".into(), other)]).unwrap_err().to_string();
        assert!(
            error.starts_with("a and b cannot stand in one report: the scale is 0.5"),
            "{error}"
        );
    }
}
