//! Runs of two sides, matched by their names.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Change, change};

/// A run as single figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Name that tells its configuration; repetitions with other seeds share it.
    pub name: String,
    /// Figures by their path.
    pub figures: BTreeMap<String, f64>,
    /// Texts and numbers that describe stack, drive and trace, by their path.
    pub setup: BTreeMap<String, String>,
    /// Reason why it ended early.
    pub error: Option<String>,
    /// Sentences that keep its figures from being taken for more than they are.
    pub notes: Vec<String>,
}

/// The runs of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Group<'a> {
    /// Their name.
    pub name: &'a str,
    /// At least one.
    pub runs: Vec<&'a Run>,
}

impl Group<'_> {
    /// Values of a figure in the runs that have it.
    pub fn values(&self, path: &str) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.figures.get(path).copied()).collect()
    }

    /// The first reason why one of them ended early.
    pub fn error(&self) -> Option<&str> {
        self.runs.iter().find_map(|run| run.error.as_deref())
    }

    /// The notes that some run of this group has and none of `other`, each once.
    fn notes_beyond(&self, other: &Group<'_>) -> Vec<&str> {
        let is_known = |note: &String| other.runs.iter().any(|run| run.notes.contains(note));
        let notes = self.runs.iter().flat_map(|run| &run.notes).filter(|note| !is_known(note));
        let notes: BTreeSet<&str> = notes.map(String::as_str).collect();
        notes.into_iter().collect()
    }
}

/// The groups of `runs`, in the order in which their names first come.
pub fn groups(runs: &[Run]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for run in runs {
        let place = *places.entry(&run.name).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Group { name: &run.name, runs: Vec::new() });
        }
        groups[place].runs.push(run);
    }
    groups
}

/// Runs that both sides have.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared<'a> {
    /// Those of the first side.
    pub a: Group<'a>,
    /// Those of the second side.
    pub b: Group<'a>,
    /// Each figure that either side has and `is_asked` names, by its path; none where a side has no
    /// figure at all, as of runs that failed before they began.
    pub changes: Vec<(String, Change)>,
    /// Descriptions that differ: the path, and its value on both sides in the first run that is
    /// described; empty where it has none. A side that failed in all runs is not described.
    pub setup: Vec<(String, String, String)>,
}

impl Compared<'_> {
    /// The notes that one side alone has: those of the first, and those of the second.
    pub fn notes(&self) -> [Vec<&str>; 2] {
        [self.a.notes_beyond(&self.b), self.b.notes_beyond(&self.a)]
    }
}

/// All that two sides have in common, and the names that only the first and only the second has.
/// Two sides with runs of one name each are compared whatever their names.
pub fn compare<'a>(
    a: &'a [Run],
    b: &'a [Run],
    threshold: f64,
    is_asked: impl Fn(&str) -> bool,
) -> (Vec<Compared<'a>>, [Vec<&'a str>; 2]) {
    let (a, b) = (groups(a), groups(b));
    if let ([_], [_]) = (&a[..], &b[..]) {
        let both = a.into_iter().zip(b).map(|(a, b)| compared(a, b, threshold, &is_asked));
        return (both.collect(), [Vec::new(), Vec::new()]);
    }
    let (mut both, mut only_a) = (Vec::new(), Vec::new());
    let names: Vec<&str> = b.iter().map(|group| group.name).collect();
    let mut others: HashMap<&str, Group<'_>> =
        b.into_iter().map(|group| (group.name, group)).collect();
    for group in a {
        match others.remove(group.name) {
            Some(other) => both.push(compared(group, other, threshold, &is_asked)),
            None => only_a.push(group.name),
        }
    }
    let only_b = names.into_iter().filter(|name| others.contains_key(name));
    (both, [only_a, only_b.collect()])
}

