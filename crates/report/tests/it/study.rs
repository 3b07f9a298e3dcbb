//! A study's outputs: hostile names stay text, missing figures are explained, and any text is read without a
//! panic.

use crate::fixture;

use proptest::prelude::*;
use trueio_model::{
    Agreement, Contrast, Durability, DurabilityKind, EvidenceLevel, Impossible, Outcome, PowerLoss, PowercutReach,
    PublishedFigure, PublishedRatio, RatioHere, STUDY_FORMAT, STUDY_VERSION, Statistic, StudyFigure, StudyMetric,
    StudyMode, StudyRecord, StudyRow, StudySample, StudySource, Verdict,
};
use trueio_report::{
    Style, parse_study, study_answer, study_html, study_json, study_markdown, study_progress, study_rows,
    study_terminal,
};

const HOSTILE: &str = "<script>alert(1)</script>\u{1b}[31m\"&";

fn row(name: &str, value: Option<f64>, published: Option<f64>) -> StudyRow {
    let impossible = published.filter(|p| *p > 1e12).map(|_| "it cannot be".to_owned());
    StudyRow {
        name: name.to_owned(),
        key: vec![("way".to_owned(), name.to_owned())],
        shape: "write 4k psync".to_owned(),
        files: Vec::new(),
        samples: Vec::new(),
        figures: value
            .map(|value| StudyFigure {
                op: None,
                metric: StudyMetric::Bandwidth,
                statistic: Statistic::Median,
                value,
                interval: Some((value * 0.9, value * 1.1)),
                samples: 6,
            })
            .into_iter()
            .collect(),
        published: published
            .map(|value| PublishedFigure {
                op: None,
                metric: StudyMetric::Bandwidth,
                statistic: Statistic::Median,
                value,
                printed: String::new(),
                setting: String::new(),
                impossible,
            })
            .into_iter()
            .collect(),
        verdict: Some(if value.is_some() { Verdict::Supported } else { Verdict::Contradicted }),
        checks: Vec::new(),
        durability: Some(Durability { is: DurabilityKind::Shown, source: HOSTILE.to_owned() }),
        failure: None,
        as_published: Some(format!("row {name}")),
        syscalls: None,
    }
}

fn record() -> StudyRecord {
    let base = fixture::baseline(1);
    StudyRecord {
        format: STUDY_FORMAT.to_owned(),
        version: STUDY_VERSION,
        id: base.id,
        started_unix_s: base.started_unix_s,
        started_at: base.started_at,
        command: vec!["trueio".to_owned(), HOSTILE.to_owned()],
        tool: base.tool,
        study: HOSTILE.to_owned(),
        title: HOSTILE.to_owned(),
        question: HOSTILE.to_owned(),
        source: StudySource {
            title: HOSTILE.to_owned(),
            by: HOSTILE.to_owned(),
            date: "2020".to_owned(),
            setting: HOSTILE.to_owned(),
            asterisk: Some(HOSTILE.to_owned()),
            corrections: vec![HOSTILE.to_owned()],
            doubts: vec![HOSTILE.to_owned()],
            impossible: vec![Impossible {
                place: vec![(HOSTILE.to_owned(), HOSTILE.to_owned())],
                metric: StudyMetric::Bandwidth,
                value: 1e13,
                implied_bytes_per_s: 1e13,
                limit_bytes_per_s: 6e8,
                assumption: Some(HOSTILE.to_owned()),
                possible_count_max: Some(5),
                sentence: format!("{HOSTILE}: too fast."),
            }],
        },
        is_quick: true,
        targets: base.targets,
        environment: base.environment,
        ruler: base.ruler,
        shown: Vec::new(),
        modes: vec![StudyMode {
            name: HOSTILE.to_owned(),
            title: HOSTILE.to_owned(),
            notes: vec![HOSTILE.to_owned()],
            scale: vec!["a tenth of the size".to_owned()],
            samples: 6,
            order_seed: Some(1),
            rows: vec![
                row(HOSTILE, Some(1e8), Some(1e13)),
                row("contradicted", None, Some(2e8)),
                StudyRow { failure: Some(HOSTILE.to_owned()), ..row("failed", None, None) },
            ],
            contrasts: vec![Contrast {
                title: HOSTILE.to_owned(),
                place: Vec::new(),
                op: None,
                metric: StudyMetric::Bandwidth,
                statistic: Statistic::Median,
                axis: "way".to_owned(),
                of: HOSTILE.to_owned(),
                against: HOSTILE.to_owned(),
                ratio: Some(RatioHere { value: 2.0, interval: Some((1.5, 2.5)) }),
                published: vec![PublishedRatio {
                    setting: HOSTILE.to_owned(),
                    value: 0.001,
                    agreement: Agreement::Opposite,
                    is_impossible: false,
                    assumption: None,
                }],
                sentence: HOSTILE.to_owned(),
            }],
            answers: vec![HOSTILE.to_owned()],
        }],
        outcome: Outcome::Complete,
        power_loss: None,
        answer: None,
    }
}

