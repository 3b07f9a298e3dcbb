/// <reference types="node" />
// Direct I/O with promises. Sizes, offsets and alignments are in bytes. `null` means that nobody said.
//
// Every mistake is a rejection (or, of the three synchronous names, a throw) with a `code`. Wrong types are
// TypeErrors, numbers out of range RangeErrors, everything else is a DirectError.

/** Yes, no, or nobody says. */
export type Answer = 'yes' | 'no' | 'unknown';

/** Who says what the alignment is. */
export type AlignmentSource =
  | 'statx'
  | 'xfs'
  | 'sector-size'
  | 'filesystem-block'
  | 'storage-query'
  | 'assumed'
  | 'not-needed'
  | 'unknown';

/** What direct I/O demands of a transfer. 1 demands nothing; null: nobody says. */
export interface Alignment {
  /** The address of every buffer is a multiple of this. */
  readonly memoryBytes: number | null;
  /** Offset and length of every write are multiples of this. */
  readonly writeOffsetBytes: number | null;
  /** Offset and length of every read are multiples of this. */
  readonly readOffsetBytes: number | null;
  /** Whose word these are. */
  readonly source: AlignmentSource;
  /** The same as a sentence without a full stop. */
  readonly explanation: string;
}

/** Limits of writes that a power loss cannot tear. *(Linux 6.11)* */
export interface AtomicLimits {
  minBytes: number;
  maxBytes: number;
  /** The largest that needs no slower path; 0 if that is not reported. */
  maxFastBytes: number;
  segmentsMax: number;
}

/** What a file offers. Nothing was written to find out. */
export interface Probe {
  /**
   * `direct`: it says so itself. `silently-buffered`: the flag is taken and the page cache is used all the
   * same. `refused`: the flag is not taken. `unknown`: it is taken, and nobody says what becomes of it.
   */
  support: 'direct' | 'silently-buffered' | 'refused' | 'unknown';
  /** Who says so, as a sentence without a full stop. */
  reason: string;
  alignment: Alignment;
  /** As `support`, of a file that is only read: btrfs reads past the cache and writes through it. */
  readSupport: 'direct' | 'silently-buffered' | 'refused' | 'unknown';
  readAlignment: Alignment;
  atomicWriteAnswer: Answer;
  /** null unless the answer is yes. */
  atomicWrite: AtomicLimits | null;
  /** Whether buffered I/O that leaves nothing in the cache can be had. *(Linux 6.14)* */
  uncachedBuffered: Answer;
  /** Such as `ext4`. */
  filesystem: string;
}

/** Asks what the existing file or disk at `path` offers. */
export function probe(path: string | URL): Promise<Probe>;

/** Asks what a new file in the folder at `path` would be offered. Leaves nothing behind. */
export function probeDirectory(path: string | URL): Promise<Probe>;

/** How to open a file. Anything else in it is refused. */
export interface OpenOptions {
  /** Default: true. */
  read?: boolean;
  /** Default: false. Contents are never truncated. */
  write?: boolean;
  /** A new file if there is none. Default: false. */
  create?: boolean;
  /** A new file, under a name that does not exist yet. Default: false. */
  createNew?: boolean;
  /**
   * `require` (default): direct I/O, or no file. `prefer`: direct where it can be had, and `granted` says
   * whether. `off`: through the page cache.
   */
  policy?: 'require' | 'prefer' | 'off';
  /** What every write waits for: `none` (default), `dsync` (its data), `sync` (all metadata too). */
  sync?: 'none' | 'dsync' | 'sync';
  /** Nobody else. Of a disk on Linux: `O_EXCL`, refused if it is mounted. Default: false. */
  exclusive?: boolean;
  /** Permissions of a new file, reduced by the umask. Default: 0o600. */
  mode?: number;
}

/** Opens a regular file or a disk; everything else is refused by name. */
export function open(path: string | URL, options?: OpenOptions): Promise<DirectFile>;

/** Makes the names in a folder durable, after a file was made, renamed or removed in it. ENOTSUP on Windows. */
export function syncDirectory(path: string | URL): Promise<void>;

/**
 * A zeroed Buffer of `sizeBytes` at an address that is a multiple of `alignmentBytes`, a power of two of
 * at most 4194304. Throws.
 */
export function allocate(sizeBytes: number, alignmentBytes: number): Buffer;

/** A completed transfer. */
export interface Transfer {
  /** As requested; fewer only from `readAt`, where the file ended. */
  bytes: number;
  /** How many calls of the system it took. */
  calls: number;
  /** Whether it went through a copy, because the memory was not made by this package. */
  isCopied: boolean;
}

