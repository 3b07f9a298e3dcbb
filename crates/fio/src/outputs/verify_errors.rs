//! The lines that fio prints on standard error about blocks that differ from what was written; scripts look for them.
//!
//! Our headers have other fields than fio's: the run's number takes the place of its seed (`rand_seed`), the number of the
//! write that of `numberio`, and our magic number differs.
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
            write_lines(&mut out, checksum.name(), failure);
        }
    }
    out
}

fn write_lines(out: &mut String, checksum: &str, failure: &VerifyFailure) {
    let VerifyFailure { path, offset, length, part, numbers, .. } = failure;
    let place =
        format!(" at file {path} offset {offset}, length {length} (requested block: offset={offset}, length={length})");
    let decimal = || numbers.map_or_else(String::new, |[found, wanted]| format!(" {found}, wanted {wanted}"));
    // As fio's `%.8s`.
    let failed = format!("{checksum:.8}: verify failed{place}\n");
    // Writing to a String cannot fail.
    let _ = match part {
        BlockPart::Content => out.write_str(&failed),
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
            writeln!(out, "{failed}fio: verify type mismatch{kinds}")
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
        for (part, numbers, begins) in [
            (BlockPart::Content, None, "crc32c: verify failed".to_owned()),
            (BlockPart::Magic, Some([0x5858, 0xacca]), "verify: bad magic header 5858, wanted acca".to_owned()),
            (BlockPart::Length, Some([512, 4096]), "verify: bad header length 512, wanted 4096".to_owned()),
            (BlockPart::Run, Some([7, 9]), "verify: bad header rand_seed 7, wanted 9".to_owned()),
            (BlockPart::Offset, Some([0, 8192]), "verify: bad header offset 0, wanted 8192".to_owned()),
            (BlockPart::Sequence, Some([1, 2]), "verify: bad header numberio 1, wanted 2".to_owned()),
            (BlockPart::Magic, None, "verify: bad magic header".to_owned()),
        ] {
            assert_eq!(lines(part, numbers), begins + place);
        }
        let mismatch = format!("crc32c: verify failed{place}fio: verify type mismatch (1 media, 2 given)\n");
        assert_eq!(lines(BlockPart::Checksum, Some([1, 2])), mismatch);
        let zeroed = "verify failed for zeroed data at file d/f offset 8192, length 4096, block offset 0\n";
        assert_eq!(lines(BlockPart::Trimmed, None), zeroed);
    }

    fn lines(part: BlockPart, numbers: Option<[u64; 2]>) -> String {
        let (expected, found) = (String::new(), String::new());
        let failure =
            VerifyFailure { path: "d/f".to_owned(), offset: 8192, length: 4096, expected, found, part, numbers };
        let mut out = String::new();
        write_lines(&mut out, "crc32c", &failure);
        out
    }
}
