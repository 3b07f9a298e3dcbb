//! Latencies as an HdrHistogram log (`.hlog`), for plotters and scripts of that format.
//!
//! Each histogram becomes one interval line in the V2 encoding, deflated and in base64, as the Java
//! `HistogramLogReader` expects it. Values are nanoseconds; the line's third field, intended for people, is
//! the maximum in milliseconds. Each latency is written as its bucket's upper edge, never above the exact
//! maximum, with three significant digits: at most 1/128 + 1/1000 above the true value. Overflows are written
//! as the maximum.
//!
//! Source: HdrHistogram, `HistogramLogWriter` and `V2` encoding (the `hdrhistogram` crate's `serialization`
//! module writes both).

use crate::verdicts::mark;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::time::{Duration, SystemTime};
use trueio_model::{AnsweredPhase, CheckOutcome, Comparison, Histogram, Objection, PhaseRecord, RunRecord, parse_utc};

/// A histogram that the format cannot represent.
#[derive(Debug, thiserror::Error)]
#[error("`{tag}` cannot be written as an HdrHistogram: {reason}")]
pub struct HdrError {
    /// The histogram's tag.
    pub tag: String,
    /// The encoder's error.
    pub reason: String,
}

/// Nanoseconds per unit of a line's maximum.
const NS_PER_MS: f64 = 1e6;

/// Formats one histogram as a log of one line.
///
/// `tag` names it (commas and blanks become `_`; empty: no tag). The interval began `begin_ns` after
/// `started_unix_s` (seconds since 1970) and lasted `elapsed_ns`.
///
/// # Errors
/// [`HdrError`] if a count is beyond 2^63.
pub fn hdr(
    histogram: &Histogram,
    tag: &str,
    started_unix_s: u64,
    begin_ns: u64,
    elapsed_ns: u64,
) -> Result<String, HdrError> {
    write_log(started_unix_s, &[], [(histogram, tag.to_owned(), begin_ns, elapsed_ns)])
}

/// Formats all latencies of a record as one log: a line for each phase, job, operation and kind of latency
/// with values, tagged `job:operation:lat` (also `slat`, `clat`, `lat-from-intended`). A read of `randread 4k
/// q32` is `randread_4k_q32:read:lat`. A phase whose figures are withheld is omitted; a comment gives the reason.
///
/// # Errors
/// [`HdrError`] if a count is beyond 2^63.
pub fn hdr_log(record: &RunRecord) -> Result<String, HdrError> {
    let mut lines = Vec::new();
    let contradicts = |phase: &&PhaseRecord| !mark(phase).is_shown();
    for phase in record.phases.iter().filter(|phase| !contradicts(phase)) {
        for job in &phase.jobs {
            for op in &job.ops {
                let latency = &op.latency;
                for (name, histogram) in [
                    ("slat", &latency.submission),
                    ("clat", &latency.completion),
                    ("lat", &latency.total),
                    ("lat-from-intended", &latency.from_intended),
                ] {
                    if !histogram.is_empty() {
                        let tag = format!("{}:{}:{name}", job.name, op.op);
                        lines.push((histogram, tag, phase.begin_ns, job.elapsed_ns));
                    }
                }
            }
        }
    }
    let mut comments = vec![format!("trueio record {}, {}; values in nanoseconds", record.id, record.started_at)];
    for phase in record.phases.iter().filter(contradicts) {
        let judgement = AnsweredPhase::of(phase);
        let contradicts = |found: &&Objection| found.outcome == CheckOutcome::Contradicted && !found.is_accepted;
        let found = judgement.objections.iter().filter(contradicts);
        let reasons: Vec<String> = found.map(|found| format!("{}: {}", found.check, found.sentence)).collect();
        comments.push(format!("{} is left out, {} by {}", phase.name, judgement.verdict.word(), reasons.join(" ")));
    }
    write_log(record.started_unix_s, &comments, lines)
}

/// Formats the latencies of a comparison's sides as one log: a line for each part and side, tagged with their names.
///
/// # Errors
/// [`HdrError`] if a count is beyond 2^63.
pub(crate) fn comparison_hdr_log(comparison: &Comparison) -> Result<String, HdrError> {
    let comparison = &*crate::comparison::shown(comparison);
    let started_unix_s = parse_utc(&comparison.started_at).unwrap_or(0);
    let lines = comparison.parts.iter().flat_map(|part| {
        let sides = part.sides.iter().filter(|side| !side.latency.is_empty());
        sides.map(move |side| {
            let name = if part.name.is_empty() { side.name.clone() } else { format!("{}:{}", part.name, side.name) };
            let begin_ns = side.slices.iter().map(|slice| slice.begin_ns).min().unwrap_or(0);
            (&side.latency, format!("{name}:lat"), begin_ns, 0)
        })
    });
    let comment = format!("trueio comparison, {}; values in nanoseconds", comparison.started_at);
    write_log(started_unix_s, &[comment], lines)
}

