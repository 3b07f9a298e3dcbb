//! Options of section `content`: what is written, and its verification.

use crate::option::{
    Opt, Scope, Section, Word, address, block_pattern, bytes, choice, count, pattern, percent, switch, word,
};
use crate::value::Choice;
use trueio_model::{BlockPattern, SourceAddress};

const MEMORY: &[Choice] = &[
    choice("malloc", &[], "in memory of the process, aligned"),
    choice("mmap", &[], "in a private anonymous mapping"),
    choice("mmapshared", &[], "in a shared anonymous mapping"),
    choice("mmaphuge", &[], "in a mapping of huge pages"),
    choice("shm", &[], "in a segment of System V shared memory"),
    choice("shmhuge", &[], "in such a segment, of huge pages"),
];

const VERIFY_WORDS: &[Choice] = &[
    choice("none", &["0"], "nothing is compared"),
    choice("crc32c", &["crc32c-intel"], "CRC-32C"),
    choice("xxhash", &[], "XXH3, 64 bits"),
    choice("md5", &[], "MD5; of this and all longer ones the first 64 bits are kept"),
    choice("crc64", &[], "CRC-64 (XZ)"),
    choice("crc32", &[], "CRC-32"),
    choice("crc16", &[], "CRC-16 (ARC)"),
    choice("crc7", &[], "CRC-7 (MMC)"),
    choice("sha1", &[], "SHA-1"),
    choice("sha256", &[], "SHA-256"),
    choice("sha512", &[], "SHA-512"),
    choice("sha3-224", &[], "SHA3-224"),
    choice("sha3-256", &[], "SHA3-256"),
    choice("sha3-384", &[], "SHA3-384"),
    choice("sha3-512", &[], "SHA3-512"),
    choice("meta", &[], "no checksum: the header's place, write and run"),
    choice("pattern", &[], "no header: the whole block is `verify_pattern`"),
    choice("pattern_hdr", &[], "a header, and behind it `verify_pattern`"),
    choice("null", &[], "nothing is compared, and the blocks are not touched"),
    choice("source", &[], "what `source` sends when it is asked once more"),
];

const VERIFY_POLICY_WORDS: &[Choice] = &[
    choice("completed", &[], "all that ended well"),
    choice("fsynced", &[], "those before the last sync call that succeeded: a power cut may take the others"),
];

