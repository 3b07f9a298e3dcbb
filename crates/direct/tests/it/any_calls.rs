//! Any bytes as calls of the library, against a plain model: on the filesystem of the build and on tmpfs. What the
//! fuzz target `direct_calls` does, on stable and in every test run.

use crate::operations;
use crate::support;

use proptest::prelude::*;

proptest! {
    // Each case is a file and up to 64 calls.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_calls_in_any_order_leave_what_a_plain_model_has(input in prop::collection::vec(any::<u8>(), 0..1500)) {
        let folder = support::folder();
        operations::run(&input, folder.path());
    }

    #[test]
    fn the_same_holds_where_everything_is_buffered(input in prop::collection::vec(any::<u8>(), 0..1500)) {
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return Ok(()) };
        operations::run(&input, folder.path());
    }
}

/// Without this a change of the format could make every case end after its first call.
#[test]
fn random_bytes_make_many_calls() {
    let folder = support::folder();
    let input: Vec<u8> = (0..1500u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    assert!(operations::run(&input, folder.path()) > 40);
}
