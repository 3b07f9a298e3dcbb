//! The setting that all phases of a run share.

use crate::Reporting;
use crate::files::Prepared;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use trueio_device::System;
use trueio_engine::AnyClock;
use trueio_model::TargetFacts;

/// What all phases of a run share.
#[derive(Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) system: &'a System,
    pub(crate) prepared: &'a Prepared,
    pub(crate) clock: AnyClock,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) began: Instant,
    pub(crate) has_evidence: bool,
    pub(crate) reporting: &'a Reporting,
    /// What is known of the run's targets.
    pub(crate) targets: &'a [TargetFacts],
}
