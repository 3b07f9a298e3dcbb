//! PMIx through the launcher's own library, opened at run time.
//!
//! Open MPI, PRRTE and `srun --mpi=pmix` serve PMIx. Nothing is linked: `libpmix.so.2` is the file name of all versions
//! from 2 to 6, and of those the layouts below hold for 3 to 6. Version 2 has smaller values and is refused.
//!
//! The library starts a thread, which sleeps until the server sends something. A fence that a rank never reaches may not
//! return, so each call that waits for others runs on a thread of its own with a limit.
//!
//! Cannot be used by a static build (no dynamic loading), nor in another network or user namespace than the server's.
//!
//! Source: headers of OpenPMIx 3.1.5 to 6.1.0 (`pmix_common.h`, `pmix.h`).

use super::authority::{check_variables, library_files};
use super::{KeySpace, LauncherError, Variables};
use crate::Limit;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::mpsc;

type Status = c_int;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Process {
    namespace: [u8; 256],
    rank: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct ByteObject {
    bytes: *mut c_char,
    size: usize,
}

#[repr(C)]
union Data {
    flag: bool,
    number16: u16,
    number32: u32,
    bytes: ByteObject,
    /// `pmix_envar_t`, the largest member since version 3: two pointers and a character.
    room: [u64; 3],
}

#[repr(C)]
struct Value {
    kind: u16,
    data: Data,
}

#[repr(C)]
struct Info {
    key: [u8; 512],
    flags: u32,
    value: Value,
}

const _: () = assert!(size_of::<Process>() == 260 && size_of::<ByteObject>() == 16);
const _: () = assert!(size_of::<Value>() == 32 && size_of::<Info>() == 552);
const _: () = assert!(std::mem::offset_of!(Value, data) == 8 && std::mem::offset_of!(Info, value) == 520);

/// All processes of a namespace.
const RANK_WILDCARD: u32 = u32::MAX - 1;
/// `PMIX_GLOBAL`: visible to all processes.
const SCOPE_GLOBAL: u8 = 3;
// Kinds of values.
const KIND_BOOL: u16 = 1;
const KIND_INT: u16 = 6;
const KIND_UINT16: u16 = 13;
const KIND_UINT32: u16 = 14;
const KIND_BYTES: u16 = 27;
const KIND_RANK: u16 = 40;
/// The first versions whose layouts are not those above.
const VERSIONS: std::ops::RangeInclusive<u32> = 3..=6;
const KEY: &CStr = c"trueio-rank0";

/// The functions of the library.
#[derive(Debug, Clone, Copy)]
struct Library {
    init: unsafe extern "C" fn(*mut Process, *mut Info, usize) -> Status,
    finalize: unsafe extern "C" fn(*const Info, usize) -> Status,
    abort: unsafe extern "C" fn(c_int, *const c_char, *mut Process, usize) -> Status,
    put: unsafe extern "C" fn(u8, *const c_char, *mut Value) -> Status,
    commit: unsafe extern "C" fn() -> Status,
    fence: unsafe extern "C" fn(*const Process, usize, *const Info, usize) -> Status,
    get: unsafe extern "C" fn(*const Process, *const c_char, *const Info, usize, *mut *mut Value) -> Status,
    version: unsafe extern "C" fn() -> *const c_char,
    error_text: unsafe extern "C" fn(Status) -> *const c_char,
}

/// A client of a PMIx server.
#[derive(Debug)]
pub struct Pmix {
    library: Library,
    me: Process,
    size: u32,
    version: String,
}

/// Returns the files to try, the launcher's own first: a client of another version works, and its server may print errors.
pub fn candidates(variable: Variables<'_>) -> Vec<String> {
    let mut files = Vec::new();
    for prefix in ["PMIX_PREFIX", "PMIX_INSTALL_PREFIX", "PMIX_ROOT", "OPAL_PREFIX"] {
        let Some(prefix) = variable(prefix).filter(|value| !value.is_empty()) else { continue };
        files
            .extend(["lib", "lib64", "lib/openmpi", "lib64/openmpi"].map(|lib| format!("{prefix}/{lib}/libpmix.so.2")));
    }
    files.push("libpmix.so.2".to_owned());
    files
}

/// Returns the number of a version text: `3.2.5`, or `OpenPMIx 4.2.2, repo rev: …` since version 4.
pub fn major_version(text: &str) -> Option<u32> {
    let from_digit = &text[text.find(|c: char| c.is_ascii_digit())?..];
    from_digit.split('.').next()?.parse().ok()
}

/// Refuses a version whose layouts are not known.
///
/// # Errors
/// The version is not 3 to 6.
pub fn check_version(text: &str) -> Result<(), LauncherError> {
    match major_version(text) {
        Some(major) if VERSIONS.contains(&major) => Ok(()),
        _ => Err(LauncherError::Refused {
            what: format!("libpmix {text}"),
            answer: format!("only versions {} to {} are supported", VERSIONS.start(), VERSIONS.end()),
        }),
    }
}

impl Library {
    /// Opens the library.
    fn open(files: &[String]) -> Result<Self, LauncherError> {
        let mut reason = String::new();
        for file in files {
            let found = library_files(file)?;
            if found.is_empty() {
                reason = format!("{file}: there is no such file");
            }
            for name in found {
                let Ok(name) = CString::new(name.as_bytes()) else { continue };
                // Its plugins look up its symbols, so they are global.
                // SAFETY: a valid C string; the launcher's library runs its own initializers.
                let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
                if !handle.is_null() {
                    return Self::of(handle);
                }
                // SAFETY: dlopen of this thread has just failed, so there is a text, valid until the next call of this kind.
                reason = unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned();
            }
        }
        Err(LauncherError::Refused { what: "libpmix cannot be opened".into(), answer: reason })
    }

    /// Looks up the functions.
    fn of(handle: *mut c_void) -> Result<Self, LauncherError> {
        let symbol = |name: &'static CStr| {
            // SAFETY: a live handle, which is never closed, and a C string.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            let missing = || {
                let answer = format!("it has no function {}", name.to_string_lossy());
                LauncherError::Refused { what: "libpmix".into(), answer }
            };
            if found.is_null() { Err(missing()) } else { Ok(found) }
        };
        // SAFETY: a data pointer of dlsym is the function's address, and the types are those of the headers, unchanged in
        // versions 3 to 6; others are refused before any of these is called with a structure.
        unsafe {
            Ok(Self {
                init: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut Process, *mut Info, usize) -> Status>(
                    symbol(c"PMIx_Init")?,
                ),
                finalize: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const Info, usize) -> Status>(
                    symbol(c"PMIx_Finalize")?,
                ),
                abort: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(c_int, *const c_char, *mut Process, usize) -> Status,
                >(symbol(c"PMIx_Abort")?),
                put: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u8, *const c_char, *mut Value) -> Status>(
                    symbol(c"PMIx_Put")?,
                ),
                commit: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> Status>(symbol(c"PMIx_Commit")?),
                fence: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*const Process, usize, *const Info, usize) -> Status,
                >(symbol(c"PMIx_Fence")?),
                get: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*const Process, *const c_char, *const Info, usize, *mut *mut Value) -> Status,
                >(symbol(c"PMIx_Get")?),
                version: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const c_char>(symbol(
                    c"PMIx_Get_version",
                )?),
                error_text: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Status) -> *const c_char>(symbol(
                    c"PMIx_Error_string",
                )?),
            })
        }
    }

    /// Checks the result of a call.
    fn check(self, what: &str, status: Status) -> Result<(), LauncherError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the function returns a static string for each status.
        let text = unsafe { CStr::from_ptr((self.error_text)(status)) }.to_string_lossy();
        Err(LauncherError::Refused { what: what.to_owned(), answer: format!("{text} ({status})") })
    }
}

