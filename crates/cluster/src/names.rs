//! `$rank` and `$host` in the names of files.

use trueio_job::row;
use trueio_model::JobSpec;

/// Replaces `$rank` and `$host` in all options that name files.
pub fn for_rank(specs: &mut [JobSpec], rank: u32, host: &str) {
    for (name, value) in specs.iter_mut().flat_map(|spec| &mut spec.options) {
        if row(name).is_some_and(|row| row.names_path()) && value.text.contains('$') {
            // A colon separates paths.
            let host = host.replace(':', "\\:");
            value.text = value.text.replace("$rank", &rank.to_string()).replace("$host", &host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::Origin;

    #[test]
    fn only_names_of_files_are_changed() {
        let mut spec = JobSpec::new("a");
        spec.set("filename", "/mnt/$host/data-$rank.dat:/mnt/b-$rank", Origin::Default);
        spec.set("rw", "read", Origin::Default);
        for_rank(std::slice::from_mut(&mut spec), 3, "node7");
        assert_eq!(spec.options["filename"].text, "/mnt/node7/data-3.dat:/mnt/b-3");
        assert_eq!(spec.options["rw"].text, "read");
    }
}
