//! The memory that a message takes, estimated from its text before it is parsed.
//!
//! A short text can become much memory: a histogram of one latency has 100 bytes of JSON and counters of 36 KiB, and an empty text
//! in a list 2 bytes of JSON and 24 bytes here. So the values of a message are counted first, which allocates nothing, and a message that
//! would take more than it may is not parsed.

use serde::Deserializer as _;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;
use trueio_model::Histogram;

/// Bytes of a number, and of an empty text with what its list or map needs for it.
const NUMBER_BYTES: u64 = 16;
const TEXT_BYTES: u64 = 48;
/// Bytes of a list, of an object, and of a value that is missing: the largest ones are objects of optional values.
const VALUE_BYTES: u64 = 128;
/// The keys by which a histogram is recognized, and that of its occupied buckets: one without has no counters.
const HISTOGRAM_KEY: &str = "sub_bits";
const OCCUPIED_KEY: &str = "index";

/// Returns the memory that the value of a JSON text takes at most, in bytes. The count ends soon after `most`: what is beyond it costs no time.
///
/// # Errors
/// The text is not JSON, as far as it was read.
pub(crate) fn of_json(text: &str, most: u64) -> serde_json::Result<u64> {
    let mut sum = Sum { bytes: 0, most };
    let mut from = serde_json::Deserializer::from_str(text);
    match from.deserialize_any(&mut sum) {
        Err(_) if sum.is_over() => {}
        counted => {
            counted?;
            from.end()?;
        }
    }
    Ok(sum.bytes)
}

/// What was counted so far.
struct Sum {
    bytes: u64,
    most: u64,
}

impl Sum {
    fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn is_over(&self) -> bool {
        self.bytes > self.most
    }

    /// Ends the count after the largest sum.
    fn go_on<E: Error>(&self) -> Result<(), E> {
        if self.is_over() { Err(E::custom("it takes too much memory")) } else { Ok(()) }
    }

    fn text(&mut self, text: &str) {
        self.add(TEXT_BYTES + text.len() as u64);
    }
}

impl<'de> DeserializeSeed<'de> for &mut Sum {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Sum {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.add(NUMBER_BYTES);
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.add(NUMBER_BYTES);
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.add(NUMBER_BYTES);
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.add(NUMBER_BYTES);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.add(VALUE_BYTES);
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.text(text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        self.add(VALUE_BYTES);
        while values.next_element_seed(&mut *self)?.is_some() {
            self.go_on()?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        self.add(VALUE_BYTES);
        let (mut is_histogram, mut is_occupied) = (false, false);
        while let Some(Key { bytes, kind }) = values.next_key_seed(AnyKey)? {
            self.add(TEXT_BYTES + bytes);
            let before = self.bytes;
            values.next_value_seed(&mut *self)?;
            self.go_on()?;
            is_histogram |= kind == Kind::OfHistogram;
            // More than the list itself.
            is_occupied |= kind == Kind::Occupied && self.bytes - before > VALUE_BYTES;
        }
        if is_histogram && is_occupied {
            self.add(Histogram::RESERVED_BYTES);
        }
        Ok(())
    }
}

/// Reads the key of an object.
struct AnyKey;

/// What is counted of a key.
struct Key {
    bytes: u64,
    kind: Kind,
}

#[derive(PartialEq, Eq)]
enum Kind {
    OfHistogram,
    Occupied,
    Other,
}

impl<'de> DeserializeSeed<'de> for AnyKey {
    type Value = Key;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Key, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for AnyKey {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Key, E> {
        let kind = match key {
            HISTOGRAM_KEY => Kind::OfHistogram,
            OCCUPIED_KEY => Kind::Occupied,
            _ => Kind::Other,
        };
        Ok(Key { bytes: key.len() as u64, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(text: &str) -> u64 {
        of_json(text, u64::MAX).expect("JSON")
    }

    #[test]
    fn values_texts_and_histograms_count() {
        assert_eq!(weight("1"), NUMBER_BYTES);
        assert_eq!(weight("[1,null,true,-1.5]"), 2 * VALUE_BYTES + 3 * NUMBER_BYTES);
        assert_eq!(weight("\"abc\""), TEXT_BYTES + 3);
        assert_eq!(weight("{\"ab\":[]}"), 2 * VALUE_BYTES + TEXT_BYTES + 2);
        for text in ["", "[", "{} {}", "[1,]", "nul"] {
            assert!(of_json(text, u64::MAX).is_err(), "{text}");
        }
    }

    /// Goal: a list of histograms counts as the memory of their counters, however their key is written.
    #[test]
    fn a_histogram_counts_with_its_counters() {
        let mut histogram = Histogram::new();
        histogram.record(5);
        let text = serde_json::to_string(&vec![histogram; 10]).expect("JSON");
        assert!(text.len() < 1_100 && weight(&text) > 10 * Histogram::RESERVED_BYTES, "{}", text.len());
        let escaped = text.replace("sub_bits", "sub\\u005fbits");
        assert_eq!(weight(&escaped), weight(&text));
        let empty = serde_json::to_string(&Histogram::new()).expect("JSON");
        assert!(weight(&empty) < Histogram::RESERVED_BYTES, "it has no counters");
    }

    /// Goal: a text of many values costs no more time than the memory that its reader has.
    /// Method: what follows the limit is no JSON, and is not read.
    #[test]
    fn the_count_ends_at_the_limit() {
        let text = format!("{{\"a\":[[{}", "{},".repeat(1_000));
        let weight = of_json(&text, 50 * VALUE_BYTES).expect("it is not read to its end");
        assert!((50 * VALUE_BYTES..53 * VALUE_BYTES).contains(&weight), "{weight}");
        assert!(of_json(&text, u64::MAX).is_err());
    }

    /// JSON in JSON nests at most as deep as the parser allows.
    #[test]
    fn a_deep_text_is_an_error_and_no_end_of_the_stack() {
        assert!(of_json(&"[".repeat(1_000_000), u64::MAX).is_err());
    }
}
