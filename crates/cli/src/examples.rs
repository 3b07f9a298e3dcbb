//! The examples in the help of each command, and what `-h` leaves out.

use clap::Command;

/// A command line, and what it does.
type Example = (&'static str, &'static str);

/// Two or more examples of each command, by its words.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "baseline",
        &[
            ("trueio baseline /mnt/data", "the disk under a directory, in about a minute"),
            (
                "trueio baseline /dev/nvme0n1 --quick --html page.html",
                "a whole disk, read only, in ten seconds, and a page",
            ),
        ],
    ),
    (
        "run",
        &[
            (
                "trueio run --rw randread --bs 4k --size 1g --runtime 10s --time-based",
                "random reads of a new file in this directory",
            ),
            ("trueio run --rw write --bs 4k --size 64m --fdatasync 1", "durable commits per second of one writer"),
            (
                "trueio run --rw randrw --rwmixread 70 --iodepth 32 --filename /mnt/data/file --size 4g",
                "a mix at depth 32 on a named file",
            ),
            ("trueio run jobs.toml --runtime 30s --html page.html", "a job file, each job for 30 s, and a page"),
            (
                "trueio run jobs.toml --fail-if 'p99 > 10ms' --fail-if 'IOPS < 95%' --against newest",
                "exit status 1 if a limit is missed, 3 if it is undecided",
            ),
        ],
    ),
    (
        "explain",
        &[
            ("trueio explain jobs.toml", "what a job file would do"),
            ("trueio explain --rw randread --size 1g --all", "a job given by flags, with every default"),
        ],
    ),
    (
        "fio",
        &[
            ("trueio fio --name=reads --rw=randread --size=1g", "fio's command line, with fio's output"),
            ("trueio fio jobs.fio --output-format=json", "a job file of fio"),
        ],
    ),
    (
        "ior",
        &[
            (
                "mpirun -n 8 trueio ior -b 1g -t 1m -e -C -o /mnt/shared/file",
                "one file for all ranks; each reads what a rank of another host wrote",
            ),
            (
                "srun --mpi=pmi2 trueio ior -F -b 4g -t 1m -w -r -D 60 -O stoneWallingWearOut=1 -o /mnt/shared/file",
                "a file for each rank, under Slurm",
            ),
            ("trueio ior --explain -b 1g -t 1m", "the jobs as TOML, for `trueio run`"),
        ],
    ),
    (
        "mdtest",
        &[
            (
                "mpirun -n 8 trueio mdtest -n 1000 -z 2 -b 4 -N 1 -d /mnt/shared/out",
                "creates, examines and removes files on eight ranks",
            ),
            ("trueio mdtest --explain -n 1000 -F -u", "the jobs as TOML, for `trueio run`"),
        ],
    ),
    (
        "compare",
        &[
            ("trueio compare a.toml b.toml", "two jobs, in turns, until the answer is clear"),
            ("trueio compare --vary iodepth=1,4,16 --rw randread --size 1g", "one job at three depths"),
            ("trueio compare 3f9c21ab 8d01e2f4 --fail-if 'p99 > +5%'", "two earlier runs, and a gate"),
        ],
    ),
    (
        "study",
        &[
            ("trueio study list", "what each study repeats"),
            (
                "trueio study cache-bypass /mnt/data --quick",
                "the smaller version of one, on the disk under a directory",
            ),
        ],
    ),
    (
        "capacity",
        &[
            (
                "trueio capacity /dev/sdb --journal sdb.journal",
                "a sample of the disk, with its content kept in a file on another disk",
            ),
            ("trueio capacity --restore sdb.journal /dev/sdb", "the content back, after a test that was killed"),
        ],
    ),
    (
        "powercut",
        &[
            ("trueio powercut /mnt/usb", "in a directory on a disk whose cable you pull"),
            (
                "trueio powercut /dev/sdb --overwrite /dev/sdb --cuts 5",
                "five cuts on a whole disk, whose content is lost",
            ),
        ],
    ),
    (
        "powercut witness",
        &[
            ("trueio powercut witness --listen 127.0.0.1:7000", "for a virtual machine on this host"),
            ("trueio powercut witness --listen 0.0.0.0:7000 --token-file token", "for another machine, with a token"),
        ],
    ),
    (
        "powercut arm",
        &[
            ("trueio powercut arm /mnt/data --witness 10.0.0.2:7000", "write until the power goes"),
            (
                "trueio powercut arm /mnt/data --witness 10.0.0.2:7000 --token-file token --discard",
                "the same, in place of a round that was not verified",
            ),
        ],
    ),
    (
        "powercut verify",
        &[
            ("trueio powercut verify /mnt/data --witness 10.0.0.2:7000", "after the power came back"),
            ("trueio powercut verify /mnt/data --witness 10.0.0.2:7000 --token-file token", "the same, with a token"),
        ],
    ),
    (
        "powercut disk",
        &[
            (
                "trueio powercut disk disk.img --size 1g --log writes.log",
                "a new file as /dev/nbdN, with a log of its writes",
            ),
            ("trueio powercut disk disk.img --cut", "cut the power of that disk"),
        ],
    ),
    (
        "powercut replay",
        &[
            (
                "trueio powercut replay writes.log --check 'fsck.ext4 -fn {}'",
                "every legal crash image of a log, each examined by a command",
            ),
            (
                "trueio powercut replay writes.log --base before.img --mount ext4 --check 'test -e {}/commit' --seed 7",
                "the same with a mounted filesystem, and the choice of an earlier run",
            ),
        ],
    ),
    (
        "device",
        &[
            ("trueio device /mnt/data", "the filesystem, the layers and the disks under a directory"),
            ("trueio device /dev/nvme0n1 --json", "every fact with its source"),
        ],
    ),
    (
        "usb",
        &[
            ("trueio usb list", "which driver each USB disk has"),
            ("trueio usb explain sdb", "why a disk runs on UAS or BOT"),
        ],
    ),
    ("usb list", &[("trueio usb list", "the tree and the table"), ("trueio usb list --table", "one line a disk")]),
    (
        "usb explain",
        &[
            ("trueio usb explain", "every USB disk"),
            ("trueio usb explain sdb --json", "the rules and facts for one disk"),
        ],
    ),
    ("usb switch", &[("trueio usb switch sdb uas", "to UAS, as root"), ("trueio usb switch sdb bot", "to BOT")]),
    (
        "usb serve",
        &[
            ("trueio usb serve 2-1", "the disk at a port, as a block device"),
            ("trueio usb serve 2-1 --lun 1", "another of its units"),
        ],
    ),
    (
        "usb build-driver",
        &[
            ("trueio usb build-driver --undo sdb", "back to BOT, and the module unloaded"),
            ("trueio usb build-driver --kernel-tree linux --output uas.ko", "the module, from a kernel tree"),
        ],
    ),
    (
        "doctor",
        &[
            ("trueio doctor", "which engines and which evidence work here"),
            ("trueio doctor --json doctor.json", "the same for a program"),
        ],
    ),
    (
        "selftest",
        &[
            ("trueio selftest", "in this directory, in about 20 seconds"),
            ("sudo trueio selftest /mnt/data", "all causes, on the disk under a directory"),
        ],
    ),
    (
        "history",
        &[
            ("trueio history", "the newest runs"),
            ("trueio history --device /mnt/data --since 7d", "those of the last week on one disk"),
        ],
    ),
    (
        "history list",
        &[
            ("trueio history list --limit 50", "the newest 50 runs"),
            ("trueio history list --tag before --json", "those with a tag, for a program"),
        ],
    ),
    (
        "history devices",
        &[
            ("trueio history devices", "the measured devices"),
            ("trueio history devices --json", "the same for a program"),
        ],
    ),
    (
        "history show",
        &[
            ("trueio history show 3f9c21ab", "a run with its figures"),
            ("trueio history show 3f9c21ab --json run.json", "all that is stored of it, for `import`"),
        ],
    ),
    (
        "history tag",
        &[
            ("trueio history tag 3f9c21ab before", "one tag"),
            ("trueio history tag 3f9c21ab before kernel-6.12", "two tags"),
        ],
    ),
    (
        "history untag",
        &[
            ("trueio history untag 3f9c21ab before", "one tag"),
            ("trueio history untag 3f9c21ab before kernel-6.12", "two tags"),
        ],
    ),
    (
        "history note",
        &[("trueio history note 3f9c21ab 'new firmware'", "a note"), ("trueio history note 3f9c21ab ''", "none")],
    ),
    (
        "history delete",
        &[("trueio history delete 3f9c21ab", "one run"), ("trueio history delete 3f9c21ab 8d01e2f4", "two runs")],
    ),
    (
        "history compare",
        &[
            ("trueio history compare", "the newest run with the one before it"),
            ("trueio history compare 3f9c21ab -- --fail-if 'p99 > +5%'", "a run, with a gate"),
        ],
    ),
    (
        "history trend",
        &[
            ("trueio history trend", "the device of the newest run"),
            ("trueio history trend /mnt/data --metric p99 --html trend.html", "one metric of a disk, and a page"),
        ],
    ),
    (
        "history import",
        &[
            ("trueio history import record.json", "a record of another machine"),
            ("trueio history import fio.json --tag fio", "a result of fio, with a tag"),
        ],
    ),
    (
        "history export",
        &[
            ("trueio history export figures.csv", "a table of all figures"),
            ("trueio history export runs.jsonl --since 30d", "whole runs, for `import`"),
        ],
    ),
    (
        "report",
        &[
            ("trueio report 3f9c21ab -v", "every detail of an earlier run"),
            ("trueio report page.html --csv figures.csv", "the figures of a page as a table"),
        ],
    ),
    ("reference", &[("trueio reference", "every option of jobs"), ("trueio reference --color never", "the same")]),
    (
        "schema",
        &[("trueio schema record", "of the JSON of a run"), ("trueio schema job", "of job files, for an editor")],
    ),
    (
        "completions",
        &[
            ("trueio completions bash", "for: source <(trueio completions bash)"),
            ("trueio completions zsh", "for: source <(trueio completions zsh), after compinit"),
        ],
    ),
    (
        "man",
        &[("trueio man run", "one page: trueio man run | man -l -"), ("trueio man --list", "the names of all pages")],
    ),
];

