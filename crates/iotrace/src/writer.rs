//! Writes a trace while the jobs run.
//!
//! The writer's thread takes chunks of I/Os from a channel of bounded length and collects [`PAGE_ROWS`] rows, which it encodes as one
//! page of each column: so few that they stay in the processor's cache. The pages of [`GROUP_ROWS`] rows are written as one row group. A worker does not wait for it: if the channel is full, the worker drops its chunk and
//! counts the rows.

use crate::format::{COLUMNS, Dropped, HEADER_KEY, TraceError, TraceHeader, TracedJob, VERSION, number_of};
use crate::parquet::{Chunk, Column, Encoding, FileWriter, Kind, delta};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Instant;
use trueio_engine::{DroppedIos, LogChunk, TraceChannel, TracedIo, log_channel};

/// Rows of a page: 480 KiB before they are encoded.
const PAGE_ROWS: usize = 8_192;
/// Rows of a group, about 1 MiB encoded. The file's description grows by about 500 bytes with each group.
const GROUP_ROWS: usize = 16 * PAGE_ROWS;

/// What a trace contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSummary {
    /// Rows in the file.
    pub rows: u64,
    /// Rows that are missing.
    pub dropped: Vec<Dropped>,
}

/// A trace that is being written.
#[derive(Debug)]
pub struct TraceWriter(JoinHandle<Result<TraceSummary, TraceError>>);

impl TraceWriter {
    /// Starts to write a trace of these jobs, whose times begin now; returns the channel of its workers, too.
    ///
    /// # Errors
    /// The file cannot be written, or the thread cannot be started.
    pub fn start(file: File, jobs: Vec<TracedJob>) -> Result<(Self, TraceChannel), TraceError> {
        let (channel, chunks) = log_channel();
        let groups = Groups::new(file)?;
        let thread =
            std::thread::Builder::new().name("trace".to_owned()).spawn(move || write_all(groups, &chunks, jobs))?;
        Ok((Self(thread), TraceChannel { channel, began: Instant::now() }))
    }

    /// Waits until all channels are gone and the rest is written.
    ///
    /// # Errors
    /// The first write that failed.
    pub fn finish(self) -> Result<TraceSummary, TraceError> {
        let panicked = |_| Err(io::Error::other("the thread that writes the trace panicked: a bug of trueio").into());
        self.0.join().unwrap_or_else(panicked)
    }
}

fn write_all(
    mut groups: Groups,
    chunks: &Receiver<LogChunk<TracedIo>>,
    jobs: Vec<TracedJob>,
) -> Result<TraceSummary, TraceError> {
    let mut dropped: BTreeMap<u32, Dropped> = BTreeMap::new();
    let mut result = Ok(());
    for chunk in chunks {
        let worker = chunk.worker;
        if let Some(DroppedIos { count, from_ns, to_ns }) = chunk.dropped {
            let of_worker = dropped.entry(worker).or_insert(Dropped { worker, rows: 0, from_ns, to_ns });
            of_worker.rows += count;
            of_worker.to_ns = to_ns;
        }
        // After a failure the channel is emptied, so that no worker's last chunk waits.
        if result.is_ok() {
            result = groups.add(worker, &chunk.ios);
        }
        chunk.give_back();
    }
    result?;
    let dropped: Vec<Dropped> = dropped.into_values().collect();
    let rows = groups.finish(&TraceHeader { version: VERSION, jobs, dropped: dropped.clone() })?;
    Ok(TraceSummary { rows, dropped })
}

/// The file, the columns of the group in the making, and the rows of its next page.
struct Groups {
    file: FileWriter<BufWriter<File>>,
    columns: [Chunk; COLUMNS.len()],
    page: Page,
    /// Room for an encoded page.
    encoded: Vec<u8>,
    /// Rows of the group, without those of the next page.
    group_rows: usize,
    rows: u64,
}

/// Rows that are not encoded yet, by column.
struct Page {
    /// The columns with 64 bits, in the order of [`COLUMNS`].
    wide: [Vec<i64>; 5],
    /// The others.
    narrow: [Vec<i32>; 5],
}

