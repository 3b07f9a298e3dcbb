//! Options of section `content`: what is written, and its verification.

use crate::option::{
    FioUse, Opt, Scope, Section, address, block_pattern, bytes, count, flag, path, pattern, percent, switch, word,
};
use trueio_model::{BlockPattern, Checksum, Memory, SourceAddress};

crate::option::words_of! {
    impl Memory {
        Self::Malloc => "malloc", [], "in memory of the process, aligned";
        Self::Mmap => "mmap", [], "in a private anonymous mapping";
        Self::MmapShared => "mmapshared", [], "in a shared anonymous mapping";
        Self::MmapHuge => "mmaphuge", [], "in a mapping of huge pages";
        Self::Shm => "shm", [], "in a segment of System V shared memory";
        Self::ShmHuge => "shmhuge", [], "in such a segment, of huge pages";
    }
}

/// The method by which written data is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyMethod {
    /// Nothing is compared.
    None,
    /// The header or the pattern of each block is checked.
    Checksum(Checksum),
    /// The content of `source` is fetched again and compared.
    Source,
}

crate::option::words_of! {
    impl VerifyMethod {
        Self::None => "none", ["0"], "nothing is compared";
        Self::Checksum(Checksum::Crc32c) => Checksum::Crc32c.name(), ["crc32c-intel"], "CRC-32C";
        Self::Checksum(Checksum::Xxhash) => Checksum::Xxhash.name(), [], "XXH3, 64 bits";
        Self::Checksum(Checksum::Md5) => Checksum::Md5.name(), [], "MD5; of this and all longer ones the first 64 bits are stored";
        Self::Checksum(Checksum::Crc64) => Checksum::Crc64.name(), [], "CRC-64 (XZ)";
        Self::Checksum(Checksum::Crc32) => Checksum::Crc32.name(), [], "CRC-32";
        Self::Checksum(Checksum::Crc16) => Checksum::Crc16.name(), [], "CRC-16 (ARC)";
        Self::Checksum(Checksum::Crc7) => Checksum::Crc7.name(), [], "CRC-7 (MMC)";
        Self::Checksum(Checksum::Sha1) => Checksum::Sha1.name(), [], "SHA-1";
        Self::Checksum(Checksum::Sha256) => Checksum::Sha256.name(), [], "SHA-256";
        Self::Checksum(Checksum::Sha512) => Checksum::Sha512.name(), [], "SHA-512";
        Self::Checksum(Checksum::Sha3_224) => Checksum::Sha3_224.name(), [], "SHA3-224";
        Self::Checksum(Checksum::Sha3_256) => Checksum::Sha3_256.name(), [], "SHA3-256";
        Self::Checksum(Checksum::Sha3_384) => Checksum::Sha3_384.name(), [], "SHA3-384";
        Self::Checksum(Checksum::Sha3_512) => Checksum::Sha3_512.name(), [], "SHA3-512";
        Self::Checksum(Checksum::Meta) => Checksum::Meta.name(), [], "no checksum: the header's offset, write number and run";
        Self::Checksum(Checksum::Pattern) => Checksum::Pattern.name(), [], "no header: the whole block is `verify_pattern`";
        Self::Checksum(Checksum::PatternHdr) => Checksum::PatternHdr.name(), [], "a header, followed by `verify_pattern`";
        Self::Checksum(Checksum::Null) => Checksum::Null.name(), [], "nothing is compared, and the blocks are not touched";
        Self::Source => "source", [], "the content that `source` sends when it is fetched again";
    }
}

crate::option::words_of! {
    /// The writes that are compared.
    pub enum VerifyPolicy {
        Completed => "completed", [], "all that succeeded";
        Fsynced => "fsynced", [], "those before the last successful sync call: a power cut may lose the others";
    }
}