/// Arguments that `-h` leaves out, and `--help` lists.
const LONG_ONLY: [&str; 31] = [
    "markdown",
    "csv",
    "prom",
    "junit",
    "hdr",
    "progress-fd",
    "no-evidence",
    "accept",
    "wait-idle",
    "replace",
    "name",
    "order-seed",
    "accept-difference",
    "slice",
    "overwrite-signature",
    "trace-syscalls",
    "trace_syscalls",
    "sync",
    "ramp_time",
    "steady_state",
    "verify",
    "end_fsync",
    "rwmixread",
    "rate_iops",
    "time_based",
    "color",
    "until",
    "budget",
    "direct",
    "fdatasync",
    "numjobs",
];

/// Returns the examples of a command with their heading; empty if it has none.
pub(crate) fn text_of(words: &str) -> String {
    let found = EXAMPLES.iter().find(|(known, _)| *known == words).map_or(&[][..], |(_, examples)| examples);
    let lines = found.iter().map(|(line, meaning)| format!("  {line}\n      {meaning}\n"));
    lines.fold(String::new(), |text, line| if text.is_empty() { format!("EXAMPLES\n{line}") } else { text + &line })
}

/// Adds to a command and its subcommands what follows the options: all of it for `--help`, one line for `-h`.
pub(crate) fn with_examples(command: Command, words: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|nested| nested.get_name().to_owned()).collect();
    let command = names.iter().fold(command, |command, name| {
        let path = if words.is_empty() { name.clone() } else { format!("{words} {name}") };
        command.mut_subcommand(name, |nested| with_examples(nested, &path))
    });
    let mut text = text_of(words);
    if text.is_empty() {
        return command;
    }
    if let Some(more) = command.get_after_help() {
        text.push_str(&format!("\n{more}"));
    }
    let has_long = command.get_arguments().any(|argument| LONG_ONLY.contains(&argument.get_id().as_str()));
    let brief = if has_long { "`--help` has more options, and examples." } else { "`--help` has examples." };
    let command = command.after_long_help(text).after_help(brief);
    command.mut_args(|argument| {
        let is_long = LONG_ONLY.contains(&argument.get_id().as_str());
        if is_long { argument.hide_short_help(true) } else { argument }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;

    /// Splits a line as a shell does; quotes are single ones.
    fn words_of(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (index, part) in line.split('\'').enumerate() {
            match index % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words
    }

    fn visit(command: &Command, words: &str, found: &mut Vec<(String, String, String)>) {
        for nested in command.get_subcommands().filter(|one| one.get_name() != "help" && !one.is_hide_set()) {
            let path =
                if words.is_empty() { nested.get_name().to_owned() } else { format!("{words} {}", nested.get_name()) };
            let (long, short) = (nested.clone().render_long_help(), nested.clone().render_help());
            found.push((path.clone(), long.to_string(), short.to_string()));
            visit(nested, &path, found);
        }
    }

    /// Goal: the help of each command has two examples, which parse, and `-h` leaves them out.
    #[test]
    fn every_command_has_two_examples_that_parse() {
        let mut commands = Vec::new();
        visit(&arguments::brief(), "", &mut commands);
        assert!(commands.len() > 30, "{}", commands.len());
        for (path, long, short) in &commands {
            assert!(short.len() < long.len() && !short.contains("EXAMPLES"), "{path}: {short}");
            let (_, text) = long.split_once("EXAMPLES\n").unwrap_or_else(|| panic!("{path} has no examples: {long}"));
            let lines: Vec<&str> = text.lines().take_while(|line| line.starts_with("  ")).collect();
            let examples: Vec<&str> = lines.into_iter().filter(|line| !line.starts_with("   ")).collect();
            assert!(examples.len() >= 2, "{path}: {examples:?}");
            // Help may be wrapped, so the lines are those of the table.
            let table = EXAMPLES.iter().find(|(known, _)| known == path).expect("its examples").1;
            for (line, _) in table {
                let all = words_of(line);
                let begin = all.iter().position(|word| word == "trueio").expect("the program");
                let typed = &all[begin..];
                assert!(typed[1..].join(" ").starts_with(path.as_str()), "{path}: `{line}` is of another command");
                if path == "fio" {
                    continue;
                }
                match arguments::parse(typed) {
                    Ok(_) => {}
                    Err(error) if error.kind() == clap::error::ErrorKind::DisplayHelp => {}
                    Err(error) => panic!("`{line}`: {error}"),
                }
            }
        }
    }
}
