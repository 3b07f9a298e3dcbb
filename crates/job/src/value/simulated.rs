//! A simulated disk: `service=100us,channels=4,stall=1s+500ms`.

use super::{ValueKind, write_duration};
use std::fmt::Write as _;
use trueio_model::SimulatedDevice;
use trueio_model::units::parse_duration_ns;

pub(super) fn read_simulated(text: &str) -> Result<SimulatedDevice, String> {
    let mut model = SimulatedDevice {
        service_ns: 100_000,
        channels: 1,
        stalls: Vec::new(),
        slowdowns: Vec::new(),
        failing_ios: Vec::new(),
    };
    for part in text.split(',') {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| format!("`{part}` is not NAME=VALUE; {}", ValueKind::Simulated.takes()))?;
        match key.trim() {
            "service" => model.service_ns = parse_duration_ns(value)?,
            "channels" => {
                model.channels = value
                    .trim()
                    .parse::<u32>()
                    .ok()
                    .filter(|n| (1..=65_536).contains(n))
                    .ok_or_else(|| format!("`{value}` is not a number of channels from 1 to 65536"))?;
            }
            "stall" => {
                let (begin, length) = value
                    .split_once('+')
                    .ok_or_else(|| format!("the stall `{value}` is not BEGIN+LENGTH, such as `1s+500ms`"))?;
                model.stalls.push((parse_duration_ns(begin)?, parse_duration_ns(length)?));
            }
            "slow" => {
                let slowdown = value.split_once('*').and_then(|(begin, factor)| {
                    let factor =
                        factor.trim().parse::<f64>().ok().filter(|f| f.is_finite() && *f > 0.0 && *f <= 1e6)?;
                    Some((parse_duration_ns(begin).ok()?, factor))
                });
                let slowdown =
                    slowdown.ok_or_else(|| format!("the slowdown `{value}` is not BEGIN*FACTOR, such as `1s*4`"))?;
                if model.slowdowns.last().is_some_and(|last| last.0 >= slowdown.0) {
                    return Err(format!("the slowdown `{value}` does not come after the one before it"));
                }
                model.slowdowns.push(slowdown);
            }
            "fail" => {
                let index = value.trim().parse::<u64>().map_err(|_| format!("`{value}` is not an I/O's number"))?;
                model.failing_ios.push(index);
            }
            other => return Err(format!("`{other}` is not one of service, channels, stall, slow, fail")),
        }
    }
    Ok(model)
}

pub(super) fn write_simulated(model: &SimulatedDevice) -> String {
    let mut out = format!("service={},channels={}", write_duration(model.service_ns), model.channels);
    for (begin, length) in &model.stalls {
        // Writing to a String cannot fail.
        let _ = write!(out, ",stall={}+{}", write_duration(*begin), write_duration(*length));
    }
    for (begin, factor) in &model.slowdowns {
        let _ = write!(out, ",slow={}*{factor}", write_duration(*begin));
    }
    for index in &model.failing_ios {
        let _ = write!(out, ",fail={index}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{ValueKind, canonical};

    #[test]
    fn a_simulated_disk_is_written_as_it_is_read() {
        let text = "service=100us,channels=4,stall=1s+500ms,slow=2s*4,slow=3s*0.5,fail=7,fail=9";
        assert_eq!(canonical(ValueKind::Simulated, text), Ok(text.into()));
        for text in ["speed=fast", "slow=4", "slow=1s*0", "slow=1s*nan", "slow=2s*2,slow=1s*2"] {
            assert!(canonical(ValueKind::Simulated, text).is_err(), "{text}");
        }
    }
}
