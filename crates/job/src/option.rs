//! An option as one typed constant.
//!
//! [`Opt<T>`] names an option whose value is read as `T`; its [`OptionRow`] holds everything that is true of it. The rows
//! of a section are declared by `rows!` in `options/SECTION/rows.rs`, with the functions below, one for each kind of
//! value, so that a row's type and its kind cannot differ:
//!
//! ```text
//! pub const IODEPTH: Opt<u32> = count("iodepth", 1, 32_768)
//!     .default("1")
//!     .unit("I/Os")
//!     .summary("I/Os that each worker keeps in flight");
//! ```
//!
//! An option without a default is an `Opt<Option<T>>`. Reading an option as another type does not compile:
//!
//! ```
//! use trueio_job::options::engine::rows::IODEPTH;
//! use trueio_job::values::Values;
//! fn depth(values: &Values) -> u32 {
//!     values.get(IODEPTH)
//! }
//! ```
//!
//! ```compile_fail
//! use trueio_job::options::engine::rows::IODEPTH;
//! use trueio_job::values::Values;
//! fn depth(values: &Values) -> bool {
//!     values.get(IODEPTH)
//! }
//! ```
//!
//! An option whose value is a word is read as an enum ([`Words`]), not as text:
//!
//! ```
//! use trueio_job::options::durability::rows::SYNC;
//! use trueio_job::values::Values;
//! use trueio_model::SyncMode;
//! fn is_durable(values: &Values) -> bool {
//!     values.get(SYNC) != SyncMode::None
//! }
//! ```
//!
//! ```compile_fail
//! use trueio_job::options::durability::rows::SYNC;
//! use trueio_job::values::Values;
//! fn is_durable(values: &Values) -> bool {
//!     values.get(SYNC) != "none"
//! }
//! ```

mod words;

use crate::value::{Choice, Extent, Value, ValueKind};
use std::marker::PhantomData;
use std::ops::Deref;
use trueio_model::{
    BlockPattern, BlockSizes, Criterion, Distribution, FileSelection, JobSpec, MemoryPolicy, OpKind, OpMix, Origin,
    PriorityShare, RangeSync, SimulatedDevice, SourceAddress,
};

/// All properties of an option, whatever its type.
#[derive(Debug, Clone, Copy)]
pub struct OptionRow {
    /// The name in job files, records and output; `--NAME` is the flag.
    pub name: &'static str,
    /// fio's names for it, other than `name`; accepted wherever `name` is.
    pub fio_names: &'static [&'static str],
    /// True if fio lists it under the first of `fio_names`, not under `name`.
    pub lists_fio_name: bool,
    /// The use of the option in fio's language.
    pub fio: FioUse,
    /// The value that fio uses if the option is not set, where that differs from `default`.
    pub fio_default: FioDefault,
    /// True if fio accepts it without a value; a value then only follows `=`.
    pub is_flag_in_fio: bool,
    /// The I/O engines that have the option in fio; empty: an option of all jobs.
    pub fio_engines: &'static [&'static str],
    /// True if a client of `trueio fio --server` may set it.
    pub remote: Remote,
    /// The values that it accepts.
    pub kind: ValueKind,
    /// The unit of its value, in text.
    pub unit: &'static str,
    /// The value of an option that is not set.
    pub default: DefaultValue,
    /// One sentence without a full stop: its effect.
    pub summary: &'static str,
    /// More about it than the summary; empty if nothing.
    pub detail: &'static str,
    /// Its section of the documentation.
    pub section: Section,
    /// Its position within the section.
    pub index: u16,
    /// Options that a nearer setting of this one replaces: a job's `bssplit` replaces a `bs` of `[defaults]`.
    /// If both are set at the same level, they contradict each other, and the plan refuses them.
    pub replaces: &'static [&'static str],
    /// When it has an effect.
    pub scope: &'static [Scope],
}

