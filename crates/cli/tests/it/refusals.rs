//! Sixteen known good refusals keep their words and exit codes. Those of devices that are in use are in disguises.rs and targets.rs.

use crate::common::*;
use std::os::unix::fs::symlink;

/// One refusal: the command, its exit code and all words of its message. `{root}` is the working directory.
struct Known {
    command: &'static str,
    code: i32,
    words: &'static str,
}

const fn known(command: &'static str, words: &'static str) -> Known {
    Known { command, code: 2, words }
}

const KNOWN: [Known; 16] = [
    known(
        "run --rw write --filename data --size 64k",
        "error: job `job` was not started\n  because: `data` exists (a file) and the job would overwrite it\n  set by: --rw\n  \
         rule: existing_target_not_named\n\nhint: its content would be lost; if that is intended, set `--overwrite_existing \
         data`; without `--filename` the job creates its own file\n",
    ),
    known(
        "run --rw write --filename data --size 64k --overwrite_existing ./data",
        "error: job `job` was not started\n  because: `--overwrite_existing` names `./data`, which is not a target of this job\n  \
         set by: --overwrite_existing\n  rule: named_for_overwrite_not_used\n\nhint: spell it exactly as the target: `data`\n",
    ),
    known(
        "run --rw write --filename link --size 64k --overwrite_existing link",
        "error: job `job` was not started\n  because: `link` is a symbolic link to `{root}/data`, and a job writes through no \
         link\n  set by: --filename\n  rule: target_is_link\n\nhint: name the link's target: `--filename {root}/data`, \
         `--overwrite_existing {root}/data`\n",
    ),
    known(
        "run --rw read --filename data --write_iolog ./data",
        "error: nothing was started\n  because: `--write_iolog` of job `job` would replace `data`, which job `job` uses: `./data` \
         is the same file\n  rule: output_replaces\n\nhint: name another file for one of them\n",
    ),
    known(
        "run --size 64k --json missing/out.json",
        "error: nothing was started\n  because: --json `missing/out.json` cannot be written: `missing` is not a directory\n  \
         rule: output_impossible\n\nhint: name another file for it\n",
    ),
    known(
        "run --size 64k --write_iolog thesis.txt",
        "error: nothing was started\n  because: `--write_iolog` of job `job` would replace `thesis.txt`, which is not an iolog of \
         trueio or fio\n  rule: output_unrecognised\n\nhint: its content would be lost: name another file, or move this one \
         away\n",
    ),
    known(
        "run --rw write --filename sub --size 64k --overwrite_existing sub",
        "error: job `job` was not started\n  because: `sub` is a directory, but a file or block device is needed\n  set by: \
         --filename\n  rule: wrong_kind_of_target\n\nhint: set `--directory` instead; the job then creates its own file there\n",
    ),
    known(
        "run --rw write --filename /dev/trueio-mistyped --size 64k",
        "error: job `job` was not started\n  because: `/dev/trueio-mistyped` cannot be created: /dev is not for files; is the \
         device's name mistyped?\n  set by: --filename\n  rule: cannot_create_here\n\nhint: choose another directory\n",
    ),
    known(
        "run --rw write --filename none/x --size 64k",
        "error: job `job` was not started\n  because: `none/x` cannot be created: the directory `none` does not exist\n  set by: \
         --filename\n  rule: directory_missing\n\nhint: create `none` first, or correct the path\n",
    ),
    known(
        "run --rw write --filename dangling --size 64k",
        "error: job `job` was not started\n  because: `dangling` cannot be examined: a symbolic link to nothing\n  set by: \
         --filename\n  rule: target_unreadable\n\nhint: check the path and its permissions\n",
    ),
    known(
        "run --rw read --filename data --size 1m",
        "error: job `job` was not started\n  because: the region of 1 MiB from offset 0 B ends beyond `data`, whose size is 64 \
         KiB\n  set by: --size\n  rule: size_beyond_target\n\nhint: at most 64 KiB are left from this offset: set a smaller \
         `--size`; an existing file is extended only if `--extend_existing`, an option of trueio's, names it\n",
    ),
    known(
        "run --rw read --filename data --bs 1m",
        "error: job `job` was not started\n  because: a block of 1 MiB does not fit into the region of 64 KiB in `data`\n  rule: \
         block_beyond_size\n\nhint: set a larger `--size` or a smaller `--bs`\n",
    ),
    known(
        "run --ioengine psync --iodepth 4 --size 64k",
        "error: job `job` was not started\n  because: `--iodepth 4`, but the engine `psync` has one I/O in flight at a time\n  \
         set by: --iodepth\n  rule: depth_on_blocking_engine\n\nhint: use `--ioengine io_uring` or `--ioengine libaio` for a queue, \
         or `--numjobs` for more workers\n",
    ),
    known(
        "run --size 64k --bs 4x",
        "error: `--bs`: `x` is not a unit of size; use k, m, g, t (powers of 1024) or MB, GB (1000)\n\nhint: it takes a size, \
         such as `4k`, or three for read, write, trim: `4k,8k,1m`\n",
    ),
    known("baseline data", "error: the size of `data` is 64 KiB; at least 16 MiB is needed\n"),
    Known {
        command: "fio --name=a --rw=write --filename=data --overwrite_signature=ext4 --size=64k",
        code: 1,
        words: "error: job `a` was not started\n  because: `--overwrite_signature` names `ext4`, which no target of this job has; \
                found: nothing\n  set by: --overwrite_signature\n  rule: signature_not_there\n\nhint: correct the name or leave \
                it out; a wrong name may mean the wrong device\n",
    },
];

