//! Windows: `FILE_FLAG_NO_BUFFERING`, which the file system enforces in units of sectors.
//!
//! Offset and length must be multiples of the logical sector, and the address aligned to the requirement of the device;
//! otherwise a transfer fails with `ERROR_INVALID_PARAMETER` (87). The sector comes from the first of these that
//! answers: `FileStorageInfo`, `IOCTL_STORAGE_QUERY_PROPERTY`, `GetDiskFreeSpaceW`. Without an answer, 4,096 is assumed.
//!
//! Wine accepts the flag and ignores it, so under Wine files are [`Support::SilentlyBuffered`].
//!
//! Run under Wine 8.0 only, never on Windows itself. Wine lacks `FileStorageInfo`, `FileAllocationInfo` and the storage
//! queries on files, so these were never tested with an answer.
//!
//! Source: Microsoft, "File Buffering", "CreateFileW", "FILE_STORAGE_INFO", "LockFileEx",
//! "FlushFileBuffers", "FSCTL_LOCK_VOLUME".

use crate::alignment::{Alignment, AlignmentSource};
use crate::block_locks::DiskKey;
use crate::types::{
    Answer, DeviceError, DeviceFacts, DirectFile, FlushLevel, Flushed, Granted, LockError, LockMode, OpenError,
    OpenOptions, Policy, Probe, ProbeError, Residency, Special, Support, SyncMode, settle, tidy_serial,
};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::{AsRawHandle, FromRawHandle};
use std::path::Path;
use std::ptr::NonNull;
use windows_sys::Wdk::Storage::FileSystem::{
    FILE_ACCESS_INFORMATION, FILE_MODE_INFORMATION, FILE_NO_INTERMEDIATE_BUFFERING, FileAccessInformation,
    FileModeInformation, NtQueryInformationFile,
};
use windows_sys::Win32::Foundation::{
    ERROR_INVALID_FUNCTION, ERROR_INVALID_PARAMETER, ERROR_LOCK_VIOLATION, ERROR_NOT_SUPPORTED,
    ERROR_SHARING_VIOLATION, GENERIC_READ, GENERIC_WRITE, HANDLE, INVALID_HANDLE_VALUE,
};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_ALIGNMENT_INFO, FILE_APPEND_DATA, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_NO_BUFFERING, FILE_FLAG_WRITE_THROUGH, FILE_INFO_BY_HANDLE_CLASS, FILE_SHARE_DELETE, FILE_SHARE_READ,
    FILE_SHARE_WRITE, FILE_STANDARD_INFO, FILE_STORAGE_INFO, FILE_TYPE_DISK, FILE_WRITE_DATA, FileAlignmentInfo,
    FileStandardInfo, FileStorageInfo, GetDiskFreeSpaceW, GetFileInformationByHandle, GetFileInformationByHandleEx,
    GetFileType, GetFinalPathNameByHandleW, GetVolumeInformationW, GetVolumePathNameW, LOCKFILE_EXCLUSIVE_LOCK,
    LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, ReOpenFile, UnlockFileEx,
};
use windows_sys::Win32::System::IO::{DeviceIoControl, IO_STATUS_BLOCK, OVERLAPPED};
use windows_sys::Win32::System::Ioctl::{
    DEVICE_SEEK_PENALTY_DESCRIPTOR, FSCTL_LOCK_VOLUME, FSCTL_UNLOCK_VOLUME, GET_LENGTH_INFORMATION,
    IOCTL_DISK_GET_LENGTH_INFO, IOCTL_STORAGE_QUERY_PROPERTY, PropertyStandardQuery,
    STORAGE_ACCESS_ALIGNMENT_DESCRIPTOR, STORAGE_DEVICE_DESCRIPTOR, STORAGE_PROPERTY_ID, STORAGE_PROPERTY_QUERY,
    StorageAccessAlignmentProperty, StorageDeviceProperty, StorageDeviceSeekPenaltyProperty,
};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};

fn handle(file: &File) -> HANDLE {
    file.as_raw_handle()
}

