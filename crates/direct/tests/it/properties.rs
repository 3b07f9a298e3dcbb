//! What holds for every alignment, range and order of unaligned writes.

use crate::support;

use proptest::prelude::*;
use trueio_direct::{
    Alignment, AlignmentSource, OpenOptions, Policy, TransferError, TransferPart, check_transfer,
    read_unaligned_by_copy_at, round_down, round_up, write_unaligned_by_read_modify_write_at,
};

/// A power of two from 1 byte to 2 MiB.
fn power_of_two() -> impl Strategy<Value = u32> {
    (0..=21u32).prop_map(|exponent| 1 << exponent)
}

proptest! {
    #[test]
    fn rounding_gives_the_nearest_multiple_on_its_side(value: u64, multiple in 1..u64::MAX) {
        let down = round_down(value, multiple);
        prop_assert!(down <= value && value - down < multiple && down.is_multiple_of(multiple));
        match round_up(value, multiple) {
            Some(up) => prop_assert!(up >= value && up - value < multiple && up.is_multiple_of(multiple)),
            None => prop_assert!(u128::from(down) + u128::from(multiple) > u128::from(u64::MAX)),
        }
    }

    /// The check is held against the definition in statx(2), written out in another way.
    #[test]
    fn the_check_names_the_first_number_that_is_wrong_and_passes_the_rest(
        (memory, write_offset, read_offset) in (power_of_two(), power_of_two(), power_of_two()),
        (address, length, offset, write) in any::<(u32, u32, u64, bool)>(),
        aligned in 0..8u8,
    ) {
        let unit = if write { write_offset } else { read_offset };
        // Random numbers are hardly ever aligned; a bit each decides whether to make them so.
        let address = if aligned & 1 == 1 { address & !(memory - 1) } else { address };
        let length = if aligned & 2 == 2 { length & !(unit - 1) } else { length };
        let offset = if aligned & 4 == 4 { offset & !u64::from(unit - 1) } else { offset };
        let alignment = Alignment {
            memory_bytes: Some(memory),
            write_offset_bytes: Some(write_offset),
            read_offset_bytes: Some(read_offset),
            source: AlignmentSource::Statx,
        };
        let expected = if address & (memory - 1) != 0 {
            Some((TransferPart::Address, u64::from(address), memory))
        } else if length & (unit - 1) != 0 {
            Some((TransferPart::Length, u64::from(length), unit))
        } else if offset & u64::from(unit - 1) != 0 {
            Some((TransferPart::Offset, offset, unit))
        } else {
            None
        };
        let found = check_transfer(&alignment, address as usize, length as usize, offset, write);
        prop_assert_eq!(found.err().map(|wrong| (wrong.part, wrong.value, wrong.needed_bytes)), expected);
    }

    #[test]
    fn what_is_unknown_is_not_checked_and_what_is_assumed_is(address: u32, length: u32, offset: u64, write: bool) {
        let (address, length) = (address as usize, length as usize);
        prop_assert!(check_transfer(&Alignment::unknown(), address, length, offset, write).is_ok());
        let aligned = (address | length).is_multiple_of(4096) && offset.is_multiple_of(4096);
        let assumed = Alignment::unknown().or_assumed();
        prop_assert_eq!(assumed.source, AlignmentSource::Assumed);
        prop_assert_eq!(check_transfer(&assumed, address, length, offset, write).is_ok(), aligned);
    }
}

proptest! {
    // Each case is a file and up to eight writes.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Goal: read-modify-write changes the bytes it was given, and nothing else.
    /// Method: the same writes to a direct file and to a `Vec`; the file read as a whole, and in
    /// unaligned parts, equals the `Vec`. Offsets crowd around blocks; one write in eight is larger
    /// than the buffer through which blocks are carried.
    #[test]
    fn unaligned_writes_in_any_order_leave_the_bytes_of_plain_ones(
        writes in prop::collection::vec(
            (0..30_000u64, prop_oneof![7 => 0..9000usize, 1 => (1usize << 20) - 9000..(1 << 20) + 9000]),
            1..8,
        ),
        (from, length) in (0..40_000u64, 0..9000usize),
    ) {
        let folder = support::folder();
        let path = folder.path().join("data");
        let options = OpenOptions::new().read(true).write(true).create_new(true).policy(Policy::Prefer);
        let file = options.open(&path).unwrap();
        let mut model: Vec<u8> = Vec::new();
        for (number, (offset, length)) in writes.into_iter().enumerate() {
            let data: Vec<u8> = (0..length).map(|index| (index % 251) as u8 ^ (number as u8 + 1)).collect();
            let written = write_unaligned_by_read_modify_write_at(&file, &data, offset).unwrap();
            prop_assert_eq!(written.bytes, length);
            let (start, end) = (offset as usize, offset as usize + length);
            if length > 0 {
                model.resize(model.len().max(end), 0);
                model[start..end].copy_from_slice(&data);
            }
        }
        prop_assert!(std::fs::read(&path).unwrap() == model, "the file differs from the model");

        let mut part = vec![0; length];
        let read = read_unaligned_by_copy_at(&file, &mut part, from);
        let known = model.get(from as usize..).unwrap_or_default();
        if known.len() >= length {
            prop_assert_eq!(read.unwrap().bytes, length);
            prop_assert!(part == known[..length]);
        } else {
            let done = match read.unwrap_err() {
                TransferError::EndOfFile { done, .. } => done,
                error => panic!("{error}"),
            };
            prop_assert_eq!(done, known.len());
            prop_assert!(part[..done] == *known);
        }
    }
}
