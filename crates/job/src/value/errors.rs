//! Errors by name or number, in lists of reads and of writes.
//!
//! Source: errno(3) and asm-generic/errno.h; the numbers are those of every architecture that this program is built
//! for.

/// Errors that an I/O may end with, or that a user may name.
const NAMES: &[(&str, i32)] = &[
    ("EPERM", 1),
    ("ENOENT", 2),
    ("EINTR", 4),
    ("EIO", 5),
    ("ENXIO", 6),
    ("EBADF", 9),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EFAULT", 14),
    ("ENOTBLK", 15),
    ("EBUSY", 16),
    ("EEXIST", 17),
    ("ENODEV", 19),
    ("EINVAL", 22),
    ("ENFILE", 23),
    ("EMFILE", 24),
    ("ETXTBSY", 26),
    ("EFBIG", 27),
    ("ENOSPC", 28),
    ("ESPIPE", 29),
    ("EROFS", 30),
    ("EPIPE", 32),
    ("ERANGE", 34),
    ("EDEADLK", 35),
    ("ENOSYS", 38),
    ("EBADE", 52),
    ("ENODATA", 61),
    ("ETIME", 62),
    ("ENOLINK", 67),
    ("EBADMSG", 74),
    ("EOVERFLOW", 75),
    ("EILSEQ", 84),
    ("EOPNOTSUPP", 95),
    ("ENOBUFS", 105),
    ("ESHUTDOWN", 108),
    ("ETIMEDOUT", 110),
    ("EHOSTDOWN", 112),
    ("ESTALE", 116),
    ("EUCLEAN", 117),
    ("EREMOTEIO", 121),
    ("EDQUOT", 122),
    ("ENOMEDIUM", 123),
    ("ECANCELED", 125),
];

/// Maximum length of a list.
const LIST_MAX: usize = 64;
/// The kernel has no larger error numbers.
const ERRNO_MAX: u32 = 4095;

/// Parses lists of reads and of writes. A third, which fio has for verification, must be empty.
pub(super) fn read(text: &str) -> Result<[Vec<i32>; 2], String> {
    let mut lists = [Vec::new(), Vec::new()];
    for (index, part) in text.split(',').enumerate() {
        let part = part.trim();
        match lists.get_mut(index) {
            _ if part.is_empty() => {}
            Some(list) => *list = read_list(part)?,
            None if index == 2 => {
                return Err(format!("`{part}` would ignore blocks that read back differently"));
            }
            None => return Err(format!("`{text}` has more lists than those of reads and of writes")),
        }
    }
    if lists.iter().all(Vec::is_empty) {
        return Err(format!("`{text}` contains no error"));
    }
    Ok(lists)
}

fn read_list(text: &str) -> Result<Vec<i32>, String> {
    let mut list = Vec::new();
    for word in text.split(':').map(str::trim).filter(|word| !word.is_empty()) {
        let error = read_error(word).ok_or_else(|| format!("`{word}` is no error, such as `EIO` or `5`"))?;
        if !list.contains(&error) {
            list.push(error);
        }
        if list.len() > LIST_MAX {
            return Err(format!("a list has more than {LIST_MAX} errors"));
        }
    }
    Ok(list)
}

fn read_error(word: &str) -> Option<i32> {
    if let Some((_, number)) = NAMES.iter().find(|(name, _)| *name == word) {
        return Some(*number);
    }
    // The kernel's own notation is negative.
    let digits = word.strip_prefix('-').unwrap_or(word);
    if digits.starts_with('+') {
        return None;
    }
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => digits.parse::<u32>(),
    };
    number.ok().filter(|number| (1..=ERRNO_MAX).contains(number)).and_then(|number| i32::try_from(number).ok())
}

/// Returns the canonical text; [`read`] returns the lists again.
pub(super) fn write(lists: &[Vec<i32>; 2]) -> String {
    let name = |error: &i32| {
        let known = NAMES.iter().find(|(_, number)| number == error);
        known.map_or_else(|| error.to_string(), |(name, _)| (*name).to_owned())
    };
    let [reads, writes] = lists.each_ref().map(|list| list.iter().map(name).collect::<Vec<_>>().join(":"));
    if writes.is_empty() { reads } else { format!("{reads},{writes}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_read_and_written_back() {
        for (text, canonical) in [
            ("EIO", "EIO"),
            (",ENOSPC", ",ENOSPC"),
            ("EAGAIN,ENOSPC:122", "EAGAIN,ENOSPC:EDQUOT"),
            ("5:0x5:-5:4000,,", "EIO:4000"),
        ] {
            let lists = read(text).expect(text);
            assert_eq!(write(&lists), canonical);
            assert_eq!(read(canonical), Ok(lists));
        }
        for text in ["", ",", "EWHAT", "0", "4096", "EIO,EIO,EILSEQ", "1,2,,3", "+5", "5x"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
