//! What a user owns is not written, cut, or removed unless it was named; refusals touch nothing.

use crate::common::*;
use std::fs;
use std::os::unix::fs::symlink;
use trueio_model::OpKind;

/// Goal: a job that writes changes no existing file, under any name.
/// Method: every spelling of an existing file, without the permission or with a permission that is
/// spelled differently; names, sizes, times and content before and after.
#[test]
fn an_existing_file_is_not_written_unless_it_is_named_exactly() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 1 << 20);
    fs::create_dir(sandbox.path("sub")).expect("a directory");
    symlink("data", sandbox.path("link")).expect("a link");
    fs::hard_link(sandbox.path("data"), sandbox.path("hard")).expect("a link");
    let absolute = sandbox.path("data").to_str().expect("UTF-8").to_owned();
    let before = sandbox.listing();
    let unnamed: &[&[&str]] = &[
        &["--filename", "data"],
        &["--filename", "./data"],
        &["--filename", "sub/../data"],
        &["--filename", "link"],
        &["--filename", "hard"],
        &["--filename", &absolute],
        &["--directory", ".", "--filename", "data"],
        &["--filename", "new:data"],
    ];
    for target in unnamed {
        for rw in ["write", "randwrite", "rw", "randrw", "trim", "randtrim"] {
            let mut job = vec!["run", "--rw", rw, "--size", "64k", "--no-history"];
            job.extend(*target);
            sandbox.run(&job).assert_refused(&["exists", "rule: existing_target_not_named", "hint: "]);
            assert_eq!(sandbox.listing(), before, "{job:?}");
        }
    }
    let misspelled: &[[&str; 2]] = &[
        ["data", "./data"],
        ["./data", "data"],
        ["link", "data"],
        ["hard", "data"],
        [&absolute, "data"],
        ["data", "."],
        ["data", "*"],
        ["data", ""],
    ];
    for [target, named] in misspelled {
        let job = ["run", "--rw", "write", "--size", "64k", "--filename", target, "--overwrite_existing", named];
        sandbox.run(&job).assert_refused(&["hint: "]);
        assert_eq!(sandbox.listing(), before, "{job:?}");
    }
}

#[test]
fn a_file_that_is_named_is_written_in_place_and_keeps_its_size_and_its_name() {
    let sandbox = Sandbox::new();
    let path = sandbox.data_file("data", 1 << 20);
    let before = fs::read(&path).expect("content");
    let job = ["run", "--rw", "write", "--size", "64k", "--filename", "data", "--overwrite_existing", "data"];
    let (ran, record) = sandbox.record(&job);
    ran.assert_code(0);
    assert_eq!(totals(&record.phases[0], OpKind::Write), (16, 64 << 10));
    let after = fs::read(&path).expect("content");
    assert_eq!(after.len(), before.len());
    assert_ne!(after[..64 << 10], before[..64 << 10]);
    assert_eq!(after[64 << 10..], before[64 << 10..], "it was written beyond `size`");
}

/// Method: the program as an ordinary user, on a file that is root's alone.
#[test]
fn a_file_that_this_user_may_not_use_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    let path = sandbox.data_file("data", 1 << 20);
    let allow = |path: &std::path::Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    allow(sandbox.root(), 0o755).expect("a mode");
    let as_nobody = |job: &[&str]| {
        let mut command = sandbox.command(job);
        command.arg("--no-history").uid(65534).gid(65534).output().map(Ran::of)
    };
    if as_nobody(&["run", "--ioengine", "null", "--number_ios", "1"]).is_err() {
        eprintln!("skipped: an ordinary user cannot reach the build directory");
        return;
    }
    let run = |job: &[&str]| as_nobody(job).expect("it ran before");
    allow(&path, 0o600).expect("a mode");
    run(&["run", "--filename", "data", "--rw", "read"]).assert_refused(&["may not read `data`", "os error 13"]);
    run(&["baseline", "--quick", "data"]).assert_refused(&["`data`"]);
    allow(&path, 0o644).expect("a mode");
    let write = ["run", "--filename", "data", "--rw", "write", "--overwrite_existing", "data"];
    run(&write).assert_refused(&["may not read and write `data`"]);
    // That other people's mounts cannot be seen is no news about a file.
    allow(&path, 0o666).expect("a mode");
    let ran = run(&write);
    ran.assert_code(0);
    assert!(!ran.out.contains("are not all known"), "{ran:?}");
    allow(&path, 0o644).expect("a mode");
    run(&["run", "--filename", "data", "--rw", "read"]).assert_code(0);
}

