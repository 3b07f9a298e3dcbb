//! Connections of real sockets: strangers, wrong tokens, ranks that come twice, late or not at all, and a thousand of them.

use super::*;
use std::time::Instant;

const LONG: Limit = Limit::new(Duration::from_secs(120));
const TOKEN: &[u8] = b"0123456789abcdef";

/// Listens on a free port of this host.
fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    (listener, address)
}

fn accept(size: u32, limit: Limit) -> (std::thread::JoinHandle<Result<Hub, StarError>>, SocketAddr) {
    let (listener, address) = listener();
    (std::thread::spawn(move || Hub::accept(&listener, size, TOKEN, limit, &|_| ())), address)
}

fn rank(address: SocketAddr, rank: u32, token: &'static [u8], limit: Limit) -> Result<Link, StarError> {
    join(&|| vec![address], rank, token, limit)
}

#[test]
fn an_announcement_is_read_as_it_was_written_and_is_never_too_long() {
    let addresses: Vec<IpAddr> =
        ["10.77.0.1", "fd00::1", "127.0.0.1"].iter().map(|text| text.parse().expect("an address")).collect();
    let text = announcement(4242, "00ff", &addresses);
    assert_eq!(text, "4242,00ff,10.77.0.1,fd00::1,127.0.0.1");
    let (found, token) = parse_announcement(&text).expect("its own text");
    assert_eq!((found.len(), token.as_str()), (3, "00ff"));
    assert_eq!(found[1], SocketAddr::new(addresses[1], 4242));
    let many: Vec<IpAddr> = (0..200).map(|n| IpAddr::from([10, 0, 0, n])).collect();
    let text = announcement(4242, &random_id(), &many);
    assert!(text.len() <= crate::launcher::SHARED_BYTES_MAX && text.len() > 600, "{}", text.len());
    parse_announcement(&text).expect("its own text");
    for text in ["", "x", "4242", "4242,t", "4242,,10.0.0.1", "70000,t,10.0.0.1", "4242,t,nowhere"] {
        let error = parse_announcement(text).expect_err(text).to_string();
        assert!(error.contains("same version of trueio"), "{error}");
    }
}

#[test]
fn ranks_are_listed_in_ranges() {
    assert_eq!(rank_list(&[3]), "rank 3");
    assert_eq!(rank_list(&[1, 2]), "ranks 1, 2");
    assert_eq!(rank_list(&[1, 3, 4, 5, 9]), "ranks 1, 3 to 5, 9");
}

#[test]
fn strangers_get_no_answer_wrong_tokens_a_refusal_and_neither_delays_the_ranks() {
    let (listener, address) = listener();
    let (said, sentences) = std::sync::mpsc::channel();
    let hub = std::thread::spawn(move || {
        Hub::accept(&listener, 3, TOKEN, LONG, &|sentence| said.send(sentence.to_owned()).expect("it is read"))
    });
    // One sends nothing, one another protocol, one a wrong token of the same length, one a shorter one, one another version.
    let silent = TcpStream::connect(address).expect("a connection");
    let mut other = TcpStream::connect(address).expect("a connection");
    other.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("it is sent");
    for token in [&b"0123456789abcdeX"[..], b"0123"] {
        let error = join(&|| vec![address], 1, token, LONG).expect_err("a wrong token").to_string();
        assert_eq!(error, format!("rank 0 at {address} has another TRUEIO_TOKEN than rank 1"));
        let sentence = sentences.recv().expect("rank 0 names it");
        assert_eq!(sentence, "a process with another TRUEIO_TOKEN, as rank 1, at 127.0.0.1, was not accepted");
    }
    let mut older = TcpStream::connect(address).expect("a connection");
    older.write_all(b"trueio-ranks-04\n\0\0\0\x01\0\0").expect("it is sent");
    let mut answer = [0];
    older.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, [OTHER_PROTOCOL]);
    let sentence = sentences.recv().expect("rank 0 names it");
    assert_eq!(sentence, "a rank with version 04 of the protocol instead of 05, at 127.0.0.1, was not accepted");
    let links: Vec<Link> = [2, 1].map(|number| rank(address, number, TOKEN, LONG).expect("a rank")).into();
    let hub = hub.join().expect("no panic").expect("all ranks are there");
    assert_eq!((hub.size(), hub.living()), (3, vec![1, 2]));
    let mut byte = [0];
    assert!(matches!(other.read(&mut byte), Ok(0) | Err(_)), "the stranger is closed");
    drop((links, silent));
}

