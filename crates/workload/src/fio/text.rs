//! A job file as text for fio itself.

use super::settings::scaled_bytes;
use super::value::{Extent, Value};

/// Options whose value is an amount: a size, a range of sizes, or a share of one.
const SIZES: [&str; 5] = ["size", "io_size", "filesize", "offset", "offset_increment"];

/// A section as it was read: its name, and each option with its value, or alone.
#[derive(Clone, Debug)]
pub(super) struct SectionText {
    pub name: String,
    pub options: Vec<(String, Option<String>)>,
    /// The meaning of `k` in it: 1024 or 1000.
    pub kilo: u64,
}

impl SectionText {
    /// The section with its amounts shrunk to a share of theirs, as [`super::JobFile::scaled`] does.
    pub(super) fn scaled(&self, share: f64) -> String {
        let mut text = format!("[{}]\n", self.name);
        for (name, value) in &self.options {
            text.push_str(name);
            if let Some(value) = value {
                text.push('=');
                text.push_str(&self.scaled_value(name, value, share));
            }
            text.push('\n');
        }
        text
    }

    fn scaled_value(&self, name: &str, text: &str, share: f64) -> String {
        let value = Value { text, kilo: self.kilo };
        if name == "number_ios" {
            let scaled = |count| ((count as f64 * share).ceil() as u64).max(1).to_string();
            return value.size().map_or(text.into(), scaled);
        }
        if share >= 1.0 || !SIZES.contains(&name) {
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

#[cfg(test)]
mod tests {
    use super::super::{JobFile, Variables};

    #[test]
    fn amounts_shrink_and_everything_else_stays() {
        let text =
            "[global]\nbs=8k\nthread\n[a]\nsize=${S}\nfilesize=1m-4m\noffset=50%\n[b]\nsize=1m\n";
        let variables = Variables::from_iter([("S", "64m")]);
        let file = JobFile::parse(text, "j", &variables).unwrap();
        assert_eq!(
            file.to_text(1.0 / 16.0),
            "[global]\nbs=8k\nthread\n[a]\nsize=4194304\nfilesize=65536-262144\noffset=50%\n[b]\nsize=65536\n"
        );
        assert_eq!(file.to_text(1.0), text.replace("${S}", "64m"));
    }
}
