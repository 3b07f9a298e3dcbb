//! The HTML page: complete, safe, and without external resources.

use crate::fixture;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::read::GzDecoder;
use std::io::Read as _;
use trueio_model::{Cause, CheckOutcome, DisturbedSpan, JobPlan, PhaseRecord, RunRecord, Verdict};
use trueio_report::{html, parse};

/// The plots of a page, each an `<svg>` element.
fn plots(page: &str) -> Vec<&str> {
    page.match_indices("<svg class=\"plot")
        .map(|(begin, _)| &page[begin..begin + page[begin..].find("</svg>").unwrap() + 6])
        .collect()
}

/// Returns the record in the page.
fn embedded(page: &str) -> RunRecord {
    let (before, element) = page.split_once(" id=\"trueio-record\"").unwrap();
    let (attributes, text) = element.split_once("</script>").unwrap().0.split_once('>').unwrap();
    if before.ends_with("<script type=\"application/json\"") {
        assert_eq!(attributes, "");
        return parse(text).unwrap();
    }
    assert!(before.ends_with("<script type=\"application/gzip\"") && attributes == " data-encoding=\"base64\"");
    let packed = BASE64_STANDARD.decode(text).unwrap();
    let mut json = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut json).unwrap();
    parse(&json).unwrap()
}

#[test]
fn a_page_loads_nothing() {
    for record in [fixture::baseline(2), fixture::troubled()] {
        let page = html(&record).to_lowercase();
        for needle in ["http:", "https:", "src=", "url(", "@import", "<link", "<iframe", "<img", "javascript:"] {
            assert!(!page.contains(needle), "{needle}: {}", &page[page.find(needle).unwrap()..][..80]);
        }
        // The record and two texts to copy, which are data, and the page's own script.
        assert_eq!(page.matches("<script").count(), 4);
        assert_eq!(page.matches("<script type=\"application/json\"").count(), 3);
        assert!(page.contains("content-security-policy\" content=\"default-src 'none'"));
    }
}

#[test]
fn every_phase_has_three_plots_and_each_is_well_formed_with_its_text() {
    let page = html(&fixture::baseline(6));
    let plots = plots(&page);
    // Three of each phase, and the overview.
    assert_eq!(plots.len(), 7 * 3 + 1);
    for plot in plots {
        let document = roxmltree::Document::parse(plot).unwrap_or_else(|e| panic!("{e}\n{plot}"));
        let texts: Vec<&str> =
            document.descendants().filter_map(|n| n.text()).map(str::trim).filter(|t| !t.is_empty()).collect();
        assert!(texts.len() >= 6, "a title, a legend and marks on both axes: {texts:?}");
        let label = document.root_element().attribute("aria-label").unwrap();
        if !plot.contains("overview") {
            assert!(texts.contains(&label.split_once(": ").unwrap().0), "the title is drawn: {label}");
            assert!(document.descendants().any(|n| n.has_tag_name("polyline")), "something is drawn");
        }
    }
}

/// Goal: each time at which a phase was disturbed is shaded in its plots over time, and nothing else is.
#[test]
fn disturbed_times_are_shaded_and_a_record_without_them_has_none() {
    let quiet = fixture::baseline(6);
    assert!(!html(&quiet).contains("class=\"sh "), "an honest run is not shaded");
    let mut record = quiet;
    let seconds = |from: u64, until: u64, cause, what: &str| DisturbedSpan {
        from_ns: from * 1_000_000_000,
        until_ns: until * 1_000_000_000,
        cause,
        what: what.to_owned(),
    };
    record.phases[0].disturbances = vec![
        seconds(1, 2, Cause::Neighbour, "dd <wrote> 12 MiB"),
        seconds(2, 3, Cause::Tool, "waited for a processor 62 % of the time"),
        seconds(4, 5, Cause::Device, "nvme0n1 reached its limit of 82 °C"),
    ];
    let page = html(&record);
    for (class, title) in [
        ("neighbour", "1.0 to 2.0 s: dd &lt;wrote&gt; 12 MiB"),
        ("processor", "2.0 to 3.0 s: waited for a processor 62 % of the time"),
        ("throttle", "4.0 to 5.0 s: nvme0n1 reached its limit of 82 °C"),
    ] {
        // Bandwidth, latency, and the small line of each row of the table.
        let count = page.matches(&format!("class=\"sh {class}\"")).count();
        assert_eq!(count, 3, "{class}");
        assert!(page.contains(title), "{title}");
    }
    assert!(page.contains("Shaded times: "), "the page says what shading means");
}

