//! Progress: on stderr, only if it is a terminal that can redraw a line, and events for a program that passed a descriptor.

mod events;
mod lines;

pub(crate) use events::{Events, argument};
pub(crate) use lines::Lines;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use trueio_compare::Standing;
use trueio_model::{SteadyState, units};
use trueio_report::{clean, comparison_progress, progress_line};
use trueio_run::{Event, Observer, Tick};

/// Draws one line that is redrawn in place; draws nothing if stderr is no terminal.
#[derive(Debug)]
pub(crate) struct Line {
    bar: ProgressBar,
    phase: String,
    /// True if the idle disks are observed before a phase.
    has_idle: bool,
    /// The events of `--progress-fd`.
    events: Option<Events>,
}

impl Line {
    /// A line on stderr, cut to the terminal's width, because a wrapped line flickers.
    pub(crate) fn new() -> Self {
        let line = Self::hidden();
        if std::io::stderr().is_terminal() && !trueio_report::is_dumb() {
            line.bar.set_draw_target(ProgressDrawTarget::stderr());
            line.bar.set_style(ProgressStyle::with_template("{wide_msg}").expect("a constant template"));
        }
        line
    }

    /// A progress line that draws nothing.
    pub(crate) fn hidden() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self { bar, phase: String::new(), has_idle: true, events: None }
    }

    /// A progress line for runs without evidence, which do not observe idle disks.
    pub(crate) fn without_idle(self, is_without: bool) -> Self {
        Self { has_idle: !is_without, ..self }
    }

    /// Also writes events.
    pub(crate) fn with_events(self, events: Option<Events>) -> Self {
        Self { events, ..self }
    }

    /// Shows a text.
    pub(crate) fn show(&self, text: &str) {
        self.message(text);
    }

    /// Shows how a comparison stands.
    pub(crate) fn show_standing(&mut self, standing: &Standing) {
        let Standing { round, round_max, left_ns, answers } = standing;
        self.message(&comparison_progress(*round, *round_max, *left_ns, answers));
        if let Some(events) = &mut self.events {
            events.standing(standing);
        }
    }

    /// Names in it may come from a job file.
    fn message(&self, text: &str) {
        self.bar.set_message(clean(text).into_owned());
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Line {
    fn preparing(&mut self, path: &str, done_bytes: u64, size_bytes: u64) {
        let percent = done_bytes * 100 / size_bytes.max(1);
        let size = units::format_bytes(size_bytes);
        self.message(&format!("writing the test file `{path}` ({size}): {percent} %"));
    }

    fn phase_begins(&mut self, index: usize, count: usize, name: &str) {
        self.phase = format!("{}/{count} {name}", index + 1);
        let doing = if self.has_idle { "observing the idle disk" } else { "starting" };
        self.message(&format!("{}: {doing}", self.phase));
    }

    fn round_begins(&mut self, round: u32, rounds_max: u32, so_far: &SteadyState) {
        let drift = so_far.variables.iter().filter_map(|variable| {
            Some(format!("{} drift {:+.0} %", variable.name.replace('_', " "), variable.excursion_percent?))
        });
        let drift: Vec<String> = drift.collect();
        let drift = if drift.is_empty() { String::new() } else { format!(" ({})", drift.join(", ")) };
        self.rounds_end();
        self.phase = format!("{}, round {} of at most {rounds_max}{drift}", self.phase, round + 1);
    }

    /// Removes the round from the phase's name.
    fn rounds_end(&mut self) {
        if let Some(end) = self.phase.find(", round") {
            self.phase.truncate(end);
        }
    }

    fn progress(&mut self, tick: &Tick) {
        let known = |ns: u64| (ns > 0).then_some(ns);
        self.message(&progress_line(
            &self.phase,
            tick.fraction,
            tick.bytes_per_s,
            tick.ios_per_s,
            known(tick.latency_ns_p50),
            known(tick.latency_ns_p99),
            tick.left_ns,
        ));
    }
}

impl Observer for Line {
    fn notify(&mut self, event: Event<'_>) {
        if let Some(events) = &mut self.events {
            events.notify(&event);
        }
        match event {
            Event::Preparing { path, done_bytes, size_bytes } => self.preparing(path, done_bytes, size_bytes),
            Event::PhaseBegins { index, count, name } => self.phase_begins(index, count, name),
            Event::RoundBegins { round, rounds_max, so_far } => self.round_begins(round, rounds_max, so_far),
            Event::RoundsEnd { .. } => self.rounds_end(),
            Event::Progress(tick) => self.progress(tick),
            _ => {}
        }
    }
}
