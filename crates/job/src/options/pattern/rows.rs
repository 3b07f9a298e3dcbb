//! Options of section `pattern`: which operations a job performs, where and of what size.

use crate::option::{
    Opt, Scope, Section, Word, block_ranges, block_sizes, block_splits, bytes, bytes_each, choice, count, distribution,
    integer, names, part, path, percent, percents, seed, switch, word,
};
use crate::value::Choice;
use trueio_model::{BlockSizes, Distribution};

const RW_WORDS: &[Choice] = &[
    choice("read", &[], "sequential reads"),
    choice("write", &[], "sequential writes"),
    choice("trim", &[], "sequential trims (discards; holes in files)"),
    choice("randread", &[], "random reads"),
    choice("randwrite", &[], "random writes"),
    choice("randtrim", &[], "random trims"),
    choice("rw", &["readwrite"], "sequential reads and writes, mixed by `rwmixread`"),
    choice("randrw", &[], "random reads and writes, mixed by `rwmixread`"),
    choice("trimwrite", &[], "sequential; each block is trimmed and then written"),
    choice("randtrimwrite", &[], "random; each block is trimmed and then written"),
];

const RW_SEQUENCER_WORDS: &[Choice] =
    &[choice("sequential", &[], "they go on from it"), choice("identical", &[], "they are all at it")];

const ZONE_MODE: &[Choice] = &[
    choice("none", &["0"], "the region is used as a whole"),
    choice("strided", &[], "zones are used one after another"),
    choice("zbd", &[], "zones are written by the rules of zoned devices"),
];

