//! The word of a load with its symbol and its class of the style sheet, for pages and Markdown.

use crate::verdicts::Mark;
use serde::Serialize;

/// A word with its symbol: meaning never rests on colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Badge {
    pub(crate) symbol: &'static str,
    pub(crate) word: &'static str,
    /// The class of `page.css`.
    pub(crate) class: &'static str,
}

impl Badge {
    pub(crate) fn of(mark: Mark) -> Self {
        let (symbol, class) = match mark {
            Mark::Confirmed => ("●", "ok"),
            Mark::Unverified => ("○", "none"),
            Mark::Unsteady => ("◐", "warn"),
            Mark::Disturbed => ("◐", "warn"),
            Mark::NotTheDisk => ("◇", "bad"),
            Mark::Withheld => ("✕", "bad"),
            Mark::Failed => ("✕", "bad"),
        };
        Badge { symbol, word: mark.word(), class }
    }
}
