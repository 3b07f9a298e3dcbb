//! fio's JSON (`--output-format=json` or `json+`) of versions 3.x.
//!
//! Latencies are nanoseconds in version 3. Version 2 is refused because it has microseconds under other names; later
//! versions are refused because their format is unknown. The file may contain more than JSON: banners and warnings
//! before it, other formats after it, documents of several runs, and with `--status-interval` several cumulative
//! documents of one run, of which the last is the result; several may be the elements of an array. [`ForeignRun::notes`] lists the
//! parts that were skipped.
//!
//! `json+` contains fio's histogram: the middle of each bucket and a count. It becomes a [`Histogram`]: a value was
//! within 1/128 of the bucket's middle, and is reported within another 1/128. fio counts all latencies above 2^34 ns
//! (17 s) in one bucket. Plain `json` contains only the requested percentiles; then there is no histogram.
//!
//! Limits: before fio 3.16 the time of a job is that of its longest direction, from which its CPU time follows. fio's JSON contains neither the device's identity nor the kernel nor whether the I/O reached the disk.
//!
//! Source: `stat.c` of fio 3.1, 3.7, 3.16 and 3.42 (`show_thread_status_json`, `add_ddir_status_json`): `bw_bytes` came with
//! 3.7, `N` after 3.16; and the JSON of real runs of fio 3.33 and 3.42 in `tests/results`.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use trueio_model::{
    ForeignDirection, ForeignJob, ForeignLatency, ForeignLatencyKind, ForeignOp, ForeignRun, Histogram,
};

/// Why a text cannot be read as a result of fio.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// It contains no JSON.
    #[error("there is no JSON in this text")]
    NoJson,
    /// Its JSON is damaged.
    #[error("this JSON is damaged, or was cut off")]
    Damaged(#[source] serde_json::Error),
    /// It is JSON, but not fio's.
    #[error("this JSON is not a result of fio: it has no \"fio version\"")]
    NotFio,
    /// It is a result of another version.
    #[error(
        "this is a result of {found}; only fio 3.x is read: latencies of fio 2 have another unit, and later versions are not known here"
    )]
    Version {
        /// The version in the document.
        found: String,
    },
    /// It is the result of no job.
    #[error("this result of fio has no job: its `{key}` is empty, as when fio ended before a job began")]
    NoJobs {
        /// The key of the list of jobs.
        key: &'static str,
    },
    /// A field is missing or invalid.
    #[error("this result of fio has no valid `{path}`")]
    Field {
        /// The path of the field: `jobs[0].read.total_ios`.
        path: String,
    },
}

/// Reads the last result of fio 3.x in a text.
///
/// # Errors
/// [`ResultError`], if the text is not a result of fio 3.x or a field is invalid.
pub fn parse(text: &str) -> Result<ForeignRun, ResultError> {
    let mut runs = parse_all(text)?;
    let count = runs.len();
    let mut last = runs.pop().ok_or(ResultError::NoJson)?;
    if count > 1 {
        last.notes
            .push(format!("{count} runs follow each other: the last was taken (`trueio history import` reads all)"));
    }
    Ok(last)
}

/// Reads the results of all runs in a text, in their order: at least one. What is no result is left out, with a note in the
/// last run.
///
/// # Errors
/// [`ResultError`] of the first document, if none is a result of fio 3.x.
pub fn parse_all(text: &str) -> Result<Vec<ForeignRun>, ResultError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (documents, has_other_text) = documents(text);
    let count = documents.len();
    let mut runs: Vec<Run> = Vec::new();
    let mut notes = Vec::new();
    let mut first_error = None;
    for (index, document) in documents.into_iter().enumerate() {
        match document.and_then(run) {
            Ok(run) => match runs.last_mut().filter(|before| before.continues_as(&run)) {
                Some(before) => *before = Run { documents: before.documents + 1, ..run },
                None => runs.push(run),
            },
            Err(error) => {
                if count > 1 {
                    notes.push(format!("document {} of {count} was left out: {error}", index + 1));
                }
                first_error.get_or_insert(error);
            }
        }
    }
    if has_other_text {
        notes.push("text around the JSON (banners, warnings, other formats) was skipped".to_owned());
    }
    let mut found: Vec<ForeignRun> = runs.into_iter().map(Run::into_result).collect();
    match found.last_mut() {
        Some(last) => last.notes.append(&mut notes),
        None => return Err(first_error.unwrap_or(ResultError::NoJson)),
    }
    Ok(found)
}

