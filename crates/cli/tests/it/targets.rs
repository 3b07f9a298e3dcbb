//! A run writes only to the targets that were checked: all signatures of a whole disk are found, a device that another
//! program has open for writing is refused, and a target that was replaced during a run is not written.
//! `crates/run/tests/it/targets.rs` stages more replacements.

use crate::common::*;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Writes an entry of the PC's partition table at sector `table`: type, first sector from `table`, sectors.
fn write_entry(image: &Path, table: u64, index: u64, (kind, first, count): (u8, u32, u32)) {
    let file = fs::OpenOptions::new().write(true).open(image).expect("an image");
    let mut entry = [0; 16];
    entry[4] = kind;
    entry[8..12].copy_from_slice(&first.to_le_bytes());
    entry[12..16].copy_from_slice(&count.to_le_bytes());
    file.write_all_at(&entry, table * 512 + 446 + index * 16).expect("an entry");
    file.write_all_at(b"\x55\xaa", table * 512 + 510).expect("the table's mark");
}

/// Makes an ext4 filesystem of 8 MiB in an image, at a sector.
fn make_ext4_at(image: &Path, sector: u64) {
    let offset = format!("offset={}", sector * 512);
    let image = image.to_str().expect("UTF-8");
    tool("mkfs.ext4", &["-q", "-F", "-E", &offset, image, "8M"]).expect("mkfs.ext4");
}

/// Goal: naming the partition table of a disk is no permission to destroy what its partitions hold.
/// Method: images with an ext4 in partition 1, in a logical partition, and in a partition of GPT; none of them is known
/// to the kernel. The job writes the first 64 KiB, which hold the table and none of the filesystems.
#[test]
fn a_signature_in_a_partition_must_be_named_as_that_of_the_table() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let image = |name: &str| {
        let path = sandbox.aside(name);
        fs::File::create(&path).and_then(|file| file.set_len(32 << 20)).expect("an image");
        path
    };
    let primary = image("primary");
    write_entry(&primary, 0, 0, (0x83, 2048, 16384));
    make_ext4_at(&primary, 2048);
    let logical = image("logical");
    write_entry(&logical, 0, 1, (0x05, 4096, 32768));
    write_entry(&logical, 4096, 0, (0x83, 2048, 16384));
    make_ext4_at(&logical, 6144);
    let gpt = image("gpt");
    let file = fs::OpenOptions::new().write(true).open(&gpt).expect("an image");
    let mut table = [0; 1024 + 128];
    table[..8].copy_from_slice(b"EFI PART");
    table[72..80].copy_from_slice(&2_u64.to_le_bytes());
    table[80..84].copy_from_slice(&128_u32.to_le_bytes());
    table[84..88].copy_from_slice(&128_u32.to_le_bytes());
    table[512..528].fill(1);
    table[544..552].copy_from_slice(&2048_u64.to_le_bytes());
    table[552..560].copy_from_slice(&18431_u64.to_le_bytes());
    file.write_all_at(&table, 512).expect("a table");
    make_ext4_at(&gpt, 2048);
    for (path, table, at) in
        [(&primary, "dos", 2048 * 512 + 1080), (&logical, "dos", 6144 * 512 + 1080), (&gpt, "gpt", 2048 * 512 + 1080)]
    {
        let disk = Loop::over(path, &[]);
        let before = disk.content();
        let device = disk.device.as_str();
        let job = ["run", "--rw", "write", "--size", "64k", "--filename", device, "--overwrite_existing", device];
        let with = |names: &str| sandbox.run(&[&job[..], &["--overwrite_signature", names]].concat());
        let found = format!("ext4 (at byte {at})");
        with(table).assert_refused(&["rule: signature_not_named", &found, &format!("`--overwrite_signature {table},")]);
        with("ext4").assert_refused(&["rule: signature_not_named", table]);
        let baseline = ["baseline", "--quick", device, "--overwrite", device, "--overwrite-signature", table];
        sandbox.run(&baseline).assert_refused(&[&found]);
        assert_eq!(disk.content(), before, "{} was written", path.display());
        with(&format!("{table},ext4")).assert_code(0);
        assert_ne!(disk.content(), before);
    }
}

