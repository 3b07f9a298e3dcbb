//! Contrasts of rows next to the published ones, and sums of figures.
//!
//! A contrast pairs the samples of two rows by their round, so influences that change more slowly than a round cancel
//! out. The published side has no interval, so the comparison of the two is one of six categories ([`Agreement`]) and
//! not a number.
//!
//! A claim needs an interval: from six rounds on that of the signed-rank test, of five the range of their ratios (which
//! misses the median in 6 % of cases). Fewer rounds give a figure and no claim. Rounds in which a check doubts a sample
//! decide nothing, unless the study expects the doubt of that row (`accepts`).

use crate::definition::{ContrastDefinition, Formula, Sum, is_at};
use crate::figures::{counts, flaws, statistic_of, values};
use crate::study::Study;
use trueio_model::{
    Agreement, Contrast, OpKind, PublishedRatio, RatioHere, Statistic, StudyMetric, StudyRow, units, value_label,
};
use trueio_stats::{hodges_lehmann, hodges_lehmann_estimate};

/// Ratios closer to 1 than this are no difference.
const MARGIN: f64 = 0.05;
/// Fewest rounds for a claim.
pub(crate) const ROUNDS_MIN: usize = 5;
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
    let (ratio, lacks) = ratio(above, below, op, metric, statistic);
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
    contrast.sentence = sentence(&contrast, definition.formula, lacks.as_deref());
    contrast
}

/// `above` by `below`, paired by rounds, and why it has no interval, if it has none.
pub(crate) fn ratio(
    above: &StudyRow,
    below: &StudyRow,
    op: Option<OpKind>,
    metric: StudyMetric,
    statistic: Statistic,
) -> (Option<RatioHere>, Option<String>) {
    let (of, against) = (values(&above.samples, op, metric), values(&below.samples, op, metric));
    if statistic != Statistic::Median {
        let plain = |all: &[(u32, f64)]| all.iter().map(|(_, v)| *v).collect::<Vec<_>>();
        let value = |all: &[(u32, f64)]| statistic_of(&plain(all), statistic).map(|(value, _)| value);
        let ratio = value(&of).zip(value(&against)).filter(|(_, against)| *against > 0.0);
        let ratio = ratio.map(|(of, against)| RatioHere { value: of / against, interval: None });
        return (ratio, Some(format!("{} has no interval", statistic.name())));
    }
    let pairs: Vec<(u32, f64)> = of
        .iter()
        .filter_map(|(round, value)| {
            let (_, other) = against.iter().find(|(twin, _)| twin == round)?;
            (*value > 0.0 && *other > 0.0).then(|| (*round, (value / other).ln()))
        })
        .collect();
    let flaws = flaws([above, below]);
    let sound: Vec<f64> =
        pairs.iter().filter(|pair| !flaws.rounds.contains(&pair.0)).map(|(_, log_ratio)| *log_ratio).collect();
    let all: Vec<f64> = pairs.iter().map(|(_, log_ratio)| *log_ratio).collect();
    let decides = if sound.len() < ROUNDS_MIN { &all } else { &sound };
    let Some(value) = hodges_lehmann_estimate(decides).map(f64::exp) else { return (None, None) };
    if sound.len() >= ROUNDS_MIN {
        return (Some(RatioHere { value, interval: claim(&sound) }), None);
    }
    let lacks = if all.len() >= ROUNDS_MIN {
        let (doubted, all) = (all.len() - sound.len(), all.len());
        format!("no claim: {doubted} of {all} rounds are doubted by {}; doubted rounds decide nothing", flaws.checks)
    } else {
        format!(
            "{} and a claim needs {ROUNDS_MIN}",
            if all.len() == 1 { "one round,".to_owned() } else { format!("{} rounds,", all.len()) }
        )
    };
    (Some(RatioHere { value, interval: None }), Some(lacks))
}

