//! The combinations of options that a plan refuses: one row for each.
//!
//! A rule about combinations cannot refuse without its [`Case`], which holds the remedy. `docs/fio-refusals.md` is rendered from the
//! cases that a job in fio's language can meet; a test of that language meets each of them, and draws pairs of options in search of
//! others.

/// The row of a case that jobs in fio's language can meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaseRow {
    /// The options.
    pub refused: &'static str,
    /// Why.
    pub reason: &'static str,
    /// The remedy.
    pub instead: &'static str,
}

/// Declares the cases: `fio` those that jobs in fio's language can meet, `toml` the others, with their remedies.
macro_rules! cases {
    (fio { $($name:ident: $refused:literal, $reason:literal, $instead:literal;)* } toml { $($own:ident: $hint:literal;)* }) => {
        /// A combination of options that is refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the rows describe them")]
        pub enum Case {
            $($name,)*
            $($own,)*
        }

        impl Case {
            /// Every case, in the order of the table.
            pub const ALL: &[Case] = &[$(Case::$name,)* $(Case::$own,)*];

            /// Returns the row; `None`: a job in fio's language does not meet the case, because fio lacks one of its options, or
            /// because the language gives it fio's meaning.
            pub const fn row(self) -> Option<CaseRow> {
                match self {
                    $(Case::$name => Some(CaseRow { refused: $refused, reason: $reason, instead: $instead }),)*
                    $(Case::$own => None,)*
                }
            }

            /// Returns the remedy.
            pub const fn hint(self) -> &'static str {
                match self {
                    $(Case::$name => $instead,)*
                    $(Case::$own => $hint,)*
                }
            }
        }
    };
}

