//! The page: one file that holds the program, its worker and everything else that it needs.

use std::io::Write;

use dovetail_ftl::{Overrides, Profile};
use dovetail_report::parts;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::CATALOGUE;

const TEMPLATE: &str = include_str!("../assets/playground.html");
const CSS: &str = include_str!("../assets/playground.css");
const WORKER: &str = include_str!("../assets/worker.js");
const JS: [&str; 6] = [
    include_str!("../assets/simulator.js"),
    include_str!("../assets/picture.js"),
    include_str!("../assets/words.js"),
    include_str!("../assets/over.js"),
    include_str!("../assets/card.js"),
    include_str!("../assets/page.js"),
];

/// A page cannot be made of a program.
#[derive(Debug)]
pub struct PageError(String);

impl std::error::Error for PageError {}

impl std::fmt::Display for PageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The page around `program`, this crate built for WebAssembly.
///
/// # Errors
/// A drive of the catalogue that cannot be read.
pub fn html(program: &[u8]) -> Result<String, PageError> {
    let packed = gzip(program).map_err(|error| PageError(error.to_string()))?;
    let catalogue = catalogue()?.to_string().replace('<', "\\u003c");
    Ok(parts::fill(TEMPLATE, |name| match name {
        "library_css" => parts::LIBRARY_CSS.into(),
        "css" => parts::CSS.into(),
        "own_css" => CSS.into(),
        "dark_css" => parts::DARK_CSS.into(),
        "version" => env!("CARGO_PKG_VERSION").into(),
        "catalogue" => catalogue.clone(),
        "worker" => WORKER.into(),
        "program" => base64(&packed),
        "library_license" => parts::LIBRARY_LICENSE.into(),
        "library_js" => parts::LIBRARY_JS.into(),
        "js" => [parts::CHARTS_JS, &JS.concat()].concat(),
        _ => String::new(),
    }))
}

/// The page's choices, each drive with its bytes at full scale.
fn catalogue() -> Result<Value, PageError> {
    let mut drives = Vec::new();
    for drive in CATALOGUE.drives {
        let failed = |error: &dyn std::fmt::Display| PageError(error.to_string());
        let profile = Profile::load(drive.choice.name).map_err(|error| failed(&error))?;
        let whole = profile.resolve(&Overrides::default()).map_err(|error| failed(&error))?;
        let mut value = json!(drive);
        value["bytes"] = json!(whole.user_blocks * 4096);
        drives.push(value);
    }
    Ok(json!({
        "drives": drives,
        "stacks": CATALOGUE.stacks,
        "workloads": CATALOGUE.workloads,
    }))
}

fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes)?;
    packer.finish()
}

/// RFC 4648 with padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place > group.len() { '=' } else { letter.into() });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let of = |text: &str| base64(text.as_bytes());
        assert_eq!([of(""), of("f"), of("fo"), of("foo")], ["", "Zg==", "Zm8=", "Zm9v"]);
        assert_eq!([of("foob"), of("fooba"), of("foobar")], ["Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }
}
