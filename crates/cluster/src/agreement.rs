//! Whether all ranks have the same request: the first difference names the rank, its host and the option.

use crate::message::{Hello, JobText};
use crate::range::cut;
use std::collections::BTreeMap;

/// Returns why the requests of the ranks do not belong together; `None`: they are the same.
pub(crate) fn difference(hellos: &BTreeMap<u32, Hello>) -> Option<String> {
    let (_, first) = hellos.first_key_value()?;
    let named = |rank: &u32, hello: &Hello| format!("rank {rank} ({})", hello.host_in_message());
    if let Some((rank, hello)) = hellos.iter().find(|(_, hello)| hello.jobs.is_err()) {
        let reason = hello.jobs.as_ref().err().map_or("", |reason| reason);
        return Some(format!("{}: {}", named(rank, hello), reason.trim_start_matches("error: ")));
    }
    hellos.iter().find_map(|(rank, hello)| {
        let what = difference_to(first, hello)?;
        Some(format!(
            "the ranks differ: {} has {}, and rank 0 ({}) has {}\n\nhint: start all ranks with the same program, \
             arguments and job files",
            named(rank, hello),
            what.1,
            first.host,
            what.0
        ))
    })
}

/// Returns what the first rank has, and what the other one has instead.
fn difference_to(first: &Hello, other: &Hello) -> Option<(String, String)> {
    if first.version != other.version {
        return Some((format!("trueio {}", cut(&first.version)), format!("trueio {}", cut(&other.version))));
    }
    if first.size != other.size {
        let ranks = |size| format!("a run of {size} ranks (`WORLD_SIZE`)");
        return Some((ranks(first.size), ranks(other.size)));
    }
    if first.kind != other.kind {
        return Some((format!("the command `{}`", first.kind), format!("the command `{}`", other.kind)));
    }
    let (Ok(ours), Ok(theirs)) = (&first.jobs, &other.jobs) else { return None };
    let names = |jobs: &[JobText]| {
        let names: Vec<String> = jobs.iter().map(|job| format!("`{}`", job.name)).collect();
        format!("{} {}", if names.len() == 1 { "the job" } else { "the jobs" }, cut(&names.join(", ")))
    };
    if !ours.iter().map(|job| &job.name).eq(theirs.iter().map(|job| &job.name)) {
        return Some((names(ours), names(theirs)));
    }
    ours.iter().zip(theirs).find_map(|(ours, theirs)| {
        let options = ours.options.keys().chain(theirs.options.keys());
        let option = options.into_iter().find(|name| ours.options.get(*name) != theirs.options.get(*name))?;
        let value = |job: &JobText| match job.options.get(option) {
            Some(value) => format!("`{} = {}` in job `{}`", cut(option), cut(value), cut(&job.name)),
            None => format!("no `{}` in job `{}`", cut(option), cut(&job.name)),
        };
        Some((value(ours), value(theirs)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Name, Reason};

    fn hello(options: &[(&str, &str)]) -> Hello {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Hello {
            version: Name::cut("1.0"),
            host: Name::cut("h"),
            boot_id: Name::default(),
            process: crate::message::ProcessId::own(),
            size: 3,
            kind: Name::cut("run"),
            jobs: Ok(vec![JobText { name: "a".into(), options }]),
        }
    }

    fn text(other: Hello) -> Option<String> {
        difference(&BTreeMap::from([(0, hello(&[("bs", "4k")])), (2, Hello { host: Name::cut("h3"), ..other })]))
    }

    #[test]
    fn equal_requests_agree() {
        assert_eq!(text(hello(&[("bs", "4k")])), None);
    }

    #[test]
    fn the_first_difference_names_rank_host_and_option() {
        let begin = "the ranks differ: rank 2 (h3) has ";
        for (other, sentence) in [
            (hello(&[("bs", "8k")]), "`bs = 8k` in job `a`, and rank 0 (h) has `bs = 4k` in job `a`"),
            (hello(&[]), "no `bs` in job `a`, and rank 0 (h) has `bs = 4k` in job `a`"),
            (hello(&[("bs", "4k"), ("size", "1m")]), "`size = 1m` in job `a`, and rank 0 (h) has no `size` in job `a`"),
            (Hello { size: 4, ..hello(&[]) }, "a run of 4 ranks (`WORLD_SIZE`), and rank 0 (h) has a run of 3 ranks"),
            (Hello { version: Name::cut("1.1"), ..hello(&[]) }, "trueio 1.1, and rank 0 (h) has trueio 1.0"),
            (
                Hello { kind: Name::cut("baseline"), ..hello(&[]) },
                "the command `baseline`, and rank 0 (h) has the command `run`",
            ),
            (Hello { jobs: Ok(Vec::new()), ..hello(&[]) }, "the jobs , and rank 0 (h) has the job `a`"),
        ] {
            let found = text(other).expect("a difference");
            assert!(found.starts_with(&format!("{begin}{sentence}")), "{found}");
        }
    }

    #[test]
    fn a_rank_that_cannot_read_its_jobs_is_named_with_its_reason() {
        let found = text(Hello { jobs: Err(Reason::cut("error: job file `a.toml` cannot be read")), ..hello(&[]) });
        assert_eq!(found.as_deref(), Some("rank 2 (h3): job file `a.toml` cannot be read"));
    }
}