fn is_error(error: &io::Error, number: u32) -> bool {
    error.raw_os_error() == i32::try_from(number).ok()
}

// ---------------------------------------------------------------------------------------------
// Opening

pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<DirectFile, OpenError> {
    // A directory cannot be opened as a file; CreateFileW would return "access denied".
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) && !options.create_new {
        return Err(OpenError::NotAFile { path: path.to_owned(), kind: "directory" });
    }
    let failed = |source: io::Error| {
        if is_error(&source, ERROR_SHARING_VIOLATION) {
            OpenError::Busy { path: path.to_owned(), source }
        } else {
            OpenError::Io { path: path.to_owned(), source }
        }
    };
    let sync = if options.sync == SyncMode::None { 0 } else { FILE_FLAG_WRITE_THROUGH };
    let attempt = |flags: u32| {
        let mut plain = std::fs::OpenOptions::new();
        plain.read(options.read).write(options.write).create_new(options.create_new).custom_flags(sync | flags);
        if options.exclusive {
            plain.share_mode(0);
        }
        plain.open(path)
    };
    let (file, refusal) = match options.policy {
        Policy::Off => (attempt(0).map_err(failed)?, None),
        Policy::Require | Policy::Prefer => match attempt(FILE_FLAG_NO_BUFFERING) {
            Ok(file) => (file, None),
            Err(error) if is_refusal(&error) => (attempt(0).map_err(failed)?, Some(error)),
            Err(error) => return Err(failed(error)),
        },
    };
    let granted = (|| {
        // SAFETY: an open handle.
        if unsafe { GetFileType(handle(&file)) } != FILE_TYPE_DISK {
            return Err(OpenError::NotAFile { path: path.to_owned(), kind: "pipe or character device" });
        }
        if options.policy == Policy::Off {
            return Ok((
                Granted::Buffered,
                Alignment::not_needed(),
                "the policy is off, so the file uses the page cache".to_owned(),
            ));
        }
        let (support, reason) = support(&file, refusal.as_ref());
        let granted = settle(path, options.policy, &support, Granted::Direct, refusal)?;
        let alignment = if granted == Granted::Buffered { Alignment::not_needed() } else { alignment(&file) };
        Ok((granted, alignment, reason))
    })();
    match granted {
        Ok((granted, alignment, reason)) => Ok(DirectFile::new(file, granted, alignment, reason)),
        Err(error) => {
            drop(file);
            if options.create_new {
                // Created above. Windows has no call that checks the file of a name and removes it in one step.
                let _ = std::fs::remove_file(path);
            }
            Err(error)
        }
    }
}

fn is_refusal(error: &io::Error) -> bool {
    [ERROR_INVALID_PARAMETER, ERROR_NOT_SUPPORTED, ERROR_INVALID_FUNCTION].iter().any(|number| is_error(error, *number))
}

/// Returns whether this is Wine, by a function that only its `ntdll` exports.
/// Source: Wine, `dlls/ntdll/ntdll.spec`, `wine_get_version`.
fn is_wine() -> bool {
    let name: Vec<u16> = "ntdll.dll\0".encode_utf16().collect();
    // SAFETY: both names are ended by a zero and outlive the calls; the function is not called.
    unsafe {
        let module = GetModuleHandleW(name.as_ptr());
        !module.is_null() && GetProcAddress(module, c"wine_get_version".as_ptr().cast()).is_some()
    }
}

fn support(file: &File, refusal: Option<&io::Error>) -> (Support, String) {
    if let Some(error) = refusal {
        let reason = format!("FILE_FLAG_NO_BUFFERING is refused ({error})");
        return (Support::Refused { reason: reason.clone() }, reason);
    }
    if is_wine() {
        let reason = "Wine accepts FILE_FLAG_NO_BUFFERING and ignores it".to_owned();
        return (Support::SilentlyBuffered { reason: reason.clone() }, reason);
    }
    let filesystem = filesystem_name(file);
    (Support::Direct, format!("{filesystem} accepts FILE_FLAG_NO_BUFFERING, which Windows enforces"))
}