/// A run, with what tells one run from another.
struct Run {
    result: ForeignRun,
    /// Number of cumulative documents that it has so far.
    documents: u64,
    /// When it began, in seconds.
    began_s: u64,
}

impl Run {
    /// Returns true if `next` is a later document of the same run: it began at the same time, and has as many I/Os of the
    /// same jobs, or more.
    fn continues_as(&self, next: &Run) -> bool {
        let (one, other) = (&self.result, &next.result);
        let ios = |run: &ForeignRun| -> Vec<u64> {
            run.jobs.iter().map(|job| job.ops.iter().map(|op| op.io_count).fold(0, u64::saturating_add)).collect()
        };
        let is_same_job =
            |(one, other): (&ForeignJob, &ForeignJob)| one.name == other.name && one.options == other.options;
        let are_same = one.jobs.len() == other.jobs.len() && one.jobs.iter().zip(&other.jobs).all(is_same_job);
        let is_later = || ios(one).iter().zip(ios(other)).all(|(before, after)| *before <= after);
        // Both times are whole seconds.
        self.began_s.abs_diff(next.began_s) <= 1 && one.global_options == other.global_options && are_same && is_later()
    }

    fn into_result(self) -> ForeignRun {
        let mut result = self.result;
        if self.documents > 1 {
            let count = self.documents;
            result.notes.push(format!(
                "{count} results follow each other (`--status-interval`), each cumulative: the last was taken"
            ));
        }
        result
    }
}

/// Reads one document.
fn run(document: &str) -> Result<Run, ResultError> {
    let mut notes = Vec::new();
    let root: Value = serde_json::from_str(document).map_err(ResultError::Damaged)?;
    let version = root.get("fio version").and_then(Value::as_str).ok_or(ResultError::NotFio)?.to_owned();
    if !version.strip_prefix("fio-").is_some_and(|number| number.starts_with("3.")) {
        return Err(ResultError::Version { found: version.chars().take(60).collect() });
    }
    let (key, list) = ["jobs", "client_stats"]
        .into_iter()
        .find_map(|key| Some((key, root.get(key)?.as_array()?)))
        .ok_or_else(|| ResultError::Field { path: "jobs".to_owned() })?;
    if list.is_empty() {
        return Err(ResultError::NoJobs { key });
    }
    let mut jobs = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let at = JsonNode { path: format!("{key}[{index}]"), value };
        let name = at.text("jobname")?;
        // The sum of the other entries, all of which are read.
        if key == "client_stats" && name == "All clients" && list.len() > 1 {
            notes.push("fio's own sum over all clients was skipped".to_owned());
            continue;
        }
        jobs.push(job(&at, name)?);
    }
    let timestamp_unix_s = root.get("timestamp").and_then(Value::as_u64).unwrap_or(0);
    let elapsed_s = list.iter().filter_map(|job| job.get("elapsed")?.as_u64()).max().unwrap_or(0);
    let result = ForeignRun {
        version,
        timestamp_unix_s,
        global_options: options(root.get("global options")),
        jobs,
        notes,
        json: document.to_owned(),
    };
    Ok(Run { result, documents: 1, began_s: timestamp_unix_s.saturating_sub(elapsed_s) })
}

/// Returns the JSON documents of a text that may contain banners, several documents and other formats, and whether it contains
/// any of these others. A document that is cut off is the last one.
fn documents(text: &str) -> (Vec<Result<&str, ResultError>>, bool) {
    // fio's document begins with a brace that ends its line; another tool's may be one line.
    let begin_of = |text: &str| {
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            // A result may be an element of an array.
            let element = line.trim_start_matches(is_between);
            if element.starts_with('{') {
                return Some(at + line.len() - element.len());
            }
            // A script's banner may be in front of it.
            if line.trim_end().ends_with('{') && text[at + line.len()..].trim_start().starts_with("\"fio version\"") {
                return line.rfind('{').map(|brace| at + brace);
            }
            at += line.len();
        }
        None
    };
    let is_other = |text: &str| !text.trim_matches(is_between).is_empty();
    let mut rest = text;
    let mut documents = Vec::new();
    let mut has_other_text = false;
    while let Some(begin) = begin_of(rest) {
        has_other_text |= is_other(&rest[..begin]);
        rest = &rest[begin..];
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<serde::de::IgnoredAny>();
        match stream.next() {
            Some(Ok(_)) => {
                let end = stream.byte_offset();
                documents.push(Ok(rest[..end].trim()));
                rest = &rest[end..];
            }
            Some(Err(error)) => {
                documents.push(Err(ResultError::Damaged(error)));
                rest = "";
            }
            None => break,
        }
    }
    has_other_text |= is_other(rest);
    (documents, has_other_text)
}

