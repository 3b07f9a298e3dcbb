//! Reads a study from its two files and checks it.
//!
//! Nothing is run or opened here. Any text results in a [`Study`] or in an error with the position of the fault. Job
//! options are checked against the option table, so a study can set nothing that a job file could not.

use crate::check::check;
use crate::definition::{Axis, Definition, Mode};
use crate::published::{Published, read_published};
use std::collections::BTreeMap;

/// The longest definition, and the longest table of figures, in bytes.
pub const TEXT_BYTES_MAX: usize = 4 << 20;

/// Error of reading a study.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{place}` is not a study that can be run: {message}")]
pub struct DefinitionError {
    /// The file, with its line where that is known.
    pub place: String,
    /// The fault, and what is expected.
    pub message: String,
}

/// A study, complete and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Its name: that of its folder.
    pub name: String,
    /// The content of `study.toml`.
    pub definition: Definition,
    /// The published figures.
    pub published: Published,
    /// A hash of both files, which identifies the study.
    pub fingerprint: String,
}

impl Study {
    /// Reads a study. `place` names the files in errors.
    ///
    /// # Errors
    /// The fault, and its position.
    pub fn read(name: &str, place: &str, definition: &str, published_text: &str) -> Result<Self, DefinitionError> {
        let file = |file: &str| format!("{place}/{file}");
        for (what, text) in [("study.toml", definition), ("published.csv", published_text)] {
            if text.len() > TEXT_BYTES_MAX {
                let message = format!("the file is longer than {TEXT_BYTES_MAX} bytes");
                return Err(DefinitionError { place: file(what), message });
            }
        }
        let read: Definition = toml_edit::de::from_str(definition).map_err(|error| {
            let line = error.span().map(|span| 1 + definition.get(..span.start).map_or(0, |t| t.matches('\n').count()));
            let place = line.map_or_else(|| file("study.toml"), |line| format!("{}:{line}", file("study.toml")));
            DefinitionError { place, message: error.message().to_owned() }
        })?;
        let wrong = |message: String| DefinitionError { place: file("study.toml"), message };
        check(&read).map_err(wrong)?;
        let published = read_published(&read, published_text)
            .map_err(|message| DefinitionError { place: file("published.csv"), message })?;
        let hash = [definition, published_text]
            .iter()
            .flat_map(|text| text.bytes())
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        Ok(Self { name: name.to_owned(), definition: read, published, fingerprint: format!("{hash:016x}") })
    }

    /// Returns the axes of a mode: its own, or the study's.
    pub fn axes<'a>(&'a self, mode: &'a Mode) -> &'a [Axis] {
        if mode.axis.is_empty() { &self.definition.axis } else { &mode.axis }
    }

    /// Returns the default number of samples per row of a mode.
    pub fn samples(&self, mode: &Mode, is_quick: bool) -> u32 {
        let most = self.definition.quick.samples.filter(|_| is_quick);
        most.map_or(mode.samples, |most| mode.samples.min(most))
    }

    /// Returns whether an option uses the study's own server: `${server}`.
    pub(crate) fn uses_server(&self) -> bool {
        let definition = &self.definition;
        let modes = definition.mode.values();
        let axes = definition.axis.iter().chain(modes.clone().flat_map(|mode| &mode.axis));
        let rules =
            definition.rule.iter().chain(modes.clone().flat_map(|mode| &mode.rule)).chain(&definition.quick.rule);
        let sets = [&definition.set, &definition.quick.set].into_iter().chain(modes.map(|mode| &mode.set));
        let sets =
            sets.chain(axes.flat_map(|axis| &axis.value).map(|value| &value.set)).chain(rules.map(|rule| &rule.set));
        sets.flat_map(BTreeMap::values).any(|text| text.to_string().contains("${server}"))
    }

    /// Returns the modes that are run by default, in their order.
    pub fn usual_modes(&self) -> Vec<&str> {
        let mut placed: Vec<(u32, &str)> =
            self.definition.mode.iter().filter_map(|(name, mode)| Some((mode.place?, name.as_str()))).collect();
        placed.sort_unstable();
        placed.into_iter().map(|(_, name)| name).collect()
    }
}