// ---------------------------------------------------------------------------------------------
// Probing

pub(crate) fn probe(path: &Path) -> Result<Probe, ProbeError> {
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        return Err(ProbeError::NotAFile { path: None, kind: "directory" });
    }
    let file = File::open(path).map_err(|source| ProbeError::Io { path: None, source })?;
    probe_file(&file)
}

/// Windows has no files without a name; [`crate::probe_directory`] then creates one with a name.
pub(crate) fn unnamed_file(_folder: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn probe_file(file: &File) -> Result<Probe, ProbeError> {
    // SAFETY: an open handle.
    if unsafe { GetFileType(handle(file)) } != FILE_TYPE_DISK {
        return Err(ProbeError::NotAFile { path: None, kind: "pipe or character device" });
    }
    if standard_info(file).is_some_and(|info| info.Directory) {
        return Err(ProbeError::NotAFile { path: None, kind: "directory" });
    }
    let share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    // SAFETY: an open handle; the returned one has no owner yet.
    let reopened = unsafe { ReOpenFile(handle(file), GENERIC_READ, share, FILE_FLAG_NO_BUFFERING) };
    let (support, reason) = if reopened == INVALID_HANDLE_VALUE {
        let error = io::Error::last_os_error();
        if is_refusal(&error) && !is_wine() {
            support(file, Some(&error))
        } else if is_wine() {
            support(file, None)
        } else {
            let reason = format!("the file could not be opened again to probe it ({error})");
            (Support::Unknown { reason: reason.clone() }, reason)
        }
    } else {
        // SAFETY: the handle returned above, closed on drop.
        drop(unsafe { File::from_raw_handle(reopened) });
        support(file, None)
    };
    let alignment = match support {
        Support::SilentlyBuffered { .. } | Support::Refused { .. } => Alignment::not_needed(),
        Support::Direct | Support::Unknown { .. } => alignment(file),
    };
    Ok(Probe {
        read_support: support.clone(),
        read_alignment: alignment.clone(),
        support,
        reason,
        alignment,
        atomic_write: None,
        atomic_write_answer: Answer::No,
        uncached_buffered: Answer::No,
        filesystem: filesystem_name(file),
    })
}

/// Returns one structure of `GetFileInformationByHandleEx`, if the file answers.
///
/// # Safety
/// `T` is the structure that `class` fills, and zeros are valid for it.
unsafe fn file_information<T>(file: &File, class: FILE_INFO_BY_HANDLE_CLASS) -> Option<T> {
    // SAFETY: the caller promises that zeros are valid.
    let mut information: T = unsafe { std::mem::zeroed() };
    let size = u32::try_from(size_of::<T>()).ok()?;
    // SAFETY: the buffer is one `T`, and `size` is its size.
    let answered = unsafe { GetFileInformationByHandleEx(handle(file), class, (&raw mut information).cast(), size) };
    (answered != 0).then_some(information)
}

fn standard_info(file: &File) -> Option<FILE_STANDARD_INFO> {
    // SAFETY: the class and the structure belong together.
    unsafe { file_information(file, FileStandardInfo) }
}

/// Returns one structure of `IOCTL_STORAGE_QUERY_PROPERTY`, if the disk answers.
///
/// # Safety
/// `T` is the structure that `property` fills, and zeros are valid for it.
unsafe fn storage_property<T>(file: &File, property: STORAGE_PROPERTY_ID) -> Option<T> {
    let query =
        STORAGE_PROPERTY_QUERY { PropertyId: property, QueryType: PropertyStandardQuery, AdditionalParameters: [0] };
    // SAFETY: the caller promises that zeros are valid.
    let mut answer: T = unsafe { std::mem::zeroed() };
    // SAFETY: `query` and `answer` are of the types that the code and the property name.
    let filled = unsafe { control(file, IOCTL_STORAGE_QUERY_PROPERTY, Some(&query), Some(&mut answer)) };
    filled.is_ok_and(|bytes| bytes >= size_of::<T>()).then_some(answer)
}

/// Calls `DeviceIoControl` with whole structures. Returns the number of bytes of the answer.
///
/// # Safety
/// `I` and `O` are the structures that `code` takes and fills.
unsafe fn control<I, O>(file: &File, code: u32, input: Option<&I>, output: Option<&mut O>) -> io::Result<usize> {
    let (input, input_size) = input.map_or((std::ptr::null(), 0), |input| (std::ptr::from_ref(input), size_of::<I>()));
    let (output, output_size) =
        output.map_or((std::ptr::null_mut(), 0), |output| (std::ptr::from_mut(output), size_of::<O>()));
    let mut answered = 0;
    // SAFETY: both buffers have the sizes given and outlive the call, which does not overlap.
    let code = unsafe {
        DeviceIoControl(
            handle(file),
            code,
            input.cast(),
            input_size as u32,
            output.cast(),
            output_size as u32,
            &raw mut answered,
            std::ptr::null_mut(),
        )
    };
    if code == 0 { Err(io::Error::last_os_error()) } else { Ok(answered as usize) }
}

/// Returns the alignment of a file or disk, from the first source that answers.
fn alignment(file: &File) -> Alignment {
    // `AlignmentRequirement` is a mask: 0x1ff stands for 512 bytes. Source: "FILE_ALIGNMENT_INFO".
    // SAFETY: the class and the structure belong together.
    let requirement = unsafe { file_information::<FILE_ALIGNMENT_INFO>(file, FileAlignmentInfo) }
        .and_then(|info| info.AlignmentRequirement.checked_add(1))
        .filter(|bytes| bytes.is_power_of_two());
    // "File Buffering" requires sector-aligned memory, whatever the device accepts.
    let from = |sector: u32, source| Alignment {
        memory_bytes: Some(sector.max(requirement.unwrap_or(1))),
        write_offset_bytes: Some(sector),
        read_offset_bytes: Some(sector),
        source,
    };
    // SAFETY: each class and property has its structure.
    let (storage, access) = unsafe {
        (
            file_information::<FILE_STORAGE_INFO>(file, FileStorageInfo),
            storage_property::<STORAGE_ACCESS_ALIGNMENT_DESCRIPTOR>(file, StorageAccessAlignmentProperty),
        )
    };
    let reported = storage
        .map(|info| info.LogicalBytesPerSector)
        .into_iter()
        .chain(access.map(|info| info.BytesPerLogicalSector))
        .find(|bytes| bytes.is_power_of_two());
    if let Some(sector) = reported {
        return from(sector, AlignmentSource::StorageQuery);
    }
    match volume_sector_bytes(file) {
        Some(sector) => from(sector, AlignmentSource::SectorSize),
        None => from(crate::ASSUMED_ALIGNMENT_BYTES, AlignmentSource::Assumed),
    }
}

/// Returns the root of the volume of the file, ended by a zero; [`None`] for disks.
fn volume_root(file: &File) -> Option<Vec<u16>> {
    // Paths are at most 32,767 characters long: "Maximum Path Length Limitation".
    let mut path = vec![0u16; 32_768];
    // SAFETY: the buffer has the length given.
    let length = unsafe { GetFinalPathNameByHandleW(handle(file), path.as_mut_ptr(), path.len() as u32, 0) } as usize;
    if length == 0 || length >= path.len() {
        return None;
    }
    let mut root = vec![0u16; 32_768];
    // SAFETY: `path` is ended by a zero, since it is longer than `length`; `root` has the length given.
    let found = unsafe { GetVolumePathNameW(path.as_ptr(), root.as_mut_ptr(), root.len() as u32) };
    (found != 0).then_some(root)
}

fn volume_sector_bytes(file: &File) -> Option<u32> {
    let root = volume_root(file)?;
    let (mut per_cluster, mut sector, mut free, mut total) = (0, 0, 0, 0);
    // SAFETY: `root` is ended by a zero; the four numbers outlive the call.
    let answered = unsafe {
        GetDiskFreeSpaceW(root.as_ptr(), &raw mut per_cluster, &raw mut sector, &raw mut free, &raw mut total)
    };
    (answered != 0 && sector.is_power_of_two()).then_some(sector)
}

fn filesystem_name(file: &File) -> String {
    let Some(root) = volume_root(file) else { return "the disk".to_owned() };
    let mut name = [0u16; 64];
    // SAFETY: `root` is ended by a zero; `name` has the length given; null pointers skip the rest.
    let answered = unsafe {
        GetVolumeInformationW(
            root.as_ptr(),
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            name.as_mut_ptr(),
            name.len() as u32,
        )
    };
    if answered == 0 {
        return "a filesystem without a name".to_owned();
    }
    let end = name.iter().position(|unit| *unit == 0).unwrap_or(name.len());
    String::from_utf16_lossy(&name[..end])
}

// ---------------------------------------------------------------------------------------------
// Transfers, flush, space, cache

pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(buffer, offset)
}

