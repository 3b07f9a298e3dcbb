/// <reference types="node" />
import { Readable, Writable } from 'stream';
// Direct I/O with promises. Sizes, offsets and alignments are in bytes. `null` means unknown.
//
// Every mistake is a rejection (or, of the three synchronous names, a throw) with a `code`. Wrong types are
// TypeErrors, numbers out of range RangeErrors, everything else is a DirectError.

/** Yes, no, or unknown. */
export type Answer = 'yes' | 'no' | 'unknown';

/** The source of an alignment. */
export type AlignmentSource =
  | 'statx'
  | 'xfs'
  | 'sector-size'
  | 'filesystem-block'
  | 'storage-query'
  | 'assumed'
  | 'not-needed'
  | 'unknown';

/** The alignment that direct I/O requires of a transfer. 1: no requirement; null: unknown. */
export interface Alignment {
  /** The address of every buffer is a multiple of this. */
  readonly memoryBytes: number | null;
  /** Offset and length of every write are multiples of this. */
  readonly writeOffsetBytes: number | null;
  /** Offset and length of every read are multiples of this. */
  readonly readOffsetBytes: number | null;
  /** The source of these numbers. */
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

/** The result of a probe. A probe writes nothing. */
export interface Probe {
  /**
   * `direct`: direct I/O is supported. `silently-buffered`: the flag is accepted, but the page cache is used.
   * `refused`: the flag is refused. `unknown`: the flag is accepted, its effect is unknown.
   */
  support: 'direct' | 'silently-buffered' | 'refused' | 'unknown';
  /** The source of that answer, as a sentence without a full stop. */
  reason: string;
  alignment: Alignment;
  /** `support` for a file that is only read: btrfs reads past the cache and writes through it. */
  readSupport: 'direct' | 'silently-buffered' | 'refused' | 'unknown';
  readAlignment: Alignment;
  atomicWriteAnswer: Answer;
  /** null unless the answer is yes. */
  atomicWrite: AtomicLimits | null;
  /** Whether buffered I/O that leaves nothing in the cache is supported. *(Linux 6.14)* */
  uncachedBuffered: Answer;
  /** For example `ext4`. */
  filesystem: string;
}

/** Probes the existing file or disk at `path`. */
export function probe(path: string | URL): Promise<Probe>;

/** Probes the support for new files in the folder at `path`. No file remains. */
export function probeDirectory(path: string | URL): Promise<Probe>;

/** Cancels a call that waits for a thread of the pool: it rejects with an `AbortError`, and nothing was done. */
export interface Cancellable {
  /** A call that has begun is not stopped: it settles as without a signal, and uses its buffer until then. */
  signal?: AbortSignal;
}

/** How to open a file. Anything else in it is refused. */
export interface OpenOptions extends Cancellable {
  /** Default: true. */
  read?: boolean;
  /** Default: false. Contents are never truncated. */
  write?: boolean;
  /** Creates the file if it does not exist. Default: false. */
  create?: boolean;
  /** Creates a new file; the name must not exist. Default: false. */
  createNew?: boolean;
  /**
   * `require` (default): direct I/O, or an error. `prefer`: direct I/O if it is supported; `granted` reports the result.
   * `off`: through the page cache.
   */
  policy?: 'require' | 'prefer' | 'off';
  /** What every write waits for: `none` (default), `dsync` (its data), `sync` (all metadata too). */
  sync?: 'none' | 'dsync' | 'sync';
  /** Exclusive use. For a disk on Linux: `O_EXCL`, refused if it is mounted. Default: false. */
  exclusive?: boolean;
  /** Permissions of a new file, reduced by the umask. Default: 0o600. */
  mode?: number;
}

/** Opens a regular file or a disk; anything else is refused by name. */
export function open(path: string | URL, options?: OpenOptions): Promise<DirectFile>;

/**
 * Makes a DirectFile from an open file: a descriptor, or an object with one (a `FileHandle`). `granted` follows from its
 * flags. The descriptor is duplicated: the original stays open, and both must be closed.
 */
export function fromFile(file: number | { readonly fd: number }): Promise<DirectFile>;

/** How far a copy has come. */
export interface CopyProgress {
  /** Bytes that are copied or skipped as holes. */
  doneBytes: number;
  /** Bytes to copy, with holes. */
  totalBytes: number;
}

/** What to copy, and how. Anything else in it is refused. */
export interface CopyOptions {
  /**
   * Writes a destination that exists: a file is emptied first, unless `destinationOffset` is set; a disk keeps what is not
   * written. Default: false.
   */
  overwrite?: boolean;
  /**
   * How much direct I/O matters, on both sides: as in `OpenOptions`. Default: `prefer`, which reads what is in the page cache
   * from there; `require` reads everything from the device.
   */
  policy?: 'require' | 'prefer' | 'off';
  /** How durable the copy and the name of a new file are at the end. Default: true, which is `device`. */
  flush?: boolean | FlushLevel;
  /** Bytes of one transfer, rounded up to the alignment; default 4 MiB. */
  bufferBytes?: number;
  /** Copies only the bytes of the source from `start` to before `end`, aligned or not. */
  range?: readonly [start: Offset, end: Offset];
  /** Where in the destination the copy begins; an existing file then keeps its other bytes. Default: 0. */
  destinationOffset?: Offset;
  /** Holes of the source are not read, and stay holes in a new file. Otherwise they are written as zeros. Default: true. */
  keepHoles?: boolean;
  /**
   * Called after the first block, then at most ten times a second, and when all bytes are copied, before the flush; not if
   * there is nothing to copy. What it throws stops the copy and rejects it. The copy waits for the last call only.
   */
  onProgress?: (progress: CopyProgress) => void;
  /** Stops the copy, also while it runs, unless only the flush is left. It rejects with an `AbortError`. */
  signal?: AbortSignal;
}

/** A completed copy. */
export interface Copied {
  /** Bytes that were read and written. */
  dataBytes: number;
  /** Of these, bytes that were in the page cache already, and were read from there. *(Linux)* */
  cachedBytes: number;
  /** Bytes of holes that were not read. In an existing file or disk they were written as zeros. */
  holeBytes: number;
  /** How the source was read. */
  source: 'direct' | 'unconfirmed' | 'not-kept' | 'buffered';
  /** How the destination was written. */
  destination: 'direct' | 'unconfirmed' | 'not-kept' | 'buffered';
  /** null without a flush. */
  flushed: Flushed | null;
}

/**
 * Copies a file or disk, or a part of one, past the page cache, on a thread of its own; of more than 16 copies at once, others wait. If it fails or is stopped, a destination that it created is
 * removed, unless `destinationOffset` is set; any other is left half written. EEXIST: the destination exists, without `overwrite`. EINVAL: it is
 * the source, it is a disk that is too small, or the range ends beyond the source.
 */
export function copyFile(source: string | URL, destination: string | URL, options?: CopyOptions): Promise<Copied>;

/** The range of a file that a stream reads, and how. */
export interface ReadStreamOptions {
  /** The first byte; default 0. It need not be aligned. */
  start?: number;
  /** The last byte, as in Node's own streams; default: the last one of the file. */
  end?: number;
  /** Bytes of one transfer, rounded up to the alignment; default 1 MiB. */
  highWaterMark?: number;
  /** Closes the file in the end. Default: true of a path, false of an open file. */
  autoClose?: boolean;
  /** Whether `close` is emitted after the stream is destroyed. Without it, the callback of `close` is not called. Default: true. */
  emitClose?: boolean;
  /** Destroys the stream. */
  signal?: AbortSignal;
  /** Chunks are strings of this encoding. */
  encoding?: BufferEncoding;
}

/** The position at which a stream writes, and how. */
export interface WriteStreamOptions {
  /** The first byte; default 0. It need not be aligned. */
  start?: number;
  /** Bytes of one transfer, rounded up to the alignment; default 1 MiB. */
  highWaterMark?: number;
  /** Closes the file in the end. Default: true of a path, false of an open file. */
  autoClose?: boolean;
  /** Whether `close` is emitted after the stream is destroyed. Without it, the callback of `close` is not called. Default: true. */
  emitClose?: boolean;
  /** Flushes before `finish`: to this level, or with `true` to `device`. Default: false. */
  flush?: boolean | FlushLevel;
  /** Destroys the stream. */
  signal?: AbortSignal;
  /** Of strings that are written without one. Default: `utf8`. */
  encoding?: BufferEncoding;
}

/** Flags of `fs.open` for a stream that opens a file; not next to `read`, `write`, `create` and `createNew`. */
export interface ReadFlags {
  flags?: 'r' | 'r+' | 'rs+' | 'sr+';
}

/**
 * Flags of `fs.open` for a stream that opens a file; not next to `read`, `write`, `create` and `createNew`. `w` makes a new file or
 * empties one that exists, `wx` makes a new file, `r+` opens one that exists and truncates nothing. `a` is refused: nothing
 * can be appended past the page cache. Default: `w`; with `start`, a new file or one that exists, of which nothing is truncated.
 */
export interface WriteFlags {
  flags?: 'r+' | 'rs+' | 'sr+' | 'w' | 'w+' | 'wx' | 'xw' | 'wx+' | 'xw+';
}

/** What the streams of a file have of Node's own. Events: `open` with the file, `ready`, then those of a stream. */
export interface FileStream {
  /** Undefined until it is open. */
  readonly file: DirectFile | undefined;
  /** Undefined for a file of `fromFile`. */
  readonly path: string | undefined;
  /** Whether the file is not open yet, or closed. */
  readonly pending: boolean;
  /** Ends the stream and closes the file as `autoClose` does. */
  close(callback?: () => void): void;
}

/** A stream of a file, with the number of bytes that were read from it. */
export interface ReadStream extends Readable, FileStream {
  readonly bytesRead: number;
}

/** Opens a file and reads it past the page cache, up to an end that need not be aligned. A string in place of options is an encoding. */
export function createReadStream(
  path: string | URL,
  options?: BufferEncoding | (ReadStreamOptions & ReadFlags & Omit<OpenOptions, 'write' | 'create' | 'createNew'>)
): ReadStream;

/** A stream of a file, with the number of bytes that were written to it. */
export interface WriteStream extends Writable, FileStream {
  readonly bytesWritten: number;
}

/**
 * Opens a file and writes it past the page cache; parts of blocks as `writeUnalignedByReadModifyWriteAt` does. See `WriteFlags` for what
 * becomes of a file that exists. A string in place of options is an encoding.
 */
export function createWriteStream(
  path: string | URL,
  options?: BufferEncoding | (WriteStreamOptions & WriteFlags & OpenOptions)
): WriteStream;

/** Makes the names in a folder durable, after a file was created, renamed or removed in it. ENOTSUP on Windows. */
export function syncDirectory(path: string | URL): Promise<void>;

/**
 * A zeroed Buffer of `sizeBytes` at an address that is a multiple of `alignmentBytes`, a power of two of
 * at most 4194304; default: 4096. Throws; ENOMEM where there is no such memory.
 */
export function allocate(sizeBytes: number, alignmentBytes?: number): Buffer;

/** A completed transfer. */
export interface Transfer {
  /** As requested; fewer only from `readAt`, where the file ended. */
  bytes: number;
  /** Number of system calls. */
  calls: number;
  /** Whether it went through a copy, because the memory was not allocated by this package. */
  isCopied: boolean;
}

/** The result of a flush. */
export interface Flushed {
  /** The level that was reached: never below the requested one. */
  level: FlushLevel;
  /** Whether the call is also specified to flush the device's volatile cache. */
  isDeviceCacheFlushed: boolean;
  /** The system call, for example `fdatasync`. */
  call: string;
}

/**
 * The guarantee of a flush. `barrier`: earlier writes reach the medium before later ones. `data`: the data are with the
 * device. `file`: metadata too. `device`: the device was requested to flush its volatile cache.
 */
export type FlushLevel = 'barrier' | 'data' | 'file' | 'device';

/** Pages of a file in the page cache. */
export interface Residency {
  cachedPages: number;
  dirtyPages: number | null;
  writebackPages: number | null;
  pageSizeBytes: number;
  /** Pages in the range, up to the end of the file. */
  filePages: number;
  /** The source of the counts. */
  source: string;
}

/** Facts that an open disk reports. */
export interface DeviceFacts {
  sizeBytes: number;
  logicalSectorBytes: number;
  physicalSectorBytes: number | null;
  minimumIoBytes: number | null;
  optimalIoBytes: number | null;
  /** Virtual disks often report true wrongly. */
  isRotational: boolean | null;
  serial: string | null;
  serialSource: string | null;
}

/** An offset in a file: 0 to 2^53 - 1. */
export type Offset = number | bigint;

/**
 * An open file. All calls may be made at once. Do not touch a buffer until its transfer has ended; a second
 * transfer that would fill memory in use is refused (`ERR_TRUEIO_BUFFER_IN_USE`).
 */
export class DirectFile {
  private constructor();
  /** Undefined for a file of `fromFile`. */
  readonly path: string | undefined;
  /**
   * `direct`; `unconfirmed` (the flag is accepted, its effect is unknown: FUSE, network); `not-kept` (macOS and files on FreeBSD: the kernel
   * was requested not to cache); `buffered`. As of when the file was opened: on XFS, a write of a part of a block that became shared since
   * (`cp --reflink`) is refused as misaligned. To ask again, open the file again.
   */
  readonly granted: 'direct' | 'unconfirmed' | 'not-kept' | 'buffered';
  /** The reason for `granted` and its source, as a sentence without a full stop. */
  readonly reason: string;
  readonly alignment: Alignment;
  readonly isClosed: boolean;

