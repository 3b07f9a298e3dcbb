//! Options of a refusal as the command lines of IOR and mdtest write them.

use trueio_job::Language;
use trueio_job::option::OptionRow;

/// The language of a program: our options, and its own that they come from.
#[derive(Debug)]
pub struct Written(&'static [(&'static str, &'static str)]);

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
    ("name_branch", "-b"),
    ("name_bytes", "-w"),
    ("name_depth", "-z"),
    ("name_directory", "-d"),
    ("name_leaves", "-L"),
    ("name_private", "-u"),
    ("nrfiles", "-n"),
    ("randseed", "--random-seed"),
    ("rank_shift", "-N"),
    ("rw", "-R"),
    ("size", "-w"),
    ("unlink", "-r"),
]);

/// Options of the other programs that have no value.
const FLAGS: [&str; 10] = ["--posix.odirect", "-C", "-E", "-L", "-R", "-Y", "-e", "-k", "-r", "-u"];

impl Written {
    /// Returns the other program's option that sets one of ours; `None`: none does.
    pub(crate) fn word(&self, option: &str) -> Option<&'static str> {
        self.0.iter().find(|(ours, _)| *ours == option).map(|(_, word)| *word)
    }
}

impl Language for Written {
    fn write(&self, _job: Option<&str>, row: &'static OptionRow, value: Option<&str>) -> Option<String> {
        Some(match (self.word(row.name), value) {
            (Some(word), Some("false" | "off" | "prefer")) if FLAGS.contains(&word) => format!("no `{word}`"),
            (Some(word), Some(value)) if !FLAGS.contains(&word) => format!("`{word} {value}`"),
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
        let write = |language: &Written, name: &str, value: Option<&str>| {
            language.write(None, row(name).expect("an option"), value).expect("words")
        };
        assert_eq!(write(&IOR, "size", Some("1g")), "`-b 1g`");
        assert_eq!(write(&IOR, "overwrite_existing", Some("/mnt/f")), "`-E`");
        assert_eq!(write(&IOR, "direct", Some("off")), "no `--posix.odirect`");
        assert_eq!(write(&MDTEST, "name_depth", None), "`-z`");
        assert_eq!(write(&MDTEST, "bs", None), "`bs` in a job (`--explain` prints it)");
    }
}
