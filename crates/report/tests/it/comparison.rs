//! A comparison in every output: no text becomes markup or controls a terminal, and implausible values are no
//! figures.

use trueio_model::{
    Answer, Basis, COMPARISON_FORMAT, COMPARISON_VERSION, Circumstance, Comparison, Conclusion, EvidenceLevel, Figure,
    GateResult, GateVerdict, Histogram, Mark, Method, Metric, Needs, Outcome, Part, Ratio, Side, Slice, ToolFacts,
    Verdict,
};
use trueio_report::{
    ComparisonError, Document, Format, Style, comparison_answer, comparison_html, comparison_json, comparison_junit,
    comparison_markdown, comparison_screen, comparison_terminal, parse_comparison,
};

const EVIL: &str = "<script>alert(1)</script>\x1b[2J|`@everyone`&\"'";

fn side(name: &str, ns: u64) -> Side {
    let mut latency = Histogram::new();
    (0..5_000u64).for_each(|i| latency.record(ns + i * ns / 5_000));
    let slice = |round: u32| Slice {
        round,
        place: round % 2,
        begin_ns: u64::from(round) * 700_000_000,
        figures: vec![Figure { metric: Metric::Iops, value: 1e9 / ns as f64 + f64::from(round) }],
        verdict: Verdict::Supported,
    };
    Side {
        name: name.to_owned(),
        detail: "randread 4k q1".to_owned(),
        verdict: Verdict::Supported,
        word: Some(trueio_model::Mark::Confirmed),
        level: EvidenceLevel::E2,
        reasons: vec![format!("foreign_io (1 of 8 slices): {EVIL}")],
        objections: Vec::new(),
        figures: vec![
            Figure { metric: Metric::Iops, value: 1e9 / ns as f64 },
            Figure { metric: Metric::P99, value: ns as f64 },
        ],
        latency,
        percentiles: Vec::new(),
        syscalls: None,
        slices: (0..8).map(slice).collect(),
    }
}

fn answer(metric: Metric, conclusion: Conclusion, ratio: Option<(f64, f64, f64)>) -> Answer {
    Answer {
        side: 1,
        metric,
        conclusion,
        ratio: ratio.map(|(estimate, low, high)| Ratio {
            estimate,
            low,
            high,
            alpha: 0.05,
            p: Some(0.0002),
            pair_count: 80,
        }),
        basis: if ratio.is_some() { Basis::PairRatios } else { Basis::Nothing },
        reason: ratio.is_none().then(|| format!("no reason {EVIL}")),
        needs: ratio.is_none().then_some(Needs { pair_count: 18, time_ns: 13_000_000_000 }),
        noise_floor: Some(0.012),
    }
}

fn comparison(name: &str) -> Comparison {
    Comparison {
        format: COMPARISON_FORMAT.to_owned(),
        version: COMPARISON_VERSION,
        started_at: "2026-11-21T20:28:32Z".to_owned(),
        command: vec!["trueio".to_owned(), name.to_owned()],
        tool: ToolFacts { name: "trueio".to_owned(), version: "0.1.0".to_owned(), build: "release".to_owned() },
        method: Method::Interleaved {
            seed: 7,
            slice_ns: 300_000_000,
            head_ns: 30_000_000,
            round_count: 80,
            round_max: 100,
            look_count: 4,
            look_max: 5,
        },
        margin: 0.05,
        alpha: 0.05,
        differences: vec![Circumstance {
            side: 1,
            name: "kernel".to_owned(),
            first: "6.1".to_owned(),
            this: name.to_owned(),
            forbids: false,
        }],
        parts: vec![Part {
            name: String::new(),
            sides: vec![side("before", 100_000), side(name, 111_000)],
            answers: vec![
                answer(Metric::Iops, Conclusion::Worse, Some((0.9, 0.88, 0.93))),
                answer(Metric::P99, Conclusion::CannotTell, None),
                answer(Metric::P50, Conclusion::Same, Some((1.01, 0.99, 1.03))),
            ],
        }],
        notes: vec![format!("a note {EVIL}")],
        setting: None,
        gates: vec![GateResult {
            condition: format!("iops < -5% {name}"),
            part: String::new(),
            side: 1,
            verdict: GateVerdict::Shown,
            sentence: format!("{name}: iops −10 %"),
        }],
        outcome: Outcome::Complete,
        answer: None,
    }
}

