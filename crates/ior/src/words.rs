//! Splits a command line as IOR and mdtest do: `-b 4k`, `-b4k`, `-b=4k`, `-wk` (several flags), `--name=value`.
//!
//! Source: IOR's `option.c`.

/// An option.
pub(crate) struct Known {
    /// Its letter; `'\0'`: none.
    pub(crate) letter: char,
    /// Its long name; empty: none.
    pub(crate) name: &'static str,
    /// It needs a value.
    pub(crate) takes_value: bool,
    /// What becomes of it.
    pub(crate) fate: Fate,
}

/// What becomes of an option.
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    /// It becomes part of the jobs.
    Used,
    /// It changes nothing here, for this reason.
    Noted(&'static str),
    /// It is refused: why, and what to type instead.
    Refused(&'static str, &'static str),
}

/// An option as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    /// Its letter or, without one, its long name.
    pub(crate) key: String,
    /// Its value; of a flag, empty.
    pub(crate) value: String,
}

impl Known {
    fn key(&self) -> String {
        if self.letter == '\0' { self.name.to_owned() } else { self.letter.to_string() }
    }

    fn dashed(&self) -> String {
        if self.letter == '\0' { format!("--{}", self.name) } else { format!("-{}", self.letter) }
    }
}

/// Reads the options of a command line; sentences about those that change nothing go to `notes`.
///
/// # Errors
/// An option that is unknown, refused, or lacks its value.
pub(crate) fn read(
    program: &str,
    words: &[String],
    known: &[Known],
    notes: &mut Vec<String>,
) -> Result<Vec<Given>, String> {
    let mut given = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let Some(dashed) = word.strip_prefix('-').filter(|dashed| !dashed.is_empty()) else {
            return Err(format!("`{word}` is no option of {program}\n\nhint: its options begin with `-`"));
        };
        let (text, mut value) = match dashed.split_once('=') {
            Some((text, value)) => (text, Some(value.to_owned())),
            None => (dashed, None),
        };
        let mut next = |value: &mut Option<String>, option: &Known| {
            let found = value.take().or_else(|| rest.next().cloned());
            found.ok_or_else(|| format!("`{}` of {program} needs a value", option.dashed()))
        };
        if let Some(name) = text.strip_prefix('-') {
            let Some(option) = known.iter().find(|option| !option.name.is_empty() && option.name == name) else {
                return Err(unknown(program, word));
            };
            let value = if option.takes_value { next(&mut value, option)? } else { String::new() };
            note(program, option, &option.typed(&value), notes)?;
            given.push(Given { key: option.key(), value });
            continue;
        }
        for (at, letter) in text.char_indices() {
            let Some(option) = known.iter().find(|option| option.letter == letter) else {
                return Err(unknown(program, &format!("-{letter}")));
            };
            let attached = &text[at + letter.len_utf8()..];
            if option.takes_value && !attached.is_empty() {
                let value = value.take().map_or_else(|| attached.to_owned(), |value| format!("{attached}={value}"));
                note(program, option, &option.typed(&value), notes)?;
                given.push(Given { key: option.key(), value });
                break;
            }
            let value = if option.takes_value { next(&mut value, option)? } else { String::new() };
            note(program, option, &option.typed(&value), notes)?;
            given.push(Given { key: option.key(), value });
        }
    }
    Ok(given)
}

fn unknown(program: &str, word: &str) -> String {
    format!("`{word}` is not an option of {program} that is known here\n\nhint: `trueio {program} --help` lists them")
}

impl Known {
    /// Returns the option as it was typed, with its value.
    fn typed(&self, value: &str) -> String {
        // A word that begins with a dash is the next option, and not a value that the user gave.
        if self.takes_value && !value.starts_with('-') { format!("{} {value}", self.dashed()) } else { self.dashed() }
    }
}

/// Refuses an option, or notes that it changes nothing.
pub(crate) fn note(program: &str, option: &Known, typed: &str, notes: &mut Vec<String>) -> Result<(), String> {
    match option.fate {
        Fate::Used => {}
        // 0 sets nothing.
        _ if option.takes_value && (typed.ends_with(" 0") || typed.ends_with("=0")) => {}
        Fate::Noted(why) => notes.push(format!("`{typed}` changes nothing: {why}")),
        Fate::Refused(why, instead) => {
            return Err(format!("`{typed}` of {program} is not done here\n  because: {why}\n\nhint: {instead}"));
        }
    }
    Ok(())
}