/// Goal: no text of a plot is cut off or overlaps another. Method: boxes are estimated from the anchor and
/// 0.56 of the font's height per letter; they must be in the view and not overlap. `cargo xtask pages` measures them in a
/// browser.
#[test]
fn no_text_of_a_plot_is_cut_off_or_overlaps_another() {
    for record in [fixture::baseline(6), fixture::baseline(120), fixture::troubled()] {
        let page = html(&record);
        for plot in plots(&page) {
            let document = roxmltree::Document::parse(plot).unwrap();
            let view: Vec<f64> =
                document.root_element().attribute("viewBox").unwrap().split(' ').map(|n| n.parse().unwrap()).collect();
            let mut boxes: Vec<(f64, f64, f64, f64, &str)> = Vec::new();
            for node in document.descendants().filter(|n| n.has_tag_name("text")) {
                let number = |name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
                let size = 11.0;
                let (x, y) = (number("x"), number("y"));
                let text = node.text().unwrap().trim();
                let width = text.chars().count() as f64 * size * 0.56;
                let left = match node.attribute("text-anchor").unwrap() {
                    "start" => x,
                    "middle" => x - width / 2.0,
                    _ => x - width,
                };
                // The baseline is at y.
                let top = y - size;
                // A tenth of a letter of tolerance at the edges: the estimate is wide.
                assert!(left >= -size * 0.5 && left + width <= view[2] + size * 0.5, "cut off: {text}");
                assert!(top >= -size * 0.2 && top + size <= view[3] + size * 0.2, "cut off: {text}");
                for (l, t, r, b, other) in &boxes {
                    let apart = left >= *r || left + width <= *l || top >= *b || top + size <= *t;
                    assert!(apart, "`{text}` lies on `{other}`");
                }
                boxes.push((left, top, left + width, top + size, text));
            }
        }
    }
}

#[test]
fn the_record_in_the_page_is_the_record() {
    for record in [fixture::baseline(2), fixture::troubled()] {
        assert_eq!(embedded(&html(&record)), record);
    }
}

/// Goal: a page of 200 phases has at most 2 MB, and still everything that differs between them.
/// Method: the phases of a baseline with other names, and with one option of the plan of each that differs. What its series and sentences
/// take is measured by `cargo xtask bench growth`.
#[test]
fn a_page_of_many_phases_shows_what_they_share_once() {
    let mut record = fixture::baseline(6);
    let (phase, plan) = (record.phases[0].clone(), record.plan.jobs[0].clone());
    record.phases = (0..200).map(|index| PhaseRecord { name: format!("load {index}"), ..phase.clone() }).collect();
    record.plan.jobs = (0..200)
        .map(|index| {
            let mut job = JobPlan { name: format!("load {index}"), phase: index, ..plan.clone() };
            job.values[0].value = format!("own value {index}").into();
            job
        })
        .collect();
    for (phase, job) in record.phases.iter_mut().zip(&record.plan.jobs) {
        phase.jobs[0].name.clone_from(&job.name);
    }
    record.phases[7].checks[0].sentence = "only here".into();
    record.phases[180].verdict = Verdict::Suspect;
    let page = html(&record);
    assert!(page.len() <= 2_000_000, "{} bytes", page.len());
    assert_eq!(embedded(&page), record);
    assert_eq!(page.matches("Plan of load").count(), 200);
    assert_eq!(page.matches("own value 199<").count(), 1);
    let unshared = &plan.values[1];
    assert_eq!(page.matches(&format!("<code>{}</code></th>", unshared.name)).count(), 1, "once, for all loads");
    assert_eq!(page.matches("id=\"same-checks\"").count(), 1);
    assert_eq!(page.matches("only here<").count(), 1);
    // Of each of 50 phases: the last is the suspect one.
    assert_eq!(plots(&page).len(), 50 * 3 + 1);
    assert_eq!(page.matches("Without plots: ").count(), 150);
    let suspect = page.split_once("id=\"phase-181\"").unwrap().1.split_once("</section>").unwrap().0;
    assert_eq!(plots(suspect).len(), 3);
}

