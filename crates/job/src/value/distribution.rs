//! Parses distributions of offsets and files: `zipf:1.2`, `zoned:60/10:40/90`.

use super::{ValueKind, read_bytes, write_bytes};
use trueio_model::{Distribution, FileSelection};

pub(super) fn read_file_selection(text: &str) -> Result<FileSelection, String> {
    let text = text.trim();
    match text.split(':').next().unwrap_or(text) {
        "gauss" => read_file_selection(&text.replacen("gauss", "normal", 1)),
        "zipf" | "pareto" | "normal" => {
            read_distribution(text).map(|distribution| FileSelection::Drawn { distribution })
        }
        _ if text == "roundrobin" => Ok(FileSelection::RoundRobin),
        _ if text == "sequential" => Ok(FileSelection::Sequential),
        _ if text == "random" => Ok(FileSelection::Random),
        _ => Err(format!("`{text}` is not {}", ValueKind::FileSelection.takes())),
    }
}

pub(super) fn read_distribution(text: &str) -> Result<Distribution, String> {
    let (name, parameter) = match text.trim().split_once(':') {
        Some((name, parameter)) => (name, Some(parameter)),
        None => (text.trim(), None),
    };
    let finite = |text: &str| {
        let number = text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
        number.ok_or_else(|| format!("`{text}` is not a number"))
    };
    // After the first number, the centre.
    let (first, center) = match parameter.filter(|_| matches!(name, "zipf" | "pareto" | "normal")) {
        Some(both) => both.split_once(':').map_or((Some(both), None), |(first, center)| (Some(first), Some(center))),
        None => (None, None),
    };
    let center = || match center.map(finite).transpose()? {
        // fio's word for its default.
        Some(-1.0) | None => Ok(None),
        Some(center) if (0.0..=1.0).contains(&center) => Ok(Some(center)),
        Some(center) => Err(format!("the centre is from 0 to 1, a part of the region, not {center}")),
    };
    let number = |default: Option<f64>| -> Result<f64, String> {
        match (first, default) {
            (None, Some(default)) => Ok(default),
            (None, None) => Err(format!("`{name}` needs a number, such as `{name}:20`")),
            (Some(first), _) => finite(first),
        }
    };
    match name {
        "random" | "uniform" if parameter.is_none() => Ok(Distribution::Uniform),
        "random" | "uniform" => Err("`random` takes no number".into()),
        "zipf" => match number(Some(1.1))? {
            theta if theta >= 0.0 => Ok(Distribution::Zipf { theta, center: center()? }),
            theta => Err(format!("zipf's exponent is not below 0: {theta}")),
        },
        "pareto" => match number(Some(0.2))? {
            h if h > 0.0 && h < 1.0 => Ok(Distribution::Pareto { h, center: center()? }),
            h => Err(format!("pareto's parameter is between 0 and 1, not {h}")),
        },
        "normal" => match number(None)? {
            deviation_percent if deviation_percent > 0.0 && deviation_percent <= 100.0 => {
                Ok(Distribution::Normal { deviation_percent, center: center()? })
            }
            deviation => Err(format!("normal's deviation is above 0 and at most 100 percent, not {deviation}")),
        },
        "zoned" => Ok(Distribution::Zoned { zones: read_zones(parameter.unwrap_or(""))? }),
        "zoned_abs" => Ok(Distribution::ZonedBytes { zones: read_zones_of_bytes(parameter.unwrap_or(""))? }),
        "sequence" | "advancing_sequence" => {
            let blocks = read_sequence(parameter.unwrap_or(""))?;
            Ok(Distribution::Sequence { blocks, is_advancing: name == "advancing_sequence" })
        }
        "precondition" => read_precondition(parameter.unwrap_or("")),
        _ => Err(format!("`{text}` is not {}", ValueKind::Distribution.takes())),
    }
}

/// Parses the over-provisioning, the number of parts, and the size of the disk's cache.
fn read_precondition(text: &str) -> Result<Distribution, String> {
    let parts: Vec<&str> = text.split(':').map(str::trim).collect();
    let (over_provisioning, regions, cache) = match parts[..] {
        [over_provisioning] => (over_provisioning, "100", "0"),
        [over_provisioning, regions] => (over_provisioning, regions, "0"),
        [over_provisioning, regions, cache] => (over_provisioning, regions, cache),
        _ => return Err("`precondition` takes OVER_PROVISIONING[:PARTS[:CACHE]]".to_owned()),
    };
    let part = over_provisioning.parse::<f64>().ok().filter(|part| (0.001..1.0).contains(part));
    Ok(Distribution::Precondition {
        over_provisioning: part
            .ok_or_else(|| format!("the over-provisioning is from 0.001 to 1, a part, not `{over_provisioning}`"))?,
        region_count: (regions.parse().ok().filter(|count| (1..=1_000_000).contains(count)))
            .ok_or_else(|| format!("the number of parts is from 1 to 1,000,000, not `{regions}`"))?,
        cache_bytes: read_bytes(cache)?,
    })
}

/// Most blocks of a sequence, as in fio.
const SEQUENCE_MAX: usize = 64;