pub(crate) fn write_at(file: &File, buffer: &[u8], offset: u64) -> io::Result<usize> {
    file.seek_write(buffer, offset)
}

/// Reads into the first buffer that is not empty; the caller continues with the next. `ReadFileScatter` accepts only
/// buffers of one page each and asynchronous handles.
pub(crate) fn read_vectored_at(file: &File, buffers: &mut [io::IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
    let Some(buffer) = buffers.iter_mut().find(|buffer| !buffer.is_empty()) else { return Ok(0) };
    read_at(file, buffer, offset)
}

/// Writes the first buffer that is not empty; the caller continues with the next.
pub(crate) fn write_vectored_at(file: &File, buffers: &[io::IoSlice<'_>], offset: u64) -> io::Result<usize> {
    let Some(buffer) = buffers.iter().find(|buffer| !buffer.is_empty()) else { return Ok(0) };
    write_at(file, buffer, offset)
}

/// Returns the length of a file or the capacity of a disk, in bytes.
pub(crate) fn size_bytes(file: &File) -> io::Result<u64> {
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(metadata.len()),
        _ => device_facts(file).map(|facts| facts.size_bytes).map_err(io::Error::other),
    }
}

pub(crate) fn write_special(_file: &File, _buffer: &[u8], _offset: u64, _special: Special) -> io::Result<usize> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "Windows has no flags for a single write"))
}

