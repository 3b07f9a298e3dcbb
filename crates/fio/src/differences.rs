//! The differences from fio that are wanted: sets of options that end or count differently here, each with its reason.
//!
//! The differential runner (`crates/cli/tests/it/fio_differential.rs`) runs drawn sets of options with both programs, and reports
//! each difference that this list does not hold. `docs/fio-options.md` is rendered from it.

/// A wanted difference.
#[derive(Debug, Clone, Copy)]
pub struct Difference {
    /// The options that bring it about, all of them: `name`, `name=value`, or `name=` and the beginning of a value.
    pub options: &'static [&'static str],
    /// Options next to which it does not come about, each of them.
    pub without: &'static [&'static str],
    /// True if it comes about only where the options follow each other as they are listed, as words of a command line.
    pub in_order: bool,
    /// What fio does.
    pub fio: &'static str,
    /// What this program does.
    pub here: &'static str,
}

const fn difference(options: &'static [&'static str], fio: &'static str, here: &'static str) -> Difference {
    Difference { options, without: &[], in_order: false, fio, here }
}

const fn in_order(options: &'static [&'static str], fio: &'static str, here: &'static str) -> Difference {
    Difference { options, without: &[], in_order: true, fio, here }
}

/// A job with `io_submit_mode=offload` that passes over its files again.
const fn once(options: &'static [&'static str]) -> Difference {
    difference(
        options,
        "the job ends with its first pass over its files",
        "it goes on until `io_size`, or for all `loops`",
    )
}

/// A size that is no whole number of blocks, where the last one can be drawn early.
const fn drawn_end(options: &'static [&'static str]) -> Difference {
    difference(
        options,
        "the part of a block at the end can be drawn, and a job that draws it ends there, with blocks left",
        "it goes on until `io_size`",
    )
}

/// Blocks of several sizes that begin anywhere.
const fn beyond_end(options: &'static [&'static str]) -> Difference {
    difference(
        options,
        "a block can be drawn that ends beyond the file, and a job that draws it ends there, with blocks left",
        "it goes on until `size`",
    )
}

/// Blocks that are smaller than their alignment, from a skewed distribution.
const fn beyond_aligned(options: &'static [&'static str]) -> Difference {
    Difference {
        options,
        without: &["random_distribution=random", "random_distribution=zoned", "bs=16k", "bsrange=4k-16k", "bssplit=4k"],
        in_order: false,
        fio: "it is drawn from as many blocks as the smallest ones are, and the number drawn is one of aligned blocks: most are \
              beyond the file, and a job that draws one ends there, as a success",
        here: "it is drawn from the aligned blocks of the file",
    }
}

/// Blocks of several sizes that begin anywhere, and are compared.
const fn overlapping(options: &'static [&'static str]) -> Difference {
    Difference {
        options,
        without: &["rw=read", "rw=randread", "rw=randtrim", "do_verify=0", "verify=0", "verify=null"],
        in_order: false,
        fio: "a block of which a later one replaced a part is not compared",
        here: "refused: a block may begin within another one, whose content is then unknown",
    }
}

/// A job that only creates its files, with a log.
const fn no_logs(options: &'static [&'static str]) -> Difference {
    difference(options, "empty logs are created", "no logs: nothing is measured")
}

/// A job that writes a part of a new file (`a` and `b` exist) through a mapping.
const fn mapped(options: &'static [&'static str]) -> Difference {
    Difference {
        options,
        without: &["rw=read", "rw=randread", "rw=randtrim", "verify_only=1", "filename=a", "filename=b"],
        in_order: false,
        fio: "a new file that is written through a mapping is filled before: what the job does not write holds data",
        here: "its space is allocated, and reads as zeros",
    }
}

/// Direct reads of the files before the run.
const fn unaligned(options: &'static [&'static str]) -> Difference {
    Difference {
        options,
        without: &["rw=write", "rw=randwrite", "rw=randtrim"],
        in_order: false,
        fio: "the buffer of the reads before the run is not aligned: an I/O error on most filesystems",
        here: "it is aligned, and the files are read before the run",
    }
}

/// A new file that the job itself extends, and that is to be read before.
const fn extended(options: &'static [&'static str]) -> Difference {
    Difference {
        options,
        without: &[
            "rw=read",
            "rw=randread",
            "rw=rw",
            "rw=randrw",
            "rw=randtrim",
            "filename=a",
            "filename=b",
            "overwrite=1",
        ],
        in_order: false,
        fio: "the file is still empty when it is read: an I/O error",
        here: "the part that exists is read",
    }
}

