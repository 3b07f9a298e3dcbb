//! `trueio fio --client` and `--server`: permissions of a client's jobs at a server, and of a server's logs at a client.
//!
//! All connections are local: sockets of the file system and the loopback address, with ports that the kernel chooses. Tests
//! wait for events with a limit that only a machine that stands still exceeds.

use crate::common::*;
use crate::servers::*;
use std::fs;

/// Goal: if a server refuses, no server starts, and the reason is printed with the server's name.
#[test]
fn a_refusal_of_one_server_is_reported_and_no_server_starts() {
    let (strict, free) = (Server::start("--readonly"), Server::start(""));
    let here = Sandbox::new();
    here.write("w.fio", "[w]\nrw=write\nsize=64k\n");
    let ran = fio(&here, &["w.fio", &strict.client(), &free.client()]);
    ran.assert_code(1);
    assert_eq!(ran.out, "");
    assert!(ran.err.starts_with(&format!("error: {}: ", strict.address)), "{ran:?}");
    assert!(ran.err.contains("readonly") && !ran.err.contains(&free.address), "{ran:?}");
    assert_eq!((strict.sandbox.listing(), free.sandbox.listing()), (Vec::new(), Vec::new()));
    // `--readonly` of the client is sufficient.
    let ran = fio(&here, &["w.fio", &free.client(), "--readonly"]);
    ran.assert_code(1);
    assert!(ran.err.contains("readonly"), "{ran:?}");
    // An error in a job file is reported before any server is contacted.
    here.write("bad.fio", "[x]\nrw=reed\n");
    let ran = fio(&here, &["bad.fio", "--client=sock:/nowhere/at/all"]);
    ran.assert_code(1);
    assert!(ran.err.contains("bad.fio:2") && !ran.err.contains("nowhere"), "{ran:?}");
    assert_eq!(free.sandbox.listing(), Vec::<String>::new());
    fio(&here, &["w.fio", &free.client()]).assert_code(0);
    assert_eq!(free.sandbox.listing().len(), 1, "the file of the job, at the server");
}

