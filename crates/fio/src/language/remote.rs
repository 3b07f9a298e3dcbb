//! `--server`, `--client` and their options: the servers that run the jobs, and the job files of each.
//!
//! As in fio, job files directly after `--client=HOST` are for that server; all others are for every server, after its own.
//! fio ignores a client without job files; here it is refused.

use super::Action;
use super::command_line::Item;
use super::problem::{Position, Problems};
use super::refusals::Refused;

/// The settings of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Serve {
    /// The address on which it listens, as typed; `None`: the default.
    pub address: Option<String>,
    /// The file with the token that clients of a TCP address must have; `None`: one is created on the loopback address.
    pub token: Option<String>,
    /// The file for its process number, if it runs in the background.
    pub pid_file: Option<String>,
    /// The paths that its clients' jobs may read and write. Relative names of jobs begin at the first directory of them.
    pub writable: Vec<String>,
    /// The paths that jobs may read.
    pub readable: Vec<String>,
    /// The users, by number, who may connect to its socket; as typed.
    pub users: Vec<String>,
    /// Clients get bytes of files, and names of files.
    pub sends_contents: bool,
    /// Jobs may have real-time priority of I/O and a negative nice value.
    pub allows_priority: bool,
    /// The kernel need not confine its sessions.
    pub is_unconfined: bool,
    /// The signatures that jobs may destroy: arguments of command lines (`--overwrite_signature=ext4`).
    pub permits: Vec<String>,
}

/// A server to which jobs are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its address, or a file with a host on each line; as typed.
    pub host: String,
    /// Its job files on this machine, in order.
    pub files: Vec<String>,
    /// Its job files on the server.
    pub files_there: Vec<String>,
    /// The file with the server's token, as typed; `None`: the one that a server on the loopback address creates.
    pub token: Option<String>,
}

/// The options about clients and servers of a command line.
#[derive(Debug)]
pub(super) struct Remote {
    server: Option<(Serve, Position)>,
    clients: Vec<(Client, Position)>,
    /// A job's option where no job can be described.
    stray: Option<(String, Position)>,
}

/// Options that have a meaning next to `--server` or `--client` only.
const OF_SERVERS_AND_CLIENTS: [&str; 9] = [
    "daemonize",
    "remote-config",
    "token",
    "allow-write",
    "allow-read",
    "allow-user",
    "allow-contents",
    "allow-priority",
    "no-sandbox",
];

/// Options that permit something to a server's clients, or confine less.
fn is_permission(name: &str) -> bool {
    matches!(name, "allow-write" | "allow-read" | "allow-user" | "allow-contents" | "allow-priority" | "no-sandbox")
}

impl Serve {
    /// Adds a permission of the command line.
    fn permit(&mut self, name: &str, value: Option<String>) {
        match name {
            "allow-write" => self.writable.extend(value),
            "allow-read" => self.readable.extend(value),
            "allow-user" => self.users.extend(value),
            "allow-contents" => self.sends_contents = true,
            "allow-priority" => self.allows_priority = true,
            _ => self.is_unconfined = true,
        }
    }
}

/// Returns the message and the hint for an option without the server or client to which it applies.
fn without_either(name: &str) -> (String, &'static str) {
    match name {
        "daemonize" => {
            ("`--daemonize` is an option of servers".to_owned(), "add `--server`; for a job: `nohup` or `systemd-run`")
        }
        "remote-config" => ("`--remote-config` is an option of clients".to_owned(), "set `--client=HOST` before it"),
        "token" => ("`--token` is an option of servers and clients".to_owned(), "add `--server` or `--client=HOST`"),
        name => (format!("`--{name}` is an option of servers"), "add `--server`"),
    }
}

