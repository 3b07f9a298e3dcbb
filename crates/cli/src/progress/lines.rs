//! The lines of `run` and `baseline` on a terminal while they run, on stderr: finished loads, the current one, what is left.
//!
//! All of them are removed at the end, when the result is printed.

use super::Events;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use trueio_model::{Plan, RunRecord, SteadyState, units};
use trueio_report::{Current, Style, clean, current_line, load_words, remaining_line, screen_phase};
use trueio_run::{Event, Observer, Tick};

/// Finished lines that are kept on the terminal; older ones are removed.
const KEPT_COUNT: usize = 18;

/// What one phase of the plan says of itself.
#[derive(Debug)]
struct Planned {
    name: String,
    is_bytes: bool,
    /// Baseline, ramp and runtime; `None` if it ends otherwise.
    ns: Option<u64>,
}

/// The lines of progress on a terminal.
#[derive(Debug)]
pub(crate) struct Lines {
    area: MultiProgress,
    finished: Vec<ProgressBar>,
    current: ProgressBar,
    rest: ProgressBar,
    style: Style,
    planned: Vec<Planned>,
    has_idle: bool,
    index: usize,
    /// The round before the steady state, for the name.
    round: String,
    rates: Vec<f64>,
    others: Option<String>,
    /// The events of `--progress-fd`.
    events: Option<Events>,
}

impl Lines {
    /// Lines on stderr; none if it is no terminal, or one that cannot redraw a line.
    pub(crate) fn new(plan: &Plan, has_idle: bool, is_hidden: bool) -> Self {
        let stderr = std::io::stderr();
        let is_shown = stderr.is_terminal() && !trueio_report::is_dumb() && !is_hidden;
        let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let area = MultiProgress::with_draw_target(target);
        let current = area.add(line());
        let rest = area.add(line());
        let phases = plan.jobs.iter().map(|job| job.phase + 1).max().unwrap_or(0);
        let planned = (0..phases).map(|phase| Planned::of(plan, phase)).collect();
        let style = crate::output::style_of(&stderr);
        Self {
            area,
            finished: Vec::new(),
            current,
            rest,
            style,
            planned,
            has_idle,
            index: 0,
            round: String::new(),
            rates: Vec::new(),
            others: None,
            events: None,
        }
    }

    /// Also writes events.
    pub(crate) fn with_events(self, events: Option<Events>) -> Self {
        Self { events, ..self }
    }

    /// Returns true if anything is shown.
    pub(crate) fn is_shown(&self) -> bool {
        !self.area.is_hidden()
    }

    /// Removes all lines.
    pub(crate) fn clear(&self) {
        self.finished.iter().for_each(ProgressBar::finish_and_clear);
        self.current.finish_and_clear();
        self.rest.finish_and_clear();
        // A failure is that of the terminal; the result follows.
        let _ = self.area.clear();
    }

    /// Names in it may come from a job file.
    fn show(&self, text: &str) {
        self.current.set_message(clean(text).into_owned());
    }

    fn name(&self) -> String {
        let name = self.planned.get(self.index).map_or("", |planned| planned.name.as_str());
        format!("{name}{}", self.round)
    }

    fn show_rest(&self, left_ns: Option<u64>) {
        let later = self.planned.get(self.index + 1..).unwrap_or_default();
        let later_ns: Option<u64> = later.iter().map(|planned| planned.ns).sum();
        let left_ns = left_ns.zip(later_ns).map(|(now, later)| now.saturating_add(later));
        self.rest.set_message(remaining_line(later.len(), left_ns, self.others.as_deref(), &self.style));
    }

    fn phase_begins(&mut self, index: usize) {
        (self.index, self.others) = (index, None);
        self.rates.clear();
        self.round.clear();
        let doing = if self.has_idle { "observing the idle disk" } else { "starting" };
        self.show(&format!("> {}: {doing}", self.name()));
        self.show_rest(self.planned.get(index).and_then(|planned| planned.ns));
    }

    fn round_begins(&mut self, round: u32, rounds_max: u32, so_far: &SteadyState) {
        let drift = so_far.variables.iter().find_map(|variable| variable.excursion_percent);
        let drift = drift.map_or_else(String::new, |drift| format!(" ({drift:+.0} %)"));
        self.round = format!(", round {} of at most {rounds_max}{drift}", round + 1);
        self.rates.clear();
    }

    fn progress(&mut self, tick: &Tick) {
        let known = |ns: u64| (ns > 0).then_some(ns);
        let is_bytes = self.planned.get(self.index).is_some_and(|planned| planned.is_bytes);
        let per_s = if is_bytes { tick.bytes_per_s } else { tick.ios_per_s };
        self.rates.push(per_s);
        let name = self.name();
        let current = Current {
            name: &name,
            is_bytes,
            per_s,
            rates: &self.rates,
            p99_ns: known(tick.latency_ns_p99),
            elapsed_ns: tick.elapsed_ns,
            left_ns: tick.left_ns,
        };
        self.current.set_message(current_line(&current, &self.style));
        self.show_rest(tick.left_ns);
    }

    fn phase_ends(&mut self, record: &RunRecord) {
        let Some(last) = record.phases.len().checked_sub(1) else { return };
        for text in screen_phase(record, last, &self.style).lines() {
            let bar = self.area.insert_before(&self.current, line());
            bar.finish_with_message(text.to_owned());
            self.finished.push(bar);
        }
        while self.finished.len() > KEPT_COUNT {
            self.area.remove(&self.finished.remove(0));
        }
        self.current.set_message("");
    }
}

impl Planned {
    fn of(plan: &Plan, phase: u32) -> Self {
        let jobs: Vec<_> = plan.jobs.iter().filter(|job| job.phase == phase).collect();
        let words: Vec<(String, bool)> = jobs.iter().map(|job| load_words(job)).collect();
        let times: Option<Vec<u64>> = jobs
            .iter()
            .map(|job| Some(job.limits.runtime_ns? + job.limits.ramp_ns + job.limits.start_delay_ns))
            .collect();
        Self {
            name: words.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" + "),
            is_bytes: words.iter().all(|(_, is_bytes)| *is_bytes),
            ns: times.map(|times| times.into_iter().max().unwrap_or(0) + plan.idle_baseline_ns),
        }
    }
}

/// A line that is cut to the terminal's width, because a wrapped line flickers.
fn line() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::with_template("{wide_msg}").expect("a constant template"));
    bar
}

impl Observer for Lines {
    fn notify(&mut self, event: Event<'_>) {
        if let Some(events) = &mut self.events {
            events.notify(&event);
        }
        match event {
            Event::Preparing { path, done_bytes, size_bytes } => {
                let percent = done_bytes * 100 / size_bytes.max(1);
                let size = units::format_bytes(size_bytes);
                self.show(&format!("writing the test file `{path}` ({size}): {percent} %"));
            }
            Event::WaitingForIdle(what) => self.show(&format!("waiting for an idle disk: {what}")),
            Event::PhaseBegins { index, .. } => self.phase_begins(index),
            Event::RoundBegins { round, rounds_max, so_far } => self.round_begins(round, rounds_max, so_far),
            Event::RoundsEnd { .. } => self.round.clear(),
            Event::Progress(tick) => self.progress(tick),
            Event::Watched(watched) => self.others.clone_from(&watched.others),
            Event::PhaseEnds(record) => self.phase_ends(record),
            _ => {}
        }
    }
}
