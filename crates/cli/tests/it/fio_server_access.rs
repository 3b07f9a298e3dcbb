//! Who may connect to `trueio fio --server`: clients with its token over TCP, and users of its socket.
//!
//! All connections are local: sockets of the file system and the loopback address, with ports that the kernel chooses.

use crate::common::*;
use crate::servers::*;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use trueio_fio::wire::frame::{MAGIC, SHORT_BYTES_MAX, TO_CLIENT_BYTES_MAX, TOKEN_BYTES_MAX};
use trueio_fio::wire::{Hello, PROTOCOL, ToClient, ToServer, read_magic, receive, send, send_bytes, write_magic};

const JOB: &str = "[j]\nioengine=null\nrw=read\nsize=64k\n";

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Writes a token with a mode and returns the option that names it.
fn token_file(here: &Sandbox, content: &str, mode: u32) -> String {
    let path = here.aside("token");
    let _ = fs::remove_file(&path);
    fs::write(&path, content).expect("a file");
    fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("it is ours");
    format!("--token={}", path.display())
}

fn mode(path: &str) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

/// Goal: other users of the machine get nothing from a server on the loopback address; its own user notices no token.
/// Method: clients with the server's user directory, and with another one; with no token, another token, and one that others
/// may read.
#[test]
fn a_server_on_the_loopback_address_admits_only_clients_with_its_token() {
    let server = Server::at(place(), "127.0.0.1,0", "");
    let path = server.token.clone().expect("its token");
    assert_eq!(mode(&path), 0o600);
    let token = fs::read_to_string(&path).expect("a token");
    server.sandbox.write("j.fio", JOB);
    fio(&server.sandbox, &[&server.client(), "j.fio"]).assert_code(0);
    let here = Sandbox::new();
    here.write("j.fio", JOB);
    fio(&here, &[&server.client(), &server.with_token(), "j.fio"]).assert_code(0);
    let other = "0".repeat(token.trim().len());
    for (words, reason) in [
        (None, "this server requires a token"),
        (Some(token_file(&here, &other, 0o600)), "the token is not the server's"),
        (Some("--token=nothing".to_owned()), "No such file"),
    ] {
        let client = server.client();
        let arguments: Vec<&str> = [client.as_str()].into_iter().chain(words.as_deref()).chain(["j.fio"]).collect();
        let ran = fio(&here, &arguments);
        ran.assert_code(1);
        assert!(ran.err.contains(reason) && !ran.err.contains(token.trim()), "{ran:?}");
        assert!(words.is_some() || ran.err.contains("--token FILE"), "{ran:?}");
        assert_eq!(ran.out, "");
    }
    let ran = fio(&here, &[&token_file(&here, &token, 0o644), &server.client(), "j.fio"]);
    ran.assert_code(1);
    assert!(ran.err.contains("other users may use it (mode 0644)"), "{ran:?}");
    assert!(server.error_text().contains("was refused: this server requires a token"));
    assert!(!server.error_text().contains(token.trim()));
    drop(server);
    assert!(!Path::new(&path).exists(), "the token ends with its server");
}

/// Goal: without the token, nothing that a peer sends is parsed.
/// Method: a greeting and jobs in place of a token, and a token that is announced longer than any may be.
#[test]
fn nothing_is_parsed_before_the_token() {
    let server = Server::at(place(), "127.0.0.1,0", "");
    let connect = || {
        let mut stream = TcpStream::connect(server.address.replace(',', ":")).expect("it listens");
        write_magic(&mut stream).expect("it listens");
        stream
    };
    let greeting =
        format!("{{\"hello\":{{\"protocol\":3,\"version\":\"{}\",\"machine\":\"m\"}}}}", env!("CARGO_PKG_VERSION"));
    for sent in [greeting.as_bytes(), b"", b"x"] {
        let mut stream = connect();
        send_bytes(&mut stream, sent, SHORT_BYTES_MAX).expect("it takes them");
        read_magic(&mut stream).expect("the magic");
        let answer = receive::<ToClient>(&mut stream, TO_CLIENT_BYTES_MAX).expect("a message");
        assert!(matches!(&answer, ToClient::Refused { text } if text.contains("token")), "{answer:?}");
        assert_eq!(stream.read(&mut [0; 1]).expect("the end"), 0);
    }
    let mut stream = connect();
    stream.write_all(&(TOKEN_BYTES_MAX + 1).to_be_bytes()).expect("it takes them");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.len() <= MAGIC.len(), "{answer:?}");
    wait_until("its sessions end", || server.sessions().is_empty());
}

