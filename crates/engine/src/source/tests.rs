//! What servers may say, and what is made of it.

use super::*;
use std::io::BufRead;
use std::net::TcpListener;
use std::thread;

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

/// Everything that a source sends.
fn all(address: &SourceAddress, length: u64) -> Result<Vec<u8>, SourceError> {
    let mut source = HttpSource::connect(address, length)?;
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
            let (piece, behind) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece.to_vec());
            rest = behind;
        }
        assert_eq!(all(&answering(pieces), 10).expect("a body"), b"0123456789", "{cuts:?}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused_in_words() {
    for (answer, words) in [
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "comes in pieces"),
        ("HTTP/1.1 200 OK\r\n\r\nhello", "does not say its length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello", "no number"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "no number"),
        (
            "HTTP/1.1 302 Found\r\nLocation: https://b/\r\n\r\n",
            "points to `https://b/` (302); redirects are not followed",
        ),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "answers 404 Not Found"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello!", "it has 6 bytes now, and 5 were planned"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "it ended after 3 of 5 bytes"),
        ("HTTP/1.1 200 OK\r\nContent-", "closed the connection"),
        ("hello\r\n\r\n", "no HTTP/1.1"),
        ("", "closed the connection"),
    ] {
        let address = answering(vec![answer.as_bytes().to_vec()]);
        let error = all(&address, 5).expect_err(answer);
        assert!(error.to_string().contains(words), "{answer:?}: {error}");
    }
}

#[test]
fn a_head_without_end_is_refused_and_not_collected_for_ever() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n", "y".repeat(40_000));
    let error = all(&answering(vec![long.into_bytes()]), 5).expect_err("too long");
    assert!(error.to_string().contains("longer than 16384 bytes"), "{error}");
}

#[test]
fn nobody_there_is_told() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = HttpSource::connect(&address(port), 5).expect_err("nobody listens");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
}

#[test]
fn our_own_server_says_its_length_and_sends_the_same_body_to_each_client() {
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
    // One that says nothing, one that goes away in the middle, and one that talks nonsense, do not keep it from the next.
    let silent = TcpStream::connect(("127.0.0.1", address.port)).unwrap();
    let mut gone = HttpSource::connect(&address, length).unwrap();
    while gone.take(&mut [0; 10]).unwrap() == 0 {}
    drop(gone);
    TcpStream::connect(("127.0.0.1", address.port)).unwrap().write_all(b"BREW /pot HTCPCP/1.0\r\n\r\n").unwrap();
    assert!(all(&address, length).unwrap() == expected);
    drop(silent);
    let mut other = Vec::new();
    Body::new(8, length).read_to_end(&mut other).unwrap();
    assert!(other != expected, "the seed makes the body");
}

#[test]
fn a_server_goes_when_it_is_dropped_even_with_a_client_that_does_not_read() {
    let server = BodyServer::start(1, 1 << 30).unwrap();
    let address: SourceAddress = server.url().parse().unwrap();
    let mut source = HttpSource::connect(&address, 1 << 30).unwrap();
    while source.take(&mut [0; 10]).unwrap() == 0 {}
    let from = Instant::now();
    drop(server);
    assert!(from.elapsed() < Duration::from_secs(60), "{:?}", from.elapsed());
    assert!(TcpStream::connect(("127.0.0.1", address.port)).is_err());
}
