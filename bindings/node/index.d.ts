/// <reference types="node" />
// The ten names of `@ronomon/direct-io` 3.0.1, and `promises`. What differs from upstream on purpose
// stands at the head of index.js and in README.md.

/** Flag for `fs.open`: past the page cache. 0 on macOS: see {@link setF_NOCACHE}. */
export const O_DIRECT: number;
/** Flag for `fs.open`: every write waits for its data and what is needed to read it back. */
export const O_DSYNC: number;
/** Flag for `fs.open`: of a block device on Linux, nobody else may open it so; `EBUSY` if it is mounted. */
export const O_EXCL: number;
/** Flag for `fs.open`: nobody else may open it so. 0 on Linux. *(macOS, FreeBSD, Windows)* */
export const O_EXLOCK: number;
/** Flag for `fs.open`: every write waits for its data and all metadata. */
export const O_SYNC: number;

/** What an open disk says about itself. */
export interface BlockDevice {
  /** The unit of its addresses, in bytes. */
  logicalSectorSize: number;
  /** The unit in which it writes, in bytes; 0 if it does not say. */
  physicalSectorSize: number;
  /** In bytes. */
  size: number;
  /** `''` if it has none to tell. */
  serialNumber: string;
}

/** The error of a callback: upstream's message, and what the system said. */
export interface SystemError extends Error {
  /** The system's name for it (`EBADF`), or ours where the system was not asked. */
  code: string;
  /** Node's number for it: negative. Absent where the system was not asked. */
  errno?: number;
  /** What was called. */
  syscall?: string;
}

/**
 * A zeroed Buffer of `size` bytes whose address is a multiple of `alignment`.
 *
 * Throws if `size` is not an integer from 1 to 2^31 - 1, if `alignment` is not a power of two from 8 to
 * 4194304, and if there is no such memory.
 */
export function getAlignedBuffer(size: number, alignment: number): Buffer;

/** Asks the open block device `fd` about itself. */
export function getBlockDevice(
  fd: number,
  callback: (error: SystemError | undefined, device: BlockDevice) => void
): void;

/** Tells the kernel not to keep pages of this open file (1), or to keep them again (0). Throws elsewhere. *(macOS)* */
export function setF_NOCACHE(fd: number, value: 0 | 1, callback: (error: SystemError | undefined) => void): void;

/** Takes (1) or gives up (0) an advisory lock without waiting: `flock`. Throws on Windows. */
export function setFlock(fd: number, value: 0 | 1, callback: (error: SystemError | undefined) => void): void;

/** Locks (1) or unlocks (0) a volume. Throws elsewhere. *(Windows)* */
export function setFSCTL_LOCK_VOLUME(
  fd: number,
  value: 0 | 1,
  callback: (error: SystemError | undefined) => void
): void;

/** The same as `require('@trueio/direct-io/promises')`. Not enumerable. */
export const promises: typeof import('./promises');
