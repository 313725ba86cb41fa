//! Choice of a file's directory: first a depth, then a directory of the level above.

use dovetail_time::Rng;

use super::tree::{Tree, TreeModel};
use crate::draw::uniform;

/// Assumed: the inverse polynomial has no mean, and larger directories are rare.
const MOST_IN_DIRECTORY: u32 = 4096;

/// Weights that add up, for drawing in proportion to them.
struct Cumulative(Vec<f64>);

impl Cumulative {
    fn new(weights: impl Iterator<Item = f64>) -> Self {
        let sum = |total: &mut f64, weight: f64| {
            *total += weight;
            Some(*total)
        };
        Self(weights.scan(0.0, sum).collect())
    }

    fn draw(&self, rng: &mut Rng) -> usize {
        let point = uniform(rng) * self.0.last().copied().unwrap_or(0.0);
        self.0.partition_point(|&end| end <= point).min(self.0.len().saturating_sub(1))
    }
}

pub(super) struct Places {
    /// Over depths of files, from 1: a file in the root has depth 1.
    depth: Cumulative,
    /// By level of the directory: its directories, and how files spread over them.
    levels: Vec<(Vec<u32>, Cumulative)>,
}

impl Places {
    /// Depths are Poisson distributed among the levels that the tree has. Each directory draws how
    /// many files it would have from the inverse polynomial `(n + offset)^-degree`; files of a
    /// level fall to it in that proportion.
    pub(super) fn new(model: &TreeModel, tree: &Tree, rng: &mut Rng) -> Self {
        let sizes = Cumulative::new(
            (0..MOST_IN_DIRECTORY).map(|n| libm::pow(f64::from(n) + model.offset, -model.degree)),
        );
        let deepest = tree.depths().iter().max().copied().unwrap_or(0);
        let mut levels = vec![(Vec::new(), Vec::new()); deepest as usize + 1];
        for (directory, &depth) in tree.depths().iter().enumerate() {
            let (directories, weights) = &mut levels[depth as usize];
            directories.push(directory as u32);
            weights.push(sizes.draw(rng) as f64);
        }
        Self {
            depth: poisson(model.depth, deepest + 1),
            levels: levels.into_iter().map(level).collect(),
        }
    }

    /// The directory of the next file.
    pub(super) fn draw(&mut self, rng: &mut Rng) -> u32 {
        let (directories, spread) = &self.levels[self.depth.draw(rng)];
        directories[spread.draw(rng)]
    }
}

/// A level whose directories would all be empty spreads evenly.
fn level((directories, weights): (Vec<u32>, Vec<f64>)) -> (Vec<u32>, Cumulative) {
    let empty = weights.iter().all(|&weight| weight == 0.0);
    (
        directories,
        Cumulative::new(weights.into_iter().map(|weight| if empty { 1.0 } else { weight })),
    )
}

/// Probabilities of the depths 1 to `deepest`, up to a factor.
fn poisson(lambda: f64, deepest: u32) -> Cumulative {
    let weight = |depth: f64| libm::exp(depth * libm::log(lambda) - libm::lgamma(depth + 1.0));
    Cumulative::new((1..=deepest).map(|depth| weight(f64::from(depth))))
}
