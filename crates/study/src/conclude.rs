//! Conclusions from the rows: contrasts next to the published ones, and answers.
//!
//! A contrast pairs the samples of two rows by their round, so influences that change more slowly than a round cancel
//! out. The published side has no interval, so the comparison of the two is one of six categories ([`Agreement`]) and
//! not a number.

use crate::definition::{AnswerKind, ContrastDefinition, Formula, Sum, is_at};
use crate::figures::{counts, statistic_of, values};
use crate::study::Study;
use trueio_model::{
    Agreement, Contrast, DurabilityKind, OpKind, PublishedRatio, RatioHere, Statistic, StudyFigure, StudyMetric,
    StudyRow, units,
};
use trueio_stats::{hodges_lehmann, hodges_lehmann_estimate};

/// Ratios closer to 1 than this are no difference.
const MARGIN: f64 = 0.05;
/// Assumed uncertainty of a ratio without an interval, so that only large differences count.
const ONE_SAMPLE: f64 = 1.5;
/// Ratios closer to each other than this agree.
const TOLERANCE: f64 = 0.10;

/// Every contrast of a mode.
pub(crate) fn contrasts(study: &Study, mode: &str, rows: &[StudyRow]) -> Vec<Contrast> {
    let mut found = Vec::new();
    for definition in &study.definition.contrast {
        if !definition.modes.is_empty() && !definition.modes.iter().any(|name| name == mode) {
            continue;
        }
        let has =
            |row: &&StudyRow, value: &str| row.key.iter().any(|(axis, at)| *axis == definition.axis && at == value);
        for above in rows.iter().filter(|row| has(row, &definition.of) && is_at(&definition.when, &row.key)) {
            let place: Vec<_> = above.key.iter().filter(|(axis, _)| *axis != definition.axis).cloned().collect();
            let instead = |axis: &str, value: &str| match definition.against_at.get(axis) {
                Some(other) => other.clone(),
                None => value.to_owned(),
            };
            let twin = |row: &&StudyRow| {
                let theirs = row.key.iter().filter(|(axis, _)| *axis != definition.axis);
                theirs.cloned().eq(place.iter().map(|(axis, value)| (axis.clone(), instead(axis, value))))
            };
            let Some(below) = rows.iter().filter(|row| has(row, &definition.against)).find(twin) else { continue };
            for op in ops(above, definition.metric) {
                found.push(contrast(study, definition, above, below, place.clone(), op));
            }
        }
    }
    found
}

/// The operations for which a row has a metric: each of several, or the only one as the row's.
fn ops(row: &StudyRow, metric: StudyMetric) -> Vec<Option<OpKind>> {
    let of = |op: &dyn Fn(Option<OpKind>) -> bool| {
        let mut found: Vec<Option<OpKind>> = Vec::new();
        let measured = row.figures.iter().filter(|f| f.metric == metric).map(|f| f.op);
        let published = row.published.iter().filter(|f| f.metric == metric).map(|f| f.op);
        for kind in measured.chain(published).filter(|kind| op(*kind)) {
            if !found.contains(&kind) {
                found.push(kind);
            }
        }
        found
    };
    let single = of(&|kind| kind.is_some());
    // A row with one operation is reported as a whole if the metric has such a figure.
    let whole = of(&|kind| kind.is_none());
    if single.len() > 1 || whole.is_empty() { single } else { whole }
}

fn contrast(
    study: &Study,
    definition: &ContrastDefinition,
    above: &StudyRow,
    below: &StudyRow,
    place: Vec<(String, String)>,
    op: Option<OpKind>,
) -> Contrast {
    let (metric, statistic) = (definition.metric, definition.statistic);
    let ratio = ratio(above, below, op, metric, statistic);
    let published = published_ratios(study, above, below, op, metric, statistic, ratio);
    let mut contrast = Contrast {
        title: definition.title.clone(),
        place,
        op,
        metric,
        statistic,
        axis: definition.axis.clone(),
        of: definition.of.clone(),
        against: [&definition.against]
            .into_iter()
            .chain(definition.against_at.values())
            .cloned()
            .collect::<Vec<_>>()
            .join(" "),
        ratio,
        published,
        sentence: String::new(),
    };
    contrast.sentence = sentence(&contrast, definition.formula);
    contrast
}