/// The use of an option in fio's language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FioUse {
    /// fio has the option, and the language sets it to the value as given.
    Same,
    /// fio has the option, and the language derives the value by this rule.
    Rule(&'static str),
    /// fio accepts the option without effect, for this reason, and so does the language.
    Ignored(&'static str),
    /// fio does not have the option; but the language accepts it.
    Extra,
    /// fio does not have the option; the language accepts it on a command line, but not in a job file, which may come
    /// from a stranger.
    CommandLine,
    /// fio does not have the option, and the language does not accept it.
    Absent,
}

/// fio's default of an option, compared with ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FioDefault {
    /// The same as ours, or no value in either.
    Same,
    /// It is this value, which fio's language sets in every job.
    Preset(&'static str),
    /// It is this value, which fio's language sets only in jobs where it has an effect.
    Conditional(&'static str),
}

/// Whether a client of `trueio fio --server` may set an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remote {
    /// It may.
    Allowed,
    /// It may not, because the option does this.
    Refused(&'static str),
}

/// When an option has an effect. An option that is set without effect is noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// On measured I/O: not if only files are created (`create_only`).
    Measured,
    /// Also with engines that do no I/O; all other options have no effect there.
    WithoutIo,
    /// Also if another program does the I/O; all other options are refused there.
    WithCommand,
    /// Not if a log is replayed: the log sets it.
    ByLog,
    /// Only if a log is replayed.
    Replay,
    /// On jobs that write.
    Writes,
    /// Only with `verify`.
    Verify,
    /// Only with `zonemode = zbd`.
    Zones,
    /// Only if a log is written.
    Logs,
}

/// The value of an option that is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultValue {
    /// This value.
    Text(&'static str),
    /// No value; the text describes what happens then.
    Unset(&'static str),
}

/// The sections of the reference, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Operations, offsets, sizes.
    Pattern,
    /// Files and devices.
    Target,
    /// Begin and end of a job.
    Limits,
    /// Engines, queue depth, batches.
    Engine,
    /// The page cache and durability.
    Durability,
    /// Rates and pauses.
    Pace,
    /// Written content and its verification.
    Content,
    /// Processors, priority, errors.
    Process,
    /// Logs and fio's outputs.
    Output,
}

impl Section {
    /// All of them, in order.
    pub const ALL: [Section; 9] = [
        Section::Pattern,
        Section::Target,
        Section::Limits,
        Section::Engine,
        Section::Durability,
        Section::Pace,
        Section::Content,
        Section::Process,
        Section::Output,
    ];

    /// Returns its heading.
    pub fn title(self) -> &'static str {
        match self {
            Section::Pattern => "Pattern",
            Section::Target => "Files and devices",
            Section::Limits => "Beginning and end",
            Section::Engine => "Engine and queue",
            Section::Durability => "Page cache and durability",
            Section::Pace => "Rate and pauses",
            Section::Content => "Content and verification",
            Section::Process => "Processors and errors",
            Section::Output => "fio's outputs",
        }
    }
}

/// Names are unique.
impl PartialEq for OptionRow {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl OptionRow {
    /// Returns the flag: `--iodepth`.
    pub fn flag(&self) -> String {
        format!("--{}", self.name)
    }

    /// Returns other spellings of the flag, without the dashes: fio's names, and each with hyphens.
    pub fn flag_aliases(&self) -> Vec<String> {
        let names = std::iter::once(self.name).chain(self.fio_names.iter().copied());
        let mut aliases: Vec<String> = self.fio_names.iter().map(|name| (*name).to_owned()).collect();
        for hyphenated in names.filter(|name| name.contains('_')).map(|name| name.replace('_', "-")) {
            if !aliases.contains(&hyphenated) {
                aliases.push(hyphenated);
            }
        }
        aliases
    }

    /// Returns true if fio has the option.
    pub fn is_in_fio(&self) -> bool {
        matches!(self.fio, FioUse::Same | FioUse::Rule(_) | FioUse::Ignored(_))
    }

    /// Returns the name under which fio lists it.
    pub fn fio_name(&self) -> &'static str {
        if self.lists_fio_name { self.fio_names[0] } else { self.name }
    }