/// A job that only reads an existing file (`a` and `b` have 1 MiB), beyond its end.
const fn laid_out_again(options: &'static [&'static str]) -> Difference {
    Difference {
        options,
        without: &[
            "rw=randrw",
            "rw=randwrite",
            "rw=randtrim",
            "ioengine=null",
            "filename=a:b",
            "filesize",
            "create_on_open=1",
        ],
        in_order: false,
        fio: "the file is extended and written anew: what it held is lost",
        here: "the part that exists is read, and the file stays as it is",
    }
}

/// A file that existed before.
const fn kept(options: &'static [&'static str]) -> Difference {
    difference(options, "a file that existed before is removed, too", "only files that the run created are removed")
}

/// A job that creates its files when they are opened, and opens none.
const fn none_opened(options: &'static [&'static str]) -> Difference {
    Difference {
        options,
        without: &["filename=a", "filename=b", "ioengine=null"],
        in_order: false,
        fio: "no file is opened, so none is created",
        here: "a missing file is created, empty",
    }
}

/// Too few blocks of each file for fio's register.
const fn few_blocks(options: &'static [&'static str]) -> Difference {
    difference(
        options,
        "the generator cannot start with less than 16 blocks of a file: nothing is transferred, and the job succeeds",
        "each block is transferred",
    )
}

/// A job that reads, with `create_on_open`.
const fn late(rw: &'static [&'static str]) -> Difference {
    let fio = "a missing file is created, empty: reads transfer nothing, and `vsync` counts them as transferred";
    difference(
        rw,
        fio,
        "the file is created with data before the job; with an engine of single calls, whose job fails in fio, it is refused",
    )
}

/// A job that writes in order to part of an existing file (`a` and `b` have 1 MiB), in blocks that do not divide the part.
const fn within_size(options: &'static [&'static str]) -> Difference {
    let fio = "the last block begins within `size` and is written whole: it replaces data of the file after `size`";
    difference(options, fio, "a job without `filesize` writes only within `size`: it ends with the last whole block")
}

/// A job that reads the beginning of a longer file in order, in blocks that do not divide its `filesize`.
const fn within_filesize(options: &'static [&'static str]) -> Difference {
    let fio = "the last block begins within `filesize` and is read whole, beyond it";
    difference(options, fio, "a job with `filesize` reads only within it: it ends with the last whole block")
}

/// A job that verifies what no job wrote, and goes on after errors.
const fn unverifiable(options: &'static [&'static str]) -> Difference {
    Difference {
        options,
        without: &["filename=a", "filename=b"],
        in_order: false,
        fio: "files are created with random content, each block is an error that is ignored, and the job succeeds",
        here: "refused: no job writes the blocks that would be compared",
    }
}

/// A job that writes at random more than its files hold.
const fn read_back_once(options: &'static [&'static str]) -> Difference {
    Difference {
        options,
        without: &["do_verify=0", "verify=0"],
        in_order: false,
        fio: "each pass over the files is read back when it ends, and that counts for `io_size`",
        here: "the last pass is read back, after it; `io_size` counts the writes",
    }
}

/// A job that writes its files several times in each loop.
const fn every_loop(options: &'static [&'static str]) -> Difference {
    let fio = "fio 3.42 transfers `io_size` in each loop, and reads back what the last one wrote; fio 3.33 as here";
    difference(options, fio, "all loops together transfer `io_size`, in whole passes")
}

/// Poisson arrivals without a rate, next to a minimum.
const fn no_rate(options: &'static [&'static str]) -> Difference {
    Difference {
        options,
        without: &["rate", "rate_iops"],
        in_order: false,
        fio: "the distance of I/Os is drawn around a rate of 0: the job ends after one that transfers nothing",
        here: "`rate_process` has no effect without a rate",
    }
}

/// Random writes that come to blocks again, with headers.
const fn written_again(options: &'static [&'static str]) -> Difference {
    Difference {
        options,
        without: &[
            "rw=randread",
            "rw=randtrim",
            "do_verify=0",
            "verify=0",
            "verify=null",
            "norandommap=1",
            "number_ios=1",
        ],
        in_order: false,
        fio: "a block that was written twice is compared with the seed of its first header: corruption that does not exist",
        here: "it is compared with its last write, and the job succeeds",
    }
}

/// A job that draws its writes a second time, to read them back.
const fn drawn_again(options: &'static [&'static str]) -> Difference {
    Difference {
        options,
        without: &[
            "rw=read",
            "rw=randread",
            "rw=randtrim",
            "do_verify=0",
            "verify=0",
            "verify=null",
            "number_ios=1",
            "create_only=1",
        ],
        in_order: false,
        fio: "`experimental_verify` draws what was written again, and begins with the seeds of a job without these options: it compares \
              other blocks, and reports corruption that does not exist",
        here: "each block is compared with its last write, and the job succeeds",
    }
}

/// A job that reads after the end of a file that exists.
const fn appended(options: &'static [&'static str]) -> Difference {
    let fio = "the file is extended, and the job reads what was appended";
    difference(options, fio, "refused: a job that only reads does not change a file that it names")
}

