//! Prints what each given path offers, and the source of that: `cargo run --example probe -- /srv/data /dev/sda`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for argument in std::env::args_os().skip(1) {
        let path = Path::new(&argument);
        let answer = if path.is_dir() { trueio_direct::probe_directory(path) } else { trueio_direct::probe(path) };
        match answer {
            Ok(probe) => {
                println!("{}", path.display());
                println!("  support     {}", word(&probe.support));
                println!("  because     {}", probe.reason);
                println!("  alignment   {}", probe.alignment);
                println!("  atomic      {:?} {}", probe.atomic_write_answer, atomic(&probe));
                println!("  uncached    {:?}", probe.uncached_buffered);
            }
            Err(error) => {
                eprintln!("error: {error}");
                let mut cause = std::error::Error::source(&error);
                while let Some(error) = cause {
                    eprintln!("  because: {error}");
                    cause = error.source();
                }
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

fn word(support: &trueio_direct::Support) -> &'static str {
    match support {
        trueio_direct::Support::Direct => "direct",
        trueio_direct::Support::SilentlyBuffered { .. } => "accepted and buffered",
        trueio_direct::Support::Refused { .. } => "refused",
        _ => "unknown",
    }
}

fn atomic(probe: &trueio_direct::Probe) -> String {
    probe.atomic_write.map_or_else(String::new, |limits| format!("{} to {} bytes", limits.min_bytes, limits.max_bytes))
}