/// `above` by `below`, paired by rounds.
fn ratio(
    above: &StudyRow,
    below: &StudyRow,
    op: Option<OpKind>,
    metric: StudyMetric,
    statistic: Statistic,
) -> Option<RatioHere> {
    let (of, against) = (values(&above.samples, op, metric), values(&below.samples, op, metric));
    if statistic != Statistic::Median {
        let plain = |all: &[(u32, f64)]| all.iter().map(|(_, v)| *v).collect::<Vec<_>>();
        let (of, against) = (statistic_of(&plain(&of), statistic)?, statistic_of(&plain(&against), statistic)?);
        return (against.0 > 0.0).then(|| RatioHere { value: of.0 / against.0, interval: None });
    }
    let logs: Vec<f64> = of
        .iter()
        .filter_map(|(round, value)| {
            let (_, other) = against.iter().find(|(twin, _)| twin == round)?;
            (*value > 0.0 && *other > 0.0).then(|| (value / other).ln())
        })
        .collect();
    let value = hodges_lehmann_estimate(&logs)?.exp();
    let interval = hodges_lehmann(&logs, 0.05).map(|i| (i.low.exp(), i.high.exp()));
    Some(RatioHere { value, interval })
}

fn published_ratios(
    study: &Study,
    above: &StudyRow,
    below: &StudyRow,
    op: Option<OpKind>,
    metric: StudyMetric,
    statistic: Statistic,
    here: Option<RatioHere>,
) -> Vec<PublishedRatio> {
    // A source that names no operation speaks of the row's only one.
    let of = |key: &[(String, String)]| {
        let entries = &study.published.entries;
        let is_it = move |entry: &&crate::published::Entry| {
            entry.metric == metric
                && entry.statistic == statistic
                && (entry.op == op || entry.op.is_none() || op.is_none())
        };
        entries.iter().filter(is_it).filter(|entry| entry.is_of(key)).collect::<Vec<_>>()
    };
    let below = of(&below.key);
    of(&above.key)
        .into_iter()
        .filter_map(|entry| {
            let twin = below.iter().find(|other| other.setting == entry.setting && other.op == entry.op)?;
            if twin.value <= 0.0 || entry.value <= 0.0 {
                return None;
            }
            let value = entry.value / twin.value;
            let is_impossible = entry.impossible.is_some() || twin.impossible.is_some();
            // Figures beyond a limit are not compared.
            let agreement = if is_impossible { Agreement::CannotTell } else { agreement(value, here) };
            Some(PublishedRatio { setting: entry.setting.clone(), value, agreement, is_impossible })
        })
        .collect()
}

/// Returns the comparison of our ratio with a published one.
pub(crate) fn agreement(published: f64, here: Option<RatioHere>) -> Agreement {
    let Some(here) = here else { return Agreement::CannotTell };
    let (low, high) = here.interval.unwrap_or((here.value / ONE_SAMPLE, here.value * ONE_SAMPLE));
    let side = |low: f64, high: f64| {
        if low > 1.0 + MARGIN {
            Some(1)
        } else if high < 1.0 / (1.0 + MARGIN) {
            Some(-1)
        } else if low >= 1.0 / (1.0 + MARGIN) && high <= 1.0 + MARGIN {
            Some(0)
        } else {
            None
        }
    };
    let there = side(published, published).unwrap_or(0);
    // A very wide interval contains every ratio, which does not count as agreement.
    let is_narrow = high / low < 1.5;
    if is_narrow && (low / (1.0 + TOLERANCE)..=high * (1.0 + TOLERANCE)).contains(&published) {
        // On the same side, or on none: 1.04 and 0.98 are both no difference.
        return if side(low, high).is_some_and(|ours| ours * there == -1) {
            Agreement::Opposite
        } else {
            Agreement::Agrees
        };
    }
    match (there, side(low, high)) {
        (_, None) => Agreement::CannotTell,
        (0, Some(0)) => Agreement::Agrees,
        (0, Some(_)) => Agreement::OnlyHere,
        (_, Some(0)) => Agreement::NotHere,
        (there, Some(ours)) if there == ours => Agreement::SameDirection,
        _ => Agreement::Opposite,
    }
}

