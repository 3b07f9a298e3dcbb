//! What the environment may decide: nothing for a program with more rights than its caller, and no code for root.
//!
//! The environment is the caller's. With `sudo -E` it is that of another user, and libpmix loads plugins, settings and itself
//! from directories that variables name. So as root each of those directories must be one that only root can change.
//!
//! A library that is named without a directory is looked for where the system's loader does, and opened by its path.
//!
//! Limits: the libraries that a library of root needs are found by the loader.
//!
//! Sources: getauxval(3) `AT_SECURE`; OpenPMIx `pmix_mca_base_var.c`, `pmix_mca_base_open.c`, `installdirs_env.c` (names of
//! variables, `$HOME/.pmix`); hwloc `HWLOC_PLUGINS_PATH`; ld.so(8).

use super::LauncherError;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use trueio_files::{PathError, Problem, changed_by_root_only};

/// Returns true if the kernel gave this process more rights than its caller has: set-ID bits, file capabilities.
pub fn has_more_rights() -> bool {
    // SAFETY: a plain call with a number.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Returns a variable of the environment; `None` if it is not set, or if this process [has more
/// rights](has_more_rights) than the caller, who sets it.
pub fn environment(name: &str) -> Option<String> {
    if has_more_rights() { None } else { std::env::var(name).ok() }
}

/// Checks, as root, that no variable of the launcher leads to code or settings of another user. Other users load what they
/// like.
///
/// # Errors
/// [`LauncherError::NotRoots`] with the first such variable.
pub(super) fn check_variables() -> Result<(), LauncherError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    std::env::vars_os().try_for_each(|(name, value)| check_variable(&name, &value))
}

fn check_variable(name: &OsStr, value: &OsStr) -> Result<(), LauncherError> {
    let name = name.to_string_lossy();
    if !leads_to_code(&name) {
        return Ok(());
    }
    let parts = value.as_bytes().split(|byte| b":,;".contains(byte)).filter(|part| !part.is_empty());
    for part in parts {
        let path = Path::new(OsStr::from_bytes(part));
        check_path(path).map_err(|source| LauncherError::NotRoots {
            name: name.clone().into_owned(),
            value: value.to_string_lossy().into_owned(),
            source,
        })?;
    }
    Ok(())
}

