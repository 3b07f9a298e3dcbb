//! Words of a command line that mean different things by what follows them.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The flag of fio's switch `overwrite`.
pub(super) const FILL_FIRST: &str = "fill-first";

/// Endings of job files: `--json JOB.toml` writes to standard output and reads the job.
const JOB_FILES: [&str; 4] = ["toml", "fio", "job", "ini"];

/// Endings of other files that a command reads.
const DOCUMENTS: [&str; 2] = ["html", "parquet"];

/// Commands whose `--json` had no FILE in earlier versions: there only a name that ends with .json is one.
const WERE_SWITCHES: [&str; 6] = ["explain", "device", "doctor", "selftest", "history", "usb"];

/// Writes out `--json` without FILE and `--overwrite` without a path, up to `--`.
pub(super) fn written_out(words: Vec<OsString>) -> Vec<OsString> {
    let has = |names: &[&str]| words.iter().skip(1).take(4).any(|word| names.iter().any(|name| word == name));
    let (is_switch, has_table) = (has(&WERE_SWITCHES), has(&["run", "explain", "compare"]));
    let mut out = Vec::with_capacity(words.len() + 1);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        out.push(word.clone());
        let next = rest.as_slice().first();
        match word.to_str() {
            Some("--") => break,
            Some("--json") => {
                // Named twice, it is what would be replaced, which is refused later.
                let is_named_twice = words.iter().filter(|word| next == Some(*word)).count() > 1;
                let is_replaced = is_named_twice && !is_switch;
                if next.is_some_and(|next| !is_replaced && !is_json_file(next, is_switch)) {
                    out.push("-".into());
                }
            }
            Some("--overwrite") if has_table && next.is_none_or(|next| is_no_path(next)) => {
                out.pop();
                out.push(format!("--{FILL_FIRST}").into());
            }
            Some(flag) if has_table && flag.strip_prefix("--overwrite=").is_some_and(is_bool) => {
                out.pop();
                out.push(flag.replacen("--overwrite", &format!("--{FILL_FIRST}"), 1).into());
            }
            _ => {}
        }
    }
    out.extend(rest.cloned());
    out
}

/// Returns the words with `--json` to standard output and the word after it as an argument; `None` if there is no such word.
pub(super) fn with_json_to_stdout(words: &[OsString]) -> Option<Vec<OsString>> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let at = words[..end].iter().position(|word| word == "--json")?;
    let next = words.get(at + 1)?.to_str()?;
    if next.starts_with('-') {
        return None;
    }
    let mut out = words.to_vec();
    out.insert(at + 1, "-".into());
    Some(out)
}

/// Whether the word after `--json` is its FILE.
fn is_json_file(word: &OsStr, is_switch: bool) -> bool {
    let ending = ending_of(word);
    // A flag is no value to clap, either.
    is_flag(word) || ending == "json" || !(is_switch || JOB_FILES.contains(&ending) || DOCUMENTS.contains(&ending))
}

/// Whether the word after `--overwrite` names no target: another flag, or a job file.
fn is_no_path(word: &OsStr) -> bool {
    is_flag(word) || JOB_FILES.contains(&ending_of(word))
}

fn is_flag(word: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(b"-")
}

fn ending_of(word: &OsStr) -> &str {
    Path::new(word).extension().and_then(OsStr::to_str).unwrap_or_default()
}

fn is_bool(value: &str) -> bool {
    ["0", "1", "true", "false", "yes", "no"].contains(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_written_out(line: &str, expected: &str) {
        let words = line.split(' ').map(OsString::from).collect();
        let words: Vec<String> = written_out(words).iter().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words.join(" "), expected, "{line}");
    }

    #[test]
    fn json_without_a_file_goes_to_standard_output() {
        for (line, expected) in [
            ("trueio run --json jobs.toml", "trueio run --json - jobs.toml"),
            ("trueio run --json record jobs.toml", "trueio run --json record jobs.toml"),
            ("trueio run jobs.toml --json", "trueio run jobs.toml --json"),
            ("trueio run --json --rw read", "trueio run --json --rw read"),
            ("trueio run --json - jobs.toml", "trueio run --json - jobs.toml"),
            ("trueio baseline --json /dev/full data", "trueio baseline --json /dev/full data"),
            ("trueio run jobs.toml --json jobs.toml", "trueio run jobs.toml --json jobs.toml"),
            ("trueio explain --json jobs.toml", "trueio explain --json - jobs.toml"),
            ("trueio history show --json 3f9c", "trueio history show --json - 3f9c"),
            ("trueio history --json runs.json", "trueio history --json runs.json"),
            ("trueio history compare -- --json a.toml", "trueio history compare -- --json a.toml"),
        ] {
            assert_written_out(line, expected);
        }
    }

    #[test]
    fn overwrite_with_a_path_names_a_target_and_without_one_is_the_switch_of_fio() {
        for (line, expected) in [
            ("trueio run --overwrite /mnt/file --rw write", "trueio run --overwrite /mnt/file --rw write"),
            ("trueio run --overwrite --rw write", "trueio run --fill-first --rw write"),
            ("trueio run --overwrite=1 jobs.toml", "trueio run --fill-first=1 jobs.toml"),
            ("trueio run --overwrite jobs.toml", "trueio run --fill-first jobs.toml"),
            ("trueio baseline /x --overwrite /x", "trueio baseline /x --overwrite /x"),
        ] {
            assert_written_out(line, expected);
        }
    }
}
