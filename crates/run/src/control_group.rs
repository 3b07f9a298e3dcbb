//! Control groups that jobs join (`cgroup`).
//!
//! A worker is a thread, and a group of version 1 holds threads: each worker joins the group of its job before its first
//! I/O. A group that does not exist is created, and removed when the workers of the phase have ended, unless the job keeps it.
//!
//! Limits: groups of version 2 hold whole processes, other jobs' workers included, and are refused. A killed run leaves the
//! groups that it created.
//!
//! Source: Linux `Documentation/admin-guide/cgroup-v1/`, `blkio-controller.rst`; fio 3.42's HOWTO, `cgroup`.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trueio_device::{IoHierarchy, System, io_hierarchy};
use trueio_model::{ControlGroupPlan, JobPlan};

/// Attempts to remove a group, [`PAUSE`] apart: the kernel removes a thread from its group shortly after the thread has ended.
const REMOVALS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// The groups that a phase creates; they are removed when this is dropped, which must be after the workers have ended.
#[derive(Debug, Default)]
pub(crate) struct CreatedGroups(Vec<PathBuf>);

impl CreatedGroups {
    /// Notes the groups that these jobs will create, before they do.
    pub(crate) fn of(plans: &[&JobPlan]) -> Self {
        let groups = plans.iter().filter_map(|plan| plan.control_group.as_ref()).filter(|group| !group.is_kept);
        let mut paths: Vec<PathBuf> = groups.filter_map(|group| Some(path_of(&hierarchy().ok()?, group))).collect();
        paths.retain(|path| !path.exists());
        paths.sort();
        paths.dedup();
        Self(paths)
    }
}

impl Drop for CreatedGroups {
    fn drop(&mut self) {
        for path in self.0.iter().rev() {
            for _ in 0..REMOVALS {
                match fs::remove_dir(path) {
                    Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(PAUSE),
                    // Another program may have removed it, or have joined it for longer.
                    _ => break,
                }
            }
        }
    }
}

/// Lets the calling thread join the job's group, which is created if it does not exist.
pub(crate) fn join(plan: &JobPlan) -> Result<(), String> {
    let Some(group) = &plan.control_group else { return Ok(()) };
    let hierarchy = hierarchy()?;
    let path = path_of(&hierarchy, group);
    let failed = |what: &str, error: io::Error| format!("{what} `{}` (`cgroup`): {error}", path.display());
    match DirBuilder::new().mode(0o755).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed("creating the control group", error));
        }
        _ => {}
    }
    if let Some(weight) = group.weight {
        let files = ["blkio.weight", "blkio.bfq.weight"].map(|name| path.join(name));
        let file = files.iter().find(|file| file.exists()).ok_or_else(|| {
            format!("`cgroup_weight={weight}`: the kernel has no weights in `{}`; leave it out", path.display())
        })?;
        set(file, &weight.to_string()).map_err(|error| failed("setting the weight of the control group", error))?;
    }
    // 0 is the thread that writes.
    set(&path.join("tasks"), "0").map_err(|error| failed("joining the control group", error))
}

/// Returns the hierarchy, or a sentence why its groups cannot be joined.
fn hierarchy() -> Result<IoHierarchy, String> {
    match io_hierarchy(&System::live()) {
        Some(hierarchy) if !hierarchy.is_v2 => Ok(hierarchy),
        Some(_) => {
            Err("`cgroup`: control groups of version 2 hold whole processes, and a job here is threads; start the \
                        program in a group: `systemd-run --scope -p IOWeight=…`"
                .to_owned())
        }
        None => Err("`cgroup`: no hierarchy of control groups for block I/O is mounted".to_owned()),
    }
}

fn path_of(hierarchy: &IoHierarchy, group: &ControlGroupPlan) -> PathBuf {
    hierarchy.mount_point.join(&group.name)
}

/// Writes to a file of the kernel that exists.
fn set(path: &Path, text: &str) -> io::Result<()> {
    io::Write::write_all(&mut fs::OpenOptions::new().write(true).open(path)?, text.as_bytes())
}
