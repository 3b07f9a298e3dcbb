//! The types of the file `study.toml`, which `docs/studies.md` describes.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use trueio_model::{Statistic, StudyMetric};

/// The `format` of files that this version reads.
pub const DEFINITION_FORMAT: u32 = 1;

/// The file `study.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// [`DEFINITION_FORMAT`].
    pub format: u32,
    /// Its subject, in one line.
    pub title: String,
    /// The question that it answers.
    pub question: String,
    /// Where the published figures come from.
    pub source: Source,
    /// How to read the published figures.
    #[serde(default)]
    pub published: PublishedTable,
    /// The programs that its rows' `command` starts. A study from a folder needs `--allow-exec` for them.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Figures that its tables show in addition to the published ones.
    #[serde(default)]
    pub show: Vec<StudyMetric>,
    /// Job options of every row.
    #[serde(default)]
    pub set: Options,
    /// What is varied; a row has one value of each axis.
    #[serde(default)]
    pub axis: Vec<Axis>,
    /// Combinations that are left out.
    #[serde(default)]
    pub exclude: Vec<AxisSelection>,
    /// Options of some combinations.
    #[serde(default)]
    pub rule: Vec<Rule>,
    /// The modes in which it can be run.
    pub mode: BTreeMap<String, Mode>,
    /// The changes of `--quick`.
    #[serde(default)]
    pub quick: Quick,
    /// Comparisons of two values of an axis.
    #[serde(default)]
    pub contrast: Vec<ContrastDefinition>,
    /// Limits that no hardware exceeds.
    #[serde(default)]
    pub limit: Vec<Limit>,
    /// Questions about the measured rows.
    #[serde(default)]
    pub answer: Vec<Answer>,
    /// Figures that must add up.
    #[serde(default)]
    pub sum: Vec<Sum>,
    /// True if the rows that only read are useful alone. If the target may not be written, these are run, and the others
    /// are left out.
    #[serde(default)]
    pub reads_alone: bool,
    /// The source's format of a row, for `--format rows` (`row_format.rs`).
    pub row_format: Option<String>,
}

/// Job options by the names of the option table. `${NAME}` in a value stands for a variable.
pub type Options = BTreeMap<String, OptionText>;
/// Axes with one or several values each: the rows to which something applies.
pub type AxisSelection = BTreeMap<String, OneOrMany>;

/// A publication whose figures are compared.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its title.
    pub title: String,
    /// The author or publisher.
    pub by: String,
    /// When.
    pub date: String,
    /// The machine, as far as it is published.
    pub setting: String,
    /// Limits of its method: sentences.
    #[serde(default)]
    pub doubts: Vec<String>,
}

/// How the columns of `published.csv` are to be read.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTable {
    /// Columns that identify a row: column to axis. `op` is the operation, `setting` the source's machine.
    #[serde(default)]
    pub keys: BTreeMap<String, String>,
    /// The columns that hold figures.
    #[serde(default)]
    pub figure: Vec<FigureColumn>,
    /// The author's note on the cells that end in `*`.
    pub asterisk: Option<String>,
    /// Columns that are not used, so that none is forgotten.
    #[serde(default)]
    pub unused: Vec<String>,
}

/// A column of figures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureColumn {
    /// Its heading in `published.csv`.
    pub column: String,
    /// The kind of figure.
    pub metric: StudyMetric,
    /// The source's statistic of its samples.
    #[serde(default)]
    pub statistic: Statistic,
    /// Its unit, truly.
    pub unit: Unit,
    /// The unit that the source prints, if it differs; `why` then gives the reason.
    pub printed: Option<String>,
    /// How it is known.
    pub why: Option<String>,
    /// Values of axes that the column represents instead of a row.
    #[serde(default)]
    pub at: BTreeMap<String, String>,
}

/// Units of published figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Unit {
    /// Seconds.
    #[serde(rename = "s")]
    Second,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Millisecond,
    /// Microseconds.
    #[serde(rename = "us")]
    Microsecond,
    /// 2^10 bytes per second.
    #[serde(rename = "KiB/s")]
    KibPerSecond,
    /// 2^20 bytes per second.
    #[serde(rename = "MiB/s")]
    MibPerSecond,
    /// 10^6 bytes per second.
    #[serde(rename = "MB/s")]
    MbPerSecond,
    /// Bytes per second.
    #[serde(rename = "B/s")]
    BytesPerSecond,
    /// Per second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// Percent.
    #[serde(rename = "%")]
    Percent,
    /// A number of requests.
    #[serde(rename = "requests")]
    Requests,
}