#[test]
fn an_existing_file_is_never_extended() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 1 << 20);
    let before = sandbox.listing();
    for rw in ["read", "write"] {
        let job = ["run", "--rw", rw, "--size", "2m", "--filename", "data", "--overwrite_existing", "data"];
        let job = if rw == "read" { &job[..7] } else { &job[..] };
        sandbox.run(job).assert_refused(&["rule: size_beyond_target", "set a smaller `--size`", "`--extend_existing`"]);
    }
    assert_eq!(sandbox.listing(), before);
}

#[test]
fn a_generated_name_that_is_taken_is_refused() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("sub")).expect("a directory");
    sandbox.write("sub/trueio-job-0.dat", "somebody's");
    for rw in ["read", "write"] {
        let ran = sandbox.run(&["run", "--rw", rw, "--size", "1m", "--directory", "sub"]);
        ran.assert_refused(&["`sub/trueio-job-0.dat`", "already exists", "rule: generated_name_taken"]);
    }
    assert_eq!(fs::read(sandbox.path("sub/trueio-job-0.dat")).expect("content"), b"somebody's");
}

#[test]
fn a_dangling_link_is_not_followed_when_a_file_is_created() {
    let sandbox = Sandbox::new();
    symlink("elsewhere", sandbox.path("trueio-job-0.dat")).expect("a link");
    symlink("elsewhere", sandbox.path("named")).expect("a link");
    for target in [&[][..], &["--filename", "named"]] {
        let mut job = vec!["run", "--rw", "write", "--size", "1m"];
        job.extend(target);
        sandbox.run(&job).assert_refused(&["link", "rule: target_unreadable"]);
        assert!(!sandbox.path("elsewhere").exists());
    }
}

/// Goal: an output does not replace what the command reads or measures.
/// Method: each output option with the target, a job file or a record as its file.
#[test]
fn an_output_never_replaces_the_target_or_the_job_file() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 16 << 20);
    symlink("data", sandbox.path("link")).expect("a link");
    sandbox.write("job.toml", "[job.a]\nioengine = \"null\"\nnumber_ios = 1\n");
    let before = sandbox.listing();
    for output in ["--json", "--html", "--hdr"] {
        let commands: &[(&[&str], &str)] = &[
            (&["baseline", "--quick", "data"], "data"),
            (&["baseline", "--quick", "data"], "./link"),
            (&["run", "--filename", "data", "--rw", "read"], "data"),
            (&["run", "--filename", "new", "--rw", "write", "--size", "4k", "--unlink=false"], "new"),
            (&["run", "job.toml"], "job.toml"),
        ];
        for (command, file) in commands {
            let mut all = command.to_vec();
            all.extend([output, file]);
            sandbox.run(&all).assert_refused(&[&format!("{output} would replace"), "hint: name another file"]);
            assert_eq!(sandbox.listing(), before, "{all:?}");
        }
    }
}

/// A named pipe.
fn pipe(sandbox: &Sandbox, name: &str) {
    let path = std::ffi::CString::new(sandbox.path(name).to_str().expect("a path")).expect("no zero byte");
    // SAFETY: a plain call with a string that ends.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
}

