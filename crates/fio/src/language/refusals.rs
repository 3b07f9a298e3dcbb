//! What fio's language refuses: one row for each kind of refusal.
//!
//! A problem cannot be made without its row ([`super::FioProblem::kind`]), and `docs/fio-refusals.md` is rendered from the rows. Refused
//! options and values are rows of [`super::rows`], missing engines those of [`super::engines`]; the page holds them, too.
//!
//! Limits: what the plan refuses of any job, in whatever language it is written, has its rule in `docs/refusals.md`.

/// A row of the table of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusalRow {
    /// The option, combination or line that is refused.
    pub refused: &'static str,
    /// Why.
    pub reason: &'static str,
    /// The remedy.
    pub instead: &'static str,
}

/// Declares the rows, each with the name by which code refers to it.
macro_rules! refusals {
    ($($name:ident: $refused:literal, $reason:literal, $instead:literal;)*) => {
        /// A kind of refusal; [`Refused::row`] describes it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the rows describe them")]
        pub enum Refused {
            $($name,)*
        }

        impl Refused {
            /// Every kind, in the order of the table.
            pub const ALL: &[Refused] = &[$(Refused::$name,)*];

            /// Returns the row.
            pub const fn row(self) -> RefusalRow {
                match self {
                    $(Refused::$name => RefusalRow { refused: $refused, reason: $reason, instead: $instead },)*
                }
            }
        }
    };
}