crate::option::rows! {
    Section::Content;

    pub const ZERO_BUFFERS: Opt<bool> = flag("zero_buffers")
        .scope(&[Scope::WithCommand])
        .summary("Zeros are written instead of random content")
        .detail("A file that is created for a job that reads holds zeros, too. Many devices and filesystems never store zeros; the record notes that zeros were written.");

    pub const REFILL_BUFFERS: Opt<bool> = flag("refill_buffers")
        .scope(&[Scope::Writes])
        .summary("New content is generated for every write")
        .detail("Without it the buffers are filled once and each 4 KiB is stamped, so that no two writes are \
                 equal.");

    pub const BUFFER_PATTERN: Opt<Option<Vec<u8>>> = pattern("buffer_pattern")
        .unset("random content")
        .unit("bytes")
        .summary("The same bytes are written repeatedly, from the beginning of each buffer to its end")
        .detail("`0xdeadface`, `\"text\"`, a decimal number, or several of them in a row. All writes are \
                 equal, and the record notes it. A file that is created for a job that reads holds them, too. In fio's job files and command lines `'name'` is the content \
                 of a file.");

    pub const MEM: Opt<Memory> = word("mem")
        .default("malloc")
        .fio_names(&["iomem"])
        .summary("The memory of the I/O buffers");

    pub const HUGEPAGE_SIZE: Opt<u64> = bytes("hugepage_size")
        .default("2m")
        .unit("bytes")
        .fio_names_first(&["hugepage-size"])
        .summary("The size of the huge pages of `mem = \"mmaphuge\"` and `\"shmhuge\"`");

    pub const BUFFER_OFFSET: Opt<u32> = count("buffer_offset", 0, 4095)
        .default("0")
        .unit("bytes")
        .not_in_fio()
        .summary("Bytes between an aligned address and the start of each I/O buffer")
        .detail("Deliberately misaligned, like a program with a buffer from `malloc`. With direct I/O the \
                 kernel refuses such a call with EINVAL, unless the buffer lies within one page and the kernel \
                 is new; `continue_on_error = \"all\"` counts these failures.");

    pub const BUFFER_COMPRESS_PERCENTAGE: Opt<u64> = percent("buffer_compress_percentage")
        .default("0")
        .unit("percent")
        .summary("The share of each piece of content that is compressible");

    pub const BUFFER_COMPRESS_CHUNK: Opt<u64> = bytes("buffer_compress_chunk")
        .default("512")
        .unit("bytes")
        .summary("Length of the pieces of which `buffer_compress_percentage` is compressible; 0: the block")
        .detail("The end of each piece contains zeros, or `buffer_pattern`.");

    pub const DEDUPE_PERCENTAGE: Opt<u64> = percent("dedupe_percentage")
        .default("0")
        .unit("percent")
        .scope(&[Scope::Writes])
        .summary("The share of blocks that repeat an earlier one");

    pub const DEDUPE_WORKING_SET_PERCENTAGE: Opt<Option<u64>> = percent("dedupe_working_set_percentage")
        .unset("repeats are drawn from 16 blocks")
        .unit("percent")
        .fio_rule("size of the set of `dedupe_mode=working_set`; no effect without that, as in fio")
        .fio_default_conditional("5")
        .summary("Repeated blocks are drawn from this share of the size")
        .detail("These are the first different blocks of a worker. fio uses it with `dedupe_mode=working_set`.");

    pub const DEDUPE_GLOBAL: Opt<bool> = switch("dedupe_global")
        .scope(&[Scope::Writes])
        .summary("The set from which repeated blocks are drawn is common to all jobs with this option")
        .detail("Each worker writes its part of the set, and repeats blocks of all parts. Needs \
                 `dedupe_working_set_percentage` (in fio's language `dedupe_mode=working_set`).");

    pub const SOURCE: Opt<Option<SourceAddress>> = address("source")
        .unset("the content is generated by this program")
        .unit("address")
        .fio(FioUse::Absent)
        .summary("The written bytes are fetched from this address, in order, like a download")
        .detail("Plain `http://` with a `Content-Length`, which is the job's `size`; no redirects. Each buffer \
                 is filled from the connection before its write is submitted, and only after its last write \
                 completed. The connection is made before the measured time, the request is sent within it; \
                 the time spent with the source is separate from the latencies of the writes. The rest after \
                 the last whole unit of direct I/O goes through the page cache. No other address is contacted; \
                 it is contacted once more while planning if `size` is not set.");

    pub const VERIFY: Opt<VerifyMethod> = word("verify")
        .default("none")
        .scope(&[Scope::Measured, Scope::WithCommand])
        .summary("The method by which written data is read back and compared")
        .detail("Each block has a header with its offset and the number of its write. A job that writes reads \
                 its blocks back at its end; a job that reads compares each block with the header of an \
                 earlier job or run. Refused if it is unknown which write of a block came last: several \
                 workers, several block sizes, offsets that repeat, and a second pass with more than one I/O \
                 in flight.");

    pub const DO_VERIFY: Opt<bool> = switch("do_verify")
        .default("true")
        .scope(&[Scope::Verify])
        .summary("A job that writes verifiable blocks reads them back at its end")
        .detail("If false, a later job compares them: one that reads, or one with `verify_only`.");

    pub const VERIFY_ONLY: Opt<bool> = flag("verify_only")
        .scope(&[Scope::Verify])
        .summary("Nothing is written: the blocks that the job would write are read and compared")
        .detail("The job must be the same as the one that wrote, including its seed. With `verify_state_load` \
                 it compares as far as that job came.");

    pub const VERIFY_INTERVAL: Opt<Option<u64>> = bytes("verify_interval")
        .unset("one header per block")
        .unit("bytes")
        .scope(&[Scope::Verify])
        .summary("Distance between two verification headers")
        .detail("It must divide the block, and be at least 48 bytes.");

    pub const VERIFY_OFFSET: Opt<u64> = bytes("verify_offset")
        .default("0")
        .unit("bytes")
        .scope(&[Scope::Verify])
        .summary("Position of the header in its interval; it is exchanged with the data there")
        .detail("0, or at least 48 bytes, so that the header and its position do not overlap.");

    pub const VERIFY_PATTERN: Opt<Option<BlockPattern>> = block_pattern("verify_pattern")
        .unset("the job's content")
        .unit("bytes")
        .scope(&[Scope::WithCommand, Scope::Verify])
        .summary("The content of verified blocks")
        .detail("As `buffer_pattern`, where `%o` is the block's offset, eight bytes with the lowest first.");

    pub const VERIFY_PATTERN_INTERVAL: Opt<Option<u64>> = bytes("verify_pattern_interval")
        .unset("once, at the start of the block")
        .unit("bytes")
        .scope(&[Scope::Verify])
        .summary("Distance between two repetitions of `verify_pattern`")
        .detail("`%o` is then the offset of each repetition: with 512, of each sector.");

    pub const VERIFY_POLICY: Opt<VerifyPolicy> = word("verify_policy")
        .default("completed")
        .scope(&[Scope::Verify])
        .summary("The writes that are compared")
        .detail("`verify_state_load` needs it, too, to compare later, such as after a power cut, the data that \
                 an earlier run had synced. If nothing was synced, nothing is compared, and the run fails.");

    pub const VERIFY_BACKLOG: Opt<u64> = count("verify_backlog", 0, 1 << 20)
        .default("0")
        .unit("writes")
        .scope(&[Scope::Verify])
        .summary("Number of writes after which they are read back at once; 0: only at the end")
        .detail("Within the measured time, and not counted as reads. Buffered data may come from the page \
                 cache; at the end all data is read from the disk again.");

    pub const VERIFY_BACKLOG_BATCH: Opt<u64> = count("verify_backlog_batch", 0, 1 << 20)
        .default("0")
        .unit("blocks")
        .scope(&[Scope::Verify])
        .summary("Number of blocks of the `verify_backlog` that are read back at a time; 0: all");

    pub const VERIFY_EACH_LOOP: Opt<bool> = switch("verify_each_loop")
        .not_in_fio()
        .scope(&[Scope::Verify])
        .summary("What each of several `loops` wrote is read back before the next one begins, not only what the last one wrote")
        .detail("Within the measured time, and not counted as reads; the record holds how long it took. It has no effect next \
                 to `time_based`, zones, `unlink_each_loop` and `verify_policy`.");

    pub const VERIFY_ASYNC: Opt<u32> = count("verify_async", 0, 64)
        .default("0")
        .unit("threads")
        .scope(&[Scope::Verify])
        .summary("Number of threads that compare the data read at the end; 0: the worker compares it");

    pub const VERIFY_FATAL: Opt<bool> = switch("verify_fatal")
        .scope(&[Scope::Verify])
        .summary("The first block that differs ends the job")
        .detail("A run in which a block differs fails in any case.");

    pub const VERIFY_DUMP: Opt<bool> = switch("verify_dump")
        .scope(&[Scope::Verify])
        .summary("Blocks that differ are stored in files of the current directory")
        .detail(
            "The first 16, as `NAME.OFFSET.received`, and next to it `NAME.OFFSET.expected` if the content is a \
             `verify_pattern`. A piece whose header is wrong is only in `NAME.OFFSET.hdr_fail`.",
        );

    pub const VERIFY_DUMP_DIRECTORY: Opt<Option<String>> = path("verify_dump_directory")
        .unset("the current directory")
        .unit("path")
        .not_in_fio()
        .scope(&[Scope::Verify])
        .summary("The directory of the files of `verify_dump`; it must exist");

    pub const VERIFY_STATE_SAVE: Opt<bool> = switch("verify_state_save")
        .fio_default_conditional("true")
        .scope(&[Scope::Verify])
        .summary("The progress of the job is stored in a file of the current directory")
        .detail("`local-JOB-WORKER-verify.state`, also when the run is interrupted, in fio's format.");

    pub const VERIFY_STATE_LOAD: Opt<bool> = switch("verify_state_load")
        .scope(&[Scope::Verify])
        .summary("`verify_only` compares only what the run of the saved state wrote");

    pub const VERIFY_STATE_FILE: Opt<Option<String>> = path("verify_state_file")
        .unset("`local-JOB-WORKER-verify.state`")
        .unit("path")
        .not_in_fio()
        .scope(&[Scope::Verify])
        .summary("The file that `verify_state_save` writes and `verify_state_load` reads; for jobs of one worker");

    pub const TRIM_PERCENTAGE: Opt<u64> = percent("trim_percentage")
        .default("0")
        .unit("percent")
        .scope(&[Scope::Verify])
        .summary("The share of verified blocks that are trimmed after they were written");

    pub const TRIM_VERIFY_ZERO: Opt<bool> = switch("trim_verify_zero")
        .default("true")
        .scope(&[Scope::Verify])
        .summary("Trimmed blocks must read as zeros; otherwise they are not compared");

    pub const TRIM_BACKLOG: Opt<u64> = count("trim_backlog", 0, 1 << 20)
        .default("0")
        .unit("writes")
        .scope(&[Scope::Verify])
        .summary("Number of writes after which the share `trim_percentage` of them is trimmed");

    pub const TRIM_BACKLOG_BATCH: Opt<u64> = count("trim_backlog_batch", 0, 1 << 20)
        .default("0")
        .unit("blocks")
        .scope(&[Scope::Verify])
        .summary("Number of blocks that `trim_backlog` trims at a time, the others later; 0: all");
}