/// Parses the numbers of blocks of a sequence.
fn read_sequence(text: &str) -> Result<Vec<u64>, String> {
    let number = |text: &str| {
        text.trim().parse::<u32>().map(u64::from).map_err(|_| format!("`{text}` is not the number of a block"))
    };
    let blocks = text.split(',').map(number).collect::<Result<Vec<_>, String>>()?;
    match blocks.len() {
        count if count > SEQUENCE_MAX => Err(format!("{count} blocks are more than {SEQUENCE_MAX}")),
        _ => Ok(blocks),
    }
}

/// Parses a percentage of a zone; `None`: it is blank, and gets a share of the rest. fio's examples end with
/// `20/`.
fn read_share(text: &str) -> Result<Option<f64>, String> {
    let share = text.trim();
    if share.is_empty() {
        return Ok(None);
    }
    let percent = share.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.map(Some).ok_or_else(|| format!("`{text}` is not a percentage from 0 to 100"))
}

/// Splits each zone into its two sides.
fn split_zones<'a>(text: &'a str, size: &str, example: &str) -> Result<Vec<(&'a str, &'a str)>, String> {
    if text.contains(',') {
        return Err("zones apply to all operations: reads and writes cannot have separate ones".into());
    }
    let split = |zone: &'a str| {
        zone.split_once('/')
            .ok_or_else(|| format!("the zone `{zone}` is not percent of I/O / {size}, such as `{example}`"))
    };
    let zones = text.split(':').map(split).collect::<Result<Vec<_>, String>>()?;
    if zones.len() > 256 {
        return Err(format!("{} zones are more than 256", zones.len()));
    }
    Ok(zones)
}

fn read_zones(text: &str) -> Result<Vec<(f64, f64)>, String> {
    let (mut ios, mut sizes) = (Vec::new(), Vec::new());
    for (io, size) in split_zones(text, "percent of size", "60/10")? {
        ios.push(read_share(io)?);
        sizes.push(read_share(size)?);
        if sizes.last() == Some(&Some(0.0)) {
            return Err(format!("the zone `{io}/{size}` has no size"));
        }
    }
    Ok(with_blanks("I/O", &ios)?.into_iter().zip(with_blanks("size", &sizes)?).collect())
}

fn read_zones_of_bytes(text: &str) -> Result<Vec<(f64, u64)>, String> {
    let (mut ios, mut sizes) = (Vec::new(), Vec::new());
    for (io, size) in split_zones(text, "bytes", "60/10g")? {
        ios.push(read_share(io)?);
        sizes.push(match size.trim() {
            "" => 0,
            size => read_bytes(size)?,
        });
        if sizes.last() == Some(&0) {
            return Err(format!("the zone `{io}/{size}` has no size"));
        }
    }
    Ok(with_blanks("I/O", &ios)?.into_iter().zip(sizes).collect())
}

/// Returns percentages of zones that sum to 100; blank ones share the rest equally.
fn with_blanks(what: &str, given: &[Option<f64>]) -> Result<Vec<f64>, String> {
    let sum: f64 = given.iter().flatten().sum();
    let blank_count = given.iter().filter(|share| share.is_none()).count();
    let left = 100.0 - sum;
    if blank_count > 0 && left < 1e-6 {
        return Err(format!("the zones' percentages of {what} sum to {sum}: nothing is left for the blank ones"));
    }
    if blank_count == 0 && left.abs() > 1e-6 {
        return Err(format!("the zones' percentages of {what} sum to {sum}, not to 100"));
    }
    Ok(given.iter().map(|share| share.unwrap_or(left / blank_count as f64)).collect())
}

