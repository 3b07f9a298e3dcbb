//! Recorded lines of four servers, and a server of the protocol for whole conversations.

use super::*;
use std::io::{BufRead, BufReader};
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Answers of Hydra 4.0.2, Hydra 5.0.2, Intel MPI 2021.16 and Slurm 22.05, as recorded.
const RECORDED: &[(&str, &str, Option<&str>)] = &[
    ("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0", "rc", Some("0")),
    ("cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2", "rc", Some("0")),
    ("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024", "vallen_max", Some("1024")),
    ("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=4096", "vallen_max", Some("4096")),
    ("cmd=my_kvsname kvsname=kvs_17476_0_1862060620_host", "kvsname", Some("kvs_17476_0_1862060620_host")),
    ("cmd=my_kvsname kvsname=1.0", "kvsname", Some("1.0")),
    ("cmd=put_result rc=0 msg=success", "rc", Some("0")),
    ("cmd=put_result rc=0", "msg", None),
    ("cmd=barrier_out", "rc", None),
    ("cmd=barrier_out rc=0", "rc", Some("0")),
    ("cmd=get_result rc=0 msg=success value=12345,a0,10.0.0.1", "value", Some("12345,a0,10.0.0.1")),
    ("cmd=get_result rc=0 value=12345", "value", Some("12345")),
    ("cmd=get_result rc=-1 msg=key_x_not_found value=unknown", "rc", Some("-1")),
    ("cmd=set size=4", "size", Some("4")),
    ("cmd=set rank=2", "rank", Some("2")),
];

#[test]
fn fields_of_recorded_lines_are_found_by_name() {
    for (line, name, value) in RECORDED {
        assert_eq!(field(line, name), *value, "{line}");
    }
}

/// How the server in the test behaves.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Hydra,
    Slurm,
    /// Closes the connection at the fence, as after the death of a rank.
    ClosesAtFence,
    /// Never answers a fence.
    SilentAtFence,
    /// Refuses to store a value.
    RefusesPut,
}

/// Serves one rank of one; the shared value is the one that it put, or that of rank 0.
fn serve(stream: UnixStream, manner: Manner, mut stored: String) {
    let mut writer = stream.try_clone().expect("a second handle");
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        assert!(line.len() < REQUEST_BYTES_MAX, "Slurm would read only a part of `{line}`");
        let answer = match field(&line, "cmd").expect("a command") {
            "init" if manner == Manner::Slurm => "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1".to_owned(),
            "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".to_owned(),
            "get_maxes" => "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024".to_owned(),
            "get_my_kvsname" => "cmd=my_kvsname kvsname=7.0".to_owned(),
            "put" if manner == Manner::RefusesPut => "cmd=put_result rc=-1 msg=no_space".to_owned(),
            "put" => {
                stored = field(&line, "value").expect("a value").to_owned();
                if manner == Manner::Slurm { "cmd=put_result rc=0" } else { "cmd=put_result rc=0 msg=success" }
                    .to_owned()
            }
            "barrier_in" if manner == Manner::ClosesAtFence => return,
            "barrier_in" if manner == Manner::SilentAtFence => continue,
            "barrier_in" if manner == Manner::Slurm => "cmd=barrier_out rc=0".to_owned(),
            "barrier_in" => "cmd=barrier_out".to_owned(),
            "get" => format!("cmd=get_result rc=0 msg=success value={stored}"),
            "finalize" => "cmd=finalize_ack".to_owned(),
            "abort" => return,
            other => panic!("unexpected command {other}"),
        };
        // In two pieces, as a stream may deliver it.
        let (first, second) = answer.split_at(answer.len() / 2);
        let _ = writer.write_all(first.as_bytes());
        let _ = writer.write_all(format!("{second}\n").as_bytes());
    }
}

/// A client of a server with this manner.
fn client(manner: Manner, stored: &str, limit: Limit) -> Pmi1 {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let stored = stored.to_owned();
    std::thread::spawn(move || serve(theirs, manner, stored));
    Pmi1::over(ours.into(), 0, 2, limit).expect("the server answers")
}