fn style(width: usize) -> Style {
    Style { width, color: false, unicode: true }
}

/// Goal: no winner is named between sides of which one is not confirmed, and one between unverified sides is hedged. Method: the same
/// answers, with each word of a side, in every output.
#[test]
fn no_winner_is_named_between_sides_that_are_not_confirmed() {
    let texts = |marks: [Mark; 2]| {
        let mut comparison = comparison("after");
        comparison.gates.clear();
        comparison.parts[0].sides.iter_mut().zip(marks).for_each(|(side, mark)| side.word = Some(mark));
        let document = Document::Comparison(Box::new(comparison.clone()));
        let answer = comparison_answer(&comparison);
        let json = serde_json::to_string(&answer).expect("JSON");
        vec![
            comparison_terminal(&comparison, &style(400)),
            comparison_screen(&comparison, &style(80), "add -v"),
            comparison_markdown(&comparison),
            comparison_html(&comparison).split("<script").next().unwrap_or_default().to_owned(),
            comparison_junit(&comparison),
            document.render(Format::Csv, &[]).expect("CSV"),
            document.render(Format::Prometheus, &[]).expect("metrics"),
            json,
        ]
    };
    let open = Mark::ALL.into_iter().filter(|mark| !mark.permits_a_winner());
    let pairs = open.flat_map(|mark| [[mark; 2], [Mark::Confirmed, mark], [mark, Mark::Unverified]]);
    for marks in pairs {
        let worst = marks[0].max(marks[1]);
        for (index, text) in texts(marks).into_iter().enumerate() {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            // The page explains its margin in general.
            let of_page = if index == 3 { &["no difference larger than"][..] } else { &[] };
            let words =
                ["faster", "slower", "no difference larger than", "equal", "more pairs", ",worse", ",better", ",same"];
            for word in words.iter().filter(|word| !of_page.contains(word)) {
                assert!(!text.contains(word), "`{word}` with {marks:?} in output {index}:\n{text}");
            }
            // CSV and metrics hold numbers.
            assert!([5, 6].contains(&index) || text.contains(worst.word()), "{marks:?} in output {index}:\n{text}");
            if !worst.is_shown() {
                // An axis of the page has 10,000.
                let figure = if marks[1] == worst { "9,009" } else { "10,000 1/s" };
                assert!(!text.contains(figure), "a withheld figure in output {index}:\n{text}");
            }
        }
    }
    let terminal = |marks: [Mark; 2]| texts(marks).swap_remove(0);
    let text = terminal([Mark::NotTheDisk; 2]);
    assert!(text.contains("No winner is named: A (before) and B (after) are not the disk."), "{text}");
    let text = terminal([Mark::Unsteady, Mark::Disturbed]);
    assert!(text.contains("No winner is named: A (before) is unsteady, B (after) is disturbed."), "{text}");
    let text = terminal([Mark::Unverified; 2]);
    assert!(text.contains("A and B are unverified: this holds if the disk is what was measured."), "{text}");
    let text = terminal([Mark::Confirmed; 2]);
    assert!(text.contains("B (after) is slower than A (before): ") && !text.contains("this holds if"), "{text}");
}