/// Runs a call of the library that waits for other ranks. After the limit its thread is left behind: the caller ends the
/// process.
fn limited(
    what: &'static str,
    limit: Limit,
    call: impl FnOnce() -> Status + Send + 'static,
) -> Result<Status, LauncherError> {
    let (done, answer) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let _ = done.send(call());
    });
    answer.recv_timeout(limit.length()).map_err(|_| LauncherError::Late { what, seconds: limit.seconds() })
}

impl Pmix {
    /// Connects to the launcher's server.
    ///
    /// # Errors
    /// There is no library of a supported version; root would load what another user can change; the server does not accept
    /// this process.
    pub fn connect(variable: Variables<'_>, limit: Limit) -> Result<Self, LauncherError> {
        check_variables()?;
        let library = Library::open(&candidates(variable))?;
        // SAFETY: the function returns a static string.
        let version = unsafe { CStr::from_ptr((library.version)()) }.to_string_lossy().into_owned();
        check_version(&version)?;
        let (done, answer) = mpsc::sync_channel(1);
        std::thread::spawn(move || {
            let mut me = Process { namespace: [0; 256], rank: 0 };
            // SAFETY: `me` has the header's layout, and no information is passed.
            let status = unsafe { (library.init)(&raw mut me, ptr::null_mut(), 0) };
            let _ = done.send((status, me));
        });
        let late = |_| LauncherError::Late { what: "PMIx_Init", seconds: limit.seconds() };
        let (status, me) = answer.recv_timeout(limit.length()).map_err(late)?;
        library.check("PMIx_Init", status)?;
        let mut this = Self { library, me, size: 0, version: short_version(&version) };
        this.size = this.number(RANK_WILDCARD, c"pmix.job.size")?;
        Ok(this)
    }