fn sentence(contrast: &Contrast, formula: Option<Formula>) -> String {
    let mut place: Vec<&str> = contrast.place.iter().map(|(_, value)| value.as_str()).collect();
    let op = contrast.op.map(|op| op.to_string());
    place.extend(op.as_deref());
    let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(" ")) };
    let (of, against) = (&contrast.of, &contrast.against);
    let mut text = match contrast.ratio {
        None => format!("{place}{of} against {against} has no figure here"),
        Some(RatioHere { value, interval: None }) => {
            format!(
                "{place}{of} {} {against} here{} ({})",
                times(value),
                by_formula(formula, value),
                of_one(contrast.statistic)
            )
        }
        Some(RatioHere { value, interval: Some((low, high)) }) => {
            format!(
                "{place}{of} {} {against} here{} ({} to {})",
                times(value),
                by_formula(formula, value),
                number(low),
                number(high)
            )
        }
    };
    for published in &contrast.published {
        let by = if published.setting.is_empty() { String::new() } else { format!(" on {}", published.setting) };
        let stands = match published.is_impossible {
            true => "not compared, since a figure of it cannot be",
            false => agreement_words(published.agreement),
        };
        text.push_str(&format!(
            "; published {} times{}{by}: {stands}",
            number(published.value),
            by_formula(formula, published.value),
        ));
    }
    text.push('.');
    text
}

/// The source's own formula of a ratio.
fn by_formula(formula: Option<Formula>, ratio: f64) -> String {
    match formula {
        Some(Formula::PercentSaved) => format!(", {:.2} % faster by the source's formula", (1.0 - ratio) * 100.0),
        None => String::new(),
    }
}

fn of_one(statistic: Statistic) -> &'static str {
    if statistic == Statistic::Median { "too few samples for an interval" } else { "no interval" }
}

fn times(ratio: f64) -> String {
    format!("{} times", number(ratio))
}

fn number(value: f64) -> String {
    units::format_ratio(value)
}

/// An agreement in words.
pub(crate) fn agreement_words(agreement: Agreement) -> &'static str {
    match agreement {
        Agreement::Agrees => "agrees",
        Agreement::SameDirection => "the same direction, by another measure",
        Agreement::Opposite => "the opposite here",
        Agreement::NotHere => "no such difference here",
        Agreement::OnlyHere => "published as none, a difference here",
        Agreement::CannotTell => "cannot tell",
    }
}

/// Every answer of a mode, in sentences.
pub(crate) fn answers(study: &Study, mode: &str, rows: &[StudyRow]) -> Vec<String> {
    let answers = study.definition.answer.iter();
    let answers = answers.filter(|answer| answer.modes.is_empty() || answer.modes.iter().any(|name| name == mode));
    answers
        .flat_map(|answer| match answer.kind {
            AnswerKind::FailedCalls => failed_calls(rows),
            AnswerKind::Durability => durability_answers(&answer.among, rows),
            AnswerKind::BestDurable => best(&answer.among, &answer.by, answer.metric, rows, true),
            AnswerKind::Best => best(&answer.among, &answer.by, answer.metric, rows, false),
        })
        .collect()
}

/// Checks the sums of a study: in the source's figures, and in each row here.
pub(crate) fn sums(study: &Study, rows: &[StudyRow]) -> Vec<String> {
    study.definition.sum.iter().flat_map(|sum| [published_sum(study, sum), sum_here(sum, rows)]).flatten().collect()
}