impl Page {
    fn new() -> Self {
        Self {
            wide: std::array::from_fn(|_| Vec::with_capacity(PAGE_ROWS)),
            narrow: std::array::from_fn(|_| Vec::with_capacity(PAGE_ROWS)),
        }
    }

    fn len(&self) -> usize {
        self.wide[0].len()
    }

    fn extend(&mut self, worker: u32, ios: &[TracedIo]) {
        // Column by column: the compiler sees each length in advance and copies with vectors.
        let [end, offset, slat, clat, intended] = &mut self.wide;
        end.extend(ios.iter().map(|io| io.end_ns as i64));
        offset.extend(ios.iter().map(|io| io.offset as i64));
        slat.extend(ios.iter().map(|io| io.slat_ns as i64));
        clat.extend(ios.iter().map(|io| io.clat_ns as i64));
        intended.extend(ios.iter().map(|io| io.intended_ns as i64));
        let [of_worker, op, file, length, error] = &mut self.narrow;
        of_worker.resize(of_worker.len() + ios.len(), worker as i32);
        op.extend(ios.iter().map(|io| number_of(io.op)));
        file.extend(ios.iter().map(|io| i32::from(io.file)));
        length.extend(ios.iter().map(|io| io.length as i32));
        error.extend(ios.iter().map(|io| io.error));
    }

    fn clear(&mut self) {
        self.wide.iter_mut().for_each(Vec::clear);
        self.narrow.iter_mut().for_each(Vec::clear);
    }
}

impl Groups {
    fn new(file: File) -> Result<Self, TraceError> {
        let column = |(name, is_wide)| {
            let kind = if is_wide { Kind::Int64 } else { Kind::Int32 };
            Column { name, kind, is_optional: false }
        };
        let file = FileWriter::new(BufWriter::new(file), "trueio_trace", COLUMNS.map(column).to_vec())?;
        Ok(Self { file, columns: Default::default(), page: Page::new(), encoded: Vec::new(), group_rows: 0, rows: 0 })
    }

    fn add(&mut self, worker: u32, mut ios: &[TracedIo]) -> Result<(), TraceError> {
        while !ios.is_empty() {
            let (now, later) = ios.split_at(ios.len().min(PAGE_ROWS - self.page.len()));
            ios = later;
            self.page.extend(worker, now);
            if self.page.len() == PAGE_ROWS {
                self.end_page()?;
            }
            if self.group_rows == GROUP_ROWS {
                self.write_group()?;
            }
        }
        Ok(())
    }

    /// Encodes the collected rows as a page of each column.
    fn end_page(&mut self) -> Result<(), TraceError> {
        let rows = self.page.len();
        let (mut wide, mut narrow) = (self.page.wide.iter(), self.page.narrow.iter());
        for ((_, is_wide), column) in COLUMNS.iter().zip(&mut self.columns) {
            self.encoded.clear();
            if let Some(values) = is_wide.then(|| wide.next()).flatten() {
                delta::encode(values, &mut self.encoded);
            } else if let Some(values) = narrow.next() {
                delta::encode(values, &mut self.encoded);
            }
            column.add_page(rows, Encoding::DeltaBinaryPacked, &self.encoded)?;
        }
        self.page.clear();
        self.group_rows += rows;
        Ok(())
    }

    /// Writes the pages so far as a row group.
    fn write_group(&mut self) -> Result<(), TraceError> {
        self.file.write_group(self.columns.iter())?;
        self.columns.iter_mut().for_each(Chunk::clear);
        self.rows += std::mem::take(&mut self.group_rows) as u64;
        Ok(())
    }

