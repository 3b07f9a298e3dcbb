//! `trueio powercut witness`, `arm` and `verify`: a machine that ends within a round, and a witness under attack. Everything is on the
//! loopback address; a kill takes the place of the cut, so nothing is lost unless the test damages it.

use crate::common::*;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::time::Duration;
use trueio_model::{Document, PowercutRecord, PowercutVerdict, PowercutWay};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const MAGIC: &[u8; 16] = b"trueio-powercut\n";

/// A witness, and a file to be written.
struct Stage {
    sandbox: Sandbox,
    address: String,
    token: String,
    witness: Running,
}

impl Stage {
    /// `None`: this machine has no direct I/O here.
    fn new(more: &[&str]) -> Option<Self> {
        let sandbox = Sandbox::new();
        if has_no_disk(&sandbox) {
            return None;
        }
        sandbox.data_file("data", 16 << 20);
        let token = sandbox.write("token", TOKEN);
        fs::set_permissions(&token, PermissionsExt::from_mode(0o600)).expect("it is ours");
        let address = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a port");
        let (address, token) = (address.to_string(), token.to_str().expect("UTF-8").to_owned());
        let arguments = [&["powercut", "witness", "--listen", &address, "--token-file", &token][..], more].concat();
        let witness = Running::start(&mut sandbox.command(&arguments));
        witness.wait_until("the witness listens", || TcpStream::connect(&address).is_ok());
        Some(Self { sandbox, address, token, witness })
    }

    fn command(&self, name: &str, more: &[&str]) -> std::process::Command {
        let own = ["powercut", name, "data", "--witness", &self.address, "--token-file", &self.token];
        self.sandbox.command(&[&own[..], more].concat())
    }

    fn arm(&self) -> Running {
        let more = ["--overwrite", "data", "--size", "1m", "--load", "1s", "--json", "armed.json"];
        let _ = fs::remove_file(self.sandbox.path("armed.json"));
        Running::start(&mut self.command("arm", &more))
    }

    fn verify(&self) -> Ran {
        Ran::of(self.command("verify", &[]).output().expect("it runs"))
    }

    /// Waits until a region of each method has been written once.
    fn wait_until_written(&self, armed: &Running) {
        let path = self.sandbox.path("data");
        let before = fs::read(&path).expect("the file");
        armed.wait_until("the regions are written", || {
            let now = fs::read(&path).expect("the file");
            let changed = before.chunks(4096).zip(now.chunks(4096)).filter(|(one, other)| one != other).count();
            changed > 1000
        });
    }
}

#[test]
fn what_the_witness_knows_is_verified_after_the_machine_ended() {
    let Some(stage) = Stage::new(&[]) else { return };
    for is_damaged in [false, true] {
        let armed = stage.arm();
        stage.wait_until_written(&armed);
        let text = fs::read_to_string(stage.sandbox.path("armed.json")).expect("the round");
        let round: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(round["target"], "data", "{text}");
        assert!(round["round"].as_u64().is_some_and(|round| round > 0), "{text}");
        let second = Ran::of(stage.command("arm", &["--overwrite", "data"]).output().expect("it runs"));
        second.assert_refused(&["another machine is armed (round"]);
        stage.verify().assert_refused(&["is still being written"]);
        armed.signal(libc::SIGKILL);
        armed.wait();
        if is_damaged {
            let file = File::options().write(true).open(stage.sandbox.path("data")).expect("the file");
            file.write_all_at(&vec![0; 15 << 20], 1 << 20).expect("it is damaged");
        } else {
            let again = Ran::of(stage.command("arm", &["--overwrite", "data"]).output().expect("it runs"));
            again.assert_refused(&["round 1 of `data` was not verified", "--discard"]);
        }
        let ran = stage.verify();
        ran.assert_code(1);
        let word = if is_damaged { "Lost: " } else { "Cannot tell: no acknowledged write was lost in 1 cut" };
        assert!(ran.out.starts_with(word), "{ran:?}");
        assert_eq!(ran.out.contains(" held zeros"), is_damaged, "{ran:?}");
    }
    stage.verify().assert_refused(&["no round was armed"]);
    // Each verification keeps a record of all rounds so far.
    let listed = stage.sandbox.run(&["history", "--kind", "powercut", "--json", "-"]);
    let entries: serde_json::Value = serde_json::from_str(&listed.out).expect("JSON");
    let ids: Vec<&str> = entries.as_array().expect("a list").iter().filter_map(|entry| entry["id"].as_str()).collect();
    let records = ids.iter().map(|id| stage.sandbox.run(&["report", id, "--json", "-"]).out);
    let mut found: Vec<(u64, PowercutVerdict, PowercutWay)> = records
        .map(|text| PowercutRecord::from_json(&text).expect("a record"))
        .map(|record| (record.cuts, record.verdict, record.way))
        .collect();
    found.sort_by_key(|(cuts, ..)| *cuts);
    let way = PowercutWay::Witness;
    assert_eq!(found, [(1, PowercutVerdict::CannotTell, way), (2, PowercutVerdict::Lost, way)]);
    stage.witness.signal(libc::SIGTERM);
    let (ran, _) = stage.witness.wait();
    ran.assert_code(0);
    assert!(ran.out.contains("after 1 cuts\nCannot tell: ") && ran.out.contains("after 2 cuts\nLost: "), "{ran:?}");
}

