//! Mounts the reference model, so that tests of POSIX behaviour can be run on the adapter alone:
//! `cargo run -p dovetail-front --example mount_model -- DIRECTORY`. Ends with the mount; keeps
//! nothing.

#![allow(clippy::print_stderr, reason = "a command line tool")]

use std::path::Path;
use std::process::ExitCode;

use dovetail_front::{Options, mount};
use dovetail_testkit::Model;
use dovetail_vfs::{Caller, Limits};

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1) else {
        eprintln!("usage: mount_model DIRECTORY");
        return ExitCode::from(2);
    };
    let model = Model::new(Limits::default(), &Caller::default());
    let options =
        Options::new("model", "model").on_error(|error| eprintln!("mount_model: {error}"));
    let ended =
        mount(Box::new(model), Path::new(&directory), options).map_err(|error| error.to_string());
    match ended.and_then(|session| session.wait().map_err(|error| error.to_string())) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mount_model: {error}");
            ExitCode::FAILURE
        }
    }
}