impl Unit {
    /// All of them.
    pub const ALL: [Unit; 10] = [
        Unit::Second,
        Unit::Millisecond,
        Unit::Microsecond,
        Unit::KibPerSecond,
        Unit::MibPerSecond,
        Unit::MbPerSecond,
        Unit::BytesPerSecond,
        Unit::PerSecond,
        Unit::Percent,
        Unit::Requests,
    ];

    /// Its value in base units.
    pub fn in_base(self) -> f64 {
        match self {
            Unit::Second | Unit::BytesPerSecond | Unit::PerSecond | Unit::Requests => 1.0,
            Unit::Millisecond => 1e-3,
            Unit::Microsecond => 1e-6,
            Unit::KibPerSecond => 1024.0,
            Unit::MibPerSecond => 1_048_576.0,
            Unit::MbPerSecond => 1e6,
            Unit::Percent => 0.01,
        }
    }

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Second => "s",
            Unit::Millisecond => "ms",
            Unit::Microsecond => "us",
            Unit::KibPerSecond => "KiB/s",
            Unit::MibPerSecond => "MiB/s",
            Unit::MbPerSecond => "MB/s",
            Unit::BytesPerSecond => "B/s",
            Unit::PerSecond => "1/s",
            Unit::Percent => "%",
            Unit::Requests => "requests",
        }
    }

    /// Whether a metric can have this unit.
    pub fn fits(self, metric: StudyMetric) -> bool {
        match metric {
            StudyMetric::Bandwidth => {
                matches!(self, Unit::KibPerSecond | Unit::MibPerSecond | Unit::MbPerSecond | Unit::BytesPerSecond)
            }
            StudyMetric::Iops => self == Unit::PerSecond,
            StudyMetric::DiskBusy => self == Unit::Percent,
            StudyMetric::DiskRequests | StudyMetric::DiskMerges => self == Unit::Requests,
            StudyMetric::Flushes | StudyMetric::Errors => false,
            _ => matches!(self, Unit::Second | Unit::Millisecond | Unit::Microsecond),
        }
    }
}

/// A parameter that is varied.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Its name.
    pub key: String,
    /// Its values, in order.
    pub value: Vec<AxisValue>,
}

/// One value of an axis.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AxisValue {
    /// Its name; `published` is the source's name, if it differs.
    pub name: String,
    /// How the source writes it.
    pub published: Option<String>,
    /// Job options.
    #[serde(default)]
    pub set: Options,
    /// Variables for job options: `${NAME}`.
    #[serde(default)]
    pub var: BTreeMap<String, OptionText>,
    /// Checks that object to this value by its nature, because the study is about it: its figures are kept, as suspect,
    /// and decide.
    #[serde(default)]
    pub accepts: Vec<String>,
    /// Conditions before a row with it is run ([`NEEDS`]).
    #[serde(default)]
    pub needs: BTreeMap<String, String>,
}

/// The conditions that a value may set, and their possible values. `transport`: the disk is switched to it, which is
/// verified.
pub const NEEDS: [(&str, &[&str]); 1] = [("transport", &["uas", "bot"])];

/// Options of some combinations.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Where.
    pub when: AxisSelection,
    /// What.
    pub set: Options,
}

/// A way of running a study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    /// Its description, in a sentence.
    pub title: String,
    /// Its position among the modes; modes without one are run only if named.
    pub place: Option<u32>,
    /// Job options, over those of the study.
    #[serde(default)]
    pub set: Options,
    /// Axes instead of the study's.
    #[serde(default)]
    pub axis: Vec<Axis>,
    /// Values of axes that are run; others are left out.
    #[serde(default)]
    pub only: AxisSelection,
    /// Combinations that are left out, in addition to the study's.
    #[serde(default)]
    pub exclude: Vec<AxisSelection>,
    /// Options of some combinations.
    #[serde(default)]
    pub rule: Vec<Rule>,
    /// Samples a row.
    #[serde(default = "one")]
    pub samples: u32,
    /// In which order.
    #[serde(default)]
    pub order: RowOrder,
    /// The choices made, and the differences from the source: sentences.
    #[serde(default)]
    pub notes: Vec<String>,
    /// True if each sample begins with new files, as in the source.
    #[serde(default)]
    pub fresh_files: bool,
    /// True if calls are expected to fail, as in the source.
    #[serde(default)]
    pub expects_failure: bool,
}

fn one() -> u32 {
    1
}

/// The order of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowOrder {
    /// As they are listed, round after round.
    #[default]
    Listed,
    /// Each round in another order, drawn from a seed.
    Shuffled,
}

