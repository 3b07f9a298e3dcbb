//! `--live`: the run, the comparison or the study, on a whole terminal while it is measured.
//!
//! The run stays on the main thread; a second thread draws ten times a second and reads keys. It gets what it draws as
//! messages, so nothing here waits for the workers. Results so far are requested twice a second: each worker then copies its
//! histograms. Of a comparison, each round is drawn when its slices are done. Of a study, its progress stands where a run has its
//! finished loads. Of a run of several ranks, rank 0 draws, and the others send it theirs.
//!
//! The screen is drawn on stderr, in the terminal's other buffer, with echo and line editing off. They are restored when
//! [`Live`] is dropped, by a panic, and by a second signal, which ends the process at once. Ctrl-C ends the run, and its result
//! is printed as always; so does `q`, with exit code 0. Ctrl-Z gives the terminal back and stops the process; the view is
//! drawn again when it continues.
//!
//! Cannot do: restore the terminal after SIGKILL (`reset` does), or before a SIGTSTP that another process sends.

mod terminal;
mod view;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use terminal::Screen;
use trueio_cluster::{JobSample, RankSample, Sample};
use trueio_compare::{Bench, SessionBench, SliceOrder, Standing};
use trueio_model::{Histogram, Outcome, Plan};
use trueio_report::{Style, comparison_progress, screen_phase};
use trueio_run::{Event, Observer, Tick, Watched};
use view::View;

/// Interval of drawing.
const FRAME: Duration = Duration::from_millis(100);
/// Interval of results so far.
pub(crate) const INTERIM: Duration = Duration::from_millis(500);

/// What the run reports to the view.
enum Message {
    Doing(String),
    Phase {
        index: usize,
        count: usize,
        name: String,
    },
    Tick(Tick),
    Sample(Sample),
    OfRank(RankSample),
    Watched(Watched),
    Finished(String),
    /// How a comparison or a study stands, instead of finished loads.
    Standing(String),
}

/// The view of a run; the observer of it.
pub(crate) struct Live {
    sender: Option<Sender<Message>>,
    thread: Option<JoinHandle<()>>,
    style: Style,
    /// The names of loads on every screen, by the names of their jobs.
    names: BTreeMap<String, String>,
}

impl Live {
    /// Checks that the terminal can be taken over.
    ///
    /// # Errors
    /// stderr is no terminal, or cannot move its cursor.
    pub(crate) fn check() -> Result<(), String> {
        match std::io::stderr().is_terminal() && !trueio_report::is_dumb() {
            true => Ok(()),
            false => Err("--live needs a terminal; stderr is none, or cannot move its cursor".to_owned()),
        }
    }

    /// Takes over the terminal.
    ///
    /// # Errors
    /// As [`Live::check`], or the terminal cannot be taken over; the reason.
    pub(crate) fn start() -> Result<Self, String> {
        Self::check()?;
        let style = crate::output::style_of(&std::io::stderr());
        let screen = Screen::take().map_err(|e| format!("the terminal cannot be taken over\n  because: {e}"))?;
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("live".to_owned())
            .spawn(move || follow(screen, &receiver, style))
            .map_err(|e| format!("the thread that draws cannot be started\n  because: {e}"))?;
        Ok(Self { sender: Some(sender), thread: Some(thread), style, names: BTreeMap::new() })
    }

    /// Names the loads of a plan as the table at the end does.
    pub(crate) fn naming(mut self, plan: &Plan) -> Self {
        let names = plan.jobs.iter().map(|job| (job.name.clone(), trueio_report::load_words(job).0));
        self.names = names.collect();
        self
    }

    fn name_of(&self, job: &str) -> String {
        self.names.get(job).map_or(job, String::as_str).to_owned()
    }

    /// Returns what shows the results so far of other ranks.
    pub(crate) fn of_ranks(&self) -> impl FnMut(RankSample) + use<> {
        let sender = self.sender.clone();
        move |sample| {
            let _ = sender.as_ref().map(|sender| sender.send(Message::OfRank(sample)));
        }
    }