pub(crate) fn read_uncached(_file: &File, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "Windows has no flags for a single read"))
}

/// All levels use one call: it writes data and metadata and flushes the cache of the device. It needs a handle with
/// write access. Source: "FlushFileBuffers".
pub(crate) fn flush(file: &File, _level: FlushLevel) -> io::Result<Flushed> {
    file.sync_all()?;
    Ok(Flushed { level: FlushLevel::Device, device_cache_flushed: true, call: "FlushFileBuffers" })
}

pub(crate) fn sync_directory(_path: &Path) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "Windows documents no flush for a directory; flush the file, or the volume",
    ))
}

/// Makes the file longer through a byte at its end, for which NTFS allocates all clusters. Setting the allocation or the end
/// of the file would cut what another writer appended meanwhile.
pub(crate) fn preallocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let end = offset + len;
    let now = standard_info(file).ok_or_else(io::Error::last_os_error)?;
    if u64::try_from(now.EndOfFile).unwrap_or(0) < end {
        let writer = open_buffered(file).map_err(|error| match is_error(&error, ERROR_SHARING_VIOLATION) {
            true => {
                let reason = "a file that is open for exclusive use cannot be opened again to extend it";
                io::Error::new(io::ErrorKind::Unsupported, reason)
            }
            false => error,
        })?;
        writer.seek_write(&[0], end - 1)?;
    }
    Ok(())
}

/// Windows has no call that makes a file longer and never shorter, except for one that writes.
pub(crate) fn extend(_file: &File, _length: u64) -> io::Result<bool> {
    Ok(false)
}