/// Goal: commands and overwriting signatures must be allowed on the server's own command line.
#[test]
fn a_client_cannot_permit_commands_or_overwriting_signatures() {
    let (strict, free) = (Server::start(""), Server::start("--allow-exec"));
    let here = Sandbox::new();
    here.write("x.fio", "[x]\nioengine=null\nrw=read\nsize=64k\nexec_prerun=touch ran\n");
    let ran = fio(&here, &["x.fio", &strict.client(), "--allow-exec"]);
    ran.assert_code(1);
    assert!(ran.err.contains("the server was started without `--allow-exec`"), "{ran:?}");
    // The server's option alone is not sufficient: the client must set it, too.
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
    assert!(ran.err.contains("clients may read only below"), "{ran:?}");
    assert_eq!(device.content(), blank);
    let allowed = Server::start(&format!("--allow-write={}", device.device));
    fio(&here, &["d.fio", &allowed.client()]).assert_code(0);
    assert_ne!(device.content(), blank);
    device.make_ext4();
    let before = device.content();
    for (file, server, sentence) in [
        ("d.fio", &strict, "clients may read only below"),
        ("e.fio", &strict, "permits nothing"),
        ("d.fio", &allowed, "has ext4"),
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

/// Goal: a client's job neither reads nor replaces files of the server other than its targets, and errors do not reveal
/// their content.
#[test]
fn a_client_cannot_name_io_logs_of_the_server() {
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

/// Goal: a server with `--readonly` creates nothing, also no dumps of blocks that differ.
#[test]
fn a_readonly_server_writes_no_verify_dump() {
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

/// Goal: a server refuses every option that names one of its files.
#[test]
fn options_that_name_files_of_the_server_are_refused() {
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
        assert!(ran.err.contains("cannot name a file as a pattern"), "{ran:?}");
    }
    assert!(!server.sandbox.path("data").exists());
}

/// Goal: a client cannot write everything that the server's user may.
/// Method: paths outside of its working directory, by name, through a link, and of new files.
#[test]
fn jobs_write_below_the_servers_directory_and_to_allowed_paths() {
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
        assert!(ran.err.contains("clients may write only below"), "{words}: {ran:?}");
    }
    assert_eq!(listing(server.sandbox.root()), before);
    assert!(!here.path("new").exists());
    assert_eq!(hash(&fs::read(&outside).expect("content")), content);
    // Refused, too: a directory that would be created outside, even if the file itself is allowed, and one through a link.
    let there = format!("{root}/d/f");
    std::os::unix::fs::symlink(here.root(), server.sandbox.path("way")).expect("a link");
    for words in [
        format!("rw=write\nfilename={there}"),
        "rw=write\nfilename=way/d/f".to_owned(),
        "rw=read\nfilename=../trueio-d/f".to_owned(),
    ] {
        job(&words);
        let ran = fio(&here, &["j.fio", &server.client()]);
        ran.assert_code(1);
        assert!(ran.err.contains("clients may write only below"), "{words}: {ran:?}");
        assert!(!here.path("d").exists() && !server.sandbox.path("../trueio-d").exists(), "{words}");
    }
    job("rw=write\nfilename=new/e/f");
    fio(&here, &["j.fio", &server.client()]).assert_code(0);
    assert!(server.sandbox.path("new/e/f").is_file());
    // Files below it may be created and written again.
    for words in ["rw=write\ndirectory=sub", "rw=write\ndirectory=sub"] {
        job(words);
        fio(&here, &["j.fio", &server.client()]).assert_code(0);
    }
    job(&format!("rw=write\nfilename={old}"));
    fio(&here, &["j.fio", &allowed.client()]).assert_code(0);
    assert_ne!(hash(&fs::read(&outside).expect("content")), content);
}

/// Goal: a server's clients use the directories that its command line names, and not the one that it was started in.
/// Method: a server with a secret in its working directory, and jobs that name it; a server without permissions; honest jobs,
/// whose relative names begin at the first directory that they may write, else read.
#[test]
fn the_working_directory_of_a_server_is_no_permission() {
    let here = Sandbox::new();
    let start = |words: &str| {
        let (sandbox, place) = (Sandbox::new(), tempfile::tempdir().expect("a directory"));
        for name in ["pool", "data"] {
            fs::create_dir(sandbox.path(name)).expect("a directory");
        }
        sandbox.data_file("secret", 64 << 10);
        sandbox.data_file("pool/source", 64 << 10);
        let address = format!("sock:{}", place.path().join("s").display());
        Server::of(sandbox, place, &address, words)
    };
    // Both spellings of the options.
    let (nothing, both, readable, readonly) = (
        start(""),
        start("--allow-read=pool --allow-write data"),
        start("--allow-read pool"),
        start("--readonly --allow-read=pool --allow-write=data"),
    );
    let run = |server: &Server, words: &str| {
        here.write("j.fio", format!("[j]\nsize=64k\nunlink=0\n{words}\n"));
        fio(&here, &["j.fio", &server.client()])
    };
    for (server, words) in [
        (&nothing, "rw=read\nfilename=secret".to_owned()),
        (&nothing, "rw=write\nfilename=new".to_owned()),
        (&nothing, format!("rw=read\nfilename={}", nothing.sandbox.path("secret").display())),
        (&both, "rw=read\nfilename=../secret".to_owned()),
        (&both, format!("rw=read\nfilename={}", both.sandbox.path("secret").display())),
        (&both, "rw=write\nfilename=../secret".to_owned()),
        (&both, "rw=write\nfilename=../new".to_owned()),
        (&both, "rw=write\nfilename=../pool/new".to_owned()),
        (&readable, "rw=write\nfilename=new".to_owned()),
        (&readable, "rw=read\nfilename=../secret".to_owned()),
        (&readonly, "rw=read\nfilename=../secret".to_owned()),
    ] {
        let before = server.sandbox.listing();
        let ran = run(server, &words);
        ran.assert_code(1);
        assert!(ran.err.contains("clients may "), "{words}: {ran:?}");
        assert_eq!(server.sandbox.listing(), before, "{words}");
    }
    let ran = fio(&here, &[&both.client(), "--remote-config=../secret"]);
    ran.assert_code(1);
    assert!(ran.err.contains("clients may read only below"), "{ran:?}");
    run(&nothing, "rw=read\nioengine=null").assert_code(0);
    run(&both, "rw=write\nfilename=new").assert_code(0);
    assert!(both.sandbox.path("data/new").is_file() && !both.sandbox.path("new").exists());
    run(&both, "rw=read\nfilename=../pool/source").assert_code(0);
    run(&readable, "rw=read\nfilename=source").assert_code(0);
    run(&readonly, "rw=read\nfilename=../pool/source").assert_code(0);
    both.sandbox.write("data/there.fio", "[there]\nioengine=null\nrw=read\nsize=64k\n");
    fio(&here, &[&both.client(), "--remote-config=there.fio"]).assert_code(0);
}

/// Starts a server that sends these logs (prefix, suffix) and closes the connection. It returns the client's own greeting, so
/// the versions are equal.
fn server_that_sends(place: &std::path::Path, logs: Vec<(String, String)>) -> (String, std::thread::JoinHandle<()>) {
    use trueio_fio::wire::frame::{TO_CLIENT_BYTES_MAX, TO_SERVER_BYTES_MAX};
    use trueio_fio::wire::{LogPart, Planned, ToClient, ToServer, read_magic, receive, send, write_magic};
    let path = place.join("bad");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    let serve = move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let next = |stream: &mut _| receive::<ToServer>(stream, TO_SERVER_BYTES_MAX).expect("a message");
        read_magic(&mut stream).and_then(|()| write_magic(&mut stream)).expect("the beginning");
        let ToServer::Hello(hello) = next(&mut stream) else { panic!("no greeting") };
        let mut say = |message: ToClient| send(&mut stream, &message, TO_CLIENT_BYTES_MAX);
        say(ToClient::Hello(hello)).expect("sent");
        drop(next(&mut stream));
        let mut say = |message: ToClient| send(&mut stream, &message, TO_CLIENT_BYTES_MAX);
        say(ToClient::Planned(Planned { lines: Vec::new() })).expect("sent");
        drop(next(&mut stream));
        for (prefix, suffix) in logs {
            let part = LogPart { prefix, suffix, text: "0, 1, 0, 4096, 0\n\x1b[31m\u{202e}\n".to_owned() };
            let _ = send(&mut stream, &ToClient::Log(part), TO_CLIENT_BYTES_MAX);
        }
    };
    (format!("sock:{}", path.display()), std::thread::spawn(serve))
}

/// Goal: a client accepts only logs that its own jobs can have, and none replaces a file that it reads. Logs of jobs that are
/// stored at the server are in the client's directory, and are not written through links.
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
        thread.join().expect("it sent everything");
        ran.assert_code(1);
        (server, ran)
    };
    let nothing = |_: &str| {};
    let (server, ran) = try_logs(&["j.fio"], &[("mine", "_bw.1.log"), ("sub/mine", "_clat.1.log")], &nothing);
    assert!(!ran.err.contains("no job asked for"), "{ran:?}");
    for log in ["mine_bw.1.log", "sub/mine_clat.1.log"] {
        let text = fs::read_to_string(here.path(&name(&server, log))).expect(log);
        assert_eq!(text, "0, 1, 0, 4096, 0\n\u{fffd}[31m\u{fffd}\n", "a log is read in a terminal, too");
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
    // Jobs that are stored at the server: any plain name, but no existing file, and no link.
    let precious = here.data_file("precious", 4096);
    let kept = fs::read(&precious).expect("content");
    let link = |server: &str| {
        std::os::unix::fs::symlink("precious", here.path(&name(server, "l_bw.1.log"))).expect("a link");
    };
    let (server, ran) = try_logs(&["--remote-config=there.fio"], &[("n", "_bw.1.log"), ("l", "_bw.1.log")], &link);
    assert!(here.path(&name(&server, "n_bw.1.log")).exists() && ran.err.contains("symbolic link"), "{ran:?}");
    assert_eq!(fs::read(&precious).expect("content"), kept);
    // Known names are checked before any server is contacted.
    let place = tempfile::tempdir().expect("a directory");
    let server = format!("sock:{}", place.path().join("nobody").display());
    let output = format!("--output={}", name(&server, "mine_bw.1.log"));
    let ran = fio(&here, &["j.fio", &format!("--client={server}"), &output]);
    ran.assert_code(1);
    assert!(ran.err.contains("rule: output_replaces"), "{ran:?}");
    // Files that the client reads are not replaced: job files, includes, lists of servers.
    here.write("more.inc", "bs=4k\n");
    here.write("k.fio", "[j]\nsize=64k\ninclude more.inc\n");
    here.write("hosts", format!("{server}\n"));
    for output in ["k.fio", "./more.inc", "hosts"] {
        let ran = fio(&here, &["k.fio", "--client=hosts", &format!("--output={output}")]);
        ran.assert_code(1);
        assert!(ran.err.contains("rule: output_replaces"), "{output}: {ran:?}");
    }
}

#[test]
fn job_files_at_the_server_run_and_the_content_of_others_is_not_revealed() {
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
    assert!(!ran.err.contains("password") && server.error_text().contains("password"), "{ran:?}");
    let ran = fio(&here, &[&server.client(), "--remote-config=nothing"]);
    ran.assert_code(1);
    assert!(ran.err.contains("`nothing` at the server cannot be read"), "{ran:?}");
    // Includes of the client's job files are read at the client.
    here.write("inc.fio", "[a]\nioengine=null\nrw=read\ninclude part.inc\n");
    let ran = fio(&here, &[&server.client(), "inc.fio", "--output-format=json"]);
    assert!(ran.out.contains("`part.inc` is not included"), "{ran:?}");
    here.write("part.inc", "size=${SIZE_OF_IT}\n");
    let client = server.client();
    let output = here.command(&["fio", &client, "inc.fio", "--output-format=json"]).env("SIZE_OF_IT", "64k").output();
    let ran = Ran::of(output.expect("it starts"));
    ran.assert_code(0);
    assert_eq!(stats(&json(&ran.out))[0]["read"]["io_bytes"], 64 << 10);
}
