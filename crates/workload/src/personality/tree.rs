//! The tree of a file set: directories of random width and depth with the files in the leaves.
//!
//! The rule is Filebench's (`fileset_populate` in fileset.c): the mean depth is
//! `ln(entries) / ln(dirwidth)`; each directory draws a width and a depth, and holds files if it
//! lies at least that deep, else directories. The root takes directories until there are enough
//! files.

use dovetail_time::Rng;

use super::model::SetSpec;
use crate::draw::gamma;

/// Assumed: a path of this many names of nine letters is legal everywhere.
const DEEPEST: u32 = 128;

/// A file of the set: where it lies and how large it is to be.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) path: Box<str>,
    pub(super) size: u64,
}

pub(super) fn populate(spec: &SetSpec, rng: &mut Rng) -> Vec<Entry> {
    let mean_depth = libm::log(f64::from(spec.entries)) / libm::log(spec.dir_width as f64);
    let mut tree = Tree { spec, mean_depth, entries: Vec::with_capacity(spec.entries as usize) };
    let mut path = format!("{}{}", spec.root, spec.name);
    let mut serial = 0;
    while tree.missing() {
        serial += 1;
        tree.directory(&mut path, serial, 2, rng);
    }
    tree.entries
}

struct Tree<'a> {
    spec: &'a SetSpec,
    mean_depth: f64,
    entries: Vec<Entry>,
}

impl Tree<'_> {
    fn missing(&self) -> bool {
        self.entries.len() < self.spec.entries as usize
    }

    /// A directory below `path`, `depth` names below the root's parent.
    fn directory(&mut self, path: &mut String, serial: u32, depth: u32, rng: &mut Rng) {
        let above = path.len();
        path.push_str(&format!("/{serial:08}"));
        let leaf = depth >= self.depth(rng);
        let width = self.width(rng);
        let mut next = 1;
        while f64::from(next) < width + 1.0 && self.missing() {
            if leaf {
                self.file(path, next, rng);
            } else {
                self.directory(path, next, depth + 1, rng);
            }
            next += 1;
        }
        path.truncate(above);
    }

    fn depth(&self, rng: &mut Rng) -> u32 {
        let drawn = shaped(rng, self.spec.dir_gamma, self.mean_depth);
        (drawn as u32).clamp(1, DEEPEST)
    }

    fn width(&self, rng: &mut Rng) -> f64 {
        let drawn = shaped(rng, self.spec.dir_gamma, self.spec.dir_width as f64);
        if drawn == 0.0 { 1.0 } else { drawn }
    }

    fn file(&mut self, directory: &str, serial: u32, rng: &mut Rng) {
        let size = shaped(rng, self.spec.size_gamma, self.spec.mean_size as f64) as u64;
        self.entries.push(Entry { path: format!("{directory}/{serial:08}").into(), size });
    }
}

/// A draw around `mean`; shape 0 is the mean itself.
fn shaped(rng: &mut Rng, shape: f64, mean: f64) -> f64 {
    if shape > 0.0 && mean > 0.0 { gamma(rng, shape, mean) } else { mean }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn spec(entries: u32, dir_width: u64) -> SetSpec {
        SetSpec {
            root: "bench/".into(),
            name: "set".into(),
            entries,
            mean_size: 131_072,
            size_gamma: 1.5,
            dir_width,
            dir_gamma: 1.5,
            prealloc_percent: 80,
            read_only: false,
            cached: false,
        }
    }

    fn directories(entries: &[Entry]) -> BTreeMap<&str, u32> {
        let mut counts = BTreeMap::new();
        for entry in entries {
            *counts.entry(entry.path.rsplit_once('/').unwrap().0).or_default() += 1;
        }
        counts
    }

    #[test]
    fn there_are_as_many_files_as_asked_and_no_two_of_a_path() {
        for (entries, width) in [(1, 20), (10_000, 20), (1000, 1_000_000), (5000, 2)] {
            let tree = populate(&spec(entries, width), &mut Rng::new(4));
            let paths: std::collections::BTreeSet<_> =
                tree.iter().map(|entry| &entry.path).collect();
            assert_eq!((tree.len(), paths.len()), (entries as usize, entries as usize));
            assert!(paths.iter().all(|path| path.starts_with("bench/set/0")));
        }
    }

    #[test]
    fn leaves_are_as_wide_as_asked_on_average() {
        let tree = populate(&spec(100_000, 20), &mut Rng::new(4));
        let mean = tree.len() as f64 / directories(&tree).len() as f64;
        assert!((mean / 20.0 - 1.0).abs() < 0.1, "{mean}");
    }

    #[test]
    fn a_mail_spool_is_one_directory() {
        assert_eq!(directories(&populate(&spec(1000, 1_000_000), &mut Rng::new(4))).len(), 1);
    }

    #[test]
    fn sizes_have_the_gamma_distributions_mean_and_deviation() {
        let tree = populate(&spec(50_000, 20), &mut Rng::new(4));
        let n = tree.len() as f64;
        let mean = tree.iter().map(|entry| entry.size as f64).sum::<f64>() / n;
        let square = tree.iter().map(|entry| (entry.size as f64 - mean).powi(2)).sum::<f64>() / n;
        assert!((mean / 131_072.0 - 1.0).abs() < 0.02, "{mean}");
        assert!(
            (square.sqrt() / (131_072.0 / 1.5f64.sqrt()) - 1.0).abs() < 0.03,
            "{}",
            square.sqrt()
        );
    }
}
