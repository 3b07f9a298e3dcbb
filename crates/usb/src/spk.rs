//! Packs this project's program and documentation as a package for Synology's DSM 7 (SPK).
//!
//! An SPK is a POSIX tar: `INFO`, `package.tgz` with the files, scripts, `conf`, and two icons. The package holds a static program and
//! texts, no kernel module. DSM 7 runs the scripts of third parties as an unprivileged user, so they do nothing: the program is
//! started as root by a task of the Task Scheduler (event "Boot-up"), as the text in the package describes.
//!
//! Limits: not installed on a NAS; the fields are those of Synology's developer guide for DSM 7. Packages are not signed.
//!
//! Source: Synology "DSM Developer Guide 7", sections INFO, scripts, conf and icons.

use crate::plan::Refusal;
use flate2::Compression;
use flate2::write::GzEncoder;
use object::LittleEndian;
use object::elf::{EM_AARCH64, EM_X86_64, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use std::io::{self, Write};

/// Name of the package, and of its directory below `/var/packages`.
const NAME: &str = "trueio";
/// The icons: names and contents, of 64 and 256 pixels (DSM 7).
const ICONS: [(&str, &[u8]); 2] = [
    ("PACKAGE_ICON.PNG", include_bytes!("../../../packaging/spk/PACKAGE_ICON.PNG")),
    ("PACKAGE_ICON_256.PNG", include_bytes!("../../../packaging/spk/PACKAGE_ICON_256.PNG")),
];
/// The scripts that DSM 7 requires, besides `start-stop-status`.
const SCRIPTS: [&str; 6] = ["preinst", "postinst", "preuninst", "postuninst", "preupgrade", "postupgrade"];

/// What is packed.
#[derive(Debug, Clone, Copy)]
pub struct Spk<'a> {
    /// The program, as bytes.
    pub program: &'a [u8],
    /// Its version (`0.1.0`).
    pub version: &'a str,
    /// Texts: names and contents.
    pub texts: &'a [(&'a str, &'a str)],
}

/// Returns the architecture of a program by DSM's name.
///
/// # Errors
/// The refusal: it is no program of Linux, is for a processor of no NAS, or needs libraries.
pub fn architecture(program: &[u8]) -> Result<&'static str, Refusal> {
    let refuse = |reason: &str, hint: &str| Refusal { reasons: vec![reason.to_owned()], hint: Some(hint.to_owned()) };
    const BUILD: &str =
        "build one with `cargo build --release --target x86_64-unknown-linux-musl`, and name it with --program";
    let no_program = |_| refuse("it is no 64-bit program of Linux", BUILD);
    let header = FileHeader64::<LittleEndian>::parse(program).map_err(no_program)?;
    let endian = header.endian().map_err(no_program)?;
    let name = match header.e_machine(endian) {
        EM_X86_64 => "x86_64",
        EM_AARCH64 => "armv8",
        _ => return Err(refuse("it is for a processor that no package of DSM is for", BUILD)),
    };
    let parts = header.program_headers(endian, program).map_err(|_| refuse("it is not complete", BUILD))?;
    if parts.iter().any(|part| part.p_type(endian) == PT_INTERP) {
        return Err(refuse("it needs the C library of this system, which a NAS does not have", BUILD));
    }
    Ok(name)
}

/// Writes the package.
///
/// # Errors
/// The writer's.
pub fn pack(spk: &Spk<'_>, architecture: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut files = Tar::new(GzEncoder::new(Vec::new(), Compression::best()));
    files.directory("bin")?;
    files.file("bin/trueio", 0o755, spk.program)?;
    files.directory("share")?;
    for (name, text) in spk.texts {
        files.file(&format!("share/{name}"), 0o644, text.as_bytes())?;
    }
    let files = files.finish()?.finish()?;
    let mut tar = Tar::new(out);
    tar.file("INFO", 0o644, info(spk.version, architecture).as_bytes())?;
    tar.file("package.tgz", 0o644, &files)?;
    tar.directory("scripts")?;
    for name in SCRIPTS {
        tar.file(&format!("scripts/{name}"), 0o755, b"#!/bin/sh\nexit 0\n")?;
    }
    // Nothing runs: it is started as root by a task, and DSM asks for the status of each package.
    let status = b"#!/bin/sh\ncase \"$1\" in\nstatus) exit 3 ;;\n*) exit 0 ;;\nesac\n";
    tar.file("scripts/start-stop-status", 0o755, status)?;
    tar.directory("conf")?;
    tar.file("conf/privilege", 0o644, b"{\"defaults\": {\"run-as\": \"package\"}}\n")?;
    tar.file("conf/resource", 0o644, b"{}\n")?;
    for (name, content) in ICONS {
        tar.file(name, 0o644, content)?;
    }
    tar.finish().map(|_| ())
}

fn info(version: &str, architecture: &str) -> String {
    // Digits, points and hyphens only; the part after the hyphen is the build.
    let version: String =
        version.chars().take_while(|character| character.is_ascii_digit() || *character == '.').collect();
    let description = "Drives USB disks with UAS where the kernel has no driver for it. Run as root by a boot-up task: \
                       /var/packages/trueio/target/bin/trueio usb serve DISK";
    let fields = [
        ("package", NAME),
        ("version", &format!("{version}-1")),
        ("os_min_ver", "7.0-40000"),
        ("description", description),
        ("arch", architecture),
        ("maintainer", "trueio"),
        ("displayname", NAME),
        ("thirdparty", "yes"),
        ("startable", "no"),
    ];
    fields.iter().map(|(name, value)| format!("{name}=\"{value}\"\n")).collect()
}

