//! Detects memory in the place of a disk.
//!
//! - **Reads** the stack under the target.
//! - **Sees** tmpfs, ramfs, zram, loop devices over tmpfs, and loop devices without direct I/O, which use the page cache of their file.
//! - **Misses** a disk that the hypervisor keeps in its own memory.
//! - **Thresholds**: any is suspect, unless the target is the memory device itself, by its own name.
//! - **By hand**: `losetup --find --show /dev/shm/image`, a filesystem on it, and a "disk" as fast as memory.

use crate::facts::{PhaseFacts, finding, not_applicable, not_seen};
use trueio_model::{Check, CheckOutcome, FilesystemKind, LayerKind, TargetFacts, TargetKind, Transport};

pub(crate) const NAME: &str = "memory_backed";

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    if !facts.jobs.iter().any(|job| job.engine.touches_files()) {
        return not_applicable(NAME, facts.why_no_calls());
    }
    let targets = facts.own_targets();
    if targets.iter().all(|target| target.stack.is_empty()) {
        return not_seen(NAME, "sysfs", "The devices under the target are unknown.");
    }
    for target in &targets {
        if let Some((outcome, sentence)) = memory_of(target) {
            let check = finding(NAME, outcome, "mountinfo, sysfs", "a disk", bottom(target), sentence);
            return if outcome == CheckOutcome::Suspect { check.with_brief("in memory") } else { check };
        }
    }
    let sentence = "No memory-backed device was found between the files and the disks.";
    let found: Vec<String> = targets.iter().map(|target| bottom(target)).collect();
    finding(NAME, CheckOutcome::Passed, "mountinfo, sysfs", "a disk", found.join(", "), sentence)
}

/// Describes the last layer.
fn bottom(target: &TargetFacts) -> String {
    target.stack.last().map_or_else(String::new, |layer| format!("{} {}", layer.kind, layer.name))
}

fn memory_of(target: &TargetFacts) -> Option<(CheckOutcome, String)> {
    for layer in &target.stack {
        let kind = FilesystemKind::from(layer.name.split(' ').next().unwrap_or_default());
        if layer.kind == LayerKind::Filesystem && kind.is_memory() {
            let sentence = format!("`{}` is in memory ({}): no disk was measured.", target.path, layer.name);
            return Some((CheckOutcome::Suspect, sentence));
        }
    }
    let memory_disk =
        target.disks.iter().find(|disk| disk.transport.value.as_ref().is_some_and(Transport::is_volatile_memory));
    if let Some(disk) = memory_disk {
        let sentence = format!("{} is memory: no disk was measured.", disk.name);
        let is_named = target.kind == TargetKind::BlockDevice && target.stack.len() == 1;
        return Some((if is_named { CheckOutcome::Passed } else { CheckOutcome::Suspect }, sentence));
    }
    let cached_loop =
        target.stack.iter().find(|layer| layer.kind == LayerKind::Loop && layer.name.ends_with("(buffered)"))?;
    let name = cached_loop.name.split(' ').next().unwrap_or_default();
    let sentence = format!(
        "The loop device {name} uses the page cache of its backing file, so memory may serve the I/O; `losetup \
         --direct-io=on` avoids this."
    );
    Some((CheckOutcome::Suspect, sentence))
}
