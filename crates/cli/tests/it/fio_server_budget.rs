//! What clients may use of a server of `trueio fio --server`, and a server of its client: memory, descriptors, priority, lines, time.
//!
//! All connections are local: sockets of the file system and the loopback address, with ports that the kernel chooses.

use crate::common::*;
use crate::servers::*;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use trueio_fio::wire::frame::{SHORT_BYTES_MAX, TO_CLIENT_BYTES_MAX};
use trueio_fio::wire::{
    Hello, Jobs, LogPart, PROTOCOL, Planned, ToClient, ToServer, read_magic, receive, receive_bytes, send, write_magic,
};

/// Reads a limit of a process, in bytes or descriptors, from `/proc`.
fn limit(pid: u32, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {text}"));
    line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(u64::MAX)
}

/// Goal: the kernel ends a session before any other process, and holds it to its share also while its jobs run.
#[test]
fn a_running_session_is_held_to_its_share_and_goes_first() {
    let server = Server::start("");
    let here = Sandbox::new();
    let client = begin_long(&here, &[&server], &[]);
    let [session] = server.sessions()[..] else { panic!("one session") };
    let score = fs::read_to_string(format!("/proc/{session}/oom_score_adj")).expect("it runs");
    assert_eq!(score.trim(), "1000");
    let own = fs::read_to_string(format!("/proc/{}/oom_score_adj", server.child.id())).expect("it runs");
    assert_ne!(own.trim(), "1000", "the server stays");
    let memory = limit(session, "Max data size");
    assert!((64 << 20..1 << 30).contains(&memory), "{memory}");
    assert!(limit(session, "Max locked memory") <= 1 << 30);
    assert!(limit(session, "Max open files") <= 4096, "{}", limit(session, "Max open files"));
    signal(client.id(), libc::SIGINT);
    ended(client).assert_code(128);
}

/// Sends a job to a server up to its answer: the plan, or the refusal.
fn planned(server: &Server, text: &str) -> (UnixStream, ToClient) {
    let mut stream = UnixStream::connect(server.hostname()).expect("it listens");
    write_magic(&mut stream).expect("it listens");
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let hello = Hello { protocol: PROTOCOL, version, machine: "here".to_owned() };
    send(&mut stream, &ToServer::Hello(hello), SHORT_BYTES_MAX).expect("sent");
    read_magic(&mut stream).expect("the magic");
    let _: ToClient = receive(&mut stream, TO_CLIENT_BYTES_MAX).expect("its hello");
    let texts = [("j.fio".to_owned(), text.to_owned())].into();
    let jobs = Jobs { files: vec!["j.fio".to_owned()], texts, ..Jobs::default() };
    send(&mut stream, &ToServer::Jobs(Box::new(jobs)), SHORT_BYTES_MAX).expect("sent");
    let answer: ToClient = receive(&mut stream, TO_CLIENT_BYTES_MAX).expect("an answer");
    (stream, answer)
}

