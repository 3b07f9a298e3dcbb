//! Job files of a folder, with fio and with `trueio fio`: what parses, and what ends with the same exit code.
//!
//! Public job files name other machines' disks, and run for hours. So each is parsed as it is (`--parse-only`), and runs
//! rewritten: targets become files of an empty folder, sizes and times are bounded, commands (`exec_prerun`) are left out.
//! As root, both programs run as the user 65534, who may open no disk. Nothing of the files enters this repository.
//!
//! The shares are net: job files with an engine for absent hardware or networks, or that include a file which is not there,
//! refusals that protect data, and runs that take too long are left out, and each is printed with its reason.
//!
//! Limits: a job file that is fio's own (an older name of an
//! option, a variable of the environment that is not set) fails in both programs, and counts as the same.

use crate::workspace::{self, command};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tempfile::TempDir;
use trueio_testkit::output_within;

/// The share of the job files that fio parses which must parse, and of all that must end with fio's exit code, in percent.
const SHARES_MIN: [f64; 2] = [99.0, 99.0];
/// Engines for hardware, networks and systems that are not here.
const ABSENT: &str = "cpp_null fusion-aw-sync net netsplice rdma rbd rados sg spdk xnvme libblkio libzbc gfapi gfapi_async libhdfs http nbd nfs libiscsi mtd \
                      dev-dax libpmem pmemblk windowsaio solarisaio guasi libcufile dfs external cuda ime_psync ime_psyncv ime_aio \
                      io_uring_cmd librpma_apm_client librpma_apm_server librpma_gpspm_client librpma_gpspm_server";
/// Rules of refusals that protect data, or start no program that a file names.
const PROTECTIVE: &str = "command_not_allowed exec_not_allowed output_replaces output_unrecognised output_exists existing_target_not_named \
                          target_mounted target_member_of_filesystem target_is_swap target_carries_device target_claimed \
                          target_open_for_writing target_open_elsewhere target_is_link device_not_examined signature_not_named generated_name_taken";
/// Engines that create, remove or truncate the names that they are given: their files are not there before the run.
const MAKES_NAMES: &str = "filecreate filestat filedelete fileoperation dircreate dirstat dirdelete ftruncate";
/// The beginnings of refusals of fio's language that do so.
const PROTECTIVE_WORDS: [&str; 2] = ["error: `mem=mmapshared", "error: `ioengine=exec` would run"];
/// Bytes of the files that jobs name, the largest size of a job, and the largest offset.
const FILE_BYTES: u64 = 16 << 20;
const SIZE_MAX: u64 = 4 << 20;
/// The most files of a job for which its size is multiplied.
const FILES_MAX: u64 = 16;
const OFFSET_MAX: u64 = 1 << 20;
/// A run that takes longer is left out, in seconds.
const LONGEST: Duration = Duration::from_secs(20);
/// The exit code of a run that took longer.
const SLOW: Option<i32> = Some(124);

/// A job file whose run is bounded.
#[derive(Debug, Default)]
struct Bounded {
    text: String,
    /// The files that it names.
    files: BTreeSet<String>,
    /// Its engine for absent hardware.
    absent: Option<String>,
    /// True if an engine of it makes names.
    makes_names: bool,
    /// The largest size of a job: it holds a block in each of its files.
    size_max: u64,
    /// The files that it includes, by their names.
    included: Vec<String>,
}

/// How a program treats a job file.
#[derive(Debug, PartialEq)]
struct Ending {
    parsed: Option<i32>,
    ran: Option<i32>,
    said: String,
    /// The rule of the refusal that protects data.
    protects: Option<String>,
}

/// The counts of all job files; what differs is printed at once, so that a run that is interrupted has a result.
#[derive(Debug, Default)]
struct Counts {
    total: u64,
    /// Why job files are left out, of parsing and running or of running alone.
    excluded: Vec<String>,
    parsed: [u64; 2],
    ran: [u64; 2],
    /// The same of those that are left out although both programs ran them: includes that are missing, and refusals.
    parsed_left_out: [u64; 2],
    ran_left_out: [u64; 2],
}