refusals! {
    // Options and values.
    UnknownOption: "an option that fio 3.42 does not have, and a name of which fio has more than one", "it may be a typing error, and the job would be another one", "the name in the message; `--cmdhelp` lists every option";
    OptionOfEngine: "an option of an engine that is not here", "the engine is not here (below)", "see the engine";
    Value: "a value that its option does not take: another unit, a text after a number, a number outside of its bounds", "fio reads the part that it understands, which is another job", "what `--cmdhelp=OPTION` prints";
    ValueMissing: "an option without the value that it needs, also where the next word is an option, and a value where none is taken", "the next option would be the value", "`--OPTION=VALUE`";
    Option: "an option or a value that is not done here", "each has its reason below", "each has its alternative below";
    NotFios: "an option that only job files in TOML have", "a job file of fio's may come from a stranger, and the option contacts an address or starts a program", "write it into a job file in TOML";
    PermitsInFile: "an option that permits to destroy data, in a job file", "the author of a file cannot permit it, only the user of the command line", "set it on the command line";
    Engine: "an engine that is not here, or is unknown", "each has its reason below", "each has its alternative below; `--enghelp` lists those that are here";
    SharedBuffers: "`mem=mmapshared:PATH`", "the file loses its content, and writing it back is I/O in addition to what is measured", "`mem=mmapshared`, or `mem=mmaphuge:PATH` for huge pages";
    PatternFile: "`buffer_pattern='FILE'` and `verify_pattern='FILE'` of a file that is no regular one or cannot be read, or in a client's job", "the pattern would be another one", "name a file that can be read, or write the bytes";
    // Combinations of a job.
    SizesByOrder: "`bs_is_seq_rand` with `percentage_random`", "the job would have blocks of two sizes in one order", "leave one of them out";
    MinimumRates: "`rate_min` with `rate_iops_min`", "fio refuses it, too", "leave one of them out";
    MinimumAboveRate: "`rate_min` above `rate`, and `rate_iops_min` above `rate_iops`, of reads, writes or trims", "fio refuses it, too: the job could only fail", "a lower minimum, or a higher rate";
    Priorities: "`cmdprio_percentage` with `cmdprio_bssplit`", "both set the share of the I/Os that have a priority of their own", "set only one of them";
    Alignments: "`iomem_align` with `buffer_offset`", "both set where a buffer begins", "set only one of them";
    IssueTime: "`log_issue_time` without `write_lat_log` or `log_offset`", "fio refuses it, too", "set all three, or leave it out";
    NotSprandom: "`sprandom` of a job that does not write at random, or with `random_generator` other than `lfsr` or `norandommap=0`", "the physical capacity would not be written once", "leave the other option out";
    TrimRanges: "`num_range` above 1 of a job that trims", "trims of several ranges at once are NVMe passthrough; fio refuses them with these engines, too", "leave it out: one range a trim";
    DonorMissing: "`ioengine=e4defrag` without `donorname`", "fio refuses it, too", "set it to any name; no file of that name is created or changed";
    ProgramMissing: "`ioengine=exec` without `program`", "there is nothing to run", "set `program` to the program to run";
    OptionOfExec: "`program`, `arguments` or `grace_time` with another engine than `exec`", "fio, too, knows them with `exec` only", "leave it out";
    Commands: "commands of a job (`exec_prerun`, `exec_postrun`, `ioengine=exec`) without `--allow-exec`", "a job file may come from a stranger", "to allow it, set `--allow-exec` on the command line";
    CommandUser: "`exec_prerun` or `exec_postrun` of a job whose `uid` or `gid` this process may not take", "the command would run as another user", "run as root, or leave `uid` and `gid` out";
    WaitFor: "`wait_for` of a name that no job before has", "the job would wait for ever", "a job can only wait for jobs above it";
    FioWarns: "with `--warnings-fatal`, a job of which fio warns", "fio refuses it, too", "leave out `--warnings-fatal` to run the job";
    // Targets.
    Readonly: "with `--readonly`, a job that writes, trims or changes files", "fio refuses it, too", "leave out `--readonly`, or run jobs that read";
    FileMissing: "a missing file, with `allow_file_create=0` or `--readonly`, or with `create_on_open` in a job that trims, or reads with an engine of single calls", "nothing may be created, or fio's job would fail at its first I/O", "create the file, or leave the option out";
    OtherOwner: "an existing file of another user under a name that the job generates, if the job writes (root's files, and those of its `uid`, are used)", "another user may have put it there", "name it (`filename=FILE`), or remove it";
    Scheduler: "`ioscheduler` other than the one that the job's disk has", "this program does not change the machine that it measures", "the command in the message";
    OpendirWrites: "`opendir` of a job that writes or trims", "only files that are named are written", "name the files (`filename=a:b`), or let the job read";
    OpendirAndNames: "`opendir` with `filename` or `directory`", "both set the files", "leave one of them out";
    OpendirEmpty: "`opendir` of a directory that cannot be read, or below which no file holds anything", "nothing would be transferred", "name another directory";
    FilenameFormat: "a `filename_format` that makes names which no file can have", "fio fails when it opens them", "another format";
    // Job files and the command line.
    NoJob: "a command line or a job file without a job", "fio refuses it, too", "give a job file, or `--name=JOB` and its options";
    NoName: "an empty `name`", "a job has a name", "write the job's name: `name=JOB`";
    SectionLine: "a line `[global` or `[N` without its bracket, an option in the line of a section's name, and a name of more than 255 bytes", "fio loses the option or the name", "write each option on its own line";
    BeforeSection: "an option before the first section of a job file", "fio refuses it, too", "write `[global]` or `[JOB]` above it";
    Control: "a control character", "messages and results would hold it", "leave it out";
    Include: "an `include` that cannot be read, a file with sections that is included, and options after an `include` of a missing file", "fio reads only a part of the section then", "create the file, or leave it out";
    JobFile: "a job file that cannot be read", "fio refuses it, too", "name a file that can be read";
    TooMuch: "job files, command lines, words, jobs, files and includes beyond the bounds that the message names", "a mistake would use up the memory", "fewer of them";
    ProgramOption: "`--profile`, `--crctest`, `--cpuclock-test`, `--memcpytest`, `--merge-blktrace-only`", "they are other programs' work", "see `trueio fio --help`";
    SectionGlobal: "`--section=global`", "it is no job", "name a job's section; `[global]` applies to it";
    // Clients and servers.
    WithoutServer: "options of servers and clients without `--server` or `--client`", "they have no meaning there", "add `--server` or `--client=HOST`";
    OfServers: "options of servers next to `--client`, both together, and job files or options of jobs next to `--server`", "a server runs the jobs of its clients", "set them where the server is started, and jobs at the client";
    OfClients: "`--remote-config` without a client before it, a client without a job file, and options of jobs next to `--client`", "jobs for servers come from job files", "name the job file after `--client=HOST`";
    NotSent: "`--idle-prof`, `--parse-only` and `--showcmd` with `--client` or `--server`", "they are of the machine where jobs run", "leave it out";
}

impl Refused {
    /// Returns the row's remedy as the hint of a problem.
    pub(crate) fn hint(self) -> Option<String> {
        Some(self.row().instead.to_owned())
    }
}
