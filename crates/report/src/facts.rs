//! Tables of facts with their sources, for the HTML page and `trueio device`.
//!
//! An unknown fact is listed with the reason.

use crate::layout::{Style, to_ascii};
use crate::text::{clean, padded, width_of, wrap};
use crate::words::{known, support_words};
use serde::Serialize;
use trueio_model::{DiskFacts, DiskLimits, DiskLink, Environment, Fact, TargetFacts, UsbFacts, units};

/// A table of facts with their sources.
#[derive(Debug, Default, Serialize)]
pub(crate) struct FactTable {
    /// Subject of the facts.
    pub(crate) heading: String,
    /// Rows of name, value, source.
    pub(crate) facts: Vec<[String; 3]>,
}

impl FactTable {
    fn new(heading: &str) -> Self {
        Self { heading: clean(heading).into_owned(), facts: Vec::new() }
    }

    fn plain(&mut self, name: &str, value: &str, source: &str) {
        self.facts.push([name, value, source].map(|text| clean(text).into_owned()));
    }

    fn fact<T>(&mut self, name: &str, fact: &Fact<T>, show: impl Fn(&T) -> String) {
        self.plain(name, &known(fact, show), &fact.source);
    }
}

fn bytes(b: &u64) -> String {
    units::format_bytes(*b)
}

fn small(b: &u32) -> String {
    units::format_bytes(u64::from(*b))
}

fn yes(b: &bool) -> String {
    if *b { "yes" } else { "no" }.to_owned()
}

/// Formats bytes; zero is shown as `none`.
fn bytes_or(none: &'static str) -> impl Fn(&u64) -> String {
    move |b| if *b == 0 { none.to_owned() } else { units::format_bytes(*b) }
}

/// Returns the tables of a target and its disks: one of the target, then one per disk.
pub(crate) fn target_tables(target: &TargetFacts) -> Vec<FactTable> {
    let mut table = FactTable::new(&format!("The target {}", target.path));
    table.fact("size", &target.size_bytes, bytes);
    if let Some(fs) = &target.filesystem {
        table.plain("filesystem", &format!("{} from {}", fs.kind, fs.source), "mount table");
        table.plain("mounted at", &fs.mount_point, "mount table");
        table.plain("options", &fs.options, "mount table");
        table.fact("filesystem size", &fs.size_bytes, bytes);
        table.fact("available", &fs.available_bytes, bytes);
        table.fact("allocation block", &fs.block_bytes, bytes);
        table.fact("UUID", &fs.uuid, Clone::clone);
    }
    for layer in &target.stack {
        table.plain(&format!("layer {}: {}", layer.depth, layer.kind), &layer.name, &layer.source);
        for named in &layer.facts {
            table.fact(&format!("  {}", named.name), &named.fact, Clone::clone);
        }
    }
    for limit in target.io_limits.value.iter().flatten() {
        table.plain("I/O limit", &format!("control group {} limits {}", limit.group, limit.describe()), &limit.source);
    }
    if target.io_limits.value.as_ref().is_none_or(Vec::is_empty) {
        table.fact("I/O limits", &target.io_limits, |_| "none by control groups".to_owned());
    }
    let direct = &target.direct;
    table.plain("direct I/O", &support_words(direct.support), &direct.reason);
    table.fact("buffer alignment", &direct.memory_alignment_bytes, small);
    table.fact("read alignment", &direct.read_alignment_bytes, small);
    table.fact("write alignment", &direct.write_alignment_bytes, small);
    table.fact("atomic writes", &direct.atomic_write, |atomic| match atomic.max_bytes {
        0 => "none".to_owned(),
        max => format!("{} to {}", small(&atomic.min_bytes), small(&max)),
    });
    std::iter::once(table).chain(target.disks.iter().map(disk_table)).collect()
}

fn disk_table(disk: &DiskFacts) -> FactTable {
    let mut table = FactTable::new(&format!("The disk {}", disk.name));
    let (major, minor) = disk.device_number;
    table.plain("device number", &format!("{major}:{minor}"), "the stack");
    table.fact("model", &disk.model, Clone::clone);
    table.fact("firmware", &disk.firmware, Clone::clone);
    table.fact("serial", &disk.serial, Clone::clone);
    table.fact("wwid", &disk.wwid, Clone::clone);
    table.fact("transport", &disk.transport, ToString::to_string);
    table.fact("size", &disk.size_bytes, bytes);
    table.fact("logical sector", &disk.logical_sector_bytes, small);
    table.fact("physical sector", &disk.physical_sector_bytes, small);
    table.fact("rotates", &disk.is_rotational, yes);
    table.fact("scheduler", &disk.scheduler, Clone::clone);
    table.fact("write cache", &disk.write_cache, ToString::to_string);
    table.fact("FUA writes", &disk.has_fua, yes);
    table.fact("queue size", &disk.request_count, |n| units::format_count(u64::from(*n)));
    table.fact("largest request", &disk.max_request_bytes, bytes);
    table.fact("read-ahead", &disk.read_ahead_bytes, bytes);
    table.fact("I/O counters", &disk.counts_io, yes);
    limits(&mut table, &disk.limits);
    if let Some(link) = &disk.link {
        let (DiskLink::Pcie { source, .. } | DiskLink::Sata { source, .. }) = link;
        let supported = link.supported_name().map_or_else(String::new, |name| format!("; the device supports {name}"));
        table.plain("link", &format!("{}{supported}", link.name()), source);
    }
    if let Some(usb) = &disk.usb {
        usb_facts(&mut table, usb);
    }
    table
}