/// Reads a whole number.
pub(crate) fn number(option: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{option} {text}` is no whole number"))
}

/// Reads a size: `k`, `m`, `g`, `t`, `p` are powers of 1024, as in IOR, which reads only the first letter of `4mb` and `4MiB`.
pub(crate) fn size(option: &str, text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let factor = match unit.strip_suffix("ib").or(unit.strip_suffix('b')).unwrap_or(&unit) {
        "" if unit.starts_with('i') => 0,
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        "p" => 1 << 50,
        _ => 0,
    };
    let bytes = digits.trim_end().parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    let bytes = bytes.filter(|bytes| *bytes > 0);
    // Numbers of segments, items and items in each directory.
    let what =
        if ["-s", "-n", "-I"].contains(&option) { "whole number above 0" } else { "size such as `4k`, `2m` or `1g`" };
    bytes.ok_or_else(|| format!("`{option} {text}` is no {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_is_none_is_not_called_a_size() {
        for option in ["-s", "-n", "-I"] {
            assert_eq!(size(option, "0").unwrap_err(), format!("`{option} 0` is no whole number above 0"));
        }
        assert!(size("-b", "0").unwrap_err().contains("is no size such as"));
    }

    const KNOWN: &[Known] = &[
        Known { letter: 'b', name: "", takes_value: true, fate: Fate::Used },
        Known { letter: 'w', name: "", takes_value: false, fate: Fate::Used },
        Known { letter: 'k', name: "keep", takes_value: false, fate: Fate::Used },
        Known { letter: 'g', name: "", takes_value: false, fate: Fate::Noted("files are open before") },
        Known { letter: '\0', name: "seed", takes_value: true, fate: Fate::Used },
        Known { letter: 'c', name: "", takes_value: false, fate: Fate::Refused("MPI is not linked", "leave it out") },
    ];

    /// Options with their values, and notes.
    type Read = (Vec<(String, String)>, Vec<String>);

    fn of(line: &str) -> Result<Read, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut notes = Vec::new();
        let given = read("ior", &words, KNOWN, &mut notes)?;
        Ok((given.into_iter().map(|given| (given.key, given.value)).collect(), notes))
    }

    #[test]
    fn values_follow_are_attached_or_come_after_an_equals_sign() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        for line in ["-b 4k -w -k", "-b4k -wk", "-b=4k -w --keep"] {
            assert_eq!(of(line).expect("it is read").0, [pair("b", "4k"), pair("w", ""), pair("k", "")], "{line}");
        }
        assert_eq!(of("--seed=7").expect("it is read").0, [pair("seed", "7")]);
        assert_eq!(of("-wg").expect("it is read").1, ["`-g` changes nothing: files are open before"]);
    }

    #[test]
    fn what_is_unknown_refused_or_incomplete_is_named() {
        assert!(of("-b").expect_err("no value").starts_with("`-b` of ior needs a value"));
        assert!(of("-wq").expect_err("unknown").starts_with("`-q` is not an option of ior"));
        assert!(of("--sed 7").expect_err("unknown").starts_with("`--sed` is not an option of ior"));
        assert!(of("file").expect_err("no option").starts_with("`file` is no option of ior"));
        let refused = of("-wc").expect_err("refused");
        assert_eq!(refused, "`-c` of ior is not done here\n  because: MPI is not linked\n\nhint: leave it out");
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(
            [
                ("8", 8),
                ("8b", 8),
                ("4k", 4096),
                ("4KB", 4096),
                ("2M", 2 << 20),
                ("4mb", 4 << 20),
                ("4MiB", 4 << 20),
                ("1g", 1 << 30)
            ]
            .map(|(text, bytes)| size("-b", text) == Ok(bytes)),
            [true; 8]
        );
        for text in ["", "k", "mb", "1x", "1ib", "1bm", "0", "-1", "1.5m"] {
            assert!(size("-b", text).is_err(), "{text}");
        }
    }
}
