//! fio's five options about priorities of single I/Os, as one of ours.
//!
//! Source: HOWTO of fio 3.42, `cmdprio_percentage` and the options after it.

use super::lowering::JobWords;
use super::problem::Problems;
use super::refusals::Refused;
use super::value::{BadValue, KbBase, read_number};
use trueio_job::table::row;

/// Values of reads and of writes; those of trims, which may follow, have no effect, as in fio.
type Each<T> = [T; 2];

/// Returns the value of `cmdprio_bssplit`, empty if no I/O gets its own priority; `None` after a problem.
pub(super) fn shares(job: &JobWords<'_>, problems: &mut Problems) -> Option<String> {
    let percents = numbers(job, "cmdprio_percentage", 100, problems)?;
    // Without a class, or with none, it is real time.
    let classes = numbers(job, "cmdprio_class", 3, problems)?.map(|class| class.max(1));
    let levels = numbers(job, "cmdprio", 7, problems)?;
    let hints = numbers(job, "cmdprio_hint", 1023, problems)?;
    let implied: Each<String> = [0, 1].map(|i| format!("{}/{}/{}", classes[i], levels[i], hints[i]));
    let split = job.word("cmdprio_bssplit").filter(|word| !word.text().is_empty());
    let is_share = percents.iter().any(|percent| *percent > 0);
    let Some(word) = split else {
        let of = |i: usize| if percents[i] > 0 { format!("*/{}/{}", percents[i], implied[i]) } else { String::new() };
        return if is_share {
            row("cmdprio_bssplit")?.canonical(&format!("{},{}", of(0), of(1))).ok()
        } else {
            Some(String::new())
        };
    };
    if is_share {
        let message =
            "`cmdprio_percentage` and `cmdprio_bssplit` contradict each other: both set the share of I/Os that \
                       have their own priority"
                .to_owned();
        job.complain_about(Refused::Priorities, "cmdprio_bssplit", message, Refused::Priorities.hint(), problems);
        return None;
    }
    let parts: Vec<&str> = word.text().split(',').collect();
    let each = [parts[0], parts.get(1).copied().unwrap_or(parts[0])];
    let mut lists = Vec::new();
    for (list, implied) in each.iter().zip(&implied) {
        match entries(list, implied, job.base_of("cmdprio_bssplit")) {
            Ok(list) => lists.push(list),
            Err(message) => {
                job.complain(word, &BadValue::whole(message, word.text()), problems);
                return None;
            }
        }
    }
    let is_nothing =
        lists.iter().flat_map(|list| list.split(':')).all(|entry| matches!(entry.split('/').nth(1), None | Some("0")));
    if is_nothing {
        return Some(String::new());
    }
    match row("cmdprio_bssplit")?.canonical(&lists.join(",")) {
        Ok(text) => Some(text),
        Err(message) => {
            job.complain(word, &BadValue::whole(message, word.text()), problems);
            None
        }
    }
}

/// Entries of one direction, each with a class, a level and a hint, and its size in bytes.
fn entries(list: &str, implied: &str, base: KbBase) -> Result<String, String> {
    let mut entries = Vec::new();
    for entry in list.split(':').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (size, rest) = entry.split_once('/').unwrap_or((entry, "0"));
        let size = read_number(size, base).map_err(|bad| bad.message)?;
        // Without a percentage it is of none.
        let rest = if rest.is_empty() { "0" } else { rest };
        let implied = if rest.contains('/') { String::new() } else { format!("/{implied}") };
        entries.push(format!("{size}/{rest}{implied}"));
    }
    Ok(entries.join(":"))
}

/// One number for reads and writes, or one for each; 0 without a word; `None` after a problem.
fn numbers(job: &JobWords<'_>, name: &str, most: u64, problems: &mut Problems) -> Option<Each<u64>> {
    let Some(word) = job.word(name) else { return Some([0; 2]) };
    let parts: Vec<&str> = word.text().split(',').collect();
    let mut each = [0; 2];
    let mut at = 0;
    for (index, part) in parts.iter().enumerate() {
        let value = read_number(part, job.base_of(name)).and_then(|value| match value {
            value if value <= most => Ok(value),
            _ => Err(BadValue::whole(format!("`{part}` is not a number from 0 to {most}"), part)),
        });
        let bad = match value {
            Ok(_) if index > 2 => BadValue::whole("reads, writes and trims are three", part),
            Ok(value) => {
                each.iter_mut().skip(index).for_each(|each| *each = value);
                at += part.len() + 1;
                continue;
            }
            Err(bad) => bad,
        };
        job.complain(word, &BadValue { at: bad.at.start + at..bad.at.end + at, ..bad }, problems);
        return None;
    }
    Some(each)
}