fn usb_facts(table: &mut FactTable, usb: &UsbFacts) {
    let speed = |mbit: &f64| format!("{mbit} Mbit/s");
    table.plain("USB transport", &format!("{} at {}", usb.transport, usb.interface), &usb.driver.source);
    table.fact("USB id", &usb.id, Clone::clone);
    table.fact("USB maker", &usb.manufacturer, Clone::clone);
    table.fact("USB product", &usb.product, Clone::clone);
    table.fact("USB serial", &usb.serial, Clone::clone);
    table.fact("USB version", &usb.usb_version, Clone::clone);
    table.fact("USB link", &usb.link_mbit_per_s, speed);
    table.fact("USB port", &usb.port_mbit_per_s, speed);
    table.fact("USB 3 capable", &usb.can_superspeed, yes);
    table.fact("USB queue depth", &usb.queue_depth, u32::to_string);
    table.fact("USB supports", &usb.offers, |all| match (usb.offers_bot(), usb.offers_uas()) {
        (Some(true), Some(true)) => "BOT and UAS".to_owned(),
        (_, Some(true)) => "UAS".to_owned(),
        (Some(true), _) => "BOT".to_owned(),
        _ => format!("{} alternate settings, neither BOT nor UAS", all.len()),
    });
}

fn limits(table: &mut FactTable, limits: &DiskLimits) {
    let count = |n: &u32| units::format_count(u64::from(*n));
    table.fact("hardware queues", &limits.hardware_queue_count, count);
    table.fact("requests in each", &limits.tag_count, count);
    table.fact("queue depth of SCSI", &limits.queue_depth, count);
    table.fact("largest hardware request", &limits.max_hw_request_bytes, bytes);
    table.fact("segments per request", &limits.max_segment_count, count);
    table.fact("largest segment", &limits.max_segment_bytes, bytes);
    table.fact("buffer address", &limits.dma_alignment_bytes, |b| format!("a multiple of {}", units::format_bytes(*b)));
    table.fact("minimum I/O size", &limits.minimum_io_bytes, bytes);
    table.fact("optimal I/O size", &limits.optimal_io_bytes, bytes_or("not declared"));
    table.fact("alignment offset", &limits.alignment_offset_bytes, |offset| match offset {
        0 => "none: aligned".to_owned(),
        -1 => "cannot be aligned".to_owned(),
        offset => format!("{offset} B after a physical sector"),
    });
    table.fact("stripe or zone", &limits.chunk_bytes, bytes_or("none"));
    table.fact("zones", &limits.zoned, ToString::to_string);
    table.fact("trim unit", &limits.discard_granularity_bytes, bytes_or("cannot be trimmed"));
    table.fact("largest trim", &limits.discard_max_bytes, bytes_or("cannot be trimmed"));
    table.fact("write zeroes", &limits.write_zeroes_max_bytes, bytes_or("no"));
    table.fact("atomic writes", &limits.atomic_write_max_bytes, bytes_or("none"));
    table.fact("can be polled", &limits.can_poll, yes);
    table.fact("read-only", &limits.is_read_only, yes);
    table.fact("removable", &limits.is_removable, yes);
}

/// Returns the table of the machine.
pub(crate) fn machine_table(machine: &Environment) -> FactTable {
    let mut table = FactTable::new("The machine");
    table.plain("system", &machine.system, "uname(2)");
    table.fact("distribution", &machine.distribution, Clone::clone);
    table.fact("processor", &machine.cpu.model, Clone::clone);
    table.plain("usable processors", &machine.cpu.usable_count.to_string(), "the process's affinity");
    if let Some(quota) = machine.cpu.quota {
        table.plain("CPU quota", &format!("{quota:.2} processors"), "the process's control groups");
    }
    table.fact("frequency governor", &machine.cpu.governor, Clone::clone);
    table.fact("memory", &machine.memory_bytes, bytes);
    table.fact("memory available", &machine.memory_available_bytes, bytes);
    if let Some(limit) = machine.memory_limit_bytes {
        table.plain("memory limit", &bytes(&limit), "the process's control groups");
    }
    table.fact("hypervisor", &machine.hypervisor, Clone::clone);
    table.fact("clock source", &machine.clock_source, Clone::clone);
    table.fact("load average", &machine.load_average, |l| {
        let [one, five, fifteen] = l;
        format!("{one:.2}, {five:.2}, {fifteen:.2} (1, 5, 15 minutes)")
    });
    table.plain("root", if machine.is_root { "yes" } else { "no" }, "geteuid(2)");
    table
}

/// Formats every fact of a target and its disks with its source, as text: the part of `trueio device` below
/// [`crate::target`].
pub fn facts(target: &TargetFacts, style: &Style) -> String {
    let (width, mut out) = (style.width.max(60), String::new());
    let tables = target_tables(target);
    let rows = || tables.iter().flat_map(|table| &table.facts);
    let column = |index: usize, least: usize, most: usize| {
        rows().map(|row| width_of(&row[index])).filter(|width| *width <= most).max().unwrap_or(0).max(least)
    };
    let (name_width, value_width) = (column(0, 14, 24), column(1, 10, 30));
    for table in &tables {
        out.push('\n');
        out.push_str(&table.heading);
        out.push('\n');
        for [name, value, source] in &table.facts {
            let name = padded(name, name_width);
            let mut first = format!("  {name}  {}  ", padded(value, value_width));
            let hang = 2 + name_width + 2 + value_width + 2;
            if width_of(value) > value_width {
                // A long value has separate lines, and its source is below it.
                wrap(&mut out, &format!("  {name}  "), name_width + 4, value, width);
                first = " ".repeat(hang);
            }
            wrap(&mut out, &first, hang, source, width);
        }
    }
    if style.unicode { out } else { to_ascii(&out) }
}
