//! Files in patterns: `buffer_pattern='FILE'`, `verify_pattern=0xff'FILE'`.
//!
//! The bytes replace the name before planning, so that plan and record contain the written content; the record also has the
//! text as typed. A relative name is relative to the working directory, as in fio. As in fio, a file that is too long is
//! truncated, here with a note; fio 3.33 uses 512 bytes.

use super::Word;
use super::lowering::Lowering;
use super::problem::Problems;
use super::refusals::Refused;
use trueio_job::value::pattern_with_files;

/// Returns the word with the bytes of files instead of their names; `None`: a problem was added.
pub(super) fn with_files(word: &Word, section: &str, lowering: &mut Lowering, problems: &mut Problems) -> Option<Word> {
    let (name, text) = (word.option.name(), word.text());
    let mut notes = Vec::new();
    let read = pattern_with_files(text, &mut |file, room| {
        let failed = |reason| format!("the file `{file}` cannot be read: {reason}");
        let (bytes, length) = lowering.around.read_bytes(file, room).map_err(failed)?;
        if bytes.len() as u64 != length {
            notes.push(format!("`{name}`: of the {length} bytes of `{file}` the first {} are used", bytes.len()));
        }
        Ok(bytes)
    });
    match read {
        Ok(pattern) => {
            notes.into_iter().for_each(|note| lowering.note(section, note));
            Some(word.with_value(pattern))
        }
        Err(reason) => {
            problems.add(
                Refused::PatternFile,
                word.value_position(&(0..text.len())),
                format!("`{name}`: {reason}"),
                None,
            );
            None
        }
    }
}
