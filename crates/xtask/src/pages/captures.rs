//! The captures of terminals in `docs/images/`, as SVG. `cargo xtask pages --write` makes them; the check without `--write`
//! compares the one that is the same each time.
//!
//! The end of a run is that of the invented record of the tests. The live view is a real run in
//! tmux, of which a picture is taken twice a second; the pictures follow each other in one animated SVG.
//!
//! Limits: foreground colours, bold and dim are drawn; other attributes of a terminal are not.

use crate::setup;
use crate::workspace::command;
use anyhow::{Context, Result, bail, ensure};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

const COLUMN: f64 = 8.4;
const LINE: f64 = 18.0;
const PAD: f64 = 12.0;
/// Time between two pictures of the live view.
const STEP: Duration = Duration::from_millis(500);
const PICTURE_COUNT: usize = 14;

/// Captures the end of a run from what it prints.
pub(super) fn end_of_run(text: &str) -> String {
    drawn(&[text], "The end of a baseline on a terminal of 80 columns")
}

/// Captures the live view; `None`, with the reason printed, without tmux.
pub(super) fn live(program: &Path, folder: &Path) -> Result<Option<String>> {
    if let Err(why) = setup::install(&[("tmux", "tmux")]) {
        println!("no capture of the live view: {why}");
        return Ok(None);
    }
    let job = "run --live --name reads --rw randread --bs 4k --iodepth 16 --ioengine io_uring --direct prefer \
               --size 64m --runtime 8s --time_based --no-history";
    let socket = format!("trueio-pages-{}", std::process::id());
    let tmux = |arguments: &[&str]| {
        let mut tmux = command("tmux");
        tmux.current_dir(folder)
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .env_remove("TMUX");
        let output = tmux.args(["-u", "-L", &socket, "-f", "/dev/null"]).args(arguments).output();
        let output = output.context("tmux")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "tmux: {}", String::from_utf8_lossy(&output.stderr));
        Ok(text)
    };
    tmux(&["new-session", "-d", "-x", "80", "-y", "24", &format!("{} {job}; sleep 2", program.display())])?;
    let mut pictures: Vec<String> = Vec::new();
    for _ in 0..2 * PICTURE_COUNT {
        std::thread::sleep(STEP);
        // The session ends with its command.
        let Ok(picture) = tmux(&["capture-pane", "-e", "-p"]) else { break };
        if picture.contains("histogram") {
            pictures.push(picture);
        }
        if pictures.len() >= PICTURE_COUNT {
            break;
        }
    }
    let _ = tmux(&["kill-server"]);
    if pictures.is_empty() {
        bail!("the live view was not seen in tmux");
    }
    let texts: Vec<&str> = pictures.iter().map(String::as_str).collect();
    Ok(Some(drawn(&texts, "trueio run --live, recorded on a terminal of 80 columns")))
}

/// Draws pictures of a terminal as an SVG, one after the other if there are several.
fn drawn(pictures: &[&str], title: &str) -> String {
    let screens: Vec<Vec<Vec<Piece>>> = pictures.iter().map(|picture| picture.lines().map(pieces).collect()).collect();
    let width_of = |line: &Vec<Piece>| line.iter().map(|piece| piece.text.chars().count()).sum::<usize>();
    let columns = screens.iter().flatten().map(width_of).max().unwrap_or(0).max(80);
    let lines = screens.iter().map(Vec::len).max().unwrap_or(0);
    let (width, height) = (columns as f64 * COLUMN + 2.0 * PAD, lines as f64 * LINE + 2.0 * PAD);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" role=\"img\" \
         aria-label=\"{title}\">\n<title>{title}</title>\n<style>text{{font:14px ui-monospace,Menlo,Consolas,\"DejaVu Sans \
         Mono\",monospace;fill:#d7dce2;white-space:pre}}.b{{font-weight:700}}.d{{fill:#8b949e}}.c31,.c91{{fill:#ff8c61}}\
         .c32,.c92{{fill:#3fc99a}}.c33,.c93{{fill:#f0c94a}}.c34,.c94{{fill:#6cb6ff}}.c35,.c95{{fill:#e09ac4}}\
         .c36,.c96{{fill:#7ad3ee}}.c90{{fill:#8b949e}}"
    );
    if screens.len() > 1 {
        let length = screens.len() as f64 * STEP.as_secs_f64();
        let _ = write!(
            svg,
            ".f{{visibility:hidden;animation:f {length}s step-end infinite}}@keyframes f{{0%{{visibility:visible}}{:.3}%\
             {{visibility:hidden}}}}@media(prefers-reduced-motion:reduce){{.f{{animation:none}}.f:last-of-type{{visibility:visible}}}}",
            100.0 / screens.len() as f64
        );
    }
    let _ = writeln!(svg, "</style>\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#0d1117\"/>");
    for (index, screen) in screens.iter().enumerate() {
        if screens.len() > 1 {
            let _ = writeln!(svg, "<g class=\"f\" style=\"animation-delay:{}s\">", index as f64 * STEP.as_secs_f64());
        }
        screen.iter().enumerate().for_each(|(row, line)| draw_line(&mut svg, row, line));
        if screens.len() > 1 {
            svg.push_str("</g>\n");
        }
    }
    svg + "</svg>\n"
}

