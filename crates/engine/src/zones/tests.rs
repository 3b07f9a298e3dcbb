//! Write pointers by themselves.

use super::*;

const KIB: u64 = 1 << 10;

fn wish(zone: u32) -> Wish {
    Wish {
        zone,
        length: 4096,
        region: 0..4,
        resets_full: true,
        resets_now: false,
        writes_remainder: false,
        open_max: 0,
        own_open_max: 0,
        pick: 0,
    }
}

fn view(reads_beyond: bool) -> View {
    View { bytes: 0..u64::MAX, unit: 4096, reads_beyond }
}

fn write(map: &ZoneMap, who: Member, wish: &Wish) -> u64 {
    match map.place(who, wish) {
        Placement::At(offset, length) => {
            map.wrote(map.number_at(offset), u64::from(length));
            offset
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_zone_is_written_in_order_by_one_at_a_time_and_reset_when_it_is_full() {
    let map = ZoneMap::emulated(16 * KIB, 8 * KIB, 64 * KIB);
    let (one, other) = (Member::new(), Member::new());
    assert_eq!(map.place(one, &wish(1)), Placement::At(16 * KIB, 4096));
    assert_eq!(map.place(one, &wish(1)), Placement::Held { by_oneself: true });
    assert_eq!(map.place(other, &wish(1)), Placement::Held { by_oneself: false });
    // What is not complete cannot be read.
    assert_eq!(map.readable(1, &view(false)), 16 * KIB..16 * KIB);
    map.wrote(1, 4096);
    assert_eq!(map.readable(1, &view(false)), 16 * KIB..20 * KIB);
    assert_eq!(map.readable(1, &view(true)), 16 * KIB..24 * KIB);
    assert_eq!(write(&map, other, &wish(1)), 20 * KIB);
    // The capacity ends before the zone does.
    assert_eq!(map.place(one, &Wish { resets_full: false, ..wish(1) }), Placement::Full);
    assert_eq!(map.place(one, &wish(1)), Placement::Reset(1));
    assert_eq!(map.place(other, &wish(1)), Placement::Held { by_oneself: false });
    map.was_reset(1);
    assert_eq!(write(&map, other, &wish(1)), 16 * KIB);
}

#[test]
fn no_more_zones_are_open_than_may_be_and_what_is_left_open_makes_room() {
    let map = ZoneMap::emulated(16 * KIB, 16 * KIB, 64 * KIB);
    let (one, other) = (Member::new(), Member::new());
    let limited = |zone| Wish { open_max: 2, ..wish(zone) };
    assert_eq!(write(&map, one, &limited(0)), 0);
    assert_eq!(write(&map, one, &limited(1)), 16 * KIB);
    // The third goes to one that is open.
    assert_eq!(write(&map, one, &Wish { pick: 1, ..limited(2) }), 20 * KIB);
    // In a region without an open zone it waits until another member leaves one.
    let far = Wish { region: 2..4, ..limited(2) };
    assert_eq!(map.place(other, &far), Placement::Held { by_oneself: false });
    map.leave(one);
    let Placement::Finish(number) = map.place(other, &far) else { panic!("a zone that was left is finished") };
    map.was_finished(number);
    assert_eq!(write(&map, other, &far), 32 * KIB);
    // Its own limit.
    let own = |zone| Wish { own_open_max: 1, ..wish(zone) };
    assert_eq!(write(&map, other, &own(3)), 36 * KIB);
}

#[test]
fn a_rest_that_is_less_than_a_block_is_left_or_written() {
    let map = ZoneMap::emulated(16 * KIB, 6 * KIB, 64 * KIB);
    let one = Member::new();
    write(&map, one, &wish(0));
    assert_eq!(map.place(one, &Wish { resets_full: false, ..wish(0) }), Placement::Full);
    write(&map, one, &wish(1));
    let rest = Wish { writes_remainder: true, ..wish(1) };
    assert_eq!(map.place(one, &rest), Placement::At(20 * KIB, 2048));
}

/// Two zones as a device has them.
fn device(kinds: [Kind; 2]) -> ZoneMap {
    let zones = kinds.iter().zip(0..).map(|(kind, number)| {
        let zone = Zone::empty(number * 16 * KIB, (number + 1) * 16 * KIB);
        match kind {
            Kind::Conventional => Zone { kind: *kind, pointer: zone.end, data: zone.end, ..zone },
            _ => Zone { kind: *kind, ..zone },
        }
    });
    ZoneMap::new(16 * KIB, "made up".to_owned(), 0, zones.collect())
}

#[test]
fn what_was_not_written_when_a_zone_was_finished_is_not_read() {
    let map = device([Kind::Sequential; 2]);
    let one = Member::new();
    write(&map, one, &wish(0));
    let far = |zone| Wish { open_max: 1, region: 1..2, ..wish(zone) };
    map.leave(one);
    assert_eq!(map.place(one, &far(1)), Placement::Finish(0));
    map.was_finished(0);
    assert_eq!((map.pointer_at(0), map.readable(0, &view(false))), (Some(16 * KIB), 0..4096));
    // It is full all the same.
    assert_eq!(map.place(one, &wish(0)), Placement::Reset(0));
    map.was_reset(0);
    assert_eq!(write(&map, one, &wish(0)), 0);
}

#[test]
fn an_empty_zone_that_is_too_small_is_full() {
    let map = ZoneMap::emulated(16 * KIB, 8 * KIB, 64 * KIB);
    let one = Member::new();
    assert_eq!(map.place(one, &Wish { length: 12 << 10, ..wish(0) }), Placement::Full);
    assert_eq!(map.room_least(&(0..4)), Some(8 * KIB));
    let limited = Wish { open_max: 1, ..wish(0) };
    write(&map, one, &limited);
    assert_eq!(map.place(one, &Wish { length: 12 << 10, zone: 1, ..limited }), Placement::Full);
}

#[test]
fn a_zone_that_is_given_back_is_as_it_was() {
    let map = ZoneMap::emulated(16 * KIB, 8 * KIB, 64 * KIB);
    let one = Member::new();
    let limited = |zone| Wish { open_max: 1, ..wish(zone) };
    assert_eq!(map.place(one, &limited(0)), Placement::At(0, 4096));
    map.give_back(0);
    assert_eq!(write(&map, one, &limited(1)), 16 * KIB, "no zone is open");
    assert_eq!(map.place(one, &limited(0)), Placement::At(20 * KIB, 4096));
    map.give_back(1);
    assert_eq!(map.place(one, &limited(0)), Placement::At(20 * KIB, 4096), "this one still is");
}

#[test]
fn only_zones_that_are_written_in_order_count_as_written() {
    let map = device([Kind::Conventional, Kind::Sequential]);
    map.watch(&(0..2));
    assert!(map.written_part(&(0..2)) < 1e-9);
    write(&map, Member::new(), &wish(1));
    assert!((map.written_part(&(0..2)) - 0.25).abs() < 1e-9);
}

#[test]
fn trims_take_zones_with_data_and_what_is_written_is_counted() {
    let map = ZoneMap::emulated(16 * KIB, 16 * KIB, 64 * KIB);
    let one = Member::new();
    map.watch(&(0..4));
    assert_eq!(map.take(one, 0, &(0..4), false), Ok(None));
    write(&map, one, &wish(2));
    assert!((map.written_part(&(0..4)) - 1.0 / 16.0).abs() < 1e-9);
    assert_eq!(map.take(one, 3, &(0..4), false), Ok(Some(2)));
    assert_eq!(map.take(one, 3, &(0..4), false), Err(true));
    map.was_reset(2);
    assert!(map.written_part(&(0..4)) < 1e-9);
    assert_eq!(map.take(one, 0, &(0..4), false), Ok(None));
}