    /// Gets a value, which the caller frees.
    fn value(&self, rank: u32, key: &CStr) -> Result<*mut Value, LauncherError> {
        let process = Process { rank, ..self.me };
        let mut value = ptr::null_mut();
        // SAFETY: all pointers are valid during the call; on success `value` was allocated by malloc.
        let status = unsafe { (self.library.get)(&raw const process, key.as_ptr(), ptr::null(), 0, &raw mut value) };
        self.library.check(&format!("PMIx_Get {}", key.to_string_lossy()), status)?;
        Ok(value)
    }

    fn number(&self, rank: u32, key: &CStr) -> Result<u32, LauncherError> {
        let value = self.value(rank, key)?;
        // SAFETY: the value is initialized and allocated by malloc, and its kind names the member that is set.
        let (kind, number) = unsafe {
            let number = match (*value).kind {
                KIND_UINT32 | KIND_INT | KIND_RANK => Some((*value).data.number32),
                KIND_UINT16 => Some(u32::from((*value).data.number16)),
                _ => None,
            };
            let kind = (*value).kind;
            libc::free(value.cast());
            (kind, number)
        };
        let what = || key.to_string_lossy().into_owned();
        number.ok_or_else(|| LauncherError::Refused { what: what(), answer: format!("a value of kind {kind}") })
    }

    fn fence(&self, limit: Limit) -> Result<(), LauncherError> {
        // SAFETY: the function has no arguments.
        let status = unsafe { (self.library.commit)() };
        self.library.check("PMIx_Commit", status)?;
        let (library, all) = (self.library, Process { rank: RANK_WILDCARD, ..self.me });
        let status = limited("PMIx_Fence", limit, move || {
            let mut collect =
                Info { key: [0; 512], flags: 0, value: Value { kind: KIND_BOOL, data: Data { room: [0; 3] } } };
            let name = b"pmix.collect";
            collect.key[..name.len()].copy_from_slice(name);
            collect.value.data.flag = true;
            // SAFETY: one process and one information of the header's layout, both valid during the call.
            unsafe { (library.fence)(&raw const all, 1, &raw const collect, 1) }
        })?;
        self.library.check("PMIx_Fence", status)
    }
}