    /// Returns a bench whose slices are drawn, of sides with these names.
    pub(crate) fn sides<'a>(&self, bench: SessionBench<'a>, names: &[&str]) -> Sides<'a> {
        self.send(Message::Phase { index: 0, count: 1, name: format!("comparing {}", names.join(" and ")) });
        self.send(Message::Doing("the first round".to_owned()));
        let jobs = names.iter().map(|name| JobSample { name: (*name).to_owned(), ..JobSample::default() }).collect();
        Sides { bench, sender: self.sender.clone(), so_far: Sample { elapsed_ns: 0, jobs }, slice_count: 0 }
    }

    /// Draws how a comparison stands after a round.
    pub(crate) fn show_standing(&self, standing: &Standing) {
        let Standing { round, round_max, left_ns, answers } = standing;
        self.send(Message::Doing(format!("round {round} of at most {round_max}")));
        self.show_line(comparison_progress(*round, *round_max, *left_ns, answers));
    }

    /// Draws this line instead of finished loads.
    pub(crate) fn show_line(&self, line: String) {
        self.send(Message::Standing(line));
    }

    fn send(&self, message: Message) {
        // The thread has ended: its terminal is gone, and the run goes on.
        let _ = self.sender.as_ref().map(|sender| sender.send(message));
    }
}

/// A bench whose slices are drawn: a column a round, and each side as a job.
pub(crate) struct Sides<'a> {
    bench: SessionBench<'a>,
    sender: Option<Sender<Message>>,
    so_far: Sample,
    slice_count: usize,
}

impl<'a> Sides<'a> {
    /// Returns the bench.
    pub(crate) fn into_bench(self) -> SessionBench<'a> {
        self.bench
    }
}

impl Bench for Sides<'_> {
    fn slice(&mut self, side: usize, order: &SliceOrder) -> Result<(trueio_compare::Sample, Histogram), Outcome> {
        let (sample, latency) = self.bench.slice(side, order)?;
        if let Some(job) = self.so_far.jobs.get_mut(side) {
            job.ios += sample.io_count;
            job.bytes += (sample.bytes_per_s * order.slice_ns as f64 / 1e9) as u64;
            job.latency.merge(&latency);
        }
        self.slice_count += 1;
        // In a round each side has a slice of this length, so the rates of a round are those of its slices.
        if self.slice_count.is_multiple_of(self.so_far.jobs.len().max(1)) {
            self.so_far.elapsed_ns += order.slice_ns;
            let _ = self.sender.as_ref().map(|sender| sender.send(Message::Sample(self.so_far.clone())));
        }
        Ok((sample, latency))
    }

    fn elapsed_ns(&self) -> u64 {
        self.bench.elapsed_ns()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            // A panic of it was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl Observer for Live {
    fn notify(&mut self, event: Event<'_>) {
        match event {
            Event::Preparing { path, done_bytes, size_bytes } => {
                let percent = done_bytes * 100 / size_bytes.max(1);
                self.send(Message::Doing(format!("writing the test file `{path}`: {percent} %")));
            }
            Event::WaitingForIdle(words) => self.send(Message::Doing(format!("waiting for an idle disk: {words}"))),
            Event::PhaseBegins { index, count, name } => {
                self.send(Message::Phase { index, count, name: self.name_of(name) });
            }
            Event::Progress(tick) => self.send(Message::Tick(*tick)),
            Event::Interim(record) => {
                let mut sample = Sample::of(record);
                sample.jobs.iter_mut().for_each(|job| job.name = self.name_of(&job.name));
                self.send(Message::Sample(sample));
            }
            Event::Watched(watched) => self.send(Message::Watched(watched.clone())),
            Event::PhaseEnds(record) => {
                if let Some(last) = record.phases.len().checked_sub(1) {
                    let plain = Style { color: false, ..self.style };
                    self.send(Message::Finished(screen_phase(record, last, &plain)));
                }
            }
            _ => {}
        }
    }
}

/// Draws until the run has ended.
fn follow(mut screen: Screen, receiver: &Receiver<Message>, style: Style) {
    let mut view = View::new(style.unicode);
    let mut due = Instant::now();
    loop {
        match receiver.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(message) => {
                view.receive(message);
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        due = Instant::now() + FRAME;
        let keys = screen.keys();
        for key in keys {
            match key {
                b'q' => {
                    view.is_ending = true;
                    // As Ctrl-C, the run ends and its result is printed, but this is no failure.
                    trueio_run::end_by_key();
                }
                terminal::SUSPEND => {
                    if screen.suspend().is_err() {
                        return;
                    }
                }
                key => view.press(key),
            }
        }
        if screen.draw(|frame| view.draw(frame)).is_err() {
            // The terminal is gone; the run goes on.
            return;
        }
    }
}