fn compared<'a>(
    a: Group<'a>,
    b: Group<'a>,
    threshold: f64,
    is_asked: &impl Fn(&str) -> bool,
) -> Compared<'a> {
    let runs = || a.runs.iter().chain(&b.runs);
    let mut paths: Vec<&String> = runs().flat_map(|run| run.figures.keys()).collect();
    paths.sort_unstable();
    paths.dedup();
    let has_figures = |group: &Group<'_>| group.runs.iter().any(|run| !run.figures.is_empty());
    let is_compared = has_figures(&a) && has_figures(&b);
    let asked = paths.into_iter().filter(|path| is_compared && is_asked(path));
    let changes =
        asked.map(|path| (path.clone(), change(&a.values(path), &b.values(path), threshold)));
    let changes = changes.collect();
    let described =
        |group: &Group<'a>| group.runs.iter().find(|run| !run.setup.is_empty()).copied();
    let setup = described(&a).zip(described(&b)).map_or_else(Vec::new, |(a, b)| setup(a, b));
    Compared { a, b, changes, setup }
}

fn setup(a: &Run, b: &Run) -> Vec<(String, String, String)> {
    let mut paths: Vec<&String> = a.setup.keys().chain(b.setup.keys()).collect();
    paths.sort_unstable();
    paths.dedup();
    let value = |run: &Run, path: &String| run.setup.get(path).cloned().unwrap_or_default();
    let both = paths.into_iter().map(|path| (path.clone(), value(a, path), value(b, path)));
    both.filter(|(_, a, b)| a != b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Verdict;

    fn run(name: &str, waf: f64) -> Run {
        Run {
            name: name.into(),
            figures: [("waf".to_string(), waf), ("seed".to_string(), waf)].into(),
            ..Run::default()
        }
    }

    #[test]
    fn runs_are_matched_by_name_and_seeds_are_repetitions() {
        let a = [run("f2fs", 1.0), run("ext4", 2.0), run("f2fs", 3.0)];
        let b = [run("raw", 9.0), run("f2fs", 4.0)];
        let (both, [only_a, only_b]) = compare(&a, &b, 2.0, |path| path == "waf");
        assert_eq!((only_a, only_b), (vec!["ext4"], vec!["raw"]));
        let [f2fs] = &both[..] else { panic!("{both:?}") };
        let [(path, found)] = &f2fs.changes[..] else { panic!("{f2fs:?}") };
        assert_eq!((path.as_str(), found.a.mean, found.a.count), ("waf", Some(2.0), 2));
        assert_eq!(found.percent, Some(100.0));
        assert_eq!(found.verdict, Verdict::Spread, "1 and 3 say little");
    }

    #[test]
    fn a_lone_run_is_compared_with_a_lone_run_of_another_name() {
        let (a, b) = ([run("f2fs", 1.0)], [run("ext4", 2.0)]);
        let (both, only) = compare(&a, &b, 2.0, |_| true);
        assert_eq!((both.len(), both[0].changes.len()), (1, 2));
        assert!(only.iter().all(Vec::is_empty));
    }

    #[test]
    fn setups_that_differ_are_told() {
        let with = |map: &str| Run {
            setup: [("drive.map".to_string(), map.to_string())].into(),
            ..run("x", 1.0)
        };
        let (a, b) = ([with("page")], [with("log")]);
        let (both, _) = compare(&a, &b, 2.0, |_| true);
        assert_eq!(both[0].setup, [("drive.map".into(), "page".into(), "log".into())]);
    }

    #[test]
    fn a_run_that_failed_before_it_began_has_nothing_that_differs() {
        let described =
            Run { setup: [("drive.map".to_string(), "page".to_string())].into(), ..run("x", 1.0) };
        let failed = Run { name: "x".into(), error: Some("full".into()), ..Run::default() };
        let (a, b) = ([described.clone()], [failed.clone()]);
        let (both, _) = compare(&a, &b, 2.0, |_| true);
        assert_eq!((both[0].b.error(), both[0].changes.len()), (Some("full"), 0));
        assert!(both[0].setup.is_empty(), "{both:?}");
        let (several, a) = ([failed, described.clone()], [described]);
        let (both, _) = compare(&a, &several, 2.0, |_| true);
        assert!(both[0].setup.is_empty() && both[0].changes.len() == 2, "{both:?}");
    }
}
