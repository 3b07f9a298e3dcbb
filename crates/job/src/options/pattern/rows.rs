//! Options of section `pattern`: which operations a job performs, where and of what size.

use crate::option::{
    Opt, Remote, Scope, Section, block_ranges, block_sizes, block_splits, bytes, bytes_each, count, distribution, flag,
    integer, names, part, path, percent, percents, seed, switch, word,
};
use trueio_model::{BlockSizes, Distribution};

/// The operations of a job, and their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operations {
    /// The operations.
    pub direction: Direction,
    /// True if they are at random offsets.
    pub is_random: bool,
}

/// The operations of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// Reads and writes, mixed.
    ReadWrite,
    /// Each block is trimmed and then written.
    TrimWrite,
}

impl Operations {
    const fn sequential(direction: Direction) -> Self {
        Self { direction, is_random: false }
    }

    const fn random(direction: Direction) -> Self {
        Self { direction, is_random: true }
    }
}

crate::option::words_of! {
    impl Operations {
        Self::sequential(Direction::Read) => "read", [], "sequential reads";
        Self::sequential(Direction::Write) => "write", [], "sequential writes";
        Self::sequential(Direction::Trim) => "trim", [], "sequential trims (discards; holes in files)";
        Self::random(Direction::Read) => "randread", [], "random reads";
        Self::random(Direction::Write) => "randwrite", [], "random writes";
        Self::random(Direction::Trim) => "randtrim", [], "random trims";
        Self::sequential(Direction::ReadWrite) => "rw", ["readwrite"], "sequential reads and writes, mixed by `rwmixread`";
        Self::random(Direction::ReadWrite) => "randrw", [], "random reads and writes, mixed by `rwmixread`";
        Self::sequential(Direction::TrimWrite) => "trimwrite", [], "sequential; each block is trimmed and then written";
        Self::random(Direction::TrimWrite) => "randtrimwrite", [], "random; each block is trimmed and then written";
    }
}

crate::option::words_of! {
    /// The offsets of the I/Os between two random offsets.
    pub enum Sequencer {
        Sequential => "sequential", [], "they follow it sequentially";
        Identical => "identical", [], "they all use the same offset";
    }
}

crate::option::words_of! {
    /// The use of zones.
    pub enum ZoneMode {
        None => "none", ["0"], "no zones";
        Strided => "strided", [], "zones are used one after another";
        Zbd => "zbd", [], "zones are written by the rules of zoned devices";
    }
}

