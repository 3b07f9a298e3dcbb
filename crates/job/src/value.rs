//! The kinds of values of options, each with its parser and its canonical text.
//!
//! A value is parsed once when it is given (job file, flag), so that an error can point at its line, and
//! again when a plan is made, because a specification is a document from any source. Both use
//! [`ValueKind::read`]. `explain` and the record print canonical text: `4096`, `4K` and `4KiB` are all `4k`.

mod blocks;
mod distribution;
mod errors;
mod lists;
mod numa;
mod pattern;
mod priority;
mod simulated;

use blocks::{read_block_range, read_block_split, read_triple, write_triple};
use distribution::{read_distribution, read_file_selection, write_distribution};
use lists::{read_cpus, read_names, read_numbers, read_path, read_paths, read_words};
pub use lists::{split_paths, write_paths};
pub use pattern::with_files as pattern_with_files;
use simulated::{read_simulated, write_simulated};
use trueio_model::units::{parse_bytes, parse_duration_ns};
use trueio_model::{
    BlockPattern, BlockSizes, Criterion, CriterionVariable, Distribution, FileSelection, MemoryPolicy, PriorityShare,
    RangeSync, SimulatedDevice, SourceAddress,
};

/// Largest block of one I/O, in bytes. Linux transfers at most 2^31 − 4096 bytes per call.
pub const BLOCK_BYTES_MAX: u64 = 1 << 30;
/// Largest size or offset, in bytes: file offsets are signed.
pub const EXTENT_BYTES_MAX: u64 = i64::MAX as u64;

/// One word of a [`ValueKind::Choice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The word.
    pub name: &'static str,
    /// Synonyms, including fio's.
    pub aliases: &'static [&'static str],
    /// Its meaning, one sentence without a full stop.
    pub sentence: &'static str,
}

/// The kind of an option's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueKind {
    /// One of these words.
    Choice(&'static [Choice]),
    /// True or false; as a flag without a value: true.
    Bool,
    /// A size in bytes.
    Bytes,
    /// A size in bytes, or a range from which sizes are drawn.
    BytesRange,
    /// A size in bytes, a percentage of the target, or a number of zones.
    Extent,
    /// One block size, or three for read, write, trim.
    BlockSizes,
    /// One range of block sizes, or three for read, write, trim.
    BlockRanges,
    /// One weighted split of block sizes, or three for read, write, trim.
    BlockSplits,
    /// A whole number from `min` to `max`.
    Count {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A whole number that may be negative, from `min` to `max`.
    Integer {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// A whole percentage, 0 to 100.
    Percent,
    /// The same, or those of reads, writes, trims; a blank one is 100.
    Percents,
    /// A size in bytes, or those of reads, writes, trims; a blank one is 0.
    BytesEach,
    /// A part of a whole: a number from 0 to 1.
    Part,
    /// A span of time; a bare number is seconds.
    Duration,
    /// A span of time; a bare number is microseconds, because it is in fio.
    DurationMicros,
    /// I/Os per second, fractions allowed; 0: no rate. One for all, or of reads, writes, trims.
    RateIops,
    /// Bytes per second; 0: no rate. One for all, or of reads, writes, trims.
    RateBytes,
    /// A distribution of random offsets.
    Distribution,
    /// How the next of several files is selected: a word, or a distribution of files.
    FileSelection,
    /// Paths, separated by colons.
    Paths,
    /// One path.
    Path,
    /// Names, separated by commas.
    Names,
    /// Processor numbers: `0,2,4-7`.
    Cpus,
    /// Percentages above 0 up to 100, fractions allowed, separated by colons; 20 at most.
    Percentiles,
    /// A 64-bit number, decimal or `0x…`.
    Seed,
    /// Bytes: `0x…`, `"text"`, decimal numbers, or several of them without a blank.
    Pattern,
    /// The same, in which `%o` is the block's offset.
    BlockPattern,
    /// The simulated disk of the `simulated` engine.
    Simulated,
    /// The address of a body: `http://HOST[:PORT]/PATH`.
    Address,
    /// Words, separated by blanks.
    Words,
    /// The variable that must be steady, and its limit: `iops_slope:0.3%`.
    Criterion,
    /// Shares of the I/Os with priorities of their own: `4k/10/2/1:*/5/3/0`.
    Priorities,
    /// Error numbers of reads, and of writes: `EIO,ENOSPC:122`.
    ErrorLists,
    /// Numbers of ranks: `0,2,4-7`.
    Ranks,
    /// Nodes of memory: `0,2-3` or `all`.
    Nodes,
    /// A memory policy: `bind:0,1`.
    MemoryPolicy,
    /// Parts of `sync_file_range`, and the number of writes between two calls: `wait_before,write:8`.
    RangeSync,
}

/// Maximum number of percentiles in a list, as in fio.
pub const PERCENTILES_MAX: usize = 20;

/// A number of zones: `4z`.
pub fn zones(text: &str) -> Option<u64> {
    text.trim().strip_suffix(['z', 'Z']).filter(|digits| !digits.starts_with('+'))?.parse().ok()
}

/// A size that may be relative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Bytes.
    Bytes(u64),
    /// Percent of the target, 0 to 100.
    Percent(u8),
}

impl Extent {
    /// Returns the number of bytes; `None`: it is a percentage.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Percent(_) => None,
        }
    }
}

