//! Any bytes as a side of a comparison: a record, a run of fio's or a comparison is read or refused, and what is
//! read is compared with itself and shown, without a panic and without a figure that is none.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueio_compare::{Head, Named, StoredRun, compare_runs, from_records};
use trueio_model::{Limit, ToolFacts};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(comparison) = trueio_report::parse_comparison(text) {
        show(&comparison);
    }
    let limits: Vec<Limit> = text.lines().take(3).filter_map(|line| Limit::parse(line).ok()).collect();
    let record = trueio_report::parse(text).ok().map(|record| StoredRun::Record(Box::new(record)));
    let Some(run) = record.or_else(|| trueio_fio::results::parse(text).ok().map(StoredRun::Fio)) else { return };
    let named = |name: &str| Named { name: name.to_owned(), run: run.clone() };
    let Ok(compared) = compare_runs(&[named("a"), named("b")], 0.05) else { return };
    for answer in compared.parts.iter().flat_map(|part| &part.answers) {
        if let Some(ratio) = answer.ratio {
            assert!(ratio.low <= ratio.estimate && ratio.estimate <= ratio.high, "{ratio:?}");
            assert!(!answer.conclusion.is_difference(), "a run differs from itself: {answer:?}");
        }
    }
    let tool = ToolFacts { name: "trueio".to_owned(), version: String::new(), build: String::new() };
    let head = Head { setting: None, started_at: String::new(), command: Vec::new(), tool, margin: 0.05 };
    show(&from_records(head, compared, &limits));
});

fn show(comparison: &trueio_model::Comparison) {
    let style = trueio_report::Style { width: 80, color: true, unicode: false };
    let _ = trueio_report::comparison_terminal(comparison, &style);
    let _ = trueio_report::comparison_html(comparison);
    let _ = trueio_report::comparison_markdown(comparison);
    let _ = trueio_report::comparison_junit(comparison);
    let written = trueio_report::comparison_json(comparison);
    assert!(written.contains("trueio-comparison"));
}