/// Goal: a script learns address and token from `--json`, as the lines on the terminal say them.
#[test]
fn a_witness_writes_its_address_as_json() {
    let sandbox = Sandbox::new();
    let arguments = ["powercut", "witness", "--listen", "127.0.0.1:0", "--json", "witness.json"];
    let witness = Running::start(&mut sandbox.command(&arguments));
    let read = || serde_json::from_slice(&fs::read(sandbox.path("witness.json")).ok()?).ok();
    witness.wait_until("the document is there", || read().is_some());
    let document: serde_json::Value = read().expect("a document");
    let address = document["address"].as_str().expect("an address");
    assert!(TcpStream::connect(address).is_ok(), "{document:#}");
    witness.signal(libc::SIGTERM);
    let (ran, _) = witness.wait();
    ran.assert_code(0);
    assert!(ran.out.contains(address) || ran.err.contains(address), "{document:#}: {ran:?}");
}

/// Goal: strangers, wrong tokens and a flood of connections get no answer, and do not end the round of the machine.
#[test]
fn strangers_get_no_answer_and_do_not_disturb_a_round() {
    let Some(stage) = Stage::new(&[]) else { return };
    let armed = stage.arm();
    stage.wait_until_written(&armed);
    let idle: Vec<TcpStream> = (0..200).filter_map(|_| TcpStream::connect(&stage.address).ok()).collect();
    drop(idle);
    let wrong = TOKEN.replace('f', "e");
    let frame = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat();
    let hello = |token: &[u8]| [&MAGIC[..], &frame(token)].concat();
    let attacks: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &hello(wrong.as_bytes()),
        &hello(&TOKEN.as_bytes()[..31]),
        &[&MAGIC[..], &u32::MAX.to_be_bytes()].concat(),
        b"",
        MAGIC,
    ];
    for attack in attacks {
        let mut stream = TcpStream::connect(&stage.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
        stream.write_all(attack).expect("it is sent");
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{attack:?}: {answer:?}");
    }
    // With the token: a message that is too long, one that is none, and numbers of the other machine's round.
    let numbers = br#"{"acknowledged":{"round":1,"through":[1,1,1,1,1,1]}}"#;
    for attack in [u32::MAX.to_be_bytes().to_vec(), frame(b"{}"), frame(numbers), frame(br#"{"disarm":{"round":1}}"#)] {
        let mut stream = TcpStream::connect(&stage.address).expect("a connection");
        stream.write_all(&[hello(TOKEN.as_bytes()), attack].concat()).expect("it is sent");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert_eq!(answer, MAGIC, "nothing follows the magic");
    }
    armed.wait_until("the machine goes on", || true);
    armed.signal(libc::SIGKILL);
    armed.wait();
    let ran = stage.verify();
    assert!(ran.out.starts_with("Cannot tell: no acknowledged write was lost in 1 cut"), "{ran:?}");
}

/// Goal: a machine with the token fills neither the witness's log with a message nor its terminal with control characters.
#[test]
fn what_a_machine_sends_is_repeated_in_part() {
    let Some(stage) = Stage::new(&[]) else { return };
    let text = format!("{{\"{}\":1}}", "\\u001b\\n".repeat(5_000));
    let hello = [&MAGIC[..], &(TOKEN.len() as u32).to_be_bytes(), TOKEN.as_bytes()].concat();
    let mut stream = TcpStream::connect(&stage.address).expect("a connection");
    let message = [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    stream.write_all(&[hello, message].concat()).expect("it is sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(answer, MAGIC, "nothing follows the magic");
    stage.witness.signal(libc::SIGINT);
    let (ran, _) = stage.witness.wait();
    let line = ran.err.lines().find(|line| line.contains("is closed:")).unwrap_or_else(|| panic!("{ran:?}"));
    assert!(line.chars().count() < 300 && !line.contains('\u{1b}') && ran.err.lines().count() < 5, "{ran:?}");
}

/// Goal: without its witness a machine stops to write and says so.
#[test]
fn a_witness_that_stalls_or_dies_stops_the_load() {
    for signal in [libc::SIGSTOP, libc::SIGKILL] {
        let Some(stage) = Stage::new(&[]) else { return };
        let armed = stage.arm();
        stage.wait_until_written(&armed);
        stage.witness.signal(signal);
        let (ran, _) = armed.wait();
        ran.assert_code(1);
        assert!(
            ran.err.contains("the load was stopped: what the witness does not know is not acknowledged"),
            "{ran:?}"
        );
        assert!(signal == libc::SIGKILL || ran.err.contains("no message arrived in time"), "{ran:?}");
    }
}

/// Goal: the witness cuts the power itself, once, after 20 s of load.
#[test]
fn the_witness_runs_the_command_that_cuts() {
    let Some(stage) = Stage::new(&["--cut-with", "echo cut >> cuts; kill -9 $(cat pid)"]) else { return };
    let armed = stage.arm();
    fs::write(stage.sandbox.path("pid"), armed.id().to_string()).expect("a file");
    let (_, signal) = armed.wait();
    assert_eq!(signal, Some(libc::SIGKILL));
    let ran = stage.verify();
    assert!(ran.out.starts_with("Cannot tell: no acknowledged write was lost in 1 cut"), "{ran:?}");
    assert_eq!(fs::read_to_string(stage.sandbox.path("cuts")).expect("it was cut"), "cut\n");
}

#[test]
fn off_the_loopback_address_a_witness_needs_a_token() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["powercut", "witness", "--listen", "0.0.0.0:0"]);
    ran.assert_refused(&["machines on other hosts need a token", "--token-file FILE"]);
    sandbox.data_file("data", 16 << 20);
    let arm = ["powercut", "arm", "data", "--overwrite", "data", "--witness", "192.0.2.1:7470"];
    sandbox.run(&arm).assert_refused(&["no token for the witness at 192.0.2.1:7470 is known"]);
}