/// Goal: users and scripts recognize a refusal by its words and its exit code. Nothing is changed by any of them.
#[test]
fn sixteen_known_refusals_keep_their_words_and_exit_codes() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 64 << 10);
    sandbox.write("thesis.txt", "Chapter 1\n");
    symlink("data", sandbox.path("link")).expect("a link");
    symlink("nothing", sandbox.path("dangling")).expect("a link");
    std::fs::create_dir(sandbox.path("sub")).expect("a directory");
    let root = sandbox.root().canonicalize().expect("a directory");
    let before = sandbox.listing();
    for Known { command, code, words } in KNOWN {
        let ran = sandbox.run(&command.split(' ').collect::<Vec<_>>());
        ran.assert_code(code);
        assert_eq!(ran.err, words.replace("{root}", root.to_str().expect("UTF-8")), "{command}");
        assert_eq!(ran.out, "", "{command}");
        assert_eq!(sandbox.listing(), before, "{command}");
    }
}

/// Goal: a refusal names options in the language of the request: flags, a TOML job, fio's command line and job file, IOR, mdtest.
#[test]
fn a_refusal_names_options_as_the_user_wrote_them() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 64 << 10);
    sandbox.write("new.toml", "[job.a]\nrw = \"write\"\nfilename = \"new\"\n");
    sandbox.write("new.fio", "[a]\nrw=write\nfilename=new\n");
    sandbox.write("large.fio", "[a]\nrw=read\nfilename=data\nblocksize=1m\n");
    for (command, words) in [
        ("run --rw write --filename new", "set `--size`, such as `--size 1g`"),
        ("run new.toml", "set `size`, such as `size = \"1g\"`"),
        ("run new.fio", "set `size`, such as `size=1g`"),
        ("fio new.fio", "set `size`, such as `size=1g`"),
        ("fio --name=a --rw=write --filename=new", "set `--size`, such as `--size=1g`"),
        (
            "fio --name=a --rw=write --size=64k --nrfiles=4 --numjobs=2 --allow_file_create=0",
            "`a.0.0` and 7 other files do not exist, and `--allow_file_create=0` forbids their creation",
        ),
        ("fio --name=a --readwrite=write --size=64k --readonly", "would write or trim (`--readwrite=write`)"),
        ("fio large.fio", "set a larger `size` or a smaller `blocksize`"),
        ("fio --name=a --rw=read --filename=data --blocksize=1m", "set a larger `--size` or a smaller `--blocksize`"),
        (
            "fio --name=a --rw=write --filename=new --size=8k --cpus_allowed=4095",
            "`--cpus_allowed` names processor 4095",
        ),
        ("ior -w -b 400tb -t 1mb -o new", "set a smaller `-b`, or another `-o`"),
        ("ior -w -b 4mb -t 1mb -o none/new", "set by: -o"),
        ("mdtest -n 10 -z 3 -b 4", "(`-z 3 -b 4`)"),
        ("mdtest -n 10 -w 100mb -C -F -d .", "`-w`: it is at most 64 MiB"),
    ] {
        let ran = sandbox.run(&command.split(' ').collect::<Vec<_>>());
        assert!(ran.code != Some(0) && joined(&ran.err).contains(words), "{command}: {}", ran.err);
        assert_eq!(ran.err.matches("error:").count(), 1, "{command}: {}", ran.err);
    }
    assert!(!sandbox.path("new").exists());
}