/// Returns `4.31 µs + 28.1 µs = 32.4 µs, and 32.5 µs is reported (0.28 % apart)` and the difference as a share.
fn added(sum: &Sum, parts: &[f64], whole: f64) -> (String, f64) {
    let total: f64 = parts.iter().sum();
    let off = if whole > 0.0 { (total - whole).abs() / whole } else { 0.0 };
    let shown_parts: Vec<String> = parts.iter().zip(&sum.parts).map(|(value, metric)| shown(*metric, *value)).collect();
    let (total, whole) = (shown(sum.whole, total), shown(sum.whole, whole));
    let off_percent = number(off * 100.0);
    (format!("{} = {total}, and {whole} is reported ({off_percent} % apart)", shown_parts.join(" + ")), off)
}

/// `slat_mean + clat_mean = lat_mean`.
fn equation(sum: &Sum) -> String {
    let parts: Vec<&str> = sum.parts.iter().map(|metric| metric.name()).collect();
    format!("{} = {}", parts.join(" + "), sum.whole.name())
}

fn published_sum(study: &Study, sum: &Sum) -> Option<String> {
    let entries = &study.published.entries;
    let mut equations = Vec::new();
    for whole in entries.iter().filter(|entry| entry.metric == sum.whole && entry.statistic == Statistic::Median) {
        let part = |metric: &StudyMetric| {
            let is_it = |entry: &&crate::published::Entry| {
                entry.metric == *metric
                    && entry.source_place == whole.source_place
                    && entry.statistic == whole.statistic
            };
            entries.iter().find(is_it).map(|entry| entry.value)
        };
        let parts: Option<Vec<f64>> = sum.parts.iter().map(part).collect();
        if let Some(parts) = parts {
            let place: Vec<&str> = whole.source_place.iter().map(|(_, value)| value.as_str()).collect();
            equations.push(format!("{}: {}", place.join(" "), added(sum, &parts, whole.value).0));
        }
    }
    (!equations.is_empty()).then(|| format!("{}, as published: {}.", equation(sum), equations.join("; ")))
}

fn sum_here(sum: &Sum, rows: &[StudyRow]) -> Option<String> {
    let (mut count, mut lacking, mut worst) = (0, 0, None::<(f64, String)>);
    let mut wrong = Vec::new();
    for row in rows {
        for (op, whole) in row.samples.iter().filter(|s| counts(s)).flat_map(|sample| {
            let wholes = sample.figures.iter().filter(|figure| figure.metric == sum.whole);
            wholes.map(move |whole| ((sample, whole.op), whole.value))
        }) {
            let (sample, op) = op;
            let part = |metric: &StudyMetric| {
                sample.figures.iter().find(|f| f.metric == *metric && f.op == op).map(|figure| figure.value)
            };
            let Some(parts) = sum.parts.iter().map(part).collect::<Option<Vec<f64>>>() else {
                lacking += 1;
                continue;
            };
            count += 1;
            let (words, off) = added(sum, &parts, whole);
            let words = format!("{}: {words}", row.name);
            if off > sum.tolerance {
                wrong.push(words.clone());
            }
            if worst.as_ref().is_none_or(|(most, _)| off > *most) {
                worst = Some((off, words));
            }
        }
    }
    let lacks = match lacking {
        0 => String::new(),
        count => format!(" Samples that lack one: {count}; {}.", sum.lacking),
    };
    let tolerance = number(sum.tolerance * 100.0);
    match (worst, wrong.first()) {
        (None, _) => (lacking > 0).then(|| format!("{}, here:{lacks}", equation(sum))),
        (Some((_, words)), None) => Some(format!(
            "{}, here: so within {tolerance} % in all samples that have these figures ({count}); the farthest, {words}.{lacks}",
            equation(sum)
        )),
        (Some(_), Some(first)) => Some(format!(
            "{}, here: NOT so in {} of {count} samples (tolerance {tolerance} %); the first, {first}.{lacks}",
            equation(sum),
            wrong.len()
        )),
    }
}

fn at<'a>(row: &'a StudyRow, axis: &str) -> Option<&'a str> {
    row.key.iter().find(|(name, _)| name == axis).map(|(_, value)| value.as_str())
}

fn figure(row: &StudyRow, metric: StudyMetric) -> Option<&StudyFigure> {
    row.figures.iter().find(|f| f.metric == metric && f.op.is_none() && f.statistic == Statistic::Median)
}

