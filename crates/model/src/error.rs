//! An error and its causes as text.
//!
//! An error's `Display` describes its own layer; the cause is its `source`. These functions print the chain.

use std::error::Error;

/// How many characters of what `serde_json` says are printed.
const JSON_CHARACTERS_MAX: usize = 400;

/// Returns the causes of an error, nearest first, without the error itself.
pub fn causes<'e>(error: &'e dyn Error) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause: &&(dyn Error + 'static)| (*cause).source())
}

/// Returns what one cause says. An error of `serde_json` repeats a value of its document as it stands there, however long: it is cut, and
/// what would begin a line, or stand for a colour, is a replacement character.
fn text_of(cause: &(dyn Error + 'static)) -> String {
    let text = cause.to_string();
    if !cause.is::<serde_json::Error>() {
        return text;
    }
    let mut characters = text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c });
    let begin: String = characters.by_ref().take(JSON_CHARACTERS_MAX).collect();
    if characters.next().is_none() { begin } else { begin + " …" }
}

/// Formats an error and its causes in one line: `cannot open the file: Permission denied (os error 13)`.
pub fn error_line(error: &(dyn Error + 'static)) -> String {
    let mut text = text_of(error);
    for cause in causes(error) {
        text.push_str(": ");
        text.push_str(&text_of(cause));
    }
    text
}

/// Formats a sentence and its cause, with the causes of that, a line each.
pub fn error_chain(what: &str, cause: Option<&(dyn Error + 'static)>) -> String {
    let mut text = what.to_owned();
    let Some(cause) = cause else { return text };
    for cause in std::iter::once(cause).chain(causes(cause)) {
        text.push_str(&format!("\n  because: {}", text_of(cause)));
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

    #[test]
    fn a_value_of_a_document_begins_no_line_and_is_cut() {
        let cause = |value: &str| serde_json::from_value::<crate::OpKind>(value.into()).unwrap_err();
        let text = error_chain("no", Some(&cause("a\nerror: b\u{1b}[31m")));
        assert!(text.starts_with("no\n  because: unknown variant `a\u{fffd}error: b\u{fffd}[31m`, expected"), "{text}");
        assert_eq!(error_line(&cause(&"x".repeat(1 << 20))).chars().count(), JSON_CHARACTERS_MAX + 2);
    }
}
