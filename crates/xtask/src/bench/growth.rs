//! `cargo xtask bench growth`: how cost grows with what a user may have much of.
//!
//! Each row is a run of the program. Its anonymous memory is the peak that the gate on memory measures; CPU is user and
//! system time of the process tree. Memory and bytes do not depend on how busy the machine is, CPU does by some
//! tens of percent.
//!
//! Limits: one run a row. With `--whole` the largest sizes run, too: a billion I/Os, 100 million lines of a log. The rows of the
//! history need Python's `sqlite3`, which fills one.

use super::table::write_between;
use super::tools::job_file;
use crate::gate::{peak_kib, record_of};
use crate::process::Program;
use crate::workspace::{self, has_program};
use anyhow::{Context, Result, bail, ensure};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The longest that one run may take.
const LIMIT_S: u32 = 600;

/// A run: what grows, its size, and the arguments.
struct Case {
    what: &'static str,
    size: String,
    args: Vec<String>,
    /// The file or folder whose bytes are counted.
    output: Option<PathBuf>,
    /// Where the program finds its history.
    data_home: Option<PathBuf>,
    /// Printed instead of figures.
    reason: Option<String>,
}

impl Case {
    fn new(what: &'static str, size: impl Into<String>, args: &str) -> Self {
        let args = args.split_whitespace().map(str::to_owned).collect();
        Self { what, size: size.into(), args, output: None, data_home: None, reason: None }
    }

    fn writing(mut self, output: PathBuf) -> Self {
        self.output = Some(output);
        self
    }

    fn skipped(what: &'static str, size: &str, reason: &str) -> Self {
        Self { reason: Some(reason.to_owned()), ..Self::new(what, size, "") }
    }
}

/// The figures of a run.
struct Figures {
    memory_kib: u64,
    cpu_ms: f64,
    output_bytes: Option<u64>,
}

/// Measures and prints; with `--markdown FILE` also writes the table between the markers of a page.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let (mut program, mut markdown, mut is_whole) = (None, None, false);
    let mut args = args.iter();
    while let Some(&flag) = args.next() {
        match flag {
            "--whole" => is_whole = true,
            "--self" => program = Some(std::fs::canonicalize(args.next().context("`--self` needs a program")?)?),
            "--markdown" => markdown = Some(PathBuf::from(args.next().context("`--markdown` needs a file")?)),
            _ => bail!("`{flag}` is not an option of `cargo xtask bench growth`"),
        }
    }
    let program = match program {
        Some(program) => program,
        None => workspace::build_release()?,
    };
    let folder = tempfile::Builder::new().prefix("trueio-growth").tempdir_in("/dev/shm").context("/dev/shm")?;
    let mut text = format!("{}\n\n{HEAD}", circumstances(&program));
    for case in cases(&program, folder.path(), is_whole)? {
        let row = row(&program, folder.path(), &case).with_context(|| format!("{}, {}", case.what, case.size))?;
        eprint!("{row}");
        text += &row;
    }
    println!("{text}");
    if let Some(path) = &markdown {
        write_between(path, "growth", &text)?;
    }
    Ok(true)
}

const HEAD: &str = "| what grows | size | anonymous memory | CPU | output |\n|---|---|---|---|---|\n";

/// When, and with which program, something was measured.
pub(super) fn circumstances(program: &Path) -> String {
    let of = |program: &str, args: &[&str]| {
        let output = workspace::command(program).args(args).output().ok();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let hash = of("sha256sum", &[&program.to_string_lossy()]);
    format!(
        "{}, commit {}, program {}, load average {}.",
        of("date", &["-u", "+%F"]),
        of("git", &["rev-parse", "--short=12", "HEAD"]),
        hash.get(..16).unwrap_or("unknown"),
        crate::process::load_average()
    )
}

fn row(program: &Path, folder: &Path, case: &Case) -> Result<String> {
    if let Some(reason) = &case.reason {
        return Ok(format!("| {} | {} | – | – | not measured: {reason} |\n", case.what, case.size));
    }
    let Figures { memory_kib, cpu_ms, output_bytes } = measure(program, folder, case)?;
    let output = output_bytes.map_or_else(|| "–".to_owned(), in_bytes);
    Ok(format!("| {} | {} | {} | {} | {output} |\n", case.what, case.size, in_bytes(memory_kib << 10), in_time(cpu_ms)))
}

fn in_bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} KiB", bytes >> 10),
        _ => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    }
}

fn in_time(ms: f64) -> String {
    if ms < 10_000.0 { format!("{ms:.0} ms") } else { format!("{:.1} s", ms / 1e3) }
}

