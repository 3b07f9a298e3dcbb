//! A session with a device that does anything: every command ends exactly once, and nothing panics.

use crate::uas_chaos;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_command_ends_whatever_the_device_does(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        uas_chaos::run(&bytes);
    }

    /// Fewer errors, so that the session lives longer.
    #[test]
    fn every_command_ends_on_a_device_with_few_faults(bytes in proptest::collection::vec(3u8..=255, 0..600)) {
        uas_chaos::run(&bytes);
    }
}
