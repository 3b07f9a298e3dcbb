//! Other systems: which transport they say a USB disk is on, from what their own tools print.
//!
//! Cannot see: anything but the transport in use and the names; none of these systems lets it be
//! chosen.

/// Why the transport cannot be switched on a system, by the name that Rust gives it.
pub fn switch_refusal(os: &str) -> &'static str {
    match os {
        "macos" => "macOS chooses IOUSBMassStorageUASDriver for every disk that offers UAS, and has no setting for it",
        "windows" => {
            "Windows chooses uaspstor.sys for every disk that offers UAS on a controller with streams; a disk can be \
             given another driver in the Device Manager only"
        }
        "freebsd" => "FreeBSD has no UAS driver: umass(4) drives every USB disk with BOT",
        _ => "it is not known how this system chooses",
    }
}
