//! What a study is: the file `study.toml`, read and held to its rules.
//!
//! Nothing is run or opened here. A file from a stranger ends in a [`Study`] or in a sentence that says where it is
//! wrong; every job option in it is held to the option table, so a study cannot ask for what a job file could not.
//!
//! The file is described in `docs/studies.md`.

use crate::published::{Published, read_published};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use trueio_model::{Statistic, StudyMetric};

/// The `format` of files that this reader knows.
pub const DEFINITION_FORMAT: u32 = 1;
/// The most rows that a mode may have: the longest published one has 294.
pub const ROWS_MAX: usize = 10_000;
/// The longest definition, and the longest table of figures, in bytes.
pub const TEXT_BYTES_MAX: usize = 4 << 20;

/// Why a text is not a study.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{place}` is not a study that can be run: {message}")]
pub struct DefinitionError {
    /// The file, with its line where that is known.
    pub place: String,
    /// What is wrong and what is expected.
    pub message: String,
}

/// A study, complete and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Its name: that of its folder.
    pub name: String,
    /// What the file says.
    pub definition: Definition,
    /// The published figures.
    pub published: Published,
    /// A hash of both files: whether two runs are of the same study.
    pub fingerprint: String,
}

/// The file `study.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// [`DEFINITION_FORMAT`].
    pub format: u32,
    /// What it is about, in a line.
    pub title: String,
    /// What it asks.
    pub question: String,
    /// The source.
    pub source: Source,
    /// How its figures are to be read.
    #[serde(default)]
    pub published: PublishedTable,
    /// The programs that its rows' `command` starts. A study from a folder may only if the user says so.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Figures that its tables show beside the published ones.
    #[serde(default)]
    pub show: Vec<StudyMetric>,
    /// Job options of every row.
    #[serde(default)]
    pub set: Options,
    /// What is varied.
    #[serde(default)]
    pub axis: Vec<Axis>,
    /// Combinations that are left out.
    #[serde(default)]
    pub exclude: Vec<Place>,
    /// Options of some combinations.
    #[serde(default)]
    pub rule: Vec<Rule>,
    /// Ways of running it.
    pub mode: BTreeMap<String, Mode>,
    /// What `--quick` changes.
    #[serde(default)]
    pub quick: Quick,
    /// Values of an axis against each other.
    #[serde(default)]
    pub contrast: Vec<ContrastDefinition>,
    /// What no hardware exceeds.
    #[serde(default)]
    pub limit: Vec<Limit>,
    /// What is asked of the rows when they are there.
    #[serde(default)]
    pub answer: Vec<Answer>,
    /// Figures that must add up.
    #[serde(default)]
    pub sum: Vec<Sum>,
    /// True if the rows that only read tell something by themselves: where the target may not be written, they are
    /// run, and the others are left out.
    #[serde(default)]
    pub reads_alone: bool,
    /// How the source prints a row, for `--format rows` (`row_format.rs`).
    pub row_format: Option<String>,
}

/// Job options by the names of the option table. `${NAME}` in a value stands for a variable.
pub type Options = BTreeMap<String, OptionText>;
/// Axes with one value or several of each: where something holds.
pub type Place = BTreeMap<String, OneOrMany>;

/// The source.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its title.
    pub title: String,
    /// Who published it.
    pub by: String,
    /// When.
    pub date: String,
    /// On which machine, as far as it tells.
    pub setting: String,
    /// What its method could not show: sentences.
    #[serde(default)]
    pub doubts: Vec<String>,
}

/// How the columns of `published.csv` are to be read.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTable {
    /// Columns that say where a row belongs: column to axis. `op` stands for the operation, `setting` for the
    /// source's machine.
    #[serde(default)]
    pub keys: BTreeMap<String, String>,
    /// The columns that hold figures.
    #[serde(default)]
    pub figure: Vec<FigureColumn>,
    /// Columns that are not used, so that none is forgotten.
    #[serde(default)]
    pub unused: Vec<String>,
}

/// A column of figures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureColumn {
    /// The column.
    pub column: String,
    /// What it is.
    pub metric: StudyMetric,
    /// What the source made of its samples.
    #[serde(default)]
    pub statistic: Statistic,
    /// Its unit, truly.
    pub unit: Unit,
    /// The unit that the source prints, if it is another; then `why` says how that is known.
    pub printed: Option<String>,
    /// How it is known.
    pub why: Option<String>,
    /// Values of axes that the column, and not a row, stands for.
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
}