/// A parsed value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A word of the choice, by its index.
    Choice(usize),
    /// True or false.
    Bool(bool),
    /// Bytes, a count, or a seed.
    Number(u64),
    /// Percentages or bytes of reads, writes, trims.
    Numbers([u64; 3]),
    /// A number that may be negative.
    Integer(i64),
    /// Bytes, minimum and maximum.
    Range(u64, u64),
    /// A size that may be relative.
    Extent(Extent),
    /// This many zones of the target.
    Zones(u64),
    /// Block sizes of read, write, trim.
    Sizes(Box<[BlockSizes; 3]>),
    /// Nanoseconds.
    DurationNs(u64),
    /// I/Os or bytes per second.
    Rate(f64),
    /// The same of reads, writes, trims.
    Rates([f64; 3]),
    /// A distribution of offsets.
    Distribution(Distribution),
    /// How files are selected.
    FileSelection(FileSelection),
    /// Paths, at least one.
    Paths(Vec<String>),
    /// Names, at least one.
    Names(Vec<String>),
    /// Processor numbers, at least one.
    Cpus(Vec<u32>),
    /// Percentages, at least one, smallest first.
    Percentiles(Vec<f64>),
    /// Bytes, at least one.
    Pattern(Vec<u8>),
    /// The same, which may contain the block's offset.
    BlockPattern(BlockPattern),
    /// A simulated disk.
    Simulated(SimulatedDevice),
    /// The address of a body.
    Address(SourceAddress),
    /// Error numbers of reads, and of writes and trims; at least one of them.
    Errors([Vec<i32>; 2]),
    /// Words, at least one.
    Words(Vec<String>),
    /// The variable that must be steady.
    Criterion(Criterion),
    /// Shares with priorities, at least one.
    Priorities(Vec<PriorityShare>),
    /// Numbers of ranks, at least one.
    Ranks(Vec<u32>),
    /// Memory nodes; empty: all of them.
    Nodes(Vec<u32>),
    /// A memory policy.
    MemoryPolicy(MemoryPolicy),
    /// A call on the written range.
    RangeSync(RangeSync),
}

/// The types of TOML values that an option can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// A string.
    String,
    /// A whole number.
    Integer,
    /// A number with a fraction.
    Float,
    /// `true` or `false`.
    Boolean,
    /// A list of strings or whole numbers.
    List,
}

