//! fio's own JSON, as far as a comparison needs it: rates and percentiles of each job.
//!
//! fio prints its JSON after warnings, and more than one object with `--status-interval`; what precedes the first
//! brace is passed over and the last object counts. Latencies are `lat_ns` percentiles where they were asked
//! for (`lat_percentiles=1`), else `clat_ns`: a name says which, and the two are not compared with each other.
//!
//! Cannot give: an interval. The JSON holds no series; its `bw_dev` and `iops_stddev` are those of seconds that
//! depend on each other, and taken for independent they would pretend to a precision that is not there.
//!
//! Source: fio 3.42 `stat.c` (`add_ddir_status_json`, `show_thread_status_json`), HOWTO section 13 "JSON output".

use serde_json::{Map, Value};
use trueio_model::{Figure, Metric};

/// Why a text is not fio's JSON.
#[derive(Debug, thiserror::Error)]
pub enum FioError {
    /// It is not JSON.
    #[error("this is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// It is JSON of another kind.
    #[error("this JSON is not fio's: it has no `{0}`")]
    NotFio(&'static str),
    /// A job moved nothing, or its figures are none.
    #[error("this fio run holds no I/O: nothing can be compared")]
    Empty,
}

/// A run of fio.
#[derive(Debug, Clone, PartialEq)]
pub struct FioRun {
    /// `fio-3.42`.
    pub version: String,
    /// When it ended, as fio wrote it.
    pub time: String,
    /// One entry a job and direction that moved something.
    pub rows: Vec<FioRow>,
}

/// One direction of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct FioRow {
    /// `seqread read`.
    pub name: String,
    /// The job's options, its own and the global ones.
    pub options: Vec<(String, String)>,
    /// What could be had.
    pub figures: Vec<Figure>,
    /// (percent, nanoseconds), ascending.
    pub percentiles: Vec<(f64, f64)>,
    /// `lat` or `clat`; empty without percentiles.
    pub latency_kind: &'static str,
    /// fio's error number; 0 if there was none.
    pub error: i64,
}