/// Goal: memory, locked memory and descriptors are those of all sessions together; a session beyond the rest is refused with the reason,
/// and those that run go on.
/// Method: two clients run, and a third one asks for what fits only alone, which is shown when the two have ended.
#[test]
fn a_session_beyond_the_rest_of_any_budget_is_refused_and_the_running_ones_go_on() {
    const RUNS: &str = "rw=read\nrate_iops=100\nruntime=1h\ntime_based\n";
    let bytes = trueio_run::machine::machine(0).memory_bytes.expect("the memory of this machine");
    let blocks = |bytes: u64| bytes / 64 / 4096 * 4096;
    let locked = bytes / 4 * 3 / 4;
    let null = |bytes: u64| format!("[long]\nioengine=null\nsize=1t\niodepth=64\nbs={}\n{RUNS}", blocks(bytes));
    let ring = |depth: u64, block: u64| {
        format!("[long]\nioengine=io_uring\nfilename=f\nsize={block}\niodepth={depth}\nbs={block}\n{RUNS}")
    };
    let files = |count: u64| format!("[long]\nioengine=psync\nnrfiles={count}\nfilesize=4k\nbs=4k\n{RUNS}");
    let mut cases = vec![("memory", null(bytes / 4), null(bytes / 2)), ("descriptors", files(400), files(1_200))];
    let here = Sandbox::new();
    let has_ring = fio(&here, &["--name=a", "--ioengine=io_uring", "--rw=write", "--size=4k"]);
    if has_ring.code != Some(0) {
        trueio_testkit::skip("io_uring", &has_ring.err);
    } else {
        cases.push(("locked memory", ring(16, 1 << 20), ring(64, blocks(locked - (40 << 20)))));
    }
    for (what, first, later) in cases {
        let server = Server::with_descriptors(if what == "descriptors" { 4_096 } else { 10_000 });
        fs::File::create(server.sandbox.path("f")).and_then(|file| file.set_len(locked)).expect("a sparse file");
        let (one, other, late) = (Sandbox::new(), Sandbox::new(), Sandbox::new());
        let running = [&one, &other].map(|here| begin_job(here, &first, &[&server], &[]));
        // A job that is started against the budget ends by itself, and the test fails.
        late.write("j.fio", later.replace("runtime=1h", "runtime=1"));
        let ran = fio(&late, &["j.fio", &server.client()]);
        ran.assert_code(1);
        let words = format!(" {what}, and all sessions of this server together may use");
        assert!(ran.err.contains(&words) && ran.err.contains("of which others have"), "{what}: {ran:?}");
        for (here, client) in [&one, &other].into_iter().zip(running) {
            let log = here.path(&format!("l_lat.1.log.{}", server.log_name()));
            let lines = || fs::read_to_string(&log).map_or(0, |text| text.lines().count());
            let before = lines();
            wait_until("its log grows after the refusal", || lines() > before);
            signal(client.id(), libc::SIGINT);
            ended(client).assert_code(128);
        }
        wait_until("the sessions end", || server.sessions().is_empty());
        let (_, alone) = planned(&server, &later);
        assert!(matches!(alone, ToClient::Planned(_)), "{what}: it fits alone: {alone:?}");
    }
}

/// Goal: sessions together do not get what one of them may have.
/// Method: a job needs more than a half of the budget, which is three quarters of the memory; two clients start it, and one of them is refused
/// while the other one waits for its start.
#[test]
fn sessions_share_one_budget_of_memory() {
    let server = Server::start("");
    let bytes = trueio_run::machine::machine(0).memory_bytes.expect("the memory of this machine");
    // Buffers of the engine `null` are never touched.
    let (depth, block) = (64, bytes / 2 / 64 / 4096 * 4096);
    let text = format!("[j]\nioengine=null\nrw=read\nsize=1t\niodepth={depth}\nbs={block}\n");
    let begin = || planned(&server, &text);
    let (first, planned) = begin();
    assert!(matches!(planned, ToClient::Planned(_)), "{planned:?}");
    let (_second, refused) = begin();
    let ToClient::Refused { text } = refused else { panic!("{refused:?}") };
    assert!(text.contains("all sessions of this server together may use"), "{text}");
    drop(first);
    wait_until("the first session ends", || server.sessions().is_empty());
    let (_third, planned) = begin();
    assert!(matches!(planned, ToClient::Planned(_)), "its share was returned: {planned:?}");
}

/// Goal: the directory of a session that is killed is removed, also if it held logs.
#[test]
fn the_directory_of_a_killed_session_is_removed() {
    let server = Server::start("");
    for _ in 0..3 {
        let here = Sandbox::new();
        let client = begin_long(&here, &[&server], &[]);
        assert_eq!((server.sessions().len(), server.leftovers().len()), (1, 1));
        server.sessions().into_iter().for_each(|pid| signal(pid, libc::SIGKILL));
        assert_ne!(ended(client).code, Some(0));
        wait_until("its directory is removed", || server.leftovers().is_empty());
    }
}