/// Goal: no output gives a factor of which six pairs show only the direction without "at least". Method: IOPS 3.74 times as high (1.16 to 16.8), as the headline's
/// metric and beside sides of other block sizes, and figures that differ from the change; the numbers of CSV, metrics and JSON have both ends.
#[test]
fn a_change_whose_size_is_unsure_is_at_least_its_least_in_every_output() {
    let unsure = |block_bytes: f64| {
        let mut one = comparison("after");
        one.gates.clear();
        let part = &mut one.parts[0];
        part.answers = [Metric::Iops, Metric::Bandwidth]
            .map(|metric| answer(metric, Conclusion::Better, Some((3.74, 1.16, 16.8))))
            .to_vec();
        for (side, (iops, bytes)) in part.sides.iter_mut().zip([(1_000.0, 4_096.0), (90_000.0, block_bytes)]) {
            side.figures = vec![
                Figure { metric: Metric::Iops, value: iops },
                Figure { metric: Metric::Bandwidth, value: iops * bytes },
            ];
        }
        one
    };
    for one in [unsure(4_096.0), unsure(65_536.0)] {
        let document = comparison_json(&one);
        let answer = comparison_answer(&one);
        let texts = [
            comparison_terminal(&one, &style(400)),
            comparison_screen(&one, &style(80), "add -v"),
            comparison_markdown(&one),
            comparison_html(&one).split("<script").next().unwrap_or_default().to_owned(),
            comparison_junit(&one),
            trueio_report::comparison_progress(6, 80, 1, &one.parts[0].answers),
            answer.headline.iter().chain(&answer.doubts).cloned().collect(),
        ];
        for (index, text) in texts.iter().enumerate() {
            assert!(text.contains("at least +16"), "output {index}:\n{text}");
            assert!(!text.contains("×3.74") && !text.contains("3.74"), "output {index}:\n{text}");
        }
        assert!(answer.headline[0].contains("at least +16") && document.contains("at least +16"), "{answer:?}");
        let change = answer.figures.iter().find(|figure| figure.unit == "ratio").expect("the change");
        assert_eq!((change.low, change.high), (Some(1.16), Some(16.8)));
    }
}

/// Goal: sides of few I/Os have their number next to them in every output. Method: 1, 37 and 5,000 I/Os.
#[test]
fn the_sample_size_stands_next_to_a_side_of_few_ios() {
    for (count, words) in [(1, Some("randread 4k q1, 1 I/O")), (37, Some("randread 4k q1, 37 I/Os")), (5_000, None)] {
        let mut one = comparison("after");
        let latency = &mut one.parts[0].sides[1].latency;
        *latency = Histogram::new();
        latency.record_many(111_000, count);
        let texts = [
            comparison_terminal(&one, &style(100)),
            comparison_screen(&one, &style(80), "add -v"),
            comparison_markdown(&one),
            comparison_html(&one).split("<script").next().unwrap_or_default().replace("&#x2f;", "/"),
        ];
        for (index, text) in texts.iter().enumerate() {
            match words {
                Some(words) => assert!(text.contains(words), "output {index}:\n{text}"),
                None => assert!(!text.contains("q1, "), "output {index}:\n{text}"),
            }
        }
        let answer = comparison_answer(&one);
        let figures = || answer.figures.iter().filter(|of| of.load.contains("after") && of.unit != "ratio");
        assert!(figures().count() > 0 && figures().all(|of| of.sample_count == count), "{:?}", answer.figures);
    }
}

/// Goal: the screen begins and ends with the answer and fits 24 lines of 80 columns. Method: equal and different sides, which are kept as
/// text, and many sides, parts, long names, doubts and gates. `TRUEIO_BLESS=1` rewrites the texts; read the difference.
#[test]
fn the_screen_begins_and_ends_with_the_answer_and_fits_80_by_24() {
    let side = |name: &str, iops: f64, ns: f64| Side {
        reasons: Vec::new(),
        figures: vec![
            Figure { metric: Metric::Bandwidth, value: iops * 4096.0 },
            Figure { metric: Metric::Iops, value: iops },
            Figure { metric: Metric::P50, value: ns },
            Figure { metric: Metric::P99, value: ns * 2.1 },
            Figure { metric: Metric::P999, value: ns * 9.0 },
            Figure { metric: Metric::CpuPerIo, value: 5_800.0 },
        ],
        ..side(name, 100_000)
    };
    let of = |conclusions: [Conclusion; 6], ratio: f64, sides: Vec<Side>| {
        let answers = Metric::ALL.into_iter().zip(conclusions).map(|(metric, conclusion)| {
            let ratio = match metric {
                Metric::CpuPerIo => 1.0,
                _ if metric.is_more_better() => ratio,
                _ => 1.0 / ratio,
            };
            answer(metric, conclusion, Some((ratio, ratio * 0.98, ratio * 1.02)))
        });
        let mut one = comparison("after");
        (one.gates, one.differences, one.notes) = (Vec::new(), Vec::new(), Vec::new());
        one.parts[0].answers = answers.collect();
        one.parts[0].sides = sides;
        one
    };
    use Conclusion::{Same, Worse};
    let equal = of([Same; 6], 1.002, vec![side("before", 10_000.0, 98e3), side("after", 10_020.0, 97.8e3)]);
    let different = of(
        [Worse, Worse, Worse, Worse, Worse, Same],
        0.9,
        vec![side("before", 10_000.0, 98e3), side("after", 9_000.0, 109e3)],
    );
    for (name, comparison) in [("equal", &equal), ("different", &different)] {
        crate::outputs::assert_expected(
            &format!("screen-compare-{name}.txt"),
            &comparison_screen(comparison, &style(80), "add -v"),
        );
    }
    let mut gated =
        comparison("after with a name that is longer than any line of eighty columns would have room for it");
    gated.parts[0].sides[0].word = Some(Mark::Disturbed);
    let mut many = different.clone();
    many.parts[0].sides = (0..32).map(|n| side(&format!("iodepth={n}"), 1_000.0 * f64::from(n + 1), 1e5)).collect();
    let mut parts = different.clone();
    parts.parts = (0..12).map(|n| Part { name: format!("load {n}"), ..different.parts[0].clone() }).collect();
    for comparison in [equal, different, gated, many, parts] {
        let text = comparison_screen(&comparison, &style(80), "add -v");
        assert!(text.lines().count() <= 23, "{} lines:\n{text}", text.lines().count());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let first = text.lines().next().unwrap_or_default();
        assert!(text.lines().skip(1).any(|line| line == first), "the answer stands at the end, too:\n{text}");
    }
}

