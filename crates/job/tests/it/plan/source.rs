//! What is written comes from a server.

use super::*;

#[test]
fn the_length_of_a_body_comes_from_size_or_the_server_and_its_rest_is_noted() {
    let base = [("rw", "write"), ("bs", "32k"), ("source", "http://known/")];
    let job = plan_one(&base).unwrap();
    let body = job.source.as_ref().expect("a source");
    assert_eq!((body.length_bytes, body.direct_bytes, body.is_verified), (1_000_001, 999_936, false));
    assert_eq!((job.files[0].size_bytes, job.limits.io_bytes, job.verify), (1_000_001, 1_000_001, None));
    let size = job.values.iter().find(|value| value.name == "size").unwrap();
    assert_eq!(size.value, "1000001");
    assert!(matches!(&size.origin, Origin::Derived { reason } if reason.contains("Content-Length")), "{size:?}");
    let notes = plan(&[spec("a", &base)], &Described, &machine()).unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("the last 65 of the body go through the page cache")), "{notes:?}");
    // With a given size the server is not contacted while planning. Buffered writes have no rest.
    let sized = [base[0], base[1], ("source", "http://127.0.0.1:1/a"), ("size", "100001"), ("direct", "off")];
    let body = plan_one(&[&sized[..], &[("verify", "source")]].concat()).unwrap().source.unwrap();
    assert_eq!((body.length_bytes, body.direct_bytes, body.is_verified), (100_001, 100_001, true));
    assert!(plan_one(&[base[0], base[1], base[2], ("ioengine", "null")]).is_ok(), "read and thrown away");
}

#[test]
fn a_body_must_be_written_once_and_in_order() {
    let base = [("rw", "write"), ("source", "http://known/")];
    assert!(plan_one(&base).is_ok());
    for more in [
        ("rw", "randwrite"),
        ("rw", "read"),
        ("rw", "rw"),
        ("bsrange", "4k-8k"),
        ("numjobs", "2"),
        ("nrfiles", "2"),
        ("filename", "/mnt/new:/mnt/new2"),
        ("ioengine", "simulated"),
        ("ioengine", "ftruncate"),
        ("atomic", "true"),
        ("hipri", "true"),
        ("io_size", "4k"),
        ("number_ios", "3"),
        ("filesize", "1m"),
        ("loops", "2"),
        ("ramp_time", "1s"),
        ("steady_state", "true"),
        ("verify", "crc32c"),
        ("size", "50%"),
        ("source", "http://empty/"),
        ("source", "http://unreachable/"),
    ] {
        let mut options: Vec<_> = base.into_iter().filter(|(name, _)| *name != more.0).collect();
        options.push(more);
        assert_eq!(rule_name(&options), "source_impossible", "{more:?}");
    }
    assert_eq!(rule_name(&[base[0], base[1], ("verify", "source"), ("ioengine", "null")]), "source_impossible");
    assert_eq!(rule_name(&[base[0], base[1], ("time_based", "1"), ("runtime", "3s")]), "source_impossible");
    assert_eq!(rule_name(&[("rw", "write"), ("size", "1m"), ("verify", "source")]), "incomplete");
    assert_eq!(rule_name(&[("rw", "write"), ("source", "https://known/")]), "bad_value");
    let notes = plan(&[spec("a", &[base[0], base[1], ("zero_buffers", "1")])], &Described, &machine()).unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("comes from `source`")), "{notes:?}");
}
