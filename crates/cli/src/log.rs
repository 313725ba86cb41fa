//! The log on standard error, which `-v` and `RUST_LOG` turn on.

use std::env::{self, VarError};
use std::io;

use clap::Args;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{fmt, registry};

use crate::Failure;

/// The variable that says what to log, as `level` or `target=level`, separated by commas.
const VARIABLE: &str = "RUST_LOG";

/// Amount of logging.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Verbosity {
    /// Tell on standard error what goes on; -vv and -vvv tell more. RUST_LOG does so by part.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

impl Verbosity {
    /// Begins to log what is asked for. Without that nothing is ever written.
    pub(crate) fn begin(self) -> Result<(), Failure> {
        let Some(targets) = self.targets(env::var(VARIABLE))? else { return Ok(()) };
        // whoever read the log may have gone away, which must not end a mount
        let layer =
            fmt::layer().with_writer(io::stderr).with_ansi(false).log_internal_errors(false);
        let subscriber = registry().with(targets).with(layer);
        tracing::subscriber::set_global_default(subscriber).map_err(Failure::failed)
    }

    /// The events to log: those that the variable names, and for the rest those of `-v`.
    fn targets(self, variable: Result<String, VarError>) -> Result<Option<Targets>, Failure> {
        let text = match variable {
            Ok(text) => text,
            Err(VarError::NotPresent) => String::new(),
            Err(VarError::NotUnicode(_)) => return Err(bad_variable(&"it is not UTF-8")),
        };
        let text = text.trim();
        if text.is_empty() {
            return Ok(self.level().map(|level| Targets::new().with_default(level)));
        }
        let named: Targets = text.parse().map_err(|error| bad_variable(&error))?;
        let rest = named.default_level().unwrap_or(LevelFilter::OFF);
        Ok(Some(named.with_default(self.level().unwrap_or(LevelFilter::OFF).max(rest))))
    }

    fn level(self) -> Option<LevelFilter> {
        match self.verbose {
            0 => None,
            1 => Some(LevelFilter::INFO),
            2 => Some(LevelFilter::DEBUG),
            _ => Some(LevelFilter::TRACE),
        }
    }
}

fn bad_variable(reason: &dyn std::fmt::Display) -> Failure {
    Failure::Usage(format!(
        "{VARIABLE}: {reason}; give levels and target=level, separated by commas"
    ))
}

/// Something is logged.
pub(crate) fn is_on() -> bool {
    LevelFilter::current() != LevelFilter::OFF
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    fn targets(verbose: u8, variable: &str) -> Targets {
        Verbosity { verbose }.targets(Ok(variable.to_string())).unwrap().unwrap()
    }

    #[test]
    fn the_louder_of_flag_and_variable_holds() {
        assert!(Verbosity { verbose: 0 }.targets(Err(VarError::NotPresent)).unwrap().is_none());
        assert!(Verbosity { verbose: 0 }.targets(Ok(String::new())).unwrap().is_none());
        let enabled =
            |verbose, variable, level| targets(verbose, variable).would_enable("any", &level);
        assert!(enabled(1, "", Level::INFO) && !enabled(1, "", Level::DEBUG));
        assert!(enabled(2, "", Level::DEBUG) && !enabled(2, "", Level::TRACE));
        assert!(enabled(9, "", Level::TRACE) && enabled(0, "trace", Level::TRACE));
        assert!(enabled(2, "info", Level::DEBUG) && enabled(1, "debug", Level::DEBUG));
        let one = targets(0, "dovetail_front=debug");
        assert!(one.would_enable("dovetail_front::session", &Level::DEBUG));
        assert!(!one.would_enable("dovetail_lab", &Level::ERROR));
    }

    #[test]
    fn a_level_that_there_is_not_is_refused() {
        for text in ["dovetail_front=loud", "info,dovetail_lab=9x", "a=b=c"] {
            let refused = Verbosity { verbose: 1 }.targets(Ok(text.to_string()));
            assert!(matches!(refused, Err(Failure::Usage(_))), "{text}: {refused:?}");
        }
    }
}
