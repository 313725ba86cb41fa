//! The `dovetail` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    dovetail_cli::main()
}
