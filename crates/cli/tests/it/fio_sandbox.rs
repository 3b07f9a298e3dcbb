//! A server's clients use the directories that its command line names, and nothing else, whatever they send.

use crate::common::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use trueio_fio::wire::frame::{SHORT_BYTES_MAX, TO_CLIENT_BYTES_MAX, TO_SERVER_BYTES_MAX};
use trueio_fio::wire::{Hello, Jobs, PROTOCOL, ToClient, ToServer, read_magic, receive, send, write_magic};
use trueio_model::Outcome;

/// A server on a socket, in a directory of its own; ended when it is dropped.
struct Server {
    sandbox: Sandbox,
    place: tempfile::TempDir,
    child: Child,
}

impl Server {
    fn start(words: &[&str]) -> Self {
        Self::start_with(&[&["--allow-write=."][..], words].concat())
    }

    /// Without a permission of its own directory.
    fn start_with(words: &[&str]) -> Self {
        let (sandbox, place) = (Sandbox::new(), tempfile::tempdir().expect("a directory"));
        let address = format!("--server=sock:{}", place.path().join("s").display());
        let mut child = sandbox
            .command(&[&["fio", address.as_str()][..], words].concat())
            .env("TMPDIR", place.path())
            .env("A_SECRET_VARIABLE", "a-secret-value")
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        assert!(line.starts_with("fio: server listening on"), "{line}");
        Self { sandbox, place, child }
    }

    fn client(&self) -> String {
        format!("--client=sock:{}", self.place.path().join("s").display())
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.place.path().join("s")).expect("it listens")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: a plain call; the process is a child that was not waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        let _ = self.child.wait();
    }
}

fn fio(here: &Sandbox, words: &[&str]) -> Ran {
    here.run(&[&["fio"], words].concat())
}

/// Sends a job file and returns the connection, once the server has planned it.
fn planned(server: &Server, text: &str) -> UnixStream {
    let texts = BTreeMap::from([("j.fio".to_owned(), text.to_owned())]);
    let (stream, answer) = sent(server, Jobs { files: vec!["j.fio".to_owned()], texts, ..Jobs::default() });
    assert!(matches!(answer, ToClient::Planned(_)), "{answer:?}");
    stream
}

fn answered(server: &Server, jobs: Jobs) -> ToClient {
    sent(server, jobs).1
}

