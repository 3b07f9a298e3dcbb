//! What the live view draws: a pure function of the messages of a run.
//!
//! Each rank has its own clock and sends its own intervals, so its rates are computed from these. Together, ranks are the sum of
//! their latest intervals, whenever rank 0 has a new one.

use super::Message;
use ratatui_core::style::{Color, Style};
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span};
use std::collections::{BTreeMap, VecDeque};
use trueio_cluster::{JobSample, RankSample, Sample};
use trueio_model::{Histogram, units};
use trueio_report::{clean, fitted, width_of};
use trueio_run::{Tick, Watched};

/// Intervals that are kept of one process: two and a half minutes.
const KEPT_COUNT: usize = 300;
/// Intervals that are kept of all ranks together: each takes half a kilobyte for each job.
const KEPT_COUNT_OF_ALL: usize = 4_800;
/// Intervals of rank 0 without a new one of another rank, after which that rank counts as idle.
const SILENT_MAX: u32 = 4;
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
#[derive(Debug, Clone, Copy)]
struct Column {
    ios_per_s: f64,
    bytes_per_s: f64,
    /// I/Os by the power of two of their latency in nanoseconds.
    heat: [u64; 64],
    p99_ns: u64,
    is_disturbed: bool,
}

impl Column {
    const EMPTY: Self = Self { ios_per_s: 0.0, bytes_per_s: 0.0, heat: [0; 64], p99_ns: 0, is_disturbed: false };

    /// The interval of a job between two states.
    fn between(before: &JobSample, after: &JobSample, seconds: f64) -> Self {
        let heat = heat_between(&before.latency, &after.latency);
        Self {
            ios_per_s: after.ios.saturating_sub(before.ios) as f64 / seconds,
            bytes_per_s: after.bytes.saturating_sub(before.bytes) as f64 / seconds,
            p99_ns: quantile_of(&heat, 0.99),
            heat,
            is_disturbed: false,
        }
    }

    fn sum<'a>(columns: impl Iterator<Item = &'a Column>) -> Self {
        let mut all = Self::EMPTY;
        for column in columns {
            all.ios_per_s += column.ios_per_s;
            all.bytes_per_s += column.bytes_per_s;
            all.heat.iter_mut().zip(column.heat).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
        all.p99_ns = quantile_of(&all.heat, 0.99);
        all
    }
}

/// Intervals, oldest first: of all jobs together, then of each job.
type History = Vec<VecDeque<Column>>;