impl Unit {
    /// All of them.
    pub const ALL: [Unit; 9] = [
        Unit::Second,
        Unit::Millisecond,
        Unit::Microsecond,
        Unit::KibPerSecond,
        Unit::MibPerSecond,
        Unit::MbPerSecond,
        Unit::BytesPerSecond,
        Unit::PerSecond,
        Unit::Percent,
    ];

    /// What one of it is in base units.
    pub fn in_base(self) -> f64 {
        match self {
            Unit::Second | Unit::BytesPerSecond | Unit::PerSecond => 1.0,
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
            StudyMetric::Flushes | StudyMetric::Errors => false,
            _ => matches!(self, Unit::Second | Unit::Millisecond | Unit::Microsecond),
        }
    }
}

/// What is varied.
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
    /// Its name; `published` says how the source writes it, if otherwise.
    pub name: String,
    /// How the source writes it.
    pub published: Option<String>,
    /// Job options.
    #[serde(default)]
    pub set: Options,
    /// Variables for job options: `${NAME}`.
    #[serde(default)]
    pub var: BTreeMap<String, OptionText>,
    /// Checks whose contradiction is this value's point: its figures stand, as suspect.
    #[serde(default)]
    pub accepts: Vec<String>,
    /// What must be so before a row with it is run ([`NEEDS`]).
    #[serde(default)]
    pub needs: BTreeMap<String, String>,
}

/// What a value may need, and what that can be. `transport`: the disk is moved to it, and that is verified.
pub const NEEDS: [(&str, &[&str]); 1] = [("transport", &["uas", "bot"])];

/// Options of some combinations.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Where.
    pub when: Place,
    /// What.
    pub set: Options,
}

/// A way of running a study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    /// What it does, in a sentence.
    pub title: String,
    /// Its place among the modes; those without one are run only if asked for.
    pub place: Option<u32>,
    /// Job options, over those of the study.
    #[serde(default)]
    pub set: Options,
    /// Axes instead of the study's.
    #[serde(default)]
    pub axis: Vec<Axis>,
    /// Values of axes that are run; others are left out.
    #[serde(default)]
    pub only: Place,
    /// Combinations that are left out, beside the study's.
    #[serde(default)]
    pub exclude: Vec<Place>,
    /// Options of some combinations.
    #[serde(default)]
    pub rule: Vec<Rule>,
    /// Samples a row.
    #[serde(default = "one")]
    pub samples: u32,
    /// In which order.
    #[serde(default)]
    pub order: RowOrder,
    /// What was chosen, and how it differs from the source: sentences.
    #[serde(default)]
    pub notes: Vec<String>,
    /// True if each sample begins with new files, as the source's did.
    #[serde(default)]
    pub fresh_files: bool,
    /// True if calls are expected to fail, as the source's did.
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

/// What `--quick` changes.
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
    pub only: Place,
    /// The most samples a row.
    pub samples: Option<u32>,
    /// What is smaller, in words, beside every figure.
    #[serde(default)]
    pub scale: Vec<String>,
}

/// One value of an axis against another.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContrastDefinition {
    /// For a heading.
    pub title: String,
    /// The axis.
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
    /// What is made of the samples.
    #[serde(default)]
    pub statistic: Statistic,
    /// The source's own formula, shown beside the ratio.
    pub formula: Option<Formula>,
    /// Where else; nothing: everywhere.
    #[serde(default)]
    pub when: Place,
    /// The modes; none: all.
    #[serde(default)]
    pub modes: Vec<String>,
}

/// How a source writes a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Formula {
    /// (against - of) / against, in percent: what `of` saves.
    PercentSaved,
}

/// What no hardware exceeds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Columns of the source with one value or several.
    #[serde(default)]
    pub place: Place,
    /// Which figure: `elapsed` (then `bytes` says of how much) or `bandwidth`.
    pub metric: StudyMetric,
    /// What was transferred in that time, in bytes.
    pub bytes: Option<u64>,
    /// The most that is possible, in MB (10^6 bytes) per second.
    pub mb_per_s_max: f64,
    /// Whose limit it is: `SATA at 6 Gbit/s carries 600 MB/s`.
    pub why: String,
}

/// Figures that must add up in every row, here and in the source: `slat + clat = lat`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// The sum.
    pub whole: StudyMetric,
    /// What it is the sum of.
    pub parts: Vec<StudyMetric>,
    /// By how much the two may differ, as a share of the whole.
    pub tolerance: f64,
    /// Said of rows that lack a part.
    pub lacking: String,
}