/// Goal: between sides of which one is not the disk there is no change in any output, and the first screen names neither levels nor checks.
/// Method: both sides with each word, and a finding of a part of the slices.
#[test]
fn sides_that_are_not_the_disk_have_no_change_and_the_screen_no_names_of_checks() {
    for mark in Mark::ALL {
        let mut one = comparison("after");
        (one.gates, one.differences, one.notes) = (Vec::new(), Vec::new(), Vec::new());
        let part = &mut one.parts[0];
        part.answers = vec![answer(Metric::Iops, Conclusion::Better, Some((1.56, 1.5, 1.6)))];
        for side in &mut part.sides {
            side.word = Some(mark);
            side.reasons = vec!["page_cache (3 of 8 slices): The page cache served it.".to_owned()];
        }
        let answered = comparison_answer(&one);
        let texts = [
            comparison_screen(&one, &style(80), "add -v"),
            comparison_terminal(&one, &style(300)),
            comparison_markdown(&one),
            comparison_html(&one).split("<script").next().unwrap_or_default().to_owned(),
            serde_json::to_string(&answered).expect("JSON"),
        ];
        for text in &texts {
            assert_eq!(text.contains("+56 %") || text.contains("1.56"), mark.permits_a_winner(), "{mark:?}: {text}");
        }
        let screen = &texts[0];
        assert!(!screen.contains("page_cache") && !screen.contains("E2"), "{screen}");
        assert!(screen.contains("3 of 8 slices: The page cache served it."), "{screen}");
        assert!(texts[1].contains("page_cache") && texts[1].contains("E2"), "the details have them: {}", texts[1]);
    }
}

/// Goal: sides of different block sizes are compared by bandwidth and by IOPS, and the answer names both.
#[test]
fn different_block_sizes_are_compared_by_bandwidth_too() {
    let mut comparison = comparison("after");
    let part = &mut comparison.parts[0];
    part.sides[0].figures = vec![
        Figure { metric: Metric::Bandwidth, value: 40_960_000.0 },
        Figure { metric: Metric::Iops, value: 10_000.0 },
    ];
    part.sides[1].figures = vec![
        Figure { metric: Metric::Bandwidth, value: 143_360_000.0 },
        Figure { metric: Metric::Iops, value: 2_187.5 },
    ];
    part.answers = vec![
        answer(Metric::Bandwidth, Conclusion::Better, Some((3.5, 3.4, 3.6))),
        answer(Metric::Iops, Conclusion::Worse, Some((0.22, 0.21, 0.23))),
    ];
    assert_eq!(
        comparison_answer(&comparison).headline,
        [
            "Compared with A (before), B (after) is faster by bandwidth (×3.50, between ×3.40 and ×3.60) and slower by IOPS (−78 %, between −79 % \
          and −77 %); their block sizes differ: 4 KiB and 64 KiB."
        ]
    );
}