impl ValueKind {
    /// Returns the placeholder of the value in `--help` and in the reference (`BYTES`, `TIME`).
    pub fn value_name(self) -> &'static str {
        match self {
            ValueKind::Choice(_) => "WORD",
            ValueKind::Bool => "BOOL",
            ValueKind::Bytes => "BYTES",
            ValueKind::BytesRange => "BYTES[-BYTES]",
            ValueKind::Extent => "BYTES|PERCENT%|ZONESz",
            ValueKind::BlockSizes => "BYTES[,BYTES,BYTES]",
            ValueKind::BlockRanges => "MIN-MAX[,MIN-MAX,MIN-MAX]",
            ValueKind::BlockSplits => "BYTES/PERCENT:…",
            ValueKind::Count { .. } | ValueKind::Integer { .. } => "N",
            ValueKind::Percent => "PERCENT",
            ValueKind::Percents => "PERCENT[,PERCENT,PERCENT]",
            ValueKind::BytesEach => "BYTES[,BYTES,BYTES]",
            ValueKind::Part => "NUMBER",
            ValueKind::Duration | ValueKind::DurationMicros => "TIME",
            ValueKind::RateIops => "IOPS",
            ValueKind::RateBytes => "BYTES/S",
            ValueKind::Distribution | ValueKind::FileSelection => "NAME[:NUMBER[:CENTER]]",
            ValueKind::Paths => "PATH[:PATH…]",
            ValueKind::Path => "PATH",
            ValueKind::Names => "NAME[,NAME…]",
            ValueKind::Cpus | ValueKind::Ranks => "LIST",
            ValueKind::Percentiles => "PERCENT[:PERCENT…]",
            ValueKind::Seed => "NUMBER",
            ValueKind::Pattern | ValueKind::BlockPattern => "BYTES",
            ValueKind::Simulated => "MODEL",
            ValueKind::Address => "URL",
            ValueKind::Words => "WORDS",
            ValueKind::Criterion => "NAME:LIMIT[%]",
            ValueKind::Priorities => "SIZE/PERCENT/CLASS/LEVEL:…",
            ValueKind::ErrorLists => "ERROR[:ERROR…][,ERROR…]",
            ValueKind::Nodes => "LIST|all",
            ValueKind::MemoryPolicy => "MODE[:NODES]",
            ValueKind::RangeSync => "PART[,PART…][:N]",
        }
    }

    /// Describes the accepted values, for a message: `a whole number from 1 to 65,536`.
    pub fn takes(self) -> String {
        match self {
            ValueKind::Choice(choices) => {
                let names: Vec<String> = choices.iter().map(|c| format!("`{}`", c.name)).collect();
                format!("one of {}", names.join(", "))
            }
            ValueKind::Bool => "`true` or `false`".into(),
            ValueKind::Bytes => "a size, such as `4k` or `10g`".into(),
            ValueKind::BytesRange => "a size, such as `10m`, or a range, such as `4k-1m`".into(),
            ValueKind::Extent => "a size, such as `10g`, a percentage, such as `50%`, or zones, such as `4z`".into(),
            ValueKind::BlockSizes => "a size, such as `4k`, or three for read, write, trim: `4k,8k,1m`".into(),
            ValueKind::BlockRanges => "a range of sizes, such as `4k-64k`".into(),
            ValueKind::BlockSplits => "sizes with percentages, such as `4k/60:64k/40`".into(),
            ValueKind::Count { min, max: u64::MAX } => format!("a whole number, {min} or more"),
            ValueKind::Count { min, max } => format!("a whole number from {min} to {max}"),
            ValueKind::Integer { min, max } => format!("a whole number from {min} to {max}"),
            ValueKind::Percent => "a whole percentage from 0 to 100".into(),
            ValueKind::Percents => "a whole percentage from 0 to 100, or those of reads and writes: `100,20`".into(),
            ValueKind::BytesEach => "a size, such as `4k`, or those of reads and writes: `8k,16k`".into(),
            ValueKind::Part => "a number from 0 to 1".into(),
            ValueKind::Duration => "a duration, such as `30s` or `100ms`; a bare number is seconds".into(),
            ValueKind::DurationMicros => "a duration, such as `2ms`; a bare number is microseconds, as in fio".into(),
            ValueKind::RateIops => "I/Os per second, such as `1000`, or those of reads and writes: `300,100`".into(),
            ValueKind::RateBytes => "bytes per second, such as `100m`, or those of reads and writes: `20m,5m`".into(),
            ValueKind::Distribution => {
                "`random`, `zipf:THETA`, `pareto:H`, `normal:DEVIATION`, `zoned:IO/SIZE:…`, `zoned_abs:IO/BYTES:…`, \
                 `sequence:BLOCK,…` or `precondition:OVER_PROVISIONING:…`"
                    .into()
            }
            ValueKind::FileSelection => {
                "`roundrobin`, `sequential`, `random`, `zipf:THETA`, `pareto:H` or `normal:DEVIATION`".into()
            }
            ValueKind::Paths => "paths, separated by colons (`\\:` is a colon within a path)".into(),
            ValueKind::Path => "a path".into(),
            ValueKind::Names => "names, separated by commas, such as `gpt,ext4`".into(),
            ValueKind::Cpus => "processor numbers, such as `0,2,4-7`".into(),
            ValueKind::Ranks => "numbers of ranks, such as `0,2,4-7`".into(),
            ValueKind::Percentiles => "up to 20 percentages, such as `50:99:99.9`".into(),
            ValueKind::Seed => "a number of 64 bits, decimal or `0x…`".into(),
            ValueKind::Pattern => "bytes, such as `0xff`, `\"text\"` or `66`, or several of them in a row".into(),
            ValueKind::Words => "words, separated by blanks".into(),
            ValueKind::Criterion => {
                "`iops`, `bw` or `lat`, with `_slope` if wanted, and a limit: `iops:0.3%`, `bw_slope:1000`".into()
            }
            ValueKind::Priorities => {
                "shares such as `4k/10/2/1:64k/5/3/0` (size or `*`, percentage, class, level), for reads and writes \
                 separated by a comma"
                    .into()
            }
            ValueKind::ErrorLists => "errors of reads, and after a comma of writes: `EIO,ENOSPC:122`".into(),
            ValueKind::Nodes => "numbers of nodes, such as `0,2-3`, or `all`".into(),
            ValueKind::MemoryPolicy => {
                "`default`, `local`, `prefer:NODE`, `bind:NODES` or `interleave:NODES`, such as `bind:0,1`".into()
            }
            ValueKind::RangeSync => {
                "`wait_before`, `write`, `wait_after` or several of them, and the number of writes between two calls: `write:8`".into()
            }
            ValueKind::Address => "an address, such as `http://127.0.0.1:8080/file`".into(),
            ValueKind::BlockPattern => "bytes, such as `0xff`, `\"text\"` or `%o0xab`, where `%o` is the offset".into(),
            ValueKind::Simulated => "a model, such as `service=100us,channels=4,stall=1s+500ms,fail=7`".into(),
        }
    }

    /// Returns true if a TOML value of this type can be of this kind.
    pub fn accepts(self, scalar: Scalar) -> bool {
        match scalar {
            Scalar::String => true,
            Scalar::Integer => match self {
                ValueKind::Choice(choices) => choices.iter().any(|c| c.aliases.contains(&"1")),
                ValueKind::Bool
                | ValueKind::Bytes
                | ValueKind::BytesRange
                | ValueKind::Extent
                | ValueKind::BlockSizes
                | ValueKind::Count { .. }
                | ValueKind::Integer { .. }
                | ValueKind::Percent
                | ValueKind::Percents
                | ValueKind::BytesEach
                | ValueKind::Part
                | ValueKind::Duration
                | ValueKind::DurationMicros
                | ValueKind::RateIops
                | ValueKind::RateBytes
                | ValueKind::Cpus
                | ValueKind::Ranks
                | ValueKind::Nodes
                | ValueKind::Percentiles
                | ValueKind::Seed
                | ValueKind::Pattern
                | ValueKind::BlockPattern => true,
                _ => false,
            },
            Scalar::Float => matches!(
                self,
                ValueKind::Duration
                    | ValueKind::Part
                    | ValueKind::DurationMicros
                    | ValueKind::RateIops
                    | ValueKind::RateBytes
                    | ValueKind::Percentiles
            ),
            Scalar::Boolean => match self {
                ValueKind::Bool => true,
                ValueKind::Choice(choices) => choices.iter().any(|c| c.aliases.contains(&"true")),
                _ => false,
            },
            Scalar::List => matches!(self, ValueKind::Paths | ValueKind::Names | ValueKind::Cpus | ValueKind::Ranks),
        }
    }

    /// Parses a value.
    ///
    /// # Errors
    /// A sentence that describes the error in the text.
    pub fn read(self, text: &str) -> Result<Value, String> {
        match self {
            ValueKind::Choice(choices) => choices
                .iter()
                .position(|c| c.name == text || c.aliases.contains(&text))
                .map(Value::Choice)
                .ok_or_else(|| format!("`{text}` is not {}", self.takes())),
            ValueKind::Bool => match text {
                "true" | "1" => Ok(Value::Bool(true)),
                "false" | "0" => Ok(Value::Bool(false)),
                _ => Err(format!("`{text}` is not {}", self.takes())),
            },
            ValueKind::Bytes => read_bytes(text).map(Value::Number),
            ValueKind::BytesRange => match text.split_once('-') {
                Some((low, high)) => {
                    let (low, high) = (read_bytes(low)?, read_bytes(high)?);
                    Ok(Value::Range(low.min(high), low.max(high)))
                }
                None => read_bytes(text).map(|bytes| Value::Range(bytes, bytes)),
            },
            ValueKind::Extent => match text.trim().strip_suffix('%') {
                Some(_) => read_percent(text).map(|p| Value::Extent(Extent::Percent(p))),
                None => match zones(text) {
                    Some(count) => Ok(Value::Zones(count)),
                    None => read_bytes(text).map(|b| Value::Extent(Extent::Bytes(b))),
                },
            },
            ValueKind::BlockSizes => read_triple(text, |part| read_block_bytes(part).map(BlockSizes::Fixed)),
            ValueKind::BlockRanges => read_triple(text, read_block_range),
            ValueKind::BlockSplits => read_triple(text, read_block_split),
            ValueKind::Count { .. } | ValueKind::Integer { .. } | ValueKind::Part | ValueKind::Seed => {
                self.read_number(text).ok_or_else(|| format!("`{text}` is not {}", self.takes()))
            }
            ValueKind::Percent => read_percent(text).map(|p| Value::Number(u64::from(p))),
            ValueKind::Percents => read_each(text, 100, |part| read_percent(part).map(u64::from)),
            ValueKind::BytesEach => read_each(text, 0, read_bytes),
            ValueKind::Duration => parse_duration_ns(text).map(Value::DurationNs),
            ValueKind::DurationMicros => {
                let is_bare = text.trim().chars().all(|c| c.is_ascii_digit() || c == '.');
                let ns =
                    if is_bare { parse_duration_ns(&format!("{}us", text.trim())) } else { parse_duration_ns(text) };
                ns.map(Value::DurationNs)
            }
            ValueKind::RateIops => read_rates(text, |text| {
                let rate = text.trim().parse::<f64>().ok().filter(|rate| (0.0..=1e12).contains(rate));
                rate.ok_or_else(|| format!("`{text}` is not {}", self.takes()))
            }),
            ValueKind::RateBytes => {
                read_rates(text, |text| read_bytes(text.trim().trim_end_matches("/s")).map(|bytes| bytes as f64))
            }
            ValueKind::Distribution => read_distribution(text).map(Value::Distribution),
            ValueKind::FileSelection => read_file_selection(text).map(Value::FileSelection),
            ValueKind::Paths => read_paths(text).map(Value::Paths),
            ValueKind::Path => read_path(text).map(|path| Value::Paths(vec![path])),
            ValueKind::Names => read_names(text).map(Value::Names),
            ValueKind::Cpus => read_cpus(text).map(Value::Cpus),
            ValueKind::Ranks => read_numbers(text, "rank", lists::RANK_MAX).map(Value::Ranks),
            ValueKind::Percentiles => read_percentiles(text).map(Value::Percentiles),
            ValueKind::Pattern => pattern::read(text).map(Value::Pattern),
            ValueKind::BlockPattern => pattern::read_block(text).map(Value::BlockPattern),
            ValueKind::Simulated => read_simulated(text).map(Value::Simulated),
            ValueKind::Address => text.trim().parse().map(Value::Address),
            ValueKind::Words => read_words(text).map(Value::Words),
            ValueKind::Priorities => priority::read(text).map(Value::Priorities),
            ValueKind::ErrorLists => errors::read(text).map(Value::Errors),
            ValueKind::Nodes => numa::read_nodes(text).map(Value::Nodes),
            ValueKind::MemoryPolicy => numa::read_policy(text).map(Value::MemoryPolicy),
            ValueKind::RangeSync => {
                read_range_sync(text).map(Value::RangeSync).ok_or_else(|| format!("`{text}` is not {}", self.takes()))
            }
            ValueKind::Criterion => {
                read_criterion(text).map(Value::Criterion).ok_or_else(|| format!("`{text}` is not {}", self.takes()))
            }
        }
    }

    /// Parses a number within its bounds; `None`: the text is no such number.
    fn read_number(self, text: &str) -> Option<Value> {
        let text = text.trim();
        match self {
            ValueKind::Count { min, max } => {
                text.parse::<u64>().ok().filter(|n| (min..=max).contains(n)).map(Value::Number)
            }
            ValueKind::Integer { min, max } => {
                text.parse::<i64>().ok().filter(|n| (min..=max).contains(n)).map(Value::Integer)
            }
            ValueKind::Part => text.parse::<f64>().ok().filter(|part| (0.0..=1.0).contains(part)).map(Value::Rate),
            ValueKind::Seed => {
                let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                    Some(digits) => u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')),
                    None => text.parse::<u64>().ok(),
                };
                number.map(Value::Number)
            }
            _ => None,
        }
    }

    /// Returns the canonical text of a value of this kind; [`ValueKind::read`] returns the value again.
    pub fn write(self, value: &Value) -> String {
        match (self, value) {
            (ValueKind::Choice(choices), Value::Choice(index)) => choices[*index].name.to_owned(),
            (_, Value::Choice(index)) => unreachable!("word {index} of an option that has no words"),
            (_, Value::Bool(is)) => is.to_string(),
            (ValueKind::Bytes, Value::Number(bytes)) => write_bytes(*bytes),
            (_, Value::Range(low, high)) if low == high => write_bytes(*low),
            (_, Value::Range(low, high)) => format!("{}-{}", write_bytes(*low), write_bytes(*high)),
            (_, Value::Number(number)) => number.to_string(),
            (_, Value::Numbers(numbers)) => {
                let text = |number: u64| match self {
                    ValueKind::BytesEach => write_bytes(number),
                    _ => number.to_string(),
                };
                let is_one = numbers.iter().all(|number| *number == numbers[0]);
                if is_one { text(numbers[0]) } else { numbers.map(text).join(",") }
            }
            (_, Value::Integer(number)) => number.to_string(),
            (_, Value::Extent(Extent::Bytes(bytes))) => write_bytes(*bytes),
            (_, Value::Extent(Extent::Percent(percent))) => format!("{percent}%"),
            (_, Value::Zones(count)) => format!("{count}z"),
            (_, Value::Sizes(sizes)) => write_triple(sizes),
            (_, Value::DurationNs(ns)) => write_duration(*ns),
            (ValueKind::RateBytes, Value::Rate(rate)) => write_bytes(*rate as u64),
            (_, Value::Rate(rate)) => rate.to_string(),
            (ValueKind::RateBytes, Value::Rates(rates)) => rates.map(|rate| write_bytes(rate as u64)).join(","),
            (_, Value::Rates(rates)) => rates.map(|rate| rate.to_string()).join(","),
            (_, Value::Distribution(distribution)) => write_distribution(distribution),
            (_, Value::FileSelection(selection)) => match selection {
                FileSelection::RoundRobin => "roundrobin".to_owned(),
                FileSelection::Sequential => "sequential".to_owned(),
                FileSelection::Random => "random".to_owned(),
                FileSelection::Drawn { distribution } => write_distribution(distribution),
            },
            (ValueKind::Path, Value::Paths(paths)) => paths.concat(),
            (_, Value::Paths(paths)) => write_paths(paths),
            (_, Value::Names(names)) => names.join(","),
            (_, Value::Cpus(cpus) | Value::Ranks(cpus)) => {
                cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
            }
            (_, Value::Percentiles(percents)) => percents.iter().map(f64::to_string).collect::<Vec<_>>().join(":"),
            (_, Value::Pattern(bytes)) => pattern::write(bytes),
            (_, Value::BlockPattern(pattern)) => pattern::write_block(pattern),
            (_, Value::Simulated(model)) => write_simulated(model),
            (_, Value::Address(address)) => address.to_string(),
            (_, Value::Words(words)) => words.join(" "),
            (_, Value::Priorities(shares)) => priority::write(shares),
            (_, Value::Errors(lists)) => errors::write(lists),
            (_, Value::Nodes(nodes)) => numa::write_nodes(nodes),
            (_, Value::MemoryPolicy(policy)) => numa::write_policy(policy),
            (_, Value::RangeSync(range)) => range.to_string(),
            (_, Value::Criterion(criterion)) => {
                let unit = if criterion.is_percent { "%" } else { "" };
                format!("{}:{}{unit}", criterion.name(), criterion.limit)
            }
        }
    }
}