/// What is asked of the rows.
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

/// What may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// The best of the rows whose writes reached stable storage.
    BestDurable,
    /// The best of all.
    Best,
    /// Which rows reached stable storage, by their axis.
    Durability,
    /// Rows whose calls failed, how many, how long that took, and what a loop that does not look would have said.
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

    /// What it names.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        let all: &[String] = match self {
            OneOrMany::One(one) => std::slice::from_ref(one),
            OneOrMany::Many(many) => many,
        };
        all.iter().map(String::as_str)
    }
}

/// Whether a row at `key` lies at `place`. An axis that the row does not have is not met.
pub fn is_at(place: &Place, key: &[(String, String)]) -> bool {
    place.iter().all(|(axis, values)| key.iter().any(|(name, value)| name == axis && values.names(value)))
}

impl Study {
    /// Reads a study. `place` names the files in errors.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn read(name: &str, place: &str, definition: &str, published_text: &str) -> Result<Self, DefinitionError> {
        let file = |file: &str| format!("{place}/{file}");
        for (what, text) in [("study.toml", definition), ("published.csv", published_text)] {
            if text.len() > TEXT_BYTES_MAX {
                let message = format!("the file is longer than {TEXT_BYTES_MAX} bytes");
                return Err(DefinitionError { place: file(what), message });
            }
        }
        let read: Definition = toml_edit::de::from_str(definition).map_err(|error| {
            let line = error.span().map(|span| 1 + definition.get(..span.start).map_or(0, |t| t.matches('\n').count()));
            let place = line.map_or_else(|| file("study.toml"), |line| format!("{}:{line}", file("study.toml")));
            DefinitionError { place, message: error.message().to_owned() }
        })?;
        let wrong = |message: String| DefinitionError { place: file("study.toml"), message };
        check(&read).map_err(wrong)?;
        let published = read_published(&read, published_text)
            .map_err(|message| DefinitionError { place: file("published.csv"), message })?;
        let hash = [definition, published_text]
            .iter()
            .flat_map(|text| text.bytes())
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        Ok(Self { name: name.to_owned(), definition: read, published, fingerprint: format!("{hash:016x}") })
    }

    /// The axes of a mode: its own, or the study's.
    pub fn axes<'a>(&'a self, mode: &'a Mode) -> &'a [Axis] {
        if mode.axis.is_empty() { &self.definition.axis } else { &mode.axis }
    }

    /// Samples a row of a mode has, if the user does not say.
    pub fn samples(&self, mode: &Mode, is_quick: bool) -> u32 {
        let most = self.definition.quick.samples.filter(|_| is_quick);
        most.map_or(mode.samples, |most| mode.samples.min(most))
    }

    /// True if an option of it speaks of the study's own server: `${server}`.
    pub(crate) fn uses_server(&self) -> bool {
        let definition = &self.definition;
        let modes = definition.mode.values();
        let axes = definition.axis.iter().chain(modes.clone().flat_map(|mode| &mode.axis));
        let rules =
            definition.rule.iter().chain(modes.clone().flat_map(|mode| &mode.rule)).chain(&definition.quick.rule);
        let sets = [&definition.set, &definition.quick.set].into_iter().chain(modes.map(|mode| &mode.set));
        let sets =
            sets.chain(axes.flat_map(|axis| &axis.value).map(|value| &value.set)).chain(rules.map(|rule| &rule.set));
        sets.flat_map(BTreeMap::values).any(|text| text.to_string().contains("${server}"))
    }

    /// The modes that are run when nobody names one, in their order.
    pub fn usual_modes(&self) -> Vec<&str> {
        let mut placed: Vec<(u32, &str)> =
            self.definition.mode.iter().filter_map(|(name, mode)| Some((mode.place?, name.as_str()))).collect();
        placed.sort_unstable();
        placed.into_iter().map(|(_, name)| name).collect()
    }
}