/// Goal: outputs of a job replace no file that any job measures or reads.
/// Method: logs, iologs, states and outputs of programs, under the name of a target, a link and a hard link to it, a log
/// that is replayed, and a job file; of the same phase and of a later one.
#[test]
fn outputs_of_jobs_replace_nothing() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 64 << 10);
    symlink("data", sandbox.path("link")).expect("a link");
    fs::hard_link(sandbox.path("data"), sandbox.path("hard")).expect("a link");
    symlink("data", sandbox.path("x_bw.1.log")).expect("a link");
    symlink("nothing", sandbox.path("dangling")).expect("a link");
    sandbox.data_file("a.prerun.txt", 64 << 10);
    sandbox.data_file("local-a-0-verify.state", 64 << 10);
    sandbox.write("t", "fio version 3 iolog\n0 data add\n0 data open\n1 data read 0 4096\n2 data close\n");
    pipe(&sandbox, "pipe");
    let absolute = sandbox.path("data").display().to_string();
    let read = "[a]\nrw=read\nfilename=data\n";
    let jobs = [
        format!("{read}write_iolog=./data\n"),
        format!("{read}write_iolog={absolute}\n"),
        format!("{read}write_iolog=link\n"),
        format!("{read}write_iolog=hard\n"),
        format!("{read}write_bw_log=x\n"),
        "[first]\nsize=64k\nwrite_iolog=data\n[a]\nstonewall\nrw=read\nfilename=data\n".to_owned(),
        "[a]\nread_iolog=t\nwrite_iolog=./t\n".to_owned(),
        "[a]\nread_iolog=t\n[b]\nstonewall\nsize=64k\nwrite_iolog=t\n".to_owned(),
        format!("{read}write_iolog=l\n[b]\nrw=read\nfilename=data\nwrite_iolog=./l\n"),
        format!("{read}write_iolog=j.fio\n"),
        format!("{read}write_iolog=more.inc\ninclude more.inc\n"),
        format!("{read}write_iolog=dangling\n"),
        format!("{read}write_iolog=pipe\n"),
        format!("{read}write_iolog=/proc/self/comm\n"),
        format!("{read}write_iolog=/dev/trueio-mistyped\n"),
        "[a]\nrw=read\nfilename=a.prerun.txt\nexec_prerun=echo no\n".to_owned(),
        "[a]\nrw=write\nsize=64k\nverify=md5\nverify_state_save=1\n[b]\nrw=read\nfilename=local-a-0-verify.state\n"
            .to_owned(),
    ];
    sandbox.write("more.inc", "bs=4k\n");
    for job in jobs {
        sandbox.write("j.fio", &job);
        let before = (sandbox.listing(), fs::read(sandbox.path("data")).expect("content"));
        let ran = sandbox.run(&["fio", "--allow-exec", "j.fio"]);
        ran.assert_code(1);
        assert!(
            ran.err.contains("rule: output_replaces") || ran.err.contains("rule: output_impossible"),
            "{job}{ran:?}"
        );
        assert_eq!((sandbox.listing(), fs::read(sandbox.path("data")).expect("content")), before, "{job}");
    }
    // The same where the results go.
    sandbox.write("j.fio", "[a]\nread_iolog=t\nwrite_bw_log=y\nwrite_iolog=z\nexec_postrun=echo\ninclude more.inc\n");
    sandbox.write("k.fio", "[a]\nread_iolog=t\nwrite_bw_log=y\nwrite_iolog=z\ninclude more.inc\n");
    let before = sandbox.listing();
    for output in ["j.fio", "./more.inc", "t", "link", "y_bw.1.log", "z", "a.postrun.txt"] {
        let ran = sandbox.run(&["fio", "--allow-exec", "j.fio", &format!("--output={output}")]);
        ran.assert_code(1);
        assert!(ran.err.contains("rule: output_replaces"), "{output}: {ran:?}");
    }
    for output in ["k.fio", "./more.inc", "t", "link", "y_bw.1.log", "z"] {
        sandbox
            .run(&["run", "k.fio", "--json", output])
            .assert_refused(&["--json would replace", "rule: output_replaces"]);
    }
    assert_eq!(sandbox.listing(), before);
    // What an earlier run left is replaced, as fio does it.
    sandbox
        .write("j.fio", format!("{read}write_iolog=l\nwrite_lat_log=l\nexec_prerun=echo yes\n").replace("[a]", "[b]"));
    for _ in 0..2 {
        sandbox.run(&["fio", "--allow-exec", "j.fio", "--output=out"]).assert_code(0);
    }
    let lines = |name: &str| fs::read_to_string(sandbox.path(name)).expect("a file").lines().count();
    assert_eq!((lines("l_lat.1.log"), lines("l"), lines("b.prerun.txt")), (16, 1 + 2 + 16 + 1, 1));
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_anything_is_measured() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("sub")).expect("a directory");
    let null = ["run", "--ioengine", "null", "--number_ios", "1"];
    let refused = |outputs: &[&str], sentence: &str| {
        let mut all = null.to_vec();
        all.extend(outputs);
        sandbox.run(&all).assert_refused(&[sentence]);
    };
    refused(&["--json", "sub"], "it is a directory");
    refused(&["--json", "nowhere/a.json"], "`nowhere` is not a directory");
    refused(&["--html", "-"], "--html needs the path of a file");
    refused(&["--json", "a", "--html", "./a"], "--html would replace `a`, which --json writes");
    assert_eq!(sandbox.run(&["history"]).out, "");
}

