//! Options whose value is one of some words; each is read as an enum.
//!
//! `words_of!` declares the words of a type once: the value, its spelling, its synonyms and its meaning. The row, the parser,
//! the help and the schema have them from there.
//!
//! ```text
//! words_of! {
//!     /// The jobs that `exitall` ends.
//!     pub enum ExitWhat {
//!         Stonewall => "stonewall", ["group"], "the parallel jobs";
//!         All => "all", [], "these, and the run: later jobs do not start";
//!     }
//! }
//!
//! pub const EXIT_WHAT: Opt<ExitWhat> = word("exit_what").default("stonewall")…
//! ```
//!
//! `words_of! { impl SyncMode { SyncMode::None => …` declares the words of a type that exists, such as one of the plan.

use super::{Draft, OptionRow, Read, mismatch};
use crate::value::{Choice, Value, ValueKind};

/// A type whose values are the words of an option.
pub trait Words: Copy + PartialEq + 'static {
    /// The words, in the order of the documentation.
    const CHOICES: &'static [Choice];
    /// The value of each word, in the same order.
    const VALUES: &'static [Self];

    /// Returns the word of the value.
    ///
    /// # Panics
    /// If the value is not in [`Words::VALUES`].
    fn word(self) -> &'static str {
        let index = Self::VALUES.iter().position(|value| *value == self).expect("the value has a word");
        Self::CHOICES[index].name
    }

    /// Returns the value of a word or of one of its synonyms.
    fn parse(text: &str) -> Option<Self> {
        let index = Self::CHOICES.iter().position(|choice| choice.name == text || choice.aliases.contains(&text))?;
        Some(Self::VALUES[index])
    }
}

/// Declares the words of a type, and the type itself if it is an enum of its own.
macro_rules! words_of {
    ($(#[$docs:meta])* pub enum $name:ident {
        $($variant:ident => $word:literal, [$($alias:literal),*], $meaning:literal;)*
    }) => {
        $(#[$docs])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $(
                #[doc = concat!("`", $word, "`: ", $meaning, ".")]
                $variant,
            )*
        }

        $crate::option::words_of! { impl $name { $($name::$variant => $word, [$($alias),*], $meaning;)* } }
    };
    (impl $name:ty { $($value:expr => $word:expr, [$($alias:literal),*], $meaning:literal;)* }) => {
        impl $crate::option::Words for $name {
            const CHOICES: &'static [$crate::value::Choice] =
                &[$($crate::value::Choice { name: $word, aliases: &[$($alias),*], sentence: $meaning }),*];
            const VALUES: &'static [Self] = &[$($value),*];
        }
    };
}
pub(crate) use words_of;

/// One of the words of a type.
pub(crate) const fn word<T: Words>(name: &'static str) -> Draft<T> {
    Draft::new(name, ValueKind::Choice(T::CHOICES), "word")
}

impl<T: Words> Read for T {
    type Out<'a> = T;

    fn read(row: &OptionRow, value: Option<&Value>) -> T {
        match value {
            Some(Value::Choice(index)) => T::VALUES[*index],
            other => mismatch(row, other),
        }
    }
}

impl<T: Words> Read for Option<T> {
    type Out<'a> = Option<T>;

    fn read(row: &OptionRow, value: Option<&Value>) -> Option<T> {
        value.map(|value| T::read(row, Some(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{content, durability, engine, limits, pattern, process, target};
    use std::fmt::Debug;
    use trueio_model::{
        Arrivals, DirectPolicy, EngineKind, Locking, LogWindow, Memory, StatCall, SyncMode, Unified, WriteHint,
    };

    /// A value that two words had would be written as the first of them only.
    fn check<T: Words + Debug>() {
        assert_eq!(T::CHOICES.len(), T::VALUES.len());
        for (choice, value) in T::CHOICES.iter().zip(T::VALUES) {
            assert_eq!(value.word(), choice.name, "{value:?}");
        }
    }

    #[test]
    fn each_word_has_a_value_of_its_own() {
        check::<Arrivals>();
        check::<DirectPolicy>();
        check::<EngineKind>();
        check::<Locking>();
        check::<LogWindow>();
        check::<Memory>();
        check::<StatCall>();
        check::<SyncMode>();
        check::<Unified>();
        check::<WriteHint>();
        check::<content::rows::VerifyMethod>();
        check::<content::rows::VerifyPolicy>();
        check::<durability::rows::AccessHint>();
        check::<durability::rows::Invalidate>();
        check::<engine::rows::CpuMode>();
        check::<limits::rows::ExitWhat>();
        check::<pattern::rows::Operations>();
        check::<pattern::rows::Sequencer>();
        check::<pattern::rows::ZoneMode>();
        check::<process::rows::ContinueOnError>();
        check::<process::rows::CpusPolicy>();
        check::<target::rows::Fallocate>();
        check::<target::rows::NameAccounting>();
    }
}
