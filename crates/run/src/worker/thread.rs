//! Process settings of a worker's thread: processors, memory policy, priorities, credentials, timer slack.
//!
//! Sources: ioprio_set(2), sched_setaffinity(2), set_mempolicy(2), setpriority(2), prctl(2).

use crate::credentials::become_user;
use std::io;
use trueio_model::{IoPriority, JobPlan, MemoryMode, MemoryPolicy};

/// Gives the calling thread, and the programs it starts, the rights of the job's user.
pub(super) fn act_as_user(plan: &JobPlan) -> Result<(), String> {
    let Some(user) = plan.user else { return Ok(()) };
    become_user(user).map_err(|error| format!("acting as {user}: {error}"))
}

/// Applies the job's processors, memory policy, priorities and timer slack to the calling thread.
pub(super) fn apply_scheduling(plan: &JobPlan, worker: u32) -> Result<(), String> {
    if !plan.cpus.is_empty() {
        let own = [plan.cpus[worker as usize % plan.cpus.len()]];
        let cpus = if plan.scheduling.shares_cpus { &plan.cpus[..] } else { &own[..] };
        let mut set = rustix::thread::CpuSet::new();
        for cpu in cpus {
            if *cpu as usize >= rustix::thread::CpuSet::MAX_CPU {
                return Err(format!("pinning a worker to processor {cpu}: there is none"));
            }
            set.set(*cpu as usize);
        }
        rustix::thread::sched_setaffinity(None, &set).map_err(|e| {
            format!(
                "pinning a worker to processor {}: {e}",
                cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
            )
        })?;
    }
    if let Some(policy) = &plan.memory_policy {
        set_memory_policy(policy)?;
    }
    try_priorities(plan)?;
    if let Some((class, level)) = plan.scheduling.io_priority {
        let priority = IoPriority { class, level, hint: plan.scheduling.io_hint };
        set_priority(priority.value()).map_err(|error| {
            let needs = match error.raw_os_error() {
                Some(libc::EINVAL) if priority.hint > 0 => "; hints need Linux 6.5",
                _ => "",
            };
            format!("setting the I/O priority {priority}: {error}{needs}")
        })?;
    }
    if let Some(nice) = plan.nice {
        // SAFETY: a plain call; 0 names the calling thread.
        if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) } != 0 {
            return Err(format!("setting the nice value {nice}: {}", io::Error::last_os_error()));
        }
    }
    if plan.is_paced() || plan.think.is_some() {
        // Timers of this thread fire as exactly as the kernel can.
        // SAFETY: a plain call with integer arguments.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    }
    Ok(())
}

/// ioprio_set(2) and ioprio_get(2): the thread's own.
const IOPRIO_WHO_PROCESS: libc::c_long = 1;

fn set_priority(value: u16) -> io::Result<()> {
    let value = libc::c_long::from(value);
    // SAFETY: a plain call with integer arguments; 0 names the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0 as libc::c_long, value) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The kernel's word on the priorities of single I/Os, before any I/O has one: it judges them as it judges those of
/// threads (Linux `block/ioprio.c`, `ioprio_check_cap`).
fn try_priorities(plan: &JobPlan) -> Result<(), String> {
    if plan.priorities.is_empty() {
        return Ok(());
    }
    // SAFETY: a plain call with integer arguments; 0 names the calling thread.
    let before = unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0 as libc::c_long) };
    for share in &plan.priorities {
        set_priority(share.priority.value()).map_err(|error| {
            let needs = match (error.raw_os_error(), share.priority.class) {
                (Some(libc::EPERM), IoPriority::REAL_TIME) => "; real time needs CAP_SYS_NICE or CAP_SYS_ADMIN",
                (Some(libc::EINVAL), _) if share.priority.hint > 0 => "; hints need Linux 6.5",
                _ => "",
            };
            format!("the kernel refuses the I/O priority {} (`cmdprio_bssplit`): {error}{needs}", share.priority)
        })?;
    }
    set_priority(u16::try_from(before).unwrap_or(0)).map_err(|error| format!("setting the I/O priority back: {error}"))
}

/// Where the thread's new pages come from, its buffers' among them: they are made afterwards.
fn set_memory_policy(policy: &MemoryPolicy) -> Result<(), String> {
    let mode: libc::c_long = match policy.mode {
        MemoryMode::Default => 0,
        MemoryMode::Prefer => 1,
        MemoryMode::Bind => 2,
        MemoryMode::Interleave => 3,
        MemoryMode::Local => 4,
    };
    const BITS: usize = libc::c_ulong::BITS as usize;
    let words = policy.nodes.iter().max().map_or(0, |node| *node as usize / BITS + 1);
    let mut mask: Vec<libc::c_ulong> = vec![0; words];
    for node in &policy.nodes {
        mask[*node as usize / BITS] |= 1 << (*node as usize % BITS);
    }
    // The kernel reads one bit less than the given count.
    let (pointer, bits) = if words > 0 { (mask.as_ptr(), words * BITS + 1) } else { (std::ptr::null(), 0) };
    // SAFETY: the kernel reads `bits` bits less one from `mask`, which lives until the call returns.
    if unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, pointer, bits) } != 0 {
        let error = io::Error::last_os_error();
        let name = policy.mode.name();
        return Err(format!("setting the memory policy `{name}` of nodes {:?}: {error}", policy.nodes));
    }
    Ok(())
}