#[test]
fn a_rank_that_is_there_twice_is_named_on_both_sides() {
    let (hub, address) = accept(4, LONG);
    let _first = rank(address, 2, TOKEN, LONG).expect("a rank");
    let second = rank(address, 2, TOKEN, LONG).expect_err("a rank twice");
    assert!(matches!(second, StarError::Twice(2)), "{second}");
    let error = hub.join().expect("no panic").expect_err("a rank twice").to_string();
    assert_eq!(error, "two processes have rank 2: the launcher, or `RANK`, gave it twice");
}

#[test]
fn a_rank_beyond_the_size_is_refused_and_the_others_join() {
    let (hub, address) = accept(2, LONG);
    for number in [0, 2, u32::MAX] {
        let error = rank(address, number, TOKEN, LONG).expect_err("no such rank");
        assert!(matches!(error, StarError::Unexpected(_)), "{error}");
    }
    let _link = rank(address, 1, TOKEN, LONG).expect("a rank");
    hub.join().expect("no panic").expect("all ranks are there");
}

#[test]
fn missing_ranks_are_named_at_the_limit() {
    let (hub, address) = accept(6, Limit::new(Duration::from_millis(300)));
    let _link = rank(address, 3, TOKEN, LONG).expect("a rank");
    let error = hub.join().expect("no panic").expect_err("ranks are missing").to_string();
    assert_eq!(error, "ranks 1, 2, 4, 5 did not connect to rank 0 within 1 s");
}

#[test]
fn rank_0_says_after_five_seconds_for_which_ranks_it_waits() {
    let (listener, address) = listener();
    let (said, sentences) = std::sync::mpsc::channel();
    let hub = std::thread::spawn(move || {
        Hub::accept(&listener, 4, TOKEN, LONG, &|sentence| said.send(sentence.to_owned()).expect("it is read"))
    });
    let began = Instant::now();
    let first = rank(address, 2, TOKEN, LONG).expect("a rank");
    assert_eq!(sentences.recv().expect("a sentence"), "waiting for ranks 1, 3 of 4, at most 120 s");
    assert!(began.elapsed() >= Duration::from_secs(4), "{:?}", began.elapsed());
    let others = [1, 3].map(|number| rank(address, number, TOKEN, LONG).expect("a rank"));
    hub.join().expect("no panic").expect("all ranks are there");
    assert!(sentences.recv().is_err(), "the note is sent once");
    drop((first, others));
}

#[test]
fn without_rank_0_a_rank_gives_up_at_the_limit_and_names_the_address() {
    let (listener, address) = listener();
    drop(listener);
    let error = rank(address, 1, TOKEN, Limit::new(Duration::from_millis(200))).expect_err("nothing listens");
    let text = error.to_string();
    assert!(text.starts_with(&format!("rank 1 cannot connect to rank 0 at {address} within 1 s: ")), "{text}");
}

#[test]
fn a_rank_that_dies_is_lost_with_its_reason_and_the_others_stay() {
    let (hub, address) = accept(3, LONG);
    let first = rank(address, 1, TOKEN, LONG).expect("a rank");
    let mut second = rank(address, 2, TOKEN, LONG).expect("a rank");
    let mut hub = hub.join().expect("no panic").expect("all ranks are there");
    drop(first);
    assert_eq!(hub.readable(&[1, 2], LONG.length()), [1]);
    assert_eq!(hub.receive::<String>(1), None);
    assert_eq!(hub.lost(), [hub::Lost { rank: 1, reason: "its connection ended".to_owned() }]);
    hub.broadcast(&"go");
    assert_eq!(second.receive::<String>(LONG).expect("a message"), "go");
    second.send(&7).expect("it is sent");
    assert_eq!(hub.readable(&[2], LONG.length()), [2]);
    assert_eq!(hub.receive::<u32>(2).map(|message| message.content), Some(7));
}

#[test]
fn a_rank_that_dies_within_a_message_is_lost_too() {
    let (hub, address) = accept(2, LONG);
    let mut link = rank(address, 1, TOKEN, LONG).expect("a rank");
    let mut hub = hub.join().expect("no panic").expect("all ranks are there");
    link.write_raw(&[0, 0, 0, 9, b'"'], LONG.begin()).expect("it is sent");
    drop(link);
    hub.readable(&[1], LONG.length());
    assert_eq!(hub.receive::<String>(1), None);
    assert!(hub.living().is_empty());
}

