//! The tree of directories.

use dovetail_time::Rng;

use super::error::FileSetError;

/// Directories, and how files lie in them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeModel {
    /// Files per directory on average: 10.2 in the input file that comes with Impressions
    /// (`Filesperdir`).
    pub files_per_directory: f64,
    /// Mean depth of files: the Poisson distribution's lambda (table 2, "file count with depth").
    pub depth: f64,
    /// Degree of the inverse polynomial of files in a directory (table 2, "directory size
    /// (files)").
    pub degree: f64,
    /// Its offset.
    pub offset: f64,
}

impl Default for TreeModel {
    fn default() -> Self {
        Self { files_per_directory: 10.2, depth: 6.49, degree: 2.0, offset: 2.36 }
    }
}

impl TreeModel {
    pub(super) fn check(&self) -> Result<(), FileSetError> {
        let figures = [
            ("files_per_directory", self.files_per_directory, (0.1, 1e9), "0.1 to 1e9"),
            ("depth", self.depth, (0.1, 100.0), "0.1 to 100"),
            ("degree", self.degree, (1.0, 10.0), "1 to 10"),
            ("offset", self.offset, (0.1, 100.0), "0.1 to 100"),
        ];
        let wrong = figures
            .into_iter()
            .find(|(_, value, (least, most), _)| !(least..=most).contains(&value));
        wrong.map_or(Ok(()), |(key, value, _, allowed)| {
            Err(FileSetError::Value { key, value, allowed })
        })
    }

    /// Directories for so many files, the root among them.
    pub(super) fn directories(&self, files: u64) -> u32 {
        ((files as f64 / self.files_per_directory).round() as u32).max(1)
    }
}

/// The directories, the root first.
pub(super) struct Tree {
    paths: Vec<Box<str>>,
    /// Names below the root; the root's is 0.
    depths: Vec<u32>,
}

impl Tree {
    /// Grows a tree by the generative model (section 3.3.1, after Agrawal et al., "A Five-Year
    /// Study of File-System Metadata", FAST'07): each new directory falls to one that is there with
    /// a probability in proportion to its subdirectories plus 2.
    pub(super) fn grow(root: &str, directories: u32, rng: &mut Rng) -> Self {
        let mut tree = Self { paths: vec![root.into()], depths: vec![0] };
        // Every directory stands here twice, and once more for each of its subdirectories.
        let mut tickets = vec![0, 0];
        for new in 1..directories {
            let parent: u32 = tickets[rng.below(tickets.len() as u64) as usize];
            tickets.extend([parent, new, new]);
            tree.paths.push(format!("{}/d{new}", tree.path(parent)).into());
            tree.depths.push(tree.depths[parent as usize] + 1);
        }
        tree
    }

    pub(super) fn path(&self, directory: u32) -> &str {
        &self.paths[directory as usize]
    }

    pub(super) fn depths(&self) -> &[u32] {
        &self.depths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subdirectories_fall_as_the_generative_model_says() {
        let tree = Tree::grow("root", 50_000, &mut Rng::new(5));
        let mut children = vec![0u32; 50_000];
        for path in &tree.paths[1..] {
            let parent = path.rsplit_once('/').unwrap().0;
            let number = parent.rsplit_once("/d").map_or(0, |(_, number)| number.parse().unwrap());
            children[number as usize] += 1;
        }
        // Weights c + 2 and one new directory a step: p(0) = 3/5, p(c) = p(c - 1) (c + 1) / (c + 5)
        // in the limit.
        let mut theory = 3.0 / 5.0;
        for count in 0..4 {
            let share = children.iter().filter(|&&c| c == count).count() as f64 / 50_000.0;
            assert!(
                (share - theory).abs() < 0.01,
                "{count} subdirectories: {share}, {theory} in theory"
            );
            theory *= f64::from(count + 2) / f64::from(count + 6);
        }
    }

    #[test]
    fn depths_count_names() {
        let tree = Tree::grow("root", 1000, &mut Rng::new(5));
        for (path, depth) in tree.paths.iter().zip(&tree.depths) {
            assert_eq!(path.matches('/').count() as u32, *depth);
        }
    }
}