cases! {
    fio {
        // Engines.
        EngineTrims: "trims with an engine that cannot trim", "nothing would be trimmed", "use `ioengine = \"io_uring\"`";
        EngineFlags: "`atomic`, `uncached` or `nowait` with an engine without RWF flags", "the flag would have no effect", "use `ioengine = \"pvsync2\"`, `ioengine = \"libaio\"` or `ioengine = \"io_uring\"`";
        EnginePolls: "`hipri` with an engine that cannot poll", "completions would arrive by interrupt", "use `ioengine = \"io_uring\"` or `ioengine = \"pvsync2\"`";
        PolledTrims: "`hipri` of a job that trims", "trims are not polled", "leave `hipri` out";
        PolledShare: "`hipri_percentage` below 100 with `hipri` and `ioengine=io_uring`", "a ring polls for all completions or for none", "use `ioengine = \"pvsync2\"`, or leave it out; jobs with and without `hipri` can run at the same time";
        EngineRing: "`fixedbufs`, `registerfiles`, `sqthread_poll`, `force_async` or `nonvectored` without a ring", "the option would have no effect", "use `ioengine = \"io_uring\"`";
        CpuAlone: "`ioengine=cpuio` without `cpuload`, or without `runtime` and `exit_on_io_done`", "it would do nothing, or not end", "set it next to the engine";
        EngineOfFiles: "`ioengine=falloc`, `ftruncate` or `e4defrag` on a block device", "it changes the space of files", "name a file, or choose another engine";
        EngineOnlyWrites: "`ioengine=ftruncate` or `e4defrag` of a job that does not only write", "it reads and trims nothing", "set `rw = \"write\"` or `rw = \"randwrite\"`";
        CutsData: "`ioengine=ftruncate` on a file that goes on after the region", "its data would be lost", "set a `size` that reaches the end of the file, or use a new file";
        EngineRemakes: "`unlink_each_loop` with an engine that does not write files, or with `ioengine=mmap`", "the file would not be replaced", "choose an engine that writes files, or leave it out";
        EngineFills: "`fill_device` with an engine that does not write files, or with `ioengine=mmap`", "nothing would be filled", "choose an engine that writes files, or leave it out";
        EngineRanges: "`sync_file_range` with a metadata engine", "no data is written", "leave it out";
        EngineLogs: "`write_iolog` with an engine that does no reads, writes and trims", "the log would hold nothing", "leave `write_iolog` out";
        EngineReplays: "`read_iolog` with an engine that does no reads, writes and trims of files", "the log would not be replayed", "choose another engine";
        NamesOnce: "`loops`, `time_based`, `norandommap` or `random_distribution` with an engine that creates or deletes each file once, and an `io_size` beyond its files", "there would be nothing left to create or delete", "leave it out, or set more `nrfiles`";
        NamesSized: "blocks of several sizes with a metadata engine", "files are counted in I/Os of one size", "set one `bs`";
        NamesPaced: "a rate, minimum rate or `thinktime` with a metadata engine whose files have several blocks", "most of the counted I/Os would do nothing", "set a `bs` as large as `filesize`, so that each file is one I/O";
        NamesSteady: "`steadystate` with a metadata engine, of bytes or of files with several blocks", "the value would not be that of files", "set `steadystate=iops:…`, and a `bs` as large as `filesize`";
        EnginePriorities: "`cmdprio_percentage` or `cmdprio_bssplit` with an engine other than `io_uring` and `libaio`", "single I/Os would have no priority", "use `ioengine = \"io_uring\"` or `ioengine = \"libaio\"`; `prio` and `prioclass` are of all I/Os";
        DirectUsb: "`ioengine=uas` with `direct=0`", "it passes no page cache", "leave `direct` out";
        UsbPorts: "`ioengine=uas` without the port of one disk as `filename`", "the disk is unknown", "`trueio usb list` lists the ports; several disks are several jobs; leave `directory` out";
        UsbPaths: "the port of a USB disk as `filename` with another engine than `uas`", "other engines open paths", "set `ioengine = \"uas\"`, or name the block device or file (`./usb:…`)";
        UsbLogs: "`ioengine=uas` with `read_iolog`", "the names of a log are paths", "choose another engine";
        UsbRange: "`ioengine=uas` with `sync_file_range`", "there is no page cache to write out", "use `fdatasync = N`";
        UsbPreRead: "`ioengine=uas` with `pre_read`", "there is no page cache to read into", "leave `pre_read` out";
        UsbZones: "`ioengine=uas` with `zonemode=zbd`", "the rules of zones would not be followed", "name the block device, with another engine";
        UsbUser: "`ioengine=uas` with `uid`", "this process has claimed the disk", "leave `uid` out";
        UsbGroup: "`ioengine=uas` with `gid`", "this process has claimed the disk", "leave `gid` out";
        UsbSync: "`ioengine=uas` with `sync`, on a disk without FUA", "the writes would not be durable", "use `fsync = 1` or `fdatasync = 1`";
        // Cache and sync calls.
        DirectOff: "`hipri` or `atomic` with `direct=0`", "the kernel refuses such I/O", "set `direct = \"require\"`";
        UncachedPolled: "`uncached` with `hipri` or `atomic`", "one goes through the page cache, the other bypasses it", "leave one of them out";
        // Files.
        AppendSize: "`file_append` without a `size` in bytes", "the amount to append is unknown", "set `size`, such as `size = \"1g\"`";
        Remade: "`unlink_each_loop` of a job that reads or trims, with `verify`, or with `registerfiles`", "a file that was created again holds no data", "leave one of them out";
        FillsInOrder: "`fill_device` of a job that does not write in order", "only a sequential write fills a filesystem", "set `rw = \"write\"`; measure other operations in a later job, on another file";
        FillsOverwritten: "`fill_device` with `overwrite`", "a file that the job fills cannot be filled before it", "leave one of them out";
        DrawnFromOpen: "a drawn `file_service_type` with fewer `openfiles` than files", "the distribution draws from all files", "leave `openfiles` out";
        CreatesAndVerifies: "`create_only` with `verify_only`", "nothing would be compared", "leave one of them out";
        // Logs of I/O.
        ReplayChanged: "`read_iolog` with `time_based`, a rate, `thinktime`, sync calls, `verify`, `zonemode`, `steadystate`, `latency_target`, `flow` or `atomic`", "a log is replayed once, as it was written", "leave one of them out";
        ReplayDirectory: "`directory` with a `read_iolog` that has an absolute path", "the path begins at the root already", "leave `directory` out";
        // Pace and ends.
        RateTwice: "`rate` with `rate_iops`, both in a job or both in `[global]`", "a job has one rate", "set only one of them";
        TargetPaced: "`latency_target` with a rate, `thinktime` or `flow`", "the search varies the queue depth, and these keep the queue from filling", "leave one of them out";
        TargetDrained: "`latency_target` with `iodepth_low`", "the search keeps the queue at one depth, and the option lets it drain", "leave one of them out";
        TargetWindow: "`latency_target` without `latency_window`", "the time for each queue depth is unknown", "set it, such as `latency_window = \"1s\"`: long enough for some hundred I/Os";
        SteadyGroup: "jobs of one group (`group_reporting`) with different `steadystate`", "they are judged together", "set the same in both, or leave out `group_reporting`";
        // Process.
        NodesAndProcessors: "`cpus_allowed` or `cpumask` with `numa_cpu_nodes`", "both name the processors", "set only one of them";
        // Content and verification.
        WorkingSet: "`dedupe_percentage` and `dedupe_working_set_percentage` above 100 percent together", "the set contains different blocks", "lower one of them, to a sum of at most 100";
        VerifyAlone: "options of `verify` without the option that they need: `verify_only` and `verify`, `verify=pattern` and `verify_pattern`, `trim_percentage` and `trim_backlog`, `verify_state_load` and `verify_only`, `verify_policy=fsynced` and a sync call", "nothing would be compared, or not what was asked for", "set both, or leave this out";
        SourceMissing: "`verify=source`", "a job in fio's language has no `source` to compare with", "set `source`, or another checksum";
        VerifyOnlyWith: "`verify_only` with `do_verify=0`, `verify_backlog`, `verify_state_save` or `trim_percentage`", "nothing is written", "leave one of them out";
        VerifyEngine: "`verify` with an engine that keeps no data", "nothing would be compared", "choose an engine that does I/O";
        VerifySizesRead: "`verify` with blocks of several sizes, of a job that only reads, replays a log or has zones", "only the job that wrote them has their sizes", "use one `bs`, or set `verify_interval` when writing and reading";
        VerifySmall: "`verify` with blocks of less than 48 bytes", "a block contains a header", "use larger blocks";
        VerifyOverlap: "`verify` with `bs_unaligned` and several sizes, or with skips, zones or `blockalign` that are not whole blocks", "a block may begin within another one, whose content is then unknown", "use one `bs`, and zones, skips and `blockalign` that are whole blocks, or leave out `verify`";
        VerifyPartial: "`verify_backlog` or `verify_only` with blocks of several sizes that may be overwritten", "a block may be overwritten in part by one of another size", "use one `bs`, set `verify_interval`, or write each block once: the random map and one pass";
        VerifyMixedSizes: "`verify_only` of a job that reads and writes blocks of several sizes", "reads and writes differ in size", "use one `bs`";
        VerifyAgain: "`trim_percentage` with `verify`, where a block may be written again", "what a trimmed block contains is then unknown", "write each block once: no `time_based`, `loops = 1`, `io_size` no more than `size`, the random map";
        SyncedBefore: "`verify_policy=fsynced` with `verify_backlog` or `trim_percentage`", "blocks would be compared before they are synced", "leave one of them out";
        SyncedFiles: "`verify_policy=fsynced` of a job with several files", "a sync call is for one file", "use a job for each file";
        SyncedOnce: "`verify_policy=fsynced` where a block may be written again", "the last write of a block may be without a sync call", "write each block once: no `time_based`, `loops = 1`, `io_size` no more than `size`, the random map";
        VerifyOneSided: "`verify` with a rate of reads or of writes alone", "the clock decides which I/Os are writes, and that cannot be repeated", "set a rate for reads and one for writes, or leave `verify` out";
        VerifyShared: "`verify` of a file that another job changes at the same time in another way", "the content is unknown", "make one wait for the other: `stonewall = true`";
        VerifyUnwritten: "`verify` of a job that only reads, without an earlier job that wrote the blocks", "every block would differ", "put a job before it that writes all of the same `filename` with `verify`, and `stonewall = true` here";
        // Zones.
        ZonesOfDistribution: "`random_distribution=zoned` or `zoned_abs` with `zonemode`", "both select the part of the region for an I/O", "leave one of them out";
        ZonesAlone: "`zonemode=strided` without `zonesize`", "it is unknown when the next zone begins", "set both, or leave this out";
        ZonesUnused: "`zonesize` without `zonemode`", "it is unknown how the zones are used", "set `zonemode = \"strided\"`, or `zbd`, or leave `zonesize` out";
        ZonesCounted: "a size in zones (`z`) without `zonemode`", "there are no zones", "set `zonemode`, or a size in bytes";
        ZonesOfUnknownLength: "a size in zones (`z`) of zones whose length is unknown", "the size is unknown", "set `zonesize`, or use a device that has zones";
        ZonesEngine: "`zonemode=zbd` with an engine that does no I/O at offsets", "there are no zones", "leave `zonemode` out";
        ZonesBuffered: "`zonemode=zbd` of a job that writes to a zoned device with `direct=0`", "the page cache writes in an order of its own, which a zoned device refuses", "set `direct = \"require\"`";
        ZonesTrimmed: "`zonemode=zbd` with trims that are not whole zones", "a trim resets a zone", "make `bs` (its third part) as large as a zone";
        ZonesBlock: "`zonemode=zbd` with blocks larger than a zone", "a block does not fit into a zone", "use smaller blocks, or larger zones";
        ZonesMany: "`zonemode=zbd` with more than 4,194,304 zones", "the write pointers would use up the memory", "use larger zones, or less of the target";
        ZonesInOrder: "`zonemode=zbd` with skips, repeated offsets, `blockalign` or `trimwrite`", "a zone is written in order from its write pointer on", "leave out options that change offsets: skips, repeated offsets, `blockalign`, `trimwrite`";
        ZonesOfFile: "`zonemode=zbd` with `unlink_each_loop`, `fill_device` or `file_append`", "the zones of a file are set once, when the run begins", "leave one of them out";
        ZonesRange: "`zonemode=zbd` with `sync_file_range`", "the offset of a write is known only when it is submitted", "leave it out, or use `fdatasync`";
        ZonesLocked: "`zonemode=zbd` with `lockfile`", "a worker that waits for a zone would keep the file locked", "leave `lockfile` out";
        ZonesFlow: "`zonemode=zbd` with `flow`", "jobs would wait for each other", "leave `flow` out";
        ZonesVerified: "`zonemode=zbd` and `verify` with `verify_only`, `verify_state_save` or `write_zone_remainder`", "the offsets of blocks depend on the write pointers, which a later run does not have", "leave one of them out";
        ZonesSynced: "`zonemode=zbd` and `verify` with `verify_policy=fsynced`", "all written blocks of zones are compared, synced or not", "leave it out";
        ZonesVerifiedTrims: "`zonemode=zbd` and `verify` with `trim_percentage`", "a part of a zone cannot be trimmed", "leave `trim_percentage` out";
        ZonesShared: "jobs that share a file with `zonemode=zbd` and have zones of different sizes", "each would reset what the other wrote", "set the same `zonesize` and `zonecapacity` in both";
        ZonesEmulated: "`zonemode=zbd` on a file or device without zones, without `zonesize`", "the length of a zone is unknown", "set `zonesize` to the length of the zones to emulate";
        ZonesMixed: "`zonemode=zbd` of a job with zoned and other targets", "they have no zones in common", "use a job for each kind";
        ZonesUnknown: "`zonemode=zbd` on a device whose zones have an unknown length", "a write could reset too much", "look at `queue/chunk_sectors` of the device";
        ZonesOfDevice: "`zonesize` other than that of the device's zones", "the kernel refuses other zones", "leave `zonesize` out: the device's zones have that length";
        ZonesNone: "`zonemode=zbd` of a job that writes in a region without a whole zone", "a reset would destroy data outside of the region", "use more of it, or smaller zones";
        ZonesReset: "`zone_reset_threshold` without `zone_reset_frequency`, or the reverse", "it is unknown when a zone is reset", "set both, or leave both out";
    }
    toml {
        EngineExtends: "leave `fallocate` out, or choose another engine";
        VerifyTrims: "leave `verify` out";
        VerifyDedupe: "leave `dedupe_percentage` out";
        ProgramMissing: "set it next to the engine";
        DirectMapped: "leave `direct` out, or choose another engine";
        Simulated: "set `ioengine = \"simulated\"`";
        NamesFiles: "set `directory` and `nrfiles`";
        TimeBasedAlone: "set `runtime`, such as `runtime = \"30s\"`";
        SteadyVerify: "leave out `verify`, or compare in a separate job";
        SteadyExtends: "let the file be filled first: `overwrite = true`";
        SteadyTogether: "set the same in all of them (`[defaults]`), or make one wait for the other: `stonewall = true`";
        SizesTwice: "set only one of `bs`, `bsrange`, `bssplit`";
        FilesAndCount: "set `directory` instead of `filename`, or name all files";
        RegionsOfOthers: "leave one of them out, or write a job for each region, with `offset`";
        NoClass: "set `prioclass` to 1, 2 or 3";
        BatchBeyondDepth: "raise `iodepth` or lower the batch";
        BatchMaximum: "raise the maximum";
        LowBeyondDepth: "raise `iodepth` or lower the mark";
        VerifyWorkers: "use `numjobs = 1`, or a job for each file";
        LeaveOneOut: "leave one of them out";
        SetOnlyOne: "set only one of them";
        SetBoth: "set both, or leave this out";
    }
}
