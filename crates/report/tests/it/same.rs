//! What every output says alike: statements, what is withheld, the words of verdicts, names of loads, next steps.

use crate::answer::{clean, contradicted, finding, outputs, records, situations, stage};
use crate::fixture;
use trueio_model::{Check, Mark, RunRecord, StatementKind, Verdict};
use trueio_report::{Document, Format, Style, answer, hdr_log, mark, screen, terminal};

const STYLE: Style = Style { width: 80, color: false, unicode: true };

fn of<'a>(all: &'a [(&'static str, String)], output: &str) -> &'a str {
    &all.iter().find(|(name, _)| *name == output).expect("an output").1
}

/// Goal: a statement of the headline's rank is in every output, however many findings and limits take the screen's lines.
/// Method: every record with every finding; the sentences of class and power loss on screen, of all kinds in the details, Markdown and page.
#[test]
fn every_output_has_the_class_and_the_details_have_every_statement() {
    let plain =
        |text: &str| text.replace(['\\', '`'], "").replace("&#x2f;", "/").replace("&#x27;", "'").replace("&#39;", "'");
    let mut seen = 0;
    for record in records() {
        let all = outputs(&record);
        for statement in answer(&record, &[]).statements {
            let sentence = plain(statement.sentence());
            let is_first_rank = matches!(statement.kind(), StatementKind::Class | StatementKind::PowerLoss);
            for output in ["json", "screen", "terminal", "markdown", "page"] {
                if output == "screen" && !is_first_rank {
                    continue;
                }
                assert!(plain(of(&all, output)).contains(&sentence), "`{sentence}` in {output}: {}", of(&all, output));
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen}");
}

/// A load whose reads were of a hole, with a latency that no disk has.
fn of_a_hole(is_withheld: bool) -> RunRecord {
    let mut record = clean();
    let floor = Check {
        expected: "2.00 µs or more".to_owned(),
        found: "median 349 ns".to_owned(),
        ..finding("latency_floor", "349 ns: too fast for a disk", None)
    };
    let mut hole = finding("holes", "100 % never written", Some(100));
    if is_withheld {
        hole = contradicted(hole);
    }
    let starved = Check {
        sentence: "starved: the disk took 81.2 µs per request and the job counted 1.77 ms per I/O.".to_owned(),
        ..finding("processor_wait", "waited for a processor 89 % of the time", Some(89))
    };
    record.phases[2].checks.extend([floor, hole, starved]);
    record.phases[2].verdict = Verdict::of(&record.phases[2].checks);
    record
}

/// Goal: a figure that is withheld cannot be read elsewhere. Method: a load with a contradiction and a doubt that names its median, in every
/// output; the same doubt of a load that is shown is printed.
#[test]
fn what_is_withheld_is_in_no_sentence_and_no_column() {
    for is_withheld in [true, false] {
        let record = of_a_hole(is_withheld);
        assert_eq!(mark(&record.phases[2]) == Mark::Withheld, is_withheld);
        let mut all = outputs(&record);
        all.push(("hdr", hdr_log(&record).expect("a log")));
        let joined = all.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n");
        for figure in ["349 ns", "1.77 ms per I/O"] {
            assert_eq!(joined.contains(figure), !is_withheld, "{figure}");
            for (output, text) in all.iter().filter(|_| is_withheld) {
                assert!(!text.contains(figure), "`{figure}` in {output}: {text}");
            }
        }
        let document = Document::Record(Box::new(record.clone()));
        let csv = document.render(Format::Csv, &[]).expect("CSV");
        let head: Vec<&str> = csv.lines().next().expect("a head").split(',').collect();
        let at = |name: &str| head.iter().position(|column| *column == name).expect("a column");
        let row: Vec<&str> =
            csv.lines().find(|line| line.contains(",rand-read-4k-q1,")).expect("its row").split(',').collect();
        for column in ["io_count", "bytes_per_s", "ios_per_s", "latency_ns_p50", "latency_ns_max"] {
            assert_eq!(row[at(column)].is_empty(), is_withheld, "{column}: {row:?}");
        }
        assert_eq!(row[at("verdict")], mark(&record.phases[2]).word());
        let figures = answer(&record, &[]).figures;
        let mut of_load = figures.iter().filter(|figure| figure.load == "rand-read-4k-q1");
        assert!(of_load.all(|figure| (figure.sample_count == 0) == is_withheld), "{figures:?}");
        // The record is the evidence.
        assert!(trueio_report::json(&record).contains("median 349 ns"));
    }
}

/// Goal: one vocabulary for readers. Method: every record, in every output of text; the JSON has the names of the schema.
#[test]
fn no_output_for_readers_has_the_words_of_the_record() {
    for record in records() {
        let mut all = outputs(&record);
        all.push(("hdr", hdr_log(&record).expect("a log")));
        for (output, text) in all.iter().filter(|(output, _)| *output != "json") {
            for word in ["contradicted", "suspect", "supported by", ",supported,"] {
                assert!(!text.contains(word), "`{word}` in {output}: {text}");
            }
        }
    }
}

/// Goal: what was accepted stays on the screen, with the check, the load and the reason. Method: a contradiction, accepted or not, and a
/// clean record.
#[test]
fn an_accepted_contradiction_keeps_its_reason_on_the_screen() {
    let joined = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut record = clean();
    stage(&mut record.phases[6], contradicted(finding("flushes", "no flush was executed", None)));
    let words = "Shown because of `--accept flushes` (append-4k-fdatasync: no flush was executed), and else withheld.";
    assert!(!joined(screen(&record, &STYLE, "add -v", &[])).contains("Shown because"));
    record.accept("flushes");
    for text in [screen(&record, &STYLE, "add -v", &[]), terminal(&record, &STYLE)] {
        assert!(joined(text.clone()).contains(words), "{text}");
    }
    assert!(!joined(screen(&clean(), &STYLE, "add -v", &[])).contains("--accept"));
}

/// Goal: a finding explains the figure that it can explain. Method: a stop of a load that kept its rate, and of one that did not.
#[test]
fn a_stop_explains_the_latencies_of_a_rate_that_was_kept() {
    let (_, mut paced) = situations().into_iter().find(|(name, _)| *name == "paced").expect("a paced load");
    let job = &paced.phases[0].jobs[0];
    let rate = job.ops[0].io_count as f64 / (job.elapsed_ns as f64 / 1e9);
    let extent = |record: &RunRecord| answer(record, &[]).findings[0].extent.clone();
    let name = paced.phases[0].name.clone();
    for (share, expected) in [
        (1.0, format!("can explain at most 97 % of the latencies of {name}, and not the rate, which was kept")),
        (1.5, format!("can explain at most 97 % of {name}")),
    ] {
        paced.plan.jobs[0].pace.as_mut().expect("a pace").ios_per_s = Some(rate * share);
        assert_eq!(extent(&paced), expected);
        assert_eq!(answer(&paced, &[]).findings[0].loads[0].is_of_latencies, share <= 1.0);
    }
}

/// Goal: a step can be typed as it stands, and its command has these options. Method: every finding of a baseline and of a run; the command
/// of the record is in each step that measures again.
#[test]
fn next_steps_are_commands_of_the_command_that_was_run() {
    let mut record = clean();
    stage(&mut record.phases[0], finding("achieved_depth", "4.1 of 32 I/Os in flight", None));
    record.phases[0].checks.last_mut().expect("it").cause = trueio_model::Cause::Tool;
    let step = |record: &RunRecord| answer(record, &[]).next_steps.join(" ");
    assert!(!step(&record).contains("--ioengine"), "{}", step(&record));
    assert!(step(&record).ends_with("then run `trueio baseline /mnt/data` again"), "{}", step(&record));
    record.kind = "run".to_owned();
    record.command = ["/usr/bin/trueio", "run", "a b.toml", "--ioengine", "libaio"].map(str::to_owned).to_vec();
    assert!(step(&record).starts_with("run `trueio run 'a b.toml' --ioengine io_uring`"), "{}", step(&record));
    stage(&mut record.phases[0], finding("page_cache", "99 % from memory", Some(99)));
    assert!(
        step(&record).starts_with("run `trueio run 'a b.toml' --ioengine libaio --direct require`"),
        "{}",
        step(&record)
    );
    stage(&mut record.phases[0], finding("steadiness", "fell", None));
    assert!(step(&record).contains("--ioengine libaio --steady_state`"), "{}", step(&record));
    for record in records().into_iter().filter(|record| record.kind == "baseline" && record.command.len() > 1) {
        for step in answer(&record, &[]).next_steps {
            let has_command = !step.contains("`trueio baseline") || step.contains("`trueio baseline /mnt/data");
            assert!(has_command && !step.contains("--ioengine") && !step.contains("--direct"), "{step}");
        }
    }
}

/// Goal: a file of zeros in memory needs another place first. Method: both findings, in both orders.
#[test]
fn a_device_in_memory_comes_before_blocks_of_zeros() {
    let checks =
        [finding("zero_blocks", "100 % zeros", Some(100)), finding("memory_backed", "the device is in memory", None)];
    for order in [[0, 1], [1, 0]] {
        let mut record = clean();
        record.phases[0].checks.extend(order.map(|index| checks[index].clone()));
        record.phases[0].verdict = Verdict::Suspect;
        let step = answer(&record, &[]).next_steps[0].clone();
        assert!(step.starts_with("name a directory or file on a disk"), "{step}");
    }
    let mut record = clean();
    stage(&mut record.phases[0], checks[0].clone());
    assert!(answer(&record, &[]).next_steps[0].starts_with("write the whole file first"));
}

/// Goal: a job without a name has one name in every sentence: what it does. Method: one load with a finding and a limit.
#[test]
fn a_job_without_a_name_is_named_by_its_shape_everywhere() {
    let (_, mut record) = situations().into_iter().find(|(name, _)| *name == "one").expect("one load");
    record.phases[0].name = "job".to_owned();
    record.phases[0].jobs[0].name = "job".to_owned();
    record.plan.jobs[0].name = "job".to_owned();
    let conditions = vec!["IOPS < 1".to_owned()];
    record.plan.limits = Some(Box::new(trueio_model::LimitSet { conditions, reference: None }));
    let shape = trueio_report::shape_of(&record.plan.jobs[0]);
    stage(&mut record.phases[0], finding("foreign_io", "dd wrote 335 MiB", Some(23)));
    for text in [screen(&record, &STYLE, "add -v", &[]), terminal(&record, &Style { width: 300, ..STYLE })] {
        for words in [format!("of {shape}"), format!("{shape}: IOPS")] {
            assert!(text.contains(&words), "{words}: {text}");
        }
        assert!(!text.contains("of job") && !text.contains("job:") && !text.contains("(job)"), "{text}");
    }
    let named = fixture::baseline(6);
    assert!(screen(&named, &STYLE, "add -v", &[]).contains("rand-read-4k-q1"));
}
