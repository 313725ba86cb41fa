//! The pages of the documentation, which the program brings along.

/// A page: its name and its text.
type Topic = (&'static str, &'static str);

/// All pages, by name.
pub(super) const TOPICS: [Topic; 46] = [
    ("answers", include_str!("../../docs/answers.md")),
    ("bench-against-linux", include_str!("../../docs/bench-against-linux.md")),
    ("choosing", include_str!("../../docs/choosing.md")),
    ("comparing", include_str!("../../docs/comparing.md")),
    ("crash", include_str!("../../docs/crash.md")),
    ("drive-model", include_str!("../../docs/drive-model.md")),
    ("drives", include_str!("../../docs/drives.md")),
    ("ext-format", include_str!("../../docs/ext-format.md")),
    ("ext-mount", include_str!("../../docs/ext-mount.md")),
    ("f2fs-cleaning", include_str!("../../docs/f2fs-cleaning.md")),
    ("f2fs-format", include_str!("../../docs/f2fs-format.md")),
    ("f2fs-zoned", include_str!("../../docs/f2fs-zoned.md")),
    ("fault-model", include_str!("../../docs/fault-model.md")),
    ("figures", include_str!("../../docs/figures.md")),
    ("figures-causes", include_str!("../../docs/figures-causes.md")),
    ("fio-jobs", include_str!("../../docs/fio-jobs.md")),
    ("fsck", include_str!("../../docs/fsck.md")),
    ("fsdv", include_str!("../../docs/fsdv.md")),
    ("gc-theory", include_str!("../../docs/gc-theory.md")),
    ("glossary", include_str!("../../docs/glossary.md")),
    ("host-model", include_str!("../../docs/host-model.md")),
    ("index", include_str!("../../docs/README.md")),
    ("interval-map", include_str!("../../docs/interval-map.md")),
    ("iplfs", include_str!("../../docs/iplfs.md")),
    ("iplfs-figures", include_str!("../../docs/iplfs-figures.md")),
    ("linux", include_str!("../../docs/linux.md")),
    ("linux-times", include_str!("../../docs/linux-times.md")),
    ("mapping-caches", include_str!("../../docs/mapping-caches.md")),
    ("mount-options", include_str!("../../docs/mount-options.md")),
    ("own-mapping-scheme", include_str!("../../docs/tutorials/own-mapping-scheme.md")),
    ("placement", include_str!("../../docs/placement.md")),
    ("playground", include_str!("../../docs/playground.md")),
    ("posix", include_str!("../../docs/posix.md")),
    ("python", include_str!("../../docs/python.md")),
    ("reproduce-a-figure", include_str!("../../docs/tutorials/reproduce-a-figure.md")),
    ("results-json", include_str!("../../docs/results-json.md")),
    ("rm-ipu", include_str!("../../docs/rm-ipu.md")),
    ("save-an-image", include_str!("../../docs/tutorials/save-an-image.md")),
    ("serve", include_str!("../../docs/serve.md")),
    ("stacks", include_str!("../../docs/stacks.md")),
    ("sweeps", include_str!("../../docs/sweeps.md")),
    ("trace-on-drives", include_str!("../../docs/tutorials/trace-on-drives.md")),
    ("traces", include_str!("../../docs/traces.md")),
    ("which-file-system", include_str!("../../docs/tutorials/which-file-system.md")),
    ("workloads", include_str!("../../docs/workloads.md")),
    ("zoned-drives", include_str!("../../docs/zoned-drives.md")),
];

/// The page of a name: `fio-jobs`, `fio-jobs.md` or `docs/fio-jobs.md`.
pub(super) fn topic(name: &str) -> Option<&'static Topic> {
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.strip_suffix(".md").unwrap_or(name);
    TOPICS.iter().find(|(topic, _)| *topic == name)
}

/// The heading of a page.
pub(super) fn title(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_of_the_documentation_is_a_topic() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
        let pages = |folder: String| std::fs::read_dir(folder).unwrap();
        let pages = pages(docs.into()).chain(pages(format!("{docs}/tutorials")));
        let pages = pages.map(|entry| entry.unwrap().path());
        let pages = pages.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
        let name = |path: &std::path::Path| path.file_stem().unwrap().to_str().unwrap().to_string();
        let mut names: Vec<_> = pages.map(|path| name(&path).replace("README", "index")).collect();
        names.sort_unstable();
        assert_eq!(TOPICS.map(|(name, _)| name.to_string()).to_vec(), names);
        assert!(TOPICS.iter().all(|(_, text)| !title(text).is_empty()));
    }
}
