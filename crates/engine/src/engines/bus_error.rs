//! Copies from and to a mapping whose file may fail or shrink meanwhile.
//!
//! The kernel answers a page that it cannot have with SIGBUS, which ends the process, and with it
//! the record of everything measured until then. While a thread copies, the page in question is
//! replaced by an empty one of our own, the copy continues, and the caller gets the range that was lost.
//! A SIGBUS anywhere else goes to the handler that was installed before.
//!
//! Cannot see: why the page could not be had. The caller reads the file's length.
//!
//! Source: mmap(2), "SIGBUS"; signal-safety(7). mmap is not on that page's list and is a plain system
//! call; Wayland's `wl_shm_buffer_begin_access` guards foreign memory in the same way.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};

/// What this thread copies now, and what it lost: addresses; 0 and 0: nothing.
struct Copying {
    begin: Cell<usize>,
    end: Cell<usize>,
    lost_first: Cell<usize>,
    lost_end: Cell<usize>,
}

thread_local! {
    // Without a destructor, and touched by the thread before it copies: the handler allocates nothing.
    static COPYING: Copying = const {
        Copying { begin: Cell::new(0), end: Cell::new(0), lost_first: Cell::new(0), lost_end: Cell::new(0) }
    };
}

static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The previous handler of the signal.
struct Before(libc::sigaction);

// SAFETY: the structure is numbers and addresses of code, written once and then only read.
unsafe impl Send for Before {}
// SAFETY: as above.
unsafe impl Sync for Before {}

static BEFORE: OnceLock<Before> = OnceLock::new();

/// Takes the signal, once for the process.
pub(super) fn watch() {
    BEFORE.get_or_init(|| {
        // SAFETY: a plain question.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        PAGE_BYTES.store(usize::try_from(page).unwrap_or(4096), Ordering::Relaxed);
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: the action is zeroed but for a handler that makes one system call and touches this
        // thread's cells; the kernel fills `before`. On the alternate stack, as the one before is.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &action, before.as_mut_ptr());
            Before(before.assume_init())
        }
    });
}

unsafe extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a filled structure for a handler with SA_SIGINFO.
    let address = unsafe { (*info).si_addr() } as usize;
    let is_ours = COPYING.try_with(|copying| {
        if !(copying.begin.get()..copying.end.get()).contains(&address) {
            return false;
        }
        let page_bytes = PAGE_BYTES.load(Ordering::Relaxed);
        let page = address & !(page_bytes - 1);
        // SAFETY: the page lies in the range that this thread registered for its copy, a mapping of the engine's.
        let replaced = unsafe {
            libc::mmap(
                page as *mut libc::c_void,
                page_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if replaced == libc::MAP_FAILED {
            return false;
        }
        if copying.lost_end.get() == 0 {
            copying.lost_first.set(page);
        }
        copying.lost_first.set(copying.lost_first.get().min(page));
        copying.lost_end.set(copying.lost_end.get().max(page + page_bytes));
        true
    });
    if is_ours == Ok(true) {
        return;
    }
    let before = BEFORE.get().map(|before| &before.0);
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN || before.is_none_or(|b| b.sa_flags & libc::SA_SIGINFO == 0)
    {
        // The access is made again when we return, and ends the process as it always did.
        // SAFETY: resetting a signal runs nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    // SAFETY: a handler of this form was registered with SA_SIGINFO at this address.
    unsafe {
        let handler: unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
            std::mem::transmute(handler);
        handler(signal, info, context);
    }
}

/// Runs `copy`, which touches the mapping from `begin` to `end` (addresses). What of it could not be
/// had: a range of addresses, now backed by empty pages of our own.
#[inline(always)]
pub(super) fn guarded(begin: usize, end: usize, copy: impl FnOnce()) -> Option<(usize, usize)> {
    COPYING.with(|copying| {
        copying.begin.set(begin);
        copying.end.set(end);
        // The handler runs on this thread: the compiler alone could reorder.
        compiler_fence(Ordering::SeqCst);
        copy();
        compiler_fence(Ordering::SeqCst);
        copying.end.set(0);
        if copying.lost_end.get() == 0 {
            return None;
        }
        let lost = (copying.lost_first.get(), copying.lost_end.get());
        copying.lost_end.set(0);
        Some(lost)
    })
}