    /// Returns the value that fio's language uses if the option is not set, where that differs from the default.
    pub fn fio_default(&self) -> Option<&'static str> {
        match self.fio_default {
            FioDefault::Same => None,
            FioDefault::Preset(text) | FioDefault::Conditional(text) => Some(text),
        }
    }

    /// Returns true if its value is the path of a file, a directory or a device. Filters of untrusted jobs read this.
    pub fn names_path(&self) -> bool {
        matches!(self.kind, ValueKind::Path | ValueKind::Paths)
    }

    /// Returns the placeholder of the value in `--help`.
    pub fn value_name(&self) -> &'static str {
        self.kind.value_name()
    }

    /// Returns the words that it accepts; empty if it accepts other values.
    pub fn choices(&self) -> &'static [Choice] {
        match self.kind {
            ValueKind::Choice(choices) => choices,
            _ => &[],
        }
    }

    /// Returns true if the flag may be given without a value, which then is true.
    pub fn is_switch(&self) -> bool {
        matches!(self.kind, ValueKind::Bool)
    }

    /// Returns the default as text: the value, or what happens without one.
    pub fn default_text(&self) -> &'static str {
        match self.default {
            DefaultValue::Text(text) | DefaultValue::Unset(text) => text,
        }
    }

    /// Reads a value and returns its canonical text.
    ///
    /// # Errors
    /// A sentence that describes what is wrong with the text.
    pub fn canonical(&self, text: &str) -> Result<String, String> {
        self.kind.read(text).map(|value| self.kind.write(&value))
    }
}

/// An option whose value is read as `T`.
pub struct Opt<T> {
    row: &'static OptionRow,
    reads: PhantomData<fn() -> T>,
}

impl<T> Opt<T> {
    /// Creates the option of a row. Only [`rows!`] calls it, with the row's position.
    #[doc(hidden)]
    pub const fn of(row: &'static OptionRow) -> Self {
        Self { row, reads: PhantomData }
    }

    /// Returns the row.
    pub const fn row(self) -> &'static OptionRow {
        self.row
    }

    /// Returns the option's value in a specification: the given value, or the default.
    ///
    /// A text that is not a value of the option is read as the default; planning refuses it.
    pub fn value_in(self, spec: &JobSpec) -> T
    where
        T: for<'a> Read<Out<'a> = T>,
    {
        let given = spec.options.get(self.row.name).and_then(|given| self.row.kind.read(&given.text).ok());
        let value = given.or(match self.row.default {
            DefaultValue::Text(text) => self.row.kind.read(text).ok(),
            DefaultValue::Unset(_) => None,
        });
        T::read(self.row, value.as_ref())
    }
}

impl<T: Words> Opt<T> {
    /// Sets the option to a word in a specification.
    pub fn set_in(self, spec: &mut JobSpec, value: T, origin: Origin) {
        spec.set(self.row.name, value.word(), origin);
    }
}

impl<T> Clone for Opt<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Opt<T> {}

impl<T> Deref for Opt<T> {
    type Target = OptionRow;

    fn deref(&self) -> &OptionRow {
        self.row
    }
}

impl<T> From<Opt<T>> for &'static OptionRow {
    fn from(option: Opt<T>) -> Self {
        option.row
    }
}

impl From<&&'static OptionRow> for &'static OptionRow {
    fn from(row: &&'static OptionRow) -> Self {
        row
    }
}

/// A row of the type `T` during its declaration.
pub struct Draft<T> {
    row: OptionRow,
    reads: PhantomData<fn() -> T>,
}

impl<T> Draft<T> {
    const fn new(name: &'static str, kind: ValueKind, unit: &'static str) -> Self {
        let row = OptionRow {
            name,
            fio_names: &[],
            lists_fio_name: false,
            fio: FioUse::Same,
            fio_default: FioDefault::Same,
            is_flag_in_fio: false,
            fio_engines: &[],
            remote: match kind {
                ValueKind::Path | ValueKind::Paths => Remote::Refused("names a file of the server"),
                _ => Remote::Allowed,
            },
            kind,
            unit,
            default: DefaultValue::Unset(""),
            summary: "",
            detail: "",
            section: Section::Pattern,
            index: 0,
            replaces: &[],
            scope: &[],
        };
        Self { row, reads: PhantomData }
    }

    /// Sets the default.
    pub const fn default(mut self, text: &'static str) -> Self {
        self.row.default = DefaultValue::Text(text);
        self
    }

    /// Declares that the option has no default, and describes what happens without a value.
    pub const fn unset(mut self, what: &'static str) -> Draft<Option<T>> {
        self.row.default = DefaultValue::Unset(what);
        Draft { row: self.row, reads: PhantomData }
    }

