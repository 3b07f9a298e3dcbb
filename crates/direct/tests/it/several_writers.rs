//! Parallel writers of one file, held against a `Vec`. *(Linux)*
//!
//! Goal: no acknowledged write is lost, whatever others write, append, copy, reserve or truncate in the same blocks at the
//! same time, in this process and in another one.
//! Method: in each round, writers change disjoint ranges of bytes at once. The ranges lie next to one another, so most
//! blocks have several writers. Between two rounds, the file must equal the model, which has all writes.
//!
//! `TRUEIO_MODEL_ROUNDS` sets the number of rounds on each filesystem, `TRUEIO_MODEL_SEED` the first random number.
//!
//! Needs root, `losetup` and `mkfs.*` for the other filesystems; prints why a part is skipped otherwise.
#![cfg(target_os = "linux")]

use std::fs::{File, OpenOptions as PlainOptions};
use std::io::{BufRead, BufReader, IoSlice, Seek, SeekFrom, Write};
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use trueio_direct::{
    AlignedBuffer, CopyOptions, DirectFile, DirectReader, DirectWriter, OpenOptions, Policy, TransferError, copy_file,
    preallocate, read_unaligned_by_copy_at, write_dsync_at, write_unaligned_by_read_modify_write_at,
};
use trueio_testkit::{Mount, folder, loop_of, on_loop, skip};

const MIB: u64 = 1 << 20;
/// A multiple of the blocks of every filesystem here.
const BLOCK: usize = 4096;
/// Ranges begin below this.
const FILE_BYTES: usize = 96 << 10;
/// Writers of one round.
const WRITERS: usize = 5;

fn number_of(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect(variable))
}

/// xorshift64*: the same rounds for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }
}

/// How a range is written, or what else happens meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Unaligned,
    Aligned,
    Vectored,
    Durable,
    Stream,
    Copy,
    /// Reserves the range and changes no byte.
    Reserve,
    /// Reads a range that no one writes, in blocks that others write.
    Read,
    /// A plain write of another process.
    Foreign,
}

const DEEDS: [Deed; 12] = [
    Deed::Unaligned,
    Deed::Unaligned,
    Deed::Unaligned,
    Deed::Aligned,
    Deed::Vectored,
    Deed::Durable,
    Deed::Stream,
    Deed::Stream,
    Deed::Copy,
    Deed::Reserve,
    Deed::Read,
    Deed::Foreign,
];

/// What the other process does to the length of the file, or this one without a range of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Foreign {
    Nothing,
    /// Appends, while no other writer makes the file longer.
    Append(usize),
    /// Sets the length to one that is not below the end of a range.
    Truncate(usize),
    /// As `Truncate`, by `DirectFile::truncate` of this process.
    TruncateHere(usize),
}

#[derive(Clone, Debug)]
struct Task {
    deed: Deed,
    range: Range<usize>,
    mark: u8,
    /// With a descriptor of its own.
    is_own: bool,
}

impl Task {
    fn data(&self) -> Vec<u8> {
        self.range.clone().map(|position| (position % 251) as u8 ^ self.mark).collect()
    }
}

/// Selects disjoint ranges, most of which share blocks with the next one.
fn tasks(random: &mut Random, round: u64, deeds: &[Deed]) -> Vec<Task> {
    let mut position = random.below(FILE_BYTES);
    (0..WRITERS)
        .map(|writer| {
            let deed = deeds[random.below(deeds.len())];
            let length = match random.below(4) {
                0 => 1 + random.below(20),
                1 => 510 + random.below(5),
                2 => 4094 + random.below(5),
                _ => 1 + random.below(3 * BLOCK),
            };
            let gap = if random.below(3) == 0 { random.below(2 * BLOCK) } else { random.below(3) };
            let start = position + gap;
            let range = match deed {
                Deed::Aligned | Deed::Vectored | Deed::Durable => {
                    let start = start.next_multiple_of(BLOCK);
                    start..start + length.next_multiple_of(BLOCK)
                }
                _ => start..start + length,
            };
            position = range.end;
            let mark = (round as usize * WRITERS + writer) as u8 | 1;
            Task { deed, range, mark, is_own: random.below(2) == 0 }
        })
        .collect()
}