fn is_durable(row: &StudyRow) -> bool {
    row.durability.as_ref().is_some_and(|d| matches!(d.is, DurabilityKind::Shown | DurabilityKind::Declared))
}

/// Returns the best row for each value of `by`, with the rows that do not differ from it significantly.
fn best(among: &str, by: &str, metric: StudyMetric, rows: &[StudyRow], durable: bool) -> Vec<String> {
    let mut values: Vec<&str> = Vec::new();
    for value in rows.iter().filter_map(|row| at(row, by)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let what = if durable { "fastest durable way" } else { "fastest way" };
    let mut out = Vec::new();
    for value in values {
        let here = rows.iter().filter(|row| at(row, by) == Some(value) && (!durable || is_durable(row)));
        let mut ranked: Vec<(&StudyRow, &StudyFigure)> =
            here.filter_map(|row| Some((row, figure(row, metric)?))).collect();
        let better = if metric.is_more_better() == Some(false) { 1.0 } else { -1.0 };
        ranked.sort_by(|a, b| (better * a.1.value).total_cmp(&(better * b.1.value)));
        let Some((first, best)) = ranked.first() else {
            let why = if durable { "no row is known to be durable" } else { "no row has a figure" };
            out.push(format!("{by} {value}: {why}."));
            continue;
        };
        let overlaps = |other: &StudyFigure| match (best.interval, other.interval) {
            (Some(a), Some(b)) => a.0 <= b.1 && b.0 <= a.1,
            _ => (other.value / best.value).ln().abs() < MARGIN,
        };
        // Its value of the axis, and of all further axes: a writer alone is no way if its block size varies too.
        let way = |row: &StudyRow| {
            let first = row.key.iter().filter(|(axis, _)| axis == among);
            let further = row.key.iter().filter(|(axis, _)| axis != among && axis != by);
            first.chain(further).map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" ")
        };
        let ties: Vec<String> = ranked[1..].iter().filter(|(_, f)| overlaps(f)).map(|(row, _)| way(row)).collect();
        let ties = match ties.len() {
            0 => String::new(),
            1..=4 => format!("; no clear difference to {}", ties.join(", ")),
            n => format!("; no clear difference to {} and {} more", ties[..3].join(", "), n - 3),
        };
        let name = way(first);
        out.push(format!("{by} {value}: the {what} is {name}, {}{ties}.", shown(metric, best.value)));
    }
    out
}

/// For rows whose calls failed: the figures that a loop without a check of return values would report.
fn failed_calls(rows: &[StudyRow]) -> Vec<String> {
    let mut out = Vec::new();
    for row in rows {
        let Some(sample) = row.samples.iter().find(|sample| sample.error_count > 0) else { continue };
        let elapsed = sample.figures.iter().find(|f| f.metric == StudyMetric::Elapsed).map(|f| f.value);
        let took = elapsed.map_or_else(|| "unknown time".to_owned(), |s| shown(StudyMetric::Elapsed, s));
        let calls = sample.io_count + sample.error_count;
        let each = elapsed
            .map_or_else(String::new, |s| format!(", {} a call", shown(StudyMetric::Elapsed, s / calls.max(1) as f64)));
        out.push(format!(
            "{}: {} of {} calls failed, in {took}{each}. A loop that ignores their return values reports that time \
             as if all data had been transferred.",
            row.name,
            units::format_count(sample.error_count),
            units::format_count(calls),
        ));
    }
    if out.is_empty() {
        out.push("No call failed: this kernel and disk accept the buffer.".to_owned());
    }
    out
}

