//! Writes the page around a program: `page PROGRAM.wasm PAGE.html`. `cargo xtask playground` calls it.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, page] = &arguments[..] else {
        return Err("usage: page PROGRAM.wasm PAGE.html".into());
    };
    let html = dovetail_playground::page::html(&std::fs::read(program)?)?;
    Ok(std::fs::write(page, html)?)
}
