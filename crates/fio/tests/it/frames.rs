//! Frames and messages, whole, cut, too long and made up.

use proptest::prelude::*;
use std::io::{Cursor, Read};
use trueio_fio::wire::frame::{MAGIC, TO_SERVER_BYTES_MAX};
use trueio_fio::wire::*;

fn hello() -> Hello {
    Hello { protocol: PROTOCOL, version: "1.2.3".to_owned(), machine: "m".to_owned() }
}

fn bytes_of(messages: &[ToServer]) -> Vec<u8> {
    let mut bytes = Vec::new();
    messages.iter().for_each(|message| send(&mut bytes, message, TO_SERVER_BYTES_MAX).expect("a vector takes it"));
    bytes
}

fn jobs() -> ToServer {
    let texts = [("a.fio".to_owned(), "[a]\nrw=read\n".to_owned())].into();
    ToServer::Jobs(Box::new(Jobs { files: vec!["a.fio".to_owned()], texts, ..Jobs::default() }))
}

#[test]
fn messages_come_as_they_were_sent_and_then_the_end() {
    let messages = [ToServer::Hello(hello()), jobs(), ToServer::Start, ToServer::Stop];
    let mut from = Cursor::new(bytes_of(&messages));
    for message in messages {
        assert_eq!(receive::<ToServer>(&mut from, TO_SERVER_BYTES_MAX).expect("a message"), message);
    }
    assert!(matches!(receive::<ToServer>(&mut from, TO_SERVER_BYTES_MAX), Err(WireError::Frame(FrameError::Closed))));
}

#[test]
fn a_message_that_is_cut_anywhere_is_the_end_and_not_a_message() {
    let whole = bytes_of(&[jobs()]);
    for length in 0..whole.len() {
        let result = receive::<ToServer>(&mut &whole[..length], TO_SERVER_BYTES_MAX);
        assert!(matches!(result, Err(WireError::Frame(FrameError::Closed))), "{length}: {result:?}");
    }
}

/// Goal: an announced length allocates nothing.
/// Method: a length above the limit, and then the limit without any bytes; the reader counts the largest request.
#[test]
fn memory_grows_with_received_bytes_and_not_with_the_announced_length() {
    struct Greedy {
        head: Cursor<Vec<u8>>,
        largest: usize,
    }
    impl Read for Greedy {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.largest = self.largest.max(buffer.len());
            self.head.read(buffer)
        }
    }
    let announced = |bytes: u32| Greedy { head: Cursor::new(bytes.to_be_bytes().to_vec()), largest: 0 };
    let mut from = announced(1001);
    let result = receive::<ToServer>(&mut from, 1000);
    assert!(matches!(result, Err(WireError::Frame(FrameError::TooLong { bytes: 1001, limit: 1000 }))), "{result:?}");
    let mut from = announced(TO_SERVER_BYTES_MAX);
    assert!(matches!(receive::<ToServer>(&mut from, TO_SERVER_BYTES_MAX), Err(WireError::Frame(FrameError::Closed))));
    assert!(from.largest <= 64 << 10, "{} bytes were asked for at once", from.largest);
    let too_long = send(&mut Vec::new(), &jobs(), 10);
    assert!(matches!(too_long, Err(WireError::Frame(FrameError::TooLong { limit: 10, .. }))), "{too_long:?}");
}

#[test]
fn fio_itself_and_other_programs_are_distinguished() {
    // The first bytes that a client of fio 3.33 sent.
    let fio = [0x61, 0, 0x0a, 0, 0, 0, 0, 0, 0x50, 0x6a, 0x8b, 0xb7, 0xcd, 0x55, 0, 0, 0x88, 0, 0, 0];
    assert!(matches!(read_magic(&mut &fio[..]), Err(WireError::Fio { version: 0x61 })));
    assert!(matches!(read_magic(&mut &b"SSH-2.0-OpenSSH_9"[..]), Err(WireError::Stranger)));
    assert!(matches!(read_magic(&mut &b"GET "[..]), Err(WireError::Stranger)));
    assert!(matches!(read_magic(&mut &MAGIC[..7]), Err(WireError::Frame(FrameError::Closed))));
    assert!(matches!(read_magic(&mut &b""[..]), Err(WireError::Frame(FrameError::Closed))));
    read_magic(&mut &MAGIC[..]).expect("that is us");
}

#[test]
fn another_version_is_an_objection_that_names_both() {
    assert_eq!(hello().objection(&hello()), None);
    let later = Hello { version: "1.2.4".to_owned(), ..hello() };
    let text = hello().objection(&later).expect("versions differ");
    assert!(text.contains("1.2.3") && text.contains("1.2.4"), "{text}");
    assert!(hello().objection(&Hello { protocol: hello().protocol + 1, ..hello() }).is_some());
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_magic(&mut &bytes[..]);
        let _ = receive::<ToServer>(&mut &bytes[..], TO_SERVER_BYTES_MAX);
        let _ = receive::<ToClient>(&mut &bytes[..], TO_SERVER_BYTES_MAX);
    }

    #[test]
    fn a_message_with_a_byte_changed_is_a_message_or_an_error(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = bytes_of(&[jobs()]);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = receive::<ToServer>(&mut &bytes[..], 1 << 20);
    }

    #[test]
    fn no_text_makes_the_reader_of_addresses_panic(text in ".{0,60}") {
        if let Ok(address) = Address::parse(&text) {
            // The displayed text is parsed to the same address.
            let again = Address::parse(&address.to_string()).expect("it was shown");
            prop_assert_eq!((again.hostname(), again.port()), (address.hostname(), address.port()));
        }
    }
}
