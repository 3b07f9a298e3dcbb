//! Options of a refusal as the command lines of IOR and mdtest write them.

use crate::mdtest;
use trueio_job::Language;
use trueio_job::option::OptionRow;
use trueio_model::units::parse_bytes;

/// The language of a program: our options, and its own that they come from.
#[derive(Debug)]
pub struct Written(&'static [(&'static str, &'static str)]);

/// A command line in the language of its program.
#[derive(Debug)]
pub struct Typed<'a> {
    language: &'static Written,
    words: &'a [String],
}

/// IOR's language.
pub static IOR: Written = Written(&[
    ("bs", "-t"),
    ("complete_ios_of", "-O stoneWallingWearOut"),
    ("direct", "--posix.odirect"),
    ("directory", "-o"),
    ("end_fsync", "-e"),
    ("filename", "-o"),
    ("fsync", "-Y"),
    ("overwrite_existing", "-E"),
    ("create_directories", "-u"),
    ("norandommap", "-z -z"),
    ("number_ios", "-O stoneWallingWearOutIterations"),
    ("rank_shift_seed", "-X"),
    ("ranks", "-N"),
    ("startdelay", "-d"),
    ("verify", "-G"),
    ("randseed", "--random-offset-seed"),
    ("rank_shift", "-Q"),
    ("rank_shift_by", "-C"),
    ("repeat_ios_of", "-r"),
    ("runtime", "-D"),
    ("shared_segments", "-s"),
    ("size", "-b"),
    ("unlink", "-k"),
]);

/// mdtest's language.
pub static MDTEST: Written = Written(&[
    ("directory", "-d"),
    ("complete_ios_of", "-W"),
    ("end_fsync", "-Y"),
    ("name_branch", "-b"),
    ("name_bytes", "-w"),
    ("name_depth", "-z"),
    ("name_directory", "-d"),
    ("name_fsync", "-y"),
    ("name_leaves", "-L"),
    ("name_private", "-u"),
    ("name_verify", "-X"),
    ("nrfiles", "-n"),
    ("number_ios", "-x"),
    ("overwrite_existing", "-r"),
    ("repeat_ios_of", "-W"),
    ("runtime", "-W"),
    ("startdelay", "-p"),
    ("randseed", "--random-seed"),
    ("rank_shift", "-N"),
    ("rw", "-R"),
    ("size", "-w"),
    ("unlink", "-r"),
]);

/// Options of the other programs that have no value.
const FLAGS: [&str; 12] = ["--posix.odirect", "-C", "-E", "-L", "-R", "-X", "-Y", "-e", "-k", "-r", "-u", "-y"];

impl Written {
    /// Returns the other program's option that sets one of ours; `None`: none does.
    pub(crate) fn word(&self, option: &str) -> Option<&'static str> {
        self.0.iter().find(|(ours, _)| *ours == option).map(|(_, word)| *word)
    }

    /// Returns the language of a command line, whose values are written as they were typed.
    pub fn of<'a>(&'static self, words: &'a [String]) -> Typed<'a> {
        Typed { language: self, words }
    }
}

impl Typed<'_> {
    /// Returns the value of an option, if it means the same as `value`.
    fn value(&self, option: &str, value: &str) -> Option<&str> {
        let mut words = self.words.iter();
        let mut last = None;
        while let Some(word) = words.next() {
            match word.strip_prefix(option) {
                Some("") => last = words.next().map(String::as_str),
                Some(joined) => last = Some(joined.trim_start_matches('=')),
                None => {}
            }
        }
        let bytes = |text: &str| parse_bytes(text.trim_end_matches(['b', 'B'])).ok();
        last.filter(|typed| bytes(typed).is_some() && bytes(typed) == bytes(value))
    }
}

impl Language for Typed<'_> {
    fn write(&self, job: Option<&str>, row: &'static OptionRow, value: Option<&str>) -> Option<String> {
        let reads = job.is_some_and(|job| job.starts_with(mdtest::FILE_READ));
        let word = match (self.language.word(row.name), row.name) {
            (Some(_), "name_bytes") if reads => Some("-e"),
            (word, _) => word,
        };
        Some(match (word, value) {
            (Some(word), Some("false" | "off" | "prefer")) if FLAGS.contains(&word) => format!("no `{word}`"),
            (Some(word), Some(value)) if !FLAGS.contains(&word) || reads => {
                format!("`{word} {}`", self.value(word, value).unwrap_or(value))
            }
            (Some(word), _) => format!("`{word}`"),
            (None, Some(value)) => format!("`{} = \"{value}\"` in a job (`--explain` prints it)", row.name),
            (None, None) => format!("`{}` in a job (`--explain` prints it)", row.name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_job::table::row;

    #[test]
    fn each_option_is_a_row_and_is_written_as_the_program_has_it() {
        for (ours, _) in IOR.0.iter().chain(MDTEST.0) {
            assert!(row(ours).is_some_and(|row| row.name == *ours), "{ours}");
        }
        let words = ["-b", "1024m", "-z=3", "-w", "4k", "-e4096"].map(str::to_owned);
        let write_of = |language: &'static Written, job, name: &str, value: Option<&str>| {
            language.of(&words).write(job, row(name).expect("an option"), value).expect("words")
        };
        let write = |language, name: &str, value| write_of(language, None, name, value);
        assert_eq!(write(&IOR, "size", Some("1g")), "`-b 1024m`", "as it was typed");
        assert_eq!(write(&IOR, "size", Some("2g")), "`-b 2g`", "an example");
        assert_eq!(write(&IOR, "overwrite_existing", Some("/mnt/f")), "`-E`");
        assert_eq!(write(&IOR, "direct", Some("off")), "no `--posix.odirect`");
        assert_eq!(write(&MDTEST, "name_depth", None), "`-z`");
        assert_eq!(write_of(&MDTEST, Some("file-create"), "name_bytes", Some("4k")), "`-w 4k`");
        assert_eq!(write_of(&MDTEST, Some("file-read-2"), "name_bytes", Some("4k")), "`-e 4096`");
        assert_eq!(write(&MDTEST, "bs", None), "`bs` in a job (`--explain` prints it)");
    }
}