    /// Sets the unit of the value.
    pub const fn unit(mut self, unit: &'static str) -> Self {
        self.row.unit = unit;
        self
    }

    /// Sets fio's other names of the option.
    pub const fn fio_names(mut self, names: &'static [&'static str]) -> Self {
        self.row.fio_names = names;
        self
    }

    /// Sets fio's other names of the option, and declares that fio lists it under the first of them.
    pub const fn fio_names_first(mut self, names: &'static [&'static str]) -> Self {
        self.row.fio_names = names;
        self.row.lists_fio_name = true;
        self
    }

    /// Declares that fio does not have the option; its language accepts it all the same.
    pub const fn not_in_fio(self) -> Self {
        self.fio(FioUse::Extra)
    }

    /// Declares how fio's language reads the option.
    pub const fn fio(mut self, fio: FioUse) -> Self {
        self.row.fio = fio;
        self
    }

    /// Declares the rule by which fio's language derives the value.
    pub const fn fio_rule(self, rule: &'static str) -> Self {
        self.fio(FioUse::Rule(rule))
    }

    /// Sets fio's default, in our words; fio's language sets it in every job.
    pub const fn fio_default(mut self, text: &'static str) -> Self {
        self.row.fio_default = FioDefault::Preset(text);
        self
    }

    /// Sets fio's default, in our words; fio's language sets it where it has an effect.
    pub const fn fio_default_conditional(mut self, text: &'static str) -> Self {
        self.row.fio_default = FioDefault::Conditional(text);
        self
    }

    /// Declares the I/O engines whose own option it is in fio.
    pub const fn fio_engines(mut self, engines: &'static [&'static str]) -> Self {
        self.row.fio_engines = engines;
        self
    }

    /// Sets whether a remote client may set the option. One that names a file is refused unless it is allowed here.
    pub const fn remote(mut self, remote: Remote) -> Self {
        self.row.remote = remote;
        self
    }

    /// Sets the options that a nearer setting of this one replaces.
    pub const fn replaces(mut self, names: &'static [&'static str]) -> Self {
        self.row.replaces = names;
        self
    }

    /// Sets when the option has an effect.
    pub const fn scope(mut self, scope: &'static [Scope]) -> Self {
        self.row.scope = scope;
        self
    }

    /// Sets the summary: one sentence without a full stop.
    pub const fn summary(mut self, text: &'static str) -> Self {
        self.row.summary = text;
        self
    }

    /// Sets the text in addition to the summary.
    pub const fn detail(mut self, text: &'static str) -> Self {
        self.row.detail = text;
        self
    }

    /// Returns the row at its position.
    pub const fn placed(self, section: Section, index: u16) -> OptionRow {
        OptionRow { section, index, ..self.row }
    }
}

/// Declares the options of a section: a constant for each, and `ROWS`, all of them in their order.
macro_rules! rows {
    ($section:expr; $(pub const $name:ident: Opt<$type:ty> = $draft:expr;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Index { $($name),* }
        $(
            #[allow(missing_docs, reason = "the row holds the summary")]
            pub const $name: Opt<$type> = {
                const DRAFT: $crate::option::Draft<$type> = $draft;
                static ROW: $crate::option::OptionRow = DRAFT.placed($section, Index::$name as u16);
                Opt::of(&ROW)
            };
        )*
        /// The rows of the section, in the order of the documentation.
        pub const ROWS: &[&$crate::option::OptionRow] = &[$($name.row()),*];
    };
}
pub(crate) use rows;
pub use words::Words;
pub(crate) use words::{word, words_of};

/// A duration; it is read as nanoseconds, `None` for unset and for zero.
#[derive(Debug)]
pub struct TimeNs;

/// Rates, as given.
#[derive(Debug, Clone, Copy)]
pub enum Rates {
    /// One for all I/Os together.
    All(f64),
    /// Of reads, writes and trims.
    Each([f64; 3]),
}

/// The rates of a job's operations.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct JobRates {
    /// Of all of them, or of the reads if `of_writes` is set.
    pub(crate) rate: f64,
    /// Of the writes, if they have a rate of their own.
    pub(crate) of_writes: Option<f64>,
}

