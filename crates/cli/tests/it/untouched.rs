//! A refused run touches nothing: its system calls, one by one.
//!
//! Each refusal runs under `strace`, and its calls are compared with a short list of calls that
//! change nothing. A run that is not refused is checked in the same way, to show that the test can
//! fail.
//!
//! Limit: `strace` records only kinds of calls that can write, create, rename or remove files.

use crate::common::*;
use std::fs;
use std::path::PathBuf;

/// Calls that may change something. Opening is among them for its flags; `ioctl` for BLKDISCARD and
/// its like; `io_uring_enter` and `io_submit` because both can write.
const WATCHED: &str = "open,openat,openat2,creat,mknod,mknodat,mkdir,mkdirat,unlink,unlinkat,rmdir,rename,renameat,\
                       renameat2,link,linkat,symlink,symlinkat,truncate,ftruncate,fallocate,chmod,fchmod,fchmodat,\
                       chown,fchown,fchownat,utimensat,setxattr,fsetxattr,mount,umount2,swapon,swapoff,ioctl,write,\
                       writev,pwrite64,pwritev,pwritev2,sendfile,copy_file_range,splice,io_submit,io_uring_enter,\
                       sync,syncfs,fsync,fdatasync,sync_file_range,msync";

/// Questions that change nothing.
const HARMLESS_IOCTLS: [&str; 14] = [
    "LOOP_GET_STATUS64",
    "BLKGETDISKSEQ",
    "_IOC(_IOC_READ, 0x12, 0x80, 0x8)",
    "FS_IOC_GETFSUUID",
    // The same in the words of an older strace.
    "_IOC(_IOC_READ, 0x15, 0, 0x11)",
    "TCGETS",
    "TIOCGWINSZ",
    "BLKGETSIZE64",
    "BLKSSZGET",
    "BLKPBSZGET",
    "BLKROGET",
    "BLKIOMIN",
    "BLKIOOPT",
    "BLKALIGNOFF",
];

/// Returns the calls of a command that changed something or opened something for a change, without its output on
/// stdout and stderr.
fn changes(sandbox: &Sandbox, arguments: &[&str]) -> (Ran, Vec<String>) {
    let trace = sandbox.aside("trace");
    let plain = sandbox.command(arguments);
    let mut traced = std::process::Command::new("strace");
    traced.args(["-f", "-qq", "-e", &format!("trace={WATCHED}"), "-e", "signal=none", "-o"]).arg(&trace);
    traced.arg(plain.get_program()).args(plain.get_args()).current_dir(sandbox.root());
    traced.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    traced.stdin(std::process::Stdio::null());
    let ran = Ran::of(traced.output().expect("strace"));
    let text = fs::read_to_string(&trace).expect("a trace");
    assert!(text.contains("openat("), "nothing was traced\n{text}");
    let calls = text.lines().filter(|line| is_change(line)).map(str::to_owned).collect();
    (ran, calls)
}

/// `1234  openat(AT_FDCWD, "/proc/swaps", O_RDONLY|O_CLOEXEC) = 3`
fn is_change(line: &str) -> bool {
    let call = line.split_once(' ').map_or(line, |(_, rest)| rest.trim_start());
    let (name, arguments) = call.split_once('(').unwrap_or((call, ""));
    match name {
        "open" | "openat" | "openat2" => {
            ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE"].iter().any(|flag| arguments.contains(flag))
        }
        "write" | "writev" => !arguments.starts_with("1,") && !arguments.starts_with("2,"),
        "ioctl" => {
            let request = arguments.split_once(", ").map_or("", |(_, rest)| rest);
            !HARMLESS_IOCTLS.iter().any(|harmless| request.starts_with(harmless))
        }
        _ => true,
    }
}

#[track_caller]
fn assert_untouched(sandbox: &Sandbox, arguments: &[&str], rule: &str) {
    let (ran, changes) = changes(sandbox, arguments);
    ran.assert_refused(&[rule]);
    assert_eq!(changes, [""; 0], "{arguments:?}");
}