/// Sends jobs, and returns the connection and the server's answer.
fn sent(server: &Server, jobs: Jobs) -> (UnixStream, ToClient) {
    let mut stream = server.connect();
    write_magic(&mut stream).expect("it listens");
    let hello = Hello { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION").to_owned(), machine: "here".to_owned() };
    send(&mut stream, &ToServer::Hello(hello), TO_SERVER_BYTES_MAX).expect("sent");
    read_magic(&mut stream).expect("the magic");
    let hear = || receive::<ToClient>(&mut &stream, TO_CLIENT_BYTES_MAX).expect("a message");
    assert!(matches!(hear(), ToClient::Hello(_)));
    send(&mut &stream, &ToServer::Jobs(Box::new(jobs)), TO_SERVER_BYTES_MAX).expect("sent");
    let answer = hear();
    (stream, answer)
}

/// Goal: the kernel, and not only a check of names, keeps jobs below the server's directory.
/// Method: a client that starts its job after a directory of the planned file was replaced by a link to another one.
#[test]
fn a_link_that_is_planted_after_planning_leads_no_write_out_of_the_directory() {
    let (server, outside) = (Server::start(&[]), Sandbox::new());
    fs::create_dir(server.sandbox.path("sub")).expect("a directory");
    for (is_swapped, name) in [(false, "one"), (true, "two")] {
        let job = format!("[j]\nrw=write\nsize=64k\nfilename=sub/{name}\nunlink=0\n");
        let mut stream = planned(&server, &job);
        if is_swapped {
            fs::remove_dir_all(server.sandbox.path("sub")).expect("a directory");
            symlink(outside.root(), server.sandbox.path("sub")).expect("a link");
        }
        send(&mut stream, &ToServer::Start, TO_SERVER_BYTES_MAX).expect("sent");
        let record = loop {
            if let ToClient::Done { record, .. } = receive(&mut stream, TO_CLIENT_BYTES_MAX).expect("a message") {
                break record;
            }
        };
        assert_eq!(matches!(record.outcome, Outcome::Complete), !is_swapped, "{:?}", record.outcome);
        assert_eq!(outside.listing(), Sandbox::new().listing(), "a file was created outside");
    }
}

/// Goal: no client reads a file outside, learns the names in a directory, or lines of a file.
/// Method: the ways by which a released server disclosed them: a verification that prints what it found, `opendir`, and a job
/// file at the server; with and without the kernel's help. Below its directory, and where `--allow-read` permits it, files are read.
#[test]
fn a_client_reads_only_below_the_servers_directory_and_where_its_command_line_says() {
    let (here, outside) = (Sandbox::new(), Sandbox::new());
    let secret = outside.data_file("secret", 64 << 10);
    let allowed = format!("--allow-read={}", outside.root().display());
    let (server, open, unconfined) = (Server::start(&[]), Server::start(&[&allowed]), Server::start(&["--no-sandbox"]));
    server.sandbox.data_file("own", 64 << 10);
    for server in [&server, &unconfined] {
        symlink(&secret, server.sandbox.path("link")).expect("a link");
    }
    let root = outside.root().display();
    for words in [
        format!("filename={root}/secret\nverify=pattern\nverify_pattern=0x00\nbs=16\nsize=16"),
        format!("filename={root}/secret"),
        "filename=link".to_owned(),
        format!("opendir={root}"),
        "filename=/sys/devices/system/cpu/online\nbs=16\nsize=16".to_owned(),
    ] {
        here.write("j.fio", format!("[j]\nrw=read\n{words}\n"));
        for server in [&server, &unconfined] {
            let ran = fio(&here, &["j.fio", &server.client()]);
            ran.assert_code(1);
            assert!(ran.err.contains("may read only below"), "{words}: {ran:?}");
            assert!(ran.err.contains("--allow-read="), "{words}: {ran:?}");
        }
    }
    outside.write("there.fio", "[hidden]\npassword=hunter2\n");
    let there = format!("--remote-config={root}/there.fio");
    let ran = fio(&here, &[&server.client(), &there]);
    ran.assert_code(1);
    assert!(ran.err.contains("may read only below") && !ran.err.contains("hunter2"), "{ran:?}");
    here.write("j.fio", "[j]\nrw=read\nfilename=own\n");
    fio(&here, &["j.fio", &server.client()]).assert_code(0);
    here.write("j.fio", format!("[j]\nrw=read\nfilename={root}/secret\n"));
    fio(&here, &["j.fio", &open.client()]).assert_code(0);
    // What may be read may not be written.
    here.write("j.fio", format!("[j]\nrw=write\nfilename={root}/secret\n"));
    let ran = fio(&here, &["j.fio", &open.client()]);
    ran.assert_code(1);
    assert!(ran.err.contains("may write only below"), "{ran:?}");
}

/// Goal: bytes and names of files that a client may read, and values of the server's environment, are not sent to it unless the
/// server's command line permits it.
/// Method: a file with secret bytes below the server's directory, read by verifications of all kinds whose results have figures
/// of each round, of each worker and of the run so far; a directory with a secret name; a link to a secret path; a secret variable.
#[test]
fn contents_and_names_of_files_travel_only_if_the_server_permits_it() {
    let (closed, open) = (Server::start(&[]), Server::start(&["--allow-contents"]));
    let (here, outside) = (Sandbox::new(), Sandbox::new());
    let all = |server: &Server, words: &str, more: &[&str]| {
        here.write("j.fio", format!("[j]\nrw=read\n{words}\n"));
        let client = server.client();
        let ran = fio(&here, &[&["j.fio", &client, "--output-format=json+,normal,terse"], more].concat());
        // The number of failed jobs.
        assert!(matches!(ran.code, Some(1 | 2)), "{ran:?}");
        format!("{}{}", ran.out, ran.err)
    };
    // "hunter2" in the forms of messages: text, and bytes in hexadecimal digits.
    let forms = ["hunter2", "68756e74", "68, 75, 6e, 74", "68 75 6e 74", "0x68756e74"];
    let has_secret = |text: &str| forms.iter().any(|form| text.contains(form));
    let secret = "hunter2-".repeat(8192);
    for server in [&closed, &open] {
        server.sandbox.write("secret", &secret);
        fs::create_dir(server.sandbox.path("d")).expect("a directory");
        server.sandbox.write("d/a-secret-name", &secret);
        symlink(outside.write("a-secret-target", &secret), server.sandbox.path("link")).expect("a link");
        server.sandbox.write("there.fio", "[j]\nioengine=null\nrw=read\nsize=64k\nfilename=${A_SECRET_VARIABLE}\n");
    }
    let mut disclosed = 0;
    for words in [
        "filename=secret\nverify=pattern\nverify_pattern=0x00\nbs=16\nsize=16",
        "filename=secret\nverify=pattern\nverify_pattern=0x00\nbs=512\nsize=4k\nnumjobs=2\ngroup_reporting=1\ncontinue_on_error=verify",
        "filename=secret\nverify=crc32c\nbs=512\nsize=4k",
        "filename=secret\nverify=meta\nbs=4k\nsize=64k\nverify_fatal=1",
    ] {
        let text = all(&closed, words, &["--status-interval=1"]);
        assert!(text.contains("did not read back as written") && !has_secret(&text), "{words}: {text}");
        assert!(text.contains("something else, which is not shown"), "{words}: {text}");
        disclosed += usize::from(has_secret(&all(&open, words, &["--status-interval=1"])));
    }
    assert!(disclosed > 0, "the forms in which messages show bytes have changed");
    let text = all(&closed, "opendir=d", &[]);
    assert!(text.contains("--allow-contents") && !text.contains("a-secret-name"), "{text}");
    here.write("o.fio", "[j]\nrw=read\nopendir=d\n");
    fio(&here, &["o.fio", &open.client()]).assert_code(0);
    let text = all(&closed, "rw=write\nsize=4k\nfilename=link", &[]);
    assert!(text.contains("leads elsewhere") && !text.contains("a-secret-target"), "{text}");
    // Variables of a job file at the server are the client's.
    let ran = fio(&here, &[&closed.client(), "--remote-config=there.fio", "--output-format=json"]);
    assert!(!format!("{ran:?}").contains("a-secret-value"), "{ran:?}");
    // An honest client gets its figures.
    here.write("h.fio", "[j]\nrw=write\nbs=4k\nsize=64k\nfilename=own\nverify=crc32c\n");
    let ran = fio(&here, &["h.fio", &closed.client(), "--output-format=json"]);
    ran.assert_code(0);
    assert!(ran.out.contains("\"total_ios\""), "{ran:?}");
}

/// Goal: a client learns nothing of files outside of the permitted directory: not whether one exists, of which kind or size it is.
/// Method: links in the directory, which lead to a file, a directory and nothing; as a part of a path, and as the name that a job's file
/// has by default.
#[test]
fn links_out_of_the_permitted_directory_are_refused_in_the_same_words_whatever_they_lead_to() {
    let outside = Sandbox::new();
    outside.write("file", "0".repeat(12_345));
    fs::create_dir(outside.path("directory")).expect("a directory");
    let server = Server::start(&[]);
    let here = Sandbox::new();
    symlink(outside.root(), server.sandbox.path("out")).expect("a link");
    let run = |job: String| {
        here.write("j.fio", format!("[j]\nrw=read\n{job}\n"));
        let ran = fio(&here, &["j.fio", &server.client()]);
        ran.assert_code(1);
        ran.err
    };
    for sizes in ["bs=4k\nsize=4k", "bs=1g\nsize=1g"] {
        let named = ["file", "directory", "nothing", "file/x", "nothing/x"]
            .map(|name| run(format!("{sizes}\nfilename=out/{name}")).replace(&format!("out/{name}`"), "out/NAME`"));
        assert!(
            named.iter().all(|text| *text == named[0] && text.contains("`out/NAME` leads elsewhere")),
            "{named:#?}"
        );
        let in_directory = ["file", "directory", "nothing"]
            .map(|name| run(format!("{sizes}\ndirectory=out/{name}")).replace(&format!("out/{name}/"), "out/NAME/"));
        assert!(in_directory.iter().all(|text| *text == in_directory[0]), "{in_directory:#?}");
        let by_default = ["file", "directory", "nothing"].map(|name| {
            let link = server.sandbox.path("j.0.0");
            symlink(outside.path(name), &link).expect("a link");
            let text = run(sizes.to_owned());
            fs::remove_file(link).expect("removed");
            text
        });
        assert!(by_default.iter().all(|text| *text == by_default[0]), "{by_default:#?}");
    }
}

/// Goal: no name that a client sends begins a line of the server's log, or of a refusal.
#[test]
fn names_with_control_characters_are_refused_without_being_repeated() {
    let server = Server::start(&[]);
    let jobs = |name: &str| Jobs { files_there: vec![name.to_owned()], ..Jobs::default() };
    let ToClient::Refused { text } = answered(&server, jobs("a\nfio: forged")) else { panic!("not refused") };
    assert!(
        text.starts_with(
            "the name of a job file or section, or the value of a variable, has a control character\n\nhint:"
        ),
        "{text}"
    );
    assert!(matches!(answered(&server, jobs("none")), ToClient::Refused { text } if text.contains("`none`")));
}

/// Goal: what clients may use is decided when the server starts, not by a name that another user may replace.
/// Method: a directory that becomes a link to another one, a directory of which a component becomes a link, a directory that is replaced by
/// another directory, and a file that becomes a link; with and without the kernel's help. Relative names still reach the first directory.
#[test]
fn a_permitted_path_that_is_replaced_after_the_start_leads_nowhere() {
    for confinement in [&[][..], &["--no-sandbox"]] {
        let (outside, place) = (Sandbox::new(), Sandbox::new());
        let at = |name: &str| place.path(name);
        fs::create_dir_all(at("scratch/inner")).expect("a directory");
        place.write("file", "0".repeat(4096));
        outside.write("file", "precious".repeat(512));
        let words =
            [format!("--allow-write={}", at("scratch").display()), format!("--allow-write={}", at("file").display())];
        let words: Vec<&str> = words.iter().map(String::as_str).chain(confinement.iter().copied()).collect();
        let server = Server::start_with(&words);
        let here = Sandbox::new();
        let run = |job: String| {
            here.write("j.fio", format!("[j]\nrw=write\nbs=4k\nsize=4k\n{job}\n"));
            fio(&here, &["j.fio", &server.client()])
        };
        let absolute = at("scratch/new").display().to_string();
        run(format!("filename={absolute}")).assert_code(0);
        let before = outside.listing();
        fs::rename(at("scratch"), at("moved")).expect("moved");
        fs::remove_file(at("file")).expect("removed");
        symlink(outside.path("file"), at("file")).expect("a link");
        for is_link in [true, false] {
            match is_link {
                true => symlink(outside.root(), at("scratch")).expect("a link"),
                false => fs::create_dir(at("scratch")).expect("a directory"),
            }
            for path in ["scratch/new", "scratch/inner/new", "scratch/file", "file"] {
                run(format!("filename={}", at(path).display())).assert_code(1);
            }
            match is_link {
                true => fs::remove_file(at("scratch")).expect("removed"),
                false => assert_eq!(fs::read_dir(at("scratch")).expect("a directory").count(), 0),
            }
        }
        assert_eq!(outside.listing(), before);
        assert_eq!(fs::read_to_string(outside.path("file")).expect("content"), "precious".repeat(512));
        for path in ["/proc/self/cwd/new", "/proc/self/fd/3/new"] {
            run(format!("filename={path}")).assert_code(1);
        }
        run("filename=relative".to_owned()).assert_code(0);
        assert!(at("moved/relative").exists(), "the directory that was permitted, under its new name");
    }
}

#[test]
fn a_server_starts_for_no_link_and_no_missing_path() {
    let here = Sandbox::new();
    let address = format!("--server=sock:{}", here.path("s").display());
    fs::create_dir(here.path("real")).expect("a directory");
    fs::create_dir(here.path("real/inner")).expect("a directory");
    symlink("real", here.path("link")).expect("a link");
    for (word, reason) in [
        ("--allow-write=link", "symbolic link"),
        ("--allow-read=link", "symbolic link"),
        ("--allow-write=link/inner", "symbolic link"),
        ("--allow-write=none", "does not exist"),
        ("--allow-read=real/none", "does not exist"),
    ] {
        let ran = fio(&here, &[&address, word]);
        ran.assert_code(1);
        assert!(ran.err.contains(reason), "{word}: {ran:?}");
    }
    assert!(!here.path("s").exists());
}

#[test]
fn a_server_of_the_whole_machine_is_refused() {
    let here = Sandbox::new();
    let address = format!("--server=sock:{}", here.path("s").display());
    for words in [["--allow-write=/"], ["--allow-read=/"], ["--allow-write=/usr/.."]] {
        let ran = fio(&here, &[&[address.as_str()][..], &words].concat());
        ran.assert_code(1);
        assert!(ran.err.contains("its clients could use every file below `/`"), "{ran:?}");
    }
    let ran =
        Ran::of(here.command(&["fio", &address, "--allow-write=."]).current_dir("/").output().expect("it starts"));
    ran.assert_code(1);
    assert!(ran.err.contains("its clients could use every file below `/`"), "{ran:?}");
    assert!(!here.path("s").exists());
}

/// Goal: a client holds neither much memory nor a session for ever.
/// Method: frames that are announced longer than they may be, before anything of them is sent, and a pipe without a writer as a
/// job file.
#[test]
fn long_messages_and_pipes_are_refused() {
    let (server, here) = (Server::start(&[]), Sandbox::new());
    for length in [SHORT_BYTES_MAX + 1, TO_SERVER_BYTES_MAX + 1] {
        let mut stream = server.connect();
        write_magic(&mut stream).expect("it listens");
        stream.write_all(&length.to_be_bytes()).expect("it takes them");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it closes the connection");
        assert!(answer.len() <= 16, "{answer:?}");
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, server.sandbox.path("pipe"), rustix::fs::Mode::RUSR).expect("a pipe");
    let ran = fio(&here, &[&server.client(), "--remote-config=pipe"]);
    ran.assert_code(1);
    assert!(ran.err.contains("it is no regular file"), "{ran:?}");
}
