//! `--server`, `--client` and what belongs to them: who runs the jobs, and which.
//!
//! As in fio, job files directly behind `--client=HOST` are that server's; all others are every server's, and come
//! after its own. A client without any is left out silently by fio; here it is refused.

use super::Action;
use super::command_line::Item;
use super::problem::{Place, Problems};

/// A server to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Serve {
    /// Where it listens, as typed; `None`: where it does by itself.
    pub address: Option<String>,
    /// It goes into the background, and its process number into this file.
    pub pid_file: Option<String>,
    /// Where its clients' jobs may write besides its working directory.
    pub writable: Vec<String>,
    /// What jobs may destroy: words of command lines (`--overwrite_signature=ext4`).
    pub permits: Vec<String>,
}

/// A server that is asked to run jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Where it is, or a file with a host on each line; as typed.
    pub host: String,
    /// Its job files here, in order.
    pub files: Vec<String>,
    /// Its job files that lie there.
    pub files_there: Vec<String>,
}

/// What was said of clients and servers, before it is known what else was.
#[derive(Debug)]
pub(super) struct Remote {
    server: Option<(Serve, Place)>,
    clients: Vec<(Client, Place)>,
    /// A job's option that stands where there are no jobs.
    stray: Option<(String, Place)>,
}

/// Takes everything that is about clients and servers out of a command line; `None` if there is nothing.
pub(super) fn take(items: &mut Vec<Item>, problems: &mut Problems) -> Option<Remote> {
    let is_about = |item: &Item| matches!(item, Item::Program { name: "server" | "client", .. });
    let Some(first) = items.iter().find(|item| is_about(item)).cloned() else {
        for item in &*items {
            if let Item::Program { name: name @ ("daemonize" | "remote-config" | "allow-write"), place, .. } = item {
                let (message, hint) = match *name {
                    "daemonize" => {
                        ("`--daemonize` is of servers", "say `--server`, too; for a job: `nohup` or `systemd-run`")
                    }
                    "allow-write" => ("`--allow-write` is of servers", "say `--server`, too"),
                    _ => ("`--remote-config` is of clients", "say `--client=HOST` before it"),
                };
                problems.add(place.clone(), message, Some(hint.to_owned()));
            }
        }
        return None;
    };
    let is_server = matches!(first, Item::Program { name: "server", .. });
    let mut remote = Remote { server: None, clients: Vec::new(), stray: None };
    let mut pid_file = None;
    let (mut permits, mut writable) = (Vec::new(), Vec::new());
    // Files belong to the client whose name they follow directly.
    let mut is_behind_client = false;
    for item in std::mem::take(items) {
        let was_behind_client = std::mem::take(&mut is_behind_client);
        match item {
            Item::Program { name: "server", value, place } => {
                remote.server = Some((Serve { address: value, ..Serve::default() }, place));
            }
            Item::Program { name: "client", value, place } => {
                let host = value.unwrap_or_default();
                remote.clients.push((Client { host, files: Vec::new(), files_there: Vec::new() }, place));
                is_behind_client = true;
            }
            Item::Program { name: "allow-write", value, .. } if is_server => writable.extend(value),
            Item::Program { name: "allow-write", place, .. } => {
                let hint = Some("say it where the server is started".to_owned());
                problems.add(place, "`--allow-write` is of servers, and this is a client", hint);
            }
            Item::Program { name: "daemonize", value, place } => pid_file = Some((value.unwrap_or_default(), place)),
            Item::Program { name: "remote-config", value, place } => match remote.clients.last_mut() {
                Some((client, _)) => client.files_there.extend(value),
                None => {
                    let hint = Some("say `--client=HOST` before it".to_owned());
                    problems.add(place, "`--remote-config` is of the client before it, and there is none", hint);
                }
            },
            Item::Program { name: name @ "idle-prof", place, value } if value.as_deref() != Some("calibrate") => {
                let message = format!("`--{name}` is of the machine where jobs run, and it is not sent there");
                problems.add(place, message, Some("leave it out".to_owned()));
            }
            Item::File(path, place) => match remote.clients.last_mut() {
                Some((client, _)) if was_behind_client => {
                    client.files.push(path);
                    is_behind_client = true;
                }
                _ => items.push(Item::File(path, place)),
            },
            Item::Job { asked, value, place, .. } => match (asked.name(), value) {
                (name @ "overwrite_signature", Some(value)) if is_server => permits.push(format!("--{name}={value}")),
                (name, _) => {
                    remote.stray.get_or_insert((name.to_owned(), (*place).clone()));
                }
            },
            other => items.push(other),
        }
    }
    match (&mut remote.server, pid_file) {
        (Some((serve, _)), pid_file) => {
            serve.pid_file = pid_file.map(|(path, _)| path);
            (serve.permits, serve.writable) = (permits, writable);
        }
        (None, Some((_, place))) => problems.add(place, "`--daemonize` is of servers, and this is a client", None),
        (None, None) => {}
    }
    Some(remote)
}

impl Remote {
    /// What is to be done. `files` are those that belong to every client.
    pub(super) fn action(self, asked: Action, files: &[(String, Place)], problems: &mut Problems) -> Action {
        match asked {
            Action::Run => {}
            Action::ParseOnly | Action::ShowCommand => {
                let place =
                    self.server.map(|(_, place)| place).or(self.clients.into_iter().next().map(|(_, place)| place));
                if let Some(place) = place {
                    problems.add(place, "jobs are read and shown without clients and servers", None);
                }
                return asked;
            }
            question => return question,
        }
        if let Some((name, place)) = self.stray {
            let (message, hint) = match self.server {
                Some(_) => (
                    format!("`{name}` is of a job, and a server's jobs come from its clients"),
                    "of jobs' options a server takes only `overwrite_signature`, which permits",
                ),
                None => (
                    format!("`{name}` is of a job, and jobs for servers stand in job files"),
                    "write it into a job file, and name that behind `--client=HOST`",
                ),
            };
            problems.add(place, message, Some(hint.to_owned()));
        }
        if let Some((serve, place)) = self.server {
            if !self.clients.is_empty() {
                problems.add(place, "a server is no client", Some("say one of `--server` and `--client`".to_owned()));
            } else if let Some((path, place)) = files.first() {
                let message = format!("a server runs what its clients bring, not `{path}`");
                problems.add(place.clone(), message, Some(format!("on the other side: `--client=HOST {path}`")));
            }
            return Action::Serve(serve);
        }
        let mut clients = Vec::new();
        for (mut client, place) in self.clients {
            client.files.extend(files.iter().map(|(path, _)| path.clone()));
            if client.files.is_empty() && client.files_there.is_empty() {
                let message = format!("there is no job file for the server `{}`", client.host);
                let hint = "files directly behind `--client=HOST` are that server's alone; those before the first \
                            `--client`, or behind another option, are for all";
                problems.add(place, message, Some(hint.to_owned()));
            }
            clients.push(client);
        }
        Action::Clients(clients)
    }
}