/// Parses one number, or those of reads, writes, trims: of two, trims have the second.
fn read_each(text: &str, blank: u64, read: impl Fn(&str) -> Result<u64, String>) -> Result<Value, String> {
    let mut numbers = [blank; 3];
    for (index, part) in text.split(',').enumerate() {
        let number = if part.trim().is_empty() && text.contains(',') { blank } else { read(part)? };
        match numbers.get_mut(index..) {
            Some(rest) if !rest.is_empty() => rest.fill(number),
            _ => return Err(format!("`{text}` has more than three parts: of reads, writes, trims")),
        }
    }
    Ok(Value::Numbers(numbers))
}

/// Parses one rate, or those of reads, writes, trims: of two, trims have the second, and a blank one is 0.
fn read_rates(text: &str, read: impl Fn(&str) -> Result<f64, String>) -> Result<Value, String> {
    if !text.contains(',') {
        return read(text).map(Value::Rate);
    }
    let mut rates = [0.0; 3];
    for (index, part) in text.split(',').enumerate() {
        let rate = if part.trim().is_empty() { 0.0 } else { read(part)? };
        match rates.get_mut(index..) {
            Some(rest) if !rest.is_empty() => rest.fill(rate),
            _ => return Err(format!("`{text}` has more than three rates: of reads, writes, trims")),
        }
    }
    Ok(Value::Rates(rates))
}