/// Which values of an axis reached stable storage.
fn durability_answers(among: &str, rows: &[StudyRow]) -> Vec<String> {
    let kinds = [
        (DurabilityKind::Shown, "Reached stable storage, as observed at the disk"),
        (DurabilityKind::Declared, "Reached stable storage, as declared by the disk"),
        (DurabilityKind::NotAsked, "Did not request it (their writes may be lost on power failure)"),
        (DurabilityKind::Refuted, "Requested it, and the disk shows the contrary"),
        (DurabilityKind::NotShown, "Requested it, and it could not be shown"),
    ];
    let mut out = Vec::new();
    for (kind, title) in kinds {
        let mut names: Vec<(&str, usize, usize)> = Vec::new();
        for row in rows.iter().filter(|row| row.durability.is_some()) {
            let Some(name) = at(row, among) else { continue };
            let is = usize::from(row.durability.as_ref().is_some_and(|d| d.is == kind));
            match names.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, count, all)) => (*count, *all) = (*count + is, *all + 1),
                None => names.push((name, is, 1)),
            }
        }
        let listed: Vec<String> = names
            .into_iter()
            .filter(|(_, count, _)| *count > 0)
            .map(
                |(name, count, all)| {
                    if count == all { name.to_owned() } else { format!("{name} ({count} of {all} rows)") }
                },
            )
            .collect();
        if !listed.is_empty() {
            out.push(format!("{title}: {}.", listed.join(", ")));
        }
    }
    out
}