/// Goal: no refusal opens anything for writing, makes a file, or sends a device more than questions.
/// Method: a refusal of each kind, of files and directories, under `strace`. The history is among
/// what is not touched: it does not exist before and does not afterwards.
#[test]
fn a_refused_run_opens_nothing_for_writing() {
    if lacks("strace") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 1 << 20);
    fs::create_dir(sandbox.path("sub")).expect("a directory");
    sandbox.write("trueio-taken-0.dat", "somebody's");
    sandbox.write("bad.toml", "[job.a]\nrw = \"randraed\"\n");
    let before = sandbox.listing();
    let cases: &[(&[&str], &str)] = &[
        (&["run", "--rw", "write", "--filename", "data"], "existing_target_not_named"),
        (&["run", "--rw", "randtrim", "--filename", "./data"], "existing_target_not_named"),
        (
            &["run", "--rw", "write", "--filename", "data", "--overwrite_existing", "./data"],
            "named_for_overwrite_not_used",
        ),
        (&["run", "--rw", "write", "--filename", "new", "--overwrite_existing", "new"], "named_for_overwrite_missing"),
        (&["run", "--rw", "read", "--size", "2m", "--filename", "data"], "size_beyond_target"),
        (&["run", "--rw", "write", "--size", "1m", "--name", "taken"], "generated_name_taken"),
        (&["run", "--rw", "write", "--filename", "new"], "size_missing"),
        (&["run", "--rw", "write", "--size", "800t"], "size_beyond_free_space"),
        (&["run", "--rw", "write", "--size", "1m", "--filename", "sub"], "wrong_kind_of_target"),
        (&["run", "--rw", "write", "--size", "1m", "--filename", "nowhere/new"], "directory_missing"),
        (&["run", "--rw", "write", "--size", "1m", "--filename", "/dev/sdzz"], "cannot_create_here"),
        (&["run", "--rw", "write", "--size", "1m", "--cpus_allowed", "8000"], "processor_not_there"),
        (
            &["run", "--rw", "write", "--size", "1m", "--ioengine", "psync", "--iodepth", "4"],
            "depth_on_blocking_engine",
        ),
        (&["run", "--rw", "read", "--filename", "data", "--direct", "require", "--bs", "1000"], "misaligned"),
        (&["run", "--rw", "write", "--size", "1m", "--filename", "new", "--json", "new"], "--json would replace"),
        (&["run", "--rw", "write", "--size", "1m", "--json", "nowhere/record"], "is not a directory"),
        (&["run", "bad.toml"], "did you mean `randread`?"),
        (&["run", "nowhere.toml"], "cannot be read"),
        (&["run", "--rw", "randraed"], "randread"),
        (&["explain", "--rw", "write", "--filename", "data"], "existing_target_not_named"),
        (&["baseline", "--quick", "data"], "at least 16 MiB is needed"),
        (&["baseline", "--quick", "nowhere"], "does not exist"),
        (&["baseline", "--quick", ".", "--overwrite", "."], "overwrites nothing"),
        (&["baseline", "--quick", "data", "--overwrite", "./data"], "spelled the same"),
        (&["baseline", "--quick", ".", "--json", "sub"], "it is a directory"),
    ];
    for (arguments, rule) in cases {
        assert_untouched(&sandbox, arguments, rule);
    }
    assert_eq!(sandbox.listing(), before);
    let history: PathBuf = sandbox.aside("trueio");
    assert!(!history.exists(), "the history was made");

    // The same eyes see a run that is not refused.
    let job = ["run", "--rw", "write", "--size", "64k", "--filename", "data", "--overwrite_existing", "data"];
    let (ran, changes) = changes(&sandbox, &job);
    ran.assert_code(0);
    for call in [", O_RDWR|", "history.sqlite3\", O_RDWR|O_CREAT"] {
        assert!(changes.iter().any(|line| line.contains(call)), "`{call}` was not seen\n{}", changes.join("\n"));
    }
}

/// Goal: the same for block devices, where a mistake loses most.
/// Method: a device that is not named, mounted, has a signature, is claimed; with `run` and with `baseline`.
#[test]
fn a_refused_run_on_a_device_only_reads_it_and_its_properties() {
    if lacks("strace") || lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 64 << 20);
    disk.make_ext4();
    let path = disk.device.as_str();
    let write = ["run", "--rw", "write", "--size", "64k", "--filename", path];
    let named = [&write[..], &["--overwrite_existing", path]].concat();
    let baseline = ["baseline", "--quick", path, "--overwrite", path];
    assert_untouched(&sandbox, &write, "existing_target_not_named");
    assert_untouched(&sandbox, &named, "signature_not_named");
    assert_untouched(&sandbox, &baseline, "signature_not_named");
    let wrong = [&named[..], &["--overwrite_signature", "ext4,xfs"]].concat();
    assert_untouched(&sandbox, &wrong, "signature_not_there");
    let beyond = [&named[..3], &["--size", "1g", "--filename", path, "--overwrite_existing", path]].concat();
    assert_untouched(&sandbox, &beyond, "signature_not_named");
    let output = ["run", "--ioengine", "null", "--number_ios", "1", "--json", path];
    assert_untouched(&sandbox, &output, "it is a block device");
    let mount = Mount::try_new("ext4", "ro", path, &sandbox.path("mounted")).expect("a mount");
    assert_untouched(&sandbox, &named, "target_mounted");
    assert_untouched(&sandbox, &baseline, "target_mounted");
    drop(mount);
}