/// Reads fio's JSON.
///
/// # Errors
/// [`FioError`] says what it is instead.
pub fn parse(text: &str) -> Result<FioRun, FioError> {
    let from = text.find('{').unwrap_or(0);
    let mut last = None;
    for value in serde_json::Deserializer::from_str(&text[from..]).into_iter::<Value>() {
        match value {
            Ok(value) => last = Some(value),
            // Warnings may follow; a text without a single object is an error.
            Err(error) if last.is_none() => return Err(FioError::NotJson(error)),
            Err(_) => break,
        }
    }
    let root = last.ok_or(FioError::NotFio("jobs"))?;
    let version = root["fio version"].as_str().ok_or(FioError::NotFio("fio version"))?.to_owned();
    let jobs = root["jobs"].as_array().or_else(|| root["client_stats"].as_array()).ok_or(FioError::NotFio("jobs"))?;
    let global = options(root.get("global options"));
    let mut rows = Vec::new();
    for job in jobs {
        let name = job["jobname"].as_str().unwrap_or("job");
        let mut all = global.clone();
        for (key, value) in options(job.get("job options")) {
            all.retain(|known| known.0 != key);
            all.push((key, value));
        }
        for direction in ["read", "write", "trim", "mixed"] {
            let Some(of) = job.get(direction).and_then(Value::as_object) else { continue };
            let Some(mut row) = row(of, job) else { continue };
            row.name = format!("{name} {direction}");
            row.options.clone_from(&all);
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Err(FioError::Empty);
    }
    Ok(FioRun { version, time: root["time"].as_str().unwrap_or_default().to_owned(), rows })
}

fn options(value: Option<&Value>) -> Vec<(String, String)> {
    let map = value.and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect()
}

/// A direction's figures; `None` if it moved nothing.
fn row(of: &Map<String, Value>, job: &Value) -> Option<FioRow> {
    let number = |value: Option<&Value>| value.and_then(Value::as_f64).filter(|v| v.is_finite() && *v > 0.0);
    let ios = number(of.get("total_ios"))?;
    let mut figures = Vec::new();
    let mut add = |metric, value: Option<f64>| figures.extend(value.map(|value| Figure { metric, value }));
    add(Metric::Bandwidth, number(of.get("bw_bytes")));
    add(Metric::Iops, number(of.get("iops")));
    let mut percentiles = Vec::new();
    let mut latency_kind = "";
    for (key, kind) in [("lat_ns", "lat"), ("clat_ns", "clat")] {
        let Some(map) = of.get(key).and_then(|latency| latency.get("percentile")).and_then(Value::as_object) else {
            continue;
        };
        percentiles = map
            .iter()
            .filter_map(|(percent, ns)| Some((percent.parse::<f64>().ok()?, ns.as_f64()?)))
            .filter(|(percent, ns)| (0.0..=100.0).contains(percent) && *ns > 0.0)
            .collect::<Vec<_>>();
        percentiles.sort_by(|a, b| a.0.total_cmp(&b.0));
        if !percentiles.is_empty() {
            latency_kind = kind;
            break;
        }
    }
    for metric in [Metric::P50, Metric::P99, Metric::P999] {
        let percent = metric.quantile().unwrap_or(0.0) * 100.0;
        add(metric, percentiles.iter().find(|p| (p.0 - percent).abs() < 1e-6).map(|p| p.1));
    }
    // Percent of one processor over the job's run time, over all its I/Os; only if there is one direction.
    let directions = ["read", "write", "trim", "mixed"];
    let busy = directions.iter().filter(|d| job[**d]["total_ios"].as_f64().unwrap_or(0.0) > 0.0).count();
    if busy == 1 {
        let percent = job["usr_cpu"].as_f64().zip(job["sys_cpu"].as_f64()).map(|(user, system)| user + system);
        let runtime_ms = number(job.get("job_runtime"));
        add(Metric::CpuPerIo, percent.zip(runtime_ms).map(|(p, ms)| p / 100.0 * ms * 1e6 / ios).filter(|v| *v > 0.0));
    }
    let error = job["error"].as_i64().unwrap_or(0);
    Some(FioRow { name: String::new(), options: Vec::new(), figures, percentiles, latency_kind, error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: &str = r#"fio: a warning {with a brace}
    "#;

    fn sample(extra: &str) -> String {
        format!(
            r#"{{"fio version":"fio-3.42","time":"Fri","global options":{{"bs":"4k"}},"jobs":[{{"jobname":"j","error":0,
            "job options":{{"rw":"randread"}},"usr_cpu":10.0,"sys_cpu":20.0,"job_runtime":2000{extra},
            "read":{{"total_ios":1000,"bw_bytes":2048000,"iops":500.5,"clat_ns":{{"percentile":{{"50.000000":150,"99.000000":900}}}}}},
            "write":{{"total_ios":0,"bw_bytes":0,"iops":0.0}}}}]}}"#
        )
    }

    #[test]
    fn rates_percentiles_and_cpu_are_read_and_idle_directions_left_out() {
        let run = parse(&sample("")).unwrap();
        assert_eq!(run.rows.len(), 1);
        let row = &run.rows[0];
        assert_eq!((row.name.as_str(), row.latency_kind, row.percentiles.len()), ("j read", "clat", 2));
        let of = |metric| row.figures.iter().find(|f| f.metric == metric).map(|f| f.value);
        assert_eq!(of(Metric::Iops), Some(500.5));
        assert_eq!((of(Metric::P50), of(Metric::P99), of(Metric::P999)), (Some(150.0), Some(900.0), None));
        // 30 % of 2 s over 1,000 I/Os.
        assert!((of(Metric::CpuPerIo).unwrap() - 600_000.0).abs() < 1e-6);
        assert_eq!(row.options, [("bs".to_owned(), "4k".to_owned()), ("rw".to_owned(), "randread".to_owned())]);
    }

    #[test]
    fn other_texts_are_named_for_what_they_are() {
        assert!(matches!(parse(""), Err(FioError::NotFio(_) | FioError::NotJson(_))));
        assert!(matches!(parse("{\"fio version\":\"fio-3\"}"), Err(FioError::NotFio("jobs"))));
        assert!(matches!(parse("{\"jobs\":[]}"), Err(FioError::NotFio("fio version"))));
        assert!(matches!(parse("{\"fio version\":\"x\",\"jobs\":[]}"), Err(FioError::Empty)));
        let whole = sample("");
        assert!(matches!(parse(&whole[..whole.len() - 3]), Err(FioError::NotJson(_))), "truncated");
        assert!(matches!(parse(ONE), Err(FioError::NotJson(_))));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,80}", at in 0usize..400, with in "[-0-9.e\"{}\\[\\],:a-z]{0,6}") {
            let _ = parse(&text);
            // A damaged run: some of its text replaced.
            let mut whole = sample("");
            let at = at.min(whole.len());
            if whole.is_char_boundary(at) {
                whole.insert_str(at, &with);
            }
            if let Ok(run) = parse(&whole) {
                for figure in run.rows.iter().flat_map(|row| &row.figures) {
                    prop_assert!(figure.value.is_finite() && figure.value > 0.0);
                }
            }
        }
    }
}
