//! The internal command lines with which a server starts its own processes, and the descriptor that they inherit.

use std::os::fd::{AsFd, OwnedFd};

/// The first argument of a server in the background. It is followed by the kind of the listener, the path of its socket
/// and of its PID file (or empty strings), and the permissions.
pub(in crate::command) const LISTEN: &str = "--trueio-listen";
/// The first argument of a session. It is followed by the kind of the connection, the descriptor of the server's ledger and the session's
/// place in it, the directory for its logs, and the server's permissions.
pub(in crate::command) const SESSION: &str = "--trueio-session";
/// The beginning of an argument that names a path to which jobs may write.
pub(super) const ALLOW_WRITE: &str = "--allow-write=";

/// The beginning of an argument that names a path from which jobs may read.
pub(super) const ALLOW_READ: &str = "--allow-read=";
/// The beginning of an argument that names the file with the token of clients over TCP.
pub(super) const TOKEN: &str = "--token=";
/// The same for a file that the server created, and removes at its end.
pub(super) const OWN_TOKEN: &str = "--own-token=";
/// The beginning of an argument that names a user who may connect to the socket.
pub(super) const ALLOW_USER: &str = "--allow-user=";
/// The argument that lets bytes and names of files travel to clients.
pub(super) const ALLOW_CONTENTS: &str = "--allow-contents";
/// The argument that lets clients' jobs go before other processes.
pub(super) const ALLOW_PRIORITY: &str = "--allow-priority";
/// The argument without which the kernel confines a session to these paths.
pub(super) const NO_SANDBOX: &str = "--no-sandbox";

/// Returns the descriptor that this process inherited as its standard input.
pub(super) fn stdin() -> Option<OwnedFd> {
    std::io::stdin().as_fd().try_clone_to_owned().ok()
}