/// Goal: no directory of a session stays, however many clients are killed.
/// Method: 30 clients whose jobs log are killed, five at a time, and the sessions of every other five as well.
#[test]
fn thirty_killed_clients_leave_no_directory_of_a_session() {
    let server = Server::start("");
    for round in 0..6 {
        let here: Vec<Sandbox> = (0..5).map(|_| Sandbox::new()).collect();
        let clients: Vec<_> = here.iter().map(|here| begin_long(here, &[&server], &[])).collect();
        let sessions = server.sessions();
        assert_eq!((sessions.len(), server.leftovers().len()), (5, 5));
        clients.iter().for_each(|client| signal(client.id(), libc::SIGKILL));
        if round % 2 == 1 {
            sessions.into_iter().for_each(|pid| signal(pid, libc::SIGKILL));
        }
        clients.into_iter().for_each(|client| assert_eq!(ended(client).code, None));
        wait_until("the sessions end", || server.sessions().is_empty());
        wait_until("their directories are removed", || server.leftovers().is_empty());
    }
    assert!(fs::read_dir(server.place.path()).expect("its directory").count() <= 2, "the socket and its messages");
}

/// Goal: a client's job goes before no other process of the server, unless that is permitted.
#[test]
fn a_client_may_not_raise_its_priority_unless_the_server_permits_it() {
    let (strict, open) = (Server::start(""), Server::start("--allow-priority"));
    let here = Sandbox::new();
    for (words, name) in [
        ("nice=-5", "nice"),
        ("prioclass=1", "prioclass"),
        ("prioclass=1\nprio=3", "prioclass"),
        ("ioengine=io_uring\nfilename=f\ncmdprio_percentage=10\ncmdprio_class=1", "cmdprio"),
        ("ioengine=io_uring\nfilename=f\ncmdprio_percentage=10", "cmdprio"),
    ] {
        let engine = if words.contains("ioengine") { "" } else { "ioengine=null\n" };
        here.write("j.fio", format!("[j]\n{engine}rw=read\nsize=64k\n{words}\n"));
        let ran = fio(&here, &["j.fio", &strict.client()]);
        ran.assert_code(1);
        assert!(ran.err.contains("--allow-priority") && ran.err.contains(name), "{words}: {ran:?}");
        assert_eq!(strict.sandbox.listing(), Vec::<String>::new(), "{words}");
        let ran = fio(&here, &["j.fio", &open.client()]);
        assert!(!ran.err.contains("--allow-priority"), "{words}: {ran:?}");
    }
    here.write("j.fio", "[j]\nioengine=null\nrw=read\nsize=64k\nnice=5\nprioclass=2\nprio=0\n");
    fio(&here, &["j.fio", &strict.client()]).assert_code(0);
    // Neither its jobs nor what they start have the privilege.
    let client = begin_long(&here, &[&strict], &[]);
    let [session] = strict.sessions()[..] else { panic!("one session") };
    let status = fs::read_to_string(format!("/proc/{session}/status")).expect("it runs");
    for set in ["CapEff:", "CapPrm:", "CapBnd:"] {
        let word = status.lines().find_map(|line| line.strip_prefix(set)).expect("a set").trim();
        let is_root = rustix::process::geteuid().is_root();
        let nice = u64::from_str_radix(word, 16).expect("a number") >> 23 & 1;
        assert!(!is_root || nice == 0, "{set} {word}");
    }
    signal(client.id(), libc::SIGINT);
    ended(client).assert_code(128);
}