/// A job that writes with `io_submit_mode=offload` and saves the state of its verification.
const fn aborted(verify: &'static [&'static str]) -> Difference {
    Difference {
        options: verify,
        without: &["rw=read", "rw=randread", "rw=randtrim", "verify=0", "verify_only=1", "verify_state_save=0"],
        in_order: false,
        fio: "an assertion fails in the threads that submit: the job is aborted without a result, and the exit code is 0",
        here: "the job writes, and reads back",
    }
}

/// A job that appends to a file (`a` and `b` have 1 MiB) that is longer than its `filesize`.
const fn beyond_filesize(options: &'static [&'static str]) -> Difference {
    let fio = "the region would begin at the end of the file, after `filesize`: an error";
    difference(options, fio, "`filesize` is the amount to append")
}

/// A job that appends in blocks of several sizes, each place once.
const fn appended_sizes(options: &'static [&'static str]) -> Difference {
    difference(
        options,
        "there is one pass, which ends once no free place is found for the next size, with blocks left",
        "it goes on until `size`",
    )
}

/// A job that reads and writes what it appends, with an amount above it.
const fn appended_mixed(options: &'static [&'static str]) -> Difference {
    difference(
        options,
        "there is one pass, which ends once the reads or the writes have reached the end of the file",
        "it ends once both together have transferred `size`",
    )
}

/// A job that is sequential in part, in a file that is longer than its `size`.
const fn beyond_region(options: &'static [&'static str]) -> Difference {
    difference(
        options,
        "the I/O that follows the last block of `size` is beyond it, and a job that draws that block ends there, with blocks left",
        "it goes on until `size`",
    )
}

/// A job that compares what an engine without data reads.
const fn kept_nowhere(options: &'static [&'static str]) -> Difference {
    Difference {
        options,
        without: &["rw=read", "rw=randread", "rw=randtrim", "verify=0", "verify=null"],
        in_order: false,
        fio: "the buffers still hold what was written, and compare as right",
        here: "refused: nothing would be compared",
    }
}

