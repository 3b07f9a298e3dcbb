//! A log of any text results in a summary or an error, and its replay matches the summary.

use proptest::prelude::*;
use trueio_model::{OpKind, ReplaySettings, Replayer, scan_iolog};

const OPS: [OpKind; 4] = [OpKind::Read, OpKind::Write, OpKind::Trim, OpKind::Sync];

fn settings() -> impl Strategy<Value = ReplaySettings> {
    (any::<bool>(), 1_u64..1_000, 0_u32..20, 1_u64..9, any::<bool>(), any::<bool>()).prop_map(
        |(is_paced, time_scale_percent, align, offset_divisor, redirects, skips)| ReplaySettings {
            is_paced,
            time_scale_percent,
            redirect: redirects.then(|| "to".to_owned()),
            align_bytes: 1 << align,
            offset_divisor,
            skips: if skips { vec![OpKind::Write] } else { Vec::new() },
        },
    )
}

/// Lines that are nearly right.
fn line() -> impl Strategy<Value = String> {
    let number = prop_oneof![0_u64..100_000, Just(u64::MAX), Just(i64::MAX as u64)];
    let words = ["read", "write", "trim", "sync", "datasync", "wait", "close", "open", "add", "nothing"];
    let word = proptest::sample::select(words.to_vec());
    (number.clone(), "[fg]", word, number.clone(), number).prop_map(|(at, name, word, offset, length)| match word {
        "open" | "add" | "close" => format!("{at} {name} {word}\n"),
        _ => format!("{at} {name} {word} {offset} {length}\n"),
    })
}

fn holds(bytes: &[u8], settings: &ReplaySettings) {
    let Ok(summary) = scan_iolog(bytes, settings) else { return };
    let mut replayer = Replayer::new(bytes, settings.clone()).expect("it was read before");
    let (mut counts, mut before) = ([0_u64; 4], 0);
    while let Some((name, io)) = replayer.next_io().expect("it was read before") {
        let (_, end) = summary.files.iter().find(|(known, _)| known == name).expect("a file of the summary");
        assert!(io.offset + u64::from(io.length) <= *end);
        assert!(u64::from(io.length) <= summary.of(io.op).length_bytes_max);
        assert!(io.due_ns >= before && io.due_ns <= summary.end_ns);
        before = io.due_ns;
        let unit = summary.of(io.op).unit_bytes.max(1);
        assert!(io.offset % unit == 0 && u64::from(io.length) % unit == 0);
        counts[OPS.iter().position(|op| *op == io.op).expect("one of four")] += 1;
    }
    assert_eq!(counts, summary.ops.map(|ops| ops.count));
}

proptest! {
    #[test]
    fn bytes_of_any_kind(bytes in proptest::collection::vec(any::<u8>(), 0..300), settings in settings()) {
        holds(&bytes, &settings);
        holds(&[b"fio version 2 iolog\n".as_slice(), &bytes].concat(), &settings);
    }

    #[test]
    fn lines_of_a_log(lines in proptest::collection::vec(line(), 0..20), settings in settings()) {
        let begin = "fio version 3 iolog\n0 f add\n0 f open\n0 g add\n0 g open\n";
        let lines = lines.concat();
        holds(format!("{begin}{lines}").as_bytes(), &settings);
        // Those that are wrong left out one by one, so that long logs are read to their ends.
        let mut good = begin.to_owned();
        for line in lines.lines() {
            let longer = format!("{good}{line}\n");
            if scan_iolog(longer.as_bytes(), &settings).is_ok() {
                good = longer;
            }
        }
        holds(good.as_bytes(), &settings);
    }
}