/// Opens the file again for writing, through the cache and to the disk. Fails if the file is open for exclusive use.
/// Source: "ReOpenFile".
pub(crate) fn open_buffered(file: &File) -> io::Result<File> {
    let share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    // SAFETY: an open handle; the returned one has no owner yet.
    let reopened = unsafe { ReOpenFile(handle(file), GENERIC_WRITE, share, FILE_FLAG_WRITE_THROUGH) };
    if reopened == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle returned above.
    Ok(unsafe { File::from_raw_handle(reopened) })
}

/// Windows does not reveal which pages of a file are cached.
pub(crate) fn open_to_read(_file: &File) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Nothing is allocated in advance on this system.
pub(crate) fn allocate_part(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    Ok(())
}

/// The handle of [`open_buffered`] writes through the cache. A direct transfer flushes and purges its range.
/// Source: "File Buffering".
pub(crate) fn write_back(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    Ok(())
}

/// Returns the same key for all disks; [`None`] for files.
pub(crate) fn disk_key(file: &File) -> Option<DiskKey> {
    if file.metadata().is_ok_and(|metadata| metadata.is_file()) { None } else { Some(0) }
}

/// Sets the length of a regular file. Source: "FILE_END_OF_FILE_INFO".
pub(crate) fn set_length(file: &File, length: u64) -> io::Result<()> {
    file.set_len(length)
}

/// Takes over an open file: its mode has a bit for `FILE_FLAG_NO_BUFFERING`. Source: "FILE_MODE_INFORMATION".
pub(crate) fn adopt(file: File) -> Result<DirectFile, ProbeError> {
    let probe = probe_file(&file)?;
    let is_unbuffered = is_unbuffered(&file).map_err(|source| ProbeError::Io { path: None, source })?;
    let buffered = |reason| (Granted::Buffered, Alignment::not_needed(), reason);
    let (granted, alignment, reason) = match probe.support {
        _ if !is_unbuffered => buffered("the file was opened without FILE_FLAG_NO_BUFFERING".to_owned()),
        Support::Direct => (Granted::Direct, probe.alignment, probe.reason),
        Support::Unknown { reason } => (Granted::Unconfirmed, probe.alignment, reason),
        Support::SilentlyBuffered { reason } | Support::Refused { reason } => buffered(reason),
    };
    DirectFile::adopted(file, granted, alignment, reason).map_err(|source| ProbeError::Io { path: None, source })
}

/// Windows has no error number for a directory that is opened as a file: it denies access.
pub(crate) fn number_of_kind(_kind: &str) -> Option<i32> {
    None
}

/// Whether the file is open to append: without the right to write elsewhere. Source: "FILE_ACCESS_INFORMATION".
pub(crate) fn appends(file: &File) -> io::Result<bool> {
    let mut access = FILE_ACCESS_INFORMATION::default();
    let mut status = IO_STATUS_BLOCK::default();
    // SAFETY: an open handle; the class and the structure belong together, and both outlive the call.
    let code = unsafe {
        NtQueryInformationFile(
            handle(file),
            &raw mut status,
            (&raw mut access).cast(),
            size_of::<FILE_ACCESS_INFORMATION>() as u32,
            FileAccessInformation,
        )
    };
    if code < 0 {
        return Err(io::Error::other(format!("NtQueryInformationFile failed with status {code:#x}")));
    }
    Ok(access.AccessFlags & (FILE_APPEND_DATA | FILE_WRITE_DATA) == FILE_APPEND_DATA)
}

fn is_unbuffered(file: &File) -> io::Result<bool> {
    let mut mode = FILE_MODE_INFORMATION::default();
    let mut status = IO_STATUS_BLOCK::default();
    // SAFETY: an open handle; the class and the structure belong together, and both outlive the call.
    let code = unsafe {
        NtQueryInformationFile(
            handle(file),
            &raw mut status,
            (&raw mut mode).cast(),
            size_of::<FILE_MODE_INFORMATION>() as u32,
            FileModeInformation,
        )
    };
    if code < 0 {
        return Err(io::Error::other(format!("NtQueryInformationFile failed with status {code:#x}")));
    }
    Ok(mode.Mode & FILE_NO_INTERMEDIATE_BUFFERING != 0)
}