/// Goal: a write to a read-only device is refused with that reason, before the job starts. Root may open such a device for
/// writing; each write then fails with "Operation not permitted".
#[test]
fn writing_to_a_read_only_device_is_refused_as_read_only() {
    let device = match Loop::create(4 << 20, &["--read-only"]) {
        Ok(device) => device,
        Err(reason) => return trueio_testkit::skip("loop", &reason),
    };
    let sandbox = Sandbox::new();
    let path = device.path().to_str().expect("UTF-8");
    for command in [
        format!("fio --name=a --rw=write --filename={path} --size=64k"),
        format!("fio --name=a --rw=randtrim --filename={path} --size=64k"),
        format!("run --rw write --filename {path} --size 64k --overwrite_existing {path}"),
        format!("ior -w -E -b 64k -t 4k -o {path}"),
    ] {
        let ran = sandbox.run(&command.split(' ').collect::<Vec<_>>());
        let reason = format!("`{path}` is read-only (reported by /sys/dev/block/");
        assert!(ran.code != Some(0) && joined(&ran.err).contains(&reason), "{command}: {}", ran.err);
    }
    let read = sandbox.run(&["fio", "--name=a", "--rw=read", &format!("--filename={path}"), "--size=64k"]);
    read.assert_code(0);
}

/// Goal: scripts find fio's lines about blocks that differ on standard error, next to our sentence.
#[test]
fn a_block_that_differs_has_the_line_of_fio_next_to_ours() {
    let sandbox = Sandbox::new();
    let job = ["fio", "--name=a", "--filename=v", "--size=64k", "--bs=4k", "--verify=crc32c"];
    for (at, line) in [
        (
            6000,
            "crc32c: verify failed at file v offset 4096, length 4096 (requested block: offset=4096, length=4096, flags=8)",
        ),
        (6000, "       Expected CRC: "),
        (6000, "       Received CRC: "),
        (8192, "verify: bad magic header 5858, wanted "),
        (8208, "verify: bad header offset "),
    ] {
        sandbox.run(&[&job[..], &["--rw=write", "--do_verify=0"]].concat()).assert_code(0);
        let mut bytes = std::fs::read(sandbox.path("v")).expect("a file");
        bytes[at..at + 4].copy_from_slice(b"XXXX");
        std::fs::write(sandbox.path("v"), bytes).expect("a file");
        let ran = sandbox.run(&[&job[..], &["--rw=read"]].concat());
        ran.assert_code(1);
        assert!(ran.err.lines().any(|found| found.starts_with(line)), "{line}: {}", ran.err);
        assert!(ran.err.contains("did not read back as written"), "{}", ran.err);
    }
}