/// The changes of `--quick`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// Job options, the last word.
    #[serde(default)]
    pub set: Options,
    /// Options of some combinations, after `set`.
    #[serde(default)]
    pub rule: Vec<Rule>,
    /// Values of axes that are run; others are left out.
    #[serde(default)]
    pub only: AxisSelection,
    /// The most samples a row.
    pub samples: Option<u32>,
    /// A description of what is reduced, shown next to every figure.
    #[serde(default)]
    pub scale: Vec<String>,
}

/// One value of an axis against another.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContrastDefinition {
    /// For a heading.
    pub title: String,
    /// The key of the axis.
    pub axis: String,
    /// The value above the line.
    pub of: String,
    /// The value below it.
    pub against: String,
    /// Values of other axes that the row below the line has instead of those of the row above.
    #[serde(default)]
    pub against_at: BTreeMap<String, String>,
    /// Which figure.
    pub metric: StudyMetric,
    /// The statistic of the samples.
    #[serde(default)]
    pub statistic: Statistic,
    /// The source's own formula, shown next to the ratio.
    pub formula: Option<Formula>,
    /// Where else; nothing: everywhere.
    #[serde(default)]
    pub when: AxisSelection,
    /// The modes; none: all.
    #[serde(default)]
    pub modes: Vec<String>,
}

/// How a source writes a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Formula {
    /// (against - of) / against, in percent: the saving of `of`.
    PercentSaved,
}

/// A limit of the hardware.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Columns of the source with one value or several.
    #[serde(default)]
    pub place: AxisSelection,
    /// Which figure: `elapsed` (with `bytes`, the amount of data) or `bandwidth`.
    pub metric: StudyMetric,
    /// Bytes transferred in that time.
    pub bytes: Option<u64>,
    /// What is assumed about `bytes`, because the source does not print it.
    pub assumes: Option<Assumption>,
    /// The most that is possible, in MB (10^6 bytes) per second.
    pub mb_per_s_max: f64,
    /// The source of the limit: `SATA at 6 Gbit/s carries 600 MB/s`.
    pub why: String,
}

/// An assumption about the amount of data behind a figure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assumption {
    /// What is assumed: `15,625 calls of 128 KiB`.
    pub what: String,
    /// Why it is assumed.
    pub why: String,
    /// Bytes of one call: determines how many calls would be possible.
    pub call_bytes: u64,
}

/// Figures that must add up in every row, here and in the source: `slat + clat = lat`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// The figure that the parts add up to.
    pub whole: StudyMetric,
    /// The figures that are added.
    pub parts: Vec<StudyMetric>,
    /// The permitted difference, as a share of the whole.
    pub tolerance: f64,
    /// Added to the sentence about rows that lack a part.
    pub lacking: String,
}

/// A question about the rows.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// What.
    pub kind: AnswerKind,
    /// The axis among whose values the best is sought.
    pub among: String,
    /// The axis for each of whose values it is sought.
    pub by: String,
    /// By which figure.
    pub metric: StudyMetric,
    /// The modes; none: all.
    #[serde(default)]
    pub modes: Vec<String>,
}

/// Kinds of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// The best of the rows whose writes reached stable storage.
    BestDurable,
    /// The best of all.
    Best,
    /// Which rows reached stable storage, by their axis.
    Durability,
    /// Rows whose calls failed: their number, duration, and the figure that a loop without a check would report.
    FailedCalls,
}

/// A value of an option, however TOML writes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum OptionText {
    /// `"4k"`.
    Text(String),
    /// `32`.
    Integer(i64),
    /// `true`.
    Bool(bool),
    /// `0.5`.
    Float(f64),
}

impl fmt::Display for OptionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionText::Text(text) => f.write_str(text),
            OptionText::Integer(number) => write!(f, "{number}"),
            OptionText::Bool(truth) => write!(f, "{truth}"),
            OptionText::Float(number) => write!(f, "{number}"),
        }
    }
}

/// `"a"` or `["a", "b"]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl OneOrMany {
    /// Whether it names `value`.
    pub fn names(&self, value: &str) -> bool {
        self.values().any(|named| named == value)
    }

    /// Returns the named values, in their order.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        let all: &[String] = match self {
            OneOrMany::One(one) => std::slice::from_ref(one),
            OneOrMany::Many(many) => many,
        };
        all.iter().map(String::as_str)
    }
}

/// Returns whether the row with the values `key` is in the selection `place`. An axis that the row lacks does not
/// match.
pub fn is_at(place: &AxisSelection, key: &[(String, String)]) -> bool {
    place.iter().all(|(axis, values)| key.iter().any(|(name, value)| name == axis && values.names(value)))
}
