//! The lines that fio prints on standard error about blocks that differ from what was written; scripts look for them.
//!
//! Our headers have other fields than fio's: the run's number takes the place of its seed (`rand_seed`), the number of the
//! write that of `numberio`, and our magic number differs. Of a checksum longer than eight bytes the first eight are printed.
//!
//! Source: `verify_header` and `log_verify_failure` in `verify.c` of fio 3.42.

use std::fmt::Write;
use trueio_model::{BlockPart, Checksum, RunRecord, VerifyFailure};

/// Returns a line for each recorded block that differs.
pub fn verify_errors(record: &RunRecord) -> String {
    let mut out = String::new();
    for job in record.phases.iter().flat_map(|phase| &phase.jobs) {
        let plan = record.plan.jobs.iter().find(|plan| plan.name == job.name);
        let checksum = plan.and_then(|plan| plan.verify.as_ref()).map_or(Checksum::Meta, |verify| verify.checksum);
        for failure in &job.verify_failures {
            write_lines(&mut out, checksum, failure);
        }
    }
    out
}

fn write_lines(out: &mut String, checksum: Checksum, failure: &VerifyFailure) {
    let VerifyFailure { path, offset, length, part, numbers, pattern_byte, .. } = failure;
    let at = |flags: &str| {
        let requested = format!("requested block: offset={offset}, length={length}{flags}");
        format!(" at file {path} offset {offset}, length {length} ({requested})")
    };
    let place = at("");
    let decimal = || numbers.map_or_else(String::new, |[found, wanted]| format!(" {found}, wanted {wanted}"));
    // As fio's `%.8s`; the flags are those of a block that was read (`IO_U_F_VER_LIST`).
    let failed = |kind: &str| format!("{kind:.8}: verify failed{}\n", at(", flags=8"));
    // Writing to a String cannot fail.
    let _ = match part {
        BlockPart::Content => match (numbers, pattern_byte) {
            (Some([found, wanted]), Some(byte)) => write!(
                out,
                "fio: got pattern '{found:02x}', wanted '{wanted:02x}'. Bad bits {}\nfio: bad pattern block offset {byte}\n{}",
                (found ^ wanted).count_ones(),
                failed(Checksum::Pattern.name())
            ),
            (Some([found, wanted]), None) => {
                let sums = [("Expected", wanted), ("Received", found)]
                    .map(|(which, sum)| format!("       {which} CRC: {}\n", checksum.hex(*sum)));
                write!(out, "{}{}", failed(checksum.name()), sums.concat())
            }
            (None, _) => out.write_str(&failed(checksum.name())),
        },
        BlockPart::Trimmed => writeln!(
            out,
            "verify failed for zeroed data at file {path} offset {offset}, length {length}, block offset 0"
        ),
        BlockPart::Magic => {
            let hex = numbers.map_or_else(String::new, |[found, wanted]| format!(" {found:x}, wanted {wanted:x}"));
            writeln!(out, "verify: bad magic header{hex}{place}")
        }
        BlockPart::Length => writeln!(out, "verify: bad header length{}{place}", decimal()),
        BlockPart::Run => writeln!(out, "verify: bad header rand_seed{}{place}", decimal()),
        BlockPart::Offset => writeln!(out, "verify: bad header offset{}{place}", decimal()),
        BlockPart::Sequence => writeln!(out, "verify: bad header numberio{}{place}", decimal()),
        BlockPart::Checksum => {
            let kinds = numbers.map_or_else(String::new, |[found, given]| format!(" ({found} media, {given} given)"));
            writeln!(out, "{}fio: verify type mismatch{kinds}", failed(checksum.name()))
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The right lines are those of fio 3.42, but for the numbers of our own headers.
    #[test]
    fn each_kind_of_difference_has_the_line_of_fio() {
        let place = " at file d/f offset 8192, length 4096 (requested block: offset=8192, length=4096)\n";
        let flags = " at file d/f offset 8192, length 4096 (requested block: offset=8192, length=4096, flags=8)\n";
        let failed = format!("crc32c: verify failed{flags}");
        assert_eq!(lines(BlockPart::Content, None), failed);
        let sums = "       Expected CRC: fc1dd6c5\n       Received CRC: 2ec6972a\n";
        assert_eq!(lines(BlockPart::Content, Some([0x2a97_c62e, 0xc5d6_1dfc])), failed.clone() + sums);
        let pattern = "fio: got pattern '5a', wanted 'de'. Bad bits 2\nfio: bad pattern block offset 100\n";
        let failure = VerifyFailure { pattern_byte: Some(100), ..failure(BlockPart::Content, Some([0x5a, 0xde])) };
        assert_eq!(lines_of(Checksum::PatternHdr, &failure), format!("{pattern}pattern: verify failed{flags}"));
        for (part, numbers, begins) in [
            (BlockPart::Magic, Some([0x5858, 0xacca]), "verify: bad magic header 5858, wanted acca".to_owned()),
            (BlockPart::Length, Some([512, 4096]), "verify: bad header length 512, wanted 4096".to_owned()),
            (BlockPart::Run, Some([7, 9]), "verify: bad header rand_seed 7, wanted 9".to_owned()),
            (BlockPart::Offset, Some([0, 8192]), "verify: bad header offset 0, wanted 8192".to_owned()),
            (BlockPart::Sequence, Some([1, 2]), "verify: bad header numberio 1, wanted 2".to_owned()),
            (BlockPart::Magic, None, "verify: bad magic header".to_owned()),
        ] {
            assert_eq!(lines(part, numbers), begins + place);
        }
        let mismatch = format!("{failed}fio: verify type mismatch (1 media, 2 given)\n");
        assert_eq!(lines(BlockPart::Checksum, Some([1, 2])), mismatch);
        let zeroed = "verify failed for zeroed data at file d/f offset 8192, length 4096, block offset 0\n";
        assert_eq!(lines(BlockPart::Trimmed, None), zeroed);
    }

    fn failure(part: BlockPart, numbers: Option<[u64; 2]>) -> VerifyFailure {
        let (path, expected, found) = ("d/f".to_owned(), String::new(), String::new());
        VerifyFailure { path, offset: 8192, length: 4096, expected, found, part, numbers, pattern_byte: None }
    }

    fn lines(part: BlockPart, numbers: Option<[u64; 2]>) -> String {
        lines_of(Checksum::Crc32c, &failure(part, numbers))
    }

    fn lines_of(checksum: Checksum, failure: &VerifyFailure) -> String {
        let mut out = String::new();
        write_lines(&mut out, checksum, failure);
        out
    }
}
