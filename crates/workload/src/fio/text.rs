//! A job file as text for fio itself, on a volume that is mounted at some folder.

use super::options::{Effect, JobOption};
use super::settings::scaled_bytes;
use super::value::{Extent, Value};

/// Options whose value is an amount: a size, a range of sizes, or a share of one.
const SIZES: [&str; 5] = ["size", "io_size", "filesize", "offset", "offset_increment"];

/// Honoured options that the caller of fio sets itself: the seed, and what is shown.
const CHOSEN: [&str; 7] = [
    "randseed",
    "clat_percentiles",
    "lat_percentiles",
    "slat_percentiles",
    "percentile_list",
    "log_max_value",
    "per_job_logs",
];

/// Jobs as fio reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobText {
    /// The job file.
    pub text: String,
    /// Folders that must be there before fio runs.
    pub folders: Vec<String>,
}

/// A section as it was read: its name, and each option with its value, or alone.
#[derive(Clone, Debug)]
pub(super) struct SectionText {
    pub name: String,
    pub options: Vec<(&'static JobOption, Option<String>)>,
    /// The meaning of `k` in it: 1024 or 1000.
    pub kilo: u64,
}

impl SectionText {
    /// Adds the section to `jobs`: amounts are shrunk to a share of theirs, as
    /// [`super::JobFile::scaled`] does, and files lie below the folder `root`. Options that change
    /// no I/O are left out: who runs fio chooses clocks and output.
    pub(super) fn add_to(&self, jobs: &mut JobText, share: f64, root: &str) {
        jobs.text.push_str(&format!("[{}]\n", self.name));
        for (option, value) in &self.options {
            if option.effect() != Effect::Honoured || CHOSEN.contains(&option.name) {
                continue;
            }
            jobs.text.push_str(option.name);
            if let Some(value) = value {
                let value = match option.name {
                    "directory" => below(root, value, &mut jobs.folders),
                    "filename" => below("", value, &mut Vec::new()),
                    name => self.scaled_value(name, value, share),
                };
                jobs.text.push_str(&format!("={value}"));
            }
            jobs.text.push('\n');
        }
    }

    /// A distribution; those of zones with sizes have smaller ones.
    fn scaled_zones(&self, text: &str, share: f64) -> String {
        let Some(zones) = text.strip_prefix("zoned_abs") else { return text.into() };
        let scaled = |part: &str| {
            let size = Value { text: part, kilo: self.kilo }.size();
            size.map_or(part.into(), |size| scaled_bytes(size, share).to_string())
        };
        // sizes stand behind slashes, each up to the next zone's colon or the next kind's comma
        let mut parts = zones.split('/');
        let first = parts.next().unwrap_or_default().to_string();
        parts.fold(format!("zoned_abs{first}"), |text, part| {
            let end = part.find([':', ',']).unwrap_or(part.len());
            format!("{text}/{}{}", scaled(&part[..end]), &part[end..])
        })
    }

    fn scaled_value(&self, name: &str, text: &str, share: f64) -> String {
        let value = Value { text, kilo: self.kilo };
        if name == "number_ios" {
            let scaled = |count| ((count as f64 * share).ceil() as u64).max(1).to_string();
            return value.size().map_or(text.into(), scaled);
        }
        if share >= 1.0 {
            return text.into();
        }
        if name == "random_distribution" {
            return self.scaled_zones(text, share);
        }
        if !SIZES.contains(&name) {
            return text.into();
        }
        match value.extent() {
            Ok(Extent::Bytes(bytes)) if bytes > 0 => scaled_bytes(bytes, share).to_string(),
            Ok(_) => text.into(),
            Err(_) => match value.range(Value::size) {
                Ok((low, high)) => {
                    format!("{}-{}", scaled_bytes(low, share), scaled_bytes(high, share))
                }
                Err(_) => text.into(),
            },
        }
    }
}

/// Paths, separated by `:`, below a folder: slashes at the front are that folder, as everywhere
/// here.
fn below(root: &str, paths: &str, folders: &mut Vec<String>) -> String {
    let path = |path: &str| {
        let parts = path.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
        let path = std::iter::once(root).filter(|root| !root.is_empty()).chain(parts);
        path.collect::<Vec<_>>().join("/")
    };
    let paths: Vec<String> = paths.split(':').map(path).collect();
    folders.extend(paths.iter().cloned());
    paths.join(":")
}

#[cfg(test)]
mod tests {
    use super::super::{JobFile, Variables};

    fn text(job: &str, share: f64) -> super::JobText {
        let variables = Variables::from_iter([("S", "64m")]);
        JobFile::parse(job, "j", &variables).unwrap().to_text(share, "/mnt/v")
    }

    #[test]
    fn amounts_shrink_and_everything_else_stays() {
        let job = "[global]\nbs=8k\n[a]\nsize=${S}\nfilesize=1m-4m\noffset=50%\n[b]\nsize=1m\n";
        assert_eq!(
            text(job, 1.0 / 16.0).text,
            "[global]\nbs=8k\n[a]\nsize=4194304\nfilesize=65536-262144\noffset=50%\n[b]\nsize=65536\n"
        );
        assert_eq!(text(job, 1.0).text, job.replace("${S}", "64m"));
    }

    /// The base is of the section that sets it, and of jobs behind a global one.
    #[test]
    fn sizes_shrink_by_the_base_of_their_section() {
        let job = "[a]\nkb_base=1000\nsize=64m\n[b]\nsize=64m\n";
        assert_eq!(text(job, 0.5).text, "[a]\nkb_base=1000\nsize=31997952\n[b]\nsize=33554432\n");
    }

    #[test]
    fn zones_with_sizes_shrink() {
        let job = "[a]\nrw=randrw\nsize=1g\nrandom_distribution=zoned_abs:90/64m:10/960m,100/1m\n";
        assert_eq!(
            text(job, 1.0 / 16.0).text,
            "[a]\nrw=randrw\nsize=67108864\nrandom_distribution=zoned_abs:90/4194304:10/62914560,100/65536\n"
        );
        let job = "[a]\nrw=randread\nsize=1m\nrandom_distribution=zoned:60/10:40/90\n";
        assert!(text(job, 0.5).text.ends_with("=zoned:60/10:40/90\n"));
    }

    #[test]
    fn other_names_of_options_shrink_too_and_clocks_and_output_are_left_out() {
        let job = "[a]\nsize=16m\nio_limit=32m\nclocksource=cpu\ngtod_reduce=1\nrandseed=7\nthread\nlat_percentiles=0\n";
        assert_eq!(text(job, 0.5).text, "[a]\nsize=8388608\nio_size=16777216\n");
    }

    #[test]
    fn files_lie_on_the_volume_wherever_the_job_had_them() {
        let job = "[a]\nsize=1m\ndirectory=/data:./b/c\nfilename=/tmp/x\n";
        let found = text(job, 1.0);
        assert_eq!(found.text, "[a]\nsize=1m\ndirectory=/mnt/v/data:/mnt/v/b/c\nfilename=tmp/x\n");
        assert_eq!(found.folders, ["/mnt/v/data", "/mnt/v/b/c"]);
    }
}