#[test]
fn a_failed_output_does_not_prevent_the_others() {
    let sandbox = Sandbox::new();
    // Everybody may open it for writing, and no write to it succeeds.
    let ran =
        sandbox.run(&["run", "--ioengine", "null", "--number_ios", "1", "--json", "/dev/full", "--html", "page.html"]);
    ran.assert_code(1);
    assert!(ran.err.contains("error: `/dev/full` could not be written"), "{ran:?}");
    assert!(fs::read_to_string(sandbox.path("page.html")).expect("a page").contains("<svg"));
    assert_eq!(sandbox.run(&["history"]).out.lines().count(), 1);
}

#[test]
fn a_block_device_is_refused_as_an_output() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let device = Loop::new(&sandbox, "disk.img", 1 << 20);
    let ran = sandbox.run(&["run", "--ioengine", "null", "--number_ios", "1", "--json", &device.device]);
    ran.assert_refused(&["it is a block device, whose content would be lost"]);
    // Nor for what a job writes, nor is the file below it.
    let backing = device.backing.to_str().expect("a path");
    for log in [device.device.as_str(), backing] {
        let ran = sandbox.run(&["run", "--ioengine", "null", "--number_ios", "1", "--write_iolog", log]);
        ran.assert_refused(&["rule: output_impossible"]);
    }
    assert!(fs::read(&device.backing).expect("content").iter().all(|&byte| byte == 0));
}