/// Goal: the JSON has the answer with every figure ready to use, and reading it drops the answer.
#[test]
fn the_json_of_a_comparison_has_its_answer() {
    let mut comparison = comparison("after");
    comparison.parts[0].sides[1].word = Some(Mark::Withheld);
    let text = comparison_json(&comparison);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let answer = comparison_answer(&comparison);
    assert_eq!(value["answer"], serde_json::to_value(&answer).expect("JSON"));
    assert!(answer.statements.is_empty());
    for figure in &answer.figures {
        assert_eq!(figure.is_shown, figure.verdict != Mark::Withheld, "{figure:?}");
        assert!(figure.is_shown || (figure.value, figure.low) == (None, None), "{figure:?}");
    }
    assert_eq!(parse_comparison(&text).expect("a comparison"), comparison);
}

/// Goal: a comparison of an earlier version has the word and the next step of its findings. Method: reasons that begin with names.
#[test]
fn a_comparison_of_an_earlier_version_is_upgraded_from_its_reasons() {
    let mut comparison = comparison("after");
    let side = &mut comparison.parts[0].sides[1];
    (side.word, side.verdict) = (None, Verdict::Suspect);
    side.reasons = vec!["foreign_io (3 of 8 slices): others wrote".to_owned(), "the phase did not run".to_owned()];
    let read = parse_comparison(&comparison_json(&comparison)).expect("a comparison");
    let side = &read.parts[0].sides[1];
    assert_eq!((side.word, side.objections.len()), (Some(Mark::Disturbed), 1));
    assert_eq!(side.objections[0].check, "foreign_io");
    assert!(comparison_answer(&read).next_steps.iter().any(|step| step.starts_with("let the other I/O end")));
    // What disturbed a run of the past cannot be stopped.
    let of_records = Comparison { method: Method::Records, ..read.clone() };
    let steps = comparison_answer(&of_records).next_steps;
    let step = "measure after again while no other program uses its disk (`--wait-idle`)";
    assert!(
        steps.iter().any(|found| found == step) && !steps.iter().any(|found| found.contains("other I/O end")),
        "{steps:?}"
    );
    let side = &mut comparison.parts[0].sides[1];
    (side.word, side.verdict) = (Some(Mark::NotTheDisk), Verdict::Contradicted);
    let read = parse_comparison(&comparison_json(&comparison)).expect("a comparison");
    assert_eq!(read.parts[0].sides[1].word, Some(Mark::Withheld), "a contradicted figure stays withheld");
}

#[test]
fn names_and_sentences_never_become_markup_or_escape_sequences() {
    let comparison = comparison(EVIL);
    let html = comparison_html(&comparison);
    assert!(!html.contains("<script>alert") && !html.contains('\x1b'), "markup on the page");
    let xml = comparison_junit(&comparison);
    let document = roxmltree::Document::parse(&xml).unwrap_or_else(|e| panic!("{e}\n{xml}"));
    let suite = document.root_element().first_element_child().expect("a suite");
    assert_eq!((suite.attribute("tests"), suite.attribute("failures")), (Some("1"), Some("1")));
    let markdown = comparison_markdown(&comparison);
    assert!(
        !markdown.contains("<script") && !markdown.contains("@everyone") && !markdown.contains('\x1b'),
        "{markdown}"
    );
    for line in markdown.lines().filter(|line| line.starts_with("| IOPS")) {
        assert_eq!(line.matches('|').count(), 7, "{line}");
    }
    for color in [false, true] {
        let text = comparison_terminal(&comparison, &Style { color, ..style(100) });
        assert!(!text.contains("\x1b[2J"), "{text:?}");
    }
}