impl Rates {
    /// Returns the rates of a job with these operations.
    pub(crate) fn of(self, mix: OpMix) -> JobRates {
        let of_all = |rate| JobRates { rate, of_writes: None };
        match (self, mix) {
            (Rates::All(rate), _) => of_all(rate),
            (Rates::Each([reads, ..]), OpMix::Only(OpKind::Read | OpKind::Sync)) => of_all(reads),
            (Rates::Each([_, writes, _]), OpMix::Only(OpKind::Write)) => of_all(writes),
            (Rates::Each([.., trims]), OpMix::Only(OpKind::Trim)) => of_all(trims),
            (Rates::Each([reads, writes, _]), OpMix::ReadWrite { .. }) => {
                JobRates { rate: reads, of_writes: Some(writes) }
            }
        }
    }
}

/// A switch, off by default.
pub(crate) const fn switch(name: &'static str) -> Draft<bool> {
    Draft::new(name, ValueKind::Bool, "yes or no").default("false")
}

/// A switch that fio takes without a value.
pub(crate) const fn flag(name: &'static str) -> Draft<bool> {
    let mut draft = switch(name);
    draft.row.is_flag_in_fio = true;
    draft
}

/// A whole number from `min` to `max`, which must fit into the type.
pub(crate) const fn count<T>(name: &'static str, min: u64, max: u64) -> Draft<T> {
    assert!(size_of::<T>() == 8 || max < 1 << (8 * size_of::<T>()), "the largest value does not fit into the type");
    Draft::new(name, ValueKind::Count { min, max }, "")
}

/// A whole number that may be negative.
pub(crate) const fn integer(name: &'static str, min: i64, max: i64) -> Draft<i64> {
    Draft::new(name, ValueKind::Integer { min, max }, "")
}

/// Declares a function for each kind of value that has no parameters of its own.
macro_rules! kinds {
    ($($name:ident: $kind:ident as $type:ty;)*) => {
        $(
            pub(crate) const fn $name(name: &'static str) -> Draft<$type> {
                Draft::new(name, ValueKind::$kind, "")
            }
        )*
    };
}

kinds! {
    address: Address as SourceAddress;
    block_pattern: BlockPattern as BlockPattern;
    block_ranges: BlockRanges as [BlockSizes; 3];
    block_sizes: BlockSizes as [BlockSizes; 3];
    block_splits: BlockSplits as [BlockSizes; 3];
    bytes: Bytes as u64;
    bytes_each: BytesEach as [u64; 3];
    bytes_range: BytesRange as (u64, u64);
    cpus: Cpus as Vec<u32>;
    criterion: Criterion as Criterion;
    distribution: Distribution as Distribution;
    error_lists: ErrorLists as [Vec<i32>; 2];
    extent: Extent as Extent;
    file_selection: FileSelection as FileSelection;
    memory_policy: MemoryPolicy as MemoryPolicy;
    names: Names as Vec<String>;
    nodes: Nodes as Vec<u32>;
    part: Part as f64;
    path: Path as String;
    paths: Paths as Vec<String>;
    pattern: Pattern as Vec<u8>;
    percent: Percent as u64;
    percentiles: Percentiles as Vec<f64>;
    percents: Percents as [u64; 3];
    priorities: Priorities as Vec<PriorityShare>;
    range_sync: RangeSync as RangeSync;
    ranks: Ranks as Vec<u32>;
    rate_bytes: RateBytes as Rates;
    rate_iops: RateIops as Rates;
    seed: Seed as u64;
    simulated: Simulated as SimulatedDevice;
    time: Duration as TimeNs;
    time_us: DurationMicros as TimeNs;
    words: Words as Vec<String>;
}

/// A type that the value of an option is read as.
pub trait Read {
    /// What reading returns.
    type Out<'a>;

    /// Reads a value; `None`: the option is not set and has no default.
    fn read<'a>(row: &OptionRow, value: Option<&'a Value>) -> Self::Out<'a>;
}

fn mismatch(row: &OptionRow, value: Option<&Value>) -> ! {
    unreachable!("`{}` holds {value:?}, which its kind does not read", row.name)
}