pub(super) fn write_distribution(distribution: &Distribution) -> String {
    let centred = |center: &Option<f64>| center.map_or_else(String::new, |center| format!(":{center}"));
    match distribution {
        Distribution::Uniform => "random".into(),
        Distribution::Zipf { theta, center } => format!("zipf:{theta}{}", centred(center)),
        Distribution::Pareto { h, center } => format!("pareto:{h}{}", centred(center)),
        Distribution::Normal { deviation_percent, center } => format!("normal:{deviation_percent}{}", centred(center)),
        Distribution::Zoned { zones } => {
            let zones: Vec<String> = zones.iter().map(|(io, size)| format!("{io}/{size}")).collect();
            format!("zoned:{}", zones.join(":"))
        }
        Distribution::ZonedBytes { zones } => {
            let zones: Vec<String> = zones.iter().map(|(io, size)| format!("{io}/{}", write_bytes(*size))).collect();
            format!("zoned_abs:{}", zones.join(":"))
        }
        Distribution::Sequence { blocks, is_advancing } => {
            let blocks: Vec<String> = blocks.iter().map(u64::to_string).collect();
            format!("{}sequence:{}", if *is_advancing { "advancing_" } else { "" }, blocks.join(","))
        }
        Distribution::Precondition { over_provisioning, region_count, cache_bytes } => {
            format!("precondition:{over_provisioning}:{region_count}:{}", write_bytes(*cache_bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ValueKind, canonical};

    #[test]
    fn distributions_report_the_number_out_of_bounds() {
        assert_eq!(canonical(ValueKind::Distribution, "zipf"), Ok("zipf:1.1".into()));
        assert_eq!(canonical(ValueKind::Distribution, "zoned:60/10:40/90"), Ok("zoned:60/10:40/90".into()));
        for text in ["zipf:1.1:0.3", "pareto:0.2:0.5", "normal:10:0", "zipf:1.1:1", "zipf:0", "zipf:200"] {
            assert_eq!(canonical(ValueKind::Distribution, text), Ok(text.into()));
        }
        assert_eq!(canonical(ValueKind::Distribution, "zipf:1.2:-1"), Ok("zipf:1.2".into()));
        for text in ["zipf:1.1:1.5", "zipf:1.1:", "pareto:0.2:x", "normal:10:-0.5", "zipf:1.1:0.3:1", "random:0.3"] {
            assert!(canonical(ValueKind::Distribution, text).is_err(), "{text}");
        }
        // As in the example of fio that ends with a blank.
        assert_eq!(canonical(ValueKind::Distribution, "zoned:50/5:30/15:20/"), Ok("zoned:50/5:30/15:20/80".into()));
        assert_eq!(canonical(ValueKind::Distribution, "zoned:/5:30/:20/75"), Ok("zoned:50/5:30/20:20/75".into()));
        // Nothing is left for the blank one.
        for text in ["zoned:60/10:40/90:0/", "zoned:100/:/20", "zoned:60/:40/100"] {
            assert!(canonical(ValueKind::Distribution, text).is_err(), "{text}");
        }
        for text in ["zipf:-1", "zipf:x", "zipf:inf", "pareto:1", "normal", "normal:0", "zoned:60/10", "zoned", "x"] {
            assert!(canonical(ValueKind::Distribution, text).is_err(), "{text}");
        }
    }

    #[test]
    fn preconditioning_has_an_over_provisioning_and_parts() {
        let read = |text: &str| canonical(ValueKind::Distribution, text);
        assert_eq!(read("precondition:0.15"), Ok("precondition:0.15:100:0".into()));
        assert_eq!(read("precondition:0.28:50:32k"), Ok("precondition:0.28:50:32k".into()));
        for text in ["precondition", "precondition:0", "precondition:1", "precondition:0.1:0", "precondition:0.1:9:x"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_sequence_is_a_list_of_blocks() {
        let read = |text: &str| canonical(ValueKind::Distribution, text);
        assert_eq!(read("sequence: 2,0,1"), Ok("sequence:2,0,1".into()));
        assert_eq!(read("advancing_sequence:1,0"), Ok("advancing_sequence:1,0".into()));
        for text in ["sequence", "sequence:", "sequence:-1", "sequence:1,,2", "sequence:x"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read(&format!("sequence:{}0", "1,".repeat(64))).unwrap_err().contains("more than 64"));
    }

    #[test]
    fn zones_of_bytes_have_shares_and_sizes() {
        let read = |text: &str| canonical(ValueKind::Distribution, text);
        assert_eq!(read("zoned_abs:50/100k:30/200k:20/2048k"), Ok("zoned_abs:50/100k:30/200k:20/2m".into()));
        assert_eq!(read("zoned_abs:100/4096"), Ok("zoned_abs:100/4k".into()));
        assert_eq!(read("zoned_abs:50/1g:/1g:/2g"), Ok("zoned_abs:50/1g:25/1g:25/2g".into()));
        for (text, reason) in [
            ("zoned_abs:50/1g:40/2g", "sum to 90"),
            ("zoned_abs:60/1g:60/2g", "sum to 120"),
            ("zoned_abs:100/1g:/1g", "nothing is left"),
            ("zoned_abs:50/1g:50/", "has no size"),
            ("zoned_abs:50/1g:50", "is not percent of I/O / bytes"),
            ("zoned_abs:50/1g:50/0", "has no size"),
            ("zoned_abs", "is not percent of I/O / bytes"),
            ("zoned_abs:50/1g:50/2q", "`q` is not a unit"),
            ("zoned_abs:50/1g:50/20%", "`%` is not a unit"),
            ("zoned_abs:50/1g:50/1g,100/2g", "zones apply to all operations"),
            ("zoned:50/50:50/50,90/10:10/90", "zones apply to all operations"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn files_are_chosen_by_a_word_or_drawn_by_a_distribution() {
        let read = |text: &str| canonical(ValueKind::FileSelection, text);
        for text in
            ["roundrobin", "sequential", "random", "zipf:1.2", "zipf:0", "pareto:0.2:0.5", "normal:20", "normal:5:0.1"]
        {
            assert_eq!(read(text), Ok(text.into()));
        }
        assert_eq!(read("zipf"), Ok("zipf:1.1".into()));
        assert_eq!(read("pareto"), Ok("pareto:0.2".into()));
        assert_eq!(read("gauss:20"), Ok("normal:20".into()));
        for text in
            ["", "round", "random:2", "zipf:-1", "zipf:x", "pareto:1", "normal", "gauss:-1", "zoned:50/50:50/50"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