/// The wanted differences.
pub const DIFFERENCES: &[Difference] = &[
    difference(&["rw=trim"], "a trim of a regular file is an error", "it punches a hole (`fallocate`)"),
    difference(&["rw=trimwrite"], "a trim of a regular file is an error", "it punches a hole (`fallocate`)"),
    difference(&["rw=randtrim"], "a trim of a regular file is an error", "it punches a hole (`fallocate`)"),
    difference(
        &["rw=randrw", "bs=8k,4k"],
        "reads and writes of different sizes end once no free place is found for the next one, with blocks left",
        "they go on until `io_size`",
    ),
    difference(
        &["rw=randread", "bs=8k,4k"],
        "reads that are larger than the blocks of writes end once no free place is found for the next one, with blocks left",
        "they go on until `io_size`",
    ),
    Difference {
        options: &["verify_only=1"],
        without: &["verify", "verify_pattern"],
        in_order: false,
        fio: "without `verify`, blocks are counted as written, and nothing is read or written",
        here: "they are read, and compared with nothing",
    },
    difference(
        &["verify_only=1", "verify=0"],
        "without `verify`, blocks are counted as written, and nothing is read or written",
        "they are read, and compared with nothing",
    ),
    once(&["io_submit_mode=offload", "rw=read", "io_size=2m"]),
    once(&["io_submit_mode=offload", "rw=rand", "io_size=2m"]),
    once(&["io_submit_mode=offload", "size=50000", "io_size=2m"]),
    once(&["io_submit_mode=offload", "rw=read", "io_limit=3m"]),
    once(&["io_submit_mode=offload", "rw=rand", "io_limit=3m"]),
    once(&["io_submit_mode=offload", "size=50000", "io_limit=3m"]),
    once(&["io_submit_mode=offload", "size=50000", "io_size=128k"]),
    once(&["io_submit_mode=offload", "rw=read", "size=64k", "io_size=128k"]),
    once(&["io_submit_mode=offload", "rw=rand", "size=64k", "io_size=128k"]),
    once(&["io_submit_mode=offload", "rw=read", "size=100k", "io_size=128k"]),
    once(&["io_submit_mode=offload", "rw=rand", "size=100k", "io_size=128k"]),
    // Of 16 blocks, fio 3.42 transfers 16, with `loops=2` and with any pattern; inline 32.
    once(&["io_submit_mode=offload", "loops=2"]),
    no_logs(&["create_only=1", "write_lat_log"]),
    no_logs(&["create_only=1", "write_bw_log"]),
    no_logs(&["create_only=1", "write_iops_log"]),
    no_logs(&["create_only=1", "write_hist_log"]),
    difference(
        &["io_submit_mode=offload", "number_ios"],
        "I/Os that the submitting threads have not begun are not counted, so some more are issued",
        "the job ends after that many",
    ),
    mapped(&["ioengine=mmap", "size=50000"]),
    mapped(&["ioengine=mmap", "size=100k"]),
    mapped(&["ioengine=mmap", "offset"]),
    mapped(&["ioengine=mmap", "offset_increment"]),
    mapped(&["ioengine=mmap", "io_size"]),
    mapped(&["ioengine=mmap", "io_limit"]),
    mapped(&["ioengine=mmap", "number_ios"]),
    mapped(&["ioengine=mmap", "filesize"]),
    few_blocks(&["random_generator=lfsr", "size=50000"]),
    few_blocks(&["random_generator=lfsr", "size=64k", "nrfiles=2"]),
    few_blocks(&["random_generator=lfsr", "size=64k", "nrfiles=3"]),
    few_blocks(&["random_generator=lfsr", "size=64k", "bs=16k"]),
    few_blocks(&["random_generator=lfsr", "size=100k", "nrfiles=2"]),
    few_blocks(&["random_generator=lfsr", "size=100k", "nrfiles=3"]),
    few_blocks(&["random_generator=lfsr", "size=100k", "bs=16k"]),
    few_blocks(&["random_generator=lfsr", "size=64k", "filename=a:b"]),
    few_blocks(&["random_generator=lfsr", "size=64k", "filename=n:m"]),
    few_blocks(&["random_generator=lfsr", "size=100k", "filename=a:b"]),
    few_blocks(&["random_generator=lfsr", "size=100k", "filename=n:m"]),
    few_blocks(&["random_generator=lfsr", "size=64k", "blocksize=8k"]),
    few_blocks(&["random_generator=lfsr", "size=100k", "blocksize=8k"]),
    few_blocks(&["random_generator=lfsr", "size=256k", "filename=a:b", "bs=16k"]),
    few_blocks(&["random_generator=lfsr", "size=256k", "filename=n:m", "bs=16k"]),
    few_blocks(&["random_generator=lfsr", "size=256k", "nrfiles=2", "bs=16k"]),
    few_blocks(&["random_generator=lfsr", "size=256k", "nrfiles=3", "bs=16k"]),
    few_blocks(&["random_generator=lfsr", "size=256k", "nrfiles=3", "blocksize=8k"]),
    few_blocks(&["random_generator=lfsr", "filesize=64k", "bs=16k"]),
    few_blocks(&["random_generator=lfsr", "filesize=128k", "bs=16k"]),
    few_blocks(&["random_generator=lfsr", "filesize=64k", "blocksize=8k"]),
    drawn_end(&["rw=rand", "size=50000", "random_distribution=pareto"]),
    drawn_end(&["rw=rand", "size=50000", "random_distribution=zipf"]),
    drawn_end(&["rw=rand", "size=50000", "percentage_random=50"]),
    drawn_end(&["rw=rand", "size=100k", "bs=", "random_distribution=pareto"]),
    drawn_end(&["rw=rand", "size=100k", "bs=", "random_distribution=zipf"]),
    drawn_end(&["rw=rand", "size=100k", "bs=", "percentage_random=50"]),
    drawn_end(&["rw=rand", "size=100k", "blocksize=", "random_distribution=pareto"]),
    drawn_end(&["rw=rand", "size=100k", "blocksize=", "random_distribution=zipf"]),
    drawn_end(&["rw=rand", "size=100k", "blocksize=", "percentage_random=50"]),
    drawn_end(&["rw=rand", "size=64k", "nrfiles=3", "random_distribution=pareto"]),
    drawn_end(&["rw=rand", "size=64k", "nrfiles=3", "random_distribution=zipf"]),
    drawn_end(&["rw=rand", "size=64k", "nrfiles=3", "percentage_random=50"]),
    drawn_end(&["rw=rand", "size=256k", "nrfiles=3", "random_distribution=pareto"]),
    drawn_end(&["rw=rand", "size=256k", "nrfiles=3", "random_distribution=zipf"]),
    drawn_end(&["rw=rand", "size=256k", "nrfiles=3", "percentage_random=50"]),
    drawn_end(&["rw=rand", "size=1m", "nrfiles=3", "random_distribution=pareto"]),
    drawn_end(&["rw=rand", "size=1m", "nrfiles=3", "random_distribution=zipf"]),
    drawn_end(&["rw=rand", "size=1m", "nrfiles=3", "percentage_random=50"]),
    drawn_end(&["rw=rand", "size=100k", "nrfiles=2", "random_distribution=pareto"]),
    drawn_end(&["rw=rand", "size=100k", "nrfiles=2", "random_distribution=zipf"]),
    drawn_end(&["rw=rand", "size=100k", "nrfiles=2", "percentage_random=50"]),
    drawn_end(&["rw=rand", "size=100k", "filename=a:b", "random_distribution=pareto"]),
    drawn_end(&["rw=rand", "size=100k", "filename=a:b", "random_distribution=zipf"]),
    drawn_end(&["rw=rand", "size=100k", "filename=a:b", "percentage_random=50"]),
    drawn_end(&["rw=rand", "size=100k", "filename=n:m", "random_distribution=pareto"]),
    drawn_end(&["rw=rand", "size=100k", "filename=n:m", "random_distribution=zipf"]),
    drawn_end(&["rw=rand", "size=100k", "filename=n:m", "percentage_random=50"]),
    drawn_end(&["rw=rand", "size=100k", "nrfiles=3", "random_distribution=pareto"]),
    drawn_end(&["rw=rand", "size=100k", "nrfiles=3", "random_distribution=zipf"]),
    drawn_end(&["rw=rand", "size=100k", "nrfiles=3", "percentage_random=50"]),
    drawn_end(&["rw=rand", "bs=3000", "random_distribution=pareto"]),
    drawn_end(&["rw=rand", "bs=3000", "random_distribution=zipf"]),
    drawn_end(&["rw=rand", "bs=3000", "percentage_random=50"]),
    unverifiable(&["rw=read", "verify", "continue_on_error=all"]),
    unverifiable(&["rw=read", "verify", "continue_on_error=verify"]),
    unverifiable(&["rw=read", "verify_pattern", "continue_on_error=all"]),
    unverifiable(&["rw=read", "verify_pattern", "continue_on_error=verify"]),
    unverifiable(&["verify_only=1", "verify", "continue_on_error=all"]),
    unverifiable(&["verify_only=1", "verify", "continue_on_error=verify"]),
    unverifiable(&["verify_only=1", "verify_pattern", "continue_on_error=all"]),
    unverifiable(&["verify_only=1", "verify_pattern", "continue_on_error=verify"]),
    unverifiable(&["rw=randread", "verify", "continue_on_error=all"]),
    unverifiable(&["rw=randread", "verify", "continue_on_error=verify"]),
    unverifiable(&["rw=randread", "verify_pattern", "continue_on_error=all"]),
    unverifiable(&["rw=randread", "verify_pattern", "continue_on_error=verify"]),
    every_loop(&["rw=write", "loops=2", "io_size=2m"]),
    every_loop(&["rw=write", "loops=2", "io_limit=3m"]),
    every_loop(&["rw=write", "loops=2", "size=64k", "io_size=128k"]),
    every_loop(&["rw=write", "loops=2", "size=100k", "io_size=128k"]),
    read_back_once(&["rw=randwrite", "verify=", "io_size=2m"]),
    read_back_once(&["rw=randwrite", "verify_pattern=", "io_size=2m"]),
    read_back_once(&["rw=randwrite", "verify=", "io_limit=3m"]),
    read_back_once(&["rw=randwrite", "verify_pattern=", "io_limit=3m"]),
    read_back_once(&["rw=randwrite", "verify=", "size=64k", "io_size=128k"]),
    read_back_once(&["rw=randwrite", "verify=", "size=50000", "io_size=128k"]),
    read_back_once(&["rw=randwrite", "verify=", "size=100k", "io_size=128k"]),
    read_back_once(&["rw=randwrite", "verify_pattern=", "size=64k", "io_size=128k"]),
    read_back_once(&["rw=randwrite", "verify_pattern=", "size=50000", "io_size=128k"]),
    read_back_once(&["rw=randwrite", "verify_pattern=", "size=100k", "io_size=128k"]),
    beyond_region(&["rw=rand", "percentage_random=50", "filename=a"]),
    beyond_region(&["rw=rand", "percentage_random=50", "filename=b"]),
    written_again(&["rw=rand", "random_distribution=zipf", "verify="]),
    written_again(&["rw=rand", "random_distribution=pareto", "verify="]),
    written_again(&["rw=rand", "random_distribution=normal", "verify="]),
    written_again(&["rw=rand", "random_distribution=zoned", "verify="]),
    written_again(&["rw=rand", "percentage_random=50", "verify="]),
    written_again(&["rw=rand", "percentage_random=50", "verify_pattern="]),
    drawn_again(&["experimental_verify=1", "randseed", "rw=rand", "verify="]),
    drawn_again(&["experimental_verify=1", "randseed", "rw=rand", "verify_pattern="]),
    drawn_again(&["experimental_verify=1", "randseed", "bsrange=", "verify="]),
    drawn_again(&["experimental_verify=1", "randseed", "bsrange=", "verify_pattern="]),
    drawn_again(&["experimental_verify=1", "randseed", "bssplit=", "verify="]),
    drawn_again(&["experimental_verify=1", "randseed", "bssplit=", "verify_pattern="]),
    drawn_again(&["experimental_verify=1", "randseed", "file_service_type=random", "nrfiles=", "verify="]),
    drawn_again(&["experimental_verify=1", "randseed", "file_service_type=random", "nrfiles=", "verify_pattern="]),
    drawn_again(&["experimental_verify=1", "randseed", "rw=rw", "nrfiles=", "verify="]),
    drawn_again(&["experimental_verify=1", "randseed", "rw=rw", "nrfiles=", "verify_pattern="]),
    drawn_again(&["experimental_verify=1", "randrepeat=0", "rw=rand", "verify="]),
    drawn_again(&["experimental_verify=1", "randrepeat=0", "rw=rand", "verify_pattern="]),
    drawn_again(&["experimental_verify=1", "randrepeat=0", "bsrange=", "verify="]),
    drawn_again(&["experimental_verify=1", "randrepeat=0", "bsrange=", "verify_pattern="]),
    drawn_again(&["experimental_verify=1", "randrepeat=0", "bssplit=", "verify="]),
    drawn_again(&["experimental_verify=1", "randrepeat=0", "bssplit=", "verify_pattern="]),
    drawn_again(&["experimental_verify=1", "randrepeat=0", "file_service_type=random", "nrfiles=", "verify="]),
    drawn_again(&["experimental_verify=1", "randrepeat=0", "file_service_type=random", "nrfiles=", "verify_pattern="]),
    drawn_again(&["experimental_verify=1", "randrepeat=0", "rw=rw", "nrfiles=", "verify="]),
    drawn_again(&["experimental_verify=1", "randrepeat=0", "rw=rw", "nrfiles=", "verify_pattern="]),
    drawn_again(&["experimental_verify=1", "allrandrepeat=0", "rw=rand", "verify="]),
    drawn_again(&["experimental_verify=1", "allrandrepeat=0", "rw=rand", "verify_pattern="]),
    drawn_again(&["experimental_verify=1", "allrandrepeat=0", "bsrange=", "verify="]),
    drawn_again(&["experimental_verify=1", "allrandrepeat=0", "bsrange=", "verify_pattern="]),
    drawn_again(&["experimental_verify=1", "allrandrepeat=0", "bssplit=", "verify="]),
    drawn_again(&["experimental_verify=1", "allrandrepeat=0", "bssplit=", "verify_pattern="]),
    drawn_again(&["experimental_verify=1", "allrandrepeat=0", "file_service_type=random", "nrfiles=", "verify="]),
    drawn_again(&[
        "experimental_verify=1",
        "allrandrepeat=0",
        "file_service_type=random",
        "nrfiles=",
        "verify_pattern=",
    ]),
    drawn_again(&["experimental_verify=1", "allrandrepeat=0", "rw=rw", "nrfiles=", "verify="]),
    drawn_again(&["experimental_verify=1", "allrandrepeat=0", "rw=rw", "nrfiles=", "verify_pattern="]),
    Difference {
        options: &["create_on_open=1", "pre_read=1"],
        without: &["rw=read", "rw=randread", "filename=a", "filename=b"],
        in_order: false,
        fio: "the file is read before it exists: an I/O error",
        here: "a file that does not exist is not read before",
    },
    extended(&["fallocate=none", "pre_read=1"]),
    extended(&["fallocate=keep", "pre_read=1"]),
    no_rate(&["rate_min", "rate_process=poisson"]),
    no_rate(&["rate_iops_min", "rate_process=poisson"]),
    appended(&["rw=read", "file_append=1", "filename=a"]),
    appended(&["rw=read", "file_append=1", "filename=b"]),
    appended(&["rw=randread", "file_append=1", "filename=a"]),
    appended(&["rw=randread", "file_append=1", "filename=b"]),
    laid_out_again(&["rw=read", "size=1m", "offset=4k", "filename=a"]),
    laid_out_again(&["rw=read", "size=1m", "offset=64k", "filename=a"]),
    laid_out_again(&["rw=read", "size=1m", "offset_increment=64k", "numjobs=2", "filename=a"]),
    laid_out_again(&["rw=read", "size=1m", "offset_increment=64k", "numjobs=3", "filename=a"]),
    laid_out_again(&["rw=read", "size=1m", "offset=4k", "filename=b"]),
    laid_out_again(&["rw=read", "size=1m", "offset=64k", "filename=b"]),
    laid_out_again(&["rw=read", "size=1m", "offset_increment=64k", "numjobs=2", "filename=b"]),
    laid_out_again(&["rw=read", "size=1m", "offset_increment=64k", "numjobs=3", "filename=b"]),
    laid_out_again(&["rw=rand", "size=1m", "offset=4k", "filename=a"]),
    laid_out_again(&["rw=rand", "size=1m", "offset=64k", "filename=a"]),
    laid_out_again(&["rw=rand", "size=1m", "offset_increment=64k", "numjobs=2", "filename=a"]),
    laid_out_again(&["rw=rand", "size=1m", "offset_increment=64k", "numjobs=3", "filename=a"]),
    laid_out_again(&["rw=rand", "size=1m", "offset=4k", "filename=b"]),
    laid_out_again(&["rw=rand", "size=1m", "offset=64k", "filename=b"]),
    laid_out_again(&["rw=rand", "size=1m", "offset_increment=64k", "numjobs=2", "filename=b"]),
    laid_out_again(&["rw=rand", "size=1m", "offset_increment=64k", "numjobs=3", "filename=b"]),
    within_size(&["rw=write", "bs=3000", "filename=a"]),
    within_size(&["rw=write", "bs=3000", "filename=b"]),
    within_filesize(&["rw=read", "filesize", "bs=3000", "filename=a"]),
    within_filesize(&["rw=read", "filesize", "bs=3000", "filename=b"]),
    within_size(&["rw=write", "size=50000", "filename=a"]),
    within_size(&["rw=write", "size=50000", "filename=b"]),
    within_size(&["rw=write", "size=100k", "filename=a:b"]),
    within_size(&["rw=rw", "rwmixread=0", "size=50000", "filename=a"]),
    within_size(&["rw=rw", "rwmixread=0", "size=50000", "filename=b"]),
    late(&["create_on_open=1", "rw=read"]),
    late(&["create_on_open=1", "rw=randread"]),
    late(&["create_on_open=1", "rw=rw"]),
    late(&["create_on_open=1", "rw=randrw"]),
    kept(&["unlink=1", "filename=a"]),
    kept(&["unlink=1", "filename=b"]),
    Difference {
        options: &["verify_only=1", "verify=null"],
        without: &["filename=a", "filename=b", "ioengine=null", "rw=read", "rw=randread"],
        in_order: false,
        fio: "a missing file of a job that only writes is created with its size, and holds zeros",
        here: "it is laid out with data, as that of a job that reads",
    },
    none_opened(&["create_on_open=1", "create_only=1", "rw=write"]),
    none_opened(&["create_on_open=1", "create_only=1", "rw=randwrite"]),
    Difference {
        options: &["allow_file_create=0", "create_serialize=0"],
        without: &["filename=a", "filename=b", "ioengine=null", "create_on_open=1"],
        in_order: false,
        fio: "a missing file is reported, nothing is transferred, and the exit code is 0; without `create_serialize=0` it is 1",
        here: "refused: the file does not exist, and the exit code is 1",
    },
    aborted(&["io_submit_mode=offload", "verify="]),
    aborted(&["io_submit_mode=offload", "verify_pattern"]),
    appended_mixed(&["rw=rw", "file_append=1", "io_size="]),
    appended_mixed(&["rw=rw", "file_append=1", "io_limit="]),
    appended_mixed(&["rw=rw", "file_append=1", "loops=2"]),
    appended_sizes(&["rw=rand", "file_append=1", "bssplit"]),
    appended_sizes(&["rw=rand", "file_append=1", "bsrange"]),
    beyond_filesize(&["file_append=1", "filesize", "filename=a"]),
    beyond_filesize(&["file_append=1", "filesize", "filename=b"]),
    difference(
        &["filesize=64k", "offset=64k"],
        "the region begins at the end of the file: nothing is transferred, and the job succeeds",
        "refused: nothing would be transferred",
    ),
    Difference {
        options: &["ioengine=io_uring", "sync_file_range"],
        without: &["rw=read", "rw=randread", "rw=randtrim"],
        in_order: false,
        fio: "the address of an earlier write is left in the submission, which the kernel refuses (`EINVAL`)",
        here: "the range that was written since the last call is synced",
    },
    unaligned(&["direct=1", "pre_read=1"]),
    unaligned(&["buffered=0", "pre_read=1"]),
    in_order(
        &["buffer_pattern", "scramble_buffers=1"],
        "on a command line, after `buffer_pattern`, the time of each I/O is written over the pattern",
        "the pattern is written whole",
    ),
    difference(
        &["random_generator=lfsr", "ba="],
        "blocks are numbered in units of `ba`: the job ends at the first one beyond its file, as a success",
        "each block is transferred",
    ),
    difference(
        &["ioengine=mmap", "file_append=1"],
        "refused: the engine does not extend files",
        "the file is extended before it is mapped, and the job writes what was added",
    ),
    mapped(&["ioengine=mmap", "create_only=1"]),
    beyond_aligned(&["rw=rand", "random_distribution=", "ba="]),
    beyond_aligned(&["rw=rand", "random_distribution=", "blockalign="]),
    overlapping(&["bs_unaligned=1", "bsrange=", "verify="]),
    overlapping(&["bs_unaligned=1", "bsrange=", "verify_pattern="]),
    overlapping(&["bs_unaligned=1", "bssplit=", "verify="]),
    overlapping(&["bs_unaligned=1", "bssplit=", "verify_pattern="]),
    beyond_end(&["bs_unaligned=1", "rw=rand", "bsrange="]),
    beyond_end(&["bs_unaligned=1", "rw=rand", "bssplit="]),
    kept_nowhere(&["ioengine=null", "verify="]),
    kept_nowhere(&["ioengine=null", "verify_pattern="]),
    difference(
        &["ioengine=io_uring", "io_submit_mode=offload"],
        "refused: the engine is not for threads that submit",
        "the job runs, as with other engines",
    ),
    difference(
        &["ioengine=null", "pre_read=1"],
        "a file that no engine opens is read before the run: the job crashes",
        "nothing is read before the run",
    ),
    difference(
        &["ioengine=vsync", "iodepth="],
        "the last batch of adjacent blocks is not counted",
        "each block is counted",
    ),
    Difference {
        options: &["verify_offset=64", "verify=sha256"],
        without: &["rw=read", "rw=randread", "rw=randtrim", "do_verify=0"],
        in_order: false,
        fio: "a header with its checksum is longer than `verify_offset`, and is exchanged with a part of itself: corruption that does not exist",
        here: "each block is compared whole",
    },
    difference(
        &["zero_buffers", "scramble_buffers=1"],
        "the time of each I/O is written into the zeros, if `scramble_buffers` is set by name",
        "zeros are written",
    ),
    difference(
        &["rw=rand", "bssplit", "bsrange"],
        "sizes of `bssplit` are placed by the least one of `bsrange`, and the job ends, as a success, once one does not fit there",
        "`bssplit` alone counts, and the job goes on until `size`",
    ),
    difference(
        &["bs=2g"],
        "Linux transfers less than 2 GiB in one call: an I/O of 2 GiB is two calls, whose latencies count as one",
        "refused, as is any block above `1g`: a latency is that of one call",
    ),
];