/// What is known of a rank.
#[derive(Debug, Default)]
struct Rank {
    /// Its host; empty for this process.
    host: String,
    last: Sample,
    /// Its latest interval of each job, in the order of [`View::jobs`].
    latest: Vec<Column>,
    history: History,
    /// Intervals of rank 0 since its latest one.
    silent_count: u32,
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
    /// `None`: all ranks together.
    rank: Option<u32>,
    /// The names of the jobs of the phase, of whichever rank.
    jobs: Vec<String>,
    /// By number; one process is rank 0.
    ranks: BTreeMap<u32, Rank>,
    /// Of all ranks together.
    history: History,
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
            rank: None,
            jobs: Vec::new(),
            ranks: BTreeMap::new(),
            history: History::new(),
            watched: None,
            finished: Vec::new(),
        }
    }

    /// Applies a message. While the display is paused, only finished loads are.
    pub(super) fn receive(&mut self, message: Message) {
        match message {
            Message::Finished(lines) => self.finished.extend(lines.lines().map(str::to_owned)),
            Message::Standing(line) => self.finished = vec![line],
            Message::Phase { index, count, name } => {
                self.title = format!("{name} ({} of {count})", index + 1);
                "observing the idle disk".clone_into(&mut self.doing);
                (self.tick, self.watched) = (None, None);
                self.jobs.clear();
                self.ranks.clear();
                self.history.clear();
            }
            _ if self.is_paused => {}
            Message::Doing(text) => self.doing = text,
            Message::Tick(tick) => self.tick = Some(tick),
            Message::Watched(watched) => self.watched = Some(watched),
            Message::Sample(sample) => {
                self.add(0, "", sample);
                self.end_interval();
            }
            Message::OfRank(RankSample { rank, host, sample }) => self.add(rank, &host, sample),
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
                let count = self.jobs.len();
                self.job = match self.job {
                    None if count > 1 => Some(0),
                    Some(job) if job + 1 < count => Some(job + 1),
                    _ => None,
                }
            }
            b'r' if self.has_ranks() => {
                let after = self.rank.map_or(0, |rank| rank + 1);
                self.rank = self.ranks.range(after..).next().map(|(rank, _)| *rank);
            }
            _ => {}
        }
    }

    /// Whether another rank has sent results.
    fn has_ranks(&self) -> bool {
        self.ranks.len() > 1
    }

    /// Keeps the latest interval of a rank.
    fn add(&mut self, rank: u32, host: &str, sample: Sample) {
        for job in &sample.jobs {
            if !self.jobs.contains(&job.name) {
                self.jobs.push(job.name.clone());
            }
        }
        let rank = self.ranks.entry(rank).or_default();
        host.clone_into(&mut rank.host);
        let seconds = sample.elapsed_ns.saturating_sub(rank.last.elapsed_ns) as f64 / 1e9;
        if seconds <= 0.0 {
            return;
        }
        let empty = JobSample::default();
        let of = |sample: &'_ Sample, name: &str| sample.jobs.iter().position(|job| job.name == name);
        rank.latest = self
            .jobs
            .iter()
            .map(|name| {
                let before = of(&rank.last, name).map_or(&empty, |index| &rank.last.jobs[index]);
                let after = of(&sample, name).map_or(before, |index| &sample.jobs[index]);
                Column::between(before, after, seconds)
            })
            .collect();
        rank.last = sample;
        rank.silent_count = 0;
    }

    /// Adds the latest intervals of all ranks to what is drawn.
    fn end_interval(&mut self) {
        let is_disturbed = self.watched.as_ref().is_some_and(|watched| watched.others.is_some());
        let kept = (KEPT_COUNT_OF_ALL / self.ranks.len().max(1)).clamp(20, KEPT_COUNT);
        let push = |history: &mut History, jobs: &[Column]| {
            history.resize_with(jobs.len() + 1, VecDeque::new);
            let all = Column::sum(jobs.iter());
            for (columns, column) in history.iter_mut().zip(std::iter::once(&all).chain(jobs)) {
                columns.push_back(Column { is_disturbed, ..*column });
                if columns.len() > kept {
                    columns.pop_front();
                }
            }
        };
        let mut all = vec![Column::EMPTY; self.jobs.len()];
        for rank in self.ranks.values_mut() {
            if rank.silent_count > SILENT_MAX {
                rank.latest.clear();
            }
            rank.silent_count += 1;
            rank.latest.resize(self.jobs.len(), Column::EMPTY);
            all.iter_mut().zip(&rank.latest).for_each(|(sum, column)| *sum = Column::sum([&*sum, column].into_iter()));
            push(&mut rank.history, &rank.latest);
        }
        push(&mut self.history, &all);
    }

    /// The intervals that are drawn: of the chosen rank and job.
    fn shown(&self) -> Option<&VecDeque<Column>> {
        let history = match self.rank {
            Some(rank) => &self.ranks.get(&rank)?.history,
            None => &self.history,
        };
        history.get(self.job.map_or(0, |job| job + 1))
    }

    /// Draws the view.
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let (area, buffer) = (frame.area(), frame.buffer_mut());
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let Some(last) = area.height.checked_sub(1).filter(|last| *last > 0) else { return };
        let rule = if self.is_unicode { '─' } else { '-' };
        let ruled = |text: &str| -> String {
            let text = fitted(&format!("{rule} {text} "), width);
            let fill = width.saturating_sub(width_of(&text));
            text + &rule.to_string().repeat(fill)
        };
        buffer.set_string(0, 0, ruled(&clean(&self.head())), Style::new());
        for (y, line) in (1..last).zip(self.lines(width, height - 2)) {
            buffer.set_line(0, y, &line, area.width);
        }
        let keys = if self.has_ranks() { "   r rank" } else { "" };
        let keys = format!("q stop and report   p pause display   m metric   j job{keys}");
        buffer.set_string(0, last, ruled(&keys), Style::new());
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
        // A tick is of this process alone.
        let of_ranks = self.history.first().filter(|_| self.has_ranks()).and_then(VecDeque::back);
        let (ios, bytes) =
            of_ranks.map_or((tick.ios_per_s, tick.bytes_per_s), |column| (column.ios_per_s, column.bytes_per_s));
        let iops = units::format_count(ios.max(0.0).round() as u64);
        let bandwidth = units::format_bandwidth(bytes.max(0.0));
        format!("{}: {}{all}, {iops} IOPS, {bandwidth}{state}", self.title, seconds(tick.elapsed_ns))
    }

    fn lines(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        // Five or six lines of text below the plots; the finished loads get what is left.
        let plots = height.saturating_sub(if self.has_ranks() { 7 } else { 6 });
        let finished = self.finished.len().min(plots.saturating_sub(8));
        let mut lines: Vec<Line<'static>> = Vec::new();
        let kept = &self.finished[self.finished.len() - finished..];
        lines.extend(kept.iter().map(|line| Line::from(clean(line).into_owned())));
        let empty = VecDeque::new();
        let columns = self.shown().unwrap_or(&empty);
        let room = width.saturating_sub(LABEL_WIDTH + 1);
        let shown: Vec<&Column> = columns.iter().skip(columns.len().saturating_sub(room)).collect();
        let room = plots - finished;
        let heat_map = self.heat_map(&shown, (room - room / 3).max(3));
        // What the latencies do not need, the upper plot gets.
        lines.extend(self.plot(&shown, room.saturating_sub(heat_map.len()).max(2)));
        lines.extend(heat_map);
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
            .ranks
            .iter()
            .filter(|(number, _)| self.rank.is_none_or(|rank| rank == **number))
            .flat_map(|(_, rank)| &rank.last.jobs)
            .filter(|job| self.job.is_none_or(|chosen| self.jobs.get(chosen) == Some(&job.name)))
            .collect();
        let mut names: Vec<&str> = chosen.iter().map(|job| job.name.as_str()).collect();
        names.sort_unstable_by_key(|name| self.jobs.iter().position(|job| job == name));
        names.dedup();
        let mut latency = Histogram::new();
        // What another rank counted beyond 64 bits is left out.
        chosen.iter().for_each(|job| drop(latency.checked_merge(&job.latency)));
        let at = |q: f64| {
            let quantile = trueio_stats::quantile(&latency, q);
            quantile.map_or_else(|| "–".to_owned(), |quantile| units::format_duration_ns(quantile.value_ns))
        };
        let depth: f64 = chosen.iter().filter_map(|job| job.depth).sum();
        let depth_max = chosen.iter().map(|job| job.depth_max).fold(0, u64::saturating_add);
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
        .chain(self.has_ranks().then(|| ("rank", self.rank_words())))
        .map(|(name, text)| Line::from(fitted(&format!("{name:>LABEL_WIDTH$} {}", clean(&text)), width)))
        .collect()
    }

    /// The chosen rank, or how far apart the ranks are: `2 of 4 (node7)`, `all 4; slowest 2 (node7) 1,200 IOPS, fastest 0 9,100 IOPS`.
    fn rank_words(&self) -> String {
        let count = self.ranks.len();
        let name = |number: u32, rank: &Rank| match rank.host.is_empty() {
            true => number.to_string(),
            false => format!("{number} ({})", rank.host),
        };
        if let Some((number, rank)) = self.rank.and_then(|number| Some((number, self.ranks.get(&number)?))) {
            return format!("{} of {count}", name(number, rank));
        }
        let rate = |rank: &Rank| rank.latest.iter().map(|column| column.ios_per_s).sum::<f64>();
        let by_rate = || self.ranks.iter().map(|(number, rank)| (rate(rank), name(*number, rank)));
        let words = |(rate, name): (f64, String)| format!("{name} {} IOPS", units::format_count(rate.round() as u64));
        let slowest = by_rate().min_by(|a, b| a.0.total_cmp(&b.0)).map(words).unwrap_or_default();
        let fastest = by_rate().max_by(|a, b| a.0.total_cmp(&b.0)).map(words).unwrap_or_default();
        format!("all {count}; slowest {slowest}, fastest {fastest}")
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

    /// Goal: ranks are drawn together and each alone. Method: three ranks with rates of 1:2:3; the last one falls silent.
    #[test]
    fn ranks_are_shown_together_and_each_alone_and_a_silent_one_counts_as_idle() {
        let mut view = View::new(true);
        view.receive(Message::Phase { index: 0, count: 1, name: "a".to_owned() });
        let tick = Tick {
            fraction: 0.5,
            elapsed_ns: 5_000_000_000,
            bytes_per_s: 1.0,
            ios_per_s: 1.0,
            latency_ns_p50: 1,
            latency_ns_p99: 1,
            left_ns: None,
        };
        view.receive(Message::Tick(tick));
        let sample = |rank: u64, step: u64| {
            let mut job = JobSample { name: "a".to_owned(), depth_max: 4, ..JobSample::default() };
            (job.ios, job.bytes) = (step * 500 * (rank + 1), step * 500 * (rank + 1) * 4096);
            job.latency.record_many(100_000, job.ios);
            Sample { elapsed_ns: step * 500_000_000, jobs: vec![job] }
        };
        let of_rank = |rank: u64, step| {
            Message::OfRank(RankSample { rank: rank as u32, host: format!("node{rank}"), sample: sample(rank, step) })
        };
        for step in 1..=20 {
            view.receive(of_rank(1, step));
            if step <= 5 {
                view.receive(of_rank(2, step));
            }
            view.receive(Message::Sample(sample(0, step)));
            if step == 5 {
                let text = drawn(&view, 100, 30);
                for words in ["6,000 IOPS", "in flight at most 12", "r rank"] {
                    assert!(text.contains(words), "`{words}` is missing\n{text}");
                }
                assert!(text.contains("all 3; slowest 0 1,000 IOPS, fastest 2 (node2) 3,000 IOPS"), "{text}");
            }
        }
        let text = drawn(&view, 100, 30);
        assert!(text.contains("slowest 2 (node2) 0 IOPS, fastest 1 (node1) 2,000 IOPS"), "{text}");
        for words in ["0 of 3", "1 (node1) of 3", "2 (node2) of 3", "all 3; "] {
            view.press(b'r');
            let text = drawn(&view, 100, 30);
            assert!(text.contains(words), "`{words}` is missing\n{text}");
        }
        // The plot of rank 1 ends at its own rate, not at that of all.
        view.press(b'r');
        view.press(b'r');
        let text = drawn(&view, 100, 30);
        assert!(text.lines().any(|line| line.trim_start_matches(['"', ' ']).starts_with("2,000 ")), "{text}");
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

    /// Goal: what other ranks send at the ends of the ranges of samples is drawn.
    #[test]
    fn samples_at_the_ends_of_their_ranges_are_drawn() {
        let mut view = View::new(true);
        for elapsed_ns in [1, 2, 1 << 56] {
            for rank in 0..70 {
                let mut job = JobSample { name: "a".to_owned(), ios: elapsed_ns.min(1 << 48), ..JobSample::default() };
                (job.bytes, job.depth, job.depth_max) = (elapsed_ns.saturating_mul(4), Some(1e18), u64::MAX);
                (job.waited_share, job.latency) = (Some(1e18), Histogram::new());
                job.latency.record_many(5, job.ios);
                let sample = Sample { elapsed_ns, jobs: vec![job] };
                view.receive(Message::OfRank(RankSample { rank, host: "h\u{1b}[2J".to_owned(), sample }));
            }
            view.receive(Message::Sample(Sample { elapsed_ns, jobs: vec![JobSample::default()] }));
            for (width, height) in [(1, 1), (80, 24), (300, 100)] {
                assert!(!drawn(&view, width, height).contains('\u{1b}'));
            }
        }
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