/// Runs twice: for CPU at full speed, for memory under the tracer.
fn measure(program: &Path, folder: &Path, case: &Case) -> Result<Figures> {
    let command = || {
        let mut command = Command::new(program);
        command.args(&case.args).current_dir(folder);
        command.env("XDG_DATA_HOME", case.data_home.as_deref().unwrap_or(folder));
        command
    };
    let remove = || {
        if let Some(output) = &case.output {
            let _ = std::fs::remove_file(output);
            let _ = std::fs::remove_dir_all(output);
        }
    };
    remove();
    let limit = Duration::from_secs(LIMIT_S.into());
    let cost = Program { command: &mut command(), cpu: None, limit }.run()?.checked("trueio")?;
    if case.args.iter().any(|arg| arg == "--json") && case.args.first().is_some_and(|arg| arg == "run") {
        record_of(&cost.stdout)?;
    }
    let output_bytes = case.output.as_deref().map(bytes_in);
    ensure!(output_bytes != Some(0), "it wrote nothing");
    remove();
    let memory_kib = peak_kib(&mut command(), LIMIT_S)?;
    remove();
    Ok(Figures { memory_kib, cpu_ms: (cost.user_ns + cost.system_ns) as f64 / 1e6, output_bytes })
}

/// The bytes of a file, or of the files of a folder.
fn bytes_in(path: &Path) -> u64 {
    let of = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| of(&entry.path())).sum(),
        Err(_) => of(path),
    }
}

/// All rows. What they read is made in `folder`.
fn cases(program: &Path, folder: &Path, is_whole: bool) -> Result<Vec<Case>> {
    let run = "run --no-history --no-evidence --json - --ioengine null --rw randread --bs 4k";
    let batches = "--iodepth 32 --iodepth_batch 16 --iodepth_batch_complete_min 16 --iodepth_batch_complete_max 16";
    let mut cases = Vec::new();
    for (size, count) in [("10⁵", 100_000_u64), ("10⁷", 10_000_000), ("10⁸", 100_000_000), ("10⁹", 1_000_000_000)]
    {
        cases.push(match count > 100_000_000 && !is_whole {
            true => Case::skipped("I/Os (null, depth 32, batches)", size, "only with `--whole`"),
            false => Case::new(
                "I/Os (null, depth 32, batches)",
                size,
                &format!("{run} --size 1g {batches} --time_based --runtime 1h --number_ios {count}"),
            ),
        });
    }
    for (size, seconds) in [("1 minute", 60), ("1 hour", 3_600), ("5 hours", 18_000)] {
        let flags = "run --no-history --no-evidence --json - --ioengine simulated --simulated service=10ms,channels=1";
        let flags = format!("{flags} --rw randread --bs 4k --size 1g --time_based --runtime {seconds}s");
        cases.push(Case::new("run length (modelled disk, 100 I/Os a second)", size, &flags));
    }
    for workers in [1, 100, 1_000, 4_000] {
        let flags = format!("{run} --size 4k --numjobs {workers}");
        cases.push(Case::new("workers, one I/O each", workers.to_string(), &flags));
    }
    for files in [1, 100, 10_000, 50_000] {
        // A job has 65,536 files at most; two jobs of half of them are 100,000.
        let flags = format!("{run} --size 1g --nrfiles {files} --number_ios 1000 --numjobs 2");
        cases.push(Case::new("files (null, two workers)", (2 * files).to_string(), &flags));
    }
    for size in ["1m", "1g", "1t", "16t"] {
        let flags = format!("{run} --size {size} --time_based --runtime 1h --number_ios 1000000");
        cases.push(Case::new("file size, a million I/Os", size, &flags));
    }
    for depth in [1, 32, 1_024, 4_096] {
        let flags = format!("{run} --size 1g --iodepth {depth} --time_based --runtime 1h --number_ios 1000000");
        cases.push(Case::new("depth, a million I/Os", depth.to_string(), &flags));
    }
    for threads in [1, 8, 64] {
        let each = 6_400_000 / threads;
        let flags = format!("{run} --size 1g --time_based --runtime 1h --number_ios {each} --numjobs {threads}");
        cases.push(Case::new("threads, 6.4 million I/Os together", threads.to_string(), &flags));
    }
    cases.extend(logs(folder, run, is_whole));
    cases.extend(pages(program, folder)?);
    for sections in [10, 2_000] {
        let path = folder.join(format!("{sections}.fio"));
        std::fs::write(&path, job_file(sections))?;
        let flags = format!("explain {}", path.display());
        cases.push(Case::new("sections of a job file, planned and printed", sections.to_string(), &flags));
    }
    cases.extend(histories(program, folder));
    Ok(cases)
}

/// Logs and traces of every I/O, at a rate of 100,000 a second, which a trace keeps up with.
fn logs(folder: &Path, run: &str, is_whole: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for (size, count) in [("10⁴", 10_000_u64), ("10⁶", 1_000_000), ("10⁷", 10_000_000), ("10⁸", 100_000_000)] {
        if count > 10_000_000 && !is_whole {
            cases.push(Case::skipped(
                "I/Os in `write_lat_log`",
                size,
                "only with `--whole`: 4 GB of memory for the files",
            ));
            continue;
        }
        let flags = format!(
            "{run} --size 1g --time_based --runtime 1h --number_ios {count} --disable_slat --disable_clat --write_lat_log {}/log",
            folder.display()
        );
        cases.push(Case::new("I/Os in `write_lat_log`", size, &flags).writing(folder.join("log_lat.1.log")));
    }
    for (size, count) in [("10⁴", 10_000_u64), ("10⁶", 1_000_000)] {
        let path = folder.join("trace.parquet");
        let flags = format!(
            "{run} --size 1g --time_based --runtime 1h --number_ios {count} --rate_iops 100000 --trace {}",
            path.display()
        );
        cases.push(Case::new("I/Os in a trace (100,000 a second)", size, &flags).writing(path));
    }
    cases
}