/// Parses parts, and the number of writes between two calls; without a number, after each write.
fn read_range_sync(text: &str) -> Option<RangeSync> {
    let (parts, every) = text.trim().split_once(':').unwrap_or((text.trim(), "1"));
    let every = every.trim().parse().ok().filter(|every| *every > 0)?;
    let mut range = RangeSync { every, waits_before: false, writes: false, waits_after: false };
    for part in parts.split(',') {
        let is_set = match part.trim() {
            "wait_before" => &mut range.waits_before,
            "write" => &mut range.writes,
            "wait_after" => &mut range.waits_after,
            _ => return None,
        };
        *is_set = true;
    }
    Some(range)
}

/// Parses the variable that must be steady.
fn read_criterion(text: &str) -> Option<Criterion> {
    let (name, limit) = text.trim().split_once(':')?;
    let (variable, is_slope) = name.strip_suffix("_slope").map_or((name, false), |variable| (variable, true));
    let variable = match variable {
        "iops" => CriterionVariable::Ios,
        "bw" => CriterionVariable::Bytes,
        "lat" => CriterionVariable::Latency,
        _ => return None,
    };
    let (limit, is_percent) = limit.strip_suffix('%').map_or((limit, false), |limit| (limit, true));
    let limit: f64 = limit.trim().parse().ok().filter(|limit: &f64| limit.is_finite() && *limit > 0.0)?;
    Some(Criterion { variable, is_slope, limit, is_percent })
}

