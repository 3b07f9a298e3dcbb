//! A disk that `trueio usb serve` serves inside a machine.

use trueio_lab::Machine;

/// Starts the server of a disk and returns its block device and process.
pub(crate) fn serve(machine: &mut Machine, arguments: &str) -> (String, String) {
    serve_by(machine, "", arguments)
}

/// As [`serve`], by a command that becomes the named one.
pub(crate) fn serve_by(machine: &mut Machine, command: &str, arguments: &str) -> (String, String) {
    started(machine, &format!("{command} trueio usb serve --foreground {arguments}"))
}

/// Starts a server that prints its block device when it can be used; returns the device and the process.
pub(crate) fn started(machine: &mut Machine, command: &str) -> (String, String) {
    machine.ok("rm -f /tmp/device /tmp/said");
    let process = machine.ok(&format!("{command} > /tmp/device 2> /tmp/said & echo $!"));
    // The device is printed when it runs; a server that ends early is reported with its reason.
    machine.ok(&format!(
        "while ! [ -s /tmp/device ]; do if ! kill -0 {process} 2>/dev/null; then cat /tmp/said >&2; exit 1; fi; sleep 0.1; done"
    ));
    (machine.ok("cat /tmp/device"), process)
}

/// Waits until a process has ended. One that does not within a minute is an error that shows where its threads are.
pub(crate) fn ended(machine: &mut Machine, process: &str) {
    machine.ok(&format!(
        "for i in $(seq 600); do kill -0 {process} 2>/dev/null || exit 0; sleep 0.1; done; \
         for task in /proc/{process}/task/*; do echo $task; grep State $task/status; cat $task/wchan $task/stack; done >&2; \
         dmesg | tail -n 60 >&2; exit 1"
    ));
}

/// Ends the server in order and returns its exit code and what it printed.
pub(crate) fn end(machine: &mut Machine, process: &str) -> String {
    machine.ok(&format!("kill -TERM {process}"));
    ended(machine, process);
    machine.ok("cat /tmp/said")
}