/// Goal: earlier cuts of power are stated in each output if a row that asked for stable storage is confirmed, and in none otherwise.
#[test]
fn cuts_of_power_are_stated_with_confirmed_rows_that_asked_for_stable_storage() {
    let found = PowerLoss {
        record_id: "a1".to_owned(),
        started_at: "2026-12-03T20:28:32Z".to_owned(),
        is_kept: true,
        reach: PowercutReach::Disk,
        reach_reason: String::new(),
        cuts: 10,
        methods: vec!["direct-fdatasync".to_owned()],
        at_risk: 48_210,
        acknowledged: 60_000,
        lost: 0,
        opposed_by: None,
    };
    let sentence = "Commits survive power loss: proved by 10 cuts on 2026-12-03 (level E4); none of 48,210";
    let stated = |is: DurabilityKind, verdict: Verdict, found: Option<&PowerLoss>| {
        let mut study = record();
        study.power_loss = found.map(|found| Box::new(found.clone()));
        for row in &mut study.modes[0].rows {
            (row.verdict, row.durability) = (Some(verdict), Some(Durability { is, source: String::new() }));
        }
        let answered = study_answer(&study).statements.len();
        let page = study_html(&study).split("<script").next().unwrap_or_default().to_owned();
        for text in [study_terminal(&study, &STYLE).replace("\n  ", " "), study_markdown(&study), page] {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(text.contains(sentence), answered == 1, "{is:?} {verdict:?}: {text}");
        }
        answered == 1
    };
    assert!(stated(DurabilityKind::Shown, Verdict::Supported, Some(&found)));
    assert!(!stated(DurabilityKind::Shown, Verdict::Supported, None));
    assert!(!stated(DurabilityKind::NotAsked, Verdict::Supported, Some(&found)));
    assert!(!stated(DurabilityKind::Refuted, Verdict::Supported, Some(&found)));
    for verdict in [Verdict::Unverified, Verdict::Suspect, Verdict::Contradicted] {
        assert!(!stated(DurabilityKind::Shown, verdict, Some(&found)), "{verdict:?}");
    }
}

const STYLE: Style = Style { width: 100, color: false, unicode: true };