/// Goal: naming a device is not enough while data on it would be lost.
/// Method: a filesystem on a loop device, first mounted, then not; its signature missing, wrong, and next to one
/// that does not exist; then the correct one, and the bare device.
#[test]
fn a_block_device_is_written_only_if_it_is_named_and_free_and_bare() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let device = Loop::new(&sandbox, "disk.img", 64 << 20);
    let path = device.device.as_str();
    let job = ["run", "--rw", "write", "--size", "64k", "--filename", path, "--overwrite_existing", path];
    let baseline = ["baseline", "--quick", path, "--overwrite", path];
    device.make_ext4();

    let mount = Mount::ext4(&sandbox, "mounted", path);
    for command in [&job[..], &baseline] {
        sandbox.run(command).assert_refused(&["is mounted at", "mounted", "free it first"]);
    }
    drop(mount);

    let before = device.content();
    for (command, set) in [(&job[..], "`--overwrite_signature ext4`"), (&baseline, "`overwrite_signature = \"ext4\"`")]
    {
        let ran = sandbox.run(command);
        ran.assert_refused(&["has ext4 (at byte 1080)", "rule: signature_not_named"]);
        ran.assert_refused(&[&format!("hint: its content would be lost; if that is intended, set {set}")]);
    }
    let with = |names: &str| sandbox.run(&[&job[..], &["--overwrite_signature", names]].concat());
    with("xfs").assert_refused(&["has ext4", "but `--overwrite_signature` names `xfs`", "rule: signature_not_named"]);
    with("ext4,xfs").assert_refused(&["names `xfs`, which no target of this job has; found: `ext4`"]);
    with("ext4,xfs").assert_refused(&["rule: signature_not_there"]);
    with("EXT4").assert_refused(&["rule: signature_not_named"]);
    with("").assert_refused(&["`` is not names, separated by commas"]);
    // The signature's name alone is no permission.
    let unnamed = [&job[..7], &["--overwrite_signature", "ext4"]].concat();
    sandbox.run(&unnamed).assert_refused(&["rule: existing_target_not_named"]);
    sandbox.run(&job[..7]).assert_refused(&["rule: existing_target_not_named"]);
    let without = ["baseline", "--quick", path, "--overwrite-signature", "ext4"];
    sandbox.run(&without).assert_refused(&["--overwrite <TARGET>"]);
    assert_eq!(device.content(), before);

    with("ext4").assert_code(0);
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|file| std::os::unix::fs::FileExt::write_all_at(&file, &[0; 64 << 10], 0))
        .expect("the mark is wiped");
    with("ext4").assert_refused(&["names `ext4`, which no target of this job has; found: nothing"]);
    let (ran, record) = sandbox.record(&job);
    ran.assert_code(0);
    assert_eq!(totals(&record.phases[0], OpKind::Write), (16, 64 << 10));
}

/// Goal: every signature on a device must be named, and a job file can name them.
/// Method: a partition table and a filesystem on one loop device.
#[test]
fn every_signature_on_a_device_must_be_named() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let device = Loop::new(&sandbox, "disk.img", 16 << 20);
    device.make_ext4();
    fs::OpenOptions::new()
        .write(true)
        .open(&device.device)
        .and_then(|file| std::os::unix::fs::FileExt::write_all_at(&file, b"\x55\xaa", 510))
        .expect("the mark of a partition table");
    let before = device.content();
    let run = |names: &str| {
        sandbox.write(
            "job.toml",
            format!(
                "[job.a]\nfilename = \"{0}\"\noverwrite_existing = \"{0}\"\nrw = \"write\"\nsize = \"64k\"\n\
                 overwrite_signature = {names}\n",
                device.device
            ),
        );
        sandbox.run(&["run", "job.toml"])
    };
    for names in ["\"ext4\"", "\"dos\"", "[\"dos\", \"gpt\"]"] {
        run(names).assert_refused(&["has ext4 (at byte 1080), dos (at byte 510)", "job.toml:2"]);
    }
    assert_eq!(device.content(), before);
    run("[\"dos\", \"ext4\"]").assert_code(0);
}

/// Goal: a slip in a device's name makes no file that is measured in its stead.
/// Method: names that no device has, of devices and of partitions, in `/dev` itself.
#[test]
fn a_mistyped_device_name_is_refused_and_creates_no_file() {
    let sandbox = Sandbox::new();
    for name in ["/dev/sdzz", "/dev/nvme9n9p9", "/dev/disk-by-id"] {
        for rw in ["read", "write", "randtrim"] {
            let job = ["run", "--rw", rw, "--size", "1m", "--filename", name];
            sandbox.run(&job).assert_refused(&["is the device's name mistyped?", "rule: cannot_create_here"]);
            assert!(!std::path::Path::new(name).exists(), "{name} was made");
        }
        sandbox.run(&["baseline", "--quick", name]).assert_refused(&["does not exist"]);
        assert!(!std::path::Path::new(name).exists(), "{name} was made");
    }
    sandbox.run(&["run", "--rw", "read", "--size", "1m", "--filename", "/dev/disk/by-id/none"]).assert_refused(&[]);
}