impl Difference {
    /// Returns true if a set of options brings it about. `set` holds words `name=value`.
    pub fn covers(&self, set: &[String]) -> bool {
        let places: Option<Vec<usize>> = self.options.iter().map(|wanted| place(set, wanted)).collect();
        let is_there = places.is_some_and(|places| !self.in_order || places.is_sorted());
        is_there && self.without.iter().all(|other| place(set, other).is_none())
    }

    /// Returns a set with this difference's options in the reverse order, in which it does not come about; `None`: the order of
    /// the options is of no effect.
    pub fn reversed(&self, set: &[String]) -> Option<Vec<String>> {
        let mut places: Vec<usize> = self.options.iter().filter_map(|wanted| place(set, wanted)).collect();
        places.sort_unstable();
        let mut reversed = set.to_vec();
        for (to, from) in places.iter().zip(places.iter().rev()) {
            reversed[*to].clone_from(&set[*from]);
        }
        self.in_order.then_some(reversed)
    }
}

/// Returns where in a set an option is: `name`, or the beginning of `name=value`.
fn place(set: &[String], wanted: &str) -> Option<usize> {
    set.iter().position(|word| match wanted.contains('=') {
        true => word.starts_with(wanted),
        false => word.split('=').next() == Some(wanted),
    })
}

