//! Logs of writes, the crash images that follow from them, and the search for the smallest failing loss.

use proptest::prelude::*;
use std::collections::BTreeSet;
use std::io::Cursor;
use trueio_powercut::replay::{ENTRIES_MAX, LogError, LogWriter, Loss, LostPart, PointKind, WriteLog, choices, shrink};

/// What a log is made of.
#[derive(Debug, Clone)]
enum Step {
    Write(u64, u64),
    Fua(u64, u64),
    Flush,
    Discard(u64, u64),
    Mark(String),
}

fn log_of(steps: &[Step], sector_bytes: u32) -> Vec<u8> {
    let mut writer = LogWriter::new(Cursor::new(Vec::new()), sector_bytes).expect("memory");
    for (number, step) in steps.iter().enumerate() {
        let data = |count: u64| vec![number as u8; (count * u64::from(sector_bytes)) as usize];
        match step {
            Step::Write(sector, count) => writer.write(*sector, &data(*count), false),
            Step::Fua(sector, count) => writer.write(*sector, &data(*count), true),
            Step::Flush => writer.flush(),
            Step::Discard(sector, count) => writer.discard(*sector, *count),
            Step::Mark(text) => writer.mark(text),
        }
        .expect("memory");
    }
    writer.finish().expect("memory").into_inner()
}

fn read(bytes: &[u8]) -> Result<WriteLog, LogError> {
    WriteLog::read(&mut Cursor::new(bytes))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u64..64, 1u64..9).prop_map(|(sector, count)| Step::Write(sector, count)),
        2 => (0u64..64, 1u64..9).prop_map(|(sector, count)| Step::Fua(sector, count)),
        2 => Just(Step::Flush),
        1 => (0u64..64, 1u64..9).prop_map(|(sector, count)| Step::Discard(sector, count)),
        1 => "[a-z ]{0,12}".prop_map(Step::Mark),
    ];
    prop::collection::vec(step, 0..40)
}

