//! Directories in the names of fio's files: created as fio creates them, and only if they are needed.

use crate::common::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

fn ours(sandbox: &Sandbox, line: &str) -> Command {
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    sandbox.command(&words)
}

fn run(mut command: Command) -> Ran {
    Ran::of(command.output().expect("it starts"))
}

/// Runs a command under umask 027.
fn with_umask(mut command: Command) -> Command {
    let mask = || {
        // SAFETY: it sets a number of this process, and cannot fail.
        unsafe { libc::umask(0o027) };
        Ok(())
    };
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(mask) };
    command
}

/// Returns all names below a directory, directories with their mode, files with their length.
fn tree(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let metadata = fs::symlink_metadata(&path).expect("it is there");
            let name = path.strip_prefix(root).expect("it is below").display().to_string();
            if metadata.is_dir() {
                found.push(format!("{name}/ {:04o}", metadata.mode() & 0o7777));
                left.push(path);
            } else {
                found.push(format!("{name} {}", metadata.len()));
            }
        }
    }
    found.sort();
    found
}

/// Goal: the same directories as with fio remain, with the same modes and files.
/// Method: each line in two equal directories, under a umask. The results are also compared with expected ones, for machines
/// without fio.
#[test]
fn directories_in_names_are_created_as_in_fio_and_stay() {
    let known: &[(&str, &[&str])] = &[
        ("--name=a/b/c --rw=write", &["a/ 0700", "a/b/ 0700", "a/b/c.0.0 8192"]),
        ("--name=x --filename=p/q/r --rw=randwrite", &["p/ 0700", "p/q/ 0700", "p/q/r 8192"]),
        ("--name=x --filename=p/q/r --rw=read", &["p/ 0700", "p/q/ 0700", "p/q/r 8192"]),
        ("--name=x --filename=p/q/r --rw=write --unlink=1", &["p/ 0700", "p/q/ 0700"]),
        ("--name=x --filename=p//q/./r --rw=write", &["p/ 0700", "p/q/ 0700", "p/q/r 8192"]),
        ("--name=x --filename=p/a:p/b --rw=write", &["p/ 0700", "p/a 4096", "p/b 4096"]),
        ("--name=x --directory=old --filename=p/q --rw=write", &["old/p/ 0700", "old/p/q 8192"]),
        ("--name=x --filename=old/../p/q --rw=write", &["p/ 0700", "p/q 8192"]),
        ("--name=x --filename=link/p/q --rw=write", &["old/p/ 0700", "old/p/q 8192"]),
        (
            "--name=x --filename_format=$jobname/$jobnum/$filenum --nrfiles=2 --numjobs=2 --rw=write",
            &["x/ 0700", "x/0/ 0700", "x/0/0 4096", "x/0/1 4096", "x/1/ 0700", "x/1/0 4096", "x/1/1 4096"],
        ),
        ("--name=p/a --rw=write --name=p/b --rw=write --stonewall", &["p/ 0700", "p/a.0.0 8192", "p/b.0.0 8192"]),
        ("--name=x --filename=p/q --rw=write --ioengine=null", &[]),
    ];
    for (line, new) in known {
        let (job, rest) = line.split_once(' ').expect("words");
        let line = format!("--size=8k --bs=4k {job} {rest}");
        let sandboxes = [Sandbox::new(), Sandbox::new()];
        let theirs = real_fio(&sandboxes[1], &line);
        let commands = [("ours", Some(ours(&sandboxes[0], &line))), ("fio", theirs)];
        for (sandbox, (who, command)) in sandboxes.iter().zip(commands) {
            let Some(command) = command else { continue };
            fs::create_dir(sandbox.path("old")).expect("a directory");
            fs::set_permissions(sandbox.path("old"), fs::Permissions::from_mode(0o755)).expect("it is ours");
            symlink("old", sandbox.path("link")).expect("a link");
            let before = tree(sandbox.root());
            let ran = run(with_umask(command));
            assert_eq!(ran.code, Some(0), "{who} {line}\n{}", ran.err);
            let added: Vec<String> = tree(sandbox.root()).into_iter().filter(|name| !before.contains(name)).collect();
            assert_eq!(added, *new, "{who} {line}");
        }
    }
}