#[cfg(test)]
mod tests {
    use super::{DIFFERENCES, Difference};

    fn covering(line: &str) -> Vec<&'static Difference> {
        let set: Vec<String> = line.split(' ').map(str::to_owned).collect();
        DIFFERENCES.iter().filter(|difference| difference.covers(&set)).collect()
    }

    #[test]
    fn an_order_of_options_is_part_of_the_difference() {
        let late = "rw=write buffer_pattern=0x55 size=64k scramble_buffers=1";
        let rules = covering(late);
        assert_eq!(rules.len(), 1, "{rules:?}");
        let set: Vec<String> = late.split(' ').map(str::to_owned).collect();
        let early = rules[0].reversed(&set).expect("another order").join(" ");
        assert_eq!(early, "rw=write scramble_buffers=1 size=64k buffer_pattern=0x55");
        assert!(covering(&early).is_empty());
        assert!(covering("rw=write buffer_pattern=0x55 size=64k").is_empty());
        assert_eq!(covering("rw=randrw experimental_verify=1 verify=meta randseed=7").len(), 1);
        assert!(covering("rw=randrw experimental_verify=1 verify=meta").is_empty());
        let any = covering("loops=2 rw=randread io_submit_mode=offload");
        assert!(any.len() == 1 && any[0].reversed(&set).is_none(), "{any:?}");
    }
}