/// Everything that can be told without a machine.
#[expect(clippy::too_many_lines, reason = "until it is split")]
fn check(definition: &Definition) -> Result<(), String> {
    if definition.format != DEFINITION_FORMAT {
        return Err(format!("its format is {}, and {DEFINITION_FORMAT} is what can be read here", definition.format));
    }
    if definition.mode.is_empty() {
        return Err("it has no mode: write `[mode.NAME]`".to_owned());
    }
    if definition.mode.values().all(|mode| mode.place.is_none()) {
        return Err("no mode has a `place`, so none would be run".to_owned());
    }
    if definition.axis.is_empty() && definition.mode.values().any(|mode| mode.axis.is_empty()) {
        return Err("nothing is varied: write `[[axis]]`".to_owned());
    }
    check_options("[set]", &definition.set)?;
    check_options("[quick.set]", &definition.quick.set)?;
    check_axes("", &definition.axis)?;
    for (name, mode) in &definition.mode {
        check_options(&format!("[mode.{name}.set]"), &mode.set)?;
        check_axes(&format!("mode.{name}."), &mode.axis)?;
        if !(1..=10_000).contains(&mode.samples) {
            return Err(format!("mode `{name}`: {} samples; 1 to 10000 are possible", mode.samples));
        }
        let axes = if mode.axis.is_empty() { &definition.axis } else { &mode.axis };
        let rows = axes.iter().try_fold(1usize, |rows, axis| rows.checked_mul(axis.value.len()));
        if rows.is_none_or(|rows| rows > ROWS_MAX) {
            return Err(format!("mode `{name}` would have more than {ROWS_MAX} rows"));
        }
        check_place(&format!("[mode.{name}.only]"), &mode.only, axes)?;
        for place in &mode.exclude {
            check_place(&format!("[[mode.{name}.exclude]]"), place, axes)?;
        }
        for rule in &mode.rule {
            check_options(&format!("[[mode.{name}.rule]]"), &rule.set)?;
            check_place(&format!("[[mode.{name}.rule]]"), &rule.when, axes)?;
        }
    }
    // What is said of the study as a whole may speak of any mode's axes.
    let all: Vec<Axis> = definition.mode.values().flat_map(|m| &m.axis).chain(&definition.axis).cloned().collect();
    for rule in definition.rule.iter().chain(&definition.quick.rule) {
        check_options("[[rule]]", &rule.set)?;
        check_place("[[rule]]", &rule.when, &all)?;
    }
    for place in &definition.exclude {
        check_place("[[exclude]]", place, &all)?;
    }
    check_place("[quick.only]", &definition.quick.only, &all)?;
    if definition.quick.samples == Some(0) {
        return Err("[quick]: at least one sample is needed".to_owned());
    }
    let is_mode = |modes: &[String]| match modes.iter().find(|name| !definition.mode.contains_key(*name)) {
        Some(name) => Err(format!("there is no mode `{name}`")),
        None => Ok(()),
    };
    for contrast in &definition.contrast {
        is_mode(&contrast.modes)?;
        check_place(&format!("contrast `{}`", contrast.title), &contrast.when, &all)?;
        let values = [&contrast.of, &contrast.against].map(|value| (&contrast.axis, value));
        for (axis, value) in values.into_iter().chain(&contrast.against_at) {
            let place = Place::from([(axis.clone(), OneOrMany::One(value.clone()))]);
            check_place(&format!("contrast `{}`", contrast.title), &place, &all)?;
        }
        if contrast.against_at.contains_key(&contrast.axis) {
            let (title, axis) = (&contrast.title, &contrast.axis);
            return Err(format!("contrast `{title}`: `against_at` speaks of other axes than `{axis}`"));
        }
    }
    for answer in &definition.answer {
        is_mode(&answer.modes)?;
        for axis in [&answer.among, &answer.by] {
            if !all.iter().any(|known| known.key == *axis) {
                return Err(format!("[[answer]] speaks of the axis `{axis}`, which there is not"));
            }
        }
        if answer.among == answer.by {
            return Err("[[answer]]: `among` and `by` are the same axis".to_owned());
        }
    }
    for sum in &definition.sum {
        if sum.parts.len() < 2 || sum.parts.contains(&sum.whole) {
            return Err(format!("[[sum]] of `{}` needs two parts or more, and itself is none", sum.whole.name()));
        }
        if !(0.0..=1.0).contains(&sum.tolerance) {
            return Err("[[sum]]: `tolerance` is a share from 0 to 1".to_owned());
        }
    }
    if let Some(format) = &definition.row_format {
        crate::row_format::check(format, &all)?;
    }
    for limit in &definition.limit {
        match (limit.metric, limit.bytes) {
            (StudyMetric::Elapsed, Some(1..)) | (StudyMetric::Bandwidth, None) => {}
            (StudyMetric::Elapsed, _) => return Err("[[limit]] of `elapsed` needs `bytes`".to_owned()),
            (StudyMetric::Bandwidth, Some(_)) => return Err("[[limit]] of `bandwidth` needs no `bytes`".to_owned()),
            (other, _) => {
                return Err(format!("[[limit]] speaks of `elapsed` or `bandwidth`, not of `{}`", other.name()));
            }
        }
        if !(limit.mb_per_s_max.is_finite() && limit.mb_per_s_max > 0.0) {
            return Err("[[limit]]: `mb_per_s_max` is a number above 0".to_owned());
        }
    }
    Ok(())
}