    /// Writes the rest; returns the number of all rows.
    fn finish(mut self, header: &TraceHeader) -> Result<u64, TraceError> {
        if self.page.len() > 0 {
            self.end_page()?;
        }
        if self.group_rows > 0 {
            self.write_group()?;
        }
        let json = serde_json::to_string(header).map_err(io::Error::other)?;
        self.file.finish(&[(HEADER_KEY, &json)])?;
        Ok(self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::TraceRow;
    use crate::reader::TraceReader;
    use trueio_model::OpKind;

    fn io(number: u64) -> TracedIo {
        // Random offsets of 1 TiB in blocks of 4 KiB, latencies around 100 µs, one I/O every 10 µs.
        let random = trueio_model::mix64(number);
        let end_ns = 5_000_000_000 + number * 10_000 + random % 1_000;
        let clat_ns = 90_000 + (random >> 20) % 20_000;
        TracedIo {
            op: if random.is_multiple_of(3) { OpKind::Write } else { OpKind::Read },
            file: 0,
            length: 4096,
            error: 0,
            offset: (random >> 8) % (1 << 28) * 4096,
            end_ns,
            slat_ns: 1_000 + random % 200,
            clat_ns,
            intended_ns: end_ns - clat_ns - 1_500,
        }
    }

    fn jobs() -> Vec<TracedJob> {
        vec![TracedJob { name: "a".to_owned(), first_worker: 1, workers: 2, files: vec!["/dev/x".to_owned()] }]
    }

    fn written(ios: u64) -> (tempfile::NamedTempFile, TraceSummary) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let (writer, channel) = TraceWriter::start(file.reopen().expect("the file"), jobs()).expect("it starts");
        let of_worker = channel.of_worker(2).channel;
        drop(channel);
        let numbers: Vec<u64> = (0..ios).collect();
        numbers.chunks(4_000).for_each(|chunk| of_worker.send(chunk.iter().map(|number| io(*number)).collect()));
        drop(of_worker);
        let summary = writer.finish().expect("it is written");
        (file, summary)
    }

    /// Goal: a trace needs at most 16 bytes a row, and what is read is what was written, over several groups.
    #[test]
    fn a_trace_takes_at_most_16_bytes_a_row_and_reads_back_whole() {
        let rows = (2 * GROUP_ROWS + 3 * PAGE_ROWS) as u64 + 1_234;
        let (file, summary) = written(rows);
        assert_eq!(summary, TraceSummary { rows, dropped: Vec::new() });
        let bytes = file.as_file().metadata().expect("a length").len();
        assert!(bytes <= 16 * rows, "{} bytes a row", bytes as f64 / rows as f64);
        let reader = TraceReader::open(file.reopen().expect("the file")).expect("a trace");
        assert_eq!((reader.row_count(), &reader.header().jobs), (rows, &jobs()));
        let mut number = 0;
        let check = |row: TraceRow| {
            let TracedIo { op, file, length, error, offset, end_ns, slat_ns, clat_ns, intended_ns } = io(number);
            let (file, error) = (u32::from(file), error as u32);
            let time_ns = end_ns;
            let expected =
                TraceRow { time_ns, worker: 2, op, file, offset, length, slat_ns, clat_ns, intended_ns, error };
            assert_eq!(row, expected, "row {number}");
            number += 1;
        };
        reader.for_each(check).expect("all groups are read");
        assert_eq!(number, rows);
    }

    /// Goal: a trace whose bytes changed is read or refused, as a trace and as a log; nothing panics or takes long.
    /// Method: every byte of the description and of the first pages, and single bits and bytes elsewhere, by a fixed sequence.
    #[test]
    fn a_broken_trace_is_read_or_refused() {
        use std::io::Read;
        let (file, _) = written(3_000);
        let sound = std::fs::read(file.path()).expect("the trace");
        let broken = tempfile::NamedTempFile::new().expect("a file");
        let (mut read_count, mut refused_count) = (0, 0);
        for round in 0..4_000_u64 {
            let random = trueio_model::mix64(round);
            // Half of the changes are in the description at the end, where most bytes mean something.
            let description = sound.len().min(2_000);
            let (begin, span) =
                if round.is_multiple_of(2) { (sound.len() - description, description) } else { (0, sound.len()) };
            let at = begin + (random >> 16) as usize % span;
            let mut bytes = sound.clone();
            match random % 4 {
                0 => bytes[at] ^= 1 << (random >> 8 & 7),
                1 => bytes[at] = (random >> 8) as u8,
                2 => bytes[at] = b'9',
                _ => bytes.truncate(at),
            }
            std::fs::write(broken.path(), &bytes).expect("written");
            let open = || std::fs::File::open(broken.path()).expect("the file");
            let mut latest_ns = 0;
            let visit = |row: TraceRow| latest_ns = latest_ns.max(row.submitted_ns());
            let read = TraceReader::open(open()).and_then(|reader| {
                let _ = (reader.header().dropped_rows(), reader.header().job(u32::MAX));
                reader.for_each(visit)
            });
            let text = crate::IologText::of(open()).and_then(|mut text| Ok(text.read_to_end(&mut Vec::new())?));
            match read.is_ok() && text.is_ok() {
                true => read_count += 1,
                false => refused_count += 1,
            }
        }
        assert!(read_count > 100 && refused_count > 100, "{read_count} read, {refused_count} refused");
    }

    /// Goal: any number in any column is read back, also where differences wrap around.
    #[test]
    fn extreme_numbers_are_read_back() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let (writer, channel) = TraceWriter::start(file.reopen().expect("the file"), jobs()).expect("it starts");
        let of_worker = channel.of_worker(1).channel;
        drop(channel);
        let extremes = [0, u64::MAX, 1 << 63, (1 << 63) - 1, 1, u64::MAX - 1];
        let io = |number: usize| {
            let value = |shift: usize| extremes[(number / (1 + shift) + shift) % extremes.len()];
            TracedIo {
                op: OpKind::Read,
                file: value(0) as u16,
                length: value(1) as u32,
                error: value(2) as i32,
                offset: value(3),
                end_ns: value(4),
                slat_ns: value(0),
                clat_ns: value(1),
                intended_ns: value(2),
            }
        };
        of_worker.send((0..1_000).map(io).collect());
        drop(of_worker);
        writer.finish().expect("it is written");
        let mut number = 0;
        let reader = TraceReader::open(file.reopen().expect("the file")).expect("a trace");
        let check = |row: TraceRow| {
            let sent = io(number);
            let read = (row.offset, row.time_ns, row.slat_ns, row.clat_ns, row.intended_ns);
            assert_eq!(read, (sent.offset, sent.end_ns, sent.slat_ns, sent.clat_ns, sent.intended_ns), "row {number}");
            assert_eq!(
                (row.length, row.error, row.file),
                (sent.length, sent.error as u32, sent.file.into()),
                "row {number}"
            );
            number += 1;
        };
        reader.for_each(check).expect("all groups are read");
        assert_eq!(number, 1_000);
    }