const LONG: Limit = Limit::new(Duration::from_secs(60));

#[test]
fn rank_0_shares_a_text_through_servers_with_different_answers() {
    for manner in [Manner::Hydra, Manner::Slurm] {
        let mut first = client(manner, "", LONG);
        let text = "4242,0123456789abcdef,10.77.0.1,fd00::1";
        assert_eq!(first.share(Some(text), LONG).expect("it is stored"), text);
        first.finish(LONG).expect("the end is accepted");
        let mut second = client(manner, text, LONG);
        assert_eq!(second.share(None, LONG).expect("it is found"), text);
    }
}

#[test]
fn the_longest_text_fits_into_one_request() {
    let mut first = client(Manner::Slurm, "", LONG);
    let text = "x".repeat(SHARED_BYTES_MAX);
    assert_eq!(first.share(Some(&text), LONG).expect("it is stored"), text);
}

#[test]
fn a_closed_connection_and_a_refusal_are_errors() {
    let closed = client(Manner::ClosesAtFence, "", LONG).share(Some("a"), LONG);
    assert!(matches!(closed, Err(LauncherError::Closed)), "{closed:?}");
    let refused = client(Manner::RefusesPut, "", LONG).share(Some("a"), LONG).expect_err("a refusal");
    assert_eq!(refused.to_string(), "put: cmd=put_result rc=-1 msg=no_space");
}

#[test]
fn a_server_that_never_answers_is_given_up_at_the_limit() {
    let mut silent = client(Manner::SilentAtFence, "", LONG);
    let begin = Instant::now();
    let late = silent.share(Some("a"), Limit::new(Duration::from_millis(50)));
    assert!(matches!(late, Err(LauncherError::Late { what: "barrier_out", .. })), "{late:?}");
    assert!(begin.elapsed() >= Duration::from_millis(50));
}

#[test]
fn a_port_announces_rank_and_size_in_lines_of_their_own() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("its address").to_string();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut lines = BufReader::new(stream.try_clone().expect("a second handle")).lines();
        assert_eq!(lines.next().expect("a line").expect("text"), "cmd=initack pmiid=2");
        for line in ["cmd=initack", "cmd=set size=4", "cmd=set rank=2", "cmd=set debug=0"] {
            stream.write_all(format!("{line}\n").as_bytes()).expect("it is sent");
        }
        for answer in ["cmd=response_to_init rc=0", "cmd=maxes vallen_max=1024", "cmd=my_kvsname kvsname=k"] {
            lines.next().expect("a line").expect("text");
            stream.write_all(format!("{answer}\n").as_bytes()).expect("it is sent");
        }
    });
    let client = Pmi1::connect(&Place::Port { address, id: "2".into() }, LONG).expect("the server answers");
    assert_eq!((client.rank(), client.size()), (2, 4));
    server.join().expect("the server saw what it expected");
}

#[test]
fn a_descriptor_that_is_closed_is_named() {
    let place = Place::Descriptor { number: Ok(987), identity: Ok((0, 2)) };
    let error = Pmi1::connect(&place, LONG).expect_err("no such descriptor");
    assert!(error.to_string().contains("PMI_FD is not open"), "{error}");
}

/// Goal: a variable that names a descriptor of another kind makes this program write the protocol into no file.
#[test]
fn a_descriptor_that_is_not_a_socket_is_refused_and_not_written() {
    let file = tempfile::tempfile().expect("a file");
    let (pipe, _writer) = std::io::pipe().expect("a pipe");
    let (of_file, of_pipe) = (file.try_clone().expect("a copy"), pipe.try_clone().expect("a copy"));
    // Owned by nothing else here: if it were taken for a connection, it would be closed with that.
    for descriptor in [of_file.into_raw_fd(), of_pipe.into_raw_fd()] {
        let place = Place::Descriptor { number: Ok(descriptor), identity: Ok((0, 2)) };
        let error = Pmi1::connect(&place, LONG).expect_err("not a socket").to_string();
        assert!(error.contains("is not a socket, so no launcher passed it"), "{error}");
    }
    assert_eq!(file.metadata().expect("it stays open").len(), 0);
}