/// Goal: whoever connects does not decide how much the server prints.
/// Method: hundreds of connections without a token, and a refusal that repeats a long text of the client.
#[test]
fn lines_about_clients_are_limited_in_number_and_length() {
    let place = tempfile::tempdir().expect("a directory");
    let server = Server::at(place, "127.0.0.1,0", "");
    for _ in 0..200 {
        let mut stream = TcpStream::connect(server.address.replace(',', ":")).expect("it listens");
        let _ = stream.write_all(b"GET / HTTP/1.1\r\n\r\n");
        let _ = stream.read_to_end(&mut Vec::new());
    }
    wait_until("its sessions end", || server.sessions().is_empty());
    let lines = server.error_text().lines().count();
    assert!((1..60).contains(&lines), "{lines} lines");
    let other = Server::start("");
    let here = Sandbox::new();
    let long = "x".repeat(3_000);
    here.write("j.fio", format!("[j]\nrw=read\nfilename=/{long}\nsize=64k\n"));
    let ran = fio(&here, &["j.fio", &other.client()]);
    ran.assert_code(1);
    assert!(ran.err.contains(&long), "the client gets the whole reason: {ran:?}");
    wait_until("the refusal is printed", || other.error_text().contains("was refused"));
    assert!(other.error_text().lines().all(|line| line.chars().count() <= 201), "{}", other.error_text());
}

/// Goal: a name outside of the permitted paths is refused before the file is examined.
/// Method: strace lists the calls of the sessions that name a file; a file, a pipe, a device and a missing file are refused in the same words.
#[test]
fn a_name_is_refused_before_its_file_is_examined() {
    if lacks("strace") {
        return;
    }
    let (server, outside, here) = (Server::start(""), Sandbox::new(), Sandbox::new());
    let root = outside.root().display().to_string();
    outside.data_file("there", 4096);
    rustix::fs::mkfifoat(rustix::fs::CWD, outside.path("pipe"), rustix::fs::Mode::RUSR).expect("a pipe");
    let trace = here.aside("trace");
    let mut tracer = std::process::Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=%file", "-o"])
        .arg(&trace)
        .args(["-p", &server.child.id().to_string()])
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("strace");
    wait_until("it is traced", || {
        let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap_or_default();
        status.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
    });
    let mut refusals = Vec::new();
    for name in ["there", "pipe", "missing"] {
        here.write("j.fio", format!("[j]\nrw=read\nsize=4k\nfilename={root}/{name}\n"));
        let ran = fio(&here, &["j.fio", &server.client()]);
        ran.assert_code(1);
        assert!(ran.err.contains("clients may read only below"), "{ran:?}");
        refusals.push(ran.err.replace(name, "NAME"));
    }
    assert!(refusals.iter().all(|text| *text == refusals[0]), "{refusals:?}");
    wait_until("its sessions end", || server.sessions().is_empty());
    signal(tracer.id(), libc::SIGINT);
    let _ = tracer.wait();
    let calls = fs::read_to_string(trace).expect("a trace");
    assert!(calls.contains("execve"), "the sessions were traced: {calls}");
    let examined: Vec<&str> = calls.lines().filter(|line| line.contains(&root)).collect();
    assert!(examined.is_empty(), "{examined:?}");
}