/// Parses percentages, each above 0 and at most 100, unique and in order.
fn read_percentiles(text: &str) -> Result<Vec<f64>, String> {
    let mut percents = Vec::new();
    for part in text.split([':', ',']) {
        let percent: Option<f64> = part.trim().parse().ok().filter(|percent| *percent > 0.0 && *percent <= 100.0);
        percents.push(percent.ok_or_else(|| format!("`{part}` is not a percentage above 0 and up to 100"))?);
    }
    percents.sort_by(f64::total_cmp);
    percents.dedup();
    if percents.len() > PERCENTILES_MAX {
        return Err(format!("{} percentages are more than {PERCENTILES_MAX}", percents.len()));
    }
    Ok(percents)
}

/// Returns the canonical text of a size: the largest unit that divides it (`4096` is `4k`).
pub fn write_bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 5] = [(1 << 50, "p"), (1 << 40, "t"), (1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k")];
    for (factor, unit) in UNITS {
        if bytes >= factor && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    bytes.to_string()
}

/// Returns the canonical text of a duration: the largest unit that divides it, at most seconds.
pub fn write_duration(ns: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    for (factor, unit) in UNITS {
        if ns.is_multiple_of(factor) {
            return format!("{}{unit}", ns / factor);
        }
    }
    format!("{ns}ns")
}

fn read_bytes(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if bytes > EXTENT_BYTES_MAX {
        return Err(format!("`{text}` is larger than the maximum size of a file (2^63 − 1 bytes)"));
    }
    Ok(bytes)
}

fn read_block_bytes(text: &str) -> Result<u64, String> {
    match read_bytes(text)? {
        0 => Err(format!("a block of `{text}` transfers nothing; the minimum is one byte")),
        bytes if bytes > BLOCK_BYTES_MAX => Err(format!(
            "a block of `{text}` is too large; the maximum is `1g`: the kernel transfers less than 2g in one call"
        )),
        bytes => Ok(bytes),
    }
}

fn read_percent(text: &str) -> Result<u8, String> {
    let digits = text.trim().trim_end_matches('%').trim();
    digits
        .parse::<u8>()
        .ok()
        .filter(|p| *p <= 100)
        .ok_or_else(|| format!("`{text}` is not a whole percentage from 0 to 100"))
}

/// Returns the canonical text of a parsed text.
#[cfg(test)]
fn canonical(kind: ValueKind, text: &str) -> Result<String, String> {
    kind.read(text).map(|value| kind.write(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_a_list_in_order_of_at_most_twenty() {
        let read = |text: &str| ValueKind::Percentiles.read(text);
        assert_eq!(read("99.9:50:99:50"), Ok(Value::Percentiles(vec![50.0, 99.0, 99.9])));
        for bad in ["", "0", "101", "50:x", "nan", "1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17:18:19:20:21"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let text = ValueKind::Percentiles.write(&read("99.9:50").unwrap());
        assert_eq!(text, "50:99.9");
    }

    #[test]
    fn a_size_has_one_canonical_text_however_it_was_written() {
        for text in ["4096", "4k", "4K", "4KiB", "0x1000"] {
            assert_eq!(canonical(ValueKind::Bytes, text), Ok("4k".into()), "{text}");
        }
        assert_eq!(canonical(ValueKind::Extent, "50%"), Ok("50%".into()));
        assert_eq!(canonical(ValueKind::Bytes, "1536"), Ok("1536".into()));
    }

    #[test]
    fn a_bare_thinktime_is_microseconds_and_a_bare_runtime_seconds() {
        assert_eq!(canonical(ValueKind::DurationMicros, "250"), Ok("250us".into()));
        assert_eq!(canonical(ValueKind::Duration, "250"), Ok("250s".into()));
        assert_eq!(canonical(ValueKind::Duration, "1.5s"), Ok("1500ms".into()));
        assert_eq!(canonical(ValueKind::Duration, "0"), Ok("0s".into()));
    }
}