    /// Goal: a group and its pages use the memory of those before. Method: the addresses of the memory, once it has grown.
    #[test]
    fn written_memory_is_used_again() {
        let file = tempfile::tempfile().expect("a file");
        let mut groups = Groups::new(file).expect("it begins");
        let ios: Vec<TracedIo> = (0..GROUP_ROWS as u64).map(io).collect();
        let addresses = |groups: &Groups| (groups.encoded.as_ptr(), groups.columns.each_ref().map(Chunk::address));
        groups.add(1, &ios).expect("it is written");
        let first = addresses(&groups);
        (0..3).for_each(|_| groups.add(1, &ios).expect("it is written"));
        assert_eq!(addresses(&groups), first);
    }

    #[test]
    fn an_incomplete_trace_and_another_parquet_file_are_refused() {
        let (file, _) = written(10);
        let length = file.as_file().metadata().expect("a length").len();
        file.as_file().set_len(length - 1).expect("shorter");
        assert!(matches!(TraceReader::open(file.reopen().expect("the file")), Err(TraceError::Parquet(_))));
        let file = tempfile::NamedTempFile::new().expect("a file");
        let groups = Groups::new(file.reopen().expect("the file")).expect("it begins");
        groups.file.finish(&[]).expect("it ends");
        let error = TraceReader::open(file.reopen().expect("the file")).expect_err("it has no header");
        assert!(error.to_string().contains("not a trace of trueio"), "{error}");
    }
}