#[test]
fn a_message_of_a_gigabyte_is_refused_before_it_is_read() {
    let (hub, address) = accept(2, LONG);
    let mut link = rank(address, 1, TOKEN, LONG).expect("a rank");
    let mut hub = hub.join().expect("no panic").expect("all ranks are there");
    link.write_raw(&(1u32 << 30).to_be_bytes(), LONG.begin()).expect("it is sent");
    hub.readable(&[1], LONG.length());
    assert_eq!(hub.receive::<String>(1), None);
    assert!(hub.lost()[0].reason.contains("1073741824 bytes was announced"), "{:?}", hub.lost());
}

#[test]
fn a_rank_that_is_slow_is_waited_for_no_longer_than_the_limit() {
    let (hub, address) = accept(2, LONG);
    let mut link = rank(address, 1, TOKEN, LONG).expect("a rank");
    let hub = hub.join().expect("no panic").expect("all ranks are there");
    let begin = Instant::now();
    let late = link.receive::<u32>(Limit::new(Duration::from_millis(100)));
    assert!(matches!(late, Err(LinkError::Late(1))), "{late:?}");
    assert!(begin.elapsed() >= Duration::from_millis(100));
    assert!(hub.readable(&[1], Duration::from_millis(10)).is_empty());
}

/// Goal: without a secret, no other host can be a rank: rank 0 listens on the loopback address only, and for another address
/// all ranks refuse before they listen or connect.
#[test]
fn off_the_loopback_address_ranks_need_a_token() {
    let of = |rank: u32, host: &str, token: &str| {
        let token = token.to_owned();
        let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|at| at.local_addr()).expect("a port").port();
        let short = Limit::new(Duration::from_millis(1));
        by_variables(&Rendezvous { rank, size: 2, host: host.to_owned(), port, token }, short, &|_| ())
            .expect_err("nothing joins")
    };
    for rank in [0, 1] {
        // A name that cannot be resolved is not the loopback address.
        for host in ["192.0.2.7", "0.0.0.0", "::", "no-such-host.invalid"] {
            for (token, reason) in [("", "TRUEIO_TOKEN is not set"), ("short", "has 5 bytes instead of at least 16")] {
                let error = of(rank, host, token);
                let text = error.to_string();
                assert!(matches!(error, StarError::NoToken { .. }) && text.contains(reason), "{rank} {host}: {text}");
            }
        }
        let text = of(rank, "127.0.0.1", "").to_string();
        assert!(text.contains("did not connect") || text.contains("cannot connect"), "{text}");
    }
    assert!(matches!(of(0, "0.0.0.0", "0123456789abcdef"), StarError::Missing { .. }));
}

/// Goal: rank 0 of a run on one host is not reachable from another one.
/// Method: the port of 127.0.0.1 is taken by it, and that of another loopback address is free.
#[test]
fn on_the_loopback_address_rank_0_listens_nowhere_else() {
    let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|at| at.local_addr()).expect("a port").port();
    let rendezvous = move |rank| Rendezvous { rank, size: 2, host: "127.0.0.1".into(), port, token: String::new() };
    let first = std::thread::spawn(move || by_variables(&rendezvous(0), LONG, &|_| ()));
    let other = by_variables(&rendezvous(1), LONG, &|_| ());
    // While it listens, or after that, the address of any other interface does not belong to it.
    assert!(TcpStream::connect(("127.0.0.2", port)).is_err());
    other.expect("rank 0 accepts");
    first.join().expect("no panic").expect("both are there");
}

/// Goal: a thousand ranks connect, and each sends and receives a message.
/// Method: one thread connects them all; the ranks do not wait, so it needs none for each.
#[test]
fn a_thousand_ranks_connect_and_exchange_messages() {
    const RANKS: u32 = 1000;
    if rustix::process::getrlimit(rustix::process::Resource::Nofile).current.is_some_and(|limit| limit < 2_200) {
        trueio_testkit::skip("files", "this process may not open 2,200 files (`ulimit -n`)");
        return;
    }
    let (hub, address) = accept(RANKS, LONG);
    let mut links: Vec<Link> = (1..RANKS).map(|number| rank(address, number, TOKEN, LONG).expect("a rank")).collect();
    let mut hub = hub.join().expect("no panic").expect("all ranks are there");
    hub.broadcast(&"go");
    for (number, link) in links.iter_mut().enumerate() {
        assert_eq!(link.receive::<String>(LONG).expect("a message"), "go");
        link.send(&(number as u32 + 1)).expect("it is sent");
    }
    let mut awaited = hub.living();
    while !awaited.is_empty() {
        for number in hub.readable(&awaited, LONG.length()) {
            assert_eq!(hub.receive::<u32>(number).map(|message| message.content), Some(number));
            awaited.retain(|other| *other != number);
        }
    }
    assert!(hub.lost().is_empty());
}