/// Removes the options about clients and servers from a command line and returns them; `None` if there are none.
pub(super) fn take(items: &mut Vec<Item>, problems: &mut Problems) -> Option<Remote> {
    let is_about = |item: &Item| matches!(item, Item::Program { name: "server" | "client", .. });
    let Some(first) = items.iter().find(|item| is_about(item)).cloned() else {
        for item in &*items {
            if let Item::Program { name, position, .. } = item
                && OF_SERVERS_AND_CLIENTS.contains(name)
            {
                let (message, hint) = without_either(name);
                problems.add(Refused::WithoutServer, position.clone(), message, Some(hint.to_owned()));
            }
        }
        return None;
    };
    let is_server = matches!(first, Item::Program { name: "server", .. });
    let mut remote = Remote { server: None, clients: Vec::new(), stray: None };
    let mut pid_file = None;
    let mut given = Serve::default();
    // Files belong to the client whose name they follow directly.
    let mut is_behind_client = false;
    for item in std::mem::take(items) {
        let was_behind_client = std::mem::take(&mut is_behind_client);
        match item {
            Item::Program { name: "server", value, position } => {
                remote.server = Some((Serve { address: value, ..Serve::default() }, position));
            }
            Item::Program { name: "client", value, position } => {
                let host = value.unwrap_or_default();
                let token = given.token.clone();
                remote.clients.push((Client { host, files: Vec::new(), files_there: Vec::new(), token }, position));
                is_behind_client = true;
            }
            Item::Program { name: "token", value, .. } => match remote.clients.last_mut() {
                Some((client, _)) => client.token = value,
                None => given.token = value,
            },
            Item::Program { name, value, .. } if is_permission(name) && is_server => given.permit(name, value),
            Item::Program { name, position, .. } if is_permission(name) => {
                let hint = Some("set it where the server is started".to_owned());
                let message = format!("`--{name}` is an option of servers, and this is a client");
                problems.add(Refused::OfServers, position, message, hint);
            }
            Item::Program { name: "daemonize", value, position } => {
                pid_file = Some((value.unwrap_or_default(), position))
            }
            Item::Program { name: "remote-config", value, position } => match remote.clients.last_mut() {
                Some((client, _)) => client.files_there.extend(value),
                None => {
                    let hint = Some("set `--client=HOST` before it".to_owned());
                    problems.add(
                        Refused::OfClients,
                        position,
                        "`--remote-config` applies to the client before it, and there is none",
                        hint,
                    );
                }
            },
            Item::Program { name: name @ "idle-prof", position, value } if value.as_deref() != Some("calibrate") => {
                let message = format!("`--{name}` is of the machine where jobs run, and it is not sent there");
                problems.add(Refused::NotSent, position, message, Refused::NotSent.hint());
            }
            Item::File(path, position) => match remote.clients.last_mut() {
                Some((client, _)) if was_behind_client => {
                    client.files.push(path);
                    is_behind_client = true;
                }
                _ => items.push(Item::File(path, position)),
            },
            Item::Job { option, value, position, .. } => match (option.name(), value) {
                (name @ "overwrite_signature", Some(value)) if is_server => {
                    given.permits.push(format!("--{name}={value}"));
                }
                (name, _) => {
                    remote.stray.get_or_insert((name.to_owned(), (*position).clone()));
                }
            },
            other => items.push(other),
        }
    }
    match (&mut remote.server, pid_file) {
        (Some((serve, _)), pid_file) => {
            let (address, pid_file) = (serve.address.take(), pid_file.map(|(path, _)| path));
            *serve = Serve { address, pid_file, ..given };
        }
        (None, Some((_, position))) => {
            let message = "`--daemonize` is an option of servers, and this is a client";
            problems.add(Refused::OfServers, position, message, None)
        }
        (None, None) => {}
    }
    Some(remote)
}

impl Remote {
    /// Returns the action. `files` are those for every client.
    pub(super) fn action(self, requested: Action, files: &[(String, Position)], problems: &mut Problems) -> Action {
        match requested {
            Action::Run => {}
            Action::ParseOnly | Action::ShowCommand => {
                let position = self.server.map(|(_, position)| position).or(self
                    .clients
                    .into_iter()
                    .next()
                    .map(|(_, position)| position));
                if let Some(position) = position {
                    let message = "jobs are read and shown without clients and servers";
                    problems.add(Refused::NotSent, position, message, None);
                }
                return requested;
            }
            question => return question,
        }
        if let Some((name, position)) = self.stray {
            let (kind, message, hint) = match self.server {
                Some(_) => (
                    Refused::OfServers,
                    format!("`{name}` is an option of jobs, and a server's jobs come from its clients"),
                    "the only option of jobs for a server is `overwrite_signature`, which permits",
                ),
                None => (
                    Refused::OfClients,
                    format!("`{name}` is an option of jobs, and jobs for servers come from job files"),
                    "write it into a job file, and name the file after `--client=HOST`",
                ),
            };
            problems.add(kind, position, message, Some(hint.to_owned()));
        }
        if let Some((serve, position)) = self.server {
            if !self.clients.is_empty() {
                problems.add(
                    Refused::OfServers,
                    position,
                    "a server is not a client",
                    Some("set only one of `--server` and `--client`".to_owned()),
                );
            } else if let Some((path, position)) = files.first() {
                let message = format!("a server runs the jobs of its clients, not `{path}`");
                let hint = format!("on the client: `--client=HOST {path}`");
                problems.add(Refused::OfServers, position.clone(), message, Some(hint));
            }
            return Action::Serve(serve);
        }
        let mut clients = Vec::new();
        for (mut client, position) in self.clients {
            client.files.extend(files.iter().map(|(path, _)| path.clone()));
            if client.files.is_empty() && client.files_there.is_empty() {
                let message = format!("there is no job file for the server `{}`", client.host);
                let hint = "files directly after `--client=HOST` are for that server only; those before the first \
                            `--client`, or after another option, are for all";
                problems.add(Refused::OfClients, position, message, Some(hint.to_owned()));
            }
            clients.push(client);
        }
        Action::Clients(clients)
    }
}
