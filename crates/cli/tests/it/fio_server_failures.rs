//! `trueio fio --client` and `--server`: other programs as peers, lost connections, signals, and the end of servers.
//!
//! All connections are local: sockets of the file system and the loopback address, with ports that the kernel chooses. Tests
//! wait for events with a limit that only a machine that stands still exceeds.

use crate::common::*;
use crate::servers::*;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Starts a peer that sends some bytes to the first client and closes the connection; returns the client's option.
fn peer_that_sends(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let _ = stream.write_all(bytes);
        // Reads everything, so that the connection ends without a reset.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    format!("--client={},{}", address.ip(), address.port())
}

#[test]
fn a_peer_that_is_not_a_trueio_server_is_reported() {
    let here = Sandbox::new();
    here.write("j.fio", ENDLESS);
    let fios: &[u8] = &[0x61, 0, 0x0a, 0, 0, 0, 0, 0, 0x50, 0x6a, 0x8b, 0xb7, 0xcd, 0x55, 0, 0, 0, 0, 0, 0];
    for (bytes, sentence) in [
        (fios, "it is fio itself (protocol 97)"),
        (b"SSH-2.0-OpenSSH_9.2 and more\r\n", "it is not trueio"),
        (b"", "closed the connection without a word"),
        (b"trueio-fio-wire\n\0\0\0\x02{}", "a message cannot be read"),
        (b"trueio-fio-wire\n\xff\xff\xff\xff", "4294967295 bytes"),
        (
            b"trueio-fio-wire\n\0\0\0\x3b{\"hello\":{\"protocol\":1,\"version\":\"0.0.0\",\"machine\":\"mmmm\"}}",
            "one version",
        ),
    ] {
        let client = peer_that_sends(bytes);
        let ran = fio(&here, &[&client, "j.fio"]);
        ran.assert_code(1);
        let host = client.strip_prefix("--client=").expect("its prefix");
        assert!(ran.err.contains(sentence) && ran.err.contains(host), "{sentence}: {ran:?}");
    }
    let ran = fio(&here, &["--client=sock:/nowhere/at/all", "j.fio"]);
    ran.assert_code(1);
    assert!(ran.err.contains("sock:/nowhere/at/all: the server cannot be reached"), "{ran:?}");
}

/// Goal: other programs neither end a server nor receive anything from it.
#[test]
fn a_server_survives_any_connection() {
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
        wait_until("fio's client is refused", || server.error_text().contains("it is fio itself (protocol"));
        let _ = theirs.kill();
        let _ = theirs.wait();
    } else {
        eprintln!("skipped: fio is not installed");
    }
    let here = Sandbox::new();
    here.write("j.fio", "[j]\nioengine=null\nrw=read\nsize=64k\n");
    fio(&here, &[&server.client(), "j.fio"]).assert_code(0);
    // Only the user may access the socket.
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(&path).expect("a socket").permissions().mode() & 0o777, 0o600);
    wait_until("its sessions end", || server.sessions().is_empty());
}

/// Goal: a signal at the client ends the runs, and their results arrive, including logs.
#[test]
fn a_signal_at_the_client_ends_the_runs_and_prints_their_results() {
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
    wait_until("sessions and logs are removed", || first.sessions().is_empty() && first.leftovers().is_empty());
}

/// Goal: a run ends if its client disconnects.
/// Method: the client is killed; sessions and directories of logs must disappear.
#[test]
fn a_disconnected_client_ends_its_run() {
    let server = Server::start("");
    let here = Sandbox::new();
    let mut client = begin_long(&here, &[&server], &[]);
    assert_eq!((server.sessions().len(), server.leftovers().len()), (1, 1));
    client.kill().expect("it runs");
    client.wait().expect("it ends");
    wait_until("the session ends", || server.sessions().is_empty() && server.leftovers().is_empty());
}

