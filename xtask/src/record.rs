//! `cargo xtask record TRACE FOLDER -- COMMAND...`: the calls of a program on the files below a
//! folder, as a file-level trace (docs/workloads.md, which says what is not noted). A small library
//! is loaded into the program, which costs a call about a microsecond; it needs a C compiler.

mod log;
pub(crate) mod tpcc;

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{install, run};
use log::Log;

const INTERPOSER: &str = include_str!("record/interposer.c");

/// A library that notes calls, and its log.
pub(crate) struct Recorder {
    library: PathBuf,
    folder: PathBuf,
    log: PathBuf,
}

impl Recorder {
    /// Compiles the library; `folder` has the files that count.
    pub(crate) fn new(folder: &Path) -> Result<Self, String> {
        install(&[("gcc", "cc")])?;
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/record");
        let failed = |error: std::io::Error| format!("{}: {error}", place.display());
        fs::create_dir_all(&place).map_err(failed)?;
        let place = place.canonicalize().map_err(failed)?;
        let (source, library) = (place.join("interposer.c"), place.join("interposer.so"));
        fs::write(&source, INTERPOSER).map_err(failed)?;
        let options = ["-O2", "-shared", "-fPIC", "-Wall", "-o"];
        run(Command::new("cc").args(options).arg(&library).arg(&source).arg("-ldl"))?;
        let log = place.join(format!("{}.log", std::process::id()));
        if log.exists() {
            fs::remove_file(&log).map_err(failed)?;
        }
        let folder = folder.canonicalize().map_err(|error| format!("{folder:?}: {error}"))?;
        Ok(Self { library, folder, log })
    }

    /// The command, recorded.
    pub(crate) fn record<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("LD_PRELOAD", &self.library)
            .env("DOVETAIL_RECORD_FOLDER", &self.folder)
            .env("DOVETAIL_RECORD_LOG", &self.log)
    }

    /// Writes what was recorded as a trace, times rounded down to `clock_us`, and removes the log.
    pub(crate) fn write(self, trace: &Path, clock_us: u64) -> Result<(), String> {
        let log = Log::read(&self.log)?;
        if log.calls() == 0 {
            fs::remove_file(&self.log).map_err(|error| error.to_string())?;
            return Err(
                "no call was noted: does the program go through stdio, or is it linked statically?"
                    .into(),
            );
        }
        let failed = |error: std::io::Error| format!("{}: {error}", trace.display());
        let mut file = BufWriter::new(fs::File::create(trace).map_err(failed)?);
        log.write(&mut file, clock_us).and_then(|()| file.flush()).map_err(failed)?;
        println!("{}: {} calls; compress it with zstd -19", trace.display(), log.calls());
        fs::remove_file(&self.log).map_err(|error| error.to_string())
    }
}

pub(crate) fn record(arguments: &[String]) -> Result<(), String> {
    let [trace, folder, dashes, program, rest @ ..] = arguments else {
        return Err("give TRACE FOLDER -- COMMAND...".into());
    };
    if dashes != "--" {
        return Err("give -- before the command".into());
    }
    let recorder = Recorder::new(Path::new(folder))?;
    // what was recorded is kept, also of a program that fails or is stopped
    let ended = run(recorder.record(Command::new(program).args(rest)));
    recorder.write(Path::new(trace), 1)?;
    ended
}
