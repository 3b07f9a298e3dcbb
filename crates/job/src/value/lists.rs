//! Paths, names, processors and words: one or several in a text.

use super::ValueKind;
use std::collections::HashSet;
use trueio_model::UsbTargetName;

/// Largest processor number in a list; a range beyond it is a typing error.
const CPU_MAX: u32 = 8191;

/// Largest number of a rank.
pub(super) const RANK_MAX: u32 = (1 << 20) - 1;

/// Joins paths into one text; a colon within a path is escaped.
pub fn write_paths(paths: &[String]) -> String {
    let written = |path: &String| match UsbTargetName::parse(path) {
        Some(_) => path.clone(),
        None => path.replace(':', "\\:"),
    };
    paths.iter().map(written).collect::<Vec<_>>().join(":")
}

pub(super) fn read_path(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("a path is empty".into());
    }
    if text.contains('\0') {
        return Err("a path cannot contain a zero byte".into());
    }
    Ok(text.to_owned())
}

pub(super) fn read_paths(text: &str) -> Result<Vec<String>, String> {
    let paths = split_paths(text);
    let mut seen = HashSet::with_capacity(paths.len());
    for path in &paths {
        read_path(path)?;
        if !seen.insert(path) {
            return Err(format!("`{path}` is named twice"));
        }
    }
    Ok(paths)
}

/// Splits paths at colons, without a look at the paths.
pub fn split_paths(text: &str) -> Vec<String> {
    let mut paths = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let last = paths.len() - 1;
        match c {
            '\\' if chars.peek() == Some(&':') => {
                chars.next();
                paths[last].push(':');
            }
            ':' => paths.push(String::new()),
            c => paths[last].push(c),
        }
    }
    with_usb_names(paths)
}

/// Joins `usb` and the port after it, which a colon separated: `usb:2-1` is one name.
fn with_usb_names(parts: Vec<String>) -> Vec<String> {
    let mut paths: Vec<String> = Vec::with_capacity(parts.len());
    for part in parts {
        match paths.last_mut().filter(|last| last.as_str() == "usb") {
            Some(last) if UsbTargetName::parse(&format!("usb:{part}")).is_some() => *last = format!("usb:{part}"),
            _ => paths.push(part),
        }
    }
    paths
}

/// A TOML list is passed with colons between its names.
pub(super) fn read_names(text: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = text.split([',', ':']).map(|name| name.trim().to_owned()).collect();
    for (index, name) in names.iter().enumerate() {
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.')) {
            return Err(format!("`{text}` is not {}", ValueKind::Names.takes()));
        }
        if names[..index].contains(name) {
            return Err(format!("`{name}` is named twice"));
        }
    }
    Ok(names)
}

pub(super) fn read_cpus(text: &str) -> Result<Vec<u32>, String> {
    read_numbers(text, "processor", CPU_MAX)
}

/// Reads numbers and ranges of numbers, separated by commas. `what` names the things that are counted.
pub(super) fn read_numbers(text: &str, what: &str, max: u32) -> Result<Vec<u32>, String> {
    let number = |text: &str| {
        text.trim()
            .parse::<u32>()
            .ok()
            .filter(|number| *number <= max)
            .ok_or_else(|| format!("`{text}` is not a {what} number from 0 to {max}"))
    };
    let mut numbers = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last {
                    return Err(format!("`{part}` counts downwards"));
                }
                numbers.extend(first..=last);
            }
            None => numbers.push(number(part)?),
        }
    }
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("{what} {} is named twice", twice[0]));
    }
    Ok(numbers)
}

pub(super) fn read_words(text: &str) -> Result<Vec<String>, String> {
    if text.contains('\0') {
        return Err("a word cannot contain a zero byte".to_owned());
    }
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() { Err("no word is given".to_owned()) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::super::{Value, ValueKind, canonical};

    #[test]
    fn a_colon_within_a_path_is_escaped_and_read_back() {
        let kind = ValueKind::Paths;
        assert_eq!(kind.read(r"a:b\:c"), Ok(Value::Paths(vec!["a".into(), "b:c".into()])));
        assert_eq!(canonical(kind, r"a:b\:c"), Ok(r"a:b\:c".into()));
        for text in ["", "a:", ":a", "a:a", "a\0b"] {
            assert!(kind.read(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_usb_disk_by_its_port_is_one_name_and_is_written_as_it_is_read() {
        let kind = ValueKind::Paths;
        let names = |text: &str| {
            kind.read(text).map(|value| match value {
                Value::Paths(paths) => paths,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(names("usb:2-1"), Ok(vec!["usb:2-1".to_owned()]));
        assert_eq!(names(r"usb\:1-4.2/3"), Ok(vec!["usb:1-4.2/3".to_owned()]));
        assert_eq!(names("a:usb:2-1:b"), Ok(vec!["a".to_owned(), "usb:2-1".to_owned(), "b".to_owned()]));
        assert_eq!(names("usb:stick"), Ok(vec!["usb".to_owned(), "stick".to_owned()]), "two files");
        assert_eq!(canonical(kind, r"a\:b:usb:2-1"), Ok(r"a\:b:usb:2-1".into()));
    }

    #[test]
    fn processors_are_listed_or_ranged_and_never_twice() {
        assert_eq!(canonical(ValueKind::Cpus, "0,2,4-6"), Ok("0,2,4,5,6".into()));
        for text in ["", "a", "3-1", "1,1", "0-4294967295"] {
            assert!(canonical(ValueKind::Cpus, text).is_err(), "{text}");
        }
    }
}