#[test]
fn markup_in_a_record_stays_text() {
    let mut record = fixture::troubled();
    let evil = "</script></svg><img onerror=x>&\"'";
    record.targets[0].path = evil.into();
    record.kind = evil.into();
    record.phases[3].name = evil.into();
    record.phases[3].jobs[0].name = evil.into();
    record.phases[3].checks[1].sentence = evil.into();
    record.plan.notes = vec![evil.into()];
    record.environment.system = evil.into();
    let page = html(&record);
    assert!(!page.contains("<img") && !page.contains("</script></svg>"));
    assert_eq!(page.matches("</script>").count(), 4);
    assert!(page.contains("&lt;img onerror=x&gt;"));
    assert_eq!(embedded(&page), record);
}

#[test]
fn a_contradicted_figure_is_followed_by_its_reason_in_the_same_part_of_the_table() {
    let mut record = fixture::baseline(2);
    for phase in &mut record.phases {
        phase.verdict = Verdict::Contradicted;
        phase.checks[1].outcome = CheckOutcome::Contradicted;
        phase.checks[1].sentence = format!("The reason of {}.", phase.name);
    }
    record.phases[6].checks.clear();
    let page = html(&record);
    let table = page.split_once("<h2>All loads</h2>").unwrap().1.split_once("</table>").unwrap().0;
    let parts: Vec<&str> = table.split("<tbody").skip(1).collect();
    assert_eq!(parts.len(), 7);
    for (part, phase) in parts.iter().zip(&record.phases) {
        let name = phase.name.replace('/', "&#x2f;");
        assert!(part.contains("✕") && part.contains(&name));
        let reason = if phase.checks.is_empty() {
            "does not contain the check".to_owned()
        } else {
            format!("The reason of {}.", phase.name)
        };
        assert!(part.contains(&reason), "{part}");
    }
}

#[test]
fn a_page_lists_checks_with_sources_expected_and_found_values() {
    let page = html(&fixture::baseline(2));
    for text in [
        "cachestat(2)",
        "no page of the region cached",
        "0 of 1,048,576 pages before and after",
        "The page cache held nothing of the file.",
        "preset baseline",
        "not above 4 GiB, not above a tenth of 412 GiB free",
        "statx(2) STATX_DIOALIGN",
        "3,688",
    ] {
        assert!(page.contains(&text.replace('/', "&#x2f;")), "{text}");
    }
}

#[test]
fn a_percentile_has_its_interval_or_what_it_is_at_least() {
    let cells = |seconds| -> Vec<String> {
        let page = html(&fixture::baseline(seconds));
        let table = page.split_once("<h2>All loads</h2>").unwrap().1.split_once("</table>").unwrap().0;
        let percentiles = table.split("data-label=\"p").skip(1).map(|rest| rest.split_once("</td>").unwrap().0);
        let smalls =
            percentiles.filter_map(|cell| Some(cell.split_once("<small>")?.1.split_once("</small>")?.0.to_owned()));
        smalls.collect()
    };
    let long = cells(30);
    assert!(long.iter().filter(|cell| cell.contains(" – ")).count() >= 14, "{long:?}");
    // 6 s of at least 25 s: what p99 and p99.9 are at least, and one sentence below the table.
    let short = cells(6);
    assert!(short.len() >= 9 && short.iter().all(|cell| cell.starts_with("≥ ")), "{short:?}");
    let page = html(&fixture::baseline(6));
    assert!(page.contains("A load must run about 19 s longer for all intervals."));
    // A record without dependence, as of an earlier version.
    assert_eq!(cells(2), [""; 0]);
}