  /** Throws the error with which a transfer would be refused, without making it. */
  check(buffer: NodeJS.ArrayBufferView, offset: Offset, direction: 'read' | 'write'): void;
  /** Fills all of `buffer`. If the file ends before, rejects with `ERR_TRUEIO_END_OF_FILE` and `doneBytes`. */
  readExactAt(buffer: NodeJS.ArrayBufferView, offset: Offset, options?: Cancellable): Promise<Transfer>;
  /** Reads until `buffer` is full or the file ends: `bytes` is smaller than the buffer only at the end of the file. */
  readAt(buffer: NodeJS.ArrayBufferView, offset: Offset, options?: Cancellable): Promise<Transfer>;
  /** Writes all of `buffer`. */
  writeAllAt(buffer: NodeJS.ArrayBufferView, offset: Offset, options?: Cancellable): Promise<Transfer>;
  /** The same, durable when it returns, as by `O_DSYNC`. *(Linux; ENOTSUP elsewhere)* */
  writeDsyncAt(buffer: NodeJS.ArrayBufferView, offset: Offset, options?: Cancellable): Promise<Transfer>;
  /** Writes all of `buffer` so that a power loss leaves all or nothing of it; never in another way. *(Linux 6.11)* */
  writeAtomicAt(buffer: NodeJS.ArrayBufferView, offset: Offset, options?: Cancellable): Promise<Transfer>;
  /** Reads through the page cache and leaves nothing there. Of buffered files only. *(Linux 6.14)* */
  readUncachedAt(buffer: NodeJS.ArrayBufferView, offset: Offset, options?: Cancellable): Promise<Transfer>;
  /** Writes through the page cache and leaves nothing there. Of buffered files only. *(Linux 6.14)* */
  writeUncachedAt(buffer: NodeJS.ArrayBufferView, offset: Offset, options?: Cancellable): Promise<Transfer>;
  /** Reads any bytes, through an aligned copy that covers them. */
  readUnalignedByCopyAt(buffer: NodeJS.ArrayBufferView, offset: Offset, options?: Cancellable): Promise<Transfer>;
  /**
   * Writes any bytes. Whole blocks are written directly, parts of blocks of a file through the page cache on a second
   * descriptor, so concurrent writers of one block lose nothing; rejects if the file cannot be opened a second time. A part
   * of a block of a disk is read, changed and written whole: writes of this process exclude each other there.
   */
  writeUnalignedByReadModifyWriteAt(buffer: NodeJS.ArrayBufferView, offset: Offset, options?: Cancellable): Promise<Transfer>;