/// Goal: a lost server is an error with its name, and the results of the others are printed.
#[test]
fn a_lost_server_is_reported_and_the_results_of_the_others_are_printed() {
    let (lost, kept) = (Server::start(""), Server::start(""));
    let here = Sandbox::new();
    let client = begin_long(&here, &[&lost, &kept], &["--output-format=json"]);
    lost.sessions().into_iter().for_each(|pid| signal(pid, libc::SIGKILL));
    wait_until("it is gone", || lost.sessions().is_empty());
    // Ends the other server, which sends its results.
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

/// Goal: a running command of a job prevents neither its session nor the server from ending.
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
    // Three cases: the client is interrupted, the client is killed, the server ends.
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

/// Goal: a server without a free descriptor for a client waits, and does not spin.
/// Method: its limit is lowered until no number is free; its CPU time in a second is then a small part of a second.
#[test]
fn a_server_without_free_descriptors_waits() {
    let server = Server::start("");
    let pid = server.child.id();
    // It opens its table of sessions after it has printed that it listens.
    let descriptor = |number: u64| fs::read_link(format!("/proc/{pid}/fd/{number}"));
    let is_table = |number| descriptor(number).is_ok_and(|path| path.to_string_lossy().contains("trueio-sessions"));
    wait_until("the server is ready", || (0..16).any(is_table));
    // Below the lowest number that is free: what it inherited may have any numbers.
    let is_open = |number: &u64| descriptor(*number).is_ok();
    let open = (0..).take_while(is_open).count() as u64;
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
        // The state is filtered out, so the parent is field 0, and user and system time are fields 10 and 11.
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
fn a_daemonized_server_writes_its_process_id_and_cleans_up() {
    let place = tempfile::tempdir().expect("a directory");
    let here = Sandbox::new();
    let path = place.path().join("s");
    let server = format!("--server=sock:{}", path.display());
    let ran = fio(&here, &[&server, "--allow-write=.", "--daemonize=pid"]);
    ran.assert_code(0);
    assert_eq!(ran.out, format!("fio: server listening on sock:{}\n", path.display()));
    let pid: u32 = fs::read_to_string(here.path("pid")).expect("a file").trim().parse().expect("a number");
    let other = format!("--server=sock:{}", place.path().join("other").display());
    let second = fio(&here, &[&other, "--allow-write=.", "--daemonize=pid"]);
    here.write("j.fio", "[j]\nioengine=null\nrw=read\nsize=64k\n");
    let ran = fio(&here, &[&format!("--client=sock:{}", path.display()), "j.fio"]);
    let taken = fio(&here, &[&server, "--allow-write=."]);
    signal(pid, libc::SIGTERM);
    wait_until("it ends", || !path.exists() && !here.path("pid").exists());
    ran.assert_code(0);
    second.assert_code(1);
    assert!(second.err.contains("is running"), "{second:?}");
    taken.assert_code(1);
    assert!(taken.err.contains("cannot listen on"), "{taken:?}");
}

/// Goal: a signal that arrives while a server starts leaves neither socket, token nor PID file.
/// Method: strace sends the signal at a call between the creation of the first file and the loop that accepts clients: in the
/// first process, and in the one in the background. The command returns when all processes have ended.
#[test]
fn a_server_that_is_signalled_while_it_starts_leaves_no_file() {
    if lacks("strace") {
        return;
    }
    let in_background = ["bind", "listen", "setsid"].map(|call| (call, "--daemonize=pid"));
    let in_foreground = ["bind", "listen"].map(|call| (call, "--allow-contents"));
    for address in ["socket", "127.0.0.1,0"] {
        for (call, word) in in_background.into_iter().chain(in_foreground) {
            for name in ["SIGTERM", "SIGINT", "SIGHUP"] {
                let place = tempfile::tempdir().expect("a directory");
                let here = Sandbox::new();
                let address = address.replace("socket", &format!("sock:{}", place.path().join("s").display()));
                let plain = here.command(&["fio", &format!("--server={address}"), "--allow-write=.", word]);
                let mut traced = Command::new("strace");
                traced.args(["-f", "-o"]).arg(here.aside("trace"));
                traced.args(["-e", &format!("trace={call}"), "-e", &format!("inject={call}:signal={name}:when=1")]);
                traced.arg(plain.get_program()).args(plain.get_args()).current_dir(here.root());
                traced.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
                traced.env("XDG_RUNTIME_DIR", place.path()).stdin(Stdio::null());
                let ran = Ran::of(traced.output().expect("strace"));
                let trace = fs::read_to_string(here.aside("trace")).expect("a trace");
                assert!(trace.contains(&format!("{name} {{")), "nothing was staged: {trace}{ran:?}");
                assert!(ran.out.starts_with("fio: server listening on "), "{call} {word} {name}: {ran:?}");
                let directory = place.path().join("trueio");
                let tokens = fs::read_dir(&directory).map_or(0, Iterator::count);
                let left = (here.path("pid").exists(), place.path().join("s").exists(), tokens);
                assert_eq!(left, (false, false, 0), "{address} {call} {word} {name}: {ran:?}");
                assert_eq!(directory.exists(), address.starts_with("127"), "it has created its token there");
            }
        }
    }
}

/// Goal: the socket of a killed server does not prevent the next server from using its path.
#[test]
fn a_stale_socket_is_replaced_and_any_other_file_is_not() {
    let mut first = Server::start("");
    let (address, path) = (first.address.clone(), first.hostname().to_owned());
    first.child.kill().expect("it runs");
    first.child.wait().expect("it ends");
    assert!(Path::new(&path).exists());
    let second = Server::at(tempfile::tempdir().expect("a directory"), &address, "");
    assert_eq!(second.address, address);
    let here = Sandbox::new();
    here.write("file", "precious");
    let ran = fio(&here, &["--server=sock:file", "--allow-write=."]);
    ran.assert_code(1);
    assert!(ran.err.contains("cannot listen on"), "{ran:?}");
    assert_eq!(fs::read_to_string(here.path("file")).expect("it is there"), "precious");
}
