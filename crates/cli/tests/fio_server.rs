//! Clients and servers, end to end, over sockets of the file system and the loopback address.
//!
//! Nothing leaves the machine. Ports are chosen by the kernel; what must have happened is waited for, with limits
//! that only a machine that stands still exceeds.

mod common;

use common::*;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A job that does 500 I/Os a second on nothing until it is stopped.
const ENDLESS: &str = "[long]\nioengine=null\nrw=read\nsize=1g\nrate_iops=500\nruntime=1h\ntime_based\n";

/// How long something may take that takes no time.
const LIMIT: Duration = Duration::from_secs(120);

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LIMIT, "{what}: it did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(pid: u32, signal: libc::c_int) {
    // SAFETY: a plain call; the process is one that a test started and has not waited for.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}

/// The processes that a process started and that run.
fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let is_running = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(is_running).collect()
}

/// A server in a directory of its own, ended when it is dropped.
struct Server {
    sandbox: Sandbox,
    /// Sockets need short paths. Logs lie there while they are sent, too.
    place: tempfile::TempDir,
    child: Child,
    /// As clients write it.
    address: String,
    errors: PathBuf,
}

impl Server {
    /// On a socket, with further words for its command line.
    fn start(words: &str) -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let address = format!("sock:{}", place.path().join("s").display());
        Self::at(place, &address, words)
    }

    fn at(place: tempfile::TempDir, address: &str, words: &str) -> Self {
        let sandbox = Sandbox::new();
        let server = format!("--server={address}");
        let mut arguments = vec!["fio", &server];
        arguments.extend(words.split_whitespace());
        let errors = place.path().join("errors");
        let mut child = sandbox
            .command(&arguments)
            .env("TMPDIR", place.path())
            .stderr(fs::File::create(&errors).expect("a file"))
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let said = fs::read_to_string(&errors).unwrap_or_default();
        let address = line.trim().strip_prefix("fio: server listening on ").unwrap_or_else(|| panic!("{line}{said}"));
        Self { address: address.to_owned(), sandbox, place, child, errors }
    }

    fn client(&self) -> String {
        format!("--client={}", self.address)
    }

    /// What results call it.
    fn hostname(&self) -> &str {
        self.address.strip_prefix("sock:").unwrap_or(&self.address)
    }

    /// What is put behind the names of its logs.
    fn log_name(&self) -> String {
        self.hostname().replace('/', "_")
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }

    fn sessions(&self) -> Vec<u32> {
        children(self.child.id())
    }

    /// Directories of logs that are there.
    fn leftovers(&self) -> Vec<String> {
        listing(self.place.path()).into_iter().filter(|name| name.contains("trueio-session")).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        signal(self.child.id(), libc::SIGTERM);
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begin.elapsed() > LIMIT {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn fio(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    sandbox.run(&[&["fio"], arguments].concat())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn stats(document: &Value) -> &Vec<Value> {
    document["client_stats"].as_array().expect("client_stats")
}

/// Keys of the document and of its first and last entry, in order, as fio lays its JSON out.
fn keys(text: &str) -> [Vec<String>; 3] {
    let at = |lines: &[&str], indent: usize| -> Vec<String> {
        let lead = format!("{}\"", " ".repeat(indent));
        lines.iter().filter_map(|line| Some(line.strip_prefix(&lead)?.split('"').next()?.to_owned())).collect()
    };
    let lines: Vec<&str> = text.lines().collect();
    let begin = lines.iter().position(|line| line.starts_with("  \"client_stats\"")).expect("client_stats");
    let end = begin + lines[begin..].iter().position(|line| *line == "  ],").expect("its end");
    let entries: Vec<&[&str]> = lines[begin..end].split(|line| *line == "    {").collect();
    [at(&lines, 2), at(entries[1], 6), at(entries[entries.len() - 1], 6)]
}

/// Goal: who reads the JSON of fio's clients reads ours.
/// Method: the same two jobs with fio's own server and client, and with ours: keys in their order. What fio 3.42 has and
/// 3.33 has not is left out of the comparison.
#[test]
fn the_document_has_the_keys_of_fio_in_their_order() {
    let jobs = "[global]\nioengine=null\nsize=1m\n[a]\nrw=read\n[b]\nrw=write\n";
    let server = Server::start("");
    let here = Sandbox::new();
    here.write("j.fio", jobs);
    let ran = fio(&here, &[&server.client(), "j.fio", "--output-format=json"]);
    ran.assert_code(0);
    assert_eq!(ran.err, "");
    let document = json(&ran.out);
    let names: Vec<_> = stats(&document).iter().map(|entry| entry["jobname"].as_str().expect("a name")).collect();
    assert_eq!(names, ["a", "b", "All clients"]);
    assert!(stats(&document).iter().all(|entry| entry["hostname"] == server.hostname() && entry["port"] == 8765));
    assert_eq!(document["global options"], json(r#"{"ioengine": "null", "size": "1m"}"#));
    assert_eq!(stats(&document)[0]["job options"], json(r#"{"rw": "read"}"#));
    assert_eq!(stats(&document)[2]["read"]["io_bytes"], 1 << 20);
    assert_eq!(stats(&document)[2]["write"]["total_ios"], 256);
    if let Err(reason) = tool("fio", &["--version"]) {
        eprintln!("skipped: {reason}");
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let address = format!("sock:{}", place.path().join("s").display());
    let mut real = Command::new("fio")
        .arg(format!("--server={address}"))
        .current_dir(place.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("fio's server");
    wait_until("fio's server listens", || UnixStream::connect(place.path().join("s")).is_ok());
    let theirs = Command::new("fio")
        .args([&format!("--client={address}"), "j.fio", "--output-format=json"])
        .current_dir(here.root())
        .output()
        .expect("fio's client");
    signal(real.id(), libc::SIGKILL);
    let _ = real.wait();
    let theirs = String::from_utf8(theirs.stdout).expect("UTF-8");
    let later = ["job_start", "latency_target_ns", "latency_window_us", "trueio"];
    let ours =
        keys(&ran.out).map(|names| names.into_iter().filter(|name| !later.contains(&&**name)).collect::<Vec<_>>());
    assert_eq!(ours, keys(&theirs));
}

/// Goal: `All clients` is exact. Method: two servers, and each bucket of json+ added by hand.
#[test]
fn two_servers_are_one_result_to_the_last_io() {
    let (first, second) = (Server::start(""), Server::at(tempfile::tempdir().expect("a directory"), "127.0.0.1,0", ""));
    let here = Sandbox::new();
    here.write("one.fio", "[one]\nioengine=null\nrw=read\nsize=1m\nnumjobs=2\n");
    here.write("two.fio", "[two]\nioengine=null\nrw=randrw\nsize=2m\n");
    let ran =
        fio(&here, &[&first.client(), "one.fio", &second.client(), "two.fio", "--output-format=json+,terse,normal"]);
    ran.assert_code(0);
    let begin = ran.out.find("\n{\n").expect("JSON behind the terse lines") + 1;
    let end = begin + ran.out[begin..].find("\n}\n").expect("its end") + 3;
    let document = json(&ran.out[begin..end]);
    let (sum, each) = stats(&document).split_last().expect("entries");
    assert_eq!(each.len(), 3);
    assert_eq!(sum["jobname"], "All clients");
    let port: u64 = second.address.rsplit_once(',').expect("a port").1.parse().expect("a number");
    assert_eq!((each[2]["hostname"].as_str(), each[2]["port"].as_u64()), (Some("127.0.0.1"), Some(port)));
    assert_eq!(document["global options"].as_array().map(Vec::len), Some(2));
    for direction in ["read", "write"] {
        let add = |key: &str| each.iter().filter_map(|entry| entry[direction][key].as_u64()).sum::<u64>();
        for key in ["io_bytes", "total_ios"] {
            assert_eq!(sum[direction][key].as_u64(), Some(add(key)), "{direction} {key}");
        }
        let of = |entry: &Value| entry[direction]["clat_ns"].clone();
        let bins = |entry: &Value| of(entry)["bins"].as_object().cloned().unwrap_or_default();
        let mut expected = std::collections::BTreeMap::new();
        for (middle, count) in each.iter().flat_map(bins) {
            *expected.entry(middle).or_insert(0) += count.as_u64().expect("a count");
        }
        let found = bins(sum).into_iter().map(|(middle, count)| (middle, count.as_u64().expect("a count"))).collect();
        assert_eq!(expected, found, "{direction}");
        let max = each.iter().filter_map(|entry| of(entry)["max"].as_u64()).max();
        assert_eq!(of(sum)["max"].as_u64(), max, "{direction}");
    }
    assert_eq!(
        each.iter().map(|entry| entry["read"]["total_ios"].as_u64().expect("a count")).take(2).sum::<u64>(),
        512
    );
    // Terse stands before it, normal text behind.
    let terse: Vec<&str> = ran.out[..begin].lines().map(|line| line.split(';').nth(2).expect("a name")).collect();
    assert_eq!(terse, ["one", "one", "two", "All clients"]);
    assert!(ran.out[end..].contains("\nAll clients: (groupid=0, jobs=3): err= 0"), "{ran:?}");
    assert!(ran.out[end..].contains(", at 127.0.0.1\n"), "{ran:?}");
    // By itself normal text begins with the jobs, as their servers have planned them.
    let ran = fio(&here, &[&first.client(), "one.fio"]);
    let machine = tool("uname", &["-n"]).expect("a name");
    assert!(ran.out.starts_with(&format!("<{machine}> one: (g=0): rw=read, bs=(R) ")), "{ran:?}");
}

/// Goal: nothing begins anywhere if a server refuses, and its reason is told with its name.
#[test]
fn what_a_server_refuses_is_told_and_no_other_begins() {
    let (strict, free) = (Server::start("--readonly"), Server::start(""));
    let here = Sandbox::new();
    here.write("w.fio", "[w]\nrw=write\nsize=64k\n");
    let ran = fio(&here, &["w.fio", &strict.client(), &free.client()]);
    ran.assert_code(1);
    assert_eq!(ran.out, "");
    assert!(ran.err.starts_with(&format!("error: {}: ", strict.address)), "{ran:?}");
    assert!(ran.err.contains("readonly") && !ran.err.contains(&free.address), "{ran:?}");
    assert_eq!((strict.sandbox.listing(), free.sandbox.listing()), (Vec::new(), Vec::new()));
    // A client's word is enough to forbid.
    let ran = fio(&here, &["w.fio", &free.client(), "--readonly"]);
    ran.assert_code(1);
    assert!(ran.err.contains("readonly"), "{ran:?}");
    // What is wrong with a job file is told before anybody is asked.
    here.write("bad.fio", "[x]\nrw=reed\n");
    let ran = fio(&here, &["bad.fio", "--client=sock:/nowhere/at/all"]);
    ran.assert_code(1);
    assert!(ran.err.contains("bad.fio:2") && !ran.err.contains("nowhere"), "{ran:?}");
    assert_eq!(free.sandbox.listing(), Vec::<String>::new());
    fio(&here, &["w.fio", &free.client()]).assert_code(0);
    assert_eq!(free.sandbox.listing().len(), 1, "the file of the job, at the server");
}

/// Goal: commands and what destroys need the word of the server's own command line.
#[test]
fn a_client_permits_neither_commands_nor_to_destroy() {
    let (strict, free) = (Server::start(""), Server::start("--allow-exec"));
    let here = Sandbox::new();
    here.write("x.fio", "[x]\nioengine=null\nrw=read\nsize=64k\nexec_prerun=touch ran\n");
    let ran = fio(&here, &["x.fio", &strict.client(), "--allow-exec"]);
    ran.assert_code(1);
    assert!(ran.err.contains("the server was started without `--allow-exec`"), "{ran:?}");
    // The server's word alone is not enough: the file may be a stranger's to its client.
    let ran = fio(&here, &["x.fio", &free.client()]);
    ran.assert_code(1);
    assert_eq!(strict.sandbox.listing().len() + free.sandbox.listing().len(), 0);
    fio(&here, &["x.fio", &free.client(), "--allow-exec"]).assert_code(0);
    assert!(free.sandbox.path("ran").exists());
    here.write("y.fio", "[y]\nioengine=null\nrw=read\nsize=64k\nexec_postrun=false\n");
    let ran = fio(&here, &["y.fio", &free.client(), "--allow-exec", "--output-format=json"]);
    ran.assert_code(1);
    assert!(ran.err.contains("the command `false` failed") && stats(&json(&ran.out)).len() == 1, "{ran:?}");
    if lacks("loop") {
        return;
    }
    let device = Loop::new(&here, "disk", 8 << 20);
    here.write("d.fio", format!("[d]\nfilename={}\nrw=write\nbs=64k\nsize=1m\n", device.device));
    here.write(
        "e.fio",
        format!("[d]\nfilename={}\nrw=write\nbs=64k\nsize=1m\noverwrite_signature=ext4\n", device.device),
    );
    let blank = device.content();
    let ran = fio(&here, &["d.fio", &strict.client()]);
    ran.assert_code(1);
    assert!(ran.err.contains("below its working directory"), "{ran:?}");
    assert_eq!(device.content(), blank);
    let allowed = Server::start(&format!("--allow-write={}", device.device));
    fio(&here, &["d.fio", &allowed.client()]).assert_code(0);
    assert_ne!(device.content(), blank);
    device.make_ext4();
    let before = device.content();
    for (file, server, sentence) in [
        ("d.fio", &strict, "carries ext4"),
        ("e.fio", &strict, "permits nothing"),
        ("d.fio", &allowed, "carries ext4"),
        ("e.fio", &allowed, "permits nothing"),
    ] {
        let ran = fio(&here, &[file, &server.client()]);
        ran.assert_code(1);
        assert!(ran.err.contains(sentence), "{file}: {ran:?}");
        assert_eq!(device.content(), before, "{file}");
    }
    let words = format!("--allow-write={} --overwrite_signature=ext4", device.device);
    fio(&here, &["d.fio", &Server::start(&words).client()]).assert_code(0);
    assert_ne!(device.content(), before);
}

/// Goal: a client's job neither reads nor replaces files of the server beside what is measured, and is told nothing of
/// what stands in them.
#[test]
fn io_logs_stay_on_the_machine_of_their_own() {
    let here = Sandbox::new();
    let server = Server::start("");
    let secret = server.sandbox.write("secret", "root:x:0:0\n");
    let kept = fs::read(&secret).expect("content");
    for (words, option) in [
        ("read_iolog=secret", "read_iolog"),
        ("rw=write\nbs=4k\nsize=64k\nwrite_iolog=secret", "write_iolog"),
        ("rw=write\nbs=4k\nsize=64k\nwrite_bw_log=x\nlog_store_compressed=1", "log_store_compressed"),
    ] {
        here.write("j.fio", format!("[j]\nfilename=data\n{words}\n"));
        let ran = fio(&here, &["j.fio", &server.client()]);
        ran.assert_code(1);
        assert!(ran.err.contains(&format!("`{option}` ")) && ran.err.contains("was not started"), "{ran:?}");
        assert!(!ran.err.contains("root:x"), "{ran:?}");
    }
    assert_eq!(fs::read(&secret).expect("content"), kept);
}

/// Goal: `--readonly` makes nothing at a server, blocks that differ included.
#[test]
fn a_server_that_is_readonly_keeps_nothing_of_what_it_verifies() {
    let here = Sandbox::new();
    let server = Server::start("--readonly");
    server.sandbox.data_file("data", 64 << 10);
    let before = server.sandbox.listing();
    for (more, code) in [("verify_dump=1", "`verify_dump` would make files at the server"), ("", "did not read back")] {
        here.write("j.fio", format!("[j]\nfilename=data\nrw=read\nbs=4k\nverify=md5\n{more}\n"));
        let ran = fio(&here, &["j.fio", &server.client()]);
        ran.assert_code(1);
        assert!(ran.err.contains(code), "{more}: {ran:?}");
    }
    assert_eq!(server.sandbox.listing(), before);
}

/// Goal: an option that names a file of the server's is refused there, whatever it is.
#[test]
fn options_that_name_files_stay_at_the_client() {
    let here = Sandbox::new();
    let server = Server::start("");
    here.write("j.fio", "[j]\nfilename=data\nsize=64k\nreplay_redirect=/dev/null\n");
    let ran = fio(&here, &["j.fio", &server.client()]);
    ran.assert_code(1);
    assert!(ran.err.contains("`replay_redirect` names a file of the server"), "{ran:?}");
    server.sandbox.write("secret", "root:x:0:0");
    for words in ["buffer_pattern='secret'", "verify=pattern\nverify_pattern='secret'"] {
        here.write("j.fio", format!("[j]\nfilename=data\nrw=write\nsize=64k\n{words}\n"));
        let ran = fio(&here, &["j.fio", &server.client()]);
        ran.assert_code(1);
        assert!(ran.err.contains("no file of the server"), "{ran:?}");
    }
    assert!(!server.sandbox.path("data").exists());
}

/// Goal: who may connect cannot write all that the server's user may.
/// Method: paths out of its working directory, by name, through a link, and as something new.
#[test]
fn jobs_write_below_the_servers_directory_and_where_its_command_line_says() {
    let here = Sandbox::new();
    let outside = here.data_file("precious", 64 << 10);
    let (server, allowed) = (Server::start(""), Server::start(&format!("--allow-write={}", here.root().display())));
    std::os::unix::fs::symlink(&outside, server.sandbox.path("link")).expect("a link");
    fs::create_dir(server.sandbox.path("sub")).expect("a directory");
    let before = listing(server.sandbox.root());
    let job = |words: &str| {
        here.write("j.fio", format!("[j]\nsize=64k\n{words}\n"));
    };
    let content = hash(&fs::read(&outside).expect("content"));
    let (old, new, root) =
        (outside.display(), here.path("new").display().to_string(), here.root().display().to_string());
    for words in [
        format!("rw=write\nfilename={old}"),
        "rw=randrw\nfilename=link".to_owned(),
        format!("rw=write\nfilename={new}"),
        format!("rw=read\nfilename={new}"),
        format!("ioengine=filecreate\nnrfiles=4\nfilesize=4k\ndirectory={root}"),
    ] {
        job(&words);
        let ran = fio(&here, &["j.fio", &server.client()]);
        ran.assert_code(1);
        assert!(ran.err.contains("may write below its working directory"), "{words}: {ran:?}");
    }
    assert_eq!(listing(server.sandbox.root()), before);
    assert!(!here.path("new").exists());
    assert_eq!(hash(&fs::read(&outside).expect("content")), content);
    // Neither a directory that would be made outside, though the file itself is named to the server, nor one behind a link.
    let there = format!("{root}/d/f");
    let file_only = Server::start(&format!("--allow-write={there}"));
    std::os::unix::fs::symlink(here.root(), server.sandbox.path("way")).expect("a link");
    for (server, words) in [
        (&server, format!("rw=write\nfilename={there}")),
        (&server, "rw=write\nfilename=way/d/f".to_owned()),
        (&server, "rw=read\nfilename=../trueio-d/f".to_owned()),
        (&file_only, format!("rw=write\nfilename={there}")),
    ] {
        job(&words);
        let ran = fio(&here, &["j.fio", &server.client()]);
        ran.assert_code(1);
        assert!(ran.err.contains("may write below its working directory"), "{words}: {ran:?}");
        assert!(!here.path("d").exists() && !server.sandbox.path("../trueio-d").exists(), "{words}");
    }
    job("rw=write\nfilename=new/e/f");
    fio(&here, &["j.fio", &server.client()]).assert_code(0);
    assert!(server.sandbox.path("new/e/f").is_file());
    // To read is no harm, and what lies below may be made and written again.
    for words in
        [format!("rw=read\nfilename={old}"), "rw=write\ndirectory=sub".into(), "rw=write\ndirectory=sub".into()]
    {
        job(&words);
        fio(&here, &["j.fio", &server.client()]).assert_code(0);
    }
    job(&format!("rw=write\nfilename={old}"));
    fio(&here, &["j.fio", &allowed.client()]).assert_code(0);
    assert_ne!(hash(&fs::read(&outside).expect("content")), content);
}

/// A peer that says some bytes to whoever connects and goes away.
fn peer_that_says(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let _ = stream.write_all(bytes);
        // It hears all that is said, so that the end is an end and no reset.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    format!("--client={},{}", address.ip(), address.port())
}

#[test]
fn a_peer_that_is_no_server_of_ours_is_named_for_what_it_is() {
    let here = Sandbox::new();
    here.write("j.fio", ENDLESS);
    let fios: &[u8] = &[0x61, 0, 0x0a, 0, 0, 0, 0, 0, 0x50, 0x6a, 0x8b, 0xb7, 0xcd, 0x55, 0, 0, 0, 0, 0, 0];
    for (bytes, sentence) in [
        (fios, "it is fio itself (protocol 97)"),
        (b"SSH-2.0-OpenSSH_9.2 and more\r\n", "it is no trueio"),
        (b"", "closed the connection without a word"),
        (b"trueio-fio-wire\n\0\0\0\x02{}", "a message cannot be read"),
        (b"trueio-fio-wire\n\xff\xff\xff\xff", "4294967295 bytes"),
        (b"trueio-fio-wire\n\0\0\0\x40{\"type\":\"hello\",\"protocol\":1,\"version\":\"0.0.0\",\"machine\":\"mmmm\"}", "one version"),
    ] {
        let client = peer_that_says(bytes);
        let ran = fio(&here, &[&client, "j.fio"]);
        ran.assert_code(1);
        let host = client.strip_prefix("--client=").expect("its own words");
        assert!(ran.err.contains(sentence) && ran.err.contains(host), "{sentence}: {ran:?}");
    }
    let ran = fio(&here, &["--client=sock:/nowhere/at/all", "j.fio"]);
    ran.assert_code(1);
    assert!(ran.err.contains("sock:/nowhere/at/all: the server cannot be reached"), "{ran:?}");
}

/// Goal: strangers neither end a server nor get anything from it.
#[test]
fn a_server_survives_whatever_connects_to_it() {
    let server = Server::start("");
    let path = server.hostname().to_owned();
    for bytes in [
        &b""[..],
        b"x",
        b"GET / HTTP/1.0\r\n\r\n",
        b"trueio-fio-wire\n\xff\xff\xff\xff",
        b"trueio-fio-wire\n\0\0\0\x01x",
    ] {
        let mut stream = UnixStream::connect(&path).expect("it listens");
        stream.write_all(bytes).expect("it takes them");
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() <= 16, "{bytes:?} got {answer:?}");
    }
    if tool("fio", &["--version"]).is_ok() {
        let here = Sandbox::new();
        here.write("j.fio", ENDLESS);
        let mut theirs = Command::new("fio")
            .args([&server.client(), "j.fio"])
            .current_dir(here.root())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("fio's client");
        wait_until("fio's client is turned away", || server.said().contains("it is fio itself (protocol"));
        let _ = theirs.kill();
        let _ = theirs.wait();
    } else {
        eprintln!("skipped: fio is not installed");
    }
    let here = Sandbox::new();
    here.write("j.fio", "[j]\nioengine=null\nrw=read\nsize=64k\n");
    fio(&here, &[&server.client(), "j.fio"]).assert_code(0);
    // The socket is its user's alone.
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(&path).expect("a socket").permissions().mode() & 0o777, 0o600);
    wait_until("its sessions end", || server.sessions().is_empty());
}

/// A client whose job runs: its log grows here.
fn begin_long(here: &Sandbox, servers: &[&Server], words: &[&str]) -> Child {
    here.write("long.fio", format!("{ENDLESS}write_lat_log=l\n"));
    let clients: Vec<String> = servers.iter().map(|server| server.client()).collect();
    let mut arguments = vec!["fio", "long.fio"];
    arguments.extend(clients.iter().map(String::as_str));
    arguments.extend(words);
    let client = here.command(&arguments).spawn().expect("the client starts");
    for server in servers {
        let log = here.path(&format!("l_lat.1.log.{}", server.log_name()));
        wait_until("the log comes while the job runs", || {
            fs::read_to_string(&log).is_ok_and(|text| text.lines().count() > 20)
        });
    }
    client
}

fn ended(mut client: Child) -> Ran {
    wait_until("the client ends", || !matches!(client.try_wait(), Ok(None)));
    Ran::of(client.wait_with_output().expect("its output"))
}

/// A server that sends these logs (prefix, suffix) and goes away. It says what the client said, so it is of its version.
fn server_that_sends(place: &std::path::Path, logs: Vec<(String, String)>) -> (String, std::thread::JoinHandle<()>) {
    use trueio_fio::wire::frame::{TO_CLIENT_BYTES_MAX, TO_SERVER_BYTES_MAX};
    use trueio_fio::wire::{LogPart, Planned, ToClient, ToServer, read_magic, receive, send, write_magic};
    let path = place.join("bad");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    let serve = move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let hear = |stream: &mut _| receive::<ToServer>(stream, TO_SERVER_BYTES_MAX).expect("a message");
        read_magic(&mut stream).and_then(|()| write_magic(&mut stream)).expect("the beginning");
        let ToServer::Hello(hello) = hear(&mut stream) else { panic!("no greeting") };
        let mut say = |message: ToClient| send(&mut stream, &message, TO_CLIENT_BYTES_MAX);
        say(ToClient::Hello(hello)).expect("said");
        drop(hear(&mut stream));
        let mut say = |message: ToClient| send(&mut stream, &message, TO_CLIENT_BYTES_MAX);
        say(ToClient::Planned(Planned { lines: Vec::new() })).expect("said");
        drop(hear(&mut stream));
        for (prefix, suffix) in logs {
            let part = LogPart { prefix, suffix, text: "0, 1, 0, 4096, 0\n".to_owned() };
            let _ = send(&mut stream, &ToClient::Log(part), TO_CLIENT_BYTES_MAX);
        }
    };
    (format!("sock:{}", path.display()), std::thread::spawn(serve))
}

/// Goal: a server makes no file here but the logs that the client's own jobs can have, and replaces nothing that the
/// client reads; of jobs that lie at the server, none outside of the directory, and through no link.
#[test]
fn a_server_sends_the_logs_of_the_clients_jobs_and_no_others() {
    let here = Sandbox::new();
    let name = |server: &str, log: &str| format!("{log}.{}", server.trim_start_matches("sock:").replace('/', "_"));
    let pair = |(prefix, suffix): (&str, &str)| (prefix.to_owned(), suffix.to_owned());
    here.write("j.fio", "[j]\nsize=64k\nwrite_bw_log=mine\nwrite_lat_log=sub/mine\n");
    fs::create_dir(here.path("sub")).expect("a directory");
    let try_logs = |words: &[&str], logs: &[(&str, &str)], prepare: &dyn Fn(&str)| {
        let place = tempfile::tempdir().expect("a directory");
        let (server, thread) = server_that_sends(place.path(), logs.iter().copied().map(pair).collect());
        prepare(&server);
        let client = format!("--client={server}");
        let ran = fio(&here, &[&[client.as_str()], words].concat());
        thread.join().expect("it said everything");
        ran.assert_code(1);
        (server, ran)
    };
    let nothing = |_: &str| {};
    let (server, ran) = try_logs(&["j.fio"], &[("mine", "_bw.1.log"), ("sub/mine", "_clat.1.log")], &nothing);
    assert!(!ran.err.contains("no job asked for"), "{ran:?}");
    for log in ["mine_bw.1.log", "sub/mine_clat.1.log"] {
        assert_eq!(fs::read_to_string(here.path(&name(&server, log))).expect(log), "0, 1, 0, 4096, 0\n");
    }
    let before = here.listing();
    for log in [
        ("other", "_bw.1.log"),
        ("mine", "_bw.2.log"),
        ("mine", "_iops.1.log"),
        ("mine", "_bw.log"),
        ("sub/mine", "_bw.1.log"),
        ("../mine", "_bw.1.log"),
    ] {
        let (_, ran) = try_logs(&["j.fio"], &[log], &nothing);
        assert!(ran.err.contains("sent a log that no job asked for"), "{log:?}: {ran:?}");
        assert_eq!(here.listing(), before, "{log:?}");
    }
    // Jobs that lie at the server: any plain name, but nothing of ours, and through no link.
    let precious = here.data_file("precious", 4096);
    let kept = fs::read(&precious).expect("content");
    let link = |server: &str| {
        std::os::unix::fs::symlink("precious", here.path(&name(server, "l_bw.1.log"))).expect("a link");
    };
    let (server, ran) = try_logs(&["--remote-config=there.fio"], &[("n", "_bw.1.log"), ("l", "_bw.1.log")], &link);
    assert!(here.path(&name(&server, "n_bw.1.log")).exists() && ran.err.contains("symbolic link"), "{ran:?}");
    assert_eq!(fs::read(&precious).expect("content"), kept);
    // Names that are known before are looked at before anybody is asked.
    let place = tempfile::tempdir().expect("a directory");
    let server = format!("sock:{}", place.path().join("nobody").display());
    let output = format!("--output={}", name(&server, "mine_bw.1.log"));
    let ran = fio(&here, &["j.fio", &format!("--client={server}"), &output]);
    ran.assert_code(1);
    assert!(ran.err.contains("rule: output_replaces"), "{ran:?}");
    // What is read here is not replaced: job files, what they include, lists of servers.
    here.write("more.inc", "bs=4k\n");
    here.write("k.fio", "[j]\nsize=64k\ninclude more.inc\n");
    here.write("hosts", format!("{server}\n"));
    for output in ["k.fio", "./more.inc", "hosts"] {
        let ran = fio(&here, &["k.fio", "--client=hosts", &format!("--output={output}")]);
        ran.assert_code(1);
        assert!(ran.err.contains("rule: output_replaces"), "{output}: {ran:?}");
    }
}

/// Goal: a signal at the client ends the runs, and what they measured comes, logs included.
#[test]
fn a_signal_at_the_client_ends_the_runs_and_brings_their_results() {
    let (first, second) = (Server::start(""), Server::start(""));
    let here = Sandbox::new();
    let client = begin_long(&here, &[&first, &second], &["--output-format=json", "--output=o.json"]);
    signal(client.id(), libc::SIGINT);
    let ran = ended(client);
    ran.assert_code(128);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
    let document = json(&fs::read_to_string(here.path("o.json")).expect("results"));
    assert_eq!(stats(&document).len(), 3);
    for (entry, server) in stats(&document).iter().zip([&first, &second]) {
        let log = fs::read_to_string(here.path(&format!("l_lat.1.log.{}", server.log_name()))).expect("a log");
        assert_eq!(entry["read"]["total_ios"].as_u64(), Some(log.lines().count() as u64), "a line for each I/O");
    }
    for of in document["trueio"]["clients"].as_array().expect("of each") {
        assert_eq!((of["outcome"].as_str(), of["reason"].as_str()), (Some("interrupted"), Some("SIGINT")));
    }
    wait_until("nothing is left", || first.sessions().is_empty() && first.leftovers().is_empty());
}

/// Goal: nobody runs on for a client that is gone. Method: it is killed; sessions and the logs' places must go.
#[test]
fn a_client_that_goes_away_ends_its_run() {
    let server = Server::start("");
    let here = Sandbox::new();
    let mut client = begin_long(&here, &[&server], &[]);
    assert_eq!((server.sessions().len(), server.leftovers().len()), (1, 1));
    client.kill().expect("it runs");
    client.wait().expect("it ends");
    wait_until("the session ends", || server.sessions().is_empty() && server.leftovers().is_empty());
}

/// Goal: a server that goes away is an error that names it, and the others' results are kept.
#[test]
fn a_server_that_goes_away_is_named_and_the_others_results_are_kept() {
    let (lost, kept) = (Server::start(""), Server::start(""));
    let here = Sandbox::new();
    let client = begin_long(&here, &[&lost, &kept], &["--output-format=json"]);
    lost.sessions().into_iter().for_each(|pid| signal(pid, libc::SIGKILL));
    wait_until("it is gone", || lost.sessions().is_empty());
    // Ends the other one, as a server that is told to end does: with its results.
    signal(kept.child.id(), libc::SIGTERM);
    let ran = ended(client);
    ran.assert_code(128);
    assert!(ran.err.contains(&format!("error: {}: the server went away", lost.address)), "{ran:?}");
    let document = json(&ran.out);
    assert_eq!(stats(&document).len(), 1);
    assert_eq!(stats(&document)[0]["hostname"], kept.hostname());
    assert!(stats(&document)[0]["read"]["total_ios"].as_u64() > Some(20), "{document}");
    let problem = document["trueio"]["clients"][0]["problem"].as_str().expect("of the lost one");
    assert!(problem.contains("went away"), "{problem}");
}

#[test]
fn job_files_at_the_server_run_and_what_stands_in_others_is_not_told() {
    let server = Server::start("");
    let here = Sandbox::new();
    server.sandbox.write("part.inc", "size=128k\n");
    server.sandbox.write("there.fio", "[there]\nioengine=null\nrw=read\ninclude part.inc\n");
    server.sandbox.write("secret", "[hidden]\npassword=hunter2\n");
    let ran = fio(&here, &[&server.client(), "--remote-config=there.fio", "--output-format=json"]);
    ran.assert_code(0);
    assert_eq!(stats(&json(&ran.out))[0]["read"]["io_bytes"], 128 << 10);
    let ran = fio(&here, &[&server.client(), "--remote-config=secret"]);
    ran.assert_code(1);
    assert!(ran.err.contains("`secret` at the server cannot be run"), "{ran:?}");
    assert!(!ran.err.contains("password") && server.said().contains("password"), "{ran:?}");
    let ran = fio(&here, &[&server.client(), "--remote-config=nothing"]);
    ran.assert_code(1);
    assert!(ran.err.contains("`nothing` at the server cannot be read"), "{ran:?}");
    // What a job file includes here comes from here, and not from there.
    here.write("inc.fio", "[a]\nioengine=null\nrw=read\ninclude part.inc\n");
    fio(&here, &[&server.client(), "inc.fio"]).assert_code(1);
    here.write("part.inc", "size=${SIZE_OF_IT}\n");
    let client = server.client();
    let output = here.command(&["fio", &client, "inc.fio", "--output-format=json"]).env("SIZE_OF_IT", "64k").output();
    let ran = Ran::of(output.expect("it starts"));
    ran.assert_code(0);
    assert_eq!(stats(&json(&ran.out))[0]["read"]["io_bytes"], 64 << 10);
}

/// Goal: two clients of one server have files of their own. Method: the names that fio gives them.
#[test]
fn files_of_jobs_at_a_server_have_their_clients_address_in_a_directory() {
    let server = Server::at(tempfile::tempdir().expect("a directory"), "127.0.0.1,0", "");
    let here = Sandbox::new();
    fs::create_dir(server.sandbox.path("d")).expect("a directory");
    here.write("hosts", format!("# ours\n{}\n", server.address));
    here.write(
        "u.fio",
        "[u]\nrw=write\nsize=64k\ndirectory=d\n[v]\nrw=write\nsize=64k\ndirectory=d\nunique_filename=0\n",
    );
    fio(&here, &["--client=hosts", "u.fio"]).assert_code(0);
    assert!(server.sandbox.path("d/127.0.0.1.u.0.0").exists() && server.sandbox.path("d/v.0.0").exists());
}

#[test]
fn results_come_meanwhile_if_they_are_asked_for() {
    let server = Server::start("");
    let here = Sandbox::new();
    let client = begin_long(&here, &[&server], &["--status-interval=1", "--output-format=json", "--output=o.json"]);
    let documents = || fs::read_to_string(here.path("o.json")).unwrap_or_default().matches("\n}\n").count();
    wait_until("two documents", || documents() >= 2);
    signal(client.id(), libc::SIGTERM);
    ended(client).assert_code(128);
    let text = fs::read_to_string(here.path("o.json")).expect("results");
    let all: Vec<Value> =
        serde_json::Deserializer::from_str(&text).into_iter().collect::<Result<_, _>>().expect("documents");
    assert!(all.len() >= 3, "{text}");
    let ios: Vec<u64> = all
        .iter()
        .map(|document| document["client_stats"][0]["read"]["total_ios"].as_u64().expect("figures in each document"))
        .collect();
    assert!(ios[0] > 0 && ios.is_sorted() && ios[ios.len() - 1] > ios[0], "{ios:?}");
    for document in &all {
        assert!(document["timestamp"].as_u64() > Some(1_000_000_000), "{document}");
    }
}

/// Goal: what is written meanwhile has the results of all servers that run.
/// Method: two servers, one of which begins to measure seconds after the other.
#[test]
fn a_document_meanwhile_has_the_results_of_all_servers_that_run() {
    let (early, late) = (Server::start(""), Server::start("--allow-exec"));
    let here = Sandbox::new();
    here.write("early.fio", ENDLESS);
    // It ends on its own, before the other one.
    here.write(
        "late.fio",
        "[late]\nioengine=null\nrw=read\nsize=1g\nrate_iops=500\nruntime=4\ntime_based\nexec_prerun=sleep 3\n",
    );
    let words = [&early.client(), "early.fio", &late.client(), "late.fio", "--allow-exec", "--status-interval=1"];
    let client = here.command(&[&["fio"], &words[..], &["--output-format=json", "--output=o.json"]].concat()).spawn();
    let client = client.expect("the client starts");
    let documents = || -> Vec<Value> {
        let text = fs::read_to_string(here.path("o.json")).unwrap_or_default();
        // The last one may not be whole yet.
        serde_json::Deserializer::from_str(&text).into_iter().map_while(Result::ok).collect()
    };
    let outcome = |document: &Value, index: usize| document["trueio"]["clients"][index]["outcome"].clone();
    wait_until("a document from when one has ended", || documents().iter().any(|one| outcome(one, 1) == "complete"));
    signal(client.id(), libc::SIGTERM);
    ended(client).assert_code(128);
    let all = documents();
    let (last, meanwhile) = all.split_last().expect("documents");
    for document in meanwhile {
        assert_eq!(stats(document).len(), 3, "both, and all together: {document}");
        assert_eq!(outcome(document, 0), "running");
        assert!(outcome(document, 1) == "running" || outcome(document, 1) == "complete");
    }
    assert!(meanwhile.iter().any(|document| outcome(document, 1) == "complete"));
    assert_eq!((outcome(last, 0), outcome(last, 1)), ("interrupted".into(), "complete".into()));
}

/// Goal: a command of a job keeps neither its session nor the server from ending.
#[test]
fn a_command_ends_with_its_client_and_with_its_server() {
    let mut server = Server::start("--allow-exec");
    let here = Sandbox::new();
    let begin = || {
        let _ = fs::remove_file(server.sandbox.path("pid"));
        server.sandbox.write("long.sh", "sleep 86400 &\necho $! > pid\nwait\n");
        here.write("j.fio", "[j]\nioengine=null\nrw=read\nsize=64k\nexec_prerun=sh long.sh\n");
        let client =
            here.command(&["fio", "--allow-exec", &server.client(), "j.fio"]).spawn().expect("the client starts");
        let number = || fs::read_to_string(server.sandbox.path("pid")).ok()?.trim().parse::<u32>().ok();
        wait_until("the command begins", || number().is_some());
        (client, number().expect("a number"))
    };
    let is_gone = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.map_or(true, |stat| stat.contains(") Z"))
    };
    // The client is interrupted, is killed, and stays while the server ends.
    let (client, pid) = begin();
    signal(client.id(), libc::SIGINT);
    ended(client).assert_code(128);
    wait_until("the command ends", || is_gone(pid));
    let (mut client, pid) = begin();
    client.kill().expect("it runs");
    client.wait().expect("it ends");
    wait_until("the session and the command end", || server.sessions().is_empty() && is_gone(pid));
    let (client, pid) = begin();
    signal(server.child.id(), libc::SIGTERM);
    wait_until("the server ends", || !matches!(server.child.try_wait(), Ok(None)));
    ended(client).assert_code(128);
    wait_until("the command ends", || is_gone(pid));
}

/// Goal: a server that has no descriptor left for a client waits, and does not keep a processor busy.
/// Method: its limit is lowered to what it has; what it then uses of a processor in a second is a small part of it.
#[test]
fn a_server_without_descriptors_waits_until_it_has_some() {
    let server = Server::start("");
    let pid = server.child.id();
    let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("its descriptors").count() as u64;
    let limit = |most: u64| {
        let limits = libc::rlimit { rlim_cur: most, rlim_max: 1024 };
        // SAFETY: a plain call on a process that this test started.
        let result = unsafe { libc::prlimit(pid as libc::pid_t, libc::RLIMIT_NOFILE, &limits, std::ptr::null_mut()) };
        assert_eq!(result, 0);
    };
    let ticks = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
        let fields: Vec<u64> =
            stat.rsplit_once(") ").expect("a name").1.split(' ').filter_map(|field| field.parse().ok()).collect();
        // Without the state: the parent is the first, user and system time are the eleventh and the twelfth.
        fields[10] + fields[11]
    };
    limit(open);
    let here = Sandbox::new();
    here.write("j.fio", "[j]\nioengine=null\nrw=read\nsize=64k\n");
    let client = here.command(&["fio", &server.client(), "j.fio"]).spawn().expect("the client starts");
    std::thread::sleep(Duration::from_millis(300));
    let before = ticks();
    std::thread::sleep(Duration::from_secs(1));
    let used = ticks() - before;
    // SAFETY: a plain call.
    let each_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as u64;
    assert!(used <= each_second / 5, "{used} of {each_second} ticks in a second");
    limit(1024);
    ended(client).assert_code(0);
}

#[test]
fn a_server_in_the_background_is_found_by_its_number_and_cleans_up() {
    let place = tempfile::tempdir().expect("a directory");
    let here = Sandbox::new();
    let path = place.path().join("s");
    let server = format!("--server=sock:{}", path.display());
    let ran = fio(&here, &[&server, "--daemonize=pid"]);
    ran.assert_code(0);
    assert_eq!(ran.out, format!("fio: server listening on sock:{}\n", path.display()));
    let pid: u32 = fs::read_to_string(here.path("pid")).expect("a file").trim().parse().expect("a number");
    let other = format!("--server=sock:{}", place.path().join("other").display());
    let second = fio(&here, &[&other, "--daemonize=pid"]);
    here.write("j.fio", "[j]\nioengine=null\nrw=read\nsize=64k\n");
    let ran = fio(&here, &[&format!("--client=sock:{}", path.display()), "j.fio"]);
    let taken = fio(&here, &[&server]);
    signal(pid, libc::SIGTERM);
    wait_until("it ends", || !path.exists() && !here.path("pid").exists());
    ran.assert_code(0);
    second.assert_code(1);
    assert!(second.err.contains("is running"), "{second:?}");
    taken.assert_code(1);
    assert!(taken.err.contains("cannot listen on"), "{taken:?}");
}

/// Goal: what a server that was killed leaves does not keep the next one from its place.
#[test]
fn a_socket_that_nobody_listens_to_is_replaced_and_any_other_file_is_not() {
    let mut first = Server::start("");
    let (address, path) = (first.address.clone(), first.hostname().to_owned());
    first.child.kill().expect("it runs");
    first.child.wait().expect("it ends");
    assert!(Path::new(&path).exists());
    let second = Server::at(tempfile::tempdir().expect("a directory"), &address, "");
    assert_eq!(second.address, address);
    let here = Sandbox::new();
    here.write("file", "precious");
    let ran = fio(&here, &["--server=sock:file"]);
    ran.assert_code(1);
    assert_eq!(fs::read_to_string(here.path("file")).expect("it is there"), "precious");
}