/// Pages of records with many phases.
fn pages(program: &Path, folder: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for phases in [1, 20, 200] {
        let mut jobs = "[defaults]\nioengine = \"null\"\nrw = \"randread\"\nsize = \"1m\"\n".to_owned();
        for phase in 0..phases {
            let _ = writeln!(jobs, "[job.p{phase}]\nstonewall = true\nnumber_ios = 1000");
        }
        let (job, record) = (folder.join("phases.toml"), folder.join(format!("phases-{phases}.json")));
        std::fs::write(&job, jobs)?;
        let mut command = Command::new(program);
        command.args(["run", "--no-history", "--no-evidence", "--json"]).arg(&record).arg(&job);
        let limit = Duration::from_secs(LIMIT_S.into());
        Program { command: &mut command, cpu: None, limit }.run()?.checked("trueio run")?;
        let page = folder.join("page.html");
        let flags = format!("report {} -q --html {}", record.display(), page.display());
        cases.push(Case::new("phases of a page (`report --html`)", phases.to_string(), &flags).writing(page));
    }
    Ok(cases)
}

/// Fills a history with copies of a record: of 20 devices in turn (of 2 in a short one), one a minute.
const FILL: &str = "
import sqlite3, sys, os
path, count = sys.argv[1], int(sys.argv[2])
kinds = 20 if count >= 40 else 2
db = sqlite3.connect(path)
columns = [row[1] for row in db.execute('pragma table_info(runs)')]
first = dict(zip(columns, db.execute('select * from runs limit 1').fetchone()))
db.execute('delete from runs')
for device in range(1, kinds + 1):
    db.execute('insert or ignore into devices (id, label) values (?, ?)', (device, f'disk {device}'))
    db.execute('insert or ignore into device_keys values (?, ?, ?)', (device, 'serial', f'S{device}'))
marks = ', '.join('?' * len(columns))
def runs():
    for number in range(count):
        row = dict(first, id=f'{number * 2654435761 % 2**32:08x}{number:024x}', started_unix_s=first['started_unix_s'] + 60 * number)
        yield [row[name] for name in columns]
db.executemany(f'insert into runs values ({marks})', runs())
names = [row[1] for row in db.execute('pragma table_info(run_devices)')]
starts = 'started_unix_s' in names
db.executemany(f\"insert into run_devices values ({', '.join('?' * len(names))})\",
    ((row[0], number % kinds + 1) + ((row[1],) if starts else ())
     for number, row in enumerate(db.execute('select id, started_unix_s from runs order by started_unix_s'))))
db.commit()
";

/// Commands on histories of several lengths.
fn histories(program: &Path, folder: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for count in [10_u32, 1_000, 100_000] {
        let home = folder.join(format!("history-{count}"));
        if let Err(error) = fill_history(program, &home, count) {
            cases.push(Case::skipped("history", &count.to_string(), &format!("{error:#}")));
            continue;
        }
        for command in ["list", "list --device #1", "trend #1", "compare"] {
            let what: &'static str = match command {
                "list" => "records: `history list`",
                "trend #1" => "records: `history trend` of a device with a twentieth of them (of 10 the half)",
                "compare" => "records: `history compare`",
                _ => "records: `history list --device`",
            };
            let case = Case::new(what, count.to_string(), &format!("history {command}"));
            cases.push(Case { data_home: Some(home.clone()), ..case });
        }
    }
    cases
}

fn fill_history(program: &Path, home: &Path, count: u32) -> Result<()> {
    ensure!(has_program("python3"), "no python3");
    let mut first = Command::new(program);
    first.args(["run", "--ioengine", "null", "--rw", "randread", "--bs", "4k", "--size", "4k", "--no-evidence", "-q"]);
    first.env("XDG_DATA_HOME", home);
    let limit = Duration::from_secs(LIMIT_S.into());
    Program { command: &mut first, cpu: None, limit }.run()?.checked("trueio run")?;
    let path = home.join("trueio/history.sqlite3");
    ensure!(path.exists(), "no history at {}", path.display());
    let mut python = Command::new("python3");
    python.args(["-c", FILL]).arg(&path).arg(count.to_string());
    Program { command: &mut python, cpu: None, limit }.run()?.checked("python3")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_a_unit_of_their_size() {
        assert_eq!((in_bytes(500).as_str(), in_bytes(1 << 20).as_str()), ("500 B", "1024 KiB"));
        assert_eq!(in_bytes(36 << 20), "36.0 MiB");
        assert_eq!((in_time(12.4).as_str(), in_time(12_400.0).as_str()), ("12 ms", "12.4 s"));
    }

    #[test]
    fn an_unknown_flag_is_refused_before_anything_is_built() {
        assert!(run(&["--fast"]).unwrap_err().to_string().contains("`--fast`"));
    }
}
