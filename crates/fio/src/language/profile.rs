//! fio's built-in workloads (`--profile`): jobs that the rest of a command line could have named.
//!
//! Difference from fio: the options of `tiobench` apply. fio 3.42 reads them into one place, and makes its jobs from another.
//!
//! Source: fio 3.42's HOWTO, `--profile`, and the job options in its JSON.

use super::value::{KbBase, read_number};
use super::{FioError, Surroundings};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The names under which the option is given; fio, too, accepts the beginning of a name.
const NAMES: &[&str] = &["p", "prof", "profi", "profil", "profile"];
/// Options of `tiobench`.
const TIOBENCH: &[&str] = &["size", "block", "numruns", "dir", "threads"];
/// The files of `tiobench`.
const FILES: &str = ".fio.tio.1:.fio.tio.2:.fio.tio.3:.fio.tio.4";

/// Returns the command line with the jobs of its profile instead of `--profile` and the profile's options.
///
/// # Errors
/// A profile that is not here, or a wrong value of one of its options.
pub(super) fn expanded<'a>(arguments: &'a [String], around: &dyn Surroundings) -> Result<Cow<'a, [String]>, FioError> {
    let split = |word: &'a String| -> Option<(&'a str, Option<&'a str>)> {
        let name = word.strip_prefix("--").or(word.strip_prefix('-'))?;
        Some(name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value))))
    };
    let is_profile = |word: &'a String| split(word).is_some_and(|(name, _)| NAMES.contains(&name));
    if !arguments.iter().any(is_profile) {
        return Ok(Cow::Borrowed(arguments));
    }
    let (mut rest, mut profile, mut own) = (Vec::new(), None, BTreeMap::new());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some((name, value)) = split(word) else {
            rest.push(word.clone());
            continue;
        };
        let is_own = profile.is_some() && TIOBENCH.contains(&name);
        if !is_own && !NAMES.contains(&name) {
            rest.push(word.clone());
            continue;
        }
        let missing = || FioError::of(format!("`--{name}` needs a value"), None);
        let value = value.or_else(|| words.next().map(String::as_str)).ok_or_else(missing)?;
        match is_own {
            true => drop(own.insert(name, value)),
            false => profile = Some(value),
        }
    }
    match profile.unwrap_or_default() {
        "tiobench" => rest.extend(tiobench(&own, around)?),
        "act" => {
            let message = "the profile `act` is not here: it judges each hour of a day by limits of latency, and no hours \
                           are kept apart";
            let hint = "write its jobs, with `max_latency` or gates of `trueio run`, or use Aerospike's own ACT";
            return Err(FioError::of(message, Some(hint.to_owned())));
        }
        other => {
            return Err(FioError::of(
                format!("the profile `{other}` is not known"),
                Some("fio has tiobench and act".into()),
            ));
        }
    }
    Ok(Cow::Owned(rest))
}

/// Returns the jobs of `tiobench`: two that write and two that read, in order and at random.
fn tiobench(own: &BTreeMap<&str, &str>, around: &dyn Surroundings) -> Result<Vec<String>, FioError> {
    let number = |name: &str, default: u64| match own.get(name) {
        None => Ok(default),
        Some(text) => read_number(text, KbBase::Binary)
            .map_err(|bad| FioError::of(format!("`--{name}={text}`: {}", bad.message), None)),
    };
    let size = match number("size", 0)? {
        // fio's default: 4 KiB for each MiB of memory.
        0 => 4 * 1024 * (around.memory_bytes() >> 20),
        mebibytes => mebibytes.saturating_mul(1 << 20),
    };
    let directory = own.get("dir").copied().unwrap_or("./");
    let (block, loops, clones) = (number("block", 4096)?, number("numruns", 1)?, number("threads", 1)?);
    let text = format!(
        "--name=global --buffered=0 --size={size} --bs={block} --loops={loops} --numjobs={clones} --runtime=600 \
         --group_reporting --thread --overwrite=1 --filename={FILES} --ioengine=sync \
         --name=seqwrite --rw=write --end_fsync=1 \
         --name=randwrite --stonewall --rw=randwrite --end_fsync=1 \
         --name=seqread --stonewall --rw=read \
         --name=randread --stonewall --rw=randread"
    );
    let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    // A directory may contain blanks.
    words.insert(1, format!("--directory={directory}"));
    Ok(words)
}
