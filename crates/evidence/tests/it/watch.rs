//! The watch and the map of a file, on this machine.

use crate::support::*;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;
use trueio_device::{System, target_facts};
use trueio_evidence::{Watch, map_file};
use trueio_model::Prepare;

/// On every filesystem, with FIEMAP or without: 4 MiB of data in a file of 16 MiB.
#[test]
fn a_map_separates_data_from_holes_and_ends_with_the_file() {
    for folder in [Some(folder()), tempfile::tempdir_in("/dev/shm").ok()].into_iter().flatten() {
        let path = folder.path().join("holed");
        let file = File::create_new(&path).and_then(|file| file.set_len(16 * MIB).map(|()| file)).expect("a file");
        file.write_all_at(&vec![7; 4 * MIB as usize], 8 * MIB).expect("4 MiB");
        file.sync_all().expect("fsync");
        let file = File::open(&path).expect("the file");
        let Ok(map) = map_file(&file, "holed", 0, 1 << 40) else {
            skip("holes", "neither FIEMAP nor SEEK_HOLE here");
            continue;
        };
        assert_eq!((map.region_bytes, map.stored_bytes, map.hole_bytes), (16 * MIB, 4 * MIB, 12 * MIB), "{map:?}");
        let part = map_file(&file, "holed", 9 * MIB, MIB).expect("a part");
        assert_eq!((part.region_bytes, part.stored_bytes, part.hole_bytes), (MIB, MIB, 0), "{part:?}");
        let beyond = map_file(&file, "holed", 32 * MIB, MIB).expect("nothing");
        assert_eq!((beyond.region_bytes, beyond.stored_bytes, beyond.hole_bytes), (0, 0, 0), "{beyond:?}");
    }
    assert!(map_file(&File::open("/dev/null").expect("/dev/null"), "null", 0, 1).is_err());
}

/// Blocks of 4 KiB with a hole between them give as many extents, more than one call returns.
#[test]
fn a_fragmented_file_is_mapped_completely() {
    let folder = folder();
    let path = folder.path().join("pieces");
    let file = File::create_new(&path).expect("a file");
    for piece in 0..1000 {
        file.write_all_at(&[7; 4096], piece * 8192).expect("a block");
    }
    file.sync_all().expect("fsync");
    let Ok(map) = map_file(&file, "pieces", 0, 1000 * 8192) else {
        return skip("holes", "neither FIEMAP nor SEEK_HOLE here");
    };
    // The file ends with its last block. Filesystems with larger blocks have fewer holes.
    assert_eq!(map.region_bytes, 1000 * 8192 - 4096);
    if map.extent_count >= 1000 {
        assert_eq!((map.stored_bytes, map.hole_bytes), (1000 * 4096, 999 * 4096), "{map:?}");
    }
}

#[test]
fn an_unobservable_file_becomes_a_note_and_the_others_are_observed() {
    let folder = folder();
    let path = folder.path().join("data");
    drop(stored_file(&path, MIB));
    let system = System::live();
    let targets = [target_facts(&system, folder.path()).expect("facts")];
    let file = |path: &Path, prepare| {
        let mut job = reads(MIB);
        job.files[0].path = path.display().to_string();
        job.files[0].prepare = prepare;
        job.files.remove(0)
    };
    let files = [
        file(&path, Prepare::UseExisting),
        file(&folder.path().join("missing"), Prepare::UseExisting),
        file(Path::new("never opened"), Prepare::Nothing),
    ];
    let mut watch = Watch::new(&system, &targets, &files);
    watch.baseline(Duration::from_millis(5));
    watch.before(None);
    assert_eq!(std::fs::read(&path).expect("the file").len() as u64, MIB);
    let seen = watch.after();
    assert_eq!(seen.devices.len(), targets[0].disks.len());
    assert!(seen.devices.iter().all(|delta| delta.baseline_ns >= 5_000_000 && delta.measured_ns > 0));
    assert_eq!((seen.residency.len(), seen.maps.len(), seen.notes.len()), (2, 1, 1), "{seen:?}");
    assert!(seen.notes[0].contains("missing"));
    let after = seen.residency[0].2.as_ref().expect("the file's cached pages");
    assert_eq!(after.cached_pages * after.page_bytes, MIB);
    // The next phase starts afresh.
    watch.before(None);
    assert!(watch.after().cost_ns > 0);
}

#[test]
#[should_panic(expected = "`before` is called first")]
fn after_without_before_panics() {
    Watch::new(&System::live(), &[], &[]).after();
}
