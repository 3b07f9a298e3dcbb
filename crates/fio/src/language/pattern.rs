//! Files in patterns: `buffer_pattern='FILE'`, `verify_pattern=0xff'FILE'`.
//!
//! The bytes take the place of the name before anything is planned, so that plan and record hold what is written; what
//! was typed stands in the record, too. A relative name is looked for in the working directory, as in fio. As fio does,
//! as much of a file is taken as there is room for; fio 3.33 has room for 512 bytes, and says nothing.

use super::Word;
use super::lower::Run;
use super::problem::Problems;
use trueio_job::value::pattern_with_files;

/// The word with bytes in place of files; `None`: a problem was added.
pub(super) fn with_files(word: &Word, section: &str, run: &mut Run, problems: &mut Problems) -> Option<Word> {
    let (name, text) = (word.asked.name(), word.text());
    let mut notes = Vec::new();
    let read = pattern_with_files(text, &mut |file, room| {
        let failed = |reason| format!("the file `{file}` cannot be read: {reason}");
        let (bytes, length) = run.around.read_bytes(file, room).map_err(failed)?;
        if bytes.len() as u64 != length {
            notes.push(format!("`{name}`: of the {length} bytes of `{file}` the first {} are used", bytes.len()));
        }
        Ok(bytes)
    });
    match read {
        Ok(pattern) => {
            notes.into_iter().for_each(|note| run.note(section, note));
            Some(Word { value: Some(pattern), ..word.clone() })
        }
        Err(reason) => {
            problems.add(word.value_place(&(0..text.len())), format!("`{name}`: {reason}"), None);
            None
        }
    }
}
