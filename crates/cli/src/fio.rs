//! `trueio fio`, and the program called under the name `fio`: hands the arguments to `trueio_fio`.

use crate::failure::Failure;
use crate::progress::Line;
use crate::{flags, output, ranks};
use std::path::Path;
use trueio_fio::command::{Program, ProgressLine};

/// What the command is for.
pub(crate) const ABOUT: &str = "fio's own command line and job files";

/// What the command takes from this program.
pub(crate) const PROGRAM: Program = Program {
    command_line: flags::as_typed,
    print: |text| output::print_all(text).map_err(Failure::into_text),
    history: output::history,
    join: || ranks::join().map_err(|failure| failure.show()),
    refuse_several: || ranks::refuse_several("fio --client or --server").map_err(|failure| failure.show()),
    progress_line: |has_idle| Box::new(Line::new().without_idle(!has_idle)),
};

/// fio's arguments, if the program was called for them: `trueio fio …`, or under the name `fio`.
pub(crate) fn arguments() -> Option<Vec<String>> {
    let mut words = std::env::args_os();
    let called = words.next().unwrap_or_default();
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    if Path::new(&called).file_name().is_some_and(|name| name == "fio") {
        return Some(words);
    }
    match words.split_first() {
        Some((command, rest)) if command == "fio" => Some(rest.to_vec()),
        _ => None,
    }
}

impl ProgressLine for Line {
    fn show(&self, text: &str) {
        self.show(text);
    }

    fn clear(&self) {
        self.clear();
    }
}
