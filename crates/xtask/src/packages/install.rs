//! Installs a package, uses it, and removes it, in a copy of this system that is thrown away.
//!
//! The copy is an overlay over `/`, in a mount namespace of its own: writes go to memory. What is there after the removal, besides the
//! records of dpkg itself, is a file that the package or the program left.

use super::{Release, output_of};
use crate::setup;
use crate::workspace::{has_program, is_root};
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Installs, uses and removes the package. `$1` is a folder, `$2` the package.
const SCRIPT: &str = r#"
set -eu
mount -t tmpfs -o size=1g,mode=755 trueio-install "$1"
cd "$1"
mkdir upper work root user
mount -t overlay overlay -o lowerdir=/,upperdir="$1/upper",workdir="$1/work" root
mount -t proc proc root/proc
mount --rbind /sys root/sys
mount --rbind /dev root/dev
mount -t tmpfs user root/mnt
# The folder of users' temporary files is not part of the system.
mount -t tmpfs tmp root/tmp
cp "$2" root/mnt/trueio.deb
inside() { chroot root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/mnt sh -euc "$1"; }
inside 'dpkg -i /mnt/trueio.deb' > dpkg.log 2>&1 || { cat dpkg.log; exit 1; }
inside 'command -v trueio'
inside 'cd /mnt && trueio run --ioengine null --rw read --size 1m --number_ios 1000 --no-evidence > /dev/null && trueio history --json | grep -q id'
inside 'cd /mnt && trueio run --rw randread --size 1m --runtime 0.2 --json record.json > /dev/null && trueio report record.json > /dev/null'
inside 'test -s /usr/share/bash-completion/completions/trueio && test -s /usr/share/fish/vendor_completions.d/trueio.fish'
inside '! command -v man > /dev/null || test -n "$(man -w trueio-job 5)"'
inside 'dpkg --purge trueio' > dpkg.log 2>&1 || { cat dpkg.log; exit 1; }
inside '! command -v trueio > /dev/null'
# Whiteouts are character devices; directories are copied with the files in them.
find upper ! -type d | sed 's|^upper||' | grep -vE '^/var/(lib/dpkg|log|cache/(man|debconf))/' > left || true
echo "left: $(wc -l < left)"
cat left
"#;

/// Installs, uses and removes a `.deb`; nothing may be left.
pub(super) fn deb(release: &Release, package: &Path) -> Result<String> {
    if !is_root() {
        return Ok("not installed: this needs root".to_owned());
    }
    let folder = release.scratch.join("install");
    std::fs::create_dir_all(&folder)?;
    let mut script = release.command("unshare");
    script.args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"]).arg(&folder).arg(package);
    let text = output_of(&mut script)?;
    ensure!(text.contains("/usr/bin/trueio\n"), "the program was not installed: {text}");
    let left = text.split("left: ").nth(1).unwrap_or("no sum");
    ensure!(left.starts_with("0\n"), "the package or the program left files: {left}");
    Ok("installed, used and removed; nothing is left".to_owned())
}

/// Runs a static binary in a folder with nothing else, as in a container without a distribution, and not as root.
pub(super) fn alone(release: &Release, program: &Path) -> Result<String> {
    if !is_root() {
        return Ok("not run alone: this needs root".to_owned());
    }
    let root = release.scratch.join("alone");
    super::tree::write(&root.join("trueio"), std::fs::read(program)?, 0o755)?;
    let mut alone = release.command("chroot");
    alone.args(["--userspec=65534:65534"]).arg(&root).args(["/trueio", "run", "--ioengine", "null", "--rw", "read"]);
    alone.args(["--size", "1m", "--number_ios", "1000", "--no-evidence", "--no-history", "--json", "-"]);
    let text = output_of(&mut alone)?;
    ensure!(text.contains("\"format\": \"trueio-record\""), "the program printed no record: {text}");
    Ok("runs alone in a folder, as user 65534".to_owned())
}

/// Runs a static binary as three ranks under Hydra, which needs nothing of the host's MPI.
pub(super) fn under_hydra(release: &Release, program: &Path) -> Result<String> {
    if !has_program("mpiexec.hydra") {
        return Ok("not run under Hydra, which is not installed".to_owned());
    }
    let mut ranks = release.command("mpiexec.hydra");
    ranks.args(["-n", "3"]).arg(program).args(["run", "--ioengine", "null", "--size", "1m", "--number_ios", "1000"]);
    ranks.args(["--no-evidence", "--no-history", "--json", "-"]);
    let text = output_of(&mut ranks)?;
    ensure!(text.contains("\"rank_count\": 3"), "the program printed no record of three ranks: {text}");
    Ok("runs as three ranks under Hydra".to_owned())
}

/// Builds the image of a static binary from the filled `Containerfile`, and runs a job in it, as the user that it names. `Err` of the
/// inner result: why no image can be built here.
pub(super) fn image(release: &Release, program: &Path) -> Result<Result<String, String>> {
    if !is_root() {
        return Ok(Err("the image was not built: this needs root".to_owned()));
    }
    if let Err(why_not) = setup::install(&[("buildah", "buildah")]) {
        return Ok(Err(format!("the image was not built: {why_not}")));
    }
    let folder = release.scratch.join("image");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    std::fs::copy(release.packages.join("Containerfile"), folder.join("Containerfile")).context("Containerfile")?;
    super::tree::write(&folder.join("trueio"), std::fs::read(program)?, 0o755)?;
    // Images and containers of its own, away from the user's; no overlay filesystem and no network are needed.
    let storage = tempfile::tempdir()?;
    let buildah = |words: &[&str]| {
        let mut buildah = release.command("buildah");
        buildah.args(["--storage-driver", "vfs", "--root"]).arg(storage.path().join("root"));
        buildah.arg("--runroot").arg(storage.path().join("run")).args(words);
        output_of(buildah.current_dir(&folder))
    };
    buildah(&["build", "--isolation", "chroot", "--quiet", "--tag", "trueio:smoke", "."])?;
    let user = buildah(&["inspect", "--type", "image", "--format", "{{.OCIv1.Config.User}}", "trueio:smoke"])?;
    ensure!(user.trim() == "65534:65534", "the image runs as `{}`", user.trim());
    let container = buildah(&["from", "trueio:smoke"])?;
    let job = ["/usr/bin/trueio", "run", "--ioengine", "null", "--size", "1m", "--number_ios", "1000", "--no-evidence"];
    let run = ["run", "--isolation", "chroot", container.trim(), "--"];
    let text = buildah(&[&run[..], &job, &["--no-history", "--json", "-"]].concat())?;
    ensure!(text.contains("\"format\": \"trueio-record\""), "the program printed no record: {text}");
    let bytes = std::fs::metadata(program)?.len();
    Ok(Ok(format!("an image of {:.1} MiB was built, and ran a job as user 65534", bytes as f64 / (1 << 20) as f64)))
}