/// Returns true for characters around the elements of an array.
fn is_between(character: char) -> bool {
    character.is_whitespace() || "[],".contains(character)
}

/// A value of the document with its path, which errors report.
struct JsonNode<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> JsonNode<'a> {
    fn missing(&self, name: &str) -> ResultError {
        ResultError::Field { path: format!("{}.{name}", self.path) }
    }

    fn child(&self, name: &str) -> Option<JsonNode<'a>> {
        let value = self.value.get(name).filter(|value| value.is_object())?;
        Some(JsonNode { path: format!("{}.{name}", self.path), value })
    }

    fn text(&self, name: &str) -> Result<String, ResultError> {
        self.value.get(name).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| self.missing(name))
    }

    fn count(&self, name: &str) -> Result<u64, ResultError> {
        self.value.get(name).and_then(Value::as_u64).ok_or_else(|| self.missing(name))
    }

    fn number(&self, name: &str) -> Result<f64, ResultError> {
        let number = self.value.get(name).and_then(Value::as_f64);
        number.filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(|| self.missing(name))
    }
}

fn job(at: &JsonNode<'_>, name: String) -> Result<ForeignJob, ResultError> {
    let host = at.value.get("hostname").and_then(Value::as_str).map(str::to_owned);
    let name = host.as_ref().map_or_else(|| name.clone(), |host| format!("{host}: {name}"));
    let mut ops = Vec::new();
    for (key, direction) in
        [("read", ForeignDirection::Read), ("write", ForeignDirection::Write), ("trim", ForeignDirection::Trim)]
    {
        if let Some(node) = at.child(key) {
            ops.extend(transfers(&node, direction)?);
        }
    }
    // With `both` the sum is next to its parts; with `mixed` it is alone.
    if let (true, Some(node)) = (ops.is_empty(), at.child("mixed")) {
        ops.extend(transfers(&node, ForeignDirection::Mixed)?);
    }
    if let Some(node) = at.child("sync") {
        let latencies = latencies(&node, node.count("total_ios").unwrap_or(0))?;
        // fio 3.33 leaves the count at 0 for fdatasync, although it has their latencies.
        let count = latencies.iter().map(|l| l.count).max().unwrap_or(0);
        let io_count = node.count("total_ios").unwrap_or(0).max(count);
        if io_count > 0 {
            ops.push(ForeignOp {
                direction: ForeignDirection::Sync,
                io_count,
                byte_count: 0,
                short_count: 0,
                elapsed_ns: 0,
                bytes_per_s: None,
                ios_per_s: None,
                latencies,
            });
        }
    }
    let cpu = || Some(at.number("usr_cpu").ok()? + at.number("sys_cpu").ok()?);
    // fio 3.1 and 3.7 do not have it: then it is that of the job's longest direction.
    let longest_ms = ops.iter().map(|op: &ForeignOp| op.elapsed_ns as f64 / 1e6).fold(0.0, f64::max);
    let runtime_ms = at.number("job_runtime").ok().or(Some(longest_ms).filter(|ms| *ms > 0.0));
    Ok(ForeignJob {
        name,
        host,
        error: at.value.get("error").and_then(Value::as_i64).ok_or_else(|| at.missing("error"))?,
        options: options(at.value.get("job options")),
        cpu_ns: cpu().zip(runtime_ms).map(|(percent, ms)| percent / 100.0 * ms * 1e6),
        ops,
    })
}

/// Returns the figures of a direction; `None` if it had no I/O.
fn transfers(at: &JsonNode<'_>, direction: ForeignDirection) -> Result<Option<ForeignOp>, ResultError> {
    let io_count = at.count("total_ios")?;
    if io_count == 0 {
        return Ok(None);
    }
    Ok(Some(ForeignOp {
        direction,
        io_count,
        byte_count: at.count("io_bytes")?,
        short_count: at.count("short_ios").unwrap_or(0),
        elapsed_ns: at.count("runtime")?.saturating_mul(1_000_000),
        bytes_per_s: Some(bytes_per_s(at)?),
        ios_per_s: Some(at.number("iops")?),
        latencies: latencies(at, io_count)?,
    }))
}