/** What a flush did. */
export interface Flushed {
  /** The level that was reached: never below the one asked for. */
  level: FlushLevel;
  /** Whether the call is also specified to empty the device's volatile cache. */
  isDeviceCacheFlushed: boolean;
  /** Such as `fdatasync`. */
  call: string;
}

/**
 * What a flush promises. `barrier`: what was written before reaches the medium before what is written after.
 * `data`: the data have been given to the device. `file`: metadata too. `device`: the device has been told
 * to empty its volatile cache.
 */
export type FlushLevel = 'barrier' | 'data' | 'file' | 'device';

/** What of a file is in the page cache, in pages. */
export interface Residency {
  cachedPages: number;
  dirtyPages: number | null;
  writebackPages: number | null;
  pageSizeBytes: number;
  /** Pages in the range, up to the end of the file. */
  filePages: number;
  /** Who counted. */
  source: string;
}

/** What an open disk says about itself. */
export interface DeviceFacts {
  sizeBytes: number;
  logicalSectorBytes: number;
  physicalSectorBytes: number | null;
  minimumIoBytes: number | null;
  optimalIoBytes: number | null;
  /** Virtual disks often say yes wrongly. */
  isRotational: boolean | null;
  serial: string | null;
  serialSource: string | null;
}

/** Where a transfer goes: 0 to 2^53 - 1. */
export type Offset = number | bigint;

/**
 * An open file. All calls may be made at once. Do not touch a buffer until its transfer has ended; a second
 * transfer that would fill memory in use is refused (`ERR_TRUEIO_BUFFER_IN_USE`).
 */
export class DirectFile {
  private constructor();
  readonly path: string;
  /** `direct`; `unconfirmed` (the flag is accepted, its effect is unknown: FUSE, network); `not-kept` (macOS and files of FreeBSD: asked not to cache); `buffered`. */
  readonly granted: 'direct' | 'unconfirmed' | 'not-kept' | 'buffered';
  /** Why, and who says so, as a sentence without a full stop. */
  readonly reason: string;
  readonly alignment: Alignment;
  readonly isClosed: boolean;

  /** Throws what a transfer would be refused for, without making it. */
  check(buffer: NodeJS.ArrayBufferView, offset: Offset, direction: 'read' | 'write'): void;
  /** Fills all of `buffer`. A file that ends before is `ERR_TRUEIO_END_OF_FILE`, with `doneBytes`. */
  readExactAt(buffer: NodeJS.ArrayBufferView, offset: Offset): Promise<Transfer>;
  /** Reads until `buffer` is full or the file ends: `bytes` is smaller than the buffer only at the end of the file. */
  readAt(buffer: NodeJS.ArrayBufferView, offset: Offset): Promise<Transfer>;
  /** Writes all of `buffer`. */
  writeAllAt(buffer: NodeJS.ArrayBufferView, offset: Offset): Promise<Transfer>;
  /** The same, durable when it returns, as by `O_DSYNC`. *(Linux; ENOTSUP elsewhere)* */
  writeDsyncAt(buffer: NodeJS.ArrayBufferView, offset: Offset): Promise<Transfer>;
  /** Writes all of `buffer` so that a power loss leaves all or nothing of it; never in another way. *(Linux 6.11)* */
  writeAtomicAt(buffer: NodeJS.ArrayBufferView, offset: Offset): Promise<Transfer>;
  /** Reads through the page cache and leaves nothing there. Of buffered files only. *(Linux 6.14)* */
  readUncachedAt(buffer: NodeJS.ArrayBufferView, offset: Offset): Promise<Transfer>;
  /** Writes through the page cache and leaves nothing there. Of buffered files only. *(Linux 6.14)* */
  writeUncachedAt(buffer: NodeJS.ArrayBufferView, offset: Offset): Promise<Transfer>;
  /** Reads any bytes, through an aligned copy that covers them. */
  readUnalignedByCopyAt(buffer: NodeJS.ArrayBufferView, offset: Offset): Promise<Transfer>;
  /**
   * Writes any bytes: what surrounds them is read and written back. Not atomic, and two of these that touch
   * the same sector at once lose one of them.
   */
  writeUnalignedByReadModifyWriteAt(buffer: NodeJS.ArrayBufferView, offset: Offset): Promise<Transfer>;