#[test]
fn names_from_a_study_never_become_markup_or_control_a_terminal() {
    let record = record();
    let page = study_html(&record);
    assert!(!page.contains("<script>alert"), "a name became markup");
    assert!(page.contains("&lt;script&gt;"), "the name is lost");
    assert!(page.contains("<svg") && !page.contains("\u{1b}"));
    for text in
        [study_terminal(&record, &STYLE), study_rows(&record).unwrap(), study_progress(HOSTILE, HOSTILE, 0, 1, None)]
    {
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn missing_and_implausible_figures_are_marked_and_explained() {
    let text = study_terminal(&record(), &STYLE);
    let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    assert!(line("contradicted").contains(" x "), "{text}");
    assert!(line("failed").contains("failed "), "{text}");
    for legend in [
        "! an implausible published figure",
        "x no figure, because the evidence contradicts it",
        "a tenth of the size",
        "too fast.",
    ] {
        assert!(text.contains(legend), "`{legend}` is not in\n{text}");
    }
    // Without such rows there is no legend.
    let mut honest = record();
    honest.modes[0].rows = vec![row("plain", Some(1e8), Some(2e8))];
    let text = study_terminal(&honest, &STYLE);
    assert!(!text.contains("x contradicted") && !text.contains("! a published"), "{text}");
}

#[test]
fn a_record_is_read_back_from_json() {
    let record = record();
    assert_eq!(parse_study(&study_json(&record)).unwrap(), record);
    for (text, why) in [
        ("[]", "not the record"),
        ("{\"format\":\"trueio-record\",\"version\":1}", "not the record"),
        ("{\"format\":\"trueio-study\",\"version\":99}", "version 99"),
        ("{\"format\":\"trueio-study\",\"version\":1}", "damaged"),
    ] {
        assert!(parse_study(text).unwrap_err().to_string().contains(why), "{text}");
    }
}

/// A sample of which only the disk's flush count is known.
fn flushed(flush_count: Option<u64>) -> StudySample {
    StudySample {
        place: 0,
        round: 0,
        begin_ns: 0,
        figures: Vec::new(),
        io_count: 1,
        byte_count: 4096,
        sync_count: 0,
        verdict: Verdict::Supported,
        level: EvidenceLevel::E1,
        objections: Vec::new(),
        flush_count,
        error_count: 0,
        conditions: Vec::new(),
        outcome: Outcome::Complete,
    }
}

#[test]
fn the_disks_flush_count_is_shown_for_each_row_that_writes() {
    let with = |name: &str, counts: &[Option<u64>]| StudyRow {
        samples: counts.iter().map(|count| flushed(*count)).collect(),
        ..row(name, Some(1e8), None)
    };
    let mut record = record();
    record.modes[0].rows = vec![
        with("same", &[Some(32), Some(32)]),
        with("spread", &[Some(40), Some(33), Some(35)]),
        with("unseen", &[None]),
        StudyRow { durability: None, ..with("reads", &[Some(7)]) },
    ];
    let (text, page) = (study_terminal(&record, &STYLE), study_html(&record));
    assert!(text.contains("stable storage  flushes") && text.contains("flushes: the disk's flush counter"), "{text}");
    for (name, cell) in [("same", "32"), ("spread", "33 to 40"), ("unseen", "–"), ("reads", "")] {
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).expect("a row");
        assert_eq!(line.rsplit("  ").next(), Some(if cell.is_empty() { "+ confirmed" } else { cell }), "{line}");
        let table_row = page.split("<tr>").find(|row| row.contains(&format!(">{name}</th>"))).expect("a row");
        let cells: Vec<&str> = table_row.split("<td").collect();
        assert!(cells[cells.len() - 2].contains(&format!(">{cell}</td>")), "{name}: {table_row}");
    }
    // If none were counted, there is no such column.
    record.modes[0].rows.iter_mut().for_each(|row| row.samples.clear());
    let text = study_terminal(&record, &STYLE);
    assert!(!text.contains("flushes"), "{text}");
}

/// Goal: the published figures of several machines stand in each output as the source prints them, in its order, with the
/// author's asterisk and our mark.
#[test]
fn published_figures_are_printed_as_the_source_prints_them() {
    let mut record = record();
    let mode = &mut record.modes[0];
    mode.scale.clear();
    record.source.asterisk = Some("it went wrong".to_owned());
    let figure = |value: f64, printed: &str, setting: &str, impossible: bool| PublishedFigure {
        op: None,
        metric: StudyMetric::Elapsed,
        statistic: Statistic::Median,
        value,
        printed: printed.to_owned(),
        setting: setting.to_owned(),
        impossible: impossible.then(|| "it cannot be".to_owned()),
    };
    mode.rows[1].published = vec![
        figure(14.61, "14.610 s", "an SSD", false),
        figure(540.0, "540 s", "a disk", false),
        figure(0.041, "0.041* s", "a disk from 1999", true),
    ];
    let markdown = study_markdown(&record).replace('\\', "");
    for text in [study_terminal(&record, &STYLE), markdown, study_html(&record)] {
        assert!(text.contains("14.610, 540, 0.041*! s"), "{text}");
    }
    let text = study_terminal(&record, &STYLE).replace("\n   ", "");
    for mark in
        ["on 3 machines, in this order: an SSD; a disk; a disk from 1999", "the author's mark: \"it went wrong\""]
    {
        assert!(text.contains(mark), "{text}");
    }
}

/// Goal: every title of a quick run says so, and no time of the published size stands next to its times.
#[test]
fn a_quick_run_says_so_in_every_title_and_omits_published_times() {
    let mut record = record();
    for figure in record.modes[0].rows.iter_mut().flat_map(|row| &mut row.published) {
        figure.metric = StudyMetric::Elapsed;
        figure.value = 77.0;
        figure.printed = "77.123 s".to_owned();
    }
    let scaled = [study_terminal(&record, &STYLE), study_markdown(&record), study_html(&record)];
    for text in &scaled {
        let shown = text.split("id=\"study\"").next().expect("what is shown");
        assert!(!shown.contains("77.123"), "{shown}");
        assert!(shown.contains("quick run"), "{shown}");
    }
    for words in [
        "quick run: Published and measured here",
        "quick run: Conclusions",
        "published times are left out",
        "This run: ",
    ] {
        assert!(scaled[0].contains(words), "`{words}` is missing: {}", scaled[0]);
    }
    for title in
        ["quick run: Ratios, published and here", ", quick run <span>", "quick run: Published and measured here"]
    {
        assert!(scaled[2].contains(title), "`{title}` is missing");
    }
    for text in &scaled[..2] {
        let title = text.lines().next().expect("a title");
        assert!(title.contains(", quick run"), "{title}");
    }
    // Every heading above figures: those of modes, plots, and tables.
    let shown = scaled[2].split("id=\"study\"").next().expect("what is shown");
    let headings: Vec<&str> = ["<h1>", "<h2>", "<h3>", "<h4>"]
        .iter()
        .flat_map(|tag| shown.split(tag).skip(1))
        .map(|rest| rest.split("</h").next().unwrap_or_default())
        .collect();
    let of_no_figure = [
        "What follows",
        "The question",
        "Implausible published figures",
        "Units that the source labels wrongly",
        "Limits of the source&#x27;s method",
        "Machine",
        "No figure",
    ];
    let is_said = |heading: &&str| heading.contains("quick run") || heading.starts_with("Method: this run");
    let silent: Vec<&&str> = headings.iter().filter(|heading| !is_said(heading)).collect();
    assert!(headings.len() >= 8 && silent.iter().all(|heading| of_no_figure.contains(heading)), "{silent:#?}");
    record.is_quick = false;
    record.modes[0].scale.clear();
    let text = study_terminal(&record, &STYLE);
    assert!(text.contains("77.123 s") && !text.contains("quick run") && !text.contains("This run: "), "{text}");
}

/// Goal: the heat map has a cell for each combination of two axes, dark for large figures, and marks durable
/// rows. Method: four by three rows, each twice the one before; one refuted, one without a figure.
#[test]
fn a_mode_with_two_axes_is_drawn_as_heat_maps_of_published_and_measured_figures() {
    let mut record = record();
    let mut rows = Vec::new();
    for (down, method) in ["a", "b", "c", "d"].into_iter().enumerate() {
        for (across, block) in ["4k", "64k", "1m"].into_iter().enumerate() {
            let value = 1e6 * f64::from(1 << (3 * down + across));
            let mut made = row(&format!("{block} {method}"), Some(value), Some(value));
            made.key = vec![("block".to_owned(), block.to_owned()), ("method".to_owned(), method.to_owned())];
            rows.push(made);
        }
    }
    rows[0].durability = Some(Durability { is: DurabilityKind::Refuted, source: String::new() });
    rows[1].figures.clear();
    record.modes[0].rows = rows;
    let page = study_html(&record);
    let maps: Vec<&str> = page.split("<svg class=\"heat\"").skip(1).collect();
    let [theirs, ours] = maps.iter().map(|map| map.split("</svg>").next().expect("an end")).collect::<Vec<_>>()[..]
    else {
        panic!("{} heat maps", maps.len())
    };
    for (map, figures, durable) in [(theirs, 12, 0), (ours, 11, 10)] {
        assert_eq!(map.matches("class=\"lb\"").count(), 4, "a line for each method: {map}");
        assert_eq!(map.matches("<rect").count(), figures, "{map}");
        assert_eq!(map.matches('●').count(), durable, "{map}");
    }
    assert!(ours.contains(">–</text>"), "a row without a figure: {ours}");
    // The smallest figure is the lightest, and the largest the darkest.
    let shades: Vec<u8> = ours
        .split("<rect class=\"h")
        .skip(1)
        .map(|rest| rest.split('"').next().and_then(|text| text.parse().ok()).expect("a step"))
        .collect();
    assert!(shades.windows(2).all(|pair| pair[0] <= pair[1]), "{shades:?}");
    assert_eq!((shades[0], shades[10]), (0, 8));
    // Fewer combinations, or one axis, give no map.
    record.modes[0].rows.truncate(6);
    assert!(!study_html(&record).contains("class=\"heat\""));
}

#[test]
fn the_progress_line_shows_sample_count_and_remaining_time() {
    let line = |left_ns| study_progress("improved", "64k FDATASYNC", 33, 126, left_ns);
    assert_eq!(line(None), "34/126  improved  64k FDATASYNC");
    assert_eq!(line(Some(37_200_000_000)), "34/126  improved  64k FDATASYNC  38 s left");
    assert_eq!(line(Some(119_000_000_000)), "34/126  improved  64k FDATASYNC  119 s left");
    assert_eq!(line(Some(121_000_000_000)), "34/126  improved  64k FDATASYNC  3 min left");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_figure_is_drawn_and_printed(values in proptest::collection::vec(any::<f64>(), 1..8)) {
        let mut record = record();
        record.modes[0].rows = values.iter().enumerate().map(|(i, v)| row(&format!("r{i}"), Some(*v), Some(-v))).collect();
        let page = study_html(&record);
        prop_assert!(!page.contains("NaN\"") && !page.contains("inf\""), "an impossible coordinate");
        study_terminal(&record, &STYLE);
    }

    #[test]
    fn reading_any_text_never_panics(text in "\\PC{0,300}") {
        let _ = parse_study(&text);
    }
}