/// Runs the job files below `folder`. Returns true if enough are treated alike.
///
/// # Errors
/// If there is no fio (`FIO` names one), or a program cannot be started.
pub(crate) fn run(folder: &Path, program: Option<&Path>) -> Result<bool> {
    let program = match program {
        Some(program) => fs::canonicalize(program).with_context(|| format!("no program at {}", program.display()))?,
        None => workspace::build_release()?,
    };
    let fio = std::env::var("FIO").unwrap_or_else(|_| "/usr/bin/fio".to_owned());
    // Where another user may run them.
    let bin = TempDir::new()?;
    fs::set_permissions(bin.path(), fs::Permissions::from_mode(0o755))?;
    let programs = [(Path::new(&fio), "fio"), (&program, "trueio")].map(|(from, name)| {
        let to = bin.path().join(name);
        fs::copy(from, &to).with_context(|| format!("no program at {}", from.display())).map(|_| to)
    });
    let [fio, ours] = programs;
    let programs = [(fio?, &[][..]), (ours?, &["fio"][..])];
    let mut paths = Vec::new();
    note_job_files(folder, &mut paths)?;
    ensure!(!paths.is_empty(), "{} has no job files (*.fio, *.job)", folder.display());
    paths.sort();
    let (next, counts) = (AtomicUsize::new(0), Mutex::new(Counts::default()));
    let work = || -> Result<()> {
        while let Some(path) = paths.get(next.fetch_add(1, Relaxed)) {
            let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
            let bounded = bounded(&text);
            let beside = path.parent().unwrap_or(folder);
            let missing = bounded.included.iter().find(|name| !beside.join(name).is_file());
            let absent = bounded.absent.as_ref();
            let endings = match absent {
                Some(engine) => Err(format!("the engine {engine} is for absent hardware, networks or systems")),
                None => {
                    Ok([ending(&programs[0], &text, &bounded, beside)?, ending(&programs[1], &text, &bounded, beside)?])
                }
            };
            // fio prints an error, and runs what is left of the file.
            let missing = missing.map(|name| format!("it includes `{name}`, which is not there"));
            let name = path.strip_prefix(folder).unwrap_or(path).display().to_string();
            counts.lock().expect("no thread panics").add(&name, endings, missing);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    Ok(counts.into_inner().expect("no thread panics").print())
}

impl Counts {
    /// Adds how both programs end; `Err`, `missing`: why the job file is left out.
    fn add(&mut self, name: &str, endings: Result<[Ending; 2], String>, missing: Option<String>) {
        self.total += 1;
        if self.total.is_multiple_of(50) {
            let Counts { total, parsed, ran, .. } = self;
            println!("so far: {total} job files, {parsed:?} parse, {ran:?} run");
        }
        let [fio, ours] = match endings {
            Ok(endings) => endings,
            Err(reason) => return self.excluded.push(format!("{name}: {reason}")),
        };
        let protects = ours.protects.as_ref().filter(|_| ours.ran != fio.ran);
        let protects = protects.map(|rule| format!("refused to protect data: {rule}: {}", ours.said));
        let left_out = missing.or(protects);
        let (parsed, ran) = match left_out {
            Some(_) => (&mut self.parsed_left_out, &mut self.ran_left_out),
            None => (&mut self.parsed, &mut self.ran),
        };
        let is_counted = left_out.is_none();
        self.excluded.extend(left_out.map(|reason| format!("{name}: {reason}")));
        if fio.parsed == Some(0) {
            parsed[0] += 1;
            match ours.parsed {
                Some(0) => parsed[1] += 1,
                _ if is_counted => println!("{name}: does not parse here: {}", ours.said),
                _ => {}
            }
        }
        if [fio.ran, ours.ran].contains(&SLOW) {
            let slow = format!("{name}: too slow to run: fio {:?}, here {:?}", fio.ran, ours.ran);
            return self.excluded.extend(is_counted.then_some(slow));
        }
        ran[0] += 1;
        match fio.ran == ours.ran {
            true => ran[1] += 1,
            false if is_counted => {
                let codes = format!("exit code: fio {:?}, here {:?}", fio.ran, ours.ran);
                println!("{name}: {codes}\n    fio: {}\n    here: {}", fio.said, ours.said);
            }
            false => {}
        }
    }

    fn print(&self) -> bool {
        let Counts { total, parsed, ran, excluded, parsed_left_out, ran_left_out } = self;
        let share = |[of, part]: [u64; 2]| if of == 0 { 100.0 } else { part as f64 * 100.0 / of as f64 };
        println!("left out:");
        excluded.iter().for_each(|reason| println!("  {reason}"));
        println!("{total} job files, {} of them left out", excluded.len());
        println!("parse: {} of {} that fio parses ({:.1} %)", parsed[1], parsed[0], share(*parsed));
        println!("run: {} of {} end with fio's exit code ({:.1} %)", ran[1], ran[0], share(*ran));
        let [parsed_gross, ran_gross] = [(parsed, parsed_left_out), (ran, ran_left_out)]
            .map(|(counted, left_out)| [counted[0] + left_out[0], counted[1] + left_out[1]]);
        println!(
            "with missing includes and refusals that protect data: {} of {} parse ({:.1} %), {} of {} run ({:.1} %)",
            parsed_gross[1],
            parsed_gross[0],
            share(parsed_gross),
            ran_gross[1],
            ran_gross[0],
            share(ran_gross)
        );
        share(*parsed) >= SHARES_MIN[0] && share(*ran) >= SHARES_MIN[1]
    }
}

fn note_job_files(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("no folder at {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            note_job_files(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "fio" || extension == "job") {
            paths.push(path);
        }
    }
    Ok(())
}

/// Runs a program on a job file, in a folder with the files that it names, and those that it includes from `beside`.
fn ending((program, first): &(PathBuf, &[&str]), text: &str, bounded: &Bounded, beside: &Path) -> Result<Ending> {
    let folder = TempDir::new()?;
    let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    let within = folder.path().join("d");
    fs::create_dir(&within)?;
    for place in [folder.path(), &within] {
        open(place, 0o777)?;
        for name in bounded.files.iter().filter(|_| !bounded.makes_names) {
            let path = place.join(name);
            fs::write(&path, vec![0x5a; FILE_BYTES as usize])?;
            open(&path, 0o666)?;
        }
    }
    for (name, text) in [("whole.fio", text), ("bounded.fio", &bounded.text)] {
        fs::write(folder.path().join(name), text)?;
        open(&folder.path().join(name), 0o644)?;
    }
    for name in bounded.included.iter().filter(|name| !name.contains("..") && !name.starts_with('/')) {
        let Ok(text) = fs::read_to_string(beside.join(name)) else { continue };
        let to = folder.path().join(name);
        let parent = to.parent().unwrap_or(folder.path());
        fs::create_dir_all(parent)?;
        open(parent, 0o777)?;
        fs::write(&to, self::bounded(&text).text)?;
        open(&to, 0o644)?;
    }
    let run = |arguments: &[&str]| -> Result<(Option<i32>, String)> {
        let mut limited = command("nice");
        if workspace::is_root() {
            limited.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        limited.arg(program).args(*first).args(arguments);
        limited.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", folder.path()).env("XDG_DATA_HOME", &within);
        let Some(ran) = output_within(&mut limited, folder.path(), LONGEST)? else {
            return Ok((SLOW, String::new()));
        };
        let said = [ran.stderr, ran.stdout].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        Ok((ran.status.code(), said))
    };
    let (parsed, problems) = run(&["--parse-only", "whole.fio"])?;
    let (ran, said) = run(&["--output=out.txt", "bounded.fio"])?;
    let rule = said.lines().find_map(|line| line.trim().strip_prefix("rule: "));
    let rule = rule.filter(|rule| PROTECTIVE.split_whitespace().any(|name| name == *rule));
    let words = PROTECTIVE_WORDS.iter().find(|words| said.starts_with(**words)).copied();
    let protects = rule.or(words).map(str::to_owned);
    let said = if parsed == Some(0) { said } else { problems };
    Ok(Ending { protects, parsed, ran, said: said.lines().take(4).collect::<Vec<_>>().join(" | ") })
}

/// Rewrites a job file so that it may run anywhere.
fn bounded(text: &str) -> Bounded {
    let options: Vec<_> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let values = |names: &'static [&str]| options.iter().filter(|option| names.contains(&option.0.trim())).map(|o| o.1);
    let file_count = values(&["filename"]).map(|names| names.split(':').count() as u64).max().unwrap_or(1);
    let block = values(&["bs", "blocksize"]).filter_map(|value| bytes(value.trim())).max().unwrap_or(0);
    let size_max = SIZE_MAX.max(block.min(FILE_BYTES)) * file_count.clamp(1, FILES_MAX);
    let mut bounded = Bounded { size_max, ..Bounded::default() };
    for line in text.lines() {
        if let Some(path) = line.trim_start().strip_prefix("include ") {
            bounded.included.push(path.trim().to_owned());
        }
        let is_option = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let option = line.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        let rewritten = match option.filter(|(name, _)| is_option(name)) {
            Some((name, value)) => bounded_option(name, value, &mut bounded),
            None => Some(line.to_owned()),
        };
        if let Some(line) = rewritten {
            bounded.text += &line;
            bounded.text.push('\n');
        }
    }
    bounded
}

/// Rewrites an option; `None`: it is left out.
fn bounded_option(name: &str, whole: &str, bounded: &mut Bounded) -> Option<String> {
    // Without a comment.
    let value = whole.split([' ', '\t']).next().unwrap_or_default();
    let size = |most: u64| {
        let limit = |part: &str| match bytes(part) {
            Some(bytes) if bytes > most => most.to_string(),
            _ => part.to_owned(),
        };
        let parts = if value.contains('%') { vec![value.to_owned()] } else { value.split('-').map(limit).collect() };
        // A range whose ends are the same is a size.
        if parts.iter().all(|part| *part == parts[0]) { parts[0].clone() } else { parts.join("-") }
    };
    let count = |most: u64| value.parse().map_or(value.to_owned(), |count: u64| count.min(most).to_string());
    let file = |value: &str| value.rsplit('/').next().unwrap_or_default().to_owned();
    let value = match &name.to_ascii_lowercase()[..] {
        "exec_prerun" | "exec_postrun" => return None,
        // They would fill the disk of this machine.
        "fill_device" | "fill_fs" => return Some(format!("size={}", bounded.size_max)),
        "ioengine" => {
            let engine = value.split(':').next().unwrap_or_default();
            if ABSENT.split_whitespace().any(|absent| absent == engine) {
                bounded.absent = Some(engine.to_owned());
            }
            bounded.makes_names |= MAKES_NAMES.split_whitespace().any(|makes| makes == engine);
            value.to_owned()
        }
        "filename" => {
            let named = value.split(':').map(|path| path.replace('/', "_").trim_matches('_').to_owned());
            let named: Vec<_> = named.map(|name| if name.is_empty() { "f".to_owned() } else { name }).collect();
            bounded.files.extend(named.iter().filter(|name| !name.contains('$')).cloned());
            named.join(":")
        }
        "directory" => "d".to_owned(),
        "size" | "io_size" | "filesize" | "file_size" => size(bounded.size_max),
        "offset" | "offset_increment" | "zonesize" | "zonerange" | "zoneskip" => size(OFFSET_MAX),
        "runtime" | "timeout" | "ramp_time" if seconds(value).is_some_and(|seconds| seconds > 1.0) => "1".to_owned(),
        "startdelay" => "0".to_owned(),
        "numjobs" => count(4),
        "loops" => count(2),
        "nrfiles" => count(16),
        "read_iolog" | "write_iolog" | "include" | "opendir" => file(value),
        log if log.starts_with("write_") && log.ends_with("_log") => file(value),
        _ => whole.to_owned(),
    };
    Some(format!("{name}={value}"))
}

/// Reads a size such as `4g`.
fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let text = text.trim_end_matches('b').trim_end_matches('i');
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let exponent = match &text[digits.len()..] {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    Some((digits.parse::<f64>().ok()? * 1024_f64.powi(exponent)) as u64)
}

/// Reads a time such as `5m`.
fn seconds(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..].to_ascii_lowercase()[..] {
        "" | "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "ms" | "msec" => 1e-3,
        "us" | "usec" => 1e-6,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_file_is_rewritten_to_files_of_its_folder_and_bounded() {
        assert_eq!(super::bounded("[a]\ninclude x.fio\n").included, ["x.fio"]);
        let text = "[global]\nfilename=/dev/sda:/mnt/x # disks\nsize = 100G\nruntime=10m\nexec_prerun=reboot\n\
                    write_bw_log=/var/log/x\n[a]\nstonewall\nrw=read\nsize=4m-8g\nnumjobs=64\nsize=50%\n";
        let bounded = bounded(text);
        let wanted = "[global]\nfilename=dev_sda:mnt_x\nsize=8388608\nruntime=1\nwrite_bw_log=x\n[a]\nstonewall\nrw=read\nsize=4m-8388608\n\
                      numjobs=4\nsize=50%\n";
        assert_eq!(bounded.text, wanted);
        assert_eq!(bounded.files.into_iter().collect::<Vec<_>>(), ["dev_sda", "mnt_x"]);
        assert_eq!(super::bounded("fill_device=1\n").text, "size=4194304\n");
        let large = super::bounded("size=1g\nfilename=a:b\nbs=10m\nioengine=dirstat\n");
        assert!(large.makes_names && large.text.starts_with("size=20971520\n"), "{large:?}");
        assert_eq!((bounded.absent, super::bounded("ioengine=rbd\n").absent.as_deref()), (None, Some("rbd")));
    }

    #[test]
    fn another_exit_code_and_what_does_not_parse_are_counted() {
        let ending = |parsed, ran| Ending { parsed: Some(parsed), ran: Some(ran), said: String::new(), protects: None };
        let protective = || Ending { protects: Some("target_mounted".to_owned()), ..ending(0, 1) };
        let mut counts = Counts::default();
        counts.add("same", Ok([ending(0, 1), ending(0, 1)]), None);
        counts.add("refused", Ok([ending(0, 0), ending(1, 1)]), None);
        counts.add("refused by both", Ok([ending(1, 1), ending(1, 1)]), None);
        counts.add("slow", Ok([ending(0, 0), ending(0, 124)]), None);
        counts.add("absent", Err("the engine rbd".to_owned()), None);
        counts.add("protected", Ok([ending(0, 0), protective()]), None);
        counts.add("fails with fio, too", Ok([ending(1, 1), protective()]), None);
        counts.add("includes", Ok([ending(0, 0), ending(1, 1)]), Some("missing".to_owned()));
        assert_eq!((counts.total, counts.excluded.len()), (8, 4), "{:?}", counts.excluded);
        assert_eq!((counts.parsed, counts.ran), ([3, 2], [4, 3]));
        assert_eq!((counts.parsed_left_out, counts.ran_left_out), ([2, 1], [2, 0]));
        assert!(!counts.print());
    }
}
