//! The questions of a stranger, each with the line of a screen that answers it.

use crate::answer::situations;

use trueio_report::{Style, screen};

/// A question, the situation in which it is asked, and the line that answers it; `*` is any text.
const QUESTIONS: [(&str, &str, &str); 14] = [
    ("Is this disk as fast as it should be?", "clean", "Yes: as fast as an NVMe SSD.*"),
    ("How many transactions can it commit in a second?", "clean", "*Durable commits: 612 per second."),
    (
        "Which disk was measured, and where is it mounted?",
        "clean",
        "nvme0n1  Example NVMe SSD 1TB, *, ext4 on /mnt/data",
    ),
    ("How fast does it read a large file?", "clean", "  seq-read-1m * 3.21 GiB/s * confirmed"),
    ("How long does the slowest of a hundred lookups take?", "clean", "  rand-read-4k-q1 * p99 81.9 µs * confirmed"),
    ("Is it good enough for etcd?", "clean", "*etcd's guideline of less than 10 ms at p99 is met."),
    ("What limits it?", "clean", "One read at a time: the mean latency of 71.3 µs limits the rate,*"),
    ("May I trust these figures?", "clean", "7 of 7 loads confirmed by the disk's own counters."),
    ("What disturbed the run?", "neighbour", "! neighbour   dd wrote 335 MiB; can explain at most 23 % of *"),
    ("What do I do about it?", "neighbour", "*→ stop `dd` (pid 812), then run `trueio baseline /mnt/data` again"),
    (
        "Why is there no figure?",
        "quota",
        "x tool        waited for a processor 89 % of the time; can explain at most 89 %*",
    ),
    ("How do I see the figure nevertheless?", "quota", "*`--accept processor_wait` shows them in spite of the check."),
    ("Is it the disk at all?", "memory", "Cannot tell: no load is confirmed (* the device is in memory).*"),
    ("Where are the details?", "stopped", "Details: trueio report -v 3f9c21ab"),
];

/// Returns true if a line is a pattern's.
fn is_of(line: &str, pattern: &str) -> bool {
    let parts: Vec<&str> = pattern.split('*').collect();
    let [first, middle @ .., last] = parts.as_slice() else { return line == pattern };
    let Some(mut rest) = line.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

/// Goal: each question has its answer on the first screen, on one line of it. Method: screens at 80 columns; a sentence of several lines
/// counts as one.
#[test]
fn each_question_of_a_stranger_is_answered_by_a_line_of_the_screen() {
    let screens = situations();
    for (question, situation, pattern) in QUESTIONS {
        let (_, record) = screens.iter().find(|(name, _)| *name == situation).expect("a staged situation");
        let text = screen(record, &Style { width: 80, color: false, unicode: true }, "trueio report -v 3f9c21ab", &[]);
        let whole = text.replace("\n  ", "\n\u{0}");
        // A sentence goes on in lines that begin with two spaces; a row of the table begins with them, too.
        let joined = whole.replace("\n\u{0}", " ");
        let found = text.lines().chain(joined.lines()).any(|line| is_of(line, pattern));
        assert!(found, "{question} `{pattern}` in:\n{text}");
    }
    assert!(!is_of("No: as fast as an NVMe SSD.", "Yes: *") && !is_of("Details: x", "Details: *y"));
}
