//! Mounts the reference model, a file system in memory: what FUSE itself can do, without any file system's faults.
//!
//! `cargo run --example mount_model -- DIRECTORY`; Ctrl-C unmounts.

use std::path::PathBuf;
use std::process::ExitCode;

use dovetail_front::{Options, mount};
use dovetail_vfs::{Caller, Limits, Model};

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return ExitCode::from(2);
    };
    let model = Model::new(Limits::F2FS, &Caller::default());
    let ended = mount(Box::new(model), &directory, Options::new("model", "model")).map(|session| session.wait());
    match ended {
        Ok(Ok(_)) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