/// A figure with its unit.
pub(crate) fn shown(metric: StudyMetric, value: f64) -> String {
    match metric {
        StudyMetric::Bandwidth => units::format_bandwidth(value),
        StudyMetric::Iops => format!("{} IOPS", number(value)),
        StudyMetric::DiskBusy => format!("{} %", number(value * 100.0)),
        StudyMetric::Flushes | StudyMetric::Errors => number(value),
        _ => units::format_duration_ns((value * 1e9) as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::{EvidenceLevel, Outcome, SampleFigure, StudySample, Verdict};

    /// A source that reports 4 + 28 = 33, and a study that requires sums within one percent.
    fn study() -> Study {
        let definition = r#"
            format = 1
            title = "t"
            question = "q"
            source = { title = "s", by = "b", date = "d", setting = "m" }
            [published]
            keys = { engine = "engine" }
            figure = [
                { column = "slat", metric = "slat_mean", unit = "us" },
                { column = "clat", metric = "clat_mean", unit = "us" },
                { column = "lat", metric = "lat_mean", unit = "us" },
                { column = "rate", metric = "iops", unit = "1/s" },
            ]
            [[axis]]
            key = "engine"
            value = [{ name = "libaio" }, { name = "sync" }]
            [[axis]]
            key = "under"
            value = [{ name = "nothing" }, { name = "strace" }]
            [mode.faithful]
            title = "t"
            place = 1
            [[contrast]]
            title = "libaio alone against sync under strace"
            axis = "engine"
            of = "libaio"
            against = "sync"
            against_at = { under = "strace" }
            metric = "iops"
            when = { under = "nothing" }
            [[sum]]
            whole = "lat_mean"
            parts = ["slat_mean", "clat_mean"]
            tolerance = 0.01
            lacking = "its engine blocks"
        "#;
        let published = "engine,slat,clat,lat,rate\nlibaio,4,28,33,30000\nsync,,56,56.2,17500\n";
        Study::read("t", "t", definition, published).expect("a study")
    }

    fn row(engine: &str, under: &str, figures: &[(StudyMetric, f64)]) -> StudyRow {
        let figures = figures.iter().map(|(metric, value)| {
            let op = (*metric != StudyMetric::Iops).then_some(OpKind::Write);
            SampleFigure { op, metric: *metric, value: *value }
        });
        let sample = StudySample {
            place: 0,
            round: 0,
            begin_ns: 0,
            figures: figures.collect(),
            io_count: 1,
            byte_count: 4096,
            sync_count: 0,
            verdict: Verdict::Supported,
            level: EvidenceLevel::E0,
            objections: Vec::new(),
            flush_count: None,
            error_count: 0,
            conditions: Vec::new(),
            outcome: Outcome::Complete,
        };
        StudyRow {
            name: format!("{engine} {under}"),
            key: vec![("engine".to_owned(), engine.to_owned()), ("under".to_owned(), under.to_owned())],
            shape: String::new(),
            files: Vec::new(),
            figures: crate::figures::figures(std::slice::from_ref(&sample), &[]),
            samples: vec![sample],
            published: Vec::new(),
            verdict: Some(Verdict::Supported),
            checks: Vec::new(),
            durability: None,
            syscalls: None,
            failure: None,
            as_published: None,
        }
    }

    #[test]
    fn sums_that_hold_are_reported_with_the_largest_difference_and_missing_parts() {
        let (slat, clat, lat) = (StudyMetric::SlatMean, StudyMetric::ClatMean, StudyMetric::LatMean);
        let good = row("libaio", "nothing", &[(slat, 4e-6), (clat, 16e-6), (lat, 20.1e-6)]);
        let blocking = row("sync", "strace", &[(clat, 50e-6), (lat, 50e-6)]);
        let found = sums(&study(), &[good.clone(), blocking]);
        assert_eq!(
            found,
            [
                "slat_mean + clat_mean = lat_mean, as published: libaio: 4.00 µs + 28.0 µs = 32.0 µs, and 33.0 µs is \
                 reported (3.03 % apart).",
                "slat_mean + clat_mean = lat_mean, here: so within 1.00 % in all samples that have these figures (1); \
                 the farthest, libaio nothing: 4.00 µs + 16.0 µs = 20.0 µs, and 20.1 µs is reported (0.50 % apart). \
                 Samples that lack one: 1; its engine blocks.",
            ]
        );
        let bad = row("libaio", "strace", &[(slat, 4e-6), (clat, 16e-6), (lat, 30e-6)]);
        let found = sums(&study(), &[good, bad]);
        let expected = "here: NOT so in 1 of 2 samples (tolerance 1.00 %); the first, libaio strace: ";
        assert!(found[1].contains(expected), "{found:?}");
    }

    #[test]
    fn a_contrast_can_cross_another_axis_below_the_line() {
        let rate = |engine, under, iops| row(engine, under, &[(StudyMetric::Iops, iops)]);
        let rows = [
            rate("libaio", "nothing", 40e3),
            rate("libaio", "strace", 10e3),
            rate("sync", "nothing", 38e3),
            rate("sync", "strace", 20e3),
        ];
        let found = contrasts(&study(), "faithful", &rows);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].against, "sync strace");
        assert!((found[0].ratio.expect("a ratio").value - 2.0).abs() < 1e-9);
        assert!((found[0].published[0].value - 30.0 / 17.5).abs() < 1e-9);
    }

    /// Rows of two axes with a bandwidth and the durability of their writes.
    fn durable_row(block: &str, method: &str, value: f64, spread: f64, is: Option<DurabilityKind>) -> StudyRow {
        let mut made = row(method, block, &[]);
        made.key = vec![("block".to_owned(), block.to_owned()), ("method".to_owned(), method.to_owned())];
        made.figures = vec![StudyFigure {
            op: None,
            metric: StudyMetric::Bandwidth,
            statistic: Statistic::Median,
            value,
            interval: Some((value / spread, value * spread)),
            samples: 6,
        }];
        made.durability = is.map(|is| trueio_model::Durability { is, source: String::new() });
        made
    }

    #[test]
    fn the_fastest_durable_way_is_reported_for_each_block_size_with_its_ties() {
        use DurabilityKind::{Declared, NotAsked, NotShown, Refuted, Shown};
        let rows = [
            durable_row("4k", "BUFFERED", 4e9, 1.01, Some(NotAsked)),
            durable_row("4k", "FSYNC", 1e6, 1.01, Some(Shown)),
            durable_row("4k", "O_SYNC", 2e6, 1.01, Some(Shown)),
            durable_row("4k", "O_DSYNC", 2.02e6, 1.01, Some(Declared)),
            durable_row("4k", "LIAR", 9e6, 1.01, Some(Refuted)),
            durable_row("64k", "FSYNC", 8e6, 1.01, Some(Shown)),
            durable_row("64k", "O_SYNC", 5e6, 1.01, Some(NotShown)),
            durable_row("1m", "FSYNC", 8e6, 1.01, Some(NotShown)),
        ];
        let durable = best("method", "block", StudyMetric::Bandwidth, &rows, true);
        assert_eq!(
            durable,
            [
                "block 4k: the fastest durable way is O_DSYNC, 1.93 MiB/s; no clear difference to O_SYNC.",
                "block 64k: the fastest durable way is FSYNC, 7.63 MiB/s.",
                "block 1m: no row is known to be durable.",
            ]
        );
        let all = best("method", "block", StudyMetric::Bandwidth, &rows, false);
        assert!(all[0].starts_with("block 4k: the fastest way is BUFFERED, "), "{all:?}");
        // Of times the least is the best.
        let mut times = rows[1..3].to_vec();
        for row in &mut times {
            row.figures[0].metric = StudyMetric::Elapsed;
            row.figures[0].value /= 1e6;
        }
        let shortest = best("method", "block", StudyMetric::Elapsed, &times, true);
        assert!(shortest[0].starts_with("block 4k: the fastest durable way is FSYNC, 1.00 s"), "{shortest:?}");
    }

    /// The source prints what it computes: the percentages of `cache-bypass` come out of its own seconds by our formula.
    #[test]
    fn the_percent_formula_gives_what_the_source_printed() {
        let embedded = crate::EMBEDDED.iter().find(|study| study.name == "cache-bypass").expect("it is there");
        let mut table = csv::Reader::from_reader(embedded.published.as_bytes());
        let head = table.headers().expect("a head").clone();
        let column = |name: &str| head.iter().position(|other| other == name).expect("a column");
        let mut count = 0;
        for record in table.records().map(|record| record.expect("a record")) {
            let number = |name: &str| record[column(name)].parse::<f64>().expect("a number");
            let sentence = by_formula(Some(Formula::PercentSaved), number("direct_s") / number("normal_s"));
            let printed = number("direct_faster_percent_as_printed");
            assert_eq!(sentence, format!(", {printed:.2} % faster by the source's formula"), "{record:?}");
            count += 1;
        }
        assert_eq!(count, 10);
        assert_eq!(by_formula(None, 0.5), "");
    }

    fn here(value: f64, low: f64, high: f64) -> Option<RatioHere> {
        Some(RatioHere { value, interval: Some((low, high)) })
    }

    #[test]
    fn each_way_of_standing_to_a_published_ratio_has_its_word() {
        for (published, ours, expected) in [
            (3.0, here(3.1, 2.9, 3.3), Agreement::Agrees),
            (1.00, here(1.01, 0.99, 1.03), Agreement::Agrees),
            (3.0, here(8.0, 7.0, 9.0), Agreement::SameDirection),
            (0.5, here(0.9, 0.85, 0.93), Agreement::SameDirection),
            (3.0, here(0.5, 0.4, 0.6), Agreement::Opposite),
            (3.0, here(1.0, 0.98, 1.02), Agreement::NotHere),
            (1.0, here(3.0, 2.5, 3.5), Agreement::OnlyHere),
            (3.0, here(1.2, 0.6, 2.4), Agreement::CannotTell),
            (1.0, here(1.0, 0.5, 2.0), Agreement::CannotTell),
            (3.0, None, Agreement::CannotTell),
        ] {
            assert_eq!(agreement(published, ours), expected, "published {published}, here {ours:?}");
        }
    }

    #[test]
    fn one_sample_shows_only_large_differences() {
        let one = |value| Some(RatioHere { value, interval: None });
        assert_eq!(agreement(3.0, one(3.0)), Agreement::SameDirection);
        assert_eq!(agreement(3.0, one(0.2)), Agreement::Opposite);
        assert_eq!(agreement(1.0, one(1.2)), Agreement::CannotTell);
        assert_eq!(agreement(3.0, one(1.0)), Agreement::CannotTell);
    }

    #[test]
    fn an_interval_on_the_border_of_none_is_not_called_the_opposite() {
        // 1.04 is no difference; 0.93 to 0.97 is a small one the other way round.
        assert_ne!(agreement(1.04, here(0.95, 0.93, 0.97)), Agreement::Opposite);
    }
}
