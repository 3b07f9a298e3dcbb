//! Writes the invented record of the tests in every output: `cargo run -p trueio-report --example
//! fixture -- FOLDER`. For looking at the pages while changing them.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::path::PathBuf;
use trueio_report::{Style, hdr_log, html, json, terminal};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "target/report-fixture".into()));
    std::fs::create_dir_all(&folder)?;
    for (name, record) in
        [("baseline", fixture::baseline(6)), ("short", fixture::baseline(2)), ("troubled", fixture::troubled())]
    {
        std::fs::write(folder.join(format!("{name}.json")), json(&record))?;
        std::fs::write(folder.join(format!("{name}.html")), html(&record))?;
        std::fs::write(folder.join(format!("{name}.hlog")), hdr_log(&record).map_err(std::io::Error::other)?)?;
        for width in [80, 100, 120] {
            let text = terminal(&record, &Style { width, color: false, unicode: true });
            std::fs::write(folder.join(format!("{name}-{width}.txt")), text)?;
        }
    }
    Ok(())
}