/// Goal: a refused job creates neither a file nor a directory.
#[test]
fn unneeded_directories_are_not_created() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("old")).expect("a directory");
    fs::write(sandbox.path("file"), [7; 8192]).expect("a file");
    symlink("nowhere", sandbox.path("dangling")).expect("a link");
    let before = tree(sandbox.root());
    let write = "--size=8k --bs=4k --rw=write --name=x";
    for (line, words) in [
        // The directory of `directory` must exist, in fio, too.
        ("--directory=new", "the directory `new` does not exist"),
        ("--directory=new --filename=p/q", "the directory `new` does not exist"),
        ("--directory=old/new --filename=p/q", "the directory `old/new` does not exist"),
        ("--filename=p/q --allow_file_create=0", "`--allow_file_create=0` forbids its creation"),
        ("--filename=p/q --readonly", "`--readonly` forbids it"),
        ("--filename=p/q --rw=read --readonly", "`--readonly` forbids its creation"),
        ("--filename=file/p/q", "Not a directory"),
        ("--filename=dangling/p/q", "a symbolic link to nothing"),
        ("--filename=new/../p", "`..` follows a directory that does not exist"),
        ("--filename=p/q/", "its name ends with a slash"),
        ("--filename=p:p/q", "job `x` creates it as a file"),
        ("--filename=/dev/trueio-typo/x", "is the device's name mistyped?"),
        ("--filename=/dev/disk/trueio-typo/x", "is the device's name mistyped?"),
        ("--filename=/proc/trueio/x", "`/proc` is not for files"),
        ("--filename=p/q --size=800t", "the files to be created need 800 TiB"),
        ("--filename=p/q --name=y --filename=p", "creates it as a file"),
        ("--ioengine=filecreate --directory=new", "the directory `new` does not exist"),
    ] {
        if line.contains("/dev/disk/") && !Path::new("/dev/disk").exists() {
            eprintln!("skipped: /dev/disk is not there");
            continue;
        }
        let ran = run(ours(&sandbox, &format!("{write} {line}")));
        assert_eq!(ran.code, Some(1), "{line}\n{}", ran.out);
        assert!(joined(&ran.err).contains(words), "{line}\n{}", ran.err);
        assert_eq!(tree(sandbox.root()), before, "{line}");
    }
    assert!(!Path::new("/dev/trueio-typo").exists());
    // A log names files; fio creates no directories for them, either.
    sandbox.write("log", "fio version 2 iolog\np/q add\np/q open\np/q write 0 4096\np/q close\n");
    let before = tree(sandbox.root());
    let ran = run(ours(&sandbox, "--name=r --read_iolog=log"));
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("the directory `p` does not exist"), "{}", ran.err);
    // TOML jobs create none, either.
    sandbox.run(&["run", "--rw=write", "--size=8k", "--filename=p/q"]).assert_refused(&["rule: directory_missing"]);
    // Neither `explain` nor reading an existing file creates anything.
    for line in ["--name=a/b --size=8k --parse-only", "--name=a/b --filename=file --size=8k --rw=read"] {
        assert_eq!(run(ours(&sandbox, line)).code, Some(0), "{line}");
    }
    assert_eq!(tree(sandbox.root()), before);
}

/// Goal: directories belong to the job's user, and jobs of other users are refused if they need them.
#[test]
fn directories_belong_to_the_jobs_user() {
    if lacks("root") {
        return;
    }
    const AS_NOBODY: &str = "--uid=65534 --gid=65533";
    let sandbox = Sandbox::new();
    fs::set_permissions(sandbox.root(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let home = tempfile::Builder::new().prefix("trueio-nobody-").tempdir().expect("a directory");
    chown(home.path(), Some(65_534), Some(65_533)).expect("it is ours");
    let at = home.path().display();
    let job = "--rw=write --size=4k";
    let refused = |line: &str, words: &str| {
        let before = tree(home.path());
        let ran = run(ours(&sandbox, line));
        assert_eq!(ran.code, Some(1), "{line}\n{}", ran.out);
        assert!(joined(&ran.err).contains(words), "{line}\n{}", ran.err);
        assert_eq!(tree(home.path()), before, "{line}");
    };
    let ran = run(ours(&sandbox, &format!("--name=a --filename={at}/p/q/r {job} {AS_NOBODY}")));
    if ran.code != Some(0) && ran.err.contains("may not create files") {
        eprintln!("skipped: the user `nobody` cannot use {at}");
        return;
    }
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    for name in ["p", "p/q", "p/q/r"] {
        let made = fs::metadata(home.path().join(name)).expect("it is there");
        assert_eq!((made.uid(), made.gid()), (65_534, 65_533), "{name}");
    }
    // The nearest existing directory belongs to root.
    fs::create_dir(home.path().join("roots")).expect("a directory");
    let words = format!("user 65534 (group 65533) may not create files in `{at}/roots`");
    refused(&format!("--name=a --filename={at}/roots/p/q {job} {AS_NOBODY}"), &words);
    // An earlier job of root creates it.
    let words =
        format!("may not create files in `{at}/s`: job `a` creates it as another user, with access for that user only");
    refused(&format!("--name=a --filename={at}/s/f {job} --name=b --filename={at}/s/t/g {job} {AS_NOBODY}"), &words);
}

/// Goal: a link that takes the name of a directory between plan and creation is not followed.
/// Method: a first job that takes a while, and a directory of the second that becomes a link meanwhile.
#[test]
fn a_link_in_place_of_a_created_directory_is_not_followed() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("precious")).expect("a directory");
    // A command of the first job creates the link, after all planning.
    let mut command = ours(
        &sandbox,
        "--allow-exec --name=first --ioengine=null --size=4k --name=second --stonewall --filename=p/q --size=8k --rw=write",
    );
    command.args(["--name=last", "--stonewall", "--filename=s/t", "--size=8k", "--rw=write"]);
    let script = "ln -s precious p";
    let mut words: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let at = words.iter().position(|word| word == "--size=4k").expect("a word") + 1;
    words.insert(at, format!("--exec_prerun={script}"));
    let ran = sandbox.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    // Two jobs failed: the second, and the last, which did not run.
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    assert!(joined(&ran.err).contains("the directory `p` cannot be created"), "{}", ran.err);
    assert_eq!(fs::read_dir(sandbox.path("precious")).expect("it is there").count(), 0);
    assert!(!sandbox.path("s").exists(), "the run went on");
}
