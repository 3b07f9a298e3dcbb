//! Writes the invented record of the tests in every output: `cargo run -p trueio-report --example
//! fixture -- FOLDER [RECORD]`, and `RECORD` too if a file is named. For looking at the pages while
//! changing them.

#[path = "../tests/it/fixture.rs"]
mod fixture;

use std::path::PathBuf;
use trueio_report::{Style, hdr_log, html, json, parse, screen, terminal};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "target/report-fixture".into()));
    std::fs::create_dir_all(&folder)?;
    let mut records =
        vec![("baseline", fixture::baseline(6)), ("short", fixture::baseline(2)), ("troubled", fixture::troubled())];
    if let Some(path) = std::env::args_os().nth(2) {
        records.push(("named", parse(&std::fs::read_to_string(path)?).map_err(std::io::Error::other)?));
    }
    for (name, record) in records {
        std::fs::write(folder.join(format!("{name}.json")), json(&record))?;
        std::fs::write(folder.join(format!("{name}.html")), html(&record))?;
        std::fs::write(folder.join(format!("{name}.hlog")), hdr_log(&record).map_err(std::io::Error::other)?)?;
        let style = Style { width: 80, color: true, unicode: true };
        std::fs::write(
            folder.join(format!("{name}-screen.txt")),
            screen(&record, &style, "trueio report 3f9c21ab", &[]),
        )?;
        for width in [80, 100, 120] {
            let text = terminal(&record, &Style { width, color: false, unicode: true });
            std::fs::write(folder.join(format!("{name}-{width}.txt")), text)?;
        }
    }
    Ok(())
}