/// A server that completes the handshake honestly and plans, and then behaves as `then`.
fn hostile(then: impl FnOnce(&mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let most = TO_CLIENT_BYTES_MAX;
        let mut talk = || {
            read_magic(&mut stream)?;
            receive_bytes(&mut stream, SHORT_BYTES_MAX)?;
            write_magic(&mut stream)?;
            send(&mut stream, &ToClient::Admitted, most)?;
            let ToServer::Hello(hello) = receive(&mut stream, SHORT_BYTES_MAX)? else { panic!("a hello") };
            send(&mut stream, &ToClient::Hello(hello), most)?;
            let _: ToServer = receive(&mut stream, SHORT_BYTES_MAX)?;
            send(&mut stream, &ToClient::Planned(Planned { lines: Vec::new() }), most)?;
            receive::<ToServer>(&mut stream, SHORT_BYTES_MAX).map(drop)
        };
        talk().expect("the client's messages");
        then(&mut stream);
        // Until the client closes.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    format!("--client={},{}", address.ip(), address.port())
}

/// Goal: a hostile server makes its client keep no more than a few jobs need.
/// Method: it announces and sends a gigabyte; and a message whose text is short and whose value is large. The client's largest memory is read
/// while it runs.
#[test]
fn a_hostile_server_does_not_fill_its_clients_memory() {
    let here = Sandbox::new();
    here.write("j.fio", ENDLESS);
    let announced = hostile(|stream| {
        let _ = stream.write_all(&(1_u32 << 30).to_be_bytes());
        let part = vec![b' '; 1 << 20];
        for _ in 0..1024 {
            if stream.write_all(&part).is_err() {
                return;
            }
        }
    });
    let ran = fio(&here, &[&announced, "j.fio"]);
    ran.assert_code(1);
    assert!(ran.err.contains("1073741824 bytes was announced"), "{ran:?}");
    let dense = hostile(|stream| {
        // Two bytes of text for each empty list in a list: 24 bytes of memory, or more.
        let text = format!("{{\"planned\":{{\"lines\":[{}\"\"]}}}}", "\"\",".repeat(3_000_000));
        let _ = stream.write_all(&(text.len() as u32).to_be_bytes());
        let _ = stream.write_all(text.as_bytes());
    });
    let ran = fio(&here, &[&dense, "j.fio"]);
    ran.assert_code(1);
    assert!(ran.err.contains("bytes of memory, and at most"), "{ran:?}");
    // Ten million objects: their text is within the limit, and is not read to its end.
    let objects = hostile(|stream| {
        let text = format!("{{\"done\":{{\"record\":[{}{{}}]}}}}", "{},".repeat(10_000_000));
        let _ = stream.write_all(&(text.len() as u32).to_be_bytes());
        let _ = stream.write_all(text.as_bytes());
    });
    let ran = fio(&here, &[&objects, "j.fio"]);
    ran.assert_code(1);
    assert!(ran.err.contains("127.0.0.1") && ran.err.contains("bytes of memory, and at most"), "{ran:?}");
    let long = hostile(|stream| {
        let _ = send(stream, &ToClient::Refused { text: "y".repeat(1 << 20) }, TO_CLIENT_BYTES_MAX);
    });
    let ran = fio(&here, &[&long, "j.fio"]);
    ran.assert_code(1);
    assert!(ran.err.len() < 100_000, "{} bytes are printed", ran.err.len());
}

/// Sends a part of the log of a job with `write_bw_log=t`.
fn send_log(stream: &mut TcpStream, text: &str) -> bool {
    let part = LogPart { prefix: "t".to_owned(), suffix: "_bw.1.log".to_owned(), text: text.to_owned() };
    send(stream, &ToClient::Log(part), TO_CLIENT_BYTES_MAX).is_ok()
}

/// Goal: a hostile server fills no more than a half of the client's disk.
#[test]
fn a_hostile_server_does_not_fill_its_clients_disk() {
    if lacks("root") {
        return;
    }
    let here = Sandbox::new();
    let _mount = Mount::tmpfs(&here, "disk", "16m");
    let disk = here.path("disk");
    fs::write(disk.join("j.fio"), format!("{ENDLESS}write_bw_log=t\n")).expect("a file");
    let client = hostile(|stream| {
        let text = "1, 2, 0, 4096, 0\n".repeat(60_000);
        let _ = (0..20).all(|_| send_log(stream, &text));
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
    let mut command = here.command(&["fio", "j.fio", &client]);
    let ran = Ran::of(command.current_dir(&disk).output().expect("the program runs"));
    ran.assert_code(1);
    assert!(ran.err.contains("were cut: they are longer than its share"), "{ran:?}");
    let length = fs::metadata(disk.join("t_bw.1.log.127.0.0.1")).expect("the log").len();
    assert!((1 << 20..=8 << 20).contains(&length), "{length}");
}

/// Goal: a log that another program replaces, removes or writes to, between two parts or after the last one, is kept next to it, and both are named.
#[test]
fn a_received_log_that_another_program_changes_is_kept_and_reported() {
    const LINE: &str = "1, 2, 0, 4096, 0\n";
    for (how, goes_on) in
        [("moved", true), ("moved", false), ("removed", true), ("removed", false), ("filled", true), ("filled", false)]
    {
        let here = Sandbox::new();
        here.write("j.fio", format!("{ENDLESS}write_bw_log=t\n"));
        let path = here.path("t_bw.1.log.127.0.0.1");
        let log = path.clone();
        let client = hostile(move |stream| {
            send_log(stream, LINE);
            wait_until("the log", || fs::metadata(&log).is_ok_and(|found| found.len() == LINE.len() as u64));
            match how {
                "moved" => fs::rename(&log, log.with_extension("moved")).expect("renamed"),
                "removed" => fs::remove_file(&log).expect("removed"),
                _ => {}
            }
            let mut notes = fs::File::options().append(true).create(true).open(&log).expect("a file");
            notes.write_all(b"notes").expect("written");
            if goes_on {
                send_log(stream, LINE);
            }
            let _ = stream.shutdown(std::net::Shutdown::Both);
        });
        let ran = fio(&here, &["j.fio", &client]);
        ran.assert_code(1);
        let words =
            if how == "filled" { "another program wrote to it" } else { "another program removed or replaced it" };
        assert!(ran.err.contains(words) && ran.err.contains("t_bw.1.log.127.0.0.1"), "{how} {goes_on}: {ran:?}");
        let notes = if how == "filled" { format!("{LINE}notes") } else { "notes".to_owned() };
        assert_eq!(fs::read_to_string(&path).expect("the notes"), notes, "{how} {goes_on}");
        let kept = ran.err.split("the output is kept in `").nth(1).and_then(|rest| rest.split('`').next());
        let kept = here.root().join(kept.unwrap_or_else(|| panic!("{how} {goes_on}: {ran:?}")));
        let whole = if goes_on { LINE.repeat(2) } else { LINE.to_owned() };
        assert_eq!(fs::read_to_string(&kept).expect("the log"), whole, "{how} {goes_on}");
    }
}

/// Goal: the space for a log is that of the filesystem of its directory, not of the current directory.
#[test]
fn the_space_for_a_received_log_is_measured_in_its_directory() {
    if lacks("root") {
        return;
    }
    let here = Sandbox::new();
    let _mount = Mount::tmpfs(&here, "disk", "16m");
    here.write("j.fio", format!("{ENDLESS}write_bw_log=disk/t\n"));
    let client = hostile(|stream| {
        let text = "1, 2, 0, 4096, 0\n".repeat(60_000);
        let part = LogPart { prefix: "disk/t".to_owned(), suffix: "_bw.1.log".to_owned(), text };
        let _ = (0..20).all(|_| send(stream, &ToClient::Log(part.clone()), TO_CLIENT_BYTES_MAX).is_ok());
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
    let ran = fio(&here, &["j.fio", &client]);
    ran.assert_code(1);
    assert!(ran.err.contains("were cut: they are longer than its share") && ran.err.contains("disk/t_bw"), "{ran:?}");
    let length = fs::metadata(here.path("disk/t_bw.1.log.127.0.0.1")).expect("the log").len();
    assert!((1 << 20..=8 << 20).contains(&length), "{length}");
}

/// Goal: a server that sends messages without end does not keep its client: neither those of the handshake, nor those of a run.
#[test]
fn messages_without_end_of_a_hostile_server_end_its_client() {
    let here = Sandbox::new();
    here.write("j.fio", ENDLESS);
    type Make = fn() -> ToClient;
    let makes: [(&str, Make); 3] = [
        ("does not belong to a run", || ToClient::Admitted),
        ("does not belong to a run", || ToClient::Planned(Planned { lines: Vec::new() })),
        ("more messages than a run has", || ToClient::Alive),
    ];
    for (words, make) in makes {
        let client = hostile(move |stream| while send(stream, &make(), TO_CLIENT_BYTES_MAX).is_ok() {});
        let ran = fio(&here, &["j.fio", &client]);
        ran.assert_code(1);
        assert!(ran.err.contains(words), "{ran:?}");
    }
}
