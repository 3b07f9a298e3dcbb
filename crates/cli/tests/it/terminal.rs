//! Text of others on the terminal: names of files, jobs and disks, sentences of servers, and words of the command line.

use crate::common::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use trueio_fio::wire::frame::TO_CLIENT_BYTES_MAX;
use trueio_fio::wire::{ToClient, read_magic, send, write_magic};

/// Sets a title, clears the screen, moves the cursor, reorders the line: C0 and C1 controls and marks of bidirectional text.
const HOSTILE: &str = "x\u{1b}]0;title\u{7}\u{1b}[2J\u{8}\u{9b}31m\u{7f}\u{202e}\u{2066}\u{200f}\u{2028}y";

#[track_caller]
fn assert_harmless(ran: &Ran, what: &str) {
    for text in [&ran.out, &ran.err] {
        let bad = |c: char| {
            let marks = ['\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{202e}', '\u{2066}'];
            c.is_control() && !matches!(c, '\n' | '\t') || marks.contains(&c)
        };
        assert!(!text.contains(bad), "{what}: {ran:?}");
    }
}

/// Goal: a name that a stranger chose, or a word of the command line, controls no terminal.
/// Method: such a name as a file, job, description, section, option and value, in both languages, in each command that prints
/// it. The file name reaches the output: its letters are there.
#[test]
fn no_name_of_others_reaches_the_terminal_raw() {
    let sandbox = Sandbox::new();
    // TOML writes a character as `\u001b`.
    let name: String = HOSTILE.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let toml = format!("[job.a]\nsize = \"64k\"\nrw = \"read\"\nfilename = \"{name}\"\n");
    sandbox.write("file.toml", &toml);
    sandbox.write(HOSTILE, vec![0; 64 << 10]);
    // fio's files refuse control characters, and not the marks.
    let marks = "x\u{202e}\u{2066}\u{200f}y";
    sandbox.write(marks, vec![0; 64 << 10]);
    sandbox.write("file.fio", format!("[{marks}]\nrw=read\nsize=64k\ndescription={marks}\nfilename={marks}\n"));
    sandbox.write("option.fio", format!("[a]\n{HOSTILE}=1\n"));
    sandbox.write("value.fio", format!("[a]\nioengine={HOSTILE}\n"));
    let printed = [
        &["explain", "file.toml"][..],
        &["run", "file.toml"],
        &["run", "file.toml", "--json", "-"],
        &["explain", "file.toml", "--json"],
        &["device", HOSTILE],
        &["history", "list"],
        &["history", "export", "-", "--format", "csv"],
        &["history", "export", "-", "--format", "jsonl"],
        &["fio", "file.fio"],
        &["fio", "file.fio", "--output-format=json"],
        &["fio", "file.fio", "--output-format=terse"],
        &["fio", "file.fio", "--debug=all"],
        &["fio", "file.fio", "--showcmd"],
        &["fio", "file.fio", "--parse-only", "--debug=parse"],
    ];
    for words in printed {
        let ran = sandbox.run(words);
        ran.assert_code(0);
        assert_harmless(&ran, &words.join(" "));
    }
    assert!(sandbox.run(&["explain", "file.toml"]).out.contains("31m"), "the name is not printed");
    let refused = [
        &["fio", "option.fio"][..],
        &["fio", "value.fio"],
        &["fio", HOSTILE],
        &["fio", "--enghelp", HOSTILE],
        &["run", "--json", HOSTILE, "file.toml", HOSTILE],
        &["run", "--bs", HOSTILE],
        &["run", "--accept", HOSTILE],
        &["report", HOSTILE],
        &["history", "show", HOSTILE],
        &["history", "import", HOSTILE],
        &["baseline", HOSTILE],
        &["study", HOSTILE],
        &["compare", HOSTILE, HOSTILE],
        &["usb", HOSTILE],
        &["completions", HOSTILE],
        &[HOSTILE],
    ];
    for words in refused {
        let ran = sandbox.run(words);
        assert!(!ran.err.is_empty(), "{words:?}: {ran:?}");
        assert_harmless(&ran, &words.join(" "));
    }
    let page = sandbox.aside(&format!("{}.html", HOSTILE.replace('/', "")));
    let ran = sandbox.run(&["run", "file.toml", "--no-history", "--html", page.to_str().expect("UTF-8")]);
    ran.assert_code(0);
    assert_harmless(&ran, "the name of a page");
}

/// Goal: neither does a sentence of a server. Method: a server that refuses its client with such a sentence.
#[test]
fn no_sentence_of_a_server_reaches_the_terminal_raw() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        write_magic(&mut stream).expect("it listens");
        read_magic(&mut stream).expect("its magic");
        let text = format!("error: {HOSTILE}\n");
        send(&mut stream, &ToClient::Refused { text }, TO_CLIENT_BYTES_MAX).expect("it listens");
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
        let _ = stream.flush();
    });
    let sandbox = Sandbox::new();
    sandbox.write("j.fio", "[j]\nioengine=null\nsize=64k\n");
    sandbox.write("token", "0123456789abcdef\n");
    std::fs::set_permissions(sandbox.path("token"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("ours");
    let client = format!("--client={},{}", address.ip(), address.port());
    let ran = sandbox.run(&["fio", &client, "--token=token", "j.fio"]);
    server.join().expect("it ends");
    ran.assert_code(1);
    assert!(ran.err.contains("title"), "the sentence is not printed: {ran:?}");
    assert_harmless(&ran, "a server's sentence");
}
