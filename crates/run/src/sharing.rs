//! The combined extent of all jobs that use one file.

use trueio_model::{FileAccess, JobPlan};

/// The combined extent of all jobs of a run that use one file, from the view of one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sharing {
    /// The phase whose view it is: its position in the plan, from 0.
    pub(crate) phase: u32,
    /// The largest end of any job's region, in bytes: the length that the file gets.
    pub(crate) end_bytes: u64,
    /// The largest end among jobs of earlier phases, in bytes: these may have extended the file to it.
    pub(crate) earlier_end_bytes: u64,
    /// The largest start of any job's region, in bytes.
    pub(crate) begin_bytes_max: u64,
    /// The largest start among jobs of this phase, in bytes.
    pub(crate) phase_begin_bytes_max: u64,
    /// The users that may use the file, if a job creates it: those that the first of the jobs permits.
    pub(crate) access: FileAccess,
    /// True if a file that appeared after planning may be used: no job removes it (`unlink_each_loop`).
    pub(crate) may_appear: bool,
    /// True if a job adds to the end that the file had when it was planned (`file_append`).
    pub(crate) appends: bool,
    /// True if a job of this phase empties the file that an earlier one wrote (`renew_files`).
    pub(crate) is_renewed: bool,
}

impl Sharing {
    /// Computes the extent of the file at `path` from all `jobs`, for phase `phase`.
    pub(crate) fn of(jobs: &[JobPlan], path: &str, phase: u32) -> Self {
        let first = jobs.iter().find(|job| job.files.iter().any(|file| file.path == path));
        let mut sharing = Self {
            phase,
            end_bytes: 0,
            earlier_end_bytes: 0,
            begin_bytes_max: 0,
            phase_begin_bytes_max: 0,
            access: first.map_or(FileAccess::Private, |job| job.handling.new_files),
            may_appear: true,
            appends: false,
            is_renewed: false,
        };
        for job in jobs {
            for file in job.files.iter().filter(|file| file.path == path) {
                let end = file.offset_bytes + file.size_bytes;
                sharing.may_appear &= !job.handling.remakes_each_pass && !file.remove_after;
                sharing.appends |= job.handling.appends;
                sharing.end_bytes = sharing.end_bytes.max(end);
                sharing.begin_bytes_max = sharing.begin_bytes_max.max(file.offset_bytes);
                if job.phase == phase {
                    sharing.is_renewed |= job.handling.renews_files;
                    sharing.phase_begin_bytes_max = sharing.phase_begin_bytes_max.max(file.offset_bytes);
                }
                if job.phase < phase {
                    sharing.earlier_end_bytes = sharing.earlier_end_bytes.max(end);
                }
            }
        }
        sharing
    }

    /// Returns true if another run may give the file, which had `there` bytes when it was planned, its planned length: it was empty,
    /// as a file that another run has just created, and no job appends to it or removes it.
    pub(crate) fn may_be_filled_by_others(self, there: u64) -> bool {
        there == 0 && self.may_appear && !self.appends
    }
}
