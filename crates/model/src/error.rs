//! An error and its causes as text.
//!
//! An error's `Display` describes its own layer; the cause is its `source`. These functions print the chain.

use std::error::Error;

/// Returns the causes of an error, nearest first, without the error itself.
pub fn causes<'e>(error: &'e dyn Error) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause: &&(dyn Error + 'static)| (*cause).source())
}

/// Formats an error and its causes in one line: `cannot open the file: Permission denied (os error 13)`.
pub fn error_line(error: &dyn Error) -> String {
    let mut text = error.to_string();
    for cause in causes(error) {
        text.push_str(": ");
        text.push_str(&cause.to_string());
    }
    text
}

/// Formats a sentence and its cause, with the causes of that, a line each.
pub fn error_chain(what: &str, cause: Option<&dyn Error>) -> String {
    let mut text = what.to_owned();
    let Some(cause) = cause else { return text };
    text.push_str(&format!("\n  because: {cause}"));
    for deeper in causes(cause) {
        text.push_str(&format!("\n  because: {deeper}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[test]
    fn a_line_holds_the_error_and_each_cause_in_order() {
        let error = Layer("a", Some(Box::new(Layer("b", Some(Box::new(Layer("c", None)))))));
        assert_eq!(error_line(&error), "a: b: c");
        assert_eq!(causes(&error).count(), 2);
        assert_eq!(error_line(&Layer("alone", None)), "alone");
    }
}
