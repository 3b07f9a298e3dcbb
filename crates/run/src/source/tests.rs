//! Answers of servers, and what the client makes of them.

use super::*;
use std::io::{BufRead, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

fn address(port: u16) -> SourceAddress {
    SourceAddress { host: "127.0.0.1".to_owned(), port, path: "/body".to_owned() }
}

/// A server that gives each connection this answer, in pieces with a pause between them.
fn answering(pieces: Vec<Vec<u8>>) -> SourceAddress {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            let mut stream = stream.unwrap();
            let mut lines = io::BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            for piece in &pieces {
                if stream.write_all(piece).is_err() {
                    break;
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
    });
    address(port)
}

fn open(address: &SourceAddress, length: u64) -> HttpBody {
    HttpBody::new(address, length).unwrap()
}

/// Everything that a source sends.
fn all(address: &SourceAddress, length: u64) -> Result<Vec<u8>, String> {
    let mut source = open(address, length);
    let mut body = vec![0; length as usize];
    let mut filled = 0;
    while filled < body.len() {
        match source.take(&mut body[filled..])? {
            0 => source.wait(Duration::from_millis(20)),
            n => filled += n,
        }
    }
    Ok(body)
}

#[test]
fn a_body_arrives_whole_however_its_packets_are_cut() {
    let answer = b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length:  10 \r\n\r\n0123456789".to_vec();
    for cuts in [vec![answer.len()], vec![1; answer.len()], vec![40, 15, 3, 100], vec![answer.len() - 4, 4]] {
        let mut rest = &answer[..];
        let mut pieces = Vec::new();
        for cut in &cuts {
            let (piece, left) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece.to_vec());
            rest = left;
        }
        assert_eq!(all(&answering(pieces), 10).expect("a body"), b"0123456789", "{cuts:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_measured_is_an_error_with_its_reason() {
    for (answer, words) in [
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "comes in pieces"),
        ("HTTP/1.1 200 OK\r\n\r\nhello", "does not report its length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello", "content-length header not a number"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            "conflicting content-length headers",
        ),
        (
            "HTTP/1.1 302 Found\r\nLocation: https://b/\r\n\r\n",
            "points to `https://b/` (302); redirects are not followed",
        ),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "answers 404 Not Found"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello!", "it has 6 bytes now, and 5 were planned"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "it ended after 3 of 5 bytes"),
        ("HTTP/1.1 200 OK\r\nContent-", "closed the connection"),
        ("hello\r\n\r\n", "not valid HTTP/1.1"),
        ("", "closed the connection"),
    ] {
        let address = answering(vec![answer.as_bytes().to_vec()]);
        let error = all(&address, 5).expect_err(answer);
        assert!(error.contains(words), "{answer:?}: {error}");
    }
}

#[test]
fn an_endless_header_is_an_error() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n", "y".repeat(40_000));
    let error = all(&answering(vec![long.into_bytes()]), 5).expect_err("too long");
    assert!(error.contains("longer than 16384 bytes"), "{error}");
}

#[test]
fn a_closed_port_cannot_be_reached() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = all(&address(port), 5).expect_err("the port is closed");
    assert!(error.contains("cannot be reached"), "{error}");
    assert!(source_length(&address(port)).unwrap_err().to_string().contains("cannot be reached"));
}

#[test]
fn the_body_server_reports_its_length_and_sends_the_same_body_to_each_client() {
    let length = 200_001;
    let server = BodyServer::start(7, length).unwrap();
    let address: SourceAddress = server.url().parse().unwrap();
    assert_eq!(source_length(&address).unwrap(), length);
    let mut expected = Vec::new();
    Body::new(7, length).read_to_end(&mut expected).unwrap();
    assert_eq!(expected.len() as u64, length);
    for _ in 0..3 {
        assert!(all(&address, length).unwrap() == expected);
    }
    // A body of another length begins alike.
    let shorter: SourceAddress = format!("{}/1000", server.origin()).parse().unwrap();
    assert_eq!(source_length(&shorter).unwrap(), 1000);
    assert!(all(&shorter, 1000).unwrap() == expected[..1000]);
    // A silent client, one that disconnects in the middle and one that sends garbage do not block the next.
    let silent = TcpStream::connect(("127.0.0.1", address.port)).unwrap();
    let mut gone = open(&address, length);
    while gone.take(&mut [0; 10]).unwrap() == 0 {
        gone.wait(Duration::from_millis(20));
    }
    drop(gone);
    TcpStream::connect(("127.0.0.1", address.port)).unwrap().write_all(b"BREW /pot HTCPCP/1.0\r\n\r\n").unwrap();
    assert!(all(&address, length).unwrap() == expected);
    drop(silent);
    let mut other = Vec::new();
    Body::new(8, length).read_to_end(&mut other).unwrap();
    assert!(other != expected, "the seed makes the body");
}

#[test]
fn a_dropped_server_ends_even_if_a_client_does_not_read() {
    let server = BodyServer::start(1, 1 << 30).unwrap();
    let address: SourceAddress = server.url().parse().unwrap();
    let mut source = open(&address, 1 << 30);
    while source.take(&mut [0; 10]).unwrap() == 0 {
        source.wait(Duration::from_millis(20));
    }
    let from = Instant::now();
    drop(server);
    assert!(from.elapsed() < Duration::from_secs(60), "{:?}", from.elapsed());
    assert!(TcpStream::connect(("127.0.0.1", address.port)).is_err());
}

/// Goal: memory stays bounded while the worker takes nothing, and the thread ends with its body.
/// Method: a body of 1 GiB; the server can send no more than what the pieces, the client's buffer and the sockets hold.
#[test]
fn a_body_that_is_not_taken_is_not_fetched_on_and_its_thread_ends_when_it_is_dropped() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n").unwrap();
        let mut sent = 0;
        // Fails when the client closes the connection.
        while let Ok(count) = stream.write(&[7; 65_536]) {
            sent += count;
        }
        sent
    });
    let mut source = open(&address(port), 1 << 30);
    while source.take(&mut [0; 10]).unwrap() == 0 {
        source.wait(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_millis(200));
    drop(source);
    let sent = server.join().unwrap();
    assert!(sent < 64 << 20, "{sent} bytes were fetched, and 10 were taken");
}

#[test]
fn nothing_is_requested_before_the_first_byte_is_taken() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut source = open(&address(listener.local_addr().unwrap().port()), 5);
    source.wait(Duration::from_millis(100));
    assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let _ = source.take(&mut [0; 5]);
    let until = Instant::now() + Duration::from_secs(60);
    while listener.accept().is_err() {
        assert!(Instant::now() < until, "no request came");
        thread::sleep(Duration::from_millis(5));
    }
}
