//! A sweep's file, and its points.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::described::{Described, absolute, names_described};
use crate::error::SweepError;
use crate::setting::{scalar, values};

/// Most points of a sweep (assumed): more are a slip.
const POINTS_MAX: u64 = 1_000_000;
/// A name, and its values.
type Named = (String, Vec<String>);
/// A name, and its fault.
type Fault = (String, String);

/// The table of variables within options and axes.
const DEFINE: &str = "define";

/// Command that performs the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    /// A workload on stacks.
    Bench,
    /// A trace on drives.
    Replay,
}

impl Command {
    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bench => "bench",
            Self::Replay => "replay",
        }
    }
}

/// A sweep: what all runs share, and in what they differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Command that performs a point.
    pub command: Command,
    inputs: Vec<String>,
    options: Vec<Named>,
    points: Vec<Point>,
    #[serde(default)]
    described: Described,
    /// The whole result of each point is kept, with series and histograms, beside its row.
    pub series: bool,
}

/// One combination of the axes' values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Place in the sweep, from 0.
    pub number: u32,
    /// Value on each axis.
    pub values: Vec<(String, String)>,
}

impl Point {
    /// Values in a line: `op=12 seed=2`.
    pub fn name(&self) -> String {
        let each = self.values.iter().map(|(name, value)| format!("{name}={value}"));
        each.collect::<Vec<_>>().join(" ")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    command: Command,
    inputs: Vec<String>,
    #[serde(default)]
    options: Table,
    #[serde(default)]
    axes: Table,
    #[serde(default)]
    points: Vec<Table>,
    #[serde(default)]
    keep: Keep,
    #[serde(default)]
    stacks: BTreeMap<String, Table>,
    #[serde(default)]
    drives: BTreeMap<String, Table>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keep {
    #[serde(default)]
    series: bool,
}

impl Sweep {
    /// Reads the text of a sweep's file; `file` is its name in messages.
    ///
    /// # Errors
    /// [`SweepError::Text`], [`SweepError::Setting`]. Whether an option exists is not known here.
    pub fn parse(text: &str, file: &str) -> Result<Self, SweepError> {
        let failed = |problem: toml::de::Error| SweepError::Text {
            file: file.into(),
            problem: problem.to_string().trim_end().into(),
        };
        let text: Text = toml::from_str(text).map_err(failed)?;
        let setting =
            |(name, problem): Fault| SweepError::Setting { file: file.into(), name, problem };
        if text.inputs.is_empty() {
            return Err(setting(("inputs".into(), "name a job or a trace".into())));
        }
        let options = options(&text.options).map_err(setting)?;
        let axes = axes(&text.axes).map_err(setting)?;
        let listed =
            text.points.iter().map(listed).collect::<Result<Vec<_>, _>>().map_err(setting)?;
        let points = combine(&listed, &axes).map_err(setting)?;
        let described = Described::of(text.stacks, text.drives).map_err(setting)?;
        let (command, inputs, series) = (text.command, text.inputs, text.keep.series);
        let sweep = Self { command, inputs, options, points, described, series };
        sweep.check().map_err(setting)?;
        Ok(sweep)
    }

    /// All points, by their number.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The jobs or traces that all points have.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// Options that all points have, each with its values.
    pub fn options(&self) -> &[(String, Vec<String>)] {
        &self.options
    }

    /// Names of the axes, in the order in which points first have them.
    pub fn axes(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.points.iter().flat_map(|point| &point.values) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// The sweep with a single point, as one who performs just that needs it.
    #[must_use]
    pub fn of_one(&self, point: &Point) -> Self {
        let mut sweep = Self { points: vec![point.clone()], ..self.clone() };
        let described = &self.described;
        let used: HashSet<(&str, &str)> = sweep.used().collect();
        let kept = described.only(|option, name| used.contains(&(option, name)));
        sweep.described = kept;
        sweep
    }

    /// The same with each file by its path from the root, for one who performs it in another
    /// directory; `at` is the directory of the call. An input that `is_built_in` takes is no file.
    #[must_use]
    pub fn absolute(&self, at: &Path, is_built_in: impl Fn(&str) -> bool) -> Self {
        let mut sweep = self.clone();
        for input in &mut sweep.inputs {
            let path = at.join(&*input);
            if !is_built_in(input) && path.is_file() {
                *input = path.display().to_string();
            }
        }
        let place = |option: &str, value: &mut String| {
            let one = |name: &str| match self.described.has(option, name) {
                true => name.to_owned(),
                false => absolute(name, at),
            };
            *value = value.split(',').map(one).collect::<Vec<_>>().join(",");
        };
        for (name, values) in sweep.options.iter_mut().filter(|(name, _)| names_described(name)) {
            values.iter_mut().for_each(|value| place(name, value));
        }
        let axes = sweep.points.iter_mut().flat_map(|point| &mut point.values);
        axes.filter(|(name, _)| names_described(name)).for_each(|(name, value)| place(name, value));
        sweep.described.absolute(at);
        sweep
    }

    /// Files by their paths from the root that a sweep of [`Sweep::absolute`] names.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let options = self.used().filter(|(name, _)| names_described(name)).map(|(_, value)| value);
        let all = self.inputs.iter().map(String::as_str).chain(options);
        all.chain(self.described.names()).filter(|name| name.starts_with('/'))
    }

    /// Options and axes, each with each of its values; one that has several has them by commas.
    fn used(&self) -> impl Iterator<Item = (&str, &str)> {
        let options = self.options.iter();
        let options = options.flat_map(|(name, all)| all.iter().map(move |value| (name, value)));
        let axes = self.points.iter().flat_map(|point| point.values.iter().map(|(n, v)| (n, v)));
        let all = options.chain(axes);
        all.flat_map(|(name, value)| value.split(',').map(move |one| (name.as_str(), one)))
    }

    /// Arguments of a point behind the command's name, as a shell would hand them over. With a
    /// folder that [`Sweep::write_described`] filled, its files stand for what the sweep describes.
    pub fn arguments(&self, point: &Point, described: Option<&Path>) -> Vec<String> {
        let argument = |name: &str, value: &str| {
            let placed = described.map(|folder| self.described.placed(name, value, folder));
            argument(name, placed.as_deref().unwrap_or(value))
        };
        let options = self.options.iter();
        let shared = options.flat_map(|(name, values)| values.iter().map(move |v| (name, v)));
        let own = point.values.iter().map(|(name, value)| (name, value));
        let options = shared.chain(own).filter_map(|(name, value)| argument(name, value));
        self.inputs.iter().cloned().chain(options).collect()
    }

    /// The sweep has stacks or drives of its own.
    pub fn has_described(&self) -> bool {
        self.described.each().next().is_some()
    }

    /// Writes the stacks and drives that the sweep describes into a folder, a file each. Files that
    /// these name in turn are found from the directory of the call, `at`.
    ///
    /// # Errors
    /// [`SweepError::Io`].
    pub fn write_described(&self, folder: &Path, at: &Path) -> Result<(), SweepError> {
        let mut described = self.described.clone();
        described.absolute(at);
        described.write(folder)
    }

    /// Inputs, and values of options and axes, that may name files.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let values = self.used().map(|(_, value)| value);
        self.inputs.iter().map(String::as_str).chain(values).chain(self.described.names())
    }

    /// A name stands in one place: among the options, the axes or `[[points]]`. What is described is
    /// used.
    fn check(&self) -> Result<(), Fault> {
        let twice =
            self.axes().into_iter().find(|axis| self.options.iter().any(|(name, _)| name == axis));
        if let Some(name) = twice {
            return Err((name.into(), "it is an option and an axis; leave one out".into()));
        }
        let of_both = self.points.iter().find_map(|point| {
            let mut names = HashSet::new();
            point.values.iter().map(|(name, _)| name).find(|name| !names.insert(*name))
        });
        if let Some(name) = of_both {
            let what = "it is an axis, and in [[points]]; leave one out";
            return Err((name.clone(), what.into()));
        }
        let used: HashSet<(&str, &str)> = self.used().collect();
        self.described.each().find(|each| !used.contains(each)).map_or(Ok(()), |(option, name)| {
            Err((
                format!("{option}s.{name}"),
                format!("no point has this {option}; name it in {option}"),
            ))
        })
    }
}

/// `--name=value`; `--name` for a switch that is on.
fn argument(name: &str, value: &str) -> Option<String> {
    match (name.split_once('.'), value) {
        (Some((DEFINE, variable)), _) => Some(format!("-D{variable}={value}")),
        (_, "true") => Some(format!("--{name}")),
        (_, "false") => None,
        _ => Some(format!("--{name}={value}")),
    }
}

/// Names with `-`, as the command line has them; variables are `define.NAME`.
fn flat(table: &Table) -> Result<Vec<(String, &Value)>, Fault> {
    let mut all = Vec::new();
    for (name, value) in table {
        match value {
            Value::Table(variables) if name == DEFINE => {
                all.extend(
                    variables.iter().map(|(name, value)| (format!("{DEFINE}.{name}"), value)),
                );
            }
            _ if name.is_empty() || name.starts_with('-') => {
                return Err((name.clone(), "write the option without its dashes".into()));
            }
            _ => all.push((name.replace('_', "-"), value)),
        }
    }
    Ok(all)
}

fn options(table: &Table) -> Result<Vec<Named>, Fault> {
    let option = |(name, value): (String, &Value)| match value {
        Value::Array(list) => {
            let values: Option<Vec<_>> = list.iter().map(scalar).collect();
            values
                .map(|values| (name.clone(), values))
                .ok_or((name, "give numbers or texts".into()))
        }
        value => scalar(value)
            .map(|value| (name.clone(), vec![value]))
            .ok_or((name, "give a number or a text".into())),
    };
    flat(table)?.into_iter().map(option).collect()
}

fn axes(table: &Table) -> Result<Vec<Named>, Fault> {
    let axis = |(name, value): (String, &Value)| match values(value) {
        Ok(values) => Ok((name, values)),
        Err(problem) => Err((name, problem)),
    };
    flat(table)?.into_iter().map(axis).collect()
}

/// A point of a list.
fn listed(table: &Table) -> Result<Vec<(String, String)>, Fault> {
    let value = |(name, value): (String, &Value)| {
        scalar(value)
            .map(|value| (name.clone(), value))
            .ok_or((name, "give a number or a text".into()))
    };
    flat(table)?.into_iter().map(value).collect()
}

/// Each listed point with all combinations of the axes; the last axis changes first.
fn combine(listed: &[Vec<(String, String)>], axes: &[Named]) -> Result<Vec<Point>, Fault> {
    let grid = axes.iter().fold(1_u64, |all, (_, values)| all.saturating_mul(values.len() as u64));
    let count = grid.saturating_mul(listed.len().max(1) as u64);
    if count > POINTS_MAX {
        return Err((
            "axes".into(),
            format!("they make {count} points; {POINTS_MAX} are the most"),
        ));
    }
    let nothing = [Vec::new()];
    let listed = if listed.is_empty() { &nothing } else { listed };
    let mut all: Vec<Vec<(String, String)>> = Vec::with_capacity(count as usize);
    for given in listed {
        for mut at in 0..grid {
            let mut values = Vec::with_capacity(axes.len());
            for (name, choices) in axes.iter().rev() {
                let choice = &choices[(at % choices.len() as u64) as usize];
                values.push((name.clone(), choice.clone()));
                at /= choices.len() as u64;
            }
            values.reverse();
            all.push(given.iter().cloned().chain(values).collect());
        }
    }
    check_distinct(&all)?;
    Ok((0..).zip(all).map(|(number, values)| Point { number, values }).collect())
}

/// Refuses equal points: they would count as runs of several seeds.
fn check_distinct(points: &[Vec<(String, String)>]) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    for point in points {
        let mut values: Vec<_> = point.iter().collect();
        values.sort();
        if !seen.insert(values) {
            let names = point.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let values = point.iter().map(|(name, value)| format!("{name}={value}"));
            let point = values.collect::<Vec<_>>().join(" ");
            return Err((names, format!("the point {point} is there twice; give each once")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(text: &str) -> Result<Sweep, String> {
        let head = "command = 'bench'\ninputs = ['a.fio']\n";
        Sweep::parse(&format!("{head}{text}"), "s.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn points_are_all_combinations_of_list_and_axes() {
        let text = "[[points]]\nstack = 'f2fs'\n[[points]]\nstack = 'ext4'\nop = 7\n[axes]\nseed = [1, 2]\n";
        let names: Vec<String> = sweep(text).unwrap().points().iter().map(Point::name).collect();
        let [f2fs, ext4] = ["stack=f2fs", "stack=ext4 op=7"];
        assert_eq!(
            names,
            [f2fs, f2fs, ext4, ext4]
                .iter()
                .zip([1, 2, 1, 2])
                .map(|(p, s)| format!("{p} seed={s}"))
                .collect::<Vec<_>>()
        );
        assert_eq!(sweep(text).unwrap().axes(), ["stack", "seed", "op"]);
    }

    #[test]
    fn options_are_those_of_the_command_line() {
        let text = "[options]\nstack = ['f2fs', 'ext4']\nfinal_sync = true\nrestart = false\n[options.define]\nSIZE = '8m'\n\
            [axes.define]\nBS = ['4k']\n";
        let sweep = sweep(text).unwrap();
        assert_eq!(
            sweep.arguments(&sweep.points()[0], None),
            ["a.fio", "--stack=f2fs", "--stack=ext4", "--final-sync", "-DSIZE=8m", "-DBS=4k"]
        );
    }

    #[test]
    fn described_stacks_are_written_as_files() {
        let text = "[axes]\nstack = ['mine', 'ext4']\n[stacks.mine]\nfilesystem = 'f2fs'\ndrive = 'd.toml'\n";
        let sweep = sweep(text).unwrap();
        let point = &sweep.points()[0];
        assert_eq!(point.name(), "stack=mine");
        assert_eq!(sweep.arguments(point, None), ["a.fio", "--stack=mine"]);
        let (here, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(here.path().join("d.toml"), "").unwrap();
        sweep.write_described(folder.path(), here.path()).unwrap();
        let path = folder.path().join("stack/mine.toml");
        let file = std::fs::read_to_string(&path).unwrap();
        let drive = here.path().join("d.toml");
        assert!(file.contains("name = \"mine\""), "{file}");
        assert!(file.contains(&format!("drive = \"{}\"", drive.display())), "{file}");
        let expected = format!("--stack={}", path.display());
        assert_eq!(sweep.arguments(point, Some(folder.path())), ["a.fio".into(), expected]);
        let other = sweep.arguments(&sweep.points()[1], Some(folder.path()));
        assert_eq!(other, ["a.fio", "--stack=ext4"]);
    }

    #[test]
    fn files_have_their_paths_for_those_who_are_elsewhere() {
        let here = tempfile::tempdir().unwrap();
        for name in ["a.fio", "x.toml", "fileserver", "4k"] {
            std::fs::write(here.path().join(name), "").unwrap();
        }
        let at = |name: &str| here.path().join(name).display().to_string();
        let text = "[options]\nstack = 'x.toml,ext4'\n[axes.define]\nBS = ['4k']\n";
        let away = sweep(text).unwrap().absolute(here.path(), |_| false);
        assert_eq!(away.files().collect::<Vec<_>>(), [at("a.fio"), at("x.toml")]);
        let expected = [at("a.fio"), format!("--stack={},ext4", at("x.toml")), "-DBS=4k".into()];
        assert_eq!(away.arguments(&away.points()[0], None), expected);
        let named = Sweep::parse("command = 'bench'\ninputs = ['fileserver']", "s").unwrap();
        let built_in = named.absolute(here.path(), |name| name == "fileserver");
        assert_eq!((built_in.inputs(), built_in.files().count()), (&["fileserver".into()][..], 0));
        assert_eq!(named.absolute(here.path(), |_| false).inputs(), [at("fileserver")]);
        let text = "[options]\nstack = 'x.toml'\n[stacks.'x.toml']\nfilesystem = 'f2fs'\n";
        let described = sweep(text).unwrap().absolute(here.path(), |_| false);
        assert_eq!(described.files().collect::<Vec<_>>(), [at("a.fio")]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("[axis]\nop = [1]\n", "unknown field `axis`"),
            ("[axes]\nop = []\n", "s.toml: op: it has no values"),
            ("[axes]\n--op = [1]\n", "without its dashes"),
            ("[axes]\nseed = [1]\n[options]\nseed = 2\n", "an option and an axis"),
            ("[axes]\nop = [7]\n[[points]]\nop = 3\n", "op: it is an axis, and in [[points]]"),
            ("[axes]\nop = [7]\nseed = [1, 2, 1]\n", "the point op=7 seed=1 is there twice"),
            ("[[points]]\nop = 7\n[[points]]\nop = 7\n", "the point op=7 is there twice"),
            ("[options]\nop = { from = 1 }\n", "op: give a number or a text"),
            ("[stacks.mine]\nfilesystem = 'f2fs'\n", "stacks.mine: no point has this stack"),
            ("[options]\ndrive = 'a/b'\n[drives.'a/b']\nbase = 'x'\n", "a name has up to 100"),
            ("[options]\ndrive = '-q'\n[drives.-q]\nbase = 'x'\n", "begins with neither"),
            ("[options]\ndrive = 'd'\n[drives.d]\nname = 'e'\n", "is another one; leave that out"),
            (
                "[axes]\na = { from = 1, to = 2000 }\nb = { from = 1, to = 2000 }\n",
                "4000000 points",
            ),
        ] {
            let message = sweep(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
        let message =
            Sweep::parse("command = 'bench'\ninputs = []", "s.toml").unwrap_err().to_string();
        assert!(message.contains("inputs: name a job"), "{message}");
        assert!(Sweep::parse("command = 'fly'\ninputs = ['a']", "s.toml").is_err());
    }
}