/// Goal: a server for other machines does not start without a token of its user, or with one that others may read.
#[test]
fn a_server_on_another_address_needs_a_token_file() {
    let here = Sandbox::new();
    let word = "an-honest-word-of-a-user";
    let refusal = |words: &[&str], reason: &str| {
        let ran = fio(&here, &[words, &["--allow-write=."]].concat());
        ran.assert_code(1);
        assert!(ran.err.contains(reason) && !ran.err.contains(word) && ran.out.is_empty(), "{words:?}: {ran:?}");
    };
    refusal(&["--server=0.0.0.0,0"], "clients of other machines need a token");
    refusal(&["--server=0.0.0.0,0", &token_file(&here, word, 0o640)], "other users may use it (mode 0640)");
    refusal(&["--server=127.0.0.1,0", &token_file(&here, word, 0o604)], "other users may use it (mode 0604)");
    refusal(&["--server=0.0.0.0,0", &token_file(&here, "short", 0o600)], "printable ASCII characters");
    refusal(&["--server=0.0.0.0,0", "--token=nothing"], "No such file");
    let named = token_file(&here, word, 0o600);
    refusal(&["--server=sock:s", &named], "`--token` is for TCP addresses");
    let server = Server::at(place(), "0.0.0.0,0", &named);
    let port = server.address.rsplit_once(',').expect("a port").1;
    let client = format!("--client=127.0.0.1,{port}");
    here.write("j.fio", JOB);
    fio(&here, &[&named, &client, "j.fio"]).assert_code(0);
    let ran = fio(&here, &[&client, "j.fio"]);
    ran.assert_code(1);
    assert!(ran.err.contains("this server requires a token"), "{ran:?}");
    drop(server);
    assert!(here.aside("token").exists(), "a token of the user stays");
}

#[test]
fn a_daemonized_server_removes_the_token_that_it_created() {
    let here = Sandbox::new();
    let ran = fio(&here, &["--server=127.0.0.1,0", "--allow-write=.", "--daemonize=pid"]);
    ran.assert_code(0);
    let line = ran.out.trim().trim_end_matches(')').strip_prefix("fio: server listening on ").expect("its address");
    let (address, path) = line.split_once(" (token: ").expect("its token");
    assert_eq!(mode(path), 0o600);
    here.write("j.fio", JOB);
    // Once it answers, it handles signals.
    fio(&here, &[&format!("--client={address}"), "j.fio"]).assert_code(0);
    let pid: u32 = fs::read_to_string(here.path("pid")).expect("a file").trim().parse().expect("a number");
    wait_until("it handles signals", || catches(pid, libc::SIGTERM));
    signal(pid, libc::SIGTERM);
    wait_until("it ends", || !Path::new(path).exists() && !here.path("pid").exists());
}

/// Connects to a socket as another user, greets, and returns the server's answer. Only the thread changes its user.
fn answer_to(user: libc::uid_t, path: String) -> ToClient {
    let greet = move || {
        // SAFETY: a plain call. It changes the effective user of this thread, which ends with this function.
        let changed = unsafe { libc::syscall(libc::SYS_setresuid, -1i32, user, -1i32) };
        assert_eq!(changed, 0, "root may change its user");
        let mut stream = UnixStream::connect(path).expect("the socket's mode permits it");
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let hello = Hello { protocol: PROTOCOL, version, machine: "here".to_owned() };
        // A server that refuses this user answers and closes without reading.
        let _ = write_magic(&mut stream).and_then(|()| send(&mut stream, &ToServer::Hello(hello), SHORT_BYTES_MAX));
        read_magic(&mut stream).expect("the magic");
        receive(&mut stream, TO_CLIENT_BYTES_MAX).expect("a message")
    };
    std::thread::spawn(greet).join().expect("an answer")
}

/// Goal: the kernel's word for the peer's user decides, and not only the mode of the socket.
/// Method: a socket that every user may connect to, by accident or for `--allow-user`; users that are listed and others.
#[test]
fn only_listed_users_are_clients_of_a_socket() {
    let here = Sandbox::new();
    for (words, reason) in [
        (["--server=sock:s", "--allow-user=nobody"], "it is not the number of a user"),
        (["--server=127.0.0.1,0", "--allow-user=65534"], "`--allow-user` is for a socket"),
    ] {
        let ran = fio(&here, &[&words[..], &["--allow-write=."]].concat());
        ran.assert_code(1);
        assert!(ran.err.contains(reason), "{ran:?}");
    }
    if lacks("root") {
        return;
    }
    let (strict, open) = (Server::start(""), Server::start("--allow-user=65533 --allow-user 65534"));
    for server in [&strict, &open] {
        fs::set_permissions(server.place.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
    }
    assert_eq!((mode(strict.hostname()), mode(open.hostname())), (0o600, 0o666));
    fs::set_permissions(strict.hostname(), PermissionsExt::from_mode(0o666)).expect("it is ours");
    for (server, user, is_client) in
        [(&strict, 65534, false), (&open, 65534, true), (&open, 65533, true), (&open, 65532, false)]
    {
        match answer_to(user, server.hostname().to_owned()) {
            ToClient::Hello(_) => assert!(is_client, "{user}"),
            ToClient::Refused { text } => {
                assert!(
                    !is_client && text.contains(&format!("not for processes of the user {user}")),
                    "{user}: {text}"
                );
            }
            other => panic!("{user}: {other:?}"),
        }
    }
    here.write("j.fio", JOB);
    for server in [&strict, &open] {
        fio(&here, &[&server.client(), "j.fio"]).assert_code(0);
    }
}
