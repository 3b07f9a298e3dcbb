//! What the live view draws: a pure function of the messages of a run.

use super::{JobSample, Message, Sample};
use ratatui_core::style::{Color, Style};
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span};
use std::collections::VecDeque;
use trueio_model::{Histogram, units};
use trueio_report::clean;
use trueio_run::{Tick, Watched};

/// Samples that are kept: two and a half minutes.
const KEPT_COUNT: usize = 300;
/// Width of the labels on the left.
const LABEL_WIDTH: usize = 10;

/// The metrics of the upper plot, in the order of the key `m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Metric {
    Iops,
    Bandwidth,
    P99,
}

/// One interval of a job, or of all together.
#[derive(Debug, Clone)]
struct Column {
    ios_per_s: f64,
    bytes_per_s: f64,
    /// I/Os by the power of two of their latency in nanoseconds.
    heat: [u64; 64],
    p99_ns: u64,
    is_disturbed: bool,
}

/// The state of the view.
pub(super) struct View {
    is_unicode: bool,
    pub(super) is_ending: bool,
    is_paused: bool,
    metric: Metric,
    /// `None`: all jobs together.
    job: Option<usize>,
    doing: String,
    title: String,
    tick: Option<Tick>,
    last: Sample,
    columns: Vec<VecDeque<Column>>,
    watched: Option<Watched>,
    finished: Vec<String>,
}

impl View {
    pub(super) fn new(is_unicode: bool) -> Self {
        Self {
            is_unicode,
            is_ending: false,
            is_paused: false,
            metric: Metric::Iops,
            job: None,
            doing: "preparing".to_owned(),
            title: String::new(),
            tick: None,
            last: Sample::default(),
            columns: Vec::new(),
            watched: None,
            finished: Vec::new(),
        }
    }

    /// Applies a message. While the display is paused, only finished loads are.
    pub(super) fn receive(&mut self, message: Message) {
        match message {
            Message::Finished(lines) => self.finished.extend(lines.lines().map(str::to_owned)),
            Message::Phase { index, count, name } => {
                self.title = format!("{name} ({} of {count})", index + 1);
                "observing the idle disk".clone_into(&mut self.doing);
                (self.tick, self.watched, self.last) = (None, None, Sample::default());
                self.columns.clear();
            }
            _ if self.is_paused => {}
            Message::Doing(text) => self.doing = text,
            Message::Tick(tick) => self.tick = Some(tick),
            Message::Watched(watched) => self.watched = Some(watched),
            Message::Sample(sample) => self.add(sample),
        }
    }

    /// Applies a key other than `q`.
    pub(super) fn press(&mut self, key: u8) {
        match key {
            b'p' => self.is_paused = !self.is_paused,
            b'm' => {
                self.metric = match self.metric {
                    Metric::Iops => Metric::Bandwidth,
                    Metric::Bandwidth => Metric::P99,
                    Metric::P99 => Metric::Iops,
                }
            }
            b'j' => {
                let count = self.last.jobs.len();
                self.job = match self.job {
                    None if count > 1 => Some(0),
                    Some(job) if job + 1 < count => Some(job + 1),
                    _ => None,
                }
            }
            _ => {}
        }
    }

    /// Adds a column for each job, and one for all.
    fn add(&mut self, sample: Sample) {
        let seconds = sample.elapsed_ns.saturating_sub(self.last.elapsed_ns) as f64 / 1e9;
        if seconds <= 0.0 {
            return;
        }
        let is_disturbed = self.watched.as_ref().is_some_and(|watched| watched.others.is_some());
        let empty = JobSample::default();
        let of_job = |(index, job): (usize, &JobSample)| {
            let last = self.last.jobs.get(index).unwrap_or(&empty);
            let heat = heat_between(&last.latency, &job.latency);
            Column {
                ios_per_s: job.ios.saturating_sub(last.ios) as f64 / seconds,
                bytes_per_s: job.bytes.saturating_sub(last.bytes) as f64 / seconds,
                p99_ns: quantile_of(&heat, 0.99),
                heat,
                is_disturbed,
            }
        };
        let jobs: Vec<Column> = sample.jobs.iter().enumerate().map(of_job).collect();
        let mut all = Column { ios_per_s: 0.0, bytes_per_s: 0.0, heat: [0; 64], p99_ns: 0, is_disturbed };
        for job in &jobs {
            all.ios_per_s += job.ios_per_s;
            all.bytes_per_s += job.bytes_per_s;
            all.heat.iter_mut().zip(job.heat).for_each(|(sum, count)| *sum += count);
        }
        all.p99_ns = quantile_of(&all.heat, 0.99);
        self.columns.resize_with(jobs.len() + 1, VecDeque::new);
        for (columns, column) in self.columns.iter_mut().zip(std::iter::once(all).chain(jobs)) {
            columns.push_back(column);
            if columns.len() > KEPT_COUNT {
                columns.pop_front();
            }
        }
        self.last = sample;
    }