/// fio lays out a file that is too small, and so rewrites it.
#[test]
fn a_read_job_on_a_file_that_is_too_small_is_refused_and_the_file_stays() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 64 << 10);
    sandbox.write("empty", "");
    let before = sandbox.listing();
    for (file, options, rule) in [
        ("data", &["--size", "1m"][..], "size_beyond_target"),
        ("data", &["--offset", "64k"], "size_beyond_target"),
        ("data", &["--offset", "60k", "--size", "8k"], "size_beyond_target"),
        ("data", &["--filesize", "128k"], "size_beyond_target"),
        ("data", &["--bs", "128k"], "block_beyond_size"),
        ("empty", &[], "block_beyond_size"),
    ] {
        for rw in ["read", "randread"] {
            let job = [&["run", "--rw", rw, "--filename", file], options].concat();
            sandbox.run(&job).assert_refused(&[&format!("rule: {rule}"), "hint: "]);
            assert_eq!(sandbox.listing(), before, "{job:?}");
        }
    }
    sandbox.run(&["baseline", "--quick", "data"]).assert_refused(&["at least 16 MiB is needed"]);
    assert_eq!(sandbox.listing(), before);
}

#[test]
fn targets_that_are_neither_files_nor_disks_are_refused() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("sub")).expect("a directory");
    let before = sandbox.listing();
    for (target, rule) in [
        ("sub", "wrong_kind_of_target"),
        (".", "wrong_kind_of_target"),
        ("/dev/null", "wrong_kind_of_target"),
        ("/dev/zero", "wrong_kind_of_target"),
        ("new/", "cannot_create_here"),
        ("nowhere/new", "directory_missing"),
        ("/proc/new", "cannot_create_here"),
        ("/sys/new", "cannot_create_here"),
    ] {
        for rw in ["read", "write"] {
            let job = ["run", "--rw", rw, "--size", "64k", "--filename", target, "--overwrite_existing", target];
            let job =
                if matches!(target, "new/" | "nowhere/new" | "/proc/new" | "/sys/new") { &job[..7] } else { &job };
            sandbox.run(job).assert_refused(&[&format!("rule: {rule}")]);
            assert_eq!(sandbox.listing(), before, "{job:?}");
        }
    }
    sandbox.run(&["baseline", "--quick", "/dev/null"]).assert_refused(&["is a character device"]);
}

/// An open descriptor is a name like any other: what it leads to exists.
#[test]
fn a_file_named_through_a_descriptor_is_not_written_unless_named_exactly() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 1 << 20);
    let before = sandbox.listing();
    let run = |named: &str| {
        let program = env!("CARGO_BIN_EXE_trueio");
        let script =
            format!("exec 7<>data; exec {program} run --rw write --size 64k --filename /proc/self/fd/7 {named}");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script]).current_dir(sandbox.root()).env("XDG_DATA_HOME", sandbox.aside("history"));
        Ran::of(shell.output().expect("a shell"))
    };
    run("").assert_refused(&["exists (a file)", "rule: existing_target_not_named"]);
    run("--overwrite_existing data").assert_refused(&["rule: named_for_overwrite_not_used"]);
    assert_eq!(sandbox.listing(), before);
    run("--overwrite_existing /proc/self/fd/7").assert_code(0);
    assert_ne!(sandbox.listing(), before);
}

/// Goal: jobs that share a device, or use it one after the other, do not exclude each other.
/// Method: if each job opened with O_EXCL, the kernel would return EBUSY: always for parallel jobs, and for
/// later ones while it tears down the ring of the previous job.
#[test]
fn jobs_on_one_block_device_run_together_and_one_after_another() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let device = Loop::new(&sandbox, "disk.img", 16 << 20);
    let mut text = format!(
        "[defaults]\nfilename = \"{0}\"\noverwrite_existing = \"{0}\"\nrw = \"randwrite\"\niodepth = 32\nsize = \"4m\"\n",
        device.device
    );
    for phase in 0..8 {
        text += &format!("[job.a{phase}]\nstonewall = true\n[job.b{phase}]\n");
    }
    sandbox.write("jobs.toml", text);
    let (ran, record) = sandbox.record(&["run", "jobs.toml", "--no-evidence"]);
    ran.assert_code(0);
    assert_eq!(record.phases.len(), 8);
    assert!(record.phases.iter().all(|phase| totals(phase, OpKind::Write).1 == 8 << 20));
}