/// A tar archive with the same bytes for the same content: of root, from the beginning of 2026.
struct Tar<W: Write>(tar::Builder<W>);

impl<W: Write> Tar<W> {
    fn new(out: W) -> Self {
        Self(tar::Builder::new(out))
    }

    fn directory(&mut self, name: &str) -> io::Result<()> {
        self.entry(&format!("{name}/"), 0o755, tar::EntryType::Directory, &[])
    }

    fn file(&mut self, name: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        self.entry(name, mode, tar::EntryType::Regular, content)
    }

    fn entry(&mut self, name: &str, mode: u32, kind: tar::EntryType, content: &[u8]) -> io::Result<()> {
        let mut head = tar::Header::new_ustar();
        head.set_entry_type(kind);
        head.set_mode(mode);
        head.set_uid(0);
        head.set_gid(0);
        head.set_mtime(1_767_225_600);
        head.set_username("root")?;
        head.set_groupname("root")?;
        head.set_size(content.len() as u64);
        self.0.append_data(&mut head, name, content)
    }

    fn finish(self) -> io::Result<W> {
        self.0.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    /// A 64-bit program with program headers of these types.
    fn program(machine: u16, kinds: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64 + kinds.len() * 56];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = kinds.len() as u8;
        for (index, kind) in kinds.iter().enumerate() {
            bytes[64 + index * 56..][..4].copy_from_slice(&kind.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn a_program_that_needs_libraries_or_is_for_another_system_is_refused() {
        assert_eq!(architecture(&program(62, &[1, 1, 2])).as_ref(), Ok(&"x86_64"));
        assert_eq!(architecture(&program(183, &[1])).as_ref(), Ok(&"armv8"));
        let reason = |bytes: &[u8]| architecture(bytes).expect_err("refused").reasons.remove(0);
        assert!(reason(&program(62, &[1, 3])).contains("needs the C library"));
        assert!(reason(&program(40, &[1])).contains("processor"));
        assert!(reason(&program(62, &[1])[..66]).contains("not complete"));
        assert!(reason(b"#!/bin/sh\n").contains("no 64-bit program of Linux"));
    }

    fn untar(archive: &Path, into: &Path) {
        std::fs::create_dir_all(into).expect("a directory");
        let status = Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(into).status().expect("tar");
        assert!(status.success(), "{archive:?}");
    }

    /// Goal: tar reads the package, and it has what DSM 7 requires: fields, scripts, icons of the right size, no root.
    #[test]
    fn tar_reads_the_package_and_it_has_what_dsm_7_requires() {
        let folder = tempfile::tempdir().expect("a directory");
        let (package, inside, files) =
            (folder.path().join("trueio.spk"), folder.path().join("spk"), folder.path().join("files"));
        let program = program(62, &[1]);
        let spk = Spk { program: &program, version: "0.1.0-beta", texts: &[("usb.md", "# USB\n")] };
        let mut bytes = Vec::new();
        pack(&spk, "x86_64", &mut bytes).expect("memory");
        std::fs::write(&package, &bytes).expect("a file");
        untar(&package, &inside);
        let read = |name: &str| std::fs::read(inside.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let info = String::from_utf8(read("INFO")).expect("UTF-8");
        for field in [
            "package=\"trueio\"\n",
            "version=\"0.1.0-1\"\n",
            "os_min_ver=\"7.0-40000\"\n",
            "arch=\"x86_64\"\n",
            "maintainer=",
            "description=",
            "thirdparty=\"yes\"\n",
        ] {
            assert!(info.contains(field), "{field}: {info}");
        }
        assert!(String::from_utf8_lossy(&read("conf/privilege")).contains("\"run-as\": \"package\""));
        assert_eq!(read("conf/resource"), b"{}\n");
        for script in SCRIPTS.iter().chain(&["start-stop-status"]) {
            assert!(!String::from_utf8_lossy(&read(&format!("scripts/{script}"))).contains("insmod"));
        }
        for ((name, _), pixels) in ICONS.into_iter().zip([64u32, 256]) {
            let png = read(name);
            assert_eq!((&png[..8], &png[16..24]), (&b"\x89PNG\r\n\x1a\n"[..], &[pixels.to_be_bytes(); 2].concat()[..]));
        }
        untar(&inside.join("package.tgz"), &files);
        assert_eq!(std::fs::read(files.join("bin/trueio")).expect("the program"), program);
        assert_eq!(std::fs::read(files.join("share/usb.md")).expect("the text"), b"# USB\n");
        // Nothing else, and no kernel module.
        let list = Command::new("tar").arg("-tf").arg(&package).output().expect("tar").stdout;
        assert!(!String::from_utf8_lossy(&list).contains(".ko"));
        let mut again = Vec::new();
        pack(&spk, "x86_64", &mut again).expect("memory");
        assert!(bytes == again, "the same content is the same package");
    }
}