/// Checks a file or directory that may be missing.
fn check_path(path: &Path) -> Result<(), PathError> {
    if !path.is_absolute() {
        let problem = Problem::Io(std::io::Error::other("it is not absolute, so the working directory decides"));
        return Err(PathError { path: path.to_owned(), problem });
    }
    match changed_by_root_only(path) {
        Ok(_) => Ok(()),
        // The directories above it are root's, so only root can create it.
        Err(PathError { problem: Problem::Io(error), .. }) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether libpmix, a library below it or the loader reads code or settings from the paths in a variable.
fn leads_to_code(name: &str) -> bool {
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    match name {
        "HOME" | "LD_LIBRARY_PATH" | "HWLOC_PLUGINS_PATH" | "PMIX_ROOT" | "OPAL_PREFIX" => true,
        _ if name.starts_with("PMIX_MCA_") => ends(&["path", "file", "files", "prefix", "force", "dir", "dirs"]),
        _ if name.starts_with("PMIX_") => ends(&["PREFIX", "DIR"]) && !name.ends_with("TMPDIR"),
        _ => false,
    }
}

/// Returns the files to try for a library, which may be named without a directory. As root, they are paths without symbolic links of
/// files that only root can change.
///
/// # Errors
/// [`LauncherError::NotRoots`].
pub(super) fn library_files(file: &str) -> Result<Vec<OsString>, LauncherError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(vec![file.into()]);
    }
    let files = if file.contains('/') { vec![PathBuf::from(file)] } else { super::loader::files_of(file) };
    let checked = files.iter().filter_map(|file| match changed_by_root_only(file) {
        Ok(path) => Some(Ok(path.into())),
        Err(PathError { problem: Problem::Io(_), .. }) => None,
        Err(source) => {
            let value = file.display().to_string();
            Some(Err(LauncherError::NotRoots { name: "libpmix".to_owned(), value, source }))
        }
    });
    checked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use trueio_testkit::{NOBODY, lacks, roots_folder};

    #[test]
    fn variables_with_code_are_known_by_their_names() {
        for name in [
            "PMIX_PREFIX",
            "PMIX_INSTALL_PREFIX",
            "PMIX_PKGLIBDIR",
            "PMIX_MCA_mca_base_component_path",
            "PMIX_MCA_mca_base_param_files",
            "OPAL_PREFIX",
            "HOME",
        ] {
            assert!(leads_to_code(name), "{name}");
        }
        for name in ["PMIX_NAMESPACE", "PMIX_SERVER_TMPDIR", "PMIX_SYSTEM_TMPDIR", "PMIX_MCA_gds", "PATH", "OMPI_MCA_x"]
        {
            assert!(!leads_to_code(name), "{name}");
        }
    }

    /// Goal: whoever owns a directory above a library, the library or a link to it, root loads it only if that is root.
    #[test]
    fn root_loads_no_library_that_another_user_can_change() {
        if lacks("root") {
            return;
        }
        let staged = roots_folder();
        let path = |name: &str| staged.path().join(name);
        let set = |name: &str, owner: u32, mode: u32| {
            chown(path(name), Some(owner), None).expect("root may");
            std::fs::set_permissions(path(name), PermissionsExt::from_mode(mode)).expect("a mode");
        };
        let reset = || {
            for name in ["", "prefix", "prefix/lib"] {
                set(name, 0, 0o755);
            }
            set("prefix/lib/libpmix.so.2", 0, 0o644);
        };
        std::fs::create_dir_all(path("prefix/lib")).expect("directories");
        std::fs::write(path("prefix/lib/libpmix.so.2"), "").expect("a file");
        symlink("prefix", path("link")).expect("a link");
        let library = |prefix: &str| library_files(&format!("{}/lib/libpmix.so.2", path(prefix).display()));
        let variable = |prefix: &str| check_variable(OsStr::new("PMIX_PREFIX"), path(prefix).as_os_str());
        reset();
        let expected = std::fs::canonicalize(path("prefix/lib/libpmix.so.2")).expect("a file");
        for prefix in ["prefix", "link"] {
            assert_eq!(library(prefix).expect("it is root's"), [OsString::from(expected.clone())]);
            variable(prefix).expect("it is root's");
        }
        assert!(library("missing").expect("only root can create it").is_empty());
        for name in ["", "prefix", "prefix/lib", "prefix/lib/libpmix.so.2"] {
            for (owner, mode) in [(NOBODY, 0o755), (0, 0o775), (0, 0o757), (0, 0o1777)] {
                set(name, owner, mode);
                assert!(library("prefix").is_err() && library("link").is_err(), "{name} {owner} {mode:o}");
                assert_eq!(variable("prefix").is_err(), !name.starts_with("prefix/"), "{name} {owner} {mode:o}");
                reset();
            }
        }
        rustix::fs::chownat(
            rustix::fs::CWD,
            path("link"),
            Some(rustix::process::Uid::from_raw(NOBODY)),
            None,
            rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
        )
        .expect("root may");
        let error = trueio_model::error_line(&variable("link").expect_err("a link of another user"));
        assert!(error.contains("is a symbolic link of another user (UID 65534)"), "{error}");
        assert!(check_variable(OsStr::new("PMIX_PREFIX"), OsStr::new("relative")).is_err());
    }
    /// Goal: root opens no library of a directory that others can change because it was named without one.
    /// Method: a program that runs as root with such a directory in `LD_LIBRARY_PATH`, where the loader looks first.
    #[test]
    fn a_library_without_a_directory_is_opened_by_a_path_that_only_root_can_change() {
        if lacks("root") {
            return;
        }
        let staged = roots_folder();
        let file = staged.path().join("libtrueio-staged.so.2");
        std::fs::write(&file, "").expect("a file");
        let helper = || {
            let program = std::env::current_exe().expect("this program");
            let mut command = std::process::Command::new(program);
            command.args(["--exact", "launcher::authority::tests::helper", "--nocapture"]);
            let output = command.env("LD_LIBRARY_PATH", staged.path()).output().expect("it runs");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        std::fs::set_permissions(staged.path(), PermissionsExt::from_mode(0o755)).expect("a mode");
        assert!(
            helper().contains(&format!("found Ok([{:?}])", std::fs::canonicalize(&file).expect("a file"))),
            "{}",
            helper()
        );
        std::fs::set_permissions(staged.path(), PermissionsExt::from_mode(0o1777)).expect("a mode");
        assert!(helper().contains("found Err(NotRoots"), "{}", helper());
    }

    /// Run by the test above in another process.
    #[test]
    fn helper() {
        if std::env::var_os("LD_LIBRARY_PATH").is_some() {
            println!("found {:?}", library_files("libtrueio-staged.so.2"));
        }
    }
}