crate::option::rows! {
    Section::Pattern;

    pub const RW: Opt<Word> = word("rw", RW_WORDS)
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
        .unset("what `rwmixread` leaves")
        .unit("percent")
        .replaces(&["rwmixread"])
        .scope(&[Scope::ByLog])
        .summary("The share of writes in `rw` and `randrw`, said the other way round");

    pub const BS: Opt<[BlockSizes; 3]> = block_sizes("bs")
        .default("4k")
        .unit("bytes")
        .fio_names(&["blocksize"])
        .replaces(&["bsrange", "bssplit"])
        .scope(&[Scope::WithCommand, Scope::ByLog])
        .summary("The size of each I/O")
        .detail("Three sizes are for reads, writes and trims (`8k,16k,1m`); of two, the second is for trims \
                 too. A last block that does not fit whole into the region is not issued. At most 1g.");

    pub const BSRANGE: Opt<Option<[BlockSizes; 3]>> = block_ranges("bsrange")
        .unset("all I/Os have the size `bs`")
        .unit("bytes")
        .fio_names(&["blocksize_range"])
        .replaces(&["bs", "bssplit"])
        .scope(&[Scope::ByLog])
        .summary("Sizes drawn alike from the multiples of the smallest, up to the largest")
        .detail("`4k-64k` draws 4k, 8k, … 64k. Instead of `bs`, not beside it.");

    pub const BSSPLIT: Opt<Option<[BlockSizes; 3]>> = block_splits("bssplit")
        .unset("all I/Os have the size `bs`")
        .unit("bytes / percent")
        .replaces(&["bs", "bsrange"])
        .scope(&[Scope::ByLog])
        .summary("Sizes drawn by weight")
        .detail("`4k/60:64k/40`. The percentages sum to 100, which fio does not check; blank ones share the \
                 rest. Instead of `bs`, not beside it.");

    pub const NORANDOMMAP: Opt<bool> = switch("norandommap")
        .scope(&[Scope::ByLog])
        .summary("Random offsets are drawn independently, so a block may come twice before all came")
        .detail("By default every block comes exactly once a pass. A distribution other than `random` never \
                 keeps a map.");

    pub const RANDOM_DISTRIBUTION: Opt<Distribution> = distribution("random_distribution")
        .default("random")
        .unit("name and number")
        .scope(&[Scope::ByLog])
        .summary("How random offsets are spread over the blocks")
        .detail("`random`: all alike. `zipf:1.1`: exponent above 0. `pareto:0.2`: 80 % of the I/O to about 20 % \
                 of the blocks. `normal:20`: around the middle, deviation in percent of the region. A second \
                 number is the centre, from 0 to 1 (`zipf:1.1:0.3`): the most popular block, or the middle of \
                 `normal`, is at this part of the region. `zoned:60/10:40/90`: percent of the I/O / percent of \
                 the region, zone by zone, both summing to 100. `zoned_abs:60/10g:40/90g`: percent of the I/O / \
                 bytes, from the region's beginning on; what is behind the last zone is not used.");

    pub const RANDOM_EVERY: Opt<u64> = count("random_every", 1, u64::MAX)
        .default("1")
        .unit("I/Os")
        .not_in_fio()
        .scope(&[Scope::ByLog])
        .summary("I/Os to one random offset; `rw_sequencer` says where the others go")
        .detail("fio writes it behind `rw`: `rw=randread:8`. Keeps no map.");

    pub const RW_SEQUENCER: Opt<Word> = word("rw_sequencer", RW_SEQUENCER_WORDS)
        .default("sequential")
        .scope(&[Scope::ByLog])
        .summary("Where the further I/Os of `random_every` go");

    pub const SEQUENTIAL_SKIP: Opt<i64> = integer("sequential_skip", -(1 << 50), 1 << 50)
        .default("0")
        .unit("bytes")
        .not_in_fio()
        .scope(&[Scope::ByLog])
        .summary("Bytes between the end of a sequential I/O and the next; negative: backwards from the end")
        .detail("fio writes it behind `rw`: `rw=write:4k`.");

    pub const PERCENTAGE_RANDOM: Opt<[u64; 3]> = percents("percentage_random")
        .default("100")
        .unit("percent")
        .scope(&[Scope::ByLog])
        .summary("The share of a random job's I/Os that have an offset of their own; the others go on from the last")
        .detail("Below 100 it keeps no map. With commas it is that of reads, writes, trims; of two, trims have \
                 the second.");

    pub const BLOCKALIGN: Opt<Option<[u64; 3]>> = bytes_each("blockalign")
        .unset("the block size")
        .unit("bytes")
        .fio_names(&["ba"])
        .scope(&[Scope::ByLog])
        .summary("What random offsets are multiples of")
        .detail("Keeps no map, as in fio. With commas it is that of reads, writes, trims; of two, trims have \
                 the second.");

    pub const BS_UNALIGNED: Opt<bool> = switch("bs_unaligned")
        .fio_names(&["blocksize_unaligned"])
        .scope(&[Scope::ByLog])
        .summary("The sizes of `bsrange` are any number of bytes, not multiples of the smallest")
        .detail("Excludes direct I/O, which becomes `off` if it was preferred. Keeps no map. Sizes of `bs` and \
                 `bssplit` are any number of bytes without it.");

    pub const ZONEMODE: Opt<Word> = word("zonemode", ZONE_MODE)
        .default("none")
        .summary("Whether the region is used zone by zone")
        .detail("`zbd`: a sequential zone is written at its write pointer, one write at a time, and reset when \
                 it is full and written again; reads stay below the pointers; trims reset zones. The zones are \
                 the device's; other devices and files get some of `zonesize`, empty at first. Workers and jobs \
                 share write pointers. A job that writes uses whole zones, and direct I/O on a device with \
                 zones.");

    pub const ZONESIZE: Opt<Option<u64>> = bytes("zonesize")
        .unset("must be said for zones; a zoned device says its own")
        .unit("bytes")
        .summary("Bytes transferred in a zone before the next; with `zbd` the length of a zone");

    pub const ZONERANGE: Opt<Option<u64>> = bytes("zonerange")
        .unset("as much as `zonesize`")
        .unit("bytes")
        .summary("Length of a zone");

    pub const ZONESKIP: Opt<u64> = bytes("zoneskip")
        .default("0")
        .unit("bytes")
        .summary("Bytes between two zones");

    pub const ZONECAPACITY: Opt<Option<u64>> = bytes("zonecapacity")
        .unset("as much as `zonesize`; a zoned device says its own")
        .unit("bytes")
        .scope(&[Scope::Zones])
        .summary("Bytes of a zone that can be written");

    pub const READ_BEYOND_WP: Opt<bool> = switch("read_beyond_wp")
        .scope(&[Scope::Zones])
        .summary("Reads go beyond write pointers, where nothing was written");

    pub const MAX_OPEN_ZONES: Opt<u32> = count("max_open_zones", 0, 1_000_000)
        .default("0")
        .unit("zones")
        .scope(&[Scope::Zones])
        .summary("Zones partly written at a time, of all jobs together; 0: as many as the device allows")
        .detail("At the limit a write goes to an open zone of the region; where there is none it waits, and a \
                 zone that a job has left is finished.");

    pub const JOB_MAX_OPEN_ZONES: Opt<u32> = count("job_max_open_zones", 0, 1_000_000)
        .default("0")
        .unit("zones")
        .scope(&[Scope::Zones])
        .summary("The same of each worker; 0: not limited");

    pub const IGNORE_ZONE_LIMITS: Opt<bool> = switch("ignore_zone_limits")
        .scope(&[Scope::Zones])
        .summary("What the device says of open and active zones limits nothing");

    pub const ZONE_RESET_THRESHOLD: Opt<f64> = part("zone_reset_threshold")
        .default("0")
        .unit("part")
        .scope(&[Scope::Zones])
        .summary("The part of the region that is written before zones are reset though they have room");

    pub const ZONE_RESET_FREQUENCY: Opt<f64> = part("zone_reset_frequency")
        .default("0")
        .unit("resets a write")
        .scope(&[Scope::Zones])
        .summary("How often that is: 0.01 is one reset in a hundred writes");

    pub const WRITE_ZONE_REMAINDER: Opt<bool> = switch("write_zone_remainder")
        .scope(&[Scope::Zones])
        .summary("What is left of a zone and is less than a block is written by a smaller write");

    pub const RANDSEED: Opt<Option<u64>> = seed("randseed")
        .unset("derived from a constant and the job's place, the same in each run")
        .unit("number")
        .replaces(&["randrepeat"])
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .summary("The seed of offsets, sizes, mix, arrivals and content")
        .detail("The same seed gives the same offsets on every engine. Each worker derives its own from it.");

    pub const RANDREPEAT: Opt<bool> = switch("randrepeat")
        .default("true")
        .fio_names(&["allrandrepeat"])
        .replaces(&["randseed"])
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .summary("The same seed in each run")
        .detail("If false, the seed differs from run to run; the record keeps it.");

    pub const READ_IOLOG: Opt<Option<String>> = path("read_iolog")
        .unset("the pattern is drawn")
        .unit("path")
        .scope(&[Scope::Measured])
        .summary("A log of I/O (fio's iolog, version 2 or 3) is replayed, each line at its time")
        .detail("The log says what is done: to which files, where, how much, when. It is read once while \
                 planning, and its files go through the same rules as those of `filename`: one that exists is \
                 written only if `overwrite_existing` names it, and none is made longer. Latency counts from \
                 the moment of the line. `-` is standard input, if that is a file. Each worker replays the \
                 whole log.");

    pub const REPLAY_NO_STALL: Opt<bool> = switch("replay_no_stall")
        .scope(&[Scope::Replay])
        .summary("The log's times are passed over: its I/Os follow each other as fast as the depth allows");

    pub const REPLAY_TIME_SCALE: Opt<u64> = count("replay_time_scale", 1, 1_000_000)
        .default("100")
        .unit("%")
        .scope(&[Scope::Replay])
        .summary("The pace of a replay in percent of the log's; 200 is twice as fast");

    pub const REPLAY_REDIRECT: Opt<Option<String>> = path("replay_redirect")
        .unset("each I/O goes to the log's file")
        .unit("path")
        .scope(&[Scope::Replay])
        .summary("All I/O of a log goes to this file or device");

    pub const REPLAY_ALIGN: Opt<Option<u64>> = bytes("replay_align")
        .unset("offsets are the log's")
        .unit("bytes")
        .scope(&[Scope::Replay])
        .summary("The log's offsets are rounded down to multiples of it, a power of two");

    pub const REPLAY_SCALE: Opt<u64> = count("replay_scale", 1, 1 << 40)
        .default("1")
        .unit("number")
        .scope(&[Scope::Replay])
        .summary("The log's offsets are divided by it, before `replay_align`");

    pub const REPLAY_SKIP: Opt<Option<Vec<String>>> = names("replay_skip")
        .unset("nothing is left out")
        .unit("names")
        .scope(&[Scope::Replay])
        .summary("What of a log is left out: `read`, `write`, `trim`, `sync`");
}