fn options() -> OpenOptions {
    OpenOptions::new().read(true).write(true).policy(Policy::Prefer)
}

/// Does what the task asks for.
fn carry_out(task: &Task, shared: &DirectFile, path: &Path, model: &[u8], other: Option<&Mutex<OtherProcess>>) {
    let own = task.is_own.then(|| options().open(path).unwrap());
    let file = own.as_ref().unwrap_or(shared);
    let (data, offset) = (task.data(), task.range.start as u64);
    let aligned = || {
        let mut buffer = AlignedBuffer::new(data.len(), BLOCK).unwrap();
        buffer.copy_from_slice(&data);
        buffer
    };
    match task.deed {
        Deed::Unaligned => {
            assert_eq!(write_unaligned_by_read_modify_write_at(file, &data, offset).unwrap().bytes, data.len());
        }
        Deed::Aligned => assert_eq!(file.write_all_at(&aligned(), offset).unwrap().bytes, data.len()),
        Deed::Durable => assert_eq!(write_dsync_at(file, &aligned(), offset).unwrap().bytes, data.len()),
        Deed::Vectored => {
            let buffer = aligned();
            let mut parts: Vec<IoSlice<'_>> = buffer.chunks(BLOCK).map(IoSlice::new).collect();
            assert_eq!(file.write_vectored_at(&mut parts, offset).unwrap().bytes, data.len());
        }
        Deed::Stream => {
            let mut writer = DirectWriter::with_capacity(BLOCK, options().open(path).unwrap()).unwrap();
            writer.seek(SeekFrom::Start(offset)).unwrap();
            for piece in data.chunks(1 + usize::from(task.mark) * 17) {
                writer.write_all(piece).unwrap();
                if piece[0].is_multiple_of(3) {
                    writer.flush().unwrap();
                }
            }
            writer.finish().unwrap();
        }
        Deed::Copy => {
            let source = path.with_extension(task.range.start.to_string());
            std::fs::write(&source, &data).unwrap();
            let options = CopyOptions::new().overwrite(true).destination_offset(offset).flush(None).buffer_bytes(1);
            // A disk is opened exclusively, which another loop device's holder does not prevent.
            copy_file(&source, path, &options, |_| ControlFlow::Continue(())).unwrap();
            std::fs::remove_file(&source).unwrap();
        }
        Deed::Reserve => match preallocate(file.file(), offset, data.len() as u64) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {}
            Err(error) => panic!("{error:?}"),
        },
        Deed::Read => {
            let expected = model.get(task.range.clone().start..).unwrap_or_default();
            let mut back = vec![0; expected.len().min(data.len())];
            match read_unaligned_by_copy_at(file, &mut back, offset) {
                Ok(_) => assert!(back == expected[..back.len()], "a read of {:?} differs from the model", task.range),
                // The other process makes the file shorter.
                Err(TransferError::EndOfFile { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        Deed::Foreign => {
            let other = other.expect("only regular files have foreign writers");
            other.lock().unwrap().asked("write", &[task.range.start, data.len(), usize::from(task.mark)]);
        }
    }
}

/// Applies the writes of a round to the model.
fn apply(model: &mut Vec<u8>, tasks: &[Task], can_reserve: bool) {
    for task in tasks {
        match task.deed {
            Deed::Read => continue,
            Deed::Reserve if !can_reserve => continue,
            _ => model.resize(model.len().max(task.range.end), 0),
        }
        if task.deed != Deed::Reserve {
            model[task.range.clone()].copy_from_slice(&task.data());
        }
    }
}

fn assert_equal(path: &Path, model: &[u8], is_direct: bool, what: impl Fn() -> String) {
    let found = if is_direct {
        let mut whole = Vec::new();
        let mut reader =
            DirectReader::new(OpenOptions::new().read(true).policy(Policy::Prefer).open(path).unwrap()).unwrap();
        std::io::Read::read_to_end(&mut reader, &mut whole).unwrap();
        whole
    } else {
        std::fs::read(path).unwrap()
    };
    let differs = found.iter().zip(model).position(|(found, expected)| found != expected);
    assert!(
        found == model,
        "the file has {} bytes and the model {}; the first difference is at {differs:?}; {}",
        found.len(),
        model.len(),
        what()
    );
}

/// Rounds of parallel writers on one regular file in `folder`, in which another process appends and writes through
/// the page cache, too.
fn assert_keeps_every_write(folder: &Path, rounds: u64) {
    let path = folder.join("data");
    let _ = std::fs::remove_file(&path);
    let shared = options().create_new(true).open(&path).unwrap();
    let can_reserve = preallocate(shared.file(), 0, 1).is_ok();
    let other = Mutex::new(OtherProcess::start(&path));
    let mut model = std::fs::read(&path).unwrap();
    let seed = number_of("TRUEIO_MODEL_SEED", 0x5eed);
    let mut random = Random(seed | 1);
    for round in 0..rounds {
        let mut tasks = tasks(&mut random, round, &DEEDS);
        let end = tasks.iter().map(|task| task.range.end).max().unwrap();
        let foreign = match random.below(4) {
            0 => Foreign::Nothing,
            1 => {
                // Writers at the end of the file do not make it longer, or the position of the record is not defined.
                tasks.retain(|task| task.range.end <= model.len());
                Foreign::Append(1 + random.below(2 * BLOCK))
            }
            2 => Foreign::TruncateHere(end + random.below(600)),
            _ => Foreign::Truncate(end + random.below(600)),
        };
        let before = model.clone();
        let mark = (round % 200) as u8 + 1;
        std::thread::scope(|scope| {
            for task in &tasks {
                let (shared, path, before, other) = (&shared, &path, &before, &other);
                scope.spawn(move || carry_out(task, shared, path, before, Some(other)));
            }
            match foreign {
                Foreign::Nothing => {}
                Foreign::Append(length) => other.lock().unwrap().asked("append", &[length, usize::from(mark)]),
                Foreign::Truncate(length) => other.lock().unwrap().asked("truncate", &[length]),
                Foreign::TruncateHere(length) => shared.truncate(length as u64).unwrap(),
            }
        });
        apply(&mut model, &tasks, can_reserve);
        match foreign {
            Foreign::Nothing => {}
            Foreign::Append(length) => model.resize(model.len() + length, mark),
            Foreign::Truncate(length) | Foreign::TruncateHere(length) => model.resize(length, 0),
        }
        assert_equal(&path, &model, round % 2 == 0, || {
            format!("seed {seed}, round {round}, {foreign:?}, {tasks:#?} on `{}`", path.display())
        });
        if model.len() > 2 * FILE_BYTES {
            std::fs::File::options().write(true).open(&path).unwrap().set_len(FILE_BYTES as u64 / 2 + 77).unwrap();
            model.truncate(FILE_BYTES / 2 + 77);
        }
    }
}

/// Rounds of parallel writers of this process on a disk.
fn assert_keeps_every_write_on_a_disk(sector: u32, rounds: u64) {
    let below = match loop_of(MIB, sector) {
        Ok(below) => below,
        Err(reason) => return skip("loop", &reason),
    };
    let folder = folder();
    let path = folder.path().join("disk");
    std::os::unix::fs::symlink(below.path(), &path).unwrap();
    let shared = options().open(&path).unwrap();
    assert_eq!(shared.truncate(0).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    let mut model = std::fs::read(&path).unwrap();
    let deeds: Vec<Deed> =
        DEEDS.into_iter().filter(|deed| !matches!(deed, Deed::Foreign | Deed::Reserve | Deed::Copy)).collect();
    let mut random = Random(number_of("TRUEIO_MODEL_SEED", 0x5eed) | 1);
    for round in 0..rounds {
        let tasks = tasks(&mut random, round, &deeds);
        std::thread::scope(|scope| {
            for task in &tasks {
                let (shared, path, model) = (&shared, &path, &model);
                scope.spawn(move || carry_out(task, shared, path, model, None));
            }
        });
        apply(&mut model, &tasks, false);
        assert_equal(&path, &model, true, || format!("round {round}, {tasks:#?} on a disk"));
    }
}

/// A process that appends to, truncates and writes the file with plain calls.
struct OtherProcess {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

const FILE_OF_OTHER_PROCESS: &str = "TRUEIO_MODEL_FILE";

impl OtherProcess {
    fn start(path: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "several_writers::serve_another_process", "--nocapture", "--test-threads=1"])
            .env(FILE_OF_OTHER_PROCESS, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (commands, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, commands, answers }
    }

    /// Waits until the other process has done what is asked for.
    fn asked(&mut self, what: &str, numbers: &[usize]) {
        let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
        writeln!(self.commands, "{what} {}", numbers.join(" ")).unwrap();
        for line in (&mut self.answers).lines() {
            // The harness of the tests prints lines of its own.
            match line.unwrap().as_str() {
                "done" => return,
                line if line.contains("failed") => panic!("{what}: {line}"),
                _ => {}
            }
        }
        panic!("the other process has ended");
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The other process of the tests above, which start it with the path of the file. Without that it does nothing.
#[test]
fn serve_another_process() {
    let Ok(path) = std::env::var(FILE_OF_OTHER_PROCESS) else { return };
    let file = PlainOptions::new().read(true).write(true).open(&path).unwrap();
    let mut appender = PlainOptions::new().append(true).open(&path).unwrap();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let (what, numbers) = line.split_once(' ').unwrap();
        let numbers: Vec<usize> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
        match (what, numbers.as_slice()) {
            ("append", [length, mark]) => appender.write_all(&vec![*mark as u8; *length]).unwrap(),
            ("truncate", [length]) => file.set_len(*length as u64).unwrap(),
            ("write", [offset, length, mark]) => {
                let task =
                    Task { deed: Deed::Foreign, range: *offset..offset + length, mark: *mark as u8, is_own: true };
                file.write_all_at(&task.data(), *offset as u64).unwrap();
            }
            other => panic!("failed: {other:?}"),
        }
        println!("\ndone");
    }
}

#[test]
fn no_acknowledged_write_is_lost() {
    assert_keeps_every_write(folder().path(), number_of("TRUEIO_MODEL_ROUNDS", 150));
}

#[test]
fn no_acknowledged_write_is_lost_on_every_filesystem() {
    let rounds = number_of("TRUEIO_MODEL_ROUNDS", 40);
    let on = |mount: Result<Mount, String>, need: &str| match mount {
        Ok(mount) => assert_keeps_every_write(&mount.path, rounds),
        Err(reason) => skip(need, &reason),
    };
    for sector in [512, 4096] {
        on(on_loop("ext4", 64 * MIB, sector, ""), "loop");
        on(on_loop("xfs", 512 * MIB, sector, ""), "xfs");
    }
    on(on_loop("btrfs", 256 * MIB, 512, ""), "btrfs");
    on(Mount::create("tmpfs", "tmpfs", "size=16m"), "mount");
}

#[test]
fn no_acknowledged_write_of_one_process_is_lost_on_a_disk() {
    for sector in [512, 4096] {
        assert_keeps_every_write_on_a_disk(sector, number_of("TRUEIO_MODEL_ROUNDS", 60));
    }
}

/// Writes through both descriptors of each pair at once, `rounds` times, and returns how often one was lost.
fn lost(folder: &Path, rounds: usize, offsets: &[u64], write: impl Fn(&Path, u64) + Sync) -> usize {
    let path = folder.join("pair");
    (0..rounds)
        .filter(|_| {
            let _ = std::fs::remove_file(&path);
            File::create(&path).unwrap();
            std::thread::scope(|scope| {
                for offset in offsets {
                    let (path, write) = (&path, &write);
                    scope.spawn(move || write(path, *offset));
                }
            });
            let bytes = std::fs::read(&path).unwrap();
            let end = *offsets.iter().max().unwrap() as usize + 5;
            bytes.len() != end || offsets.iter().any(|offset| bytes[*offset as usize..][..5] != *b"hello")
        })
        .count()
}

#[test]
fn writers_of_parts_of_distant_blocks_keep_each_others_bytes() {
    let folder = folder();
    let unaligned = |path: &Path, offset| {
        let file = options().open(path).unwrap();
        write_unaligned_by_read_modify_write_at(&file, b"hello", offset).unwrap();
    };
    assert_eq!(lost(folder.path(), 50, &[0, MIB], unaligned), 0);
    assert_eq!(lost(folder.path(), 50, &[0, 5, 10, 511, 4095, 8000], unaligned), 0);
    let stream = |path: &Path, offset| {
        let mut writer = DirectWriter::new(options().open(path).unwrap()).unwrap();
        writer.seek(SeekFrom::Start(offset)).unwrap();
        writer.write_all(b"hello").unwrap();
        writer.finish().unwrap();
    };
    assert_eq!(lost(folder.path(), 50, &[0, MIB, 2 * MIB, 3 * MIB], stream), 0);
    let source = folder.path().join("source");
    std::fs::write(&source, b"hello").unwrap();
    let copy = |path: &Path, offset| {
        let options = CopyOptions::new().overwrite(true).destination_offset(offset).flush(None);
        copy_file(&source, path, &options, |_| ControlFlow::Continue(())).unwrap();
    };
    assert_eq!(lost(folder.path(), 50, &[0, MIB, 2 * MIB, 3 * MIB], copy), 0);
}

/// Goal: copies that create their destination together keep each other's parts, also those that end with a hole.
#[test]
fn copies_that_create_one_file_together_keep_each_others_parts() {
    let folder = folder();
    let source = folder.path().join("source");
    let file = File::create(&source).unwrap();
    file.write_all_at(&[7; 5000], 0).unwrap();
    file.set_len(100_000).unwrap();
    let path = folder.path().join("together");
    for _ in 0..30 {
        let _ = std::fs::remove_file(&path);
        std::thread::scope(|scope| {
            for part in [0, 3, 1, 2] {
                let (source, path) = (&source, &path);
                scope.spawn(move || {
                    let options = CopyOptions::new().overwrite(true).destination_offset(part * 100_000).flush(None);
                    copy_file(source, path, &options, |_| ControlFlow::Continue(())).unwrap();
                });
            }
        });
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.len(), 400_000);
        for part in whole.chunks(100_000) {
            assert!(part[..5000].iter().all(|byte| *byte == 7) && part[5000..].iter().all(|byte| *byte == 0));
        }
    }
}

/// Goal: XFS fails a direct read whose range includes space beyond the end that it reserved for buffered writes; reads of this crate
/// succeed.
/// Method: two buffered writes, of which the second reserves more than it fills, and a direct one after them, whose space is taken from the
/// middle of that. Nothing is dirty when it is read, and the reserved space lies beyond the end.
#[test]
fn a_read_beyond_the_end_meets_space_that_is_reserved_for_buffered_writes() {
    let mount = match on_loop("xfs", 512 * MIB, 512, "") {
        Ok(mount) => mount,
        Err(reason) => return skip("xfs", &reason),
    };
    let path = mount.path.join("data");
    let plain = File::create(&path).unwrap();
    let file = options().open(&path).unwrap();
    plain.write_all_at(&[1; 3908], 65_607).unwrap();
    plain.write_all_at(&[2; 6316], 90_734).unwrap();
    let mut buffer = AlignedBuffer::new(MIB as usize, BLOCK).unwrap();
    file.write_all_at(&buffer[..BLOCK], 98_304).unwrap();
    match file.file().read_at(&mut buffer, 0) {
        Err(error) if error.raw_os_error() == Some(libc::EIO) => {}
        other => return skip("collision", &format!("this kernel reads it: {other:?}")),
    }
    let mut model = vec![0; 98_304 + BLOCK];
    model[65_607..][..3908].fill(1);
    model[90_734..][..6316].fill(2);

    let read = file.read_at(&mut buffer, 0).unwrap().bytes;
    assert!(buffer[..read] == model);
    let (one, other) = buffer.split_at_mut(8 * BLOCK);
    one.fill(9);
    other.fill(9);
    let mut parts = [one, other].map(std::io::IoSliceMut::new);
    let read = file.read_vectored_at(&mut parts, 0).unwrap().bytes;
    assert!(buffer[..read] == model);
    let mut whole = vec![9; model.len()];
    read_unaligned_by_copy_at(&file, &mut whole, 0).unwrap();
    assert!(whole == model);
    assert_equal(&path, &model, true, || "read as a stream".into());
    let copy = mount.path.join("copy");
    copy_file(&path, &copy, &CopyOptions::new(), |_| ControlFlow::Continue(())).unwrap();
    assert_equal(&copy, &model, false, || "copied".into());
}

/// Goal: an error of a reservation does not cut what another writer appends meanwhile.
/// Method: one thread requests more than the filesystem holds, again and again, while another appends.
#[test]
fn a_failed_reservation_cuts_no_appended_byte() {
    let check = |mount: &Mount| {
        let path = mount.path.join("log");
        let file = File::create(&path).unwrap();
        std::thread::scope(|scope| {
            let appender = scope.spawn(|| {
                let mut log = PlainOptions::new().append(true).open(&path).unwrap();
                for record in 0..2000u32 {
                    log.write_all(&record.to_le_bytes()).unwrap();
                }
            });
            while !appender.is_finished() {
                assert!(preallocate(&file, 0, 3 << 30).is_err());
            }
        });
        let log = std::fs::read(&path).unwrap();
        assert_eq!(log.len(), 8000, "on `{}`", mount.path.display());
        assert!(log.chunks(4).enumerate().all(|(index, record)| record == (index as u32).to_le_bytes()));
        // What a failed reservation took is free again.
        std::fs::write(mount.path.join("more"), vec![1; 8 << 20]).unwrap();
    };
    for (kind, size, need) in [("ext4", 64 * MIB, "loop"), ("xfs", 512 * MIB, "xfs"), ("btrfs", 256 * MIB, "btrfs")] {
        match on_loop(kind, size, 512, "") {
            Ok(mount) => check(&mount),
            Err(reason) => skip(need, &reason),
        }
    }
}

/// Goal: a part of a block is refused with its reason where the file cannot be opened again, and whole blocks are written.
/// Method: `chattr +a` after the file was opened: it can be opened only to append.
#[test]
fn a_part_of_a_block_is_refused_where_the_file_cannot_be_opened_again() {
    let mount = match on_loop("ext4", 64 * MIB, 512, "") {
        Ok(mount) => mount,
        Err(reason) => return skip("loop", &reason),
    };
    let path = mount.path.join("data");
    let file = options().create_new(true).open(&path).unwrap();
    let attribute = |change: &str| {
        let status = Command::new("chattr").arg(change).arg(&path).status();
        status.is_ok_and(|status| status.success())
    };
    if !attribute("+a") {
        return skip("chattr", "chattr +a failed");
    }
    let refused = write_unaligned_by_read_modify_write_at(&file, b"part", 100).unwrap_err();
    assert!(matches!(refused, TransferError::PartOfBlock { block_bytes: 512, done: 0, .. }), "{refused:?}");
    assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
    let mut buffer = AlignedBuffer::new(BLOCK, BLOCK).unwrap();
    buffer.fill(7);
    file.write_all_at(&buffer, 0).unwrap();
    write_unaligned_by_read_modify_write_at(&file, &buffer, 4096).expect("whole blocks");
    assert!(attribute("-a"));
    write_unaligned_by_read_modify_write_at(&file, b"part", 8192).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 8196);
}

/// Goal: an unlinked file and one that is open only for writing take any bytes, and no dirty page remains.
#[test]
fn a_part_of_a_block_needs_neither_a_name_nor_permission_to_read() {
    let folder = folder();
    let path: PathBuf = folder.path().join("data");
    let file = OpenOptions::new().write(true).create_new(true).policy(Policy::Prefer).mode(0o200).open(&path).unwrap();
    let reader = File::options().read(true).custom_flags(libc::O_CLOEXEC).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    write_unaligned_by_read_modify_write_at(&file, b"unlinked", 4090).unwrap();
    let cached = trueio_direct::residency(&reader, 0, 0).unwrap();
    if file.granted() == trueio_direct::Granted::Direct {
        assert_eq!((cached.dirty_pages.unwrap_or(0), cached.cached_pages), (0, 0), "{cached:?}");
    }
    let mut back = [1; 4098];
    reader.read_exact_at(&mut back, 0).unwrap();
    assert!(back[..4090].iter().all(|byte| *byte == 0) && back[4090..] == *b"unlinked");
    assert_eq!(reader.metadata().unwrap().len(), 4098);
}