fn check_axes(of: &str, axes: &[Axis]) -> Result<(), String> {
    let mut keys = BTreeSet::new();
    for axis in axes {
        let name = format!("{of}axis `{}`", axis.key);
        if axis.key.is_empty() || ["op", "setting"].contains(&axis.key.as_str()) || !keys.insert(&axis.key) {
            return Err(format!("{name}: an axis has a name of its own, other than `op` and `setting`"));
        }
        if axis.value.is_empty() {
            return Err(format!("{name} has no value"));
        }
        let mut names = BTreeSet::new();
        for value in &axis.value {
            if value.name.is_empty() || !names.insert(&value.name) {
                return Err(format!("{name}: the value `{}` is there twice, or has no name", value.name));
            }
            check_options(&format!("{name}, value `{}`", value.name), &value.set)?;
            if let Some(check) =
                value.accepts.iter().find(|name| !trueio_evidence::CHECKS.iter().any(|(known, _)| known == name))
            {
                return Err(format!(
                    "{name}, value `{}`: `{check}` is not a check (docs/evidence.md lists them)",
                    value.name
                ));
            }
            if value.var.contains_key("server") {
                return Err(format!("{name}: the variable `server` is the study's own server and cannot be set"));
            }
            for (need, wanted) in &value.needs {
                let Some((_, known)) = NEEDS.iter().find(|(name, _)| name == need) else {
                    let all: Vec<&str> = NEEDS.iter().map(|(name, _)| *name).collect();
                    return Err(format!("{name}: `{need}` is not something that can be needed: {}", all.join(", ")));
                };
                if !known.contains(&wanted.as_str()) {
                    return Err(format!("{name}: `{need}` can be {}, not `{wanted}`", known.join(" or ")));
                }
            }
        }
    }
    Ok(())
}

/// Options must exist; their values are read when the variables in them are known.
fn check_options(place: &str, options: &Options) -> Result<(), String> {
    for (name, value) in options {
        let Some(row) = trueio_job::table::row(name) else {
            let hint = trueio_job::table::suggestion(name).map_or_else(String::new, |hint| format!("; {hint}"));
            return Err(format!("{place}: `{name}` is not a job option{hint}"));
        };
        if row.name != name {
            return Err(format!("{place}: write `{}` for `{name}`", row.name));
        }
        if is_reserved(row) {
            return Err(format!("{place}: `{name}` is decided by who runs the study, not by the study"));
        }
        let text = value.to_string();
        // A file from a stranger makes nobody's machine ask another.
        if row.name == "source" && text.strip_prefix("${server}/").is_none_or(|rest| rest.contains("${server}")) {
            return Err(format!(
                "{place}: `source`: a study fetches from its own server only, `${{server}}/LENGTH`; the user may name \
                 another with `--set source=…`"
            ));
        }
        if !text.contains("${") {
            row.canonical(&text).map_err(|why| format!("{place}: `{name}`: {why}"))?;
        }
    }
    Ok(())
}

/// What a study may not say beside the names of files: what would make, keep or replace some without naming them, or
/// permit it.
pub(crate) const RESERVED: [&str; 6] =
    ["overwrite_signature", "stonewall", "unlink", "verify_dump", "verify_state_save", "verify_state_load"];

/// Whether an option is not the study's to say: which files are touched is for the user to say.
pub(crate) fn is_reserved(row: &trueio_job::OptionRow) -> bool {
    row.names_path() || RESERVED.contains(&row.name)
}

pub(crate) fn check_place(what: &str, place: &Place, axes: &[Axis]) -> Result<(), String> {
    for (key, values) in place {
        let known: Vec<&Axis> = axes.iter().filter(|axis| axis.key == *key).collect();
        if known.is_empty() {
            return Err(format!("{what} speaks of the axis `{key}`, which there is not"));
        }
        for value in values.values() {
            if !known.iter().any(|axis| axis.value.iter().any(|v| v.name == value)) {
                return Err(format!("{what} speaks of the value `{value}`, which the axis `{key}` does not have"));
            }
        }
    }
    Ok(())
}
