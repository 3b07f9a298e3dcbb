//! Headless Chromium, controlled through two pipes.
//!
//! Source: Chrome DevTools Protocol; `--remote-debugging-pipe`: messages are JSON that ends with a zero byte, read from
//! descriptor 3 and written to descriptor 4.

use crate::workspace::command;
use anyhow::{Context, Result, anyhow, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The longest wait for an answer: a busy machine starts a browser in several seconds.
const LIMIT: Duration = Duration::from_secs(60);
/// As root it needs `--no-sandbox`; the others keep it from talking to anything.
const FLAGS: &str = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
     --disable-component-update --disable-sync --disable-extensions --hide-scrollbars --remote-debugging-pipe";

/// The scheme of a page on paper.
pub(crate) const PRINT: &str = "print";

/// A browser; dropping it ends its process.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    /// Messages that are no answers, since the last page was opened.
    events: Vec<Value>,
    session: String,
    last_id: u64,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// Starts a browser with an empty profile in `profile`, and opens an empty page.
    pub(crate) fn start(profile: &Path) -> Result<Self> {
        let mut shell = command("sh");
        // The shell moves the pipes to the descriptors and becomes the browser.
        shell.args([
            "-c",
            &format!("exec chromium {FLAGS} --user-data-dir=\"$1\" about:blank 3<&0 4>&1 </dev/null >/dev/null"),
            "sh",
        ]);
        shell.arg(profile).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = shell.spawn().context("chromium")?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("chromium has no pipes");
        };
        let mut browser =
            Self { child, input, messages: follow(output), events: Vec::new(), session: String::new(), last_id: 0 };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", &attach)?;
        browser.session = attached["sessionId"].as_str().unwrap_or_default().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(browser)
    }

    /// Opens a page and evaluates `measure`, which returns a list of sentences. Returns these with what the console and the
    /// network report, and a picture of the whole page.
    pub(crate) fn look(
        &mut self,
        page: &Path,
        width: u32,
        scheme: &str,
        measure: &str,
    ) -> Result<(Vec<String>, Vec<u8>)> {
        self.open(page, width, scheme)?;
        let url = url_of(page)?;
        let measured = self.call("Runtime.evaluate", &json!({ "expression": measure, "returnByValue": true }))?;
        let Some(list) = measured["result"]["value"].as_array() else {
            bail!("the measurement of {} failed: {measured}", page.display());
        };
        let mut found: Vec<String> = list.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect();
        let picture = self.call("Page.captureScreenshot", &json!({ "captureBeyondViewport": true }))?;
        found.extend(self.events.iter().filter_map(|event| complaint(event, &url)));
        Ok((found, data_of(&picture)?))
    }

    /// Returns a picture of the beginning of a page, `height` pixels of it, reduced by `scale`.
    pub(crate) fn picture(
        &mut self,
        page: &Path,
        (width, height): (u32, u32),
        scheme: &str,
        scale: f64,
    ) -> Result<Vec<u8>> {
        self.open(page, width, scheme)?;
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": scale });
        let picture = self.call("Page.captureScreenshot", &json!({ "captureBeyondViewport": true, "clip": clip }))?;
        data_of(&picture)
    }

    /// Returns the number of sheets of A4 on which a page is printed.
    pub(crate) fn sheet_count(&mut self, page: &Path) -> Result<usize> {
        self.open(page, 1280, PRINT)?;
        let paper = json!({ "paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": true });
        let printed = self.call("Page.printToPDF", &paper)?;
        let pdf = data_of(&printed)?;
        // Each sheet is an object of this type; `/Pages` is the tree of them.
        const SHEET: &[u8] = b"/Type /Page";
        let is_sheet = |at: &[u8]| at.starts_with(SHEET) && at.last() != Some(&b's');
        Ok(pdf.windows(SHEET.len() + 1).filter(|at| is_sheet(at)).count())
    }

    /// Opens a page as wide as given, in a colour scheme; messages of the previous page are forgotten.
    fn open(&mut self, page: &Path, width: u32, scheme: &str) -> Result<()> {
        let size = json!({ "width": width, "height": 860, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", &size)?;
        let media = match scheme {
            PRINT => json!({ "media": "print", "features": [] }),
            scheme => json!({ "media": "", "features": [{ "name": "prefers-color-scheme", "value": scheme }] }),
        };
        self.call("Emulation.setEmulatedMedia", &media)?;
        // Messages of the previous page are its own.
        self.call("Page.navigate", &json!({ "url": "about:blank" }))?;
        self.wait_for("Page.loadEventFired")?;
        self.events.clear();
        let url = url_of(page)?;
        self.call("Page.navigate", &json!({ "url": url }))?;
        self.wait_for("Page.loadEventFired")
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.write_all(&bytes).with_context(|| method.to_owned())?;
        loop {
            let message = self.next(method)?;
            if message["id"] == json!(self.last_id) {
                return match message.get("error") {
                    Some(error) => Err(anyhow!("{method}: {error}")),
                    None => Ok(message["result"].clone()),
                };
            }
            self.events.push(message);
        }
    }

    /// Waits for an event that has not come since the last page was opened.
    fn wait_for(&mut self, method: &str) -> Result<()> {
        while !self.events.iter().any(|event| event["method"] == method) {
            let message = self.next(method)?;
            self.events.push(message);
        }
        self.events.retain(|event| event["method"] != method);
        Ok(())
    }

    fn next(&mut self, what: &str) -> Result<Value> {
        self.messages.recv_timeout(LIMIT).map_err(|error| match error {
            RecvTimeoutError::Timeout => anyhow!("chromium did not answer {what} within {} s", LIMIT.as_secs()),
            RecvTimeoutError::Disconnected => anyhow!("chromium ended before it answered {what}"),
        })
    }
}

fn url_of(page: &Path) -> Result<String> {
    let path = page.canonicalize().with_context(|| page.display().to_string())?;
    Ok(format!("file://{}", path.display()))
}

/// Reads messages in a thread, so that waiting for one has a limit.
fn follow(output: ChildStdout) -> Receiver<Value> {
    let (sender, messages) = channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        loop {
            let mut bytes = Vec::new();
            match output.read_until(0, &mut bytes) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            bytes.pop();
            let Ok(message) = serde_json::from_slice(&bytes) else { continue };
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    messages
}

/// Returns what an event says against a page.
fn complaint(event: &Value, url: &str) -> Option<String> {
    let parameters = &event["params"];
    match event["method"].as_str()? {
        "Network.requestWillBeSent" => {
            let asked = parameters["request"]["url"].as_str()?;
            let is_own = asked == url || asked.starts_with("data:") || asked == "about:blank";
            (!is_own).then(|| format!("request of {asked}"))
        }
        "Runtime.exceptionThrown" => Some(format!("console: exception: {}", parameters["exceptionDetails"]["text"])),
        "Runtime.consoleAPICalled" => Some(format!("console: {}", parameters["args"])),
        "Log.entryAdded" => Some(format!("console: {}", parameters["entry"]["text"])),
        _ => None,
    }
}

/// Returns the bytes of the `data` of an answer, which are in base64.
fn data_of(answer: &Value) -> Result<Vec<u8>> {
    let text = answer["data"].as_str().context("the browser answered without data")?;
    STANDARD.decode(text).context("what the browser answered")
}
