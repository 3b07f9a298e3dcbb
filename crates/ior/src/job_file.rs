//! Jobs as a job file: what they have in common in `[defaults]`, the rest in a table for each.

use std::collections::BTreeMap;
use std::fmt::Write;
use trueio_job::table::TABLE;
use trueio_job::value::ValueKind;
use trueio_model::JobSpec;

/// Writes jobs as a TOML job file that `trueio run` accepts.
pub fn job_file(jobs: &[JobSpec]) -> String {
    let mut out = String::new();
    let common: BTreeMap<&str, &str> = match jobs {
        [first, _, ..] => first
            .options
            .iter()
            .map(|(name, value)| (&**name, value.text.as_str()))
            .filter(|(name, text)| {
                jobs.iter().all(|job| job.options.get(*name).is_some_and(|value| value.text == *text))
            })
            .collect(),
        _ => BTreeMap::new(),
    };
    if !common.is_empty() {
        out.push_str("[defaults]\n");
        write_options(&mut out, |name| common.get(name).copied());
    }
    for job in jobs {
        let gap = if out.is_empty() { "" } else { "\n" };
        let _ = writeln!(out, "{gap}[job.{}]", job.name);
        write_options(&mut out, |name| {
            job.options.get(name).map(|value| value.text.as_str()).filter(|_| !common.contains_key(name))
        });
    }
    out
}

/// Writes the options that have a text, in the table's order.
fn write_options<'a>(out: &mut String, text_of: impl Fn(&str) -> Option<&'a str>) {
    for row in TABLE {
        let Some(text) = text_of(row.name) else { continue };
        let counts = matches!(
            row.kind,
            ValueKind::Count { .. } | ValueKind::Bytes | ValueKind::Extent | ValueKind::BlockSizes | ValueKind::Seed
        );
        let is_number = counts && !text.is_empty() && text.len() < 19 && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_plain = (row.is_switch() && ["true", "false"].contains(&text)) || is_number;
        let _ = match is_plain {
            true => writeln!(out, "{} = {text}", row.name),
            false => writeln!(out, "{} = {}", row.name, quoted(text)),
        };
    }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_job::parse_job_file;

    #[test]
    fn a_job_file_is_read_back_as_the_same_jobs() {
        let common = [("bs", "4k"), ("filename", "/mnt/a \"b\" \\ c"), ("shared_file", "true"), ("nrfiles", "12")];
        let jobs = [
            crate::job("write", "-w", &[&common[..], &[("rw", "write"), ("runtime", "10s")]].concat()),
            crate::job("read", "-r", &[&common[..], &[("rw", "read"), ("stonewall", "true")]].concat()),
        ];
        let text = job_file(&jobs);
        let read = parse_job_file("jobs.toml", &text).unwrap_or_else(|error| panic!("{}\n{text}", error.render())).jobs;
        assert_eq!(read.len(), 2);
        for (job, read) in jobs.iter().zip(&read) {
            assert_eq!(job.name, read.name);
            let texts = |spec: &JobSpec| -> Vec<(String, String)> {
                spec.options.iter().map(|(name, value)| (name.to_string(), value.text.clone())).collect()
            };
            assert_eq!(texts(job), texts(read));
        }
        assert_eq!(job_file(&jobs[..1]).lines().next(), Some("[job.write]"));
    }
}
