//! The machine and its software, as far as they affect a measurement.

use crate::control_group::{cpu_quota, memory_limit_bytes};
use crate::system::System;
use trueio_model::{CpuFacts, Environment, Fact};

/// Reads the facts and the present state of the machine.
pub fn environment(system: &System) -> Environment {
    Environment {
        system: system_name(system),
        distribution: distribution(system),
        cpu: CpuFacts {
            model: cpu_info(system, "model name"),
            usable_count: usable_cpu_count(system),
            governor: system.text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            quota: cpu_quota(system),
        },
        memory_bytes: memory(system, "MemTotal:"),
        memory_available_bytes: memory(system, "MemAvailable:"),
        memory_limit_bytes: memory_limit_bytes(system),
        hypervisor: hypervisor(system),
        clock_source: system.text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        load_average: system.fact("/proc/loadavg", |text| {
            let mut values = text.split_whitespace().map_while(|word| word.parse().ok());
            Some([values.next()?, values.next()?, values.next()?])
        }),
        is_root: system.is_live() && rustix::process::geteuid().is_root(),
    }
}

/// Returns `Linux 6.18.44 x86_64`, without the architecture if the kernel does not provide it.
fn system_name(system: &System) -> String {
    let words = ["ostype", "osrelease", "arch"].map(|file| {
        let found = system.read(&format!("/proc/sys/kernel/{file}")).unwrap_or_default();
        // `arch` came with Linux 6.1.
        if found.is_empty() && file == "arch" && system.is_live() { std::env::consts::ARCH.to_owned() } else { found }
    });
    words.iter().filter(|word| !word.is_empty()).cloned().collect::<Vec<_>>().join(" ")
}

fn distribution(system: &System) -> Fact<String> {
    let path = "/etc/os-release";
    system.fact(path, |text| {
        let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
        Some(value.trim_matches('"').to_owned())
    })
}

/// Returns the first processor's value of a key. ARM has no `model name`.
fn cpu_info(system: &System, key: &str) -> Fact<String> {
    let path = "/proc/cpuinfo";
    let Ok(text) = system.read(path) else { return Fact::unknown(format!("{path} could not be read")) };
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    });
    match value {
        Some(value) if !value.is_empty() => Fact::known(value, path),
        _ => Fact::unknown(format!("{path} has no `{key}`")),
    }
}

/// Returns the number of processors: on the running machine those that this process may use (affinity, cpusets and
/// quotas considered), on a recorded one all.
fn usable_cpu_count(system: &System) -> u32 {
    if system.is_live() {
        return std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    }
    let text = system.read("/proc/cpuinfo").unwrap_or_default();
    text.lines().filter(|line| line.starts_with("processor")).count() as u32
}

fn memory(system: &System, key: &str) -> Fact<u64> {
    let path = "/proc/meminfo";
    let Ok(text) = system.read(path) else { return Fact::unknown(format!("{path} could not be read")) };
    let kibibytes: Option<u64> =
        text.lines().find_map(|line| line.strip_prefix(key)?.trim().strip_suffix("kB")?.trim().parse().ok());
    match kibibytes {
        Some(kib) => Fact::known(kib * 1024, path),
        None => Fact::unknown(format!("{path} has no `{key}`")),
    }
}

/// Returns the hypervisor. Xen has a directory of its own; others appear in the DMI strings, if there are any. The
/// processor's flag only shows that there is one.
fn hypervisor(system: &System) -> Fact<String> {
    let xen = system.text("/sys/hypervisor/type");
    if xen.value.is_some() {
        return xen;
    }
    let flags = cpu_info(system, "flags");
    let has_flag = flags.value.as_ref().map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    match has_flag {
        Some(false) => return Fact::known("none".to_owned(), "no flag `hypervisor` in /proc/cpuinfo"),
        None => return Fact::unknown("/proc/cpuinfo has no flags on this processor"),
        Some(true) => {}
    }
    let vendor = system.text("/sys/class/dmi/id/sys_vendor");
    let product = system.text("/sys/class/dmi/id/product_name");
    match (vendor.value, product.value) {
        (Some(vendor), Some(product)) => Fact::known(format!("{vendor} {product}"), "/sys/class/dmi/id"),
        (Some(vendor), None) => Fact::known(vendor, "/sys/class/dmi/id/sys_vendor"),
        _ => Fact::known("hypervisor unknown".to_owned(), "flag `hypervisor` in /proc/cpuinfo"),
    }
}
