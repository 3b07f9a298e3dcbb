//! Jobs that write what they fetch, from the command line to the record.

use crate::common::*;
use std::io::{Read, Write};
use trueio_model::{CheckOutcome, OpKind, Outcome};
use trueio_run::BodyServer;

#[test]
fn a_download_is_written_verified_and_separated_from_its_source() {
    let sandbox = Sandbox::new();
    let length = 4 * 1024 * 1024 + 1234;
    let server = BodyServer::start(11, length).expect("a server");
    let url = server.url();
    for (engine, more) in [("sync", ["--direct", "off"]), ("io_uring", ["--iodepth", "8"])] {
        let base = ["run", "--rw", "write", "--bs", "32k", "--ioengine", engine, "--verify", "source"];
        let all = [&base[..], &["--source", &url, "--end_fsync"], &more].concat();
        let (ran, record) = sandbox.record(&all);
        if engine == "io_uring" && ran.err.contains("does not work here") {
            eprintln!("skipped: {}", ran.err);
            continue;
        }
        assert_eq!(record.outcome, Outcome::Complete, "{ran:?}");
        let job = only_job(&record);
        let writes = job.ops.iter().find(|op| op.op == OpKind::Write).expect("writes");
        assert_eq!((writes.byte_count, job.verify_failure_count), (length, 0), "{engine}");
        assert_eq!(job.verified_block_count, length.div_ceil(32 << 10), "{engine}");
        let waited_ns = job.source_wait_ns.expect("a source was waited for");
        assert!(waited_ns > 0 && waited_ns < job.elapsed_ns, "{waited_ns} of {}", job.elapsed_ns);
        let check = record.phases[0].checks.iter().find(|check| check.name == "source").expect("the check");
        let is_slow = waited_ns as f64 > job.elapsed_ns as f64 * 0.1;
        assert_eq!(check.outcome == CheckOutcome::Suspect, is_slow, "{check:?}");
    }
    assert_eq!(sandbox.listing(), Vec::<String>::new(), "nothing is left");
}

#[test]
fn a_missing_source_is_refused_before_anything_is_touched() {
    let sandbox = Sandbox::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let url = format!("http://127.0.0.1:{port}/nothing");
    let ran = sandbox.run(&["run", "--rw", "write", "--source", &url]);
    ran.assert_refused(&["cannot be reached", "hint: check the address"]);
    assert_eq!(sandbox.listing(), Vec::<String>::new());
}

/// Goal: a file that differs from its source fails the run, with the offset and both contents.
/// Method: a server that sends another byte at 5000 on the second request.
#[test]
fn a_file_that_differs_from_its_source_fails_the_run_with_the_offset() {
    let sandbox = Sandbox::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("its number"));
    let server = std::thread::spawn(move || {
        for time in 0..2 {
            let (mut stream, _) = listener.accept().expect("a client");
            let _ = stream.read(&mut [0; 1024]);
            let mut body = vec![7u8; 64 << 10];
            body[5000] += time;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)).expect("it is sent");
        }
    });
    let arguments = ["run", "--rw", "write", "--bs", "4k", "--size", "64k", "--source", &url, "--verify", "source"];
    let (ran, record) = sandbox.record(&arguments);
    server.join().expect("the server");
    ran.assert_code(1);
    let job = only_job(&record);
    assert_eq!((job.verified_block_count, job.verify_failure_count), (16, 1));
    let failure = &job.verify_failures[0];
    assert_eq!(failure.offset, 5000);
    assert!(failure.expected.starts_with("[08, 07,") && failure.found.starts_with("[07, 07,"), "{failure:?}");
    assert!(ran.out_joined().contains("offset 5000 of"), "{ran:?}");
}
