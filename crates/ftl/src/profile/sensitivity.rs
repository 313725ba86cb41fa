//! Results that hang on figures that no source gives: profiles with one assumed figure changed.

use dovetail_time::parse_bytes;

use super::{Profile, ProfileError};

/// A profile in which one assumed figure is another.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The figure: `table.key`.
    pub key: String,
    /// The value found.
    pub from: String,
    /// The new value.
    pub to: String,
    /// The profile with it.
    pub profile: Profile,
}

/// The ends of the range that a source gives: `assumed 8MiB..64MiB: why`.
fn range_of(source: &str) -> Option<[String; 2]> {
    let range = source.strip_prefix("assumed ")?.split(':').next()?;
    let (least, most) = range.split_once("..")?;
    let toml = |end: &str| match end.parse::<f64>() {
        Ok(_) => end.to_string(),
        Err(_) => format!("\"{end}\""),
    };
    Some([toml(least.trim()), toml(most.trim())])
}

/// A list with each number `factor` times as large.
fn scaled_list(figure: &str, factor: f64) -> Option<String> {
    let list = figure.strip_prefix('[')?.strip_suffix(']')?;
    let numbers: Option<Vec<String>> = list
        .split(',')
        .map(|number| Some(format!("{:?}", number.trim().parse::<f64>().ok()? * factor)))
        .collect();
    Some(format!("[{}]", numbers?.join(", ")))
}

/// Candidates for half and double of a figure as TOML, the preferred first: a key of whole numbers
/// does not take 2.5. The other state of a switch.
fn alternatives(figure: &str) -> Vec<Vec<String>> {
    if let Ok(whole) = figure.parse::<u64>() {
        let halves = [format!("{:?}", whole as f64 / 2.0), (whole / 2).to_string()];
        let halves = if whole.is_multiple_of(2) { &halves[1..] } else { &halves[..] };
        return vec![halves.to_vec(), vec![(whole * 2).to_string()]];
    }
    others(figure).into_iter().map(|other| vec![other]).collect()
}

fn others(figure: &str) -> Vec<String> {
    if figure.starts_with('[') {
        return [0.5, 2.0].into_iter().filter_map(|factor| scaled_list(figure, factor)).collect();
    }
    if let Ok(switch) = figure.parse::<bool>() {
        return vec![(!switch).to_string()];
    }
    if let Ok(number) = figure.parse::<f64>() {
        return vec![format!("{:?}", number / 2.0), format!("{:?}", number * 2.0)];
    }
    match parse_bytes(figure) {
        Ok(bytes) => [bytes / 2, bytes * 2].map(|bytes| format!("\"{}\"", size(bytes))).to_vec(),
        Err(_) => Vec::new(),
    }
}

/// A size as profiles write it.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS.into_iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(unit, name)| format!("{}{name}", bytes / unit))
}

impl Profile {
    /// The profile with each of its assumed figures at both ends of its range, or halved and
    /// doubled where it has none (a switch: turned), one at a time: what a sensitivity check
    /// compares. A figure without a source is assumed. Figures that cannot be changed so (a name,
    /// or a drive that could not work) are left out.
    pub fn variants_of_assumed(&self) -> Vec<Variant> {
        let is_assumed =
            |key: &str| self.sources.get(key).is_none_or(|source| source.contains("assumed"));
        let mut variants = Vec::new();
        for (key, from) in self.figures().into_iter().filter(|(key, _)| is_assumed(key)) {
            let range = self.sources.get(&key).and_then(|source| range_of(source));
            let ends = |ends: [String; 2]| ends.map(|end| vec![end]).to_vec();
            for candidates in range.map_or_else(|| alternatives(&from), ends) {
                let made = |to: String| Some((self.with_figure(&key, &to)?, to));
                let variant = candidates.into_iter().find_map(made);
                if let Some((profile, to)) = variant.filter(|(_, to)| *to != from) {
                    let to = to.trim_matches('"').to_string();
                    variants.push(Variant { key: key.clone(), from: from.clone(), to, profile });
                }
            }
        }
        variants
    }

    fn with_figure(&self, key: &str, value: &str) -> Option<Self> {
        let value: toml::Table = format!("value = {value}").parse().ok()?;
        self.with_figures([(key, value.get("value")?.clone())]).ok()
    }

    /// The profile with figures `table.key` that are others.
    ///
    /// # Errors
    /// A figure that there is not, or that makes no profile, as [`Profile::parse`] tells it.
    pub fn with_figures<'a>(
        &self,
        figures: impl IntoIterator<Item = (&'a str, toml::Value)>,
    ) -> Result<Self, ProfileError> {
        let mut document: toml::Table = self.text.parse().unwrap_or_default();
        for (key, value) in figures {
            let (table, name) = key.split_once('.').unwrap_or((key, ""));
            let table = document.entry(table).or_insert_with(|| toml::Table::new().into());
            if let Some(table) = table.as_table_mut() {
                table.insert(name.into(), value);
            }
        }
        Self::parse(&document.to_string(), &self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Overrides;

    #[test]
    fn assumed_figures_are_varied_one_at_a_time() {
        let profile = Profile::load("nvme-250g").unwrap();
        let variants = profile.variants_of_assumed();
        let changes = |key: &str| {
            let of_key = variants.iter().filter(|v| v.key == key);
            of_key.map(|v| format!("{} to {}", v.from, v.to)).collect::<Vec<_>>()
        };
        assert_eq!(changes("timing.channel_mb_per_s"), ["800 to 400", "800 to 1600"]);
        assert_eq!(changes("host.write_buffer"), ["32MiB to 16MiB", "32MiB to 64MiB"]);
        assert_eq!(changes("ftl.gc_apart"), ["true to false"]);
        assert_eq!(changes("host.link_mb_per_s"), [""; 0], "the data sheet gives it");
        assert_eq!(
            range_of("assumed 8MiB..64MiB: part of it"),
            Some(["\"8MiB\"".into(), "\"64MiB\"".into()])
        );
        assert_eq!(range_of("assumed 0.5..2: why"), Some(["0.5".into(), "2".into()]));
        assert_eq!(range_of("assumed: none given"), None);
        let mine = "name = \"mine\"\nabout = \"a\"\nbase = \"femu-32g\"\n[host]\ncommand_us = 5\n";
        let mine = Profile::parse(mine, "mine.toml").unwrap().variants_of_assumed();
        let mine = mine.iter().filter(|variant| variant.key == "host.command_us");
        let changes: Vec<_> = mine.map(|v| v.to.as_str()).collect();
        assert_eq!(changes, ["2.5", "10"], "no source, and no whole number");
        assert_eq!(others("[40, 60]"), ["[20.0, 30.0]", "[80.0, 120.0]"]);
        let doubled = variants.iter().find(|v| v.to == "64MiB").unwrap();
        assert_eq!(doubled.profile.resolve(&Overrides::default()).unwrap().buffer_pages, 4096);
    }
}