/// Goal: a log of the format is read: a head, flags and data as `drivers/md/dm-log-writes.c` lays them out.
#[test]
fn the_bytes_of_the_format_are_read() {
    let mut bytes = vec![0; 512];
    let words = |bytes: &mut [u8], words: &[u64]| {
        for (at, word) in words.iter().enumerate() {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
    };
    words(&mut bytes, &[0x6a_7366_7773_6872, 1, 3, 512]);
    // A write of two sectors with FUA of metadata, a flush, and a mark.
    for (entry, data) in [([9, 2, 2 | 16, 0], 1024), ([0, 0, 1, 0], 0), ([0, 0, 8, 7], 0)] {
        let at = bytes.len();
        bytes.resize(at + 512 + data, 7);
        words(&mut bytes[at..], &entry);
        if entry[2] == 8 {
            bytes[at + 32..at + 39].copy_from_slice(b"commit\n");
        }
    }
    let log = read(&bytes).expect("a log");
    let [write, flush, mark] = &log.entries[..] else { panic!("{log:?}") };
    assert_eq!(
        (write.sector, write.sector_count, write.is_fua, write.flushes, write.data_at),
        (9, 2, true, false, 1024)
    );
    assert_eq!((flush.sector_count, flush.flushes, flush.writes()), (0, true, false));
    assert_eq!(mark.mark.as_deref(), Some("commit"));
    assert_eq!((log.sector_bytes, log.end_bytes()), (512, 11 * 512));
}

/// Goal: a log that is cut off at any byte, or states figures that are impossible, is refused by name, in no time and with no memory
/// of that size.
#[test]
fn truncated_and_hostile_logs_are_refused() {
    let steps = [Step::Write(1, 3), Step::Flush, Step::Mark("x".to_owned()), Step::Fua(4, 1)];
    let whole = log_of(&steps, 512);
    assert_eq!(read(&whole).expect("a log").entries.len(), 4);
    for end in 0..whole.len() {
        let error = read(&whole[..end]).expect_err("it is cut off");
        assert!(matches!(error, LogError::NotALog | LogError::Truncated { .. }), "{end}: {error}");
    }
    let entry = 512;
    for (at, value, words) in [
        (0, 1, "no log of dm-log-writes"),
        (8, 2, "version 2"),
        (16, ENTRIES_MAX + 1, "entries; at most"),
        (16, ENTRIES_MAX, "ends within entry 4"),
        (24, 0, "sectors have 0 bytes"),
        (24, 513, "sectors have 513 bytes"),
        (24, 1 << 31, "sectors have"),
        (entry, u64::MAX - 1, "beyond any device"),
        (entry, u64::MAX / 512, "beyond any device"),
        (entry + 8, u64::MAX, "ends within entry 0"),
        (entry + 8, 1 << 55, "ends within entry 0"),
        (entry + 8, 100, "ends within entry 0"),
        (entry + 16, 1 << 9, "unknown flag"),
        (entry + 16, 8, "ends within"),
        (entry + 24, 7, ""),
    ] {
        let mut bytes = whole.clone();
        bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
        match read(&bytes) {
            Err(error) => assert!(!words.is_empty() && error.to_string().contains(words), "{at} {value}: {error}"),
            // The data of a write that became a mark are then entries.
            Ok(log) => assert!(words.is_empty() || value == 8, "{at} {value}: {log:?}"),
        }
    }
    let mut long = log_of(&[Step::Mark("x".to_owned())], 512);
    long[entry + 24..entry + 32].copy_from_slice(&481u64.to_le_bytes());
    assert!(read(&long).expect_err("too long").to_string().contains("mark is longer"));
}

/// Goal: what may be lost at each crash is known: writes since the last flush, of those with FUA only one that has not completed.
#[test]
fn the_points_of_a_log_and_what_is_at_risk_at_each() {
    use Step::{Discard, Flush, Fua, Mark, Write};
    let mark = |text: &str| Mark(text.to_owned());
    let steps = [Write(0, 1), mark("one"), Fua(1, 1), Write(2, 1), Flush, Flush, Fua(3, 1), Discard(4, 1), mark("two")];
    let log = read(&log_of(&steps, 512)).expect("a log");
    let points = log.points(0);
    let found: Vec<_> = points.iter().map(|point| (point.kind, log.at_risk(point), log.mark_before(point))).collect();
    assert_eq!(
        found,
        [
            (PointKind::Fua, vec![0, 2], Some("one")),
            (PointKind::Flush, vec![0, 3], Some("one")),
            (PointKind::Fua, vec![6], Some("one")),
            (PointKind::End, vec![7], Some("two")),
        ]
    );
    assert_eq!(log.points(5).len(), 2, "only crashes after entry 5");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_written_log_is_read_back(steps in steps(), sector in prop_oneof![Just(512u32), Just(4096)]) {
        let log = read(&log_of(&steps, sector)).expect("a log");
        prop_assert_eq!(log.entries.len(), steps.len());
        for (entry, step) in log.entries.iter().zip(&steps) {
            let expected = match step {
                Step::Write(at, count) => (*at, *count, false, false, false, None),
                Step::Fua(at, count) => (*at, *count, true, false, false, None),
                Step::Flush => (0, 0, false, true, false, None),
                Step::Discard(at, count) => (*at, *count, false, false, true, None),
                Step::Mark(text) => (0, 0, false, false, false, Some(text.clone())),
            };
            let found = (entry.sector, entry.sector_count, entry.is_fua, entry.flushes, entry.is_discard, entry.mark.clone());
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn no_bytes_let_the_reader_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..4096), at in 0usize..4096) {
        let _ = read(&bytes);
        let whole = log_of(&[Step::Write(1, 2), Step::Flush, Step::Write(3, 1)], 512);
        bytes.truncate(16);
        let mut damaged = whole;
        for (offset, byte) in bytes.iter().enumerate() {
            let at = (at + offset) % damaged.len();
            damaged[at] = *byte;
        }
        if let Ok(log) = read(&damaged) {
            prop_assert!(log.entries.len() <= damaged.len() / 512);
        }
    }

    /// Goal: each image is legal: nothing that was flushed, or completed with FUA, is lost, and a torn write is stored in part.
    #[test]
    fn every_choice_is_a_legal_loss_and_a_seed_repeats_it(steps in steps(), most in 1usize..80, seed in any::<u64>()) {
        let log = read(&log_of(&steps, 512)).expect("a log");
        for point in log.points(0) {
            let flushes = log.entries[..point.end].iter().rposition(|entry| entry.flushes).unwrap_or(0);
            let (found, is_exhaustive) = choices(&log, &point, most, seed);
            prop_assert!(!found.is_empty() && found.len() <= most);
            prop_assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len());
            prop_assert_eq!(&choices(&log, &point, most, seed), &(found.clone(), is_exhaustive));
            let whole = found.iter().filter(|loss| loss.values().all(|part| *part == LostPart::Whole)).count();
            prop_assert!(!is_exhaustive || whole >= 1 << log.at_risk(&point).len());
            for (&index, part) in found.iter().flatten() {
                let entry = &log.entries[index];
                prop_assert!(entry.writes() && index >= flushes && index < point.end);
                prop_assert!(!entry.is_fua || (point.kind == PointKind::Fua && index + 1 == point.end));
                if let LostPart::Sectors(sectors) = part {
                    prop_assert!(!sectors.is_empty() && (sectors.len() as u64) < entry.sector_count);
                    prop_assert!(sectors.is_sorted_by(|a, b| a < b) && sectors.iter().all(|at| *at < entry.sector_count));
                }
            }
        }
    }

    /// Goal: of a loss that fails because some parts of it are lost together, exactly those remain.
    #[test]
    fn the_smallest_loss_that_fails_is_found(lost in prop::collection::btree_set(0usize..64, 1..40), needed in any::<u64>()) {
        let needed: BTreeSet<usize> = lost.iter().copied().filter(|index| needed >> index & 1 == 1).collect();
        let whole = |set: &BTreeSet<usize>| -> Loss { set.iter().map(|index| (*index, LostPart::Whole)).collect() };
        let mut calls = 0;
        let mut fails = |loss: &Loss| {
            calls += 1;
            Some(needed.iter().all(|index| loss.contains_key(index)))
        };
        prop_assert_eq!(shrink(&whole(&lost), 10_000, &mut fails), whole(&needed));
        prop_assert!(calls <= 4 * lost.len() * lost.len() + 8, "{} calls", calls);
    }

    #[test]
    fn a_torn_write_is_made_small_by_sectors(sectors in prop::collection::btree_set(0u64..32, 2..20)) {
        let needed = *sectors.iter().next().expect("two or more");
        let loss: Loss = [(3, LostPart::Whole), (5, LostPart::Sectors(sectors.into_iter().collect()))].into();
        let mut fails = |loss: &Loss| {
            Some(matches!(loss.get(&5), Some(LostPart::Sectors(lost)) if lost.contains(&needed)))
        };
        prop_assert_eq!(shrink(&loss, 1000, &mut fails), Loss::from([(5, LostPart::Sectors(vec![needed]))]));
    }
}
