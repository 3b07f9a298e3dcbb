//! Errors of commands: text and exit code.

use std::error::Error;
use std::process::ExitCode;
use trueio_model::causes;

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

    /// Something that should have worked did not.
    pub(crate) fn failed(what: impl Into<String>, error: &dyn Error) -> Self {
        Self { code: 1, text: chain(&what.into(), Some(error)) }
    }

    /// As [`Failure::refused`], from an error and its causes.
    pub(crate) fn refused_by(error: &dyn Error, hint: Option<&str>) -> Self {
        let mut text = chain(&error.to_string(), error.source());
        if let Some(hint) = hint {
            text.push_str(&format!("\n\nhint: {hint}"));
        }
        Self { code: 2, text }
    }

    /// The text, to be printed elsewhere.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Prints it to stderr; the exit code.
    pub(crate) fn show(&self) -> ExitCode {
        let text = self.text.trim_end();
        if text.starts_with("error") {
            eprintln!("{text}")
        } else {
            eprintln!("error: {text}")
        }
        ExitCode::from(self.code)
    }
}

/// Formats a sentence and its cause, with the causes of that, a line each.
pub(crate) fn chain(what: &str, cause: Option<&dyn Error>) -> String {
    let mut text = what.to_owned();
    let Some(cause) = cause else { return text };
    text.push_str(&format!("\n  because: {cause}"));
    for deeper in causes(cause) {
        text.push_str(&format!("\n  because: {deeper}"));
    }
    text
}
