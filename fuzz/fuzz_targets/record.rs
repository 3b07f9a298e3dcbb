//! A record of any bytes is read or refused; one that is read is written and read back the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueio_model::RunRecord;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(record) = serde_json::from_slice::<RunRecord>(bytes) {
        let written = serde_json::to_vec(&record).expect("a record that was read can be written");
        let again: RunRecord = serde_json::from_slice(&written).expect("what was written can be read");
        // Text is compared, not documents: −0.0 equals 0.0 and is another text.
        assert_eq!(serde_json::to_vec(&again).expect("as before"), written);
    }
});
