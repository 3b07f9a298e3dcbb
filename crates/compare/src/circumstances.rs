//! What differs between two records apart from their figures.
//!
//! Some differences may be what the comparison is about (another kernel, another engine, another depth): they are
//! named. Others make the figures incomparable (another disk, another size or kind of I/O): they forbid the comparison,
//! unless the user accepts them by name.
//!
//! Limits: only facts of the record are compared. A fact that is unknown on one side is no difference.

use trueio_model::{Circumstance, Fact, JobPlan, RunRecord, TargetFacts};

/// Options of which another value is another workload.
const WORKLOAD: &[&str] = &[
    "rw",
    "bs",
    "bsrange",
    "bssplit",
    "rwmixread",
    "size",
    "filesize",
    "offset",
    "random_distribution",
    "rate",
    "rate_iops",
];
/// Options that do not affect the workload.
const IRRELEVANT: &[&str] = &[
    "filename",
    "directory",
    "randseed",
    "runtime",
    "time_based",
    "ramp_time",
    "stonewall",
    "overwrite_existing",
    "unlink",
    "randrepeat",
    "startdelay",
    "loops",
    "io_size",
    "number_ios",
];

/// The differences of machine, target and program.
pub fn of_records(side: usize, first: &RunRecord, this: &RunRecord) -> Vec<Circumstance> {
    let mut found = Vec::new();
    let mut note = |name: &str, first: String, this: String, forbids: bool| {
        if first != this && !first.is_empty() && !this.is_empty() {
            found.push(Circumstance { side, name: name.to_owned(), first, this, forbids });
        }
    };
    let joined = |record: &RunRecord, of: &dyn Fn(&TargetFacts) -> Vec<String>| {
        let mut all: Vec<String> = record.targets.iter().flat_map(of).collect();
        all.sort();
        all.dedup();
        all.join(", ")
    };
    let fact = |fact: &Fact<String>| fact.value.clone();
    let disks = |target: &TargetFacts| {
        let name = |d: &trueio_model::DiskFacts| {
            let parts = [fact(&d.model), fact(&d.serial)].into_iter().flatten().collect::<Vec<_>>();
            // The kernel's name is only a name; where there is nothing better it must do.
            if parts.is_empty() { d.name.clone() } else { parts.join(" ") }
        };
        target.disks.iter().map(name).collect::<Vec<_>>()
    };
    note("disk", joined(first, &disks), joined(this, &disks), true);
    let transports = |t: &TargetFacts| {
        t.disks.iter().filter_map(|d| Some(d.transport.value.as_ref()?.to_string())).collect::<Vec<_>>()
    };
    note("transport", joined(first, &transports), joined(this, &transports), true);
    let filesystems = |t: &TargetFacts| t.filesystem.iter().map(|f| f.kind.to_string()).collect::<Vec<_>>();
    note("filesystem", joined(first, &filesystems), joined(this, &filesystems), false);
    let caches = |t: &TargetFacts| {
        t.disks.iter().filter_map(|d| Some(d.write_cache.value.as_ref()?.to_string())).collect::<Vec<_>>()
    };
    note("write cache", joined(first, &caches), joined(this, &caches), false);
    let schedulers = |t: &TargetFacts| t.disks.iter().filter_map(|d| fact(&d.scheduler)).collect::<Vec<_>>();
    note("scheduler", joined(first, &schedulers), joined(this, &schedulers), false);
    note("kernel", first.environment.system.clone(), this.environment.system.clone(), false);
    let cpu = |r: &RunRecord| fact(&r.environment.cpu.model).unwrap_or_default();
    note("processor", cpu(first), cpu(this), false);
    let cpus = |r: &RunRecord| r.environment.cpu.usable_count.to_string();
    note("processors", cpus(first), cpus(this), false);
    let memory =
        |r: &RunRecord| r.environment.memory_bytes.value.map_or_else(String::new, trueio_model::units::format_bytes);
    note("memory", memory(first), memory(this), false);
    let ranks = |r: &RunRecord| r.cluster.as_ref().map_or_else(|| "1".to_owned(), |c| c.rank_count.to_string());
    note("ranks", ranks(first), ranks(this), false);
    let hosts = |r: &RunRecord| {
        let mut hosts: Vec<&str> = r.cluster.iter().flat_map(|c| &c.ranks).map(|rank| rank.host.as_str()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.join(", ")
    };
    note("hosts", hosts(first), hosts(this), false);
    let tool = |r: &RunRecord| format!("{} {} ({} build)", r.tool.name, r.tool.version, r.tool.build);
    note("program", tool(first), tool(this), false);
    found
}

/// The differences of two jobs of one name: every option that has another value and a meaning for the figures.
pub fn of_jobs(side: usize, first: &JobPlan, this: &JobPlan) -> Vec<Circumstance> {
    let value = |plan: &JobPlan, name: &str| {
        plan.values.iter().find(|v| v.name == name).map(|v| v.value.clone()).unwrap_or_default()
    };
    let mut names: Vec<&str> = first.values.iter().chain(&this.values).map(|v| &*v.name).collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .filter(|name| !IRRELEVANT.contains(name))
        .filter_map(|name| {
            let (a, b) = (value(first, name), value(this, name));
            (a != b).then(|| Circumstance {
                side,
                name: name.to_owned(),
                first: if a.is_empty() { "not set".to_owned() } else { a.into_owned() },
                this: if b.is_empty() { "not set".to_owned() } else { b.into_owned() },
                forbids: WORKLOAD.contains(&name),
            })
        })
        .collect()
}

/// The same for fio's options, by its own names.
pub fn of_options(side: usize, first: &[(String, String)], this: &[(String, String)]) -> Vec<Circumstance> {
    let value = |of: &[(String, String)], name: &str| of.iter().find(|o| o.0 == name).map(|o| o.1.clone());
    let mut names: Vec<&str> = first.iter().chain(this).map(|o| o.0.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .filter(|name| !IRRELEVANT.contains(name) && !matches!(*name, "name" | "description" | "group_reporting"))
        .filter_map(|name| {
            let (a, b) = (value(first, name), value(this, name));
            (a != b).then(|| Circumstance {
                side,
                name: name.to_owned(),
                first: a.unwrap_or_else(|| "not set".to_owned()),
                this: b.unwrap_or_else(|| "not set".to_owned()),
                forbids: WORKLOAD.contains(&name) || matches!(name, "readwrite" | "blocksize"),
            })
        })
        .collect()
}
