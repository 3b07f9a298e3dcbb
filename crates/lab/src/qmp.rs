//! Talks to QEMU's monitor: unplugs and plugs devices, asks for events.
//!
//! Source: QEMU's QMP reference, `docs/interop/qmp-spec`.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A monitor.
#[derive(Debug)]
pub struct Monitor {
    stream: BufReader<UnixStream>,
    events: Vec<Value>,
}

impl Monitor {
    /// Greets QEMU over a connection that was just made.
    pub(crate) fn greet(stream: UnixStream) -> Result<Self> {
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut monitor = Self { stream: BufReader::new(stream), events: Vec::new() };
        let greeting = monitor.message()?;
        if greeting.get("QMP").is_none() {
            bail!("QEMU's monitor did not greet: {greeting}");
        }
        monitor.command("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// Runs a command and gives what it returns.
    ///
    /// # Errors
    /// QEMU's, in its words.
    pub fn command(&mut self, name: &str, arguments: Value) -> Result<Value> {
        let text = json!({"execute": name, "arguments": arguments}).to_string();
        self.stream.get_mut().write_all(format!("{text}\n").as_bytes())?;
        loop {
            let mut message = self.message()?;
            if let Some(value) = message.get_mut("return") {
                return Ok(value.take());
            }
            if let Some(error) = message.get("error") {
                bail!("QEMU: {name}: {}", error["desc"].as_str().unwrap_or("no reason"));
            }
            self.events.push(message);
        }
    }

    /// Waits until QEMU reports an event of this name whose data has `key` = `value`.
    ///
    /// # Errors
    /// If it does not within `limit`.
    pub fn wait_for(&mut self, event: &str, key: &str, value: &str, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        let is_it = |message: &Value| message["event"] == event && message["data"][key] == value;
        if let Some(position) = self.events.iter().position(is_it) {
            self.events.remove(position);
            return Ok(());
        }
        while Instant::now() < deadline {
            let message = self.message()?;
            if is_it(&message) {
                return Ok(());
            }
            self.events.push(message);
        }
        bail!("QEMU reported no {event} of {value} within {limit:?}")
    }

    fn message(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).context("QEMU's monitor is silent")? == 0 {
            bail!("QEMU has closed its monitor");
        }
        serde_json::from_str(&line).with_context(|| format!("QEMU's monitor sent `{}`", line.trim()))
    }
}