crate::option::rows! {
    Section::Pattern;

    pub const RW: Opt<Operations> = word("rw")
        .default("read")
        .fio_names(&["readwrite"])
        .scope(&[Scope::WithCommand, Scope::ByLog])
        .summary("The operations of the job, and whether they are sequential or random");

    pub const RWMIXREAD: Opt<u64> = percent("rwmixread")
        .default("50")
        .unit("percent")
        .replaces(&["rwmixwrite"])
        .scope(&[Scope::ByLog])
        .summary("The share of reads in `rw` and `randrw`")
        .detail("Drawn for each I/O from the job's seed.");

    pub const RWMIXWRITE: Opt<Option<u64>> = percent("rwmixwrite")
        .unset("100 minus `rwmixread`")
        .unit("percent")
        .replaces(&["rwmixread"])
        .scope(&[Scope::ByLog])
        .summary("The share of writes in `rw` and `randrw`; the complement of `rwmixread`");

    pub const BS: Opt<[BlockSizes; 3]> = block_sizes("bs")
        .default("4k")
        .unit("bytes")
        .fio_names(&["blocksize"])
        .replaces(&["bsrange", "bssplit"])
        .scope(&[Scope::WithCommand, Scope::ByLog])
        .summary("The size of each I/O")
        .detail("Three sizes are for reads, writes and trims (`8k,16k,1m`); of two, the second is also for \
                 trims. A last block that does not fit completely into the region is not issued. At most 1g.");

    pub const BSRANGE: Opt<Option<[BlockSizes; 3]>> = block_ranges("bsrange")
        .unset("all I/Os have the size `bs`")
        .unit("bytes")
        .fio_names(&["blocksize_range"])
        .replaces(&["bs", "bssplit"])
        .scope(&[Scope::ByLog])
        .summary("Sizes drawn with equal probability from the multiples of the smallest, up to the largest")
        .detail("`4k-64k` draws 4k, 8k, … 64k. Cannot be combined with `bs`.");

    pub const BSSPLIT: Opt<Option<[BlockSizes; 3]>> = block_splits("bssplit")
        .unset("all I/Os have the size `bs`")
        .unit("bytes / percent")
        .replaces(&["bs", "bsrange"])
        .scope(&[Scope::ByLog])
        .summary("Sizes drawn by weight")
        .detail("`4k/60:64k/40`. The percentages must sum to 100, which fio does not check; blank ones share \
                 the rest. Cannot be combined with `bs`.");

    pub const NORANDOMMAP: Opt<bool> = flag("norandommap")
        .scope(&[Scope::ByLog])
        .summary("Random offsets are drawn independently, so a block may repeat before all were used")
        .detail("By default every block is used exactly once per pass. A distribution other than `random` \
                 never has a map.");

    pub const RANDOM_DISTRIBUTION: Opt<Distribution> = distribution("random_distribution")
        .default("random")
        .unit("name and number")
        .scope(&[Scope::ByLog])
        .summary("The distribution of random offsets over the blocks")
        .detail("`random`: uniform. `zipf:1.1`: exponent (0 is uniform). `pareto:0.2`: 80 % of the I/O to about 20 % \
                 of the blocks. `normal:20`: around the middle, deviation in percent of the region. A second \
                 number is the centre, from 0 to 1 (`zipf:1.1:0.3`): the most popular block, or the middle of \
                 `normal`, is at this part of the region. `zoned:60/10:40/90`: percent of the I/O / percent of \
                 the region, zone by zone, both summing to 100. `zoned_abs:60/10g:40/90g`: percent of the I/O \
                 / bytes, from the start of the region; the range after the last zone is not used. \
                 `sequence:2,0,1`: these blocks of the region, again and again; with `advancing_sequence:2,0,1` \
                 each round begins as many blocks later as the sequence has. \
                 `precondition:0.15:100:32k`: writes that bring a flash disk with this over-provisioning (0.15: the \
                 disk has 15 % more than it reports) into its steady state, in 100 parts; `io_size` is then the \
                 physical capacity. With a size for the disk's cache, no block is written again within it.");

    pub const RANDOM_EVERY: Opt<u64> = count("random_every", 1, u64::MAX)
        .default("1")
        .unit("I/Os")
        .not_in_fio()
        .scope(&[Scope::ByLog])
        .summary("I/Os per random offset; `rw_sequencer` sets the offsets of the others")
        .detail("fio appends it to `rw`: `rw=randread:8`. Uses no map.");

    pub const RW_SEQUENCER: Opt<Sequencer> = word("rw_sequencer")
        .default("sequential")
        .scope(&[Scope::ByLog])
        .summary("The offsets of the further I/Os of `random_every`");

    pub const SEQUENTIAL_SKIP: Opt<i64> = integer("sequential_skip", -(1 << 50), 1 << 50)
        .default("0")
        .unit("bytes")
        .not_in_fio()
        .scope(&[Scope::ByLog])
        .summary("Bytes between the end of a sequential I/O and the next; negative: backwards from the end")
        .detail("fio appends it to `rw`: `rw=write:4k`.");

    pub const PERCENTAGE_RANDOM: Opt<[u64; 3]> = percents("percentage_random")
        .default("100")
        .unit("percent")
        .scope(&[Scope::ByLog])
        .summary("The share of a random job's I/Os with a random offset; the others follow the previous I/O")
        .detail("Below 100 it uses no map. Several values are for reads, writes, trims; of two, the second is \
                 also for trims.");

    pub const BLOCKALIGN: Opt<Option<[u64; 3]>> = bytes_each("blockalign")
        .unset("the block size")
        .unit("bytes")
        .fio_names_first(&["ba"])
        .scope(&[Scope::ByLog])
        .summary("Random offsets are multiples of this size")
        .detail("Uses no map, as in fio. Several values are for reads, writes, trims; of two, the second is \
                 also for trims.");

    pub const BS_UNALIGNED: Opt<bool> = flag("bs_unaligned")
        .fio_names(&["blocksize_unaligned"])
        .scope(&[Scope::ByLog])
        .summary("The sizes of `bsrange` may be any number of bytes, not only multiples of the smallest")
        .detail("Excludes direct I/O, which becomes `off` if it was preferred. Uses no map. Sizes of `bs` and \
                 `bssplit` may be any number of bytes without it.");

    pub const ZONEMODE: Opt<ZoneMode> = word("zonemode")
        .default("none")
        .summary("The use of zones in the region")
        .detail("`zbd`: a sequential zone is written at its write pointer, one write at a time, and reset when \
                 it is full and written again; reads stay below the pointers; trims reset zones. The zones are \
                 those of the device; other devices and files get emulated zones of `zonesize`, empty at \
                 first. Workers and jobs share write pointers. A job that writes uses whole zones, and direct \
                 I/O on a device with zones.");

    pub const ZONESIZE: Opt<Option<u64>> = bytes("zonesize")
        .unset("required for zones; a zoned device reports its own")
        .unit("bytes")
        .summary("Bytes transferred in a zone before the next one; with `zbd` the length of a zone");

    pub const ZONERANGE: Opt<Option<u64>> = bytes("zonerange")
        .unset("equal to `zonesize`")
        .unit("bytes")
        .summary("Length of a zone");

    pub const ZONESKIP: Opt<u64> = bytes("zoneskip")
        .default("0")
        .unit("bytes")
        .summary("Bytes between two zones");

    pub const ZONECAPACITY: Opt<Option<u64>> = bytes("zonecapacity")
        .unset("equal to `zonesize`; a zoned device reports its own")
        .unit("bytes")
        .scope(&[Scope::Zones])
        .summary("Bytes of a zone that can be written");

    pub const READ_BEYOND_WP: Opt<bool> = switch("read_beyond_wp")
        .scope(&[Scope::Zones])
        .summary("Reads also use the range beyond write pointers, where nothing was written");

    pub const MAX_OPEN_ZONES: Opt<u32> = count("max_open_zones", 0, 1_000_000)
        .default("0")
        .unit("zones")
        .scope(&[Scope::Zones])
        .summary("Maximum number of partly written zones, of all jobs together; 0: the device's limit")
        .detail("At the limit a write goes to an open zone of the region; if there is none it waits. A zone \
                 that a job has left is finished.");

    pub const JOB_MAX_OPEN_ZONES: Opt<u32> = count("job_max_open_zones", 0, 1_000_000)
        .default("0")
        .unit("zones")
        .scope(&[Scope::Zones])
        .summary("The same for each worker; 0: no limit");

    pub const IGNORE_ZONE_LIMITS: Opt<bool> = switch("ignore_zone_limits")
        .scope(&[Scope::Zones])
        .summary("The device's limits of open and active zones are ignored");

    pub const ZONE_RESET_THRESHOLD: Opt<f64> = part("zone_reset_threshold")
        .default("0")
        .unit("part")
        .scope(&[Scope::Zones])
        .summary("The written part of the region from which on zones are reset although they have room");

    pub const ZONE_RESET_FREQUENCY: Opt<f64> = part("zone_reset_frequency")
        .default("0")
        .unit("resets per write")
        .scope(&[Scope::Zones])
        .summary("The frequency of these resets: 0.01 is one reset per hundred writes");

    pub const WRITE_ZONE_REMAINDER: Opt<bool> = switch("write_zone_remainder")
        .scope(&[Scope::Zones])
        .summary("A remainder of a zone smaller than a block is written by a smaller write");

    pub const RANDSEED: Opt<Option<u64>> = seed("randseed")
        .unset("derived from a constant and the job's position, the same in each run")
        .unit("number")
        .replaces(&["randrepeat"])
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .fio_rule("the seed; each clone derives its own")
        .summary("The seed of offsets, sizes, mix, arrivals and content")
        .detail("The same seed gives the same offsets with every engine. Each worker derives its own seed from \
                 it.");

    pub const RANDREPEAT: Opt<bool> = switch("randrepeat")
        .default("true")
        .fio_names(&["allrandrepeat"])
        .replaces(&["randseed"])
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .summary("Each run uses the same seed")
        .detail("If false, the seed differs between runs; the record contains it.");

    pub const READ_IOLOG: Opt<Option<String>> = path("read_iolog")
        .unset("the pattern is drawn")
        .unit("path")
        .scope(&[Scope::Measured])
        .fio_rule("the log to replay (versions 2 and 3); of a list, each clone takes the next")
        .remote(Remote::Refused("would read a file of the server"))
        .summary("A log of I/O (fio's iolog, version 2 or 3) is replayed, each line at its time")
        .detail("The log sets operations, files, offsets, lengths and times. It is read once while planning, \
                 and its files are subject to the same rules as those of `filename`: an existing one is \
                 written only if `overwrite_existing` names it, and none is extended. Latency counts from the \
                 time of the line. `-` is standard input, if that is a file. Each worker replays the whole \
                 log.");

    pub const REPLAY_NO_STALL: Opt<bool> = switch("replay_no_stall")
        .scope(&[Scope::Replay])
        .summary("The log's times are ignored: its I/Os follow each other as fast as the depth allows");

    pub const REPLAY_TIME_SCALE: Opt<u64> = count("replay_time_scale", 1, 1_000_000)
        .default("100")
        .unit("%")
        .scope(&[Scope::Replay])
        .summary("The speed of a replay in percent of the log's; 200 is twice as fast");

    pub const REPLAY_REDIRECT: Opt<Option<String>> = path("replay_redirect")
        .unset("each I/O goes to the log's file")
        .unit("path")
        .scope(&[Scope::Replay])
        .summary("All I/O of a log goes to this file or device");

    pub const REPLAY_ALIGN: Opt<Option<u64>> = bytes("replay_align")
        .unset("the log's offsets")
        .unit("bytes")
        .scope(&[Scope::Replay])
        .summary("The log's offsets are rounded down to multiples of this power of two");

    pub const REPLAY_SCALE: Opt<u64> = count("replay_scale", 1, 1 << 40)
        .default("1")
        .unit("number")
        .scope(&[Scope::Replay])
        .summary("The log's offsets are divided by this number, before `replay_align`");

    pub const REPLAY_SKIP: Opt<Option<Vec<String>>> = names("replay_skip")
        .unset("nothing is skipped")
        .unit("names")
        .scope(&[Scope::Replay])
        .summary("Operations of a log that are skipped: `read`, `write`, `trim`, `sync`");
}