#[test]
fn the_page_holds_every_plot_and_the_document_itself() {
    let comparison = comparison("after");
    let html = comparison_html(&comparison);
    assert_eq!(html.matches("<svg").count(), 4, "forest, percentiles, difference, over time");
    for svg in html.split("<svg").skip(1) {
        let svg = format!("<svg{}</svg>", svg.split("</svg>").next().unwrap_or_default());
        roxmltree::Document::parse(&svg).unwrap_or_else(|e| panic!("{e}: {svg}"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
    let json = html.split("id=\"comparison\">").nth(1).and_then(|rest| rest.split("</script>").next()).expect("JSON");
    assert_eq!(parse_comparison(json).expect("a comparison"), comparison);
    assert!(!html.contains("http://") || !html.contains("src=\"http"), "nothing is loaded");
}

#[test]
fn a_terminal_line_keeps_its_width_and_without_unicode_it_is_ascii() {
    for width in [72, 80, 100, 132] {
        let text = comparison_terminal(&comparison("after"), &style(width));
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        assert!(text.contains("slower by more than 5 %") && text.contains("FAILED: iops < -5% after"), "{text}");
    }
    let clean = comparison("after");
    assert!(comparison_terminal(&clean, &Style { unicode: false, ..style(100) }).is_ascii());
}

/// Goal: figures next to a change that they contradict are explained, in every output; others are not.
/// Method: p99 of 10.2 and 29.8 µs over all slices, while the change of the middle slice is none.
#[test]
fn figures_that_differ_from_the_change_next_to_them_are_explained() {
    let mut comparison = comparison("after");
    let part = &mut comparison.parts[0];
    part.answers = vec![answer(Metric::P99, Conclusion::Same, Some((1.0, 0.98, 1.02)))];
    part.sides[0].figures = vec![Figure { metric: Metric::P99, value: 10_200.0 }];
    part.sides[1].figures = vec![Figure { metric: Metric::P99, value: 29_800.0 }];
    let words = "the figures differ by ×2.92, but the change is ±0.0 %: the figures are of all slices together";
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let outputs = |comparison: &Comparison| {
        [comparison_terminal(comparison, &style(100)), comparison_markdown(comparison), comparison_html(comparison)]
    };
    for text in outputs(&comparison) {
        assert!(flat(&text).contains(words), "{text}");
    }
    // Within the interval, or near the change.
    for value in [10_300.0, 10_600.0] {
        comparison.parts[0].sides[1].figures[0].value = value;
        for text in outputs(&comparison) {
            assert!(!text.contains("the figures differ by"), "{text}");
        }
    }
}

#[test]
fn implausible_figures_are_not_shown_and_damage_nothing() {
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, f64::MAX] {
        let mut comparison = comparison("after");
        let part = &mut comparison.parts[0];
        part.answers[0].ratio =
            Some(Ratio { estimate: value, low: value, high: value, alpha: value, p: Some(value), pair_count: 0 });
        part.sides[1].figures[0].value = value;
        part.sides[1].slices[0].figures[0].value = value;
        part.answers.push(Answer { side: 99, ..part.answers[0].clone() });
        let all = [
            comparison_terminal(&comparison, &style(100)),
            comparison_html(&comparison),
            comparison_markdown(&comparison),
        ];
        for text in &all[..1] {
            assert!(!text.contains("NaN"), "{text}");
        }
        comparison_junit(&comparison);
    }
    let mut nothing = comparison("after");
    nothing.parts[0].sides.clear();
    comparison_html(&nothing);
    nothing.parts.clear();
    assert!(comparison_terminal(&nothing, &style(100)).contains("Nothing was measured"));
    comparison_html(&nothing);
    comparison_junit(&nothing);
    comparison_markdown(&nothing);
}

#[test]
fn a_comparison_is_read_back_the_same_and_other_texts_are_named() {
    let comparison = comparison("after");
    let json = comparison_json(&comparison);
    assert_eq!(parse_comparison(&json).expect("a comparison"), comparison);
    assert!(matches!(parse_comparison("{"), Err(ComparisonError::NotJson(_))));
    assert!(matches!(parse_comparison("[]"), Err(ComparisonError::NotAComparison | ComparisonError::NotJson(_))));
    assert!(matches!(parse_comparison("{\"format\":\"trueio-record\"}"), Err(ComparisonError::NotAComparison)));
    let newer = json.replacen("\"version\": 1", "\"version\": 9", 1);
    assert!(matches!(parse_comparison(&newer), Err(ComparisonError::Newer(9))), "{}", &newer[..80]);
    let damaged = json.replacen("\"margin\"", "\"margins\"", 1);
    assert!(matches!(parse_comparison(&damaged), Err(ComparisonError::Damaged(_))));
}