    /// Draws the view.
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let (area, buffer) = (frame.area(), frame.buffer_mut());
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let Some(last) = area.height.checked_sub(1).filter(|last| *last > 0) else { return };
        let rule = if self.is_unicode { '─' } else { '-' };
        let ruled = |text: &str| -> String {
            let text: String = [rule, ' '].into_iter().chain(text.chars()).chain([' ']).take(width).collect();
            let fill = width - text.chars().count();
            text + &rule.to_string().repeat(fill)
        };
        buffer.set_string(0, 0, ruled(&clean(&self.head())), Style::new());
        for (y, line) in (1..last).zip(self.lines(width, height - 2)) {
            buffer.set_line(0, y, &line, area.width);
        }
        buffer.set_string(0, last, ruled("q stop and report   p pause display   m metric   j job"), Style::new());
    }

    fn head(&self) -> String {
        let state = match (self.is_ending, self.is_paused) {
            (true, _) => ", stopping",
            (_, true) => ", display paused",
            _ => "",
        };
        let Some(tick) = &self.tick else { return format!("{} {}{state}", self.title, self.doing) };
        let seconds = |ns: u64| ns.div_ceil(1_000_000_000);
        let all = tick.left_ns.map_or_else(String::new, |left| format!(" of {} s", seconds(tick.elapsed_ns + left)));
        let iops = units::format_count(tick.ios_per_s.max(0.0).round() as u64);
        let bandwidth = units::format_bandwidth(tick.bytes_per_s.max(0.0));
        format!("{}: {}{all}, {iops} IOPS, {bandwidth}{state}", self.title, seconds(tick.elapsed_ns))
    }

    fn lines(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        // Five lines of text below the plots; the finished loads get what is left.
        let plots = height.saturating_sub(6);
        let finished = self.finished.len().min(plots.saturating_sub(8));
        let upper = ((plots - finished) / 3).clamp(2, 8);
        let lower = (plots - finished).saturating_sub(upper).clamp(3, 14);
        let mut lines: Vec<Line<'static>> = Vec::new();
        let kept = &self.finished[self.finished.len() - finished..];
        lines.extend(kept.iter().map(|line| Line::from(clean(line).into_owned())));
        let empty = VecDeque::new();
        let columns = self.columns.get(self.job.map_or(0, |job| job + 1)).unwrap_or(&empty);
        let room = width.saturating_sub(LABEL_WIDTH + 1);
        let shown: Vec<&Column> = columns.iter().skip(columns.len().saturating_sub(room)).collect();
        lines.extend(self.plot(&shown, upper));
        lines.extend(self.heat_map(&shown, lower));
        lines.extend(self.text(width));
        lines.truncate(height);
        lines
    }

    /// The rate or the 99th percentile over time, from zero, `height` lines high.
    fn plot(&self, columns: &[&Column], height: usize) -> Vec<Line<'static>> {
        let value = |column: &Column| match self.metric {
            Metric::Iops => column.ios_per_s,
            Metric::Bandwidth => column.bytes_per_s,
            Metric::P99 => column.p99_ns as f64,
        };
        let most = columns.iter().map(|column| value(column)).fold(0.0, f64::max);
        let (name, top) = match self.metric {
            Metric::Iops => ("IOPS", units::format_count(most as u64)),
            Metric::Bandwidth => ("bytes/s", units::format_bandwidth(most)),
            Metric::P99 => ("p99", units::format_duration_ns(most as u64)),
        };
        let glyphs: [char; 9] = if self.is_unicode {
            [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
        } else {
            [' ', '.', '.', ':', ':', '+', '+', '#', '#']
        };
        let label = |row: usize| match row {
            0 => top.clone(),
            1 => name.to_owned(),
            _ => String::new(),
        };
        (0..height)
            .map(|row| {
                let mut spans = vec![Span::raw(format!("{:>LABEL_WIDTH$} ", label(row)))];
                for column in columns {
                    let eighths = if most > 0.0 { value(column) / most * height as f64 * 8.0 } else { 0.0 };
                    let level = (eighths as usize).saturating_sub((height - 1 - row) * 8).min(8);
                    let color = if column.is_disturbed { Color::Yellow } else { Color::Reset };
                    spans.push(Span::styled(glyphs[level].to_string(), Style::new().fg(color)));
                }
                Line::from(spans)
            })
            .collect()
    }

    /// The latencies over time: darker where more I/Os took so long. `!` below marks I/O of others.
    fn heat_map(&self, columns: &[&Column], height: usize) -> Vec<Line<'static>> {
        let used = |power: &usize| columns.iter().any(|column| column.heat[*power] > 0);
        let (Some(low), Some(high)) = ((0..64).find(used), (0..64).rev().find(used)) else {
            return vec![Line::from(format!("{:>LABEL_WIDTH$} {}", "latency", self.doing))];
        };
        let shades: [char; 5] =
            if self.is_unicode { [' ', '·', '░', '▒', '▓'] } else { [' ', '.', ':', '+', '#'] };
        let rows = (height - 1).min(high - low + 1);
        let mut lines: Vec<Line<'static>> = (0..rows)
            .map(|row| {
                // The lowest row holds all shorter latencies.
                let power = high - row;
                let powers = if row + 1 == rows { low..=power } else { power..=power };
                let label = units::format_duration_ns(1 << power.min(62));
                let mut text = format!("{label:>LABEL_WIDTH$} ");
                for column in columns {
                    let all: u64 = column.heat.iter().sum();
                    let share = powers.clone().map(|power| column.heat[power]).sum::<u64>() as f64 / all.max(1) as f64;
                    text.push(
                        shades[match share {
                            share if share <= 0.0 => 0,
                            share if share < 0.01 => 1,
                            share if share < 0.1 => 2,
                            share if share < 0.4 => 3,
                            _ => 4,
                        }],
                    );
                }
                Line::from(text)
            })
            .collect();
        let marks: String = columns.iter().map(|column| if column.is_disturbed { '!' } else { ' ' }).collect();
        lines.push(Line::from(format!("{:>LABEL_WIDTH$} {marks}", "others")));
        lines
    }

    /// The figures below the plots.
    fn text(&self, width: usize) -> Vec<Line<'static>> {
        let chosen: Vec<&JobSample> = self
            .last
            .jobs
            .iter()
            .enumerate()
            .filter(|(index, _)| self.job.is_none_or(|job| job == *index))
            .map(|one| one.1)
            .collect();
        let mut latency = Histogram::new();
        chosen.iter().for_each(|job| latency.merge(&job.latency));
        let at = |q: f64| {
            let quantile = trueio_stats::quantile(&latency, q);
            quantile.map_or_else(|| "–".to_owned(), |quantile| units::format_duration_ns(quantile.value_ns))
        };
        let names: Vec<&str> = chosen.iter().map(|job| job.name.as_str()).collect();
        let depth: f64 = chosen.iter().filter_map(|job| job.depth).sum();
        let depth_max: u64 = chosen.iter().map(|job| job.depth_max).sum();
        let waited = chosen
            .iter()
            .filter_map(|job| job.waited_share)
            .fold(None, |most: Option<f64>, share| Some(most.map_or(share, |most| most.max(share))));
        let waited = waited
            .map_or_else(String::new, |share| format!("   the tool waits for a processor {:.1} %", share * 100.0));
        let queue = if depth > 0.0 {
            format!("in flight {depth:.1} of {depth_max}")
        } else {
            format!("in flight at most {depth_max}")
        };
        let (disks, others) = match &self.watched {
            Some(watched) => (
                format!(
                    "read {}, wrote {}, busy {:.0} %; this run {}",
                    units::format_bandwidth(watched.read_bytes_per_s as f64),
                    units::format_bandwidth(watched.write_bytes_per_s as f64),
                    watched.busy_share * 100.0,
                    units::format_bandwidth(watched.own_bytes_per_s as f64),
                ),
                watched.others.clone().map_or_else(|| "+ none seen".to_owned(), |others| format!("! {others}")),
            ),
            None => ("no counter of a disk yet".to_owned(), "? not known yet".to_owned()),
        };
        let p = format!(
            "p50 {}  p99 {}  p99.9 {}  max {}",
            at(0.5),
            at(0.99),
            at(0.999),
            latency.max_ns().map_or_else(|| "–".to_owned(), units::format_duration_ns)
        );
        [
            ("histogram", format!("{}  {p}", self.shape(&latency))),
            ("queue", format!("{queue}{waited}")),
            ("disks", disks),
            ("neighbours", others),
            ("job", if self.job.is_none() { format!("all: {}", names.join(", ")) } else { names.join(", ") }),
        ]
        .into_iter()
        .map(|(name, text)| {
            let line = format!("{name:>LABEL_WIDTH$} {}", clean(&text));
            Line::from(line.chars().take(width).collect::<String>())
        })
        .collect()
    }

    /// The distribution of the latencies of the phase so far, one column a power of two.
    fn shape(&self, latency: &Histogram) -> String {
        let heat = heat_between(&Histogram::new(), latency);
        let (Some(low), Some(high)) = (heat.iter().position(|n| *n > 0), heat.iter().rposition(|n| *n > 0)) else {
            return String::new();
        };
        let most = heat.iter().copied().max().unwrap_or(1).max(1) as f64;
        let glyphs: [char; 8] = if self.is_unicode {
            ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
        } else {
            ['_', '.', ':', '-', '=', '+', '*', '#']
        };
        heat[low..=high].iter().map(|count| glyphs[((*count as f64 / most * 7.0).ceil() as usize).min(7)]).collect()
    }
}