fn write_log<'a>(
    started_unix_s: u64,
    comments: &[String],
    lines: impl IntoIterator<Item = (&'a Histogram, String, u64, u64)>,
) -> Result<String, HdrError> {
    let fail = |tag: &str, reason: String| HdrError { tag: tag.to_owned(), reason };
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("[Histogram log format version 1.3]");
    for comment in comments {
        builder.add_comment(&crate::text::clean(comment));
    }
    if let Some(start) = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(started_unix_s)) {
        // Times of lines are seconds since the run began.
        builder.with_start_time(start).with_base_time(start);
    }
    builder.with_max_value_divisor(NS_PER_MS);
    let mut out = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut writer = builder.begin_log_with(&mut out, &mut serializer).map_err(|e| fail("header", e.to_string()))?;
    for (histogram, tag, begin_ns, elapsed_ns) in lines {
        let converted = convert(histogram).map_err(|reason| fail(&tag, reason))?;
        let safe: String =
            tag.chars().map(|c| if c == ',' || c.is_whitespace() || c.is_control() { '_' } else { c }).collect();
        writer
            .write_histogram(
                &converted,
                Duration::from_nanos(begin_ns),
                Duration::from_nanos(elapsed_ns),
                Tag::new(&safe).filter(|_| !safe.is_empty()),
            )
            .map_err(|e| fail(&tag, e.to_string()))?;
    }
    drop(writer);
    // The header, the tags and base64 are all UTF-8.
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Returns the same latencies, each at its bucket's upper edge.
fn convert(histogram: &Histogram) -> Result<hdrhistogram::Histogram<u64>, String> {
    let max_ns = histogram.max_ns().unwrap_or(0);
    let mut converted = hdrhistogram::Histogram::<u64>::new_with_max(max_ns.max(2), 3).map_err(|e| format!("{e:?}"))?;
    for (_, high, count) in histogram.buckets() {
        converted.record_n(high.min(max_ns), count).map_err(|e| format!("{e:?}"))?;
    }
    if histogram.overflow_count() > 0 {
        converted.record_n(max_ns, histogram.overflow_count()).map_err(|e| format!("{e:?}"))?;
    }
    Ok(converted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use trueio_model::MAX_TRACKABLE_NS;

    /// Parses the intervals of a log: tag, begin, duration, histogram.
    fn read_back(log: &str) -> Vec<(Option<String>, Duration, Duration, hdrhistogram::Histogram<u64>)> {
        IntervalLogIterator::new(log.as_bytes())
            .filter_map(|entry| match entry.unwrap() {
                LogEntry::Interval(interval) => {
                    let bytes = base64::engine::general_purpose::STANDARD.decode(interval.encoded_histogram()).unwrap();
                    Some((
                        interval.tag().map(|t| t.as_str().to_owned()),
                        interval.start_timestamp(),
                        interval.duration(),
                        Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap(),
                    ))
                }
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_log_read_back_has_the_same_count_and_quantiles_within_a_bucket() {
        let mut histogram = Histogram::new();
        let mut value = 100.0f64;
        while value < 1e10 {
            histogram.record_many(value as u64, 1 + (1e7 / value) as u64);
            value *= 1.003;
        }
        let log = hdr(&histogram, "a job, with a comma", 1_795_206_512, 4_100_000_000, 6_000_412_331).unwrap();
        let intervals = read_back(&log);
        let [(tag, begin, duration, found)] = intervals.as_slice() else { panic!("one line: {log}") };
        assert_eq!(tag.as_deref(), Some("a_job__with_a_comma"));
        assert_eq!((begin.as_millis(), duration.as_millis()), (4_100, 6_000));
        assert_eq!(found.len(), histogram.count());
        for q in [0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0] {
            let rank = ((q * histogram.count() as f64).ceil() as u64).max(1);
            let ours = histogram.value_at_rank(rank).unwrap() as f64;
            let theirs = found.value_at_quantile(q) as f64;
            assert!((theirs - ours).abs() <= ours / 128.0 + ours / 1000.0, "q {q}: {theirs} for {ours}");
        }
        let highest = histogram.max_ns().unwrap();
        assert!(found.max() >= highest && found.max() - highest <= highest / 1000);
    }

    #[test]
    fn zero_nanoseconds_overflows_and_an_empty_histogram_survive() {
        let mut histogram = Histogram::new();
        histogram.record_many(0, 3);
        histogram.record_many(MAX_TRACKABLE_NS * 2, 2);
        histogram.record(u64::MAX / 2);
        let found = &read_back(&hdr(&histogram, "", 0, 0, 0).unwrap())[0];
        assert_eq!((found.0.as_deref(), found.3.len(), found.3.min()), (None, 6, 0));
        assert!(found.3.max() >= u64::MAX / 2);
        assert_eq!(read_back(&hdr(&Histogram::new(), "x", 0, 0, 0).unwrap())[0].3.len(), 0);
    }

    #[test]
    fn a_count_that_the_format_cannot_represent_is_an_error_with_its_tag() {
        let mut histogram = Histogram::new();
        histogram.record_many(5, u64::MAX / 2 + 10);
        let error = hdr(&histogram, "huge", u64::MAX, u64::MAX, u64::MAX).unwrap_err();
        assert!(error.to_string().contains("`huge`"), "{error}");
    }
}
