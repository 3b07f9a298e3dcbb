/// <reference types="node" />
// The ten names of `@ronomon/direct-io` 3.0.1, and `promises`. The deliberate differences from upstream
// are listed at the head of index.js and in README.md.

/** Flag for `fs.open`: past the page cache. 0 on macOS: see {@link setF_NOCACHE}. */
export const O_DIRECT: number;
/** Flag for `fs.open`: every write waits for its data and what is needed to read it back. */
export const O_DSYNC: number;
/** Flag for `fs.open`: exclusive use of a block device on Linux; `EBUSY` if it is mounted or in use. */
export const O_EXCL: number;
/** Flag for `fs.open`: exclusive use. 0 on Linux. *(macOS, FreeBSD, Windows)* */
export const O_EXLOCK: number;
/** Flag for `fs.open`: every write waits for its data and all metadata. */
export const O_SYNC: number;

/** Facts that an open disk reports. */
export interface BlockDevice {
  /** The logical sector, in bytes: the unit of addresses. */
  logicalSectorSize: number;
  /** The physical sector, in bytes: the unit in which the disk writes; 0 if not reported. */
  physicalSectorSize: number;
  /** In bytes. */
  size: number;
  /** `''` if not reported. */
  serialNumber: string;
}

/** The error of a callback: upstream's message, and the error of the system. */
export interface SystemError extends Error {
  /** The system's name for it (`EBADF`), or ours if no system call was made. */
  code: string;
  /** Node's number for it: negative. Absent if no system call was made. */
  errno?: number;
  /** The system call. */
  syscall?: string;
}

/**
 * A zeroed Buffer of `size` bytes whose address is a multiple of `alignment`.
 *
 * Throws if `size` is not an integer from 1 to 2^31 - 1, if `alignment` is not a power of two from 8 to
 * 4194304, and if there is no such memory.
 */
export function getAlignedBuffer(size: number, alignment: number): Buffer;

/** Returns the facts of the open block device `fd`. */
export function getBlockDevice(
  fd: number,
  callback: (error: SystemError | undefined, device: BlockDevice) => void
): void;

/** Requests the kernel not to keep pages of this open file (1), or to keep them again (0). Throws elsewhere. *(macOS)* */
export function setF_NOCACHE(fd: number, value: 0 | 1, callback: (error: SystemError | undefined) => void): void;

/** Takes (1) or releases (0) an advisory lock without waiting: `flock`. Throws on Windows. */
export function setFlock(fd: number, value: 0 | 1, callback: (error: SystemError | undefined) => void): void;

/** Locks (1) or unlocks (0) a volume. Throws elsewhere. *(Windows)* */
export function setFSCTL_LOCK_VOLUME(
  fd: number,
  value: 0 | 1,
  callback: (error: SystemError | undefined) => void
): void;

/** The same as `require('@trueio/direct-io/promises')`. Not enumerable. */
export const promises: typeof import('./promises');