/// I/Os between two states of a histogram, by the power of two of their latency.
fn heat_between(before: &Histogram, after: &Histogram) -> [u64; 64] {
    let by_power = |histogram: &Histogram| {
        let mut heat = [0_u64; 64];
        for (low, _, count) in histogram.buckets() {
            heat[(63 - (low | 1).leading_zeros()) as usize] += count;
        }
        heat
    };
    let (before, mut after) = (by_power(before), by_power(after));
    after.iter_mut().zip(before).for_each(|(after, before)| *after = after.saturating_sub(before));
    after
}

/// The upper end of the power of two that holds a quantile; 0 without an I/O.
fn quantile_of(heat: &[u64; 64], q: f64) -> u64 {
    let all: u64 = heat.iter().sum();
    let rank = (all as f64 * q).ceil() as u64;
    let mut seen = 0;
    for (power, count) in heat.iter().enumerate() {
        seen += count;
        if *count > 0 && seen >= rank {
            return 2_u64.saturating_pow(power as u32 + 1);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::backend::TestBackend;
    use ratatui_core::terminal::Terminal;

    /// A view with 20 samples of two jobs, disturbed from the tenth on.
    fn view() -> View {
        let mut view = View::new(true);
        view.receive(Message::Phase { index: 0, count: 2, name: "a+b".to_owned() });
        let mut sample = Sample { elapsed_ns: 0, jobs: vec![JobSample::default(), JobSample::default()] };
        for step in 1..=20_u64 {
            sample.elapsed_ns = step * 500_000_000;
            for (index, job) in sample.jobs.iter_mut().enumerate() {
                job.name = ["a", "b"][index].to_owned();
                (job.ios, job.bytes) = (job.ios + 1_000, job.bytes + 4_096_000);
                job.latency.record_many(100_000 << (index * 4), 1_000);
                (job.depth, job.depth_max) = (Some(7.5), 8);
            }
            view.receive(Message::Sample(sample.clone()));
            let others = (step >= 10).then(|| "dd (pid 812) writes 120 MiB/s on vda".to_owned());
            view.receive(Message::Watched(Watched {
                own_bytes_per_s: 16 << 20,
                read_bytes_per_s: 16 << 20,
                write_bytes_per_s: 120 << 20,
                busy_share: 0.98,
                others,
            }));
        }
        view
    }

    fn drawn(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| view.draw(frame)).expect("it draws");
        terminal.backend().to_string()
    }

    #[test]
    fn it_shows_rate_heat_histogram_queue_evidence_and_neighbours() {
        let text = drawn(&view(), 80, 24);
        for words in [
            "a+b (1 of 2)",
            "4,000 ",
            "p50 ",
            "in flight 15.0 of 16",
            "read 16.0 MiB/s, wrote 120 MiB/s, busy 98 %; this run 16.0 MiB/s",
            "! dd (pid 812) writes 120 MiB/s on vda",
            "all: a, b",
            "q stop and report",
        ] {
            assert!(text.contains(words), "`{words}` is missing\n{text}");
        }
        // Two kinds of latency, 100 µs and 1.6 ms: two rows of the heat map are dark.
        let dark = text.lines().filter(|line| line.contains('▓')).count();
        assert_eq!(dark, 2, "{text}");
        assert!(text.contains("!!!!!!!!!!"), "the disturbed samples are marked\n{text}");
    }

    #[test]
    fn keys_choose_metric_and_job_and_pause_the_display() {
        let mut view = view();
        view.press(b'm');
        assert!(drawn(&view, 80, 24).contains("bytes/s"));
        view.press(b'j');
        let text = drawn(&view, 80, 24);
        assert!(text.contains("in flight 7.5 of 8") && !text.contains("all: a, b"), "{text}");
        view.press(b'p');
        let before = drawn(&view, 80, 24);
        assert!(before.contains("display paused"), "{before}");
        view.receive(Message::Sample(Sample { elapsed_ns: u64::MAX, jobs: Vec::new() }));
        assert_eq!(drawn(&view, 80, 24), before, "a paused display does not move");
        view.press(b'x');
    }

    #[test]
    fn it_draws_on_any_size_before_anything_is_known() {
        for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 100)] {
            drawn(&View::new(true), width, height);
            drawn(&view(), width, height);
        }
        assert!(drawn(&View::new(false), 80, 24).contains("preparing"));
    }
}
