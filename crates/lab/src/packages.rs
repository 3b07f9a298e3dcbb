//! Fetches Debian packages and unpacks them below the build directory; root is not needed.
//!
//! The registry is the one that apt is configured for, with the backports of the same release; its
//! lists are kept apart from the system's, which stay as they are. apt checks signatures and hashes;
//! what was unpacked lies in a folder named after the package's version and SHA-256, so one that is
//! there is used without asking the network again.
//!
//! Cannot do: packages of other distributions, or dependencies: a caller names what it wants.
//!
//! Source: apt.conf(5), apt-get(8) (`download`, `indextargets`), dpkg-deb(1).

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Packages, below a folder of the build directory.
#[derive(Debug, Clone)]
pub struct Packages {
    root: PathBuf,
}

impl Packages {
    /// Those below `root`, which is made when needed.
    pub fn below(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The folder with the unpacked files of the newest version of `name` that was fetched before,
    /// or of the registry's.
    ///
    /// # Errors
    /// If there is no apt, no registry, or no such package.
    pub fn get(&self, name: &str) -> Result<PathBuf> {
        match self.fetched(name)? {
            Some(folder) => Ok(folder),
            None => self.fetch(name),
        }
    }

    /// The newest folder `NAME_VERSION_HASH` that is complete.
    fn fetched(&self, name: &str) -> Result<Option<PathBuf>> {
        let Ok(entries) = fs::read_dir(&self.root) else { return Ok(None) };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let is_ours = entry.file_name().to_string_lossy().strip_prefix(name).is_some_and(|rest| {
                // Names of packages hold no underscore; an unfinished folder ends in `.part`.
                rest.starts_with('_') && !rest.ends_with(".part")
            });
            if is_ours && entry.path().is_dir() {
                found.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        Ok(found.into_iter().max().map(|(_, path)| path))
    }

    /// The name of a package that was fetched before and begins with `prefix`, the last in the order
    /// of names.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn fetched_name(&self, prefix: &str) -> Result<Option<String>> {
        let Ok(entries) = fs::read_dir(&self.root) else { return Ok(None) };
        let mut last = None;
        for entry in entries {
            let file = entry?.file_name().to_string_lossy().into_owned();
            if file.starts_with(prefix) && !file.ends_with(".part") {
                last = last.max(file.split_once('_').map(|(name, _)| name.to_owned()));
            }
        }
        Ok(last)
    }

    fn fetch(&self, name: &str) -> Result<PathBuf> {
        let version = self.newest_version(name, "")?;
        self.fetch_version(name, &version)
    }

    /// The newest version of `name` that begins with `series`, for example `6.12.`.
    ///
    /// # Errors
    /// If the registry has none.
    pub fn newest_version(&self, name: &str, series: &str) -> Result<String> {
        self.update()?;
        // `madison`: name | version | where; the newest first.
        let text = output(self.apt("apt-cache").args(["madison", name]))?;
        let versions = text.lines().filter_map(|line| line.split('|').nth(1).map(str::trim));
        let found = versions.into_iter().find(|version| version.starts_with(series));
        found.map(str::to_owned).with_context(|| format!("the registry has no `{name}` of version `{series}…`"))
    }

    /// What `name` of `version` depends on, as the registry writes it.
    ///
    /// # Errors
    /// If the registry does not list it.
    pub fn dependencies(&self, name: &str, version: &str) -> Result<String> {
        self.field(name, version, "Depends")
    }

    fn field(&self, name: &str, version: &str, field: &str) -> Result<String> {
        let text = output(self.apt("apt-cache").args(["show", &format!("{name}={version}")]))?;
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(": "));
        value.map(str::to_owned).with_context(|| format!("the registry lists no {field} for `{name}` {version}"))
    }

