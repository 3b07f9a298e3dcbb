//! Placeholder.
use anyhow::{Result, bail};
pub(crate) fn run(_: &[&str]) -> Result<bool> {
    bail!("not built yet")
}
