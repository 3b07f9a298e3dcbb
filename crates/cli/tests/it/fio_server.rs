//! `trueio fio --client` and `--server`: results, documents and files of jobs.
//!
//! All connections are local: sockets of the file system and the loopback address, with ports that the kernel chooses. Tests
//! wait for events with a limit that only a machine that stands still exceeds.

use crate::common::*;
use crate::servers::*;
use serde_json::Value;
use std::fs;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

/// Returns the keys of the document and of its first and last entry, in order, from fio's JSON layout.
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

/// Goal: programs that read the JSON of fio's clients can read ours.
/// Method: the same two jobs with fio's own server and client, and with ours: keys in their order. Keys that fio 3.33 does
/// not have are left out of the comparison.
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

/// Goal: `All clients` is exact.
/// Method: two servers, and the sum of each bucket of json+.
#[test]
fn two_servers_are_one_result_to_the_last_io() {
    let (first, second) = (Server::start(""), Server::at(tempfile::tempdir().expect("a directory"), "127.0.0.1,0", ""));
    let here = Sandbox::new();
    here.write("one.fio", "[global]\nioengine=null\n[one]\nrw=read\nsize=1m\nnumjobs=2\n");
    here.write("two.fio", "[two]\nioengine=null\nrw=randrw\nsize=2m\n");
    let (one, two) = (first.client(), second.client());
    let words = [one.as_str(), "one.fio", &two, "two.fio"];
    let ran = fio(&here, &[&words[..], &[&second.with_token(), "--output-format=json+,terse,normal"]].concat());
    ran.assert_code(0);
    let begin = ran.out.find("\n{\n").expect("JSON after the terse lines") + 1;
    let end = begin + ran.out[begin..].find("\n}\n").expect("its end") + 3;
    let document = json(&ran.out[begin..end]);
    let (sum, each) = stats(&document).split_last().expect("entries");
    assert_eq!(each.len(), 3);
    assert_eq!(sum["jobname"], "All clients");
    let port: u64 = second.address.rsplit_once(',').expect("a port").1.parse().expect("a number");
    assert_eq!((each[2]["hostname"].as_str(), each[2]["port"].as_u64()), (Some("127.0.0.1"), Some(port)));
    // As in fio, of the servers whose jobs have any.
    assert_eq!(document["global options"].as_array().map(Vec::len), Some(1));
    assert_eq!(document["global options"][0]["hostname"], first.hostname());
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
    // Terse lines come before it, normal text after it.
    let terse: Vec<&str> = ran.out[..begin].lines().map(|line| line.split(';').nth(2).expect("a name")).collect();
    assert_eq!(terse, ["one", "one", "two", "All clients"]);
    assert!(ran.out[end..].contains("\nAll clients: (groupid=0, jobs=3): err= 0"), "{ran:?}");
    assert!(ran.out[end..].contains(", at 127.0.0.1\n"), "{ran:?}");
    // Normal text alone begins with the jobs, as their servers planned them.
    let ran = fio(&here, &[&first.client(), "one.fio"]);
    let machine = tool("uname", &["-n"]).expect("a name");
    assert!(ran.out.starts_with(&format!("<{machine}> one: (g=0): rw=read, bs=(R) ")), "{ran:?}");
}

/// Goal: servers of one client do not write equal content, and the first writes what it writes alone.
#[test]
fn each_server_of_a_client_has_a_random_stream_of_its_own() {
    let here = Sandbox::new();
    here.write("w.fio", "[w]\nioengine=psync\nrw=write\nbs=4k\nsize=64k\n");
    let servers: [Server; 3] = std::array::from_fn(|_| Server::start(""));
    let written = |servers: &[&Server]| -> Vec<Vec<u8>> {
        let clients: Vec<String> = servers.iter().map(|server| server.client()).collect();
        let words: Vec<&str> = clients.iter().flat_map(|client| [client.as_str(), "w.fio"]).collect();
        fio(&here, &words).assert_code(0);
        let file_of = |server: &&Server| {
            let found = fs::read_dir(server.sandbox.root()).expect("a folder").flatten();
            let file = found.map(|entry| entry.path()).find(|path| path.to_string_lossy().ends_with("w.0.0"));
            fs::read(file.expect("the job's file")).expect("its content")
        };
        servers.iter().map(file_of).collect()
    };
    let both = written(&[&servers[0], &servers[1]]);
    let equal = both[0].chunks(4096).filter(|block| both[1].chunks(4096).any(|other| other == *block)).count();
    assert_eq!((both[0].len(), equal), (64 << 10, 0));
    assert!(written(&[&servers[2]])[0] == both[0], "a server that is alone is the first");
}

/// Goal: two clients of one server have separate files, with fio's names.
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
    fio(&here, &[&server.with_token(), "--client=hosts", "u.fio"]).assert_code(0);
    assert!(server.sandbox.path("d/127.0.0.1.u.0.0").exists() && server.sandbox.path("d/v.0.0").exists());
}

#[test]
fn status_intervals_work_with_servers() {
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

/// Goal: an interim document has the results of all running servers.
/// Method: two servers, one of which begins to measure seconds after the other.
#[test]
fn a_status_document_has_the_results_of_all_running_servers() {
    let (early, late) = (Server::start(""), Server::start("--allow-exec"));
    let here = Sandbox::new();
    here.write("early.fio", ENDLESS);
    // It ends by itself, before the other one.
    here.write(
        "late.fio",
        "[late]\nioengine=null\nrw=read\nsize=1g\nrate_iops=500\nruntime=4\ntime_based\nexec_prerun=sleep 3\n",
    );
    let words = [&early.client(), "early.fio", &late.client(), "late.fio", "--allow-exec", "--status-interval=1"];
    let client = here.command(&[&["fio"], &words[..], &["--output-format=json", "--output=o.json"]].concat()).spawn();
    let client = client.expect("the client starts");
    let documents = || -> Vec<Value> {
        let text = fs::read_to_string(here.path("o.json")).unwrap_or_default();
        // The last one may be incomplete.
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