/// Removes the file that was made at `path`.
pub(crate) fn remove_made(path: &Path, _made: &File) {
    // Files are opened with permission to delete them; the name goes when the last handle is closed.
    let _ = std::fs::remove_file(path);
}

/// Whether `path` leads to the file that is open as `file`. Source: "BY_HANDLE_FILE_INFORMATION".
pub(crate) fn is_same_file(file: &File, path: &Path) -> io::Result<bool> {
    let identity = |file: &File| {
        let mut information = BY_HANDLE_FILE_INFORMATION::default();
        // SAFETY: an open handle; the structure outlives the call.
        let answered = unsafe { GetFileInformationByHandle(handle(file), &raw mut information) };
        let BY_HANDLE_FILE_INFORMATION { dwVolumeSerialNumber, nFileIndexHigh, nFileIndexLow, .. } = information;
        (answered != 0).then_some((dwVolumeSerialNumber, nFileIndexHigh, nFileIndexLow))
    };
    // No access is requested, so that a file that is open elsewhere can be compared.
    let named = std::fs::OpenOptions::new().access_mode(0).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path);
    match named {
        Ok(named) => Ok(identity(file).is_some_and(|open| identity(&named) == Some(open))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// All of a file counts as data.
pub(crate) fn next_data(_file: &File, range: Range<u64>) -> io::Result<Range<u64>> {
    Ok(range)
}

pub(crate) fn residency(_file: &File, _offset: u64, _len: u64) -> io::Result<Residency> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "Windows does not report which pages of a file are cached"))
}

/// Windows provides large pages only to processes with a privilege.
pub(crate) fn map_huge_pages(_length: usize, _align: usize) -> Option<NonNull<u8>> {
    None
}

/// Never called: nothing is mapped here.
///
/// # Safety
/// None.
pub(crate) unsafe fn unmap_huge_pages(_start: NonNull<u8>, _length: usize) {}

pub(crate) fn set_nocache(_file: &File, _nocache: bool) -> io::Result<()> {
    let sentence = "F_NOCACHE exists on macOS only; open the file with a policy for direct I/O";
    Err(io::Error::new(io::ErrorKind::Unsupported, sentence))
}

pub(crate) fn evict(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "Windows has no call that drops a file from the cache"))
}

// ---------------------------------------------------------------------------------------------
// Disks

pub(crate) fn device_facts(file: &File) -> Result<DeviceFacts, DeviceError> {
    let mut length = GET_LENGTH_INFORMATION { Length: 0 };
    // SAFETY: IOCTL_DISK_GET_LENGTH_INFO takes nothing and fills one GET_LENGTH_INFORMATION.
    unsafe { control::<(), _>(file, IOCTL_DISK_GET_LENGTH_INFO, None, Some(&mut length)) }.map_err(|source| {
        match standard_info(file) {
            // Only files and directories answer this query.
            Some(info) if info.Directory => DeviceError::NotADevice { kind: "directory" },
            Some(_) => DeviceError::NotADevice { kind: "regular file" },
            None => DeviceError::Io { call: "IOCTL_DISK_GET_LENGTH_INFO", source },
        }
    })?;
    // SAFETY: each property has its structure.
    let (access, penalty) = unsafe {
        (
            storage_property::<STORAGE_ACCESS_ALIGNMENT_DESCRIPTOR>(file, StorageAccessAlignmentProperty),
            storage_property::<DEVICE_SEEK_PENALTY_DESCRIPTOR>(file, StorageDeviceSeekPenaltyProperty),
        )
    };
    let Some(access) = access else {
        let source = io::Error::last_os_error();
        return Err(DeviceError::Io { call: "IOCTL_STORAGE_QUERY_PROPERTY (StorageAccessAlignmentProperty)", source });
    };
    let serial = serial(file);
    Ok(DeviceFacts {
        size_bytes: u64::try_from(length.Length).unwrap_or(0),
        logical_sector_bytes: access.BytesPerLogicalSector,
        physical_sector_bytes: Some(access.BytesPerPhysicalSector).filter(|bytes| *bytes > 0),
        minimum_io_bytes: None,
        optimal_io_bytes: None,
        is_rotational: penalty.map(|answer| answer.IncursSeekPenalty),
        serial_source: serial.as_ref().map(|_| "StorageDeviceProperty"),
        serial,
    })
}