/// A piece of a line in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    class: String,
    text: String,
}

/// Splits a line at its colour sequences.
fn pieces(line: &str) -> Vec<Piece> {
    let (mut is_bold, mut is_dim, mut color) = (false, false, String::new());
    let mut found: Vec<Piece> = Vec::new();
    for (index, part) in line.split("\u{1b}[").enumerate() {
        let text = if index == 0 {
            part
        } else {
            let Some((codes, text)) = part.split_once('m') else { continue };
            for code in codes.split(';') {
                match code {
                    "" | "0" => (is_bold, is_dim, color) = (false, false, String::new()),
                    "1" => is_bold = true,
                    "2" => is_dim = true,
                    "22" => (is_bold, is_dim) = (false, false),
                    "39" => color.clear(),
                    _ if code.len() == 2 && (code.starts_with('3') || code.starts_with('9')) => {
                        color = format!("c{code}");
                    }
                    _ => {}
                }
            }
            text
        };
        if text.is_empty() {
            continue;
        }
        let classes = [(is_bold, "b"), (is_dim, "d"), (!color.is_empty(), color.as_str())];
        let class: Vec<&str> = classes.into_iter().filter(|(is_set, _)| *is_set).map(|(_, class)| class).collect();
        found.push(Piece { class: class.join(" "), text: text.to_owned() });
    }
    if let Some(last) = found.last_mut() {
        last.text.truncate(last.text.trim_end().len());
    }
    found
}

fn draw_line(svg: &mut String, row: usize, line: &[Piece]) {
    let y = PAD + LINE * (row as f64 + 0.75);
    let mut column = 0;
    for Piece { class, text } in line {
        let count = text.chars().count();
        // Leading blanks are a position, so that nothing depends on how a viewer treats them.
        let shown = text.trim_start();
        let begin = column + count - shown.chars().count();
        column += count;
        if shown.is_empty() {
            continue;
        }
        let escaped = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{y:.1}\" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\"{class}>{escaped}</text>",
            PAD + begin as f64 * COLUMN,
            shown.chars().count() as f64 * COLUMN
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_classes_and_blanks_become_positions() {
        let found = pieces("a \u{1b}[1;32m+ ok\u{1b}[0m  \u{1b}[2mdim\u{1b}[22m end  ");
        let piece = |class: &str, text: &str| Piece { class: class.to_owned(), text: text.to_owned() };
        assert_eq!(
            found,
            [piece("", "a "), piece("b c32", "+ ok"), piece("", "  "), piece("d", "dim"), piece("", " end")]
        );
        let svg = end_of_run("x\n  <y> & z\n");
        assert!(svg.contains(">&lt;y&gt; &amp; z</text>") && svg.contains("x=\"28.8\""), "{svg}");
        assert!(!svg.contains("animation"), "one picture stands still");
        assert!(drawn(&["a", "b"], "two").matches("<g class=\"f\"").count() == 2);
    }
}