/// The interval of at least [`ROUNDS_MIN`] ratios or values, from their logarithms.
pub(crate) fn claim(logs: &[f64]) -> Option<(f64, f64)> {
    if logs.len() < ROUNDS_MIN {
        return None;
    }
    if let Some(interval) = hodges_lehmann(logs, 0.05) {
        return Some((interval.low.exp(), interval.high.exp()));
    }
    let (low, high) = logs.iter().fold((f64::MAX, f64::MIN), |(low, high), log| (low.min(*log), high.max(*log)));
    Some((low.exp(), high.exp()))
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
            let impossible: Vec<_> = [entry, twin].into_iter().filter_map(|entry| entry.impossible.as_ref()).collect();
            let is_impossible = !impossible.is_empty();
            let is_certain = impossible.iter().any(|one| one.assumption.is_none());
            let assumption = impossible.iter().find_map(|one| one.assumption.clone()).filter(|_| !is_certain);
            // Figures beyond a limit are not compared.
            let agreement = if is_impossible { Agreement::CannotTell } else { agreement(value, here) };
            Some(PublishedRatio { setting: entry.setting.clone(), value, agreement, is_impossible, assumption })
        })
        .collect()
}

/// Returns the comparison of our ratio with a published one.
pub(crate) fn agreement(published: f64, here: Option<RatioHere>) -> Agreement {
    let Some((low, high)) = here.and_then(|here| here.interval) else { return Agreement::CannotTell };
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

fn sentence(contrast: &Contrast, formula: Option<Formula>, lacks: Option<&str>) -> String {
    let mut place: Vec<String> = contrast.place.iter().map(|(axis, value)| value_label(axis, value)).collect();
    place.extend(contrast.op.map(|op| op.to_string()));
    let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(" ")) };
    let (of, against) = (&contrast.of, &contrast.against);
    let mut text = match contrast.ratio {
        None => format!("{place}{of} against {against} has no figure here"),
        Some(RatioHere { value, interval: None }) => {
            format!(
                "{place}{of} {} {against} here{} ({})",
                times(value),
                by_formula(formula, value),
                lacks.unwrap_or("no interval")
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
        let stands = match (&published.assumption, published.is_impossible) {
            (Some(assumption), _) => format!("not compared, since a figure of it cannot be if it is of {assumption}"),
            (None, true) => "not compared, since a figure of it cannot be".to_owned(),
            (None, false) => agreement_words(published.agreement).to_owned(),
        };
        text.push_str(&format!(
            ". Published {} times{}{by}: {stands}",
            number(published.value),
            by_formula(formula, published.value),
        ));
    }
    text.push('.');
    text
}

/// The source's own formula of a ratio; empty for one above 2, of which it makes a saving that says nothing (`-1410.76 % faster`).
fn by_formula(formula: Option<Formula>, ratio: f64) -> String {
    match formula {
        Some(Formula::PercentSaved) if ratio <= 2.0 => {
            format!(", {:.2} % faster by the source's formula", (1.0 - ratio) * 100.0)
        }
        _ => String::new(),
    }
}

fn times(ratio: f64) -> String {
    format!("{} times", number(ratio))
}

pub(crate) fn number(value: f64) -> String {
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

/// A figure with its unit.
pub(crate) fn shown(metric: StudyMetric, value: f64) -> String {
    match metric {
        StudyMetric::Bandwidth => units::format_bandwidth(value),
        StudyMetric::Iops => format!("{} IOPS", number(value)),
        StudyMetric::DiskBusy => format!("{} %", number(value * 100.0)),
        StudyMetric::Flushes | StudyMetric::Errors | StudyMetric::DiskRequests | StudyMetric::DiskMerges => {
            number(value)
        }
        _ => units::format_duration_ns((value * 1e9) as u64),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::figures::tests::check;
    use trueio_model::{EvidenceLevel, Outcome, SampleFigure, StudySample, Verdict};

    /// A source that reports 4 + 28 = 33, and a study that requires sums within one percent.
    pub(crate) fn study() -> Study {
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

    pub(crate) fn row(engine: &str, under: &str, figures: &[(StudyMetric, f64)]) -> StudyRow {
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

    /// The source prints what it computes: the percentages of `cache-bypass` come out of its own seconds by our formula.
    #[test]
    fn the_percent_formula_gives_what_the_source_printed() {
        let embedded = crate::EMBEDDED.iter().find(|study| study.name == "cache-bypass").expect("it is there");
        let mut table = csv::Reader::from_reader(embedded.published.as_bytes());
        let head = table.headers().expect("a head").clone();
        let column = |name: &str| head.iter().position(|other| other == name).expect("a column");
        let mut count = 0;
        for record in table.records().map(|record| record.expect("a record")) {
            let number = |name: &str| record[column(name)].trim_end_matches('*').parse::<f64>().expect("a number");
            let sentence = by_formula(Some(Formula::PercentSaved), number("direct_s") / number("normal_s"));
            let printed = number("direct_faster_percent_as_printed");
            assert_eq!(sentence, format!(", {printed:.2} % faster by the source's formula"), "{record:?}");
            count += 1;
        }
        assert_eq!(count, 10);
        assert_eq!(by_formula(None, 0.5), "");
        assert_eq!(by_formula(Some(Formula::PercentSaved), 15.1), "");
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
    fn a_ratio_without_an_interval_claims_nothing_however_large() {
        let one = |value| Some(RatioHere { value, interval: None });
        for (published, here) in [(3.0, 3.0), (3.0, 0.2), (1.0, 5.46), (3.0, 1.0)] {
            assert_eq!(agreement(published, one(here)), Agreement::CannotTell);
        }
    }

    /// Rows whose rates differ by 5.46, round by round; `doubted` rounds of the first were disturbed by others' I/O.
    pub(crate) fn pair(rounds: u32, doubted: u32, is_accepted: bool) -> [StudyRow; 2] {
        let of = |engine: &str, under: &str, iops: f64, doubted: u32| {
            let mut made = row(engine, under, &[(StudyMetric::Iops, iops)]);
            made.samples = (0..rounds)
                .map(|round| {
                    let mut sample = made.samples[0].clone();
                    sample.round = round;
                    sample.figures[0].value = iops * (1.0 + 0.01 * f64::from(round));
                    if round < doubted {
                        sample.verdict = Verdict::Suspect;
                        let doubt = check("foreign_io", trueio_model::CheckOutcome::Suspect);
                        sample.objections.push(trueio_model::Check { is_accepted, ..doubt });
                    }
                    sample
                })
                .collect();
            made
        };
        [of("libaio", "nothing", 54_600.0, doubted), of("sync", "strace", 10_000.0, 0)]
    }

    #[test]
    fn a_claim_needs_five_rounds_that_no_check_doubts() {
        let sentence = |rows: &[StudyRow]| contrasts(&study(), "faithful", rows).remove(0).sentence;
        for (rounds, doubted, is_accepted, expected) in [
            (
                1,
                0,
                false,
                "5.46 times sync strace here (one round, and a claim needs 5). Published 1.71 times: cannot tell.",
            ),
            (4, 0, false, "here (4 rounds, and a claim needs 5). Published 1.71 times: cannot tell."),
            (5, 0, false, "here (5.46 to 5.46). Published 1.71 times: the same direction, by another measure."),
            (
                6,
                2,
                false,
                "(no claim: 2 of 6 rounds are doubted by foreign_io; doubted rounds decide nothing). Published 1.71 \
                 times: cannot tell.",
            ),
            (7, 2, false, "here (5.46 to 5.46). Published 1.71 times: the same direction, by another measure."),
            (6, 2, true, "here (5.46 to 5.46). Published 1.71 times: the same direction, by another measure."),
        ] {
            let found = sentence(&pair(rounds, doubted, is_accepted));
            assert!(found.ends_with(expected), "{rounds} {doubted} {is_accepted}: {found}");
        }
    }

    /// Goal: figures of zero and infinite ratios reach no document: JSON has no word for them.
    #[test]
    fn ratios_of_zeros_have_no_figure() {
        for (of, against) in [(0.0, 10e3), (10e3, 0.0), (0.0, 0.0)] {
            let [mut above, mut below] = pair(6, 0, false);
            for (row, value) in [(&mut above, of), (&mut below, against)] {
                row.samples.iter_mut().for_each(|sample| sample.figures[0].value = value);
            }
            let found = contrasts(&study(), "faithful", &[above, below]).remove(0);
            assert_eq!(found.ratio, None, "{of} by {against}");
            let expected = "nothing: libaio against sync strace has no figure here. Published 1.71 times: cannot tell.";
            assert_eq!(found.sentence, expected, "{of} by {against}");
        }
    }

    #[test]
    fn an_interval_on_the_border_of_none_is_not_called_the_opposite() {
        // 1.04 is no difference; 0.93 to 0.97 is a small one the other way round.
        assert_ne!(agreement(1.04, here(0.95, 0.93, 0.97)), Agreement::Opposite);
    }
}