/// Returns the serial number, a text that follows the descriptor and ends with a zero. The descriptor contains its
/// offset from its own start; 0 means none.
fn serial(file: &File) -> Option<String> {
    #[repr(C)]
    struct Page {
        descriptor: STORAGE_DEVICE_DESCRIPTOR,
        rest: [u8; 1024],
    }
    let query = STORAGE_PROPERTY_QUERY {
        PropertyId: StorageDeviceProperty,
        QueryType: PropertyStandardQuery,
        AdditionalParameters: [0],
    };
    // SAFETY: integers, booleans and bytes, for which zeros are valid.
    let mut page: Page = unsafe { std::mem::zeroed() };
    // SAFETY: the property fills a STORAGE_DEVICE_DESCRIPTOR and the text after it.
    let filled = unsafe { control(file, IOCTL_STORAGE_QUERY_PROPERTY, Some(&query), Some(&mut page)) }.ok()?;
    let offset = page.descriptor.SerialNumberOffset as usize;
    // SAFETY: `page` is initialised in every byte (zeroed, then filled), and is not changed meanwhile.
    let bytes = unsafe { std::slice::from_raw_parts((&raw const page).cast::<u8>(), size_of::<Page>()) };
    let text = bytes.get(..filled)?.get(offset..).filter(|_| offset > 0)?;
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    tidy_serial(&text[..end])
}

// ---------------------------------------------------------------------------------------------
// Locks

pub(crate) fn try_lock(file: &File, mode: LockMode) -> Result<(), LockError> {
    lock_range(file, Some(mode), 0, 0)
}

pub(crate) fn unlock(file: &File) -> Result<(), LockError> {
    lock_range(file, None, 0, 0)
}

pub(crate) fn lock_range(file: &File, mode: Option<LockMode>, offset: u64, len: u64) -> Result<(), LockError> {
    // To the largest offset, which includes later growth.
    let len = if len == 0 { u64::MAX - offset } else { len };
    let (low, high) = (len as u32, (len >> 32) as u32);
    let mut overlapped = OVERLAPPED::default();
    overlapped.Anonymous.Anonymous.Offset = offset as u32;
    overlapped.Anonymous.Anonymous.OffsetHigh = (offset >> 32) as u32;
    // SAFETY: `overlapped` outlives both calls, which return at once on a synchronous handle.
    let done = unsafe {
        match mode {
            Some(mode) => {
                let exclusive = if mode == LockMode::Exclusive { LOCKFILE_EXCLUSIVE_LOCK } else { 0 };
                LockFileEx(handle(file), exclusive | LOCKFILE_FAIL_IMMEDIATELY, 0, low, high, &raw mut overlapped)
            }
            None => UnlockFileEx(handle(file), 0, low, high, &raw mut overlapped),
        }
    };
    if done != 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(if is_error(&error, ERROR_LOCK_VIOLATION) { LockError::Held(error) } else { LockError::Io(error) })
}

pub(crate) fn lock_volume(file: &File, lock: bool) -> Result<(), LockError> {
    let code = if lock { FSCTL_LOCK_VOLUME } else { FSCTL_UNLOCK_VOLUME };
    // SAFETY: both codes take and give nothing.
    unsafe { control::<(), ()>(file, code, None, None) }.map(|_| ()).map_err(LockError::Io)
}