/// Returns the version without what follows a comma or a space: `4.2.2`.
fn short_version(text: &str) -> String {
    let from_digit = text.find(|c: char| c.is_ascii_digit()).map_or("", |at| &text[at..]);
    from_digit.split([',', ' ']).next().unwrap_or_default().to_owned()
}

impl KeySpace for Pmix {
    fn launcher(&self) -> String {
        format!("PMIx {}", self.version)
    }

    fn rank(&self) -> u32 {
        self.me.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn share(&mut self, text: Option<&str>, limit: Limit) -> Result<String, LauncherError> {
        if let Some(text) = text {
            let bytes = ByteObject { bytes: text.as_ptr().cast_mut().cast(), size: text.len() };
            let mut value = Value { kind: KIND_BYTES, data: Data { bytes } };
            // SAFETY: the library copies key and value before it returns, and writes neither.
            let status = unsafe { (self.library.put)(SCOPE_GLOBAL, KEY.as_ptr(), &raw mut value) };
            self.library.check("PMIx_Put", status)?;
        }
        self.fence(limit)?;
        let value = self.value(0, KEY)?;
        // SAFETY: as in `number`; a value of bytes points to `size` bytes, allocated by malloc.
        let bytes = unsafe {
            let found = ((*value).kind == KIND_BYTES).then(|| {
                let object = (*value).data.bytes;
                let bytes = std::slice::from_raw_parts(object.bytes.cast::<u8>(), object.size).to_vec();
                libc::free(object.bytes.cast());
                bytes
            });
            libc::free(value.cast());
            found
        };
        let refused = || LauncherError::Refused { what: "PMIx_Get".into(), answer: "not the text of rank 0".into() };
        bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(refused)
    }

    fn abort(&mut self, code: u8) {
        let library = self.library;
        // SAFETY: a C string and no processes, which means all of the namespace.
        let abort = move || unsafe { (library.abort)(c_int::from(code), c"trueio".as_ptr(), ptr::null_mut(), 0) };
        let _ = limited("PMIx_Abort", Limit::new(std::time::Duration::from_secs(5)), abort);
    }

    fn finish(&mut self, limit: Limit) -> Result<(), LauncherError> {
        let library = self.library;
        // SAFETY: no information is passed.
        let status = limited("PMIx_Finalize", limit, move || unsafe { (library.finalize)(ptr::null(), 0) })?;
        self.library.check("PMIx_Finalize", status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_3_to_6_are_accepted_and_2_is_refused() {
        for text in ["3.2.5", "OpenPMIx 4.2.2, repo rev: v4.2.2 (PMIx Standard: 4.1)", "OpenPMIx 5.0.11", "6.1.0"] {
            check_version(text).expect(text);
        }
        for text in ["2.2.5", "OpenPMIx 7.0.0", "", "unknown"] {
            let refusal = check_version(text).expect_err(text).to_string();
            assert!(refusal.ends_with("only versions 3 to 6 are supported"), "{refusal}");
        }
        assert_eq!(short_version("OpenPMIx 4.2.2, repo rev: v4.2.2"), "4.2.2");
    }

    #[test]
    fn the_launchers_own_library_is_tried_first() {
        let variable = |name: &str| (name == "PMIX_PREFIX").then(|| "/opt/pmix".to_owned());
        let files = candidates(&variable);
        assert_eq!(files[0], "/opt/pmix/lib/libpmix.so.2");
        assert_eq!(files.last().map(String::as_str), Some("libpmix.so.2"));
        assert_eq!(candidates(&|_| None), ["libpmix.so.2"]);
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let error = Library::open(&["/nonexistent/libpmix.so.2".to_owned()]).expect_err("no such file");
        assert!(error.to_string().starts_with("libpmix cannot be opened: /nonexistent/libpmix.so.2"), "{error}");
    }
}