crate::option::rows! {
    Section::Content;

    pub const ZERO_BUFFERS: Opt<bool> = switch("zero_buffers")
        .scope(&[Scope::WithCommand, Scope::Writes])
        .summary("Zeros are written instead of random content")
        .detail("Many devices and filesystems never store zeros; the record says that they were written.");

    pub const REFILL_BUFFERS: Opt<bool> = switch("refill_buffers")
        .scope(&[Scope::Writes])
        .summary("Fresh content is generated for every write")
        .detail("Without it the buffers are filled once and each 4 KiB is stamped, so that no two writes are alike.");

    pub const BUFFER_PATTERN: Opt<Option<Vec<u8>>> = pattern("buffer_pattern")
        .unset("random content")
        .unit("bytes")
        .scope(&[Scope::Writes])
        .summary("The same bytes are written over and over, from the beginning of each buffer to its end")
        .detail("`0xdeadface`, `\"text\"`, a decimal number, or several of them in a row. No write differs from \
                 another, and the record says so. In fio's job files and command lines `'name'` is the content \
                 of a file.");

    pub const MEM: Opt<Word> = word("mem", MEMORY)
        .default("malloc")
        .fio_names(&["iomem"])
        .summary("Where the I/O buffers are");

    pub const HUGEPAGE_SIZE: Opt<u64> = bytes("hugepage_size")
        .default("2m")
        .unit("bytes")
        .not_in_fio()
        .summary("The size of the huge pages of `mem = \"mmaphuge\"` and `\"shmhuge\"`")
        .detail("fio writes `hugepage-size`.");

    pub const BUFFER_OFFSET: Opt<u32> = count("buffer_offset", 0, 4095)
        .default("0")
        .unit("bytes")
        .not_in_fio()
        .summary("How far behind an aligned address each I/O buffer begins")
        .detail("Deliberately misaligned: what a program does that takes its buffer from `malloc`. With direct \
                 I/O the kernel refuses such a call with EINVAL, unless the buffer lies within one page and the \
                 kernel is new; `continue_on_error = \"all\"` counts them all.");

    pub const BUFFER_COMPRESS_PERCENTAGE: Opt<u64> = percent("buffer_compress_percentage")
        .default("0")
        .unit("percent")
        .scope(&[Scope::Writes])
        .summary("How much of each piece of content compresses away");

    pub const BUFFER_COMPRESS_CHUNK: Opt<u64> = bytes("buffer_compress_chunk")
        .default("512")
        .unit("bytes")
        .summary("How long the pieces are of which `buffer_compress_percentage` compresses away; 0: as long as \
                  the block")
        .detail("The end of each piece is zeros.");

    pub const DEDUPE_PERCENTAGE: Opt<u64> = percent("dedupe_percentage")
        .default("0")
        .unit("percent")
        .scope(&[Scope::Writes])
        .summary("The share of blocks that repeat an earlier one");

    pub const DEDUPE_WORKING_SET_PERCENTAGE: Opt<Option<u64>> = percent("dedupe_working_set_percentage")
        .unset("they repeat one of 16 blocks")
        .unit("percent")
        .summary("Repeated blocks are drawn from as many different ones as this share of the size holds")
        .detail("The first different blocks of a worker are these. fio takes it with `dedupe_mode=working_set`.");

    pub const SOURCE: Opt<Option<SourceAddress>> = address("source")
        .unset("what is written is made by this program")
        .unit("address")
        .not_in_fio()
        .summary("The bytes that are written are fetched from there, in order, as a download does")
        .detail("Plain `http://` with a `Content-Length`, which is the job's `size`; no redirects. Each buffer \
                 is filled from the connection before its write is handed over, and only after its last write \
                 completed. The connection is made before the measured time, the request is sent within it; the \
                 time spent with the source is kept apart from the latencies of the writes. What is left behind \
                 the last whole unit of direct I/O goes through the page cache. No address is contacted but \
                 this one, once more while planning if no `size` is said.");

    pub const VERIFY: Opt<Word> = word("verify", VERIFY_WORDS)
        .default("none")
        .scope(&[Scope::Measured, Scope::WithCommand])
        .summary("What was written is read back and compared, by this")
        .detail("Each block carries a header that names its offset and its write. A job that writes reads its \
                 blocks back at its end; a job that reads compares each block with the header that an earlier \
                 job or run left. Refused where it is not known which write of a block came last: several \
                 workers, several block sizes, offsets that repeat, and a second pass with more than one I/O in \
                 flight.");

    pub const DO_VERIFY: Opt<bool> = switch("do_verify")
        .default("true")
        .scope(&[Scope::Verify])
        .summary("A job that writes verifiable blocks reads them back at its end")
        .detail("If false, a later job compares them: one that reads, or one with `verify_only`.");

    pub const VERIFY_ONLY: Opt<bool> = switch("verify_only")
        .scope(&[Scope::Verify])
        .summary("Nothing is written: the blocks that the job would write are read and compared")
        .detail("The job must be the same as the one that wrote, its seed included. With `verify_state_load` it \
                 compares as far as that one came.");

    pub const VERIFY_INTERVAL: Opt<Option<u64>> = bytes("verify_interval")
        .unset("one header a block")
        .unit("bytes")
        .scope(&[Scope::Verify])
        .summary("From one verification header to the next")
        .detail("A part of the block without a rest, 48 bytes or more.");

    pub const VERIFY_OFFSET: Opt<u64> = bytes("verify_offset")
        .default("0")
        .unit("bytes")
        .scope(&[Scope::Verify])
        .summary("Where in its interval the header stands, exchanged with the data there")
        .detail("0, or 48 bytes or more, so that the header and its place do not overlap.");

    pub const VERIFY_PATTERN: Opt<Option<BlockPattern>> = block_pattern("verify_pattern")
        .unset("the job's content")
        .unit("bytes")
        .scope(&[Scope::WithCommand, Scope::Verify])
        .summary("What fills verified blocks")
        .detail("As `buffer_pattern`, and `%o` is the block's offset, eight bytes with the lowest first.");

    pub const VERIFY_PATTERN_INTERVAL: Opt<Option<u64>> = bytes("verify_pattern_interval")
        .unset("once, with the block")
        .unit("bytes")
        .scope(&[Scope::Verify])
        .summary("From one beginning of `verify_pattern` to the next")
        .detail("`%o` is then the offset of that beginning: with 512, of each sector.");

    pub const VERIFY_POLICY: Opt<Word> = word("verify_policy", VERIFY_POLICY_WORDS)
        .default("completed")
        .scope(&[Scope::Verify])
        .summary("Which writes are compared")
        .detail("`verify_state_load` needs it, too, to compare later, such as after a power cut, what a run \
                 that ended had synced. Where nothing was synced, nothing is compared, and the run fails.");

    pub const VERIFY_BACKLOG: Opt<u64> = count("verify_backlog", 0, 1 << 20)
        .default("0")
        .unit("writes")
        .scope(&[Scope::Verify])
        .summary("Writes after which they are read back at once; 0: only at the end")
        .detail("Within the measured time, and not counted as reads. What is buffered may come from the page \
                 cache; at the end all is read from the disk once more.");

    pub const VERIFY_BACKLOG_BATCH: Opt<u64> = count("verify_backlog_batch", 0, 1 << 20)
        .default("0")
        .unit("blocks")
        .scope(&[Scope::Verify])
        .summary("How many of the `verify_backlog` are read back in one go; 0: all");

    pub const VERIFY_ASYNC: Opt<u32> = count("verify_async", 0, 64)
        .default("0")
        .unit("threads")
        .scope(&[Scope::Verify])
        .summary("Threads that compare what is read back at the end; 0: the worker does");

    pub const VERIFY_FATAL: Opt<bool> = switch("verify_fatal")
        .scope(&[Scope::Verify])
        .summary("The first block that differs ends the job")
        .detail("A run in which a block differs fails in any case.");

    pub const VERIFY_DUMP: Opt<bool> = switch("verify_dump")
        .scope(&[Scope::Verify])
        .summary("Blocks that differ are kept in files of the current directory")
        .detail("The first 16, as `NAME.OFFSET.received`.");

    pub const VERIFY_STATE_SAVE: Opt<bool> = switch("verify_state_save")
        .scope(&[Scope::Verify])
        .summary("How far the job came is kept in a file of the current directory")
        .detail("`local-JOB-WORKER-verify.state`, also when the run is interrupted. fio's default is true.");

    pub const VERIFY_STATE_LOAD: Opt<bool> = switch("verify_state_load")
        .scope(&[Scope::Verify])
        .summary("`verify_only` compares as far as the saved state says, and only what that run wrote");

    pub const TRIM_PERCENTAGE: Opt<u64> = percent("trim_percentage")
        .default("0")
        .unit("percent")
        .scope(&[Scope::Verify])
        .summary("The share of verified blocks that is trimmed after it was written");

    pub const TRIM_VERIFY_ZERO: Opt<bool> = switch("trim_verify_zero")
        .default("true")
        .scope(&[Scope::Verify])
        .summary("Trimmed blocks must read as zeros; otherwise they are not looked at");

    pub const TRIM_BACKLOG: Opt<u64> = count("trim_backlog", 0, 1 << 20)
        .default("0")
        .unit("writes")
        .scope(&[Scope::Verify])
        .summary("Writes after which the share `trim_percentage` of them is trimmed");

    pub const TRIM_BACKLOG_BATCH: Opt<u64> = count("trim_backlog_batch", 0, 1 << 20)
        .default("0")
        .unit("blocks")
        .scope(&[Scope::Verify])
        .summary("How many blocks `trim_backlog` trims in one go, and the others later; 0: all");
}
