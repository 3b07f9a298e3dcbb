//! The progress line: on a terminal only, on stderr.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use trueio_model::{PhaseRecord, SteadyState, units};
use trueio_report::progress_line;
use trueio_run::{Observer, Tick};

/// Draws one line that is redrawn in place, and nothing where stderr is no terminal.
#[derive(Debug)]
pub(crate) struct Line {
    bar: ProgressBar,
    phase: String,
    /// Whether the disks are watched idle before a phase.
    has_idle: bool,
}

impl Line {
    /// A line on stderr, cut to the terminal's width: one that wraps flickers.
    pub(crate) fn new() -> Self {
        let line = Self::hidden();
        if std::io::stderr().is_terminal() {
            line.bar.set_draw_target(ProgressDrawTarget::stderr());
            line.bar.set_style(ProgressStyle::with_template("{wide_msg}").expect("a constant template"));
        }
        line
    }

    /// One that draws nothing.
    pub(crate) fn hidden() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self { bar, phase: String::new(), has_idle: true }
    }

    /// The same for runs that collect no evidence: no disk is watched idle then.
    pub(crate) fn without_idle(self, is_without: bool) -> Self {
        Self { has_idle: !is_without, ..self }
    }

    /// Shows a text.
    pub(crate) fn show(&self, text: &str) {
        self.bar.set_message(text.to_owned());
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Line {
    fn preparing(&mut self, path: &str, done_bytes: u64, size_bytes: u64) {
        let percent = done_bytes * 100 / size_bytes.max(1);
        let size = units::format_bytes(size_bytes);
        self.bar.set_message(format!("writing the test file `{path}` ({size}): {percent} %"));
    }

    fn phase_begins(&mut self, index: usize, count: usize, name: &str) {
        self.phase = format!("{}/{count} {name}", index + 1);
        let doing = if self.has_idle { "looking at the idle disk" } else { "beginning" };
        self.bar.set_message(format!("{}: {doing}", self.phase));
    }

    fn settled(&mut self, _state: &SteadyState) {
        if let Some(name) = self.phase.split(", round").next() {
            self.phase = name.to_owned();
        }
    }

    fn settling(&mut self, round: u32, rounds_max: u32, so_far: &SteadyState) {
        let drift = so_far.variables.iter().filter_map(|variable| {
            Some(format!("{} drift {:+.0} %", variable.name.replace('_', " "), variable.excursion_percent?))
        });
        let drift: Vec<String> = drift.collect();
        let drift = if drift.is_empty() { String::new() } else { format!(" ({})", drift.join(", ")) };
        let name = self.phase.split(", round").next().unwrap_or_default();
        self.phase = format!("{name}, round {} of {rounds_max} at most{drift}", round + 1);
    }

    fn progress(&mut self, tick: &Tick) {
        let known = |ns: u64| (ns > 0).then_some(ns);
        self.bar.set_message(progress_line(
            &self.phase,
            tick.fraction,
            tick.bytes_per_s,
            tick.ios_per_s,
            known(tick.latency_ns_p50),
            known(tick.latency_ns_p99),
            tick.left_ns,
        ));
    }

    fn phase_ends(&mut self, _phase: &PhaseRecord) {}
}
