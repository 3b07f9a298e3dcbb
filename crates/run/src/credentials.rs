//! Whose rights a thread has (`uid`, `gid`).
//!
//! For the kernel each thread has credentials of its own; that all threads of a process change together is the C
//! library's doing. The calls here go past it and change the calling thread only: a worker becomes another user for
//! good, with whatever it starts from then on, and the thread that creates and opens files is that user for as long as that takes ([`Acting`]).
//!
//! As with setuid(2), capabilities go with the change from root to another user: nothing is then read, written or
//! allocated by more than that user's rights. Further groups go, too: those of root would let its files be read. From
//! the first change on the kernel lets only the privileged look into this process (`PR_GET_DUMPABLE`, prctl(2)), and that
//! stays: a thread that belongs to another user would open that user a way to the memory of all.
//!
//! Source: credentials(7), setresuid(2) "C library/kernel differences", capabilities(7), faccessat(2).

use rustix::fs::{AtFlags, CWD};
use rustix::process::{Gid, Uid, getegid, geteuid, getgroups};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::io;
use std::marker::PhantomData;
use std::path::Path;
use trueio_model::UserPlan;

pub use rustix::fs::Access;

/// Whom a job acts as that asks for these numbers; `None`: as the calling thread does anyway. What is not asked for
/// stays as it is.
///
/// # Errors
/// Why this thread may not act so.
pub fn user_of(uid: Option<u32>, gid: Option<u32>) -> io::Result<Option<UserPlan>> {
    let own = UserPlan { uid: geteuid().as_raw(), gid: getegid().as_raw() };
    let user = UserPlan { uid: uid.unwrap_or(own.uid), gid: gid.unwrap_or(own.gid) };
    if user == own {
        return Ok(None);
    }
    // Only the kernel can decide: capabilities, user namespaces and security modules have a say.
    Acting::begin(Some(user)).map(|_acting| Some(user))
}

/// Makes the calling thread, and no other, act as a user from now on.
///
/// Between fork and exec it may be called, too: it makes three system calls, and nothing else.
///
/// # Errors
/// The kernel's. Some of the rights may be gone by then.
pub fn become_user(user: UserPlan) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

/// Whether a user may use a path so.
///
/// # Errors
/// The kernel's answer, or why no thread can act as that user.
pub fn may_use(user: UserPlan, path: &Path, access: Access) -> io::Result<()> {
    let _acting = Acting::begin(Some(user))?;
    Ok(rustix::fs::accessat(CWD, path, access, AtFlags::EACCESS)?)
}

/// While this lives, the calling thread acts as a user.
#[derive(Debug)]
#[must_use]
pub struct Acting {
    before: Option<(Uid, Gid, Vec<Gid>)>,
    /// It is the thread's that began it.
    not_send: PhantomData<*const ()>,
}

impl Acting {
    /// Begins to act as `user`; `None` changes nothing.
    ///
    /// # Errors
    /// The kernel's. Nothing has changed then.
    pub fn begin(user: Option<UserPlan>) -> io::Result<Self> {
        let Some(user) = user else { return Ok(Self { before: None, not_send: PhantomData }) };
        let groups = getgroups()?;
        let acting = Self { before: Some((geteuid(), getegid(), groups)), not_send: PhantomData };
        // The real and the saved numbers stay, so that there is a way back.
        let (none_uid, none_gid) = (None::<Uid>, None::<Gid>);
        let begun = set_thread_groups(&[])
            .and_then(|()| set_thread_res_gid(none_gid, Gid::from_raw(user.gid), none_gid))
            .and_then(|()| set_thread_res_uid(none_uid, Uid::from_raw(user.uid), none_uid));
        // What has changed before an error is taken back by the guard.
        begun?;
        Ok(acting)
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        let Some((uid, gid, groups)) = self.before.take() else { return };
        // First the user: the rest needs its capabilities. If nothing was allowed, nothing has to be taken back.
        let back = || {
            set_thread_res_uid(None::<Uid>, uid, None::<Uid>)?;
            set_thread_res_gid(None::<Gid>, gid, None::<Gid>)?;
            if getgroups()? == groups { Ok(()) } else { set_thread_groups(&groups) }
        };
        let result: rustix::io::Result<()> = back();
        assert!(result.is_ok(), "a thread cannot act as before: {result:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::capabilities;

    /// The user `nobody` on most systems; any user except root is suitable.
    const NOBODY: UserPlan = UserPlan { uid: 65_534, gid: 65_533 };

    /// True if this cannot be tested here, after saying why.
    fn lacks_root() -> bool {
        let reason = match (geteuid().is_root(), user_of(Some(NOBODY.uid), Some(NOBODY.gid))) {
            (false, _) => "other users need root".to_owned(),
            (true, Err(error)) => format!("this root may not act as other users: {error}"),
            (true, Ok(_)) => return false,
        };
        let required = std::env::var("TRUEIO_REQUIRE").unwrap_or_default();
        assert!(!required.split([',', ' ']).any(|need| need == "root"), "TRUEIO_REQUIRE lists `root`, but {reason}");
        eprintln!("skipped: {reason}");
        true
    }

    fn identity() -> (u32, u32, Vec<u32>, u64) {
        let groups = getgroups().expect("groups").iter().map(|group| group.as_raw()).collect();
        let effective = capabilities(None).expect("capabilities").effective;
        (geteuid().as_raw(), getegid().as_raw(), groups, effective.bits())
    }

    #[test]
    fn acting_as_a_user_grants_only_that_users_rights_and_restores_the_own_ones_afterwards() {
        if lacks_root() {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(folder.path(), closed).expect("it is ours");
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "x").expect("a file");
        let before = identity();
        assert_ne!(before.3, 0, "root has capabilities");
        {
            let _acting = Acting::begin(Some(NOBODY)).expect("root may");
            assert_eq!(identity(), (NOBODY.uid, NOBODY.gid, vec![], 0));
            assert_eq!(std::fs::read(&secret).expect_err("it is root's").kind(), io::ErrorKind::PermissionDenied);
            let child = std::thread::scope(|scope| scope.spawn(|| geteuid().as_raw()).join().expect("it ends"));
            assert_eq!(child, NOBODY.uid, "a program that it starts runs as that user");
        }
        assert_eq!(identity(), before);
        std::fs::read(&secret).expect("it is root's");
        assert_eq!(
            may_use(NOBODY, &secret, Access::READ_OK).expect_err("the folder is root's").kind(),
            io::ErrorKind::PermissionDenied
        );
        assert_eq!(identity(), before);
        assert_eq!(user_of(None, Some(before.1)).expect("it is us"), None);
        assert_eq!(user_of(Some(7), None).expect("root may"), Some(UserPlan { uid: 7, gid: before.1 }));
    }

    #[test]
    fn a_thread_that_becomes_a_user_is_the_only_one() {
        if lacks_root() {
            return;
        }
        let before = identity();
        let there = std::thread::spawn(|| {
            become_user(NOBODY).expect("root may");
            let was = identity();
            let refused = Acting::begin(Some(UserPlan { uid: 0, gid: 0 })).expect_err("there is no way back");
            assert_eq!(identity(), was, "what was refused has changed nothing");
            (was, refused.kind())
        });
        let gone = (NOBODY.uid, NOBODY.gid, vec![], 0);
        assert_eq!(there.join().expect("it ends"), (gone, io::ErrorKind::PermissionDenied));
        assert_eq!(identity(), before);
    }
}