/// Implements [`Read`] for a type and for its `Option`.
macro_rules! reads {
    ($($type:ty, $out:ty, $pattern:pat => $read:expr;)*) => {
        $(
            impl Read for $type {
                type Out<'a> = $out;

                fn read<'a>(row: &OptionRow, value: Option<&'a Value>) -> Self::Out<'a> {
                    match value {
                        Some($pattern) => $read,
                        other => mismatch(row, other),
                    }
                }
            }

            impl Read for Option<$type> {
                type Out<'a> = Option<$out>;

                fn read<'a>(row: &OptionRow, value: Option<&'a Value>) -> Self::Out<'a> {
                    value.map(|value| <$type>::read(row, Some(value)))
                }
            }
        )*
    };
}

reads! {
    bool, bool, Value::Bool(is) => *is;
    u64, u64, Value::Number(number) => *number;
    u32, u32, Value::Number(number) => u32::try_from(*number).expect("the row's bounds keep it within the type");
    i64, i64, Value::Integer(number) => *number;
    f64, f64, Value::Rate(part) => *part;
    [u64; 3], [u64; 3], Value::Numbers(numbers) => *numbers;
    (u64, u64), (u64, u64), Value::Range(low, high) => (*low, *high);
    Extent, Extent, Value::Extent(extent) => *extent;
    [BlockSizes; 3], &'a [BlockSizes; 3], Value::Sizes(sizes) => sizes;
    Distribution, &'a Distribution, Value::Distribution(distribution) => distribution;
    FileSelection, &'a FileSelection, Value::FileSelection(selection) => selection;
    String, &'a str, Value::Paths(paths) => &paths[0];
    Vec<String>, &'a [String], Value::Paths(texts) | Value::Names(texts) | Value::Words(texts) => texts;
    Vec<u32>, &'a [u32], Value::Cpus(numbers) | Value::Nodes(numbers) | Value::Ranks(numbers) => numbers;
    Vec<f64>, &'a [f64], Value::Percentiles(percents) => percents;
    Vec<u8>, &'a [u8], Value::Pattern(bytes) => bytes;
    [Vec<i32>; 2], &'a [Vec<i32>; 2], Value::Errors(lists) => lists;
    BlockPattern, &'a BlockPattern, Value::BlockPattern(pattern) => pattern;
    SimulatedDevice, &'a SimulatedDevice, Value::Simulated(model) => model;
    SourceAddress, &'a SourceAddress, Value::Address(address) => address;
    Criterion, Criterion, Value::Criterion(criterion) => *criterion;
    Vec<PriorityShare>, &'a [PriorityShare], Value::Priorities(shares) => shares;
    MemoryPolicy, &'a MemoryPolicy, Value::MemoryPolicy(policy) => policy;
    RangeSync, RangeSync, Value::RangeSync(range) => *range;
}

impl Read for TimeNs {
    type Out<'a> = Option<u64>;

    fn read<'a>(row: &OptionRow, value: Option<&'a Value>) -> Self::Out<'a> {
        match value {
            Some(Value::DurationNs(ns)) => Some(*ns).filter(|ns| *ns > 0),
            None => None,
            other => mismatch(row, other),
        }
    }
}

impl Read for Option<TimeNs> {
    type Out<'a> = Option<u64>;

    fn read<'a>(row: &OptionRow, value: Option<&'a Value>) -> Self::Out<'a> {
        TimeNs::read(row, value)
    }
}

/// `None` for unset, and where all rates are zero.
impl Read for Rates {
    type Out<'a> = Option<Rates>;

    fn read<'a>(row: &OptionRow, value: Option<&'a Value>) -> Self::Out<'a> {
        match value {
            Some(Value::Rate(rate)) => Some(Rates::All(*rate)).filter(|_| *rate > 0.0),
            Some(Value::Rates(rates)) => Some(Rates::Each(*rates)).filter(|_| rates.iter().any(|rate| *rate > 0.0)),
            None => None,
            other => mismatch(row, other),
        }
    }
}

impl Read for Option<Rates> {
    type Out<'a> = Option<Rates>;

    fn read<'a>(row: &OptionRow, value: Option<&'a Value>) -> Self::Out<'a> {
        Rates::read(row, value)
    }
}
