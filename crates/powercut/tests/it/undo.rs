//! The journal: what it restores, from whole and from damaged files.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Write};
use trueio_powercut::{
    BLOCK_BYTES, Disk, DiskIdentity, Durable, Journal, JournalError, JournalHead, Keeper, read_head, restore,
};

#[derive(Default)]
struct Memory(Vec<u8>);

impl Write for Memory {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Durable for Memory {
    fn make_durable(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A disk that wraps at `size` blocks and cannot write block 3.
struct Wrapping {
    size: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl Disk for Wrapping {
    fn read(&mut self, block: u64, data: &mut [u8]) -> io::Result<()> {
        for (block, data) in (block..).zip(data.chunks_exact_mut(BLOCK_BYTES)) {
            data.copy_from_slice(&self.blocks[&(block % self.size)]);
        }
        Ok(())
    }

    fn write(&mut self, block: u64, data: &[u8]) -> io::Result<()> {
        for (block, data) in (block..).zip(data.chunks_exact(BLOCK_BYTES)) {
            if block == 3 {
                return Err(io::Error::from_raw_os_error(5));
            }
            self.blocks.insert(block % self.size, data.to_vec());
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn head() -> JournalHead {
    let disk = DiskIdentity { size_bytes: 1 << 20, model: None, serial: Some("7".into()), wwid: None, inode: None };
    JournalHead { path: "/dev/sdx".to_owned(), disk, run: 9, signatures: vec!["ext4".to_owned()] }
}

fn block(byte: u8) -> Vec<u8> {
    vec![byte; BLOCK_BYTES]
}

/// A journal of blocks 0 to 1, 8, and of a later look at block 20, which wraps to block 0 and held a test block by then.
fn journal() -> Vec<u8> {
    let mut journal = Journal::begin(Memory::default(), &head()).expect("begun");
    journal.keep(0, &[block(1), block(2)].concat()).expect("kept");
    journal.keep(8, &block(3)).expect("kept");
    journal.keep(20, &block(0xee)).expect("kept");
    journal.commit().expect("committed");
    journal.into_file().0
}

fn disk() -> Wrapping {
    Wrapping { size: 20, blocks: (0..20).map(|number| (number, block(0xff))).collect() }
}

/// Goal: on a disk that wraps, the first content of each place returns.
#[test]
fn the_last_record_is_written_back_first() {
    let mut disk = disk();
    let restored = restore(&mut Cursor::new(journal()), &mut disk, |_, _| {}).expect("restored");
    assert_eq!((restored.block_count, restored.failed_count), (4, 0));
    assert_eq!([0, 1, 8, 2].map(|number| disk.blocks[&number][0]), [1, 2, 3, 0xff]);
}

/// Goal: a kill while a record is written loses nothing: its blocks were not written.
/// Method: the journal is cut within the last record.
#[test]
fn an_incomplete_record_at_the_end_is_left_out() {
    let whole = journal();
    for left in (0..BLOCK_BYTES + 24).step_by(7) {
        let cut = whole[..whole.len() - BLOCK_BYTES - 24 + left].to_vec();
        let restored = restore(&mut Cursor::new(cut), &mut disk(), |_, _| {}).expect("restored");
        assert_eq!(restored.block_count, 3, "{left}");
    }
}

#[test]
fn a_damaged_journal_writes_nothing() {
    let mut damaged = journal();
    let at = damaged.len() - 2 * (BLOCK_BYTES + 24) - 100;
    damaged[at] ^= 1;
    let mut disk = disk();
    let error = restore(&mut Cursor::new(damaged), &mut disk, |_, _| {}).expect_err("damaged");
    assert!(matches!(error, JournalError::Damaged { .. }), "{error:?}");
    assert!(disk.blocks.values().all(|data| data[0] == 0xff));
    for other in [&b"a text"[..], &[0; 5000]] {
        let error = read_head(&mut &other[..]).expect_err("another file");
        assert!(matches!(error, JournalError::NotAJournal), "{error:?}");
    }
    assert_eq!(read_head(&mut journal().as_slice()).expect("a head"), head());
}

/// Goal: a record of blocks that the disk does not have is written nowhere: its offset in bytes would exceed 64 bits.
#[test]
fn a_record_beyond_the_disk_writes_nothing() {
    for start in [256, 255, (1 << 52) + 5, u64::MAX] {
        let mut journal = Journal::begin(Memory::default(), &head()).expect("begun");
        journal.keep(0, &block(1)).expect("kept");
        journal.keep(start, &[block(2), block(3)].concat()).expect("kept");
        let mut disk = disk();
        let error = restore(&mut Cursor::new(journal.into_file().0), &mut disk, |_, _| {}).expect_err("damaged");
        assert!(matches!(error, JournalError::Damaged { .. }), "{start}: {error:?}");
        assert!(disk.blocks.values().all(|data| data[0] == 0xff), "{start}");
    }
}

#[test]
fn a_block_that_cannot_be_written_back_is_counted() {
    let mut journal = Journal::begin(Memory::default(), &head()).expect("begun");
    journal.keep(2, &[block(1), block(2), block(3)].concat()).expect("kept");
    let restored = restore(&mut Cursor::new(journal.into_file().0), &mut disk(), |_, _| {}).expect("restored");
    assert_eq!((restored.block_count, restored.failed_count), (2, 1));
}