#[test]
fn a_device_that_is_written_cannot_be_claimed_by_others_between_its_phases() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let device = Loop::new(&sandbox, "disk.img", 16 << 20);
    let path = device.device.as_str();
    sandbox.write(
        "jobs.toml",
        format!(
            "[job.write]\nfilename = \"{path}\"\noverwrite_existing = \"{path}\"\nrw = \"write\"\nsize = \"64k\"\n\
             [job.pause]\nstonewall = true\nioengine = \"null\"\nruntime = \"60s\"\nrate_iops = 10\ntime_based = true\n"
        ),
    );
    let mut command = sandbox.command(&["run", "jobs.toml", "--no-evidence", "--no-history"]);
    let running = Running::start(&mut command);
    running.wait_for_worker("pause-0");
    let claim = || {
        use std::os::unix::fs::OpenOptionsExt;
        fs::OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(path)
    };
    assert_eq!(claim().expect_err("it is claimed").raw_os_error(), Some(libc::EBUSY));
    running.signal(libc::SIGINT);
    running.wait().0.assert_code(1);
    claim().expect("it is free again");
}

/// Goal: no name from outside controls the terminal through an error message.
/// Method: a file whose name clears the screen and reorders the line, in refusals of three commands.
#[test]
fn names_in_error_messages_do_not_control_the_terminal() {
    let sandbox = Sandbox::new();
    let name = "a\x1b[2J\u{202e}b";
    sandbox.write(name, "content");
    for arguments in [
        &["run", "--rw", "write", "--size", "4k", "--filename", name][..],
        &[
            "fio",
            "--name=a",
            "--rw=write",
            "--size=4k",
            "--ioengine=psync",
            "--readonly",
            &format!("--filename={name}"),
        ],
        &["report", name],
    ] {
        let ran = sandbox.run(arguments);
        // The line that an error shows has a picture of the escape.
        let is_shown =
            ["a\u{fffd}[2J\u{fffd}b", "a\u{241b}[2J\u{fffd}b"].into_iter().any(|name| ran.err.contains(name));
        assert!(ran.code != Some(0) && is_shown, "{ran:?}");
        assert!(!ran.err.contains(['\x1b', '\u{202e}']), "{ran:?}");
    }
}

/// Goal: no name adds a line to a message that could be taken for the program's own.
#[test]
fn names_in_messages_do_not_begin_lines() {
    let sandbox = Sandbox::new();
    let name = "a\nerror: forged";
    sandbox.write(name, "content");
    let job = sandbox.path("job.toml");
    fs::write(&job, "[job.j]\nrw = \"randread\"\nfilename = \"a\\nerror: forged\"\n").expect("a file");
    let job = job.to_str().expect("a path");
    for arguments in [
        &["report", name][..],
        &["report", "x.json", name],
        &["explain", name],
        &["run", name],
        &["run", job],
        &["run", "--rw", "randread", "--filename", name],
        &["run", "--filename", "b", "--json", name],
        &["compare", name, name],
        &["baseline", name],
        &[name],
        &["capacity", name],
        &["powercut", name],
        &["history", "import", name],
        &["device", name],
        &["doctor", name],
        &["ior", "-r", "-o", name],
        &["mdtest", "-d", name],
        &["fio", name],
        &["fio", "--name=a", &format!("--filename={name}")],
        &["usb", "explain", name],
        &["study", "run", name],
        &["selftest", name],
    ] {
        let ran = sandbox.run(arguments);
        assert_ne!(ran.code, Some(0), "{arguments:?}");
        let text = format!("{}\n{}", ran.err, ran.out);
        assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{arguments:?}: {ran:?}");
    }
}
