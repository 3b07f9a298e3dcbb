//! Errors of commands: text and exit code.

use std::error::Error;
use std::process::ExitCode;
use trueio_model::error_chain;
use trueio_report::message;
use trueio_run::planning::PlanningError;

/// A command that ended without a result: its text and exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    text: String,
}

impl Failure {
    /// The request was refused or malformed: nothing was touched. `text` is complete.
    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self { code: 2, text: text.into() }
    }

    /// An operation failed.
    pub(crate) fn failed(what: impl Into<String>, error: &(dyn Error + 'static)) -> Self {
        Self { code: 1, text: error_chain(&what.into(), Some(error)) }
    }

    /// Builds [`Failure::refused`] from an error and its causes.
    pub(crate) fn refused_by(error: &dyn Error, hint: Option<&str>) -> Self {
        let mut text = error_chain(&error.to_string(), error.source());
        if let Some(hint) = hint {
            text.push_str(&format!("\n\nhint: {hint}"));
        }
        Self { code: 2, text }
    }

    /// An error with an exit code of its own. `text` is complete.
    pub(crate) fn with_code(code: u8, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// Returns the text, for another output.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Prints the text to stderr and returns the exit code.
    pub(crate) fn show(&self) -> ExitCode {
        // Names in it may come from a job file, a record or a device.
        let text = trueio_report::clean_lines(self.text.trim_end());
        if text.starts_with("error") {
            message!("{text}")
        } else {
            message!("error: {text}")
        }
        ExitCode::from(self.code)
    }
}

impl From<PlanningError> for Failure {
    fn from(error: PlanningError) -> Self {
        Self::refused(error.into_text())
    }
}