  /** Makes what was written durable. Default: `device`. After an error, what was written before may be lost. */
  flush(level?: FlushLevel): Promise<Flushed>;
  /** Reserves space, and makes the file that long. ENOTSUP where the filesystem cannot. */
  preallocate(offset: Offset, lengthBytes: number | bigint): Promise<void>;
  /** The length of the file, or what the disk holds. */
  size(): Promise<number>;
  /** ENOTBLK of what is not a disk. */
  deviceFacts(): Promise<DeviceFacts>;
  /** Advisory on Unix, mandatory on Windows. Does not wait: EAGAIN if somebody else holds it. */
  tryLock(mode?: 'shared' | 'exclusive'): Promise<void>;
  unlock(): Promise<void>;
  /** Locks a range; a length of 0 means up to the end. Does not wait: EAGAIN if it is held. ENOTSUP on FreeBSD. */
  tryLockRange(offset: Offset, lengthBytes: number | bigint, mode?: 'shared' | 'exclusive'): Promise<void>;
  /** On Windows the range must be one that was locked. */
  unlockRange(offset: Offset, lengthBytes: number | bigint): Promise<void>;
  /** A length of 0 (default) means up to the end. */
  residency(offset?: Offset, lengthBytes?: number | bigint): Promise<Residency>;
  /** Asks for clean pages to be dropped from the page cache. */
  evict(offset?: Offset, lengthBytes?: number | bigint): Promise<void>;
  /** Takes no more calls, waits for those that have begun, and closes. */
  close(): Promise<void>;
  /** The same as `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Buffers of one size, in one allocation, each out at most once. */
export class BufferPool {
  /** Throws. `count` times the size, rounded up to the alignment, is at most 2^31 - 1. */
  constructor(count: number, sizeBytes: number, alignmentBytes: number);
  readonly count: number;
  readonly freeCount: number;
  readonly sizeBytes: number;
  /** Waits until one is free; who asked first gets it first. Its contents are what was left in it. */
  acquire(): Promise<Buffer>;
  /** null if none is free. */
  tryAcquire(): Buffer | null;
  /** Gives back what `acquire` gave, the same object. No transfer in it may be going on. */
  release(buffer: Buffer): void;
  /** Acquires, runs `task`, and releases when it has ended, in whatever way. */
  use<T>(task: (buffer: Buffer) => T | Promise<T>): Promise<T>;
}

/** The error of everything that is not a wrong argument. */
export interface DirectError extends Error {
  /** The system's name for it (`ENOSPC`), or one of ours where the system was not asked. */
  code: string | DirectErrorCode;
  /** Node's number: negative. Absent where the system gave none. */
  errno?: number;
  /** What was attempted. */
  syscall?: string;
  path?: string;
  /** Of `ERR_TRUEIO_MISALIGNED`: which number is wrong … */
  part?: 'address' | 'length' | 'offset';
  /** … what it is … */
  value?: number;
  /** … and what it must be a multiple of. */
  neededBytes?: number;
  /** How much had been transferred. */
  doneBytes?: number;
}

export type DirectErrorCode =
  /** Address, length or offset; found before the call, nothing was transferred. */
  | 'ERR_TRUEIO_MISALIGNED'
  /** A directory, a pipe, a socket, a terminal, /dev/null. */
  | 'ERR_TRUEIO_NOT_A_FILE'
  /** Under `require`: the system refuses direct I/O. */
  | 'ERR_TRUEIO_DIRECT_REFUSED'
  /** Under `require`: it would be taken and silently buffered. */
  | 'ERR_TRUEIO_WOULD_BUFFER'
  | 'ERR_TRUEIO_END_OF_FILE'
  /** The system took no byte and gave no error. */
  | 'ERR_TRUEIO_NOTHING_ACCEPTED'
  /** A call was short, and direct I/O cannot go on from where it stopped. */
  | 'ERR_TRUEIO_STOPPED_MISALIGNED'
  /** Length or offset are not those of an atomic write here. */
  | 'ERR_TRUEIO_NOT_ATOMIC'
  /** The system took a part of an atomic write. */
  | 'ERR_TRUEIO_TORN'
  /** Another transfer uses this memory. */
  | 'ERR_TRUEIO_BUFFER_IN_USE'
  /** The memory was given away while it was being read into. */
  | 'ERR_TRUEIO_BUFFER_DETACHED'
  | 'ERR_TRUEIO_NOT_OF_POOL'
  | 'ERR_TRUEIO_NO_BINARY'
  | 'ERR_TRUEIO_IO'
  | 'ERR_TRUEIO_INTERNAL';