/// Goal: a device that another program writes is refused, with the program's name, although it claimed nothing.
/// Method: a program that only holds the device open, for reading (which is allowed), then for reading and writing.
#[test]
fn a_device_that_a_process_has_open_for_writing_is_refused_by_its_name() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 16 << 20);
    let device = disk.device.as_str();
    let job = ["run", "--rw", "write", "--size", "64k", "--filename", device, "--overwrite_existing", device];
    let hold = |how: &str| {
        let script = format!("exec 7{how}{device}; echo ready; exec sleep 300");
        let mut shell = std::process::Command::new("sh");
        let holder = Running::start(shell.args(["-c", &script]).stdout(std::process::Stdio::piped()));
        let comm = format!("/proc/{}/comm", holder.id());
        holder.wait_until("the program", || fs::read_to_string(&comm).is_ok_and(|name| name.trim() == "sleep"));
        holder
    };
    let reader = hold("<");
    sandbox.run(&job).assert_code(0);
    drop(reader);
    let before = disk.content();
    let writer = hold("<>");
    let named = format!("is open for writing in `sleep` (process {})", writer.id());
    sandbox.run(&job).assert_refused(&["rule: target_open_for_writing", &named, "free it first"]);
    sandbox.run(&["run", "--rw", "read", "--size", "64k", "--filename", device]).assert_code(0);
    assert_eq!(disk.content(), before);
}

/// Goal: links are not followed for writing, and the message names the target.
#[test]
fn a_job_writes_through_no_symbolic_link() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 1 << 20);
    std::os::unix::fs::symlink("data", sandbox.path("link")).expect("a link");
    let before = sandbox.listing();
    let write = |path: &str| {
        let job = ["run", "--rw", "write", "--size", "64k", "--filename", path, "--overwrite_existing", path];
        sandbox.run(&job)
    };
    let target = sandbox.path("data").canonicalize().expect("a file").display().to_string();
    write("link")
        .assert_refused(&["rule: target_is_link", &format!("hint: name the link's target: `--filename {target}`")]);
    assert_eq!(sandbox.listing(), before);
    sandbox.run(&["run", "--rw", "read", "--size", "64k", "--filename", "link"]).assert_code(0);
    assert_eq!(sandbox.listing(), before);
    write("data").assert_code(0);
}

/// Goal: the file that was named is written, or nothing, and there is a record.
/// Method: phase 1 is a program that gives the name of phase 2's file to a link to another file.
#[test]
fn a_file_that_becomes_a_link_during_phase_1_ends_the_run_with_a_record() {
    let sandbox = Sandbox::new();
    let (other, kept) = (sandbox.data_file("precious", 1 << 20), sandbox.path("kept"));
    let file = sandbox.data_file("b.dat", 1 << 20);
    let (before, before_file) = (fs::read(&other).expect("content"), fs::read(&file).expect("content"));
    sandbox.write("swap.sh", "mv b.dat kept\nln -s precious b.dat\n");
    sandbox.write(
        "job.fio",
        "[swap]\nioengine=exec\nprogram=/bin/sh\narguments=swap.sh\n[b]\nstonewall\nfilename=b.dat\nrw=write\nsize=64k\n",
    );
    let ran = sandbox.run(&["fio", "--allow-exec", "--output-format=json", "job.fio"]);
    ran.assert_code(1);
    assert!(ran.err.contains("`b.dat` has changed since the run was planned"), "{ran:?}");
    assert!(fs::symlink_metadata(&file).expect("a link").is_symlink(), "nothing was staged");
    assert!(fs::read(&other).expect("content") == before, "another file was written");
    assert!(fs::read(&kept).expect("content") == before_file);
    assert!(ran.out.contains("\"jobname\""), "the first phase is not in the output: {ran:?}");
}

/// Goal: as above, of a device. Method: phase 1 is a program that attaches the loop device of phase 2 to an ext4 image. The
/// kernel does not let go of it while it is held.
#[test]
fn a_device_that_is_attached_again_during_phase_1_is_not_the_one_that_is_written() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 16 << 20);
    let image = sandbox.aside("ext4");
    fs::File::create(&image).and_then(|file| file.set_len(16 << 20)).expect("an image");
    make_ext4_at(&image, 0);
    let before = fs::read(&image).expect("an image");
    let device = &disk.device;
    let swap = format!("losetup -d {device}\nlosetup {device} {}\necho $? > swapped\n", image.display());
    sandbox.write("swap.sh", swap);
    let job = format!(
        "[swap]\nioengine=exec\nprogram=/bin/sh\narguments=swap.sh\n\
         [b]\nstonewall\nfilename={device}\nrw=write\nsize=64k\n"
    );
    sandbox.write("job.fio", job);
    sandbox.run(&["fio", "--allow-exec", "job.fio"]).assert_code(0);
    assert_eq!(fs::read_to_string(sandbox.path("swapped")).expect("it was tried"), "1\n", "it was attached");
    assert!(fs::read(&image).expect("an image") == before, "the filesystem was written");
    assert!(fs::read(&disk.backing).expect("an image")[..64 << 10] != [0; 64 << 10], "the disk was not written");
}
