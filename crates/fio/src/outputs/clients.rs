//! Records of several servers as fio's client writes them: each job with its server, and at the end all of them
//! together.
//!
//! `All clients` is exact: counts and histograms are added, so its percentiles are those of all I/Os. fio writes it
//! without percentiles. As in fio, its bandwidth is all bytes in the time of the job that took longest, and its
//! server is the last one.

use super::entry::Document;
use super::servers::{Clients, Server};
use super::{FioOutput, Format, json, normal, terse};
use std::fmt::Write as _;
use trueio_model::RunRecord;
use trueio_report::clean;

/// The results of a server.
#[derive(Debug, Clone, Copy)]
pub struct ServerResult<'a> {
    /// The server by the name that its client used.
    pub hostname: &'a str,
    /// TCP port of the server; for a Unix socket the default one, which fio prints.
    pub port: u16,
    /// Whether it is still running; its record is incomplete then.
    pub is_running: bool,
    /// Its record, if one arrived.
    pub record: Option<&'a RunRecord>,
    /// The error: the reason why there is no record, or a failure in addition to it.
    pub problem: Option<&'a str>,
}

/// Renders the requested documents, each with a line feed at its end.
pub fn render_clients(results: &[ServerResult<'_>], options: &FioOutput) -> String {
    let servers: Vec<Server<'_>> = results
        .iter()
        .map(|result| Server {
            hostname: result.hostname,
            port: result.port,
            document: result.record.map(|record| {
                let document = Document::so_far(record, options, result.is_running);
                Document { server: Some((result.hostname, result.port)), ..document }
            }),
            problem: result.problem,
        })
        .collect();
    let documents: Vec<&Document<'_>> = servers.iter().filter_map(|server| server.document.as_ref()).collect();
    let sum = Document::sum_of(&documents);
    let all = Clients { options, servers: &servers, sum: sum.as_ref() };
    let mut text = String::new();
    let has = |format| options.formats.contains(&format);
    if has(Format::Terse) {
        documents.iter().for_each(|document| text.push_str(&terse::terse(document)));
        if let (Some(sum), Some(last)) = (&sum, documents.last()) {
            text.push_str(&terse::lines(last, &[sum]));
        }
    }
    if has(Format::Json) || has(Format::JsonPlus) {
        text.push_str(&json::clients(&all, has(Format::JsonPlus)).document());
    }
    if has(Format::Normal) {
        documents.iter().for_each(|document| text.push_str(&normal::normal(document)));
        if let (Some(sum), Some(last)) = (&sum, documents.last()) {
            text.push('\n');
            normal::job(&mut text, last, sum);
        }
        for server in &servers {
            if let Some(problem) = server.problem {
                let _ = writeln!(text, "\ntrueio: {}: {}", clean(server.hostname), clean(problem));
            }
        }
    }
    if has(Format::JsonLines) {
        let mut root = json::clients(&all, false);
        root.first("type", if options.is_interim { "interim" } else { "result" });
        text.push_str(&root.line());
    }
    text
}