  /** Reads into `buffers`, one after another, until all are full or the file ends. Each must be aligned, address and length. */
  readVectoredAt(buffers: readonly NodeJS.ArrayBufferView[], offset: Offset, options?: Cancellable): Promise<Transfer>;
  /** Writes all of `buffers`, one after another. */
  writeVectoredAt(buffers: readonly NodeJS.ArrayBufferView[], offset: Offset, options?: Cancellable): Promise<Transfer>;
  /** Reads past the page cache, up to an end that need not be aligned. The file stays open unless `autoClose` is true. */
  createReadStream(options?: ReadStreamOptions): ReadStream;
  /** Writes past the page cache; parts of blocks as `writeUnalignedByReadModifyWriteAt` does. */
  createWriteStream(options?: WriteStreamOptions): WriteStream;

  /** Makes earlier writes durable. Default: `device`. After an error, earlier writes may be lost. */
  flush(level?: FlushLevel, options?: Cancellable): Promise<Flushed>;
  /** Reserves space, and extends the file to that length. ENOTSUP if the filesystem cannot. */
  preallocate(offset: Offset, lengthBytes: number | bigint): Promise<void>;
  /** Sets the length of the file: what lies beyond is lost, and what is added reads as zeros. Default: 0. EINVAL of a disk. */
  truncate(lengthBytes?: number | bigint): Promise<void>;
  /** The length of the file, or the capacity of the disk. */
  size(): Promise<number>;
  /** ENOTBLK for anything but a disk. */
  deviceFacts(): Promise<DeviceFacts>;
  /** Advisory on Unix, mandatory on Windows. Does not wait: EAGAIN if another lock conflicts. */
  tryLock(mode?: 'shared' | 'exclusive'): Promise<void>;
  unlock(): Promise<void>;
  /** Locks a range; a length of 0 means up to the end. Does not wait: EAGAIN if another lock conflicts. ENOTSUP on FreeBSD. */
  tryLockRange(offset: Offset, lengthBytes: number | bigint, mode?: 'shared' | 'exclusive'): Promise<void>;
  /** On Windows the range must be one that was locked. */
  unlockRange(offset: Offset, lengthBytes: number | bigint): Promise<void>;
  /** A length of 0 (default) means up to the end. */
  residency(offset?: Offset, lengthBytes?: number | bigint): Promise<Residency>;
  /** Requests that clean pages are dropped from the page cache. */
  evict(offset?: Offset, lengthBytes?: number | bigint): Promise<void>;
  /** Accepts no more calls, waits for those that have begun, and closes. */
  close(): Promise<void>;
  /** The same as `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** How long to wait for a buffer of a pool. */
export interface WaitOptions {
  /** Ends the wait: it rejects with an `AbortError`, and takes no buffer. */
  signal?: AbortSignal;
  /** Milliseconds, after which the wait rejects with a `TimeoutError` (`ETIMEDOUT`), and takes no buffer. Default: none. */
  timeout?: number;
}

/**
 * Buffers of one size, each lent at most once at a time. A lent buffer that is collected, because nothing refers to its memory
 * any more, is replaced by a new one: a pool becomes no smaller.
 */
export class BufferPool {
  /** Throws. `count` times the size, rounded up to the alignment, is at most 2^31 - 1. The alignment is as in `allocate`. */
  constructor(count: number, sizeBytes: number, alignmentBytes?: number);
  readonly count: number;
  readonly freeCount: number;
  readonly sizeBytes: number;
  /** Waits until one is free; the first caller is served first. The content is that of its last use. */
  acquire(options?: WaitOptions): Promise<Buffer>;
  /** null if none is free. */
  tryAcquire(): Buffer | null;
  /** Returns a buffer of `acquire`, the same object, to the pool. No transfer may be using it. */
  release(buffer: Buffer): void;
  /** Acquires, runs `task`, and releases when it has ended, in whatever way. */
  use<T>(task: (buffer: Buffer) => T | Promise<T>, options?: WaitOptions): Promise<T>;
}

/** The error of everything that is not a wrong argument. */
export interface DirectError extends Error {
  /** The system's name for it (`ENOSPC`), or one of ours where the system was not asked. */
  code: string | DirectErrorCode;
  /** Node's number of `code`, negative; with `ERR_TRUEIO_DIRECT_REFUSED` that of the system, if it gave one. Absent with the other codes of ours. */
  errno?: number;
  /** What was attempted. */
  syscall?: string;
  path?: string;
  /** The destination of a copy. */
  dest?: string;
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
  /** A pipe, a socket, a terminal, /dev/null. A directory is `EISDIR`. */
  | 'ERR_TRUEIO_NOT_A_FILE'
  /** Under `require`: the system refuses direct I/O. Where it gave a number, `errno` has it. */
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