/// Returns the bandwidth; fio up to 3.6 has it in KiB only, so there it is calculated of bytes and time.
fn bytes_per_s(at: &JsonNode<'_>) -> Result<f64, ResultError> {
    if at.value.get("bw_bytes").is_some() {
        return at.number("bw_bytes");
    }
    match at.count("runtime")? {
        0 => Ok(at.number("bw")? * 1024.0),
        ms => Ok(at.number("io_bytes")? * 1000.0 / ms as f64),
    }
}

/// Returns the latencies of a direction; `io_count` is how many there are, where fio does not state it (up to 3.16).
fn latencies(at: &JsonNode<'_>, io_count: u64) -> Result<Vec<ForeignLatency>, ResultError> {
    let mut found = Vec::new();
    for (key, kind) in [
        ("slat_ns", ForeignLatencyKind::Submission),
        ("clat_ns", ForeignLatencyKind::Completion),
        ("lat_ns", ForeignLatencyKind::Total),
    ] {
        let Some(node) = at.child(key) else { continue };
        let count = match (node.value.get("N"), node.count("max")?) {
            (Some(_), _) => node.count("N")?,
            // (Without a sample all figures are 0.)
            (None, 0) => 0,
            (None, _) => bucket_count(&node).unwrap_or(io_count),
        };
        if count == 0 {
            continue;
        }
        found.push(ForeignLatency {
            kind,
            count,
            min_ns: node.count("min")?,
            max_ns: node.count("max")?,
            mean_ns: node.number("mean")?,
            percentiles: percentiles(&node)?,
            histogram: histogram(&node, count)?,
        });
    }
    Ok(found)
}

fn percentiles(at: &JsonNode<'_>) -> Result<Vec<(f64, u64)>, ResultError> {
    let Some(Value::Object(map)) = at.value.get("percentile") else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (percent, ns) in map {
        let parsed = percent.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p)).zip(ns.as_u64());
        found.push(parsed.ok_or_else(|| at.missing(&format!("percentile.{percent}")))?);
    }
    // fio up to 3.6 fills the list up with such entries.
    found.retain(|entry| *entry != (0.0, 0));
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(found)
}

/// Returns the number of I/Os in the buckets; `None`: there are no buckets.
fn bucket_count(at: &JsonNode<'_>) -> Option<u64> {
    let bins = at.value.get("bins")?.as_object()?;
    let count = bins.values().filter_map(Value::as_u64).fold(0_u64, u64::saturating_add);
    (count > 0).then_some(count)
}

/// Converts fio's buckets to a histogram. They must contain every I/O; otherwise they are incomplete.
fn histogram(at: &JsonNode<'_>, count: u64) -> Result<Option<Histogram>, ResultError> {
    let Some(Value::Object(bins)) = at.value.get("bins") else { return Ok(None) };
    let mut histogram = Histogram::new();
    let mut total = 0u64;
    for (ns, n) in bins {
        let parsed = ns.parse::<u64>().ok().zip(n.as_u64()).filter(|(_, n)| *n > 0);
        let (ns, n) = parsed.ok_or_else(|| at.missing(&format!("bins.{ns}")))?;
        total = total.checked_add(n).filter(|t| *t <= count).ok_or_else(|| at.missing("bins"))?;
        histogram.record_many(ns, n);
    }
    if total != count {
        return Err(at.missing("bins"));
    }
    Ok(Some(histogram))
}

/// Returns options as text; flags have empty text.
fn options(value: Option<&Value>) -> BTreeMap<String, String> {
    let text = |map: &Map<String, Value>| {
        map.iter().map(|(k, v)| (k.clone(), v.as_str().map_or_else(|| v.to_string(), str::to_owned))).collect()
    };
    match value {
        Some(Value::Object(map)) => text(map),
        // With several clients: a list with one object for each client.
        Some(Value::Array(list)) => list.iter().find_map(Value::as_object).map(text).unwrap_or_default(),
        _ => BTreeMap::new(),
    }
}