    fn fetch_version(&self, name: &str, version: &str) -> Result<PathBuf> {
        let hash = self.field(name, version, "SHA256")?;
        let short: String = hash.chars().take(12).collect();
        let folder = self.root.join(format!("{name}_{}_{short}", version.replace(['/', ':'], "-")));
        if folder.is_dir() {
            return Ok(folder);
        }
        let unfinished = folder.with_added_extension("part");
        let _ = fs::remove_dir_all(&unfinished);
        let download = tempfile::tempdir_in(&self.root)?;
        output(self.apt("apt-get").current_dir(download.path()).args(["download", &format!("{name}={version}")]))?;
        let package = fs::read_dir(download.path())?.next().context("apt-get download left no file")??.path();
        let sum = output(Command::new("sha256sum").arg(&package))?;
        if !sum.starts_with(&hash) {
            bail!("`{name}` {version}: the file's SHA-256 is not the registry's {hash}");
        }
        output(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&unfinished))?;
        fs::rename(&unfinished, &folder)?;
        Ok(folder)
    }

    /// Gets the registry's lists, once an hour at most.
    fn update(&self) -> Result<()> {
        let stamp = self.root.join("apt/updated");
        let is_fresh = || fs::metadata(&stamp).ok()?.modified().ok()?.elapsed().ok().map(|age| age.as_secs() < 3600);
        if is_fresh() == Some(true) {
            return Ok(());
        }
        for folder in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(self.root.join("apt").join(folder))?;
        }
        fs::write(self.root.join("apt/sources.list"), self.sources()?)?;
        output(self.apt("apt-get").arg("update"))?;
        fs::write(&stamp, "")?;
        Ok(())
    }

    /// Returns the system's Debian sources, one per line, and their backports.
    fn sources(&self) -> Result<String> {
        let format = "$(REPO_URI) $(CODENAME) $(COMPONENT)";
        let text = output(Command::new("apt-get").args(["indextargets", "--format", format, "Created-By: Packages"]))
            .context("there is no apt that could name a registry")?;
        let sources = sources_of(&text);
        if sources.is_empty() {
            bail!("apt is configured for no registry of Debian");
        }
        Ok(sources)
    }

    /// A program of apt with lists and cache of our own.
    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let apt = self.root.join("apt");
        for (key, value) in [
            ("Dir::Etc::SourceList", apt.join("sources.list").display().to_string()),
            ("Dir::Etc::SourceParts", "-".into()),
            ("Dir::Etc::PreferencesParts", "-".into()),
            ("Dir::State::Lists", apt.join("lists").display().to_string()),
            ("Dir::Cache", apt.join("cache").display().to_string()),
            ("Debug::NoLocking", "1".into()),
            // A user of its own could not write below a private folder.
            ("APT::Sandbox::User", "".into()),
            ("Acquire::Languages", "none".into()),
        ] {
            command.args(["-o", &format!("{key}={value}")]);
        }
        command.args(["-q"]).env("LC_ALL", "C");
        command
    }
}

/// Lines for a sources.list from `URI CODENAME COMPONENT` lines: those of Debian, which are known by
/// a release that has updates of its own, and its backports.
fn sources_of(targets: &str) -> String {
    let mut lines = Vec::new();
    let fields: Vec<Vec<&str>> = targets.lines().map(|line| line.split_whitespace().collect()).collect();
    let releases: Vec<&str> =
        fields.iter().filter_map(|f| f.get(1)?.strip_suffix("-security")?.split('/').next()).collect();
    for field in fields.iter().filter(|field| field.len() >= 3 && field[2] == "main") {
        let (uri, suite) = (field[0], field[1]);
        let Some(release) = releases.iter().find(|release| suite.split(['-', '/']).next() == Some(release)) else {
            continue;
        };
        lines.push(format!("deb {uri} {suite} main"));
        if suite == *release {
            lines.push(format!("deb {uri} {release}-backports main"));
        }
    }
    lines.sort();
    lines.dedup();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns the output of a program; an error if it failed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("`{name}` cannot be started"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!("`{name}`: {}: {}", output.status, message.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_are_debians_with_the_backports_of_its_release() {
        let targets = "http://a/debian/ bookworm main\nhttp://a/debian/ bookworm-updates main\n\
            http://a/debian-security/ bookworm-security main\nhttp://b/node nodistro main\nhttp://c/x cloud main\n";
        let expected = "deb http://a/debian-security/ bookworm-security main\ndeb http://a/debian/ bookworm main\n\
            deb http://a/debian/ bookworm-backports main\ndeb http://a/debian/ bookworm-updates main\n";
        assert_eq!(sources_of(targets), expected);
        assert_eq!(sources_of("http://b/node nodistro main\n"), "");
    }

    #[test]
    fn a_package_that_is_unpacked_is_not_fetched_again_and_an_unfinished_one_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        for name in ["busybox-static_1_aa.part", "busybox_1_aa", "busybox-static-x_1_aa"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let packages = Packages::below(root.path());
        assert_eq!(packages.fetched("busybox-static").unwrap(), None);
        fs::create_dir(root.path().join("busybox-static_1_aa")).unwrap();
        assert_eq!(packages.get("busybox-static").unwrap(), root.path().join("busybox-static_1_aa"));
    }
}
