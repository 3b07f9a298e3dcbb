// The documents, as `trueio schema` describes them. Rendered by `cargo xtask types --write`.

/** The advice to the kernel on the use of a file. */
export type Advice = "none" | "random" | "sequential" | "noreuse";

/** The answer for one metric of one side, compared with the first side. */
export interface Answer {
  /** How the interval was computed. */
  basis: Basis;
  /** The answer. */
  conclusion: Conclusion;
  /** Which metric. */
  metric: Metric;
  /** Estimate of how much longer a definite answer takes; `None` if unknown, or if the answer is definite. */
  needs?: Needs | null;
  /** The noise floor: the difference of equal sides in a comparison of this length, as a share; `None` if unknown. */
  noise_floor?: number | null;
  /** The ratio of this side to the first, with its interval; `None` if there is none. */
  ratio?: Ratio | null;
  /** Why the answer is not definite; `None` if it is. */
  reason?: string | null;
  /** Which side, as an index into `Part::sides`. */
  side: number;
}

/** A figure: of an operation of a load, of a side of a comparison, of a row of a study, of a run of a trend. */
export interface AnsweredFigure {
  /** Why it is not confirmed, in a few words; empty if it is, or if the document does not contain the reason. */
  cause?: string;
  /** The upper end of that interval; `None` if there is none. */
  high?: number | null;
  /** False if it is withheld. */
  is_shown: boolean;
  /** What it is a figure of: a load (the job's name), a side, a row, a run. */
  load: string;
  /** The lower end of its 95 % interval; `None` if there is none. */
  low?: number | null;
  /** Its name: `iops`, `p99`, `change of iops`. */
  name: string;
  /** The operation; `None` if it is of all together. */
  operation?: OpKind | null;
  /** Which figure of a run it is; `None` in other documents. */
  quantity?: Quantity | null;
  /** Number of operations, pairs, samples or runs on which it rests; 0 if the figures of a run are withheld. */
  sample_count: number;
  /** The unit of value, low and high: `1/s`, `B/s`, `ns`, `ratio`. */
  unit: string;
  /** Its value; `None` if it is withheld or unknown, or if the sample cannot support it. */
  value?: number | null;
  /** Its mark: how far it can be trusted. */
  verdict: Mark;
}

/** Why loads are not confirmed: everything of one cause. */
export interface AnsweredFinding {
  /** The cause. */
  cause: Cause;
  /** What the checks found, in the words of the record, the worst first. */
  details?: Array<FoundDetail>;
  /** Which loads it concerns, and how much of them it can explain: the end of the sentence. */
  extent?: string;
  /** Each load with what was found of it. */
  loads: Array<FoundLoad>;
  /** What to do about it: one sentence without a full stop, which may begin with a command. */
  next_step: string;
  /** The finding, with the loads that it concerns, in one sentence without a full stop. */
  sentence: string;
  /** The worst word of its loads. */
  verdict: Mark;
}

/** What was judged of a phase: its word, and why. Outputs read this and no checks. */
export interface AnsweredPhase {
  /** False if its figures are withheld. */
  is_shown: boolean;
  /** How far its evidence reaches. */
  level: EvidenceLevel;
  /** The checks that object: the one that determines the word, then the others in the order of the record. */
  objections: Array<Objection>;
  /** Name of the phase. */
  phase: string;
  /** Its mark: how far it can be trusted. */
  verdict: Mark;
  /** The word with the finding that determines it: `disturbed: dd wrote 335 MiB`. */
  words: string;
}

/** The distribution of paced I/Os over time. */
export type Arrivals = "linear" | "poisson";

/** Lengths of writes that a power loss cannot tear: powers of two, at offsets that are multiples of the length. */
export interface AtomicWriteFacts {
  /** The longest, in bytes; 0: there are none. */
  max_bytes: number;
  /** The shortest, in bytes; 0: there are none. */
  min_bytes: number;
}

/** How an interval was computed. */
export type Basis = "pair_ratios" | "resampled_pairs" | "blocks" | "nothing";

/** Requests of loop devices, followed to the disks of their files. */
export interface BelowTrace {
  /** The disks of the files. */
  disks?: Array<string>;
  /** Their files, and those of loop devices below them. */
  files?: Array<string>;
  /** Of those that were missing, reads of holes in the files. */
  hole_count?: number;
  /** A description of the first of them. */
  hole_example?: string | null;
  /** The loop devices. */
  loops?: Array<string>;
  /** Why one of them was not followed, with its name; `None` if all were. */
  missing?: string | null;
  /** A few of these programs, busiest first, one entry for each disk. */
  other_processes?: Array<TracedProcess>;
  /** Requests of the disks that other programs made, anywhere. */
  others?: RequestSum;
  /** Time in which one of those was in flight, in the windows, in nanoseconds. */
  others_busy_ns?: number;
  /** Requests of the disks in the places of the files. */
  ours?: RequestSum;
  /** Sampled durable writes that a flush of a loop device followed. */
  syncs?: SyncOrder;
  /** Sampled direct transfers whose requests to loop devices were found. */
  transfers?: TransferMatch;
  /** All windows together, as far as the requests of the disks are known, in nanoseconds. */
  window_ns?: number;
}

/** What of a block differs from what was written. */
export type BlockPart = "content" | "magic" | "length" | "run" | "offset" | "sequence" | "checksum" | "trimmed";

/** Bytes that fill a block repeatedly. */
export interface BlockPattern {
  /** The bytes. */
  bytes: Array<number>;
  /** Positions in the pattern at which the block's offset is stored, as eight bytes, little-endian. */
  offset_places: Array<number>;
}

/** Sizes of an operation, in bytes. */
export type BlockSizes = { fixed: number } | { range: { max_bytes: number; min_bytes: number } } | { weighted: Array<[number, number]> };

/** What kind of thing a finding is about. */
export type Cause = "calls" | "cache" | "setup" | "device" | "neighbour" | "tool" | "unsteady";

/** One check's finding on one phase. */
export interface Check {
  /** The finding in a few words that fit in a row of a table (`dd wrote 335 MiB`); empty if the check agrees, and in records of versions 1 and 2. */
  brief?: string;
  /** What the finding is about. `RunRecord::upgrade`(crate::RunRecord::upgrade) adds it to records of versions 1 and 2. */
  cause?: Cause;
  /** The processes that caused it, busiest first (`dd (pid 812)`); empty if they are unknown. */
  culprits?: Array<string>;
  /** The value that the figures require, with its unit; empty if there is nothing to compare. */
  expected: string;
  /** How much of the figure the finding can explain at most, in percent, rounded up; `None` if that is unknown. */
  explained_percent?: number | null;
  /** The value that the source reported, with its unit. */
  found: string;
  /** True if it doubts or contradicts the figures and the user accepted that before the run: it then makes the phase at most suspect. */
  is_accepted?: boolean;
  /** The check's name, snake case (`block_layer_bytes`); `docs/checks.md` has a section of it. */
  name: string;
  /** The outcome. */
  outcome: CheckOutcome;
  /** One sentence for the user. */
  sentence: string;
  /** The source that it read (`/sys/block/vda/stat`). */
  witness: string;
}

/** The outcome of one check. */
export type CheckOutcome = "passed" | "suspect" | "contradicted" | "not_seen" | "not_applicable";

/** Checksums of verified blocks. */
export type Checksum = "crc32c" | "xxhash" | "md5" | "crc64" | "crc32" | "crc16" | "crc7" | "sha1" | "sha256" | "sha512" | "sha3_224" | "sha3_256" | "sha3_384" | "sha3_512" | "meta" | "pattern" | "pattern_hdr" | "null";

/** A circumstance in which two sides differ. */
export interface Circumstance {
  /** What the first side had. */
  first: string;
  /** True if it is not the subject of the comparison and makes the figures incomparable. */
  forbids: boolean;
  /** What differs (`disk`, `kernel`, `engine`). */
  name: string;
  /** Which side differs from the first, as an index into `Part::sides`. */
  side: number;
  /** What this side had. */
  this: string;
}

/** The offset of rank 0's clock from that of a rank. */
export interface ClockOffset {
  /** Largest error of the offset, in nanoseconds: half of the shortest round trip. */
  bound_ns: number;
  /** Rank 0's clock less the rank's, in nanoseconds. */
  offset_ns: number;
  /** Number of pings. */
  ping_count: number;
  /** Median round trip, in nanoseconds. */
  round_trip_ns_median: number;
}

/** One phase across ranks. */
export interface ClusterPhase {
  /** The time in which all ranks measured; `None`: there is none. */
  common?: CommonWindow | null;
  /** Time from the first rank's end to the last one's, in nanoseconds. */
  end_skew_ns: number;
  /** The phase's name. */
  name: string;
  /** Planned length of the measured part, in nanoseconds; `None`: the work is fixed, not the time. */
  nominal_ns?: number | null;
  /** One entry for each rank that took part, in their order. */
  ranks: Array<RankSpan>;
  /** Time from the first rank's start to the last one's, in nanoseconds. */
  start_skew_ns: number;
}

/** A run of several ranks: each with its own record. The phases of the record around it are their sums. */
export interface ClusterRecord {
  /** The source of rank and size: `PMIx 4.2.2`, `PMI-1`, `variables`. */
  launcher: string;
  /** Ranks that ended or were cut off before their results were complete. */
  lost?: Array<LostRank>;
  /** The phases across ranks, in the order of `RunRecord::phases`. */
  phases: Array<ClusterPhase>;
  /** Number of ranks that were started. */
  rank_count: number;
  /** The ranks that sent results, in their order. */
  ranks: Array<RankRecord>;
}

/** An external program that does a job's I/O. */
export interface CommandPlan {
  /** Its name and its arguments. `{file}` in them is replaced by the path of the job's file when it is started. */
  arguments: Array<string>;
}

/** Contents that the workers of several jobs repeat: each of `parts` workers writes a part of them first, and draws its repeats from all of them. */
export interface CommonContents {
  /** The part of the job's first worker, from 0; that of the next worker follows. */
  first_part: number;
  /** Number of workers of all these jobs. */
  parts: number;
  /** The seed of the contents. */
  seed: number;
}

/** The time in which all ranks measured. */
export interface CommonWindow {
  /** Its start: the latest of the ranks, in nanoseconds of rank 0's clock after the agreed start. */
  begin_ns: number;
  /** Bytes a second of all ranks in it. */
  bytes_per_s: number;
  /** Its end: the earliest of the ranks. */
  end_ns: number;
  /** Operations a second of all ranks in it. */
  ios_per_s: number;
  /** Its share of the nominal length, or of the longest rank's span where the work is fixed. */
  share: number;
}

/** One comparison, whole. */
export interface Comparison {
  /** The share of wrong answers that is allowed, for each metric, over all sides together: 0.05. */
  alpha: number;
  /** Headline, figures, statements, doubts and next steps. A document in memory has none: it is derived, and written with the JSON. */
  answer?: DocumentAnswer | null;
  /** The command line as it was typed. */
  command: Array<string>;
  /** Why the sides may not be comparable: each circumstance that differs. */
  differences: Array<Circumstance>;
  /** The kind of document */
  format: "trueio-comparison";
  /** The conditions of `--fail-if`, and the answers. */
  gates?: Array<GateResult>;
  /** The margin of the answers: 0.05 means differences of more than 5 %. */
  margin: number;
  /** How the figures were measured. */
  method: Method;
  /** Sentences for the user: what was chosen, and the limits of this comparison. */
  notes: Array<string>;
  /** How it ended. */
  outcome: Outcome;
  /** What was compared: one part when sides are interleaved, one for each phase that two records share. */
  parts: Array<Part>;
  /** What was planned, on what, on which machine: a record without phases. `None` if records were compared. */
  setting?: RunRecord | null;
  /** When it began, as text: `2026-11-20T20:28:32Z`. */
  started_at: string;
  /** The program. */
  tool: ToolFacts;
  /** The version of the writer */
  version: number;
}

/** The kinds of answer. Better and worse are the metric's: less latency is better. */
export type Conclusion = "better" | "better_size_unclear" | "worse" | "worse_size_unclear" | "same" | "cannot_tell";

/** What is written. */
export interface Content {
  /** The contents that repeat, if jobs have them in common; `None`: each worker has its own. */
  common?: CommonContents | null;
  /** Length of such a piece, in bytes; 0: the whole block. */
  compressible_bytes?: number;
  /** Percentage of each piece of content that compresses away, 0 to 100. */
  compressible_percent: number;
  /** How many different contents they have; 0: a few. */
  duplicate_count?: number;
  /** Percentage of blocks that repeat an earlier one, 0 to 100. */
  duplicate_percent: number;
  /** Random, zero, or a pattern. */
  kind: ContentKind;
  /** The bytes that fill each buffer repeatedly if `kind` is a pattern, and the compressible part if it is random. */
  pattern?: Array<number>;
  /** Fresh content for every write; without it the buffers are filled once and each block of 4 KiB is stamped, so that no two writes are alike. */
  refill: boolean;
}

/** The kind of content. */
export type ContentKind = "random" | "zero" | "pattern";

/** What steers a job while it runs. */
export interface Control {
  /** The job ends as soon as what it measures is steady by fio's definition (`steadystate`). */
  criterion?: CriterionPlan | null;
  /** The job's progress is kept in proportion to that of others. */
  flow?: FlowPlan | null;
  /** The highest queue depth is looked for at which latencies stay within a target. */
  latency_target?: LatencyTarget | null;
  /** Jobs of the same phase whose workers must all have ended before this one begins. */
  waits_for?: Array<string>;
}

/** A control group of the hierarchy that controls block I/O. */
export interface ControlGroupPlan {
  /** Whether a group that the run creates remains after it. */
  is_kept?: boolean;
  /** Its path below the mount point of the hierarchy. */
  name: string;
  /** The weight that it is given; `None`: left as it is. */
  weight?: number | null;
}

/** Processors. */
export interface CpuFacts {
  /** Frequency governor of the first processor. */
  governor: Fact2;
  /** Model name. */
  model: Fact2;
  /** The quota of the process's control group, in processors (0.5: half of one processor's time); `None` without a quota, and in records of earlier versions. */
  quota?: number | null;
  /** Processors this process may use. */
  usable_count: number;
}

/** The CPU load of `cpuio`. */
export interface CpuLoad {
  /** Length of a busy span, in nanoseconds. */
  chunk_ns: number;
  /** It ends when all other jobs of the phase that do I/O have ended. */
  ends_with_io?: boolean;
  /** Percentage of the time, 1 to 100. */
  percent: number;
  /** It sorts numbers, which also uses the caches; otherwise it multiplies. */
  sorts?: boolean;
}

/** CPU time of the whole process with its kernel helpers, in nanoseconds. */
export interface CpuTime {
  /** In the kernel. */
  system_ns: number;
  /** In user mode. */
  user_ns: number;
}

/** What is to be steady, and how much of it (fio's `steadystate`). */
export interface Criterion {
  /** The limit is a percentage of the mean, not in the figure's own unit. */
  is_percent: boolean;
  /** The slope of the straight line through the window's values is limited; otherwise the largest distance of one of them from their mean. */
  is_slope: boolean;
  /** What it must be below: of a slope its size. */
  limit: number;
  /** The figure. */
  variable: CriterionVariable;
}

/** When a job ends because it is steady. */
export interface CriterionPlan {
  /** What is to be steady. */
  criterion: Criterion;
  /** How long the first span waits for, in nanoseconds from the beginning of the measured part. */
  ramp_ns: number;
  /** Length of a span, in nanoseconds: each gives one value. */
  span_ns: number;
  /** For how long, in nanoseconds: a whole number of spans, two at least. */
  window_ns: number;
}

/** How steady a job became. */
export interface CriterionRecord {
  /** The largest distance of a value from the mean, where that is limited. */
  deviation_max: number;
  /** The criterion was met, and ended the job. */
  is_attained: boolean;
  /** The slope a span, where that is limited. */
  slope: number;
  /** The last window's spans, oldest first. */
  spans: Array<CriterionSpan>;
  /** What was held against the limit last: a percentage, or in the figure's unit. 0 as long as the window was not full. */
  value: number;
}

/** What was measured in one span. */
export interface CriterionSpan {
  /** Bytes a second. */
  bytes_per_s: number;
  /** I/Os a second. */
  ios_per_s: number;
  /** The mean latency, in nanoseconds; 0 without an I/O. */
  latency_ns: number;
}

/** A figure that may become steady. */
export type CriterionVariable = "ios" | "bytes" | "latency";

/** The answer to a question of yes or no. */
export type Decision = "yes" | "no" | "cannot_tell";

/** What the wait before a job's first I/O counts from. */
export type DelayStart = "phase" | "run";

/** How much the I/Os of an operation depend on each other. */
export interface Dependence {
  /** By thresholds, from the lowest latency to the highest. A threshold is missing if too few I/Os are above it, or the run is too short for their dependence. */
  inflations: Array<Inflation>;
  /** How much more the mean latency varies than if I/Os were independent: a ratio of variances, at least 1. `None` if the run is too short for the dependence of its I/Os, and in records of earlier versions. */
  mean_factor?: number | null;
  /** Slices of the measured time from which it was estimated. */
  slice_count: number;
  /** The measured time, in nanoseconds. */
  span_ns: number;
}

/** How the search for a queue depth went, of one worker. */
export interface DepthSearch {
  /** The highest depth that was seen to keep the target; if none was, the depth at the job's end. */
  depth: number;
  /** The search ended: one more than this depth does not keep the target, or is more than the job may have. False if the job ended before, or if one I/O at a time does not keep it. */
  is_found: boolean;
  /** Windows that were judged. */
  window_count: number;
  /** The last of them, oldest first. */
  windows: Array<DepthWindow>;
}

/** One window of such a search. */
export interface DepthWindow {
  /** I/Os in flight at most. */
  depth: number;
  /** I/Os that were issued and completed in it. */
  io_count: number;
  /** Enough of them kept it. */
  is_met: boolean;
  /** How many of them took longer than the target. */
  late_count: number;
}

/** A disk's counters, as `/sys/block/<disk>/stat` gives them, since boot. */
export interface DeviceCounters {
  /** Time with at least one request in flight, in milliseconds. */
  busy_ms: number;
  /** Bytes discarded. */
  discard_bytes: number;
  /** Discard requests completed. */
  discard_count: number;
  /** Flush requests completed; `None` if the kernel does not count them. */
  flush_count?: number | null;
  /** Bytes read. */
  read_bytes: number;
  /** Read requests completed. */
  read_count: number;
  /** Read requests that were merged into a queued one. */
  read_merge_count?: number;
  /** Sum over reads of their time in flight, in milliseconds. */
  read_ms?: number;
  /** Sum over requests of their time in flight, in milliseconds. */
  weighted_ms: number;
  /** Bytes written. */
  write_bytes: number;
  /** Write requests completed (an empty flush counts here too). */
  write_count: number;
  /** Write requests that were merged into a queued one. */
  write_merge_count?: number;
  /** Sum over writes of their time in flight, in milliseconds. */
  write_ms?: number;
}

/** A disk's counters in a phase. */
export interface DeviceDelta {
  /** The change before the phase, while none of our jobs ran. */
  baseline: DeviceCounters;
  /** Duration of that baseline, in nanoseconds; 0 without one. */
  baseline_ns: number;
  /** The disk's kernel name. */
  disk: string;
  /** The change during the measured part. */
  measured: DeviceCounters;
  /** Duration of that, in nanoseconds. */
  measured_ns: number;
}

/** The requirements of direct I/O on a target. */
export interface DirectFacts {
  /** Writes that a power loss cannot tear (`RWF_ATOMIC`). */
  atomic_write?: Fact11;
  /** Alignment of the buffer's address, in bytes. */
  memory_alignment_bytes: Fact4;
  /** Alignment of a read's offset and length, in bytes. */
  read_alignment_bytes: Fact4;
  /** The reason for that. */
  reason: string;
  /** Whether it is supported. */
  support: DirectSupport;
  /** Alignment of a write's offset and length, in bytes. */
  write_alignment_bytes: Fact4;
}

/** Whether the page cache is bypassed. */
export type DirectPolicy = "require" | "prefer" | "off";

/** Whether direct I/O is supported. */
export type DirectSupport = "direct" | "silently_buffered" | "refused" | "unknown";

/** A disk at the bottom of a stack. */
export interface DiskFacts {
  /** Whether the kernel counts its I/O (`queue/iostats`). */
  counts_io: Fact5;
  /** Major and minor number. */
  device_number: [number, number];
  /** The version of its firmware. */
  firmware?: Fact2;
  /** Whether it accepts forced-unit-access writes. */
  has_fua: Fact5;
  /** Whether the disk rotates, according to the kernel. */
  is_rotational: Fact5;
  /** The limits of a request, and the preferred write sizes. */
  limits?: DiskLimits;
  /** Its link, if it is an NVMe or SATA disk and the kernel reports it. Missing in records of earlier versions. */
  link?: DiskLink | null;
  /** Logical sector, in bytes: the shortest possible transfer. */
  logical_sector_bytes: Fact4;
  /** Largest request, in bytes. */
  max_request_bytes: Fact;
  /** Model, vendor included. */
  model: Fact2;
  /** Kernel name (`nvme0n1`). */
  name: string;
  /** Physical sector, in bytes: the shortest write that the disk executes without a read. */
  physical_sector_bytes: Fact4;
  /** Read-ahead, in bytes. */
  read_ahead_bytes: Fact;
  /** Requests that the block layer holds for each hardware queue (`queue/nr_requests`); with an I/O scheduler, its tags. */
  request_count: Fact4;
  /** The I/O scheduler in use. */
  scheduler: Fact2;
  /** Serial number. */
  serial: Fact2;
  /** Size, in bytes. */
  size_bytes: Fact;
  /** How it is attached: `nvme`, `sata`, `usb`, `virtio`, `loop`, `zram`, … */
  transport: Fact3;
  /** How it is attached, if it is a USB disk. Missing in records of earlier versions. */
  usb?: UsbFacts | null;
  /** `write back` (a volatile cache: only flushed data survives) or `write through`. */
  write_cache: Fact6;
  /** World-wide identifier (`eui.…`, `naa.…`, `t10.…`). */
  wwid?: Fact2;
}

/** The limits of a request to a disk, and its preferred write sizes: `queue/` of sysfs. */
export interface DiskLimits {
  /** Distance of its start from the physical sector boundary before it, in bytes; −1: no offset would align it. */
  alignment_offset_bytes?: Fact7;
  /** Largest write that a power loss cannot tear, in bytes; 0: no guarantee. */
  atomic_write_max_bytes?: Fact;
  /** Whether it has queues that can be polled for completions. */
  can_poll?: Fact5;
  /** Length of a zone or of a stripe that requests do not cross, in bytes; 0: there is none. */
  chunk_bytes?: Fact;
  /** Unit of trims, in bytes; 0: it cannot be trimmed. */
  discard_granularity_bytes?: Fact;
  /** Largest trim, in bytes; 0: it cannot be trimmed. */
  discard_max_bytes?: Fact;
  /** Required alignment of a buffer's address, in bytes. */
  dma_alignment_bytes?: Fact;
  /** Queues of the hardware. */
  hardware_queue_count?: Fact4;
  /** Whether it is read-only. */
  is_read_only?: Fact5;
  /** Whether it, or its medium, is removable. */
  is_removable?: Fact5;
  /** Largest request that the hardware accepts, in bytes. */
  max_hw_request_bytes?: Fact;
  /** Largest such segment, in bytes. */
  max_segment_bytes?: Fact;
  /** Maximum number of memory segments in a request. */
  max_segment_count?: Fact4;
  /** Preferred minimum write size, in bytes: a RAID's chunk, a disk's physical sector. */
  minimum_io_bytes?: Fact;
  /** Optimal write size, in bytes: a RAID's stripe. 0: not declared. */
  optimal_io_bytes?: Fact;
  /** Requests that a SCSI disk accepts at a time. */
  queue_depth?: Fact4;
  /** Requests that the driver holds in each of them (`mq/0/nr_tags`): of a virtio disk the size of its ring. */
  tag_count?: Fact4;
  /** Largest write of zeros without data, in bytes; 0: it has none. */
  write_zeroes_max_bytes?: Fact;
  /** `none`, `host-aware` or `host-managed`: zones that can only be written in order. */
  zoned?: Fact8;
}

/** The link of a disk, from sysfs. That of a USB disk is in `UsbFacts`(crate::UsbFacts). Virtual disks have none. */
export type DiskLink = { bus: "pcie"; gt_per_s: number; gt_per_s_max?: number | null; lanes: number; lanes_max?: number | null; source: string } | { bus: "sata"; gbit_per_s: number; source: string };

/** How random offsets are distributed over the blocks of the region. */
export type Distribution = "uniform" | { zipf: { center?: number | null; theta: number } } | { pareto: { center?: number | null; h: number } } | { normal: { center?: number | null; deviation_percent: number } } | { zoned: { zones: Array<[number, number]> } } | { zoned_bytes: { zones: Array<[number, number]> } } | { sequence: { blocks: Array<number>; is_advancing: boolean } } | { precondition: { cache_bytes: number; over_provisioning: number; region_count: number } };

/** A part of a phase's measured time in which the disk or this program was disturbed. Adjoining samples of one cause are one span, so a phase without a disturbance has none. */
export interface DisturbedSpan {
  /** `Cause::Neighbour`: others used the disk. `Cause::Tool`: the workers waited for a processor. `Cause::Device`: the disk or the processors throttled for heat. */
  cause: Cause;
  /** Its begin, in nanoseconds since the measured part began. */
  from_ns: number;
  /** Its end, in nanoseconds since the measured part began. */
  until_ns: number;
  /** What was seen, in a few words: `others wrote 12 MiB`. */
  what: string;
}

/** The answer of a comparison, a study or a trend. */
export interface DocumentAnswer {
  /** Why figures are not confirmed, or a question is undecided. */
  doubts: Array<string>;
  /** Each figure, in the order of the document. */
  figures: Array<AnsweredFigure>;
  /** The answer: one sentence for each thing that was asked, in the order of the document. */
  headline: Array<string>;
  /** What to do, each step once: a sentence without a full stop, which may begin with a command. */
  next_steps: Array<string>;
  /** What follows from confirmed figures. */
  statements: Array<Statement>;
}

/** What a disk that is driven in user space reports about its commands; the kernel has no block device of it. */
export interface DrivenDisk {
  /** Whether it has a command that deallocates blocks. */
  can_trim: Fact5;
  /** Whether it accepts forced-unit-access writes. */
  has_fua: Fact5;
  /** `write back` (a volatile cache) or `write through`. Unknown: the disk does not report it, so a cache is assumed. */
  write_cache: Fact6;
}

/** Zones that are reset before they are full, as a garbage collector would. */
export interface EarlyResets {
  /** Above that share, every Nth write resets its zone first. */
  every: number;
  /** The share of the region's capacity that must be written first, 0 to 1. */
  threshold: number;
}

/** The I/O engines. */
export type EngineKind = "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" | "libaio" | "io_uring" | "mmap" | "splice" | "posixaio" | "falloc" | "ftruncate" | "e4defrag" | "filecreate" | "filestat" | "fileread" | "filedelete" | "dircreate" | "dirstat" | "dirdelete" | "page_fault" | "cpuio" | "exec" | "uas" | "null" | "simulated" | "command";

/** The machine and its software. */
export interface Environment {
  /** The kernel's clock source. */
  clock_source: Fact2;
  /** Processors. */
  cpu: CpuFacts;
  /** The distribution, if known. */
  distribution: Fact2;
  /** The hypervisor, if the processor reports one. */
  hypervisor: Fact2;
  /** Whether the process runs as root. */
  is_root: boolean;
  /** Load averages over 1, 5 and 15 minutes when the run began. */
  load_average: Fact13;
  /** Memory available without swapping when the run began, in bytes. */
  memory_available_bytes: Fact;
  /** Memory, in bytes. */
  memory_bytes: Fact;
  /** Memory, page cache included, that the process's control groups allow, in bytes; `None` without a limit, and in records of earlier versions. */
  memory_limit_bytes?: number | null;
  /** Operating system and its version (`Linux 6.18.44 x86_64`). */
  system: string;
}

/** A figure of one run and its 95 % interval, with allowance for the dependence of I/Os. */
export interface Estimate {
  /** Upper end. */
  high: number;
  /** Lower end of the interval. */
  low: number;
  /** The figure, in the unit of the field that holds it. */
  value: number;
}

/** How far the evidence reaches. */
export type EvidenceLevel = "E0" | "E1" | "E2" | "E3" | "E4";

/** An external program that runs while other jobs measure. */
export interface ExecPlan {
  /** Its name and its arguments. */
  arguments: Array<string>;
  /** Time for the program to end after SIGTERM, in nanoseconds. */
  grace_ns: number;
  /** Prefix of the files for its output, to which `.stdout` and `.stderr` are appended; `None`: our standard error. */
  output?: string | null;
}

/** A value read from the machine, and its source. */
export interface Fact {
  /** The source: a file, a system call, or the reason why the value is unknown. */
  source: string;
  /** The value; `None` if it is unknown. */
  value?: number | null;
}

/** A value read from the machine, and its source. */
export interface Fact10 {
  /** The source: a file, a system call, or the reason why the value is unknown. */
  source: string;
  /** The value; `None` if it is unknown. */
  value?: Array<UsbAlternate> | null;
}

/** A value read from the machine, and its source. */
export interface Fact11 {
  /** The source: a file, a system call, or the reason why the value is unknown. */
  source: string;
  /** The value; `None` if it is unknown. */
  value?: AtomicWriteFacts | null;
}

/** A value read from the machine, and its source. */
export interface Fact12 {
  /** The source: a file, a system call, or the reason why the value is unknown. */
  source: string;
  /** The value; `None` if it is unknown. */
  value?: Array<IoLimit> | null;
}

/** A value read from the machine, and its source. */
export interface Fact13 {
  /** The source: a file, a system call, or the reason why the value is unknown. */
  source: string;
  /** The value; `None` if it is unknown. */
  value?: Array<number> | null;
}

/** A value read from the machine, and its source. */
export interface Fact2 {
  /** The source: a file, a system call, or the reason why the value is unknown. */
  source: string;
  /** The value; `None` if it is unknown. */
  value?: string | null;
}

/** A value read from the machine, and its source. */
export interface Fact3 {
  /** The source: a file, a system call, or the reason why the value is unknown. */
  source: string;
  /** The value; `None` if it is unknown. */
  value?: Transport | null;
}

/** A value read from the machine, and its source. */
export interface Fact4 {
  /** The source: a file, a system call, or the reason why the value is unknown. */
  source: string;
  /** The value; `None` if it is unknown. */
  value?: number | null;
}

/** A value read from the machine, and its source. */
export interface Fact5 {
  /** The source: a file, a system call, or the reason why the value is unknown. */
  source: string;
  /** The value; `None` if it is unknown. */
  value?: boolean | null;
}

/** A value read from the machine, and its source. */
export interface Fact6 {
  /** The source: a file, a system call, or the reason why the value is unknown. */
  source: string;
  /** The value; `None` if it is unknown. */
  value?: WriteCache | null;
}

/** A value read from the machine, and its source. */
export interface Fact7 {
  /** The source: a file, a system call, or the reason why the value is unknown. */
  source: string;
  /** The value; `None` if it is unknown. */
  value?: number | null;
}

/** A value read from the machine, and its source. */
export interface Fact8 {
  /** The source: a file, a system call, or the reason why the value is unknown. */
  source: string;
  /** The value; `None` if it is unknown. */
  value?: ZoneModel | null;
}

/** A value read from the machine, and its source. */
export interface Fact9 {
  /** The source: a file, a system call, or the reason why the value is unknown. */
  source: string;
  /** The value; `None` if it is unknown. */
  value?: number | null;
}

/** A metric's typical value on one side: the geometric mean of its slices, or the whole run's. */
export interface Figure {
  /** Which. */
  metric: Metric;
  /** Its value, in the metric's unit. */
  value: number;
}

/** The users that may use a file that a job creates. */
export type FileAccess = "private" | "umask" | "group";

/** A file or device under test. */
export interface FilePlan {
  /** The present length of an existing file that is too short, in bytes: `prepare` applies to the added part, and the existing content stays. Such a file is never removed. */
  extends_from?: number | null;
  /** First byte of the region, in bytes. */
  offset_bytes: number;
  /** Path of the file, as the plan opens it. */
  path: string;
  /** How it is prepared before the first phase that uses it. */
  prepare: Prepare;
  /** True if it is removed when the run ends, in whatever way. Only ever true for a file that this program creates. */
  remove_after: boolean;
  /** Length of the region, in bytes; the file is at least `offset_bytes + size_bytes` long. */
  size_bytes: number;
}

/** Which file the next I/O goes to. */
export type FileSelection = "round_robin" | "sequential" | "random" | { drawn: { distribution: Distribution } };

/** A mounted filesystem. */
export interface FilesystemFacts {
  /** Free space for an unprivileged user, in bytes. */
  available_bytes: Fact;
  /** Allocation block, in bytes. */
  block_bytes: Fact;
  /** Type as the kernel calls it (`ext4`, `xfs`, `btrfs`, `tmpfs`, `overlay`, `nfs4`). */
  kind: FilesystemKind;
  /** The mount point. */
  mount_point: string;
  /** Mount and superblock options, as one comma-separated line. */
  options: string;
  /** Size, in bytes. */
  size_bytes: Fact;
  /** The source of the mount (`/dev/vda1`, `tmpfs`). */
  source: string;
  /** The filesystem's UUID, in the format of `blkid`. On tmpfs each mount has a new random one. */
  uuid?: Fact2;
}

/** Type of a filesystem, as the mount table names it. */
export type FilesystemKind = string;

/** A job in fio's terms: fio counts each clone of `numjobs` as a job, and reports jobs in groups. */
export interface FioJob {
  /** Which clone of `numjobs`, from 0. */
  clone: number;
  /** How many clones there are, from 1. */
  clones: number;
  /** Options as they were given, in order: those of `[global]` first. Values are the typed text after `${…}` was replaced; a flag without a value has an empty text. */
  given: Array<FioWord>;
  /** The reporting group, from 0; `stonewall` and `new_group` begin a new one. */
  group: number;
  /** Whether the job was made on the command line (fio then counts `name` among its options). */
  is_from_command_line: boolean;
  /** fio's name of the job; its clones share it. */
  name: string;
  /** Number of the job among all clones of all jobs, from 1: the number in the names of log files. */
  number: number;
}

/** One option as it was given in fio's language. */
export interface FioWord {
  /** Whether it was given in `[global]`, or before the first `--name`. */
  is_global: boolean;
  /** fio's first name of the option (`rw`, not `readwrite`). */
  name: string;
  /** Where it was written. */
  origin: Origin;
  /** The name as typed, if it is another one (`readwrite`). */
  spelled?: string | null;
  /** The text as typed. */
  text: string;
}

/** A job's part of a flow. */
export interface FlowPlan {
  /** Which flow: workers of equal `id` that run at the same time are kept in proportion. */
  id: number;
  /** How long a worker that is ahead waits before it looks again, in nanoseconds; 0: it keeps looking. */
  sleep_ns: number;
  /** I/Os by which a worker may be ahead of its share before it waits, for each unit of its weight. */
  watermark?: number;
  /** I/Os of each worker, as a part of those of all. */
  weight: number;
}

/** Sync calls. */
export interface Flush {
  /** `fdatasync` once at the end, inside the measured time. */
  end_fdatasync?: boolean;
  /** `fsync` once at the end, inside the measured time. */
  end_fsync: boolean;
  /** Number of writes after which `fdatasync` follows; 0: never. */
  fdatasync_every: number;
  /** Number of writes after which `fsync` follows; 0: never. */
  fsync_every: number;
  /** `fsync` of each file before it is closed, inside the measured time. */
  fsync_on_close?: boolean;
  /** `sync_file_range` between the writes, which makes nothing durable. */
  range?: RangeSync | null;
}

/** How a job's number of I/Os follows from that of an earlier job. */
export interface Follow {
  /** The earlier job. */
  job: string;
  /** What follows. */
  kind: FollowKind;
  /** The rank whose number counts. */
  rank: number;
}

/** What follows from an earlier job. */
export type FollowKind = "repeat" | "complete";

/** What a check found of one or more loads. */
export interface FoundDetail {
  /** The check's name. */
  check: string;
  /** The loads of which the sentence is true, in the order of the record. */
  loads: Array<string>;
  /** The word of a load with this finding alone: `not the disk`, `withheld`, `not the disk, accepted`. */
  outcome: string;
  /** The finding, with the values that were compared. */
  sentence: string;
}

/** What was found of a load. */
export interface FoundLoad {
  /** The finding in a few words. */
  brief: string;
  /** How much of the figure it can explain at most, in percent; `None` if unknown. */
  explained_percent?: number | null;
  /** True if the load kept the rate that was set for it: the finding then explains the latencies of this share of its I/Os, and not its rate. */
  is_of_latencies?: boolean;
  /** Name of the load, as the table prints it. */
  load: string;
}

/** The result of a condition of `--fail-if` for one side. */
export interface GateResult {
  /** The condition as it was written. */
  condition: string;
  /** The part's name. */
  part: string;
  /** One sentence with the figures. */
  sentence: string;
  /** Which side, as an index into `Part::sides`. */
  side: number;
  /** The result. */
  verdict: GateVerdict;
}

/** Whether there is a regression. */
export type GateVerdict = "absent" | "cannot_tell" | "shown";

/** A figure on which a statement rests. */
export interface Ground {
  /** Its load, or the side of a comparison. */
  load: string;
  /** The word of that load. */
  verdict: Mark;
}

/** What is reported as one. */
export type Grouping = "job" | "worker" | "group";

/** Limits of slowness, for each worker; 0: none. */
export interface Guard {
  /** Minimum bytes per second. */
  bytes_per_s_min?: number;
  /** Minimum time over which these are averaged, in nanoseconds; the span ends when an I/O completes. */
  cycle_ns?: number;
  /** Minimum I/Os per second. */
  ios_per_s_min?: number;
  /** Maximum latency of an I/O, in nanoseconds. */
  latency_ns_max?: number;
  /** Minimum bytes and I/Os per second of writes; the two above then apply to reads. `None`: they apply to all I/Os together. */
  of_writes?: [number, number] | null;
  /** Measured time before the first cycle, in nanoseconds. */
  settle_ns?: number;
}

/** How files and memory are handled. */
export interface Handling {
  /** The advice to the kernel on the use of the files (posix_fadvise(2), madvise(2) of a mapping). */
  advice?: Advice;
  /** `e4defrag` allocates the blocks that an I/O moves in just before it, and frees those that it moved out after it; otherwise all of them are allocated before the first I/O. */
  allocates_each_donor?: boolean;
  /** The job adds to the end that its files had when they were planned (`file_append`). */
  appends?: boolean;
  /** Files are prepared, and no I/O is done. */
  creates_only?: boolean;
  /** Size of a huge page, in bytes, if the buffers are in huge pages. */
  huge_page_bytes?: number;
  /** Cached pages are dropped again before each further pass over a file, within the measured part. */
  invalidates_each_pass?: boolean;
  /** Locks between the workers of a phase that use one file. */
  locking?: Locking;
  /** The memory of the I/O buffers. */
  memory?: Memory;
  /** The users that may use the files that the job creates. */
  new_files?: FileAccess;
  /** The files are removed before each further pass over all of them, and created again, empty; within the measured part. */
  remakes_each_pass?: boolean;
  /** Files that an earlier job of the run created are emptied before the phase, and keep their length. */
  renews_files?: boolean;
  /** The system call that reads the status of files. */
  stat?: StatCall;
  /** The expected lifetime of what is written, which the kernel keeps with the file and passes on to the disk. */
  write_hint?: WriteHint;
}

/** The serial form: occupied buckets as two columns, and the exact figures. */
export interface Histogram {
  count: Array<number>;
  index: Array<number>;
  max_ns?: number | null;
  min_ns?: number | null;
  overflow: number;
  sub_bits: number;
  /** u128 as text: JSON readers elsewhere lose precision above 2^53. */
  sum_ns: string;
  total: number;
}

/** An error to ignore. */
export interface IgnoredError {
  /** Its number, as in errno(3). */
  errno: number;
  /** Reads, or writes with trims. */
  op: OpKind;
}

/** How much more the share of I/Os above a threshold varies than if I/Os were independent. */
export interface Inflation {
  /** The ratio of variances with an allowance for being an estimate, at least 1: the number of I/Os that are worth one independent I/O. */
  factor: number;
  /** The share of I/Os above the threshold: 0.01 at the 99th percentile. */
  share_above: number;
}

/** I/Os that failed in the same way. */
export interface IoFailure {
  /** The first one's buffer address. */
  address: number;
  /** How many there were. */
  count: number;
  /** The error number; 0 for a transfer that was short. */
  errno: number;
  /** What went wrong and what to do, in words. */
  explanation: string;
  /** The first one's length, in bytes. */
  length: number;
  /** The first one's offset, in bytes. */
  offset: number;
  /** Which operation. */
  op: OpKind;
  /** The first one's file. */
  path: string;
  /** What the first one returned, in bytes; only meaningful for a short transfer. */
  returned: number;
}

/** A limit of one control group on one device. */
export interface IoLimit {
  /** Kernel name of the device (`vda`, `dm-0`). */
  device: string;
  /** Major and minor number of the device. */
  device_number: [number, number];
  /** The control group's path in its hierarchy (`/jobs/backup`; `/` is the root). */
  group: string;
  /** What is limited. */
  kind: IoLimitKind;
  /** The file that contains the limit. */
  source: string;
  /** The limit, in the unit of its kind. */
  value: number;
}

/** What a control group limits. */
export type IoLimitKind = "read_bytes" | "write_bytes" | "read_count" | "write_count" | "latency_target" | "cost_weight";

/** An I/O priority of the kernel. */
export interface IoPriority {
  /** 1 real time, 2 best effort, 3 idle; 0: that of the thread. */
  class: number;
  /** A hint for the device, 0 to 1023; 0: none (Linux 6.5). */
  hint?: number;
  /** Within the class, 0 the highest, to 7. */
  level: number;
}

/** One job: `workers` threads with the same workload on the same files. */
export interface JobPlan {
  /** Alignment of the I/O buffers' addresses, in bytes; a power of two. */
  buffer_alignment_bytes: number;
  /** Distance of each I/O buffer from an aligned address, in bytes: deliberately misaligned. */
  buffer_offset_bytes?: number;
  /** The program that does the I/O; the engine is then `EngineKind::Command`. */
  command?: CommandPlan | null;
  /** What is written. */
  content: Content;
  /** Go on after a failed I/O (counting it) instead of ending the job at the first. */
  continue_on_error: boolean;
  /** How it is controlled while it runs. */
  control?: Control;
  /** The control group that the workers join; `None`: that of the program. */
  control_group?: ControlGroupPlan | null;
  /** The load of `cpuio`; `None` for every other engine. */
  cpu_load?: CpuLoad | null;
  /** Processors the workers are pinned to, round robin; empty: not pinned. */
  cpus: Array<number>;
  /** Whether the page cache is bypassed. */
  direct: DirectPolicy;
  /** Missing directories in the paths of its new files. They are created before the files, with mode 0700, by the user that creates the files, and are not removed. Sorted, so that each follows its parent. */
  directories?: Array<string>;
  /** The I/O engine. */
  engine: EngineKind;
  /** The program that `exec` runs; `None` for every other engine. */
  exec?: ExecPlan | null;
  /** Which file the next I/O goes to. */
  file_selection: FileSelection;
  /** The files, shared by all workers. */
  files: Array<FilePlan>;
  /** Number of files in use at a time: the next file begins when the pass over one of them ends. 0: all. */
  files_at_a_time?: number;
  /** Sync calls between and after the writes. */
  flush: Flush;
  /** The earlier job from which its number of I/Os follows; `Limits::io_count` is set when its phase begins. */
  follows?: Follow | null;
  /** The limits whose violation fails the job. */
  guard?: Guard;
  /** How files and memory are handled. */
  handling?: Handling;
  /** Drop the files' cached pages before the measured part. */
  invalidate: boolean;
  /** I/Os to a file before the next file is chosen, unless its pass ends earlier; 0: one. */
  ios_per_file?: number;
  /** When it ends. */
  limits: Limits;
  /** Where the workers' memory comes from; `None`: left as it is. */
  memory_policy?: MemoryPolicy | null;
  /** The job's name. */
  name: string;
  /** The names of a metadata engine that other jobs use, too; `None`: each worker has names of its own. */
  names?: NameSet | null;
  /** Nice value, −20 to 19; `None`: left as it is. */
  nice?: number | null;
  /** Alignment that direct I/O requires of offsets and lengths on every file, in bytes; 1: none. */
  offset_alignment_bytes?: number;
  /** Distance between the starts of the workers' regions in each file, in bytes; the region of the file holds all of them. 0: all workers use the whole region. */
  offset_increment_bytes?: number;
  /** How the job is reported. */
  output?: OutputPlan;
  /** An open-loop rate; `None`: closed loop, as fast as the depth allows. */
  pace?: Pace | null;
  /** Which operations, where. */
  pattern: Pattern;
  /** The phase it belongs to, from 0; a stonewall begins a new one. */
  phase: number;
  /** Read the files into the page cache before the measured part. */
  pre_read?: boolean;
  /** Shares of the I/Os with priorities of their own, in the order in which they are drawn. */
  priorities?: Array<PriorityShare>;
  /** Queue depth and batches. */
  queue: Queue;
  /** The log to replay; pattern, sizes and limits then only summarise it. */
  replay?: ReplayPlan | null;
  /** Further settings of processors and of the order of I/O. */
  scheduling?: Scheduling;
  /** The seed of offsets, sizes, mix, arrivals and content. Worker `i` derives its own from it. */
  seed: number;
  /** The model of `engine = simulated`; `None` for every other engine. */
  simulated?: SimulatedDevice | null;
  /** I/Os of the pattern that come before its first one; set when its phase begins. */
  skipped_ios?: number;
  /** The source of the bytes to write, if they are fetched instead of generated; `content` is then unused. */
  source?: SourcePlan | null;
  /** Rounds before the measured part, until it is steady; `None`: measured at once. Equal for all jobs of a phase. */
  steady_state?: SteadyPlan | null;
  /** Run the phase under `strace -f -tt`, which stops the workers twice in each call. */
  strace?: boolean;
  /** The open flags that make each write durable. */
  sync: SyncMode;
  /** Pauses. */
  think?: Think | null;
  /** The failed I/Os after which it continues, if not after all. */
  tolerance?: Tolerance;
  /** Record every system call of the workers in the measured part. */
  trace_syscalls?: boolean;
  /** Settings of io_uring; other engines ignore them. */
  uring: UringOptions;
  /** The user as which the workers act, and as which files are created and opened; `None`: the user of the program. */
  user?: UserPlan | null;
  /** Every option's value and origin, as `trueio explain` prints them, in the table's order. */
  values: Array<PlanValue>;
  /** Whether what was written is read back and compared. */
  verify?: Verify | null;
  /** Threads. */
  workers: number;
  /** Flags of each single write. */
  write_flags: WriteFlags;
  /** How the files' zones are used, if the job follows zone rules. */
  zones?: ZonePlan | null;
}

/** One job's results, all its workers together. */
export interface JobRecord {
  /** Mean I/Os in flight over the measured time, all workers together; `None` for engines whose worker blocks (there it is the number of workers). */
  achieved_depth?: number | null;
  /** I/Os that were due but not issued when the job ended (open loop only). */
  backlog_count: number;
  /** Time of closing them after it, as `JobRecord::open_ns`. */
  close_ns?: number | null;
  /** The evaluation of the job's steady-state criterion, if it has one; jobs of one group have equal ones. */
  criterion?: CriterionRecord | null;
  /** The search for a queue depth of each worker, if the job had a latency target. */
  depth_searches?: Array<DepthSearch>;
  /** Longest worker's measured time, in nanoseconds. */
  elapsed_ns: number;
  /** Notes of the engine, one sentence each (`registered buffers refused: …`). */
  engine_notes: Array<string>;
  /** Failed I/Os: the first of each kind, with a count. */
  failures: Array<IoFailure>;
  /** The job's name. */
  name: string;
  /** Time of creating and opening the job's files before its measured part, in nanoseconds: of several ranks, the longest. Missing for engines without files, and in records of earlier versions. */
  open_ns?: number | null;
  /** Figures of each kind of operation of the job. */
  ops: Array<OpRecord>;
  /** How late a paced I/O was submitted although a slot was free; empty without a pace. */
  pacing_lateness: Histogram;
  /** Queue depths and batches; `None` for engines whose worker blocks, and in records of earlier versions. */
  queue?: QueueCounts | null;
  /** The reads of verification, which are not included in `ops`; only for a job that read something back. */
  read_back?: ReadBack | null;
  /** The time series, one interval per 100 ms (longer intervals in runs of hours; each has its length), oldest first. */
  series: Array<SeriesRow>;
  /** Time for which the job waited for the bytes to write and received them, in nanoseconds; only for a job with a `source`. It is part of the measured time but of no I/O's latency. */
  source_wait_ns?: number | null;
  /** Resource use of the workers' threads in the measured part. */
  threads?: ThreadUsage;
  /** How many blocks were compared. */
  verified_block_count: number;
  /** How many of them differed. */
  verify_failure_count: number;
  /** Blocks that did not read back as written, the first few. */
  verify_failures: Array<VerifyFailure>;
  /** The results of each worker, if `Grouping::Worker`(crate::Grouping) is set. */
  workers?: Array<JobRecord>;
  /** The job's operations on zones, if it followed zone rules. */
  zones?: ZoneUse | null;
}

/** One job as specified: every option is optional, each has its origin. */
export interface JobSpec {
  /** The job in fio's terms, if it was written in fio's language. */
  fio?: FioJob | null;
  /** The job's name: the key of its `[job.NAME]` table. */
  name: string;
  /** Option name to value. */
  options: { [name: string]: SpecValue };
}

/** The calls of one job's workers and of their engine's further threads (`posixaio`), together. */
export interface JobSyscalls {
  /** One row a system call, by the time spent in it, longest first. */
  calls?: Array<SyscallRow>;
  /** The job's name. */
  name?: string;
  /** Number of its workers' threads that were traced. */
  thread_count?: number;
}

/** A limit and what a load's figure decides of it. */
export interface JudgedLimit {
  /** The limit as it was written. */
  condition: string;
  /** The upper end of that interval; `None` if there is none. */
  high?: number | null;
  /** The load; empty if no load has the figure. */
  load: string;
  /** The lower end of its 95 % interval; `None` if there is none. */
  low?: number | null;
  /** What would decide it, without a full stop; empty if it is decided. */
  next_step?: string;
  /** The operation; `None` for the sum of several. */
  operation?: OpKind | null;
  /** What the figure decides. */
  outcome: LimitOutcome;
  /** The figure with its interval, and the limit, in one sentence without a full stop. */
  sentence: string;
  /** The limit in the figure's unit; `None` if it refers to a figure that does not exist. */
  threshold?: number | null;
  /** The unit of value, low, high and threshold: `1/s`, `B/s`, `ns`. */
  unit: string;
  /** The figure; `None` if it is withheld. */
  value?: number | null;
}

/** The parts of the latency of sampled direct transfers, by the request of each that completed last, and of sampled sync calls and durable writes, by the time in which the disks had a request of anybody. The parts of one I/O add up to its latency. */
export interface LatencyParts {
  /** In the driver and the device: from the last issue to the completion. */
  device: PartTimes;
  /** Number of I/Os. */
  io_count: number;
  /** Read, write or sync. */
  op: OpKind;
  /** The rest: system calls, the filesystem, waits for a free request, this program. */
  rest: PartTimes;
  /** In the queue of the I/O scheduler: from entry to the last issue to the driver. 0 without a scheduler. */
  scheduler: PartTimes;
  /** From the submission by the worker to the completion that it saw. */
  total: PartTimes;
}

/** Latencies of one kind of operation. They contain every I/O; none is sampled. */
export interface LatencySet {
  /** clat: from the submission to the completion. */
  completion: Histogram;
  /** From the time at which the I/O was due to its completion; empty without a pace. */
  from_intended: Histogram;
  /** slat: submission of the I/O. Empty for engines that block, which have no separate submission. */
  submission: Histogram;
  /** lat: from just before the submission to the completion. The headline. */
  total: Histogram;
}

/** A latency that a share of the I/Os of each window may reach at most. */
export interface LatencyTarget {
  /** Go on to the job's own end, adjusting the depth, instead of ending with the depth that was looked for. */
  keeps_running: boolean;
  /** The share of a window's I/Os that must keep it, in percent, above 0 up to 100. */
  percent: number;
  /** The latency, in nanoseconds, from the submission to the completion. */
  target_ns: number;
  /** How long a queue depth is tried, in nanoseconds. */
  window_ns: number;
}

/** One layer between a file and a disk. */
export interface Layer {
  /** Depth below the target, from 0; layers of equal depth are siblings (RAID members). */
  depth: number;
  /** Properties of this kind of layer: the start of a partition, the level and chunk of a RAID. */
  facts?: Array<NamedFact>;
  /** `file`, `filesystem`, `partition`, `dm`, `md`, `loop`, `disk`, … */
  kind: LayerKind;
  /** `ext4 on /home`, `nvme0n1p2`, `dm-0 (crypt)`. */
  name: string;
  /** The source of this layer. */
  source: string;
}

/** A kind of layer between a file and a disk. */
export type LayerKind = string;

/** What the figures of a run decide of a limit. */
export type LimitOutcome = "met" | "undecided" | "missed";

/** The limits of a run, as its plan and its record keep them. */
export interface LimitSet {
  /** The limits as they were written, in the order of job files and flags. */
  conditions: Array<string>;
  /** What relative limits refer to (`--against`). */
  reference?: Reference | null;
}

/** When a job ends: at the first of the limits that are set. */
export interface Limits {
  /** What the wait counts from. */
  delays_from?: DelayStart;
  /** Bytes that each worker transfers in a loop. A remainder that is less than one I/O is transferred in the next loop; the remainder of all loops is rounded up to a whole I/O. */
  io_bytes: number;
  /** Maximum number of I/Os of each worker, in all loops together. */
  io_count?: number | null;
  /** True: `io_bytes` and `loops` do not end the job, only the runtime does. */
  is_time_based: boolean;
  /** Number of loops. */
  loops: number;
  /** A job that ends within this time is measured nevertheless: its figures are those of the ramp. */
  measures_short_ramp?: boolean;
  /** Time before the measured part: I/O is done but not recorded. */
  ramp_ns: number;
  /** Measured time, ramp excluded. */
  runtime_ns?: number | null;
  /** Wait before the job's first I/O. */
  start_delay_ns: number;
}

/** Which workers may do I/O on a file at the same time. */
export type Locking = "none" | "exclusive" | "readwrite";

/** The kinds of logs of completions. */
export type LogKind = "bw" | "iops" | "slat" | "clat" | "lat" | "histogram";

/** Logs of a job, in fio's columns. A prefix without a value: no such log. */
export interface LogPlan {
  /** Rows are averages over this time, in nanoseconds; 0: one row per I/O. */
  average_ns?: number;
  /** Prefix of the bandwidth log: `PREFIX_bw.N.log`. */
  bw?: string | null;
  /** The last column is the time at which each I/O was issued. */
  has_issue_time?: boolean;
  /** The offset of each I/O is a column. */
  has_offset?: boolean;
  /** The last column is each I/O's priority as the kernel's number, not whether its class is real time. */
  has_priority?: boolean;
  /** Times are of the day, in milliseconds since 1970, not since the job began. */
  has_unix_time?: boolean;
  /** Prefix of the log of histograms: `PREFIX_clat_hist.N.log`. */
  hist?: string | null;
  /** How often neighbouring buckets of a histogram are joined, 0 to 6. */
  hist_coarseness?: number;
  /** Interval of the histogram log, in nanoseconds. */
  hist_ns?: number;
  /** The file to which each issued I/O is logged, for a replay. */
  iolog?: string | null;
  /** Prefix of the log of IOPS: `PREFIX_iops.N.log`. */
  iops?: string | null;
  /** They are compressed in fio's format; their names end with `.fz`. */
  is_compressed?: boolean;
  /** All workers of a job write to the same files; otherwise each has files of its own. */
  is_shared?: boolean;
  /** Prefix of the logs of latency: `PREFIX_slat.N.log`, `PREFIX_clat.N.log`, `PREFIX_lat.N.log`. */
  lat?: string | null;
  /** Kinds that are not written although their prefix is set: of latencies that the job disables. */
  left_out?: Array<LogKind>;
  /** Which values of a span are written. */
  window?: LogWindow;
}

/** The values of a span in an averaged log. */
export type LogWindow = "mean" | "max" | "both";

/** A rank without complete results. */
export interface LostRank {
  /** Its host's name; empty: it never connected. */
  host: string;
  /** Number of the rank, from 0. */
  rank: number;
  /** Why: `its connection ended`. */
  reason: string;
}

/** The word for a load, from best to worst. */
export type Mark = "confirmed" | "unverified" | "unsteady" | "disturbed" | "not the disk" | "withheld" | "failed";

/** The memory of the I/O buffers. */
export type Memory = "malloc" | "mmap" | "mmap_shared" | "mmap_huge" | "shm" | "shm_huge";

/** How the kernel chooses. */
export type MemoryMode = "default" | "prefer" | "bind" | "interleave" | "local";

/** The rule by which the kernel chooses the node of a thread's new pages. */
export interface MemoryPolicy {
  /** How. */
  mode: MemoryMode;
  /** Which nodes; empty for those modes that take none. */
  nodes?: Array<number>;
}

/** How the figures were measured. */
export type Method = { head_ns: number; how: "interleaved"; look_count: number; look_max: number; round_count: number; round_max: number; seed: number; slice_ns: number } | { how: "records" };

/** What is compared. */
export type Metric = "bandwidth" | "iops" | "p50" | "p99" | "p999" | "cpu_per_io";

/** How fio counts metadata operations: as I/Os of a size, of which the first to each file executes the operation and the others do nothing. */
export interface NameCounts {
  /** … of this size in bytes each. No data is transferred. */
  block_bytes: number;
  /** … is counted as this number of I/Os, … */
  ios: number;
  /** This number of operations, one pass, … */
  names: number;
}

/** Names that several jobs of a run share, below one directory. */
export interface NameSet {
  /** Directories in each directory above the lowest level. */
  branch: number;
  /** Levels of directories below the top. */
  depth: number;
  /** Bytes that are written to each file, or read from it. */
  file_bytes: number;
  /** Items are in directories of the lowest level only. */
  in_leaves: boolean;
  /** What is read from a file is compared with what a job with the same seed wrote. */
  is_compared?: boolean;
  /** This process creates the directory, and removes it and the names at the end of the run. */
  is_made_here: boolean;
  /** A job of the run creates names, so the directory is new. */
  is_new: boolean;
  /** Each owner has its own tree. */
  is_private: boolean;
  /** The names are the directories of the tree, not the items in them. */
  is_tree: boolean;
  /** The owner of the names that the first worker uses; the next worker has the next one. */
  owner: number;
  /** What the run created stays. */
  stays: boolean;
  /** Each new file is flushed before it is closed. */
  syncs_files?: boolean;
  /** A sync call of the job flushes the filesystem of the directory (syncfs(2)). */
  syncs_filesystem?: boolean;
}

/** A property that only one kind of layer has, as text. */
export interface NamedFact {
  /** The value with its unit. */
  fact: Fact2;
  /** The name of the property (`chunk`, `begins at`). */
  name: string;
}

/** An estimate of how much longer a definite answer takes. */
export interface Needs {
  /** More pairs of slices. */
  pair_count: number;
  /** The time that they take, in nanoseconds. */
  time_ns: number;
}

/** A check that doubts or contradicts figures. */
export interface Objection {
  /** The finding in a few words; empty in a document of an earlier version. */
  brief?: string;
  /** What it is about. */
  cause: Cause;
  /** The check's name. */
  check: string;
  /** The value that the figures require, with its unit; empty if there is nothing to compare. */
  expected?: string;
  /** The value that was found, with its unit. */
  found?: string;
  /** True if the user accepted it. */
  is_accepted?: boolean;
  /** What the check found. */
  outcome: CheckOutcome;
  /** The finding in one sentence. */
  sentence: string;
}

/** The kinds of operation. */
export type OpKind = "read" | "write" | "trim" | "sync";

/** The operations of a job. */
export type OpMix = { only: OpKind } | { read_write: { read_percent: number } };

/** Figures of one kind of operation in the measured time. */
export interface OpRecord {
  /** Bytes transferred, as the calls returned them. */
  byte_count: number;
  /** How much the I/Os depend on each other, by the latencies that reports show: with a pace from the intended time, else the total ones. `None` if the run was too short to show it, and in records of earlier versions. */
  dependence?: Dependence | null;
  /** How many failed. */
  error_count: number;
  /** How many succeeded in full or in part. */
  io_count: number;
  /** Operations per second, with their interval; `None` as for the mean. */
  ios_per_s?: Estimate | null;
  /** Histograms of their latencies, in nanoseconds. */
  latency: LatencySet;
  /** Mean of the total latency in nanoseconds, with its interval; `None` if the run is too short for one, and in records of earlier versions. */
  mean_latency_ns?: Estimate | null;
  /** Which. */
  op: OpKind;
  /** Percentiles of the total latency with their intervals, for readers that do not evaluate histograms; percentiles that the sample cannot support are omitted. They are derived from `LatencySet::total`, which is authoritative. */
  percentiles?: Array<Percentile>;
  /** The same by priority, if shares of the job's I/Os have priorities of their own: that of the thread first. Together they are `OpRecord::latency`. */
  priorities?: Array<PriorityRecord>;
  /** How many transferred fewer bytes than requested. */
  short_count: number;
}

/** The order of offsets. */
export type Order = "sequential" | { random: { distribution: Distribution; each_block_once: boolean } };

/** Where a value was set. */
export type Origin = { from: "default" } | { from: "file"; line: number; path: string } | { flag: string; from: "flag" } | { from: "preset"; name: string } | { from: "derived"; reason: string };

/** How a run ended. */
export type Outcome = { how: "complete" } | { how: "interrupted"; signal: string } | { how: "failed"; reason: string };

/** How a job is reported. */
export interface OutputPlan {
  /** Span over which bandwidth is averaged, in nanoseconds. */
  bw_average_ns?: number;
  /** Percentiles of the completion latency. */
  clat_percentiles?: boolean;
  /** What is reported as one result. */
  grouping?: Grouping;
  /** Bandwidth and IOPS over time are not reported. */
  hides_bw?: boolean;
  /** The completion latency is not reported. */
  hides_clat?: boolean;
  /** The total latency is not reported. */
  hides_lat?: boolean;
  /** The submission latency is not reported. */
  hides_slat?: boolean;
  /** Span over which IOPS are averaged, in nanoseconds. */
  iops_average_ns?: number;
  /** Percentiles of the total latency. */
  lat_percentiles?: boolean;
  /** Logs written while the job runs. */
  logs?: LogPlan;
  /** What fio's outputs count for metadata operations; a record counts each as one I/O of one byte. */
  names?: NameCounts | null;
  /** A reporting group begins with this job, even without a stonewall. */
  new_group?: boolean;
  /** Which percentiles, smallest first, in percent. */
  percentiles?: Array<number>;
  /** Each random offset is printed when it is used (`--debug=random`). */
  shows_draws?: boolean;
  /** Opening and closing of files is printed, and which file each I/O goes to (`--debug=file`). */
  shows_files?: boolean;
  /** Each I/O is printed when it is issued and when it is complete (`--debug=io`). */
  shows_ios?: boolean;
  /** Each block is printed when it is filled to be verified and when it is compared (`--debug=verify`). */
  shows_verify?: boolean;
  /** Percentiles of the submission latency. */
  slat_percentiles?: boolean;
  /** Reads, writes and trims as one. */
  unified?: Unified;
}

/** An open-loop rate of one worker. */
export interface Pace {
  /** The distribution of the I/Os over time. */
  arrivals: Arrivals;
  /** Bytes per second; exclusive with `ios_per_s`. */
  bytes_per_s?: number | null;
  /** I/Os per second; exclusive with `bytes_per_s`. */
  ios_per_s?: number | null;
  /** The rate of writes, with a schedule of its own; the other rate is then that of reads, and one of the two may be 0: such I/Os are issued whenever none of the others is due. `None`: one schedule for all I/Os. */
  of_writes?: number | null;
}

/** One workload on all sides. */
export interface Part {
  /** The answers, for each side except the first and each metric, in that order. */
  answers: Array<Answer>;
  /** The phase's name; empty if there is only one part. */
  name: string;
  /** The sides; the first is what the others are compared with. */
  sides: Array<Side>;
}

/** Mean and percentiles of one part. */
export interface PartTimes {
  /** Mean, in nanoseconds. */
  mean_ns: number;
  /** Median, in nanoseconds. */
  p50_ns: number;
  /** 99th percentile, in nanoseconds. */
  p99_ns: number;
}

/** Which operations, where, how large. */
export interface Pattern {
  /** The operations. */
  mix: OpMix;
  /** The order of offsets. */
  order: Order;
  /** Sizes of reads. */
  read_sizes: BlockSizes;
  /** Exceptions to the order: how the next offset follows from the last. */
  steps?: Steps;
  /** Sizes of trims. */
  trim_sizes: BlockSizes;
  /** Sizes of writes. */
  write_sizes: BlockSizes;
}

/** A percentile and its interval. */
export interface Percentile {
  /** Upper end, in nanoseconds. */
  high_ns?: number | null;
  /** The latency that this percentage does not exceed, in nanoseconds. */
  latency_ns: number;
  /** Lower end of its 95 % interval, in nanoseconds, with allowance for the dependence of I/Os; without an upper end, what the percentile is at least. In records without `OpRecord::dependence` it takes I/Os as independent, and is too narrow. */
  low_ns?: number | null;
  /** About how many more nanoseconds of the run an interval needs; only without one. */
  needs_ns?: number | null;
  /** Which: 99.9 for p99.9. */
  percent: number;
}

/** One phase: the jobs that ran at the same time, and the evidence about them. */
export interface PhaseRecord {
  /** When its measured part began, in nanoseconds since the run began. */
  begin_ns: number;
  /** Each check's finding. */
  checks: Array<Check>;
  /** CPU time of the process tree in the measured part (io-wq and SQPOLL threads included). */
  cpu: CpuTime;
  /** The counters of the targets' disks. */
  devices: Array<DeviceDelta>;
  /** The times at which it was disturbed, by begin. */
  disturbances?: Array<DisturbedSpan>;
  /** Duration of its measured part without the ramp, in nanoseconds. */
  elapsed_ns: number;
  /** The jobs' results. */
  jobs: Array<JobRecord>;
  /** The evidence level. */
  level: EvidenceLevel;
  /** The name of its job, or its jobs' names joined by `+`. */
  name: string;
  /** How it ended. */
  outcome: Outcome;
  /** The targets' pages in the page cache: (path, before, after). */
  residency: Array<[string, Residency | null, Residency | null]>;
  /** The rounds before the measured part, if the job sets a steady state. */
  steady_state?: SteadyState | null;
  /** The system calls that the workers made. Absent if tracing was not set. */
  syscalls?: SyscallTrace | null;
  /** The block requests that were traced in samples. Absent if evidence was off. */
  trace?: TraceRecord | null;
  /** The verdict of all checks together. */
  verdict: Verdict;
  /** CPU time of the workers' threads. */
  worker_cpu: CpuTime;
}

/** Everything that a run executes, in order. */
export interface Plan {
  /** Checks whose objection the user accepts: such a phase is at most suspect. */
  accepted_checks?: Array<string>;
  /** Duration of the idle baseline before each phase, in nanoseconds: the I/O of other programs in it is distinguished from ours. 0: no baseline. */
  idle_baseline_ns: number;
  /** Before each phase the run waits until the disks are idle, at most for this time, in nanoseconds; `None`: it does not wait. A disk that is still busy then fails the run. */
  idle_wait_ns?: number | null;
  /** Jobs in the order of the job file. Jobs of equal `JobPlan::phase` run at the same time. */
  jobs: Array<JobPlan>;
  /** The limits that the figures must keep (`--fail-if`, `[limits]`); `None` without any. */
  limits?: LimitSet | null;
  /** Sentences for the user: what was chosen for them and why. */
  notes: Array<string>;
}

/** One option's final value and its origin. */
export interface PlanValue {
  /** The option's name. */
  name: string;
  /** Where it was set. */
  origin: Origin;
  /** Its value in canonical text. */
  value: string;
}

/** What the figures of a record show about commits on its device. */
export interface PowerLoss {
  /** Acknowledged writes of these methods, in all cuts that count. */
  acknowledged: number;
  /** Their acknowledged writes at risk. */
  at_risk: number;
  /** Cuts that count: all methods below were at risk, or one of them lost writes. */
  cuts: number;
  /** No acknowledged write was lost. Otherwise some were. */
  is_kept: boolean;
  /** How many of them were lost. */
  lost: number;
  /** The methods that show it: of kept writes only those that flush, as commits do. */
  methods: Array<string>;
  /** The newest test before it that shows the opposite, as the text of its time. */
  opposed_by?: string | null;
  /** What the cuts reached. */
  reach: PowercutReach;
  /** Why they did not reach the disk; empty if they did. */
  reach_reason: string;
  /** The record. */
  record_id: string;
  /** When its test began, as text. */
  started_at: string;
}

/** What lost its power in a cut. */
export type PowercutReach = "disk" | "memory";

/** How a file is prepared before it is measured. */
export type Prepare = "use_existing" | "create_filled" | "create_allocated" | "create_empty" | "create_reserved" | "create_sparse" | "nothing";

/** The I/Os of one kind that had one priority. */
export interface PriorityRecord {
  /** Their total latencies; submission latencies are not recorded by priority. */
  latency: LatencySet;
  /** Which priority. That of the thread is 0/0 if the job sets none. */
  priority: IoPriority;
}

/** A share of a job's I/Os with a priority of its own. */
export interface PriorityShare {
  /** Only those of this size, in bytes; `None`: of any. */
  length_bytes?: number | null;
  /** Reads or writes. */
  op: OpKind;
  /** The share in percent, 1 to 100. Shares of one kind and size are at most 100 together; the remaining I/Os have the priority of the thread. */
  percent: number;
  /** Their priority. */
  priority: IoPriority;
}

/** How long threads were ready to run and waited for a processor, as the kernel counts it (`/proc/thread-self/schedstat`, `getrusage`). */
export interface ProcessorWait {
  /** How often a processor was taken from a thread that could have continued. */
  involuntary_switch_count?: number;
  /** How often a processor was given to a thread. */
  run_count?: number;
  /** Time in the run queue, in nanoseconds. It includes the time for which a control group's quota was used up. */
  wait_ns?: number;
}

/** What a figure is. */
export type Quantity = "iops" | "bandwidth" | "mean" | "p50" | "p99" | "p99.9" | "max";

/** Queue depth and batches. */
export interface Queue {
  /** Maximum number of completions reaped at once; 0: all available. */
  complete_max: number;
  /** Minimum number of completions to wait for when the queue is full. */
  complete_min: number;
  /** I/Os that each worker keeps in flight; 1 for engines that block. */
  depth: number;
  /** Once the queue is full, nothing is issued until this number is in flight; 0: at once. */
  low?: number;
  /** An I/O waits for one in flight that overlaps it, if one of the two writes or trims. */
  serializes_overlap?: boolean;
  /** I/Os per submission; `None`: the engine adapts it to the device's latency so that batching does not lengthen it. */
  submit_batch?: number | null;
}

/** How deep a queue was and how large its batches were, in fio's classes. Only engines that hold a queue have it: one that blocks always has one I/O in flight, submitted and reaped alone. */
export interface QueueCounts {
  /** Collections of completions by how many there were, in the same classes. */
  complete: Array<number>;
  /** I/Os by how many were in flight after their submission, themselves included: 1, 2 to 3, 4 to 7, 8 to 15, 16 to 31, 32 to 63, 64 and more. */
  depth: Array<number>;
  /** Submissions by how many I/Os they carried: none, up to 4, 8, 16, 32, 64, and more. */
  submit: Array<number>;
}

/** `sync_file_range(2)` on the bytes written since the last call: starts writing out pages, or waits for them. */
export interface RangeSync {
  /** Number of writes after which it is called. */
  every: number;
  /** Waits until they are written out. */
  waits_after: boolean;
  /** Waits for pages that are already being written out. */
  waits_before: boolean;
  /** Starts to write out dirty pages. */
  writes: boolean;
}

/** One rank. */
export interface RankRecord {
  /** Identifies its running kernel: ranks with the same one share a page cache. Empty: unknown. */
  boot_id: string;
  /** Its host's name. */
  host: string;
  /** Its number, from 0. */
  rank: number;
  /** Its own record. */
  record: RunRecord;
}

/** A rank's measured part, and its figures for a comparison of ranks. */
export interface RankSpan {
  /** Start of its measured part, in nanoseconds of rank 0's clock after the agreed start. */
  begin_ns: number;
  /** Bytes transferred. */
  byte_count: number;
  /** The same afterwards; `None`: the rank was gone. */
  clock_after?: ClockOffset | null;
  /** Offset of the clocks before the phase. */
  clock_before: ClockOffset;
  /** Bytes in the common window. */
  common_bytes: number;
  /** Operations in the common window, by its time series. */
  common_io_count: number;
  /** End, on the same scale. */
  end_ns: number;
  /** Operations that succeeded. */
  io_count: number;
  /** How late the rank was at the agreed start, in nanoseconds; 0: it was there in time. */
  late_ns: number;
  /** Number of the rank, from 0. */
  rank: number;
}

/** A ratio and its interval. */
export interface Ratio {
  /** The error rate of such an interval, as a share, at this evaluation and step: at most the comparison's alpha. */
  alpha: number;
  /** This side's value over the first side's. */
  estimate: number;
  /** Upper end. */
  high: number;
  /** Lower end. */
  low: number;
  /** The probability of so large a mean difference by chance; `None` if it was not computed. */
  p?: number | null;
  /** Number of pairs of slices, or of blocks of the smaller run, on which it is based. */
  pair_count: number;
}

/** The reads of a job's verification, after its last write (`verify`) or in between (`verify_backlog`). */
export interface ReadBack {
  /** Duration of the pass after the measured time, in nanoseconds: that of the slowest worker. */
  elapsed_ns: number;
  /** How long, within the measured time, what earlier loops wrote was read back, in nanoseconds: of the slowest worker. */
  loops_ns?: number;
  /** The reads. */
  reads: OpRecord;
  /** How many of them were made within the measured time. */
  within_count: number;
}

/** An earlier run, with the figures to which limits refer. */
export interface Reference {
  /** Their figures, as its answer has them. */
  figures: Array<AnsweredFigure>;
  /** Its loads. */
  loads: Array<ReferenceLoad>;
  /** The ID of its record. */
  record_id: string;
  /** When it began, as text. */
  started_at: string;
}

/** A load of a reference. */
export interface ReferenceLoad {
  /** Its name. */
  name: string;
  /** What it does: `randread 4k q32`. Only loads that do the same are compared. */
  shape: string;
}

/** A log that a job replays. */
export interface ReplayPlan {
  /** Offsets are rounded down to multiples of it; a power of two. */
  align_bytes: number;
  /** Each I/O has its own time; otherwise they follow each other as fast as possible. */
  is_paced: boolean;
  /** The longest transfer, in bytes. */
  length_bytes_max: number;
  /** Its path; `-`: standard input. */
  log: string;
  /** The names in the log of the job's files, in their order; one name, that of the redirection, if there is one. */
  names: Array<string>;
  /** Offsets are divided by it before. */
  offset_divisor: number;
  /** The operations in it, sync calls too. */
  ops: Array<OpKind>;
  /** All I/O goes to this file. */
  redirect?: string | null;
  /** What is left out. */
  skips: Array<OpKind>;
  /** Percentage of the log's pace: 200 is twice as fast. */
  time_scale_percent: number;
}

/** The requests of all windows on one disk, counted in a grid of time by position: columns of equal time, rows of equal length. Cells without requests are left out. */
export interface RequestPlaces {
  /** First byte of the first row. */
  begin_bytes?: number;
  /** Number of columns. */
  column_count?: number;
  /** The disk. */
  disk?: string;
  /** The byte after the last row. */
  end_bytes?: number;
  /** Which cell: row · `column_count` + column, in rising order. */
  index?: Array<number>;
  /** Its requests of other programs or of unknown origin. */
  other_count?: Array<number>;
  /** Requests before the first row and after the last: few, and far away. */
  outside_count?: number;
  /** Its requests in our files, of this process or of the filesystem. */
  own_count?: Array<number>;
  /** Number of rows. */
  row_count?: number;
  /** From the begin of the first window to the end of the last, in nanoseconds. */
  span_ns?: number;
}

/** Requests of one kind, in the windows. */
export interface RequestSum {
  /** Bytes that they transfer. */
  bytes?: number;
  /** Requests that carry data. */
  count?: number;
}

/** A file's pages in the page cache. */
export interface Residency {
  /** Pages cached. */
  cached_pages: number;
  /** Of them dirty; `None` if the system does not report it. */
  dirty_pages?: number | null;
  /** Bytes of a page. */
  page_bytes: number;
  /** Pages of the region. */
  region_pages: number;
  /** `cachestat` or `mincore`. */
  source: string;
}

/** The resolution and cost of the tool itself on this machine. */
export interface Ruler {
  /** The clock used for latencies: `tsc`, `cntvct`, `clock_gettime`. */
  clock: string;
  /** Cost of one reading, in nanoseconds. */
  clock_cost_ns: number;
  /** Smallest step between two unequal readings, in nanoseconds. */
  clock_resolution_ns: number;
  /** CPU time per I/O of the `null` engine at depth 1, in nanoseconds: everything the tool adds. */
  null_cpu_ns_per_io: number;
  /** Median latency that the `null` engine reports: shorter latencies cannot be distinguished. */
  null_latency_ns_p50: number;
}

/** The answer of a run. */
export interface RunAnswer {
  /** How figures are shown in spite of the check that withholds them, and which are shown because it was accepted; `None` if neither is so. */
  accept_hint?: string | null;
  /** The answer to the question of `baseline`: whether the disk is as fast as it should be. `None` for other commands. */
  decision?: Decision | null;
  /** How many loads are confirmed, and by what: one sentence. */
  evidence: string;
  /** Each figure of each load, in the order of the record. */
  figures: Array<AnsweredFigure>;
  /** Why loads are not confirmed, the most serious cause first. */
  findings: Array<AnsweredFinding>;
  /** The answer in a sentence or two. */
  headline: string;
  /** What the evidence levels of the loads mean, and what would raise the lowest one. */
  levels?: string | null;
  /** Each limit (`--fail-if`, `[limits]`) with its outcome, for each load that it concerns. */
  limits?: Array<JudgedLimit>;
  /** What to do, each step once, in the order of the findings. */
  next_steps: Array<string>;
  /** What could not be checked, one sentence a check, with the loads if not all. */
  not_checked?: Array<string>;
  /** What is worth knowing of the plan, the device and the engines. */
  notes?: Array<string>;
  /** What was judged of each phase, in the order of the record. */
  phases?: Array<AnsweredPhase>;
  /** What follows from confirmed figures. */
  statements: Array<Statement>;
}

/** One run, whole. */
export interface RunRecord {
  /** What every output prints of the run, with each figure ready to use. It is derived: written into JSON, and dropped when it is read. `None` in memory. */
  answer?: RunAnswer | null;
  /** The ranks, if there were several: phases are then the sums of theirs. */
  cluster?: ClusterRecord | null;
  /** The command line as it was typed. */
  command: Array<string>;
  /** The machine. */
  environment: Environment;
  /** The kind of document */
  format: "trueio-record";
  /** 128 random bits as 32 hexadecimal digits. */
  id: string;
  /** What kind of run: `baseline`, `run`, … */
  kind: string;
  /** How it ended. */
  outcome: Outcome;
  /** The measured phases, in order. An interrupted run has those before the interruption. */
  phases: Array<PhaseRecord>;
  /** The plan that was run. */
  plan: Plan;
  /** What earlier cuts of power have shown of the device, if its identity is certain. */
  power_loss?: PowerLoss | null;
  /** The cost of the tool itself on this machine. */
  ruler: Ruler;
  /** The jobs as specified. */
  spec: Array<JobSpec>;
  /** The same as text: `2026-11-20T20:28:32Z`. */
  started_at: string;
  /** The same in milliseconds; 0 in records of earlier versions. */
  started_unix_ms?: number;
  /** When the run began: seconds since 1970-01-01 UTC. */
  started_unix_s: number;
  /** The targets. */
  targets: Array<TargetFacts>;
  /** The program. */
  tool: ToolFacts;
  /** The version of the writer */
  version: number;
}

/** Processor affinity, I/O priority, and how workers end each other. */
export interface Scheduling {
  /** When a worker of this job ends, all others of the phase are ended. */
  ends_others?: boolean;
  /** When a worker of this job fails, all others of the phase are ended. */
  ends_others_on_error?: boolean;
  /** The run ends with this job's phase: later phases do not begin. */
  ends_run?: boolean;
  /** The hint for the device that goes with it, 0 to 1023; 0: none (Linux 6.5). */
  io_hint?: number;
  /** The workers' I/O priority, as ioprio_set(2) takes it: class (1 real time, 2 best effort, 3 idle) and level within it (0 highest, to 7); `None`: left as it is. */
  io_priority?: [number, number] | null;
  /** Each worker may run on all of `JobPlan::cpus`, instead of on one of them. */
  shares_cpus?: boolean;
  /** The job's phase begins even if an earlier phase failed. */
  starts_after_failure?: boolean;
}

/** An interval of a job's time series. */
export interface SeriesRow {
  /** Its end, in nanoseconds since the measured part began. */
  end_ns: number;
  /** Longest. */
  latency_ns_max: number;
  /** Median total latency of the row's I/Os, in nanoseconds; 0 if there were none. */
  latency_ns_p50: number;
  /** 99th percentile; with several workers, the largest of theirs. */
  latency_ns_p99: number;
  /** Trims and sync calls completed. */
  other_count: number;
  /** Bytes read. */
  read_bytes: number;
  /** Reads completed. */
  read_count: number;
  /** Its length, in nanoseconds. */
  span_ns: number;
  /** Bytes trimmed. */
  trim_bytes?: number;
  /** Of them trims. */
  trim_count?: number;
  /** Bytes written. */
  write_bytes: number;
  /** Writes completed. */
  write_count: number;
}

/** One side of a comparison. */
export interface Side {
  /** What it is, in a few words (`randread 4k q32`, `iodepth=16`, a record's id). */
  detail: string;
  /** The typical figure of each metric that the side has. */
  figures: Array<Figure>;
  /** All latencies, merged. */
  latency: Histogram;
  /** The lowest evidence level. */
  level: EvidenceLevel;
  /** Name of the side, which tables print. */
  name: string;
  /** The checks of these reasons, each once. */
  objections?: Array<Objection>;
  /** Percentiles of a side without a histogram (fio's JSON): (percent, nanoseconds), ascending. */
  percentiles?: Array<[number, number]>;
  /** Why the verdict is not better, with how many slices it concerns. */
  reasons: Array<string>;
  /** Its slices, or the rows of its record, oldest first. */
  slices: Array<Slice>;
  /** The system calls of its last slice, or of its record, if they were recorded. */
  syscalls?: SyscallTrace | null;
  /** The worst verdict. */
  verdict: Verdict;
  /** The word of its figures, as `run` prints it: of the recorded causes. `None` in comparisons of earlier versions. */
  word?: Mark | null;
}

/** The modelled disk of the `simulated` engine. */
export interface SimulatedDevice {
  /** Channels that serve at the same time. */
  channels: number;
  /** The I/Os (counted from 0) that fail with EIO. */
  failing_ios: Array<number>;
  /** Service time of one I/O, in nanoseconds. */
  service_ns: number;
  /** Factors of the service time from points in virtual time on: (begin in nanoseconds, factor), in order of time. They model a full write cache or a drive that throttles. */
  slowdowns?: Array<[number, number]>;
  /** Spans in which nothing is served: (begin, length), nanoseconds of virtual time. */
  stalls: Array<[number, number]>;
}

/** What one slice measured. */
export interface Slice {
  /** When its measured part began, in nanoseconds since the comparison (or the run) began. */
  begin_ns: number;
  /** Each metric that the slice itself supports, in the order of `Metric::ALL`. */
  figures: Array<Figure>;
  /** Its position in the round, from 0. */
  place: number;
  /** Its round, from 0. */
  round: number;
  /** The verdict of the evidence. */
  verdict: Verdict;
}

/** The address of a body: `http://HOST[:PORT]/PATH`. */
export interface SourceAddress {
  /** The host's name or number; an IPv6 number without its brackets. */
  host: string;
  /** The path with its query, from the first slash. */
  path: string;
  /** The port. */
  port: number;
}

/** A body that is fetched and written. */
export interface SourcePlan {
  /** Its address. */
  address: SourceAddress;
  /** The bytes that are written with the job's own writes; the rest, less than one unit of direct I/O, goes through the page cache. Equal to the length if the job writes through the page cache. */
  direct_bytes: number;
  /** Whether it is fetched again at the end and compared with the content of the file. */
  is_verified: boolean;
  /** Its length, in bytes; the server must report the same when the job begins. */
  length_bytes: number;
}

/** One option's value as given. */
export interface SpecValue {
  /** Where it was written. */
  origin: Origin;
  /** The value in the option table's canonical text (`"4k"`, `"randread"`, `"true"`). The table's row has already accepted it. */
  text: string;
}

/** The system call that reads the status of a file. */
export type StatCall = "statx" | "stat" | "lstat";

/** A sentence that follows from figures. */
export interface Statement {
  kind: StatementKind;
  rests_on: Array<Ground>;
  sentence: string;
}

/** What a statement is about. */
export type StatementKind = "class" | "database" | "limit" | "past" | "power_loss" | "winner";

/** The rule: rounds of the same work until it is steady. */
export interface SteadyPlan {
  /** Length of a round, in nanoseconds. */
  round_ns: number;
  /** The maximum number of rounds; the phase is then given up. */
  rounds_max: number;
}

/** A round: all jobs of the phase together, without sync calls. */
export interface SteadyRound {
  /** Bytes transferred per second. */
  bytes_per_s: number;
  /** How long it took, in nanoseconds. */
  elapsed_ns: number;
  /** I/Os completed per second. */
  ios_per_s: number;
  /** 99th percentile of the total latency, in nanoseconds; `None` if there were too few I/Os. */
  latency_ns_p99?: number | null;
}

/** The result. The phase's figures are measured after the last round and do not include the rounds. */
export interface SteadyState {
  /** Largest rise or fall of the fitted line over the window, in percent of its mean. */
  excursion_percent_max: number;
  /** Whether every variable was steady over the last window. */
  is_attained: boolean;
  /** Largest range that counts as steady, in percent of the window's mean. */
  range_percent_max: number;
  /** The rounds, oldest first. */
  rounds: Array<SteadyRound>;
  /** The variables over the last window; empty as long as there were too few rounds. */
  variables: Array<SteadyVariable>;
  /** Number of rounds that are evaluated together. */
  window_rounds: number;
}

/** A variable over the last window. */
export interface SteadyVariable {
  /** What the fitted line gains over the window, in percent of the mean; negative if it falls. */
  excursion_percent?: number | null;
  /** Whether both are within the rule. */
  is_steady: boolean;
  /** `throughput` or `latency_p99`. */
  name: string;
  /** Largest minus smallest, in percent of the mean; `None` if a round did not tell it. */
  range_percent?: number | null;
}

/** How the next offset follows from the last one, if it is neither the next block nor drawn again. */
export interface Steps {
  /** The unit of random offsets, in bytes; 0: the block size. */
  align_bytes?: number;
  /** Sizes of a range are any number of bytes, not multiples of the smallest. */
  is_unaligned?: boolean;
  /** The unit and the percentage of writes, if they differ from those of reads. */
  of_writes?: WriteSteps | null;
  /** I/Os to one random offset; 0 and 1: each has its own. */
  random_every?: number;
  /** Those I/Os are all at the same offset; otherwise they continue from it. */
  repeats?: boolean;
  /** Percentage of a random job's offsets that continue where the last I/O ended. */
  sequential_percent?: number;
  /** Bytes between the end of a sequential I/O and the next; negative: backwards. */
  skip_bytes?: number;
  /** Each block is trimmed before it is written. */
  trims_first?: boolean;
  /** Zones that are used one after another. */
  zones?: Zones | null;
}

/** Open flags that make each write durable before it returns. */
export type SyncMode = "none" | "dsync" | "sync";

/** The match of sampled durable writes with the order of requests on the disk. */
export interface SyncOrder {
  /** A description of the first that was not durable. */
  failure_example?: string | null;
  /** Data completed, then a flush was issued and completed, then the call returned. */
  flushed_count?: number;
  /** The data requests themselves carried forced unit access. */
  fua_count?: number;
  /** Writes to match, each with the sync call or the flag that made it durable. */
  sampled_count?: number;
  /** Data completed before the call returned, on a disk that declares no volatile cache. */
  uncached_count?: number;
  /** Data completed, but no flush completed before the call returned. */
  unflushed_count?: number;
  /** The data was not found, and the file's physical ranges are unknown or changed. */
  unplaced_count?: number;
  /** The call returned before the data was on the disk. */
  unwritten_count?: number;
}

/** Calls that failed with one error number. */
export interface SyscallError {
  /** How many. */
  count?: number;
  /** Error number, positive, as errno(3) lists it. */
  errno?: number;
}

/** The I/O of a call, from its arguments and results. */
export interface SyscallIo {
  /** Requested size of each call; empty for calls whose arguments do not contain it (vectors). */
  asked?: SyscallSizes;
  /** Calls by the flags of the call itself: (`RWF_DSYNC`, calls). Calls without one are not in it. */
  flags?: Array<[string, number]>;
  /** Calls by the flags with which their file was open: (`O_RDWR|O_DIRECT`, calls), most frequent first. */
  opened?: Array<[string, number]>;
  /** Positions in the file; `None` for calls without a position, or whose arguments do not contain it. */
  places?: SyscallPlaces | null;
  /** Size that each successful call returned. */
  returned?: SyscallSizes;
  /** What `asked` and `returned` count. */
  unit?: SyscallUnit;
}

/** Where calls began in their files. */
export interface SyscallPlaces {
  /** Smallest offset, in bytes. */
  begin_bytes?: number;
  /** Largest end, in bytes. */
  end_bytes?: number;
  /** Of these, calls with an earlier one of the same thread on the same descriptor. */
  following_count?: number;
  /** There were more different ones than are stored: `unique_count` is a lower bound. */
  is_unique_least?: boolean;
  /** Calls whose offset is known. */
  placed_count?: number;
  /** Of these, calls that began where that one had ended. */
  sequential_count?: number;
  /** Different offsets (in different files they are different). */
  unique_count?: number;
}

/** One system call. */
export interface SyscallRow {
  /** Number of calls, including unfinished ones. */
  count?: number;
  /** Those that failed, by error number. */
  errors?: Array<SyscallError>;
  /** Details of calls that transfer, position, submit or flush data. */
  io?: SyscallIo | null;
  /** Time from the kernel's entry to its return, of those with both in the recording. */
  latency?: Histogram;
  /** Its name (`pwrite64`); `syscall 999` if this program does not know the number. */
  name?: string;
  /** Its number on this architecture. */
  number?: number;
  /** Made before the recording ended, and not returned by then; or returned, and made before it began. */
  unfinished_count?: number;
}

/** How often each size occurred. */
export interface SyscallSizes {
  /** (size, calls), smallest first; the number of different sizes is limited. */
  counts?: Array<[number, number]>;
  /** Calls of further sizes. */
  other_count?: number;
  /** All together. */
  sum?: number;
}

/** System calls of a phase's workers, as the kernel's tracepoints recorded them: each one of the measured part, from the kernel's entry to its return. */
export interface SyscallTrace {
  /** The jobs, in their order. */
  jobs?: Array<JobSyscalls>;
  /** Events (two per call) that were lost because the kernel's buffer was full. If there are any, every count here is a lower bound. */
  lost_event_count?: number;
  /** Why nothing was traced; `None` if it was. */
  missing?: string | null;
  /** How long the workers' calls were recorded, in nanoseconds: the whole measured part. */
  span_ns?: number;
  /** CPU time of the thread that read the events, in nanoseconds, without the cost that the tracepoints add to each call. */
  thread_cpu_ns?: number;
}

/** The unit of a call's sizes. */
export type SyscallUnit = "bytes" | "ios";

/** A target: the path, its filesystem, and the layers down to the disks. */
export interface TargetFacts {
  /** Whether direct I/O is supported, and the alignment that it requires. */
  direct: DirectFacts;
  /** The disks at the bottom of the stack. Empty if there are none (tmpfs, network). */
  disks: Array<DiskFacts>;
  /** The commands of a disk that this process drives itself, which is not in `disks`. `None` for other targets. */
  driven?: DrivenDisk | null;
  /** The filesystem of the target; `None` for a raw block device. */
  filesystem?: FilesystemFacts | null;
  /** Limits of this process's control groups on the block devices of the stack. */
  io_limits?: Fact12;
  /** The kind of target. */
  kind: TargetKind;
  /** The path as given. */
  path: string;
  /** Size of a file or device, in bytes; unknown for a directory. */
  size_bytes: Fact;
  /** The layers from the target down to the disks, nearest first. */
  stack: Array<Layer>;
}

/** The kind of what a path refers to. */
export type TargetKind = "directory" | "file" | "block_device" | "character_device";

/** Pauses between I/Os. */
export interface Think {
  /** Time of I/O after which a pause comes; 0: only `every` counts. */
  after_ns?: number;
  /** I/Os between two pauses; 0: only `after_ns` counts. */
  every: number;
  /** The part of a pause that keeps the processor busy, in nanoseconds. */
  spin_ns?: number;
  /** Length of a pause, in nanoseconds. */
  time_ns: number;
}

/** What threads used in the measured part, as the kernel accounts for it (`getrusage`). */
export interface ThreadUsage {
  /** Context switches, voluntary and not. */
  context_switch_count?: number;
  /** Sum of the workers' measured times, in nanoseconds. */
  elapsed_ns?: number;
  /** Page faults that had to wait for a disk. */
  major_fault_count?: number;
  /** Page faults that had not. */
  minor_fault_count?: number;
  /** CPU time in the kernel, in nanoseconds. */
  system_ns?: number;
  /** CPU time in user mode, in nanoseconds. */
  user_ns?: number;
  /** How long the threads waited for a processor; `None` if the kernel does not count it, and in records of earlier versions. */
  waiting?: ProcessorWait | null;
}

/** The failed I/Os after which a job continues. */
export interface Tolerance {
  /** A write that fails for lack of space ends the job and is not a failure: `ignored` contains these errors, too. */
  ends_when_full?: boolean;
  /** Errors to ignore, which do not fail the run. */
  ignored?: Array<IgnoredError>;
  /** All failed reads; the run still fails. */
  reads?: boolean;
  /** All failed writes and trims; the run still fails. */
  writes?: boolean;
}

/** The program that wrote the record. */
export interface ToolFacts {
  /** `release` or `debug`; figures of a debug build measure the debug build. */
  build: string;
  /** `trueio`. */
  name: string;
  /** Version of the program, `MAJOR.MINOR.PATCH`. */
  version: string;
}

/** Block requests of a phase, traced in short windows spread over its measured part, and their match with the I/Os that the workers sampled in the same windows. */
export interface TraceRecord {
  /** How those found on loop devices were found on the disks of their files; `None` without a loop device. */
  below?: BelowTrace | null;
  /** The disks whose requests were traced. */
  disks?: Array<string>;
  /** Requests elsewhere that the kernel marks as metadata, or that a journal's thread made. */
  filesystem?: RequestSum;
  /** Why requests elsewhere cannot be distinguished from ours; `None` if they can. */
  inseparable?: string | null;
  /** What kernel threads did elsewhere, in words, busiest first, one entry for each disk. */
  kernel_work?: Array<TracedProcess>;
  /** Where the time of the sampled direct transfers went, for each operation. */
  latency?: Array<LatencyParts>;
  /** Events that were lost because the kernel's buffer was full. The windows end before the first of them. */
  lost_event_count?: number;
  /** Why no request was traced; `None` if some could be. */
  missing?: string | null;
  /** A few other programs, busiest first, one entry for each disk. Where `others` and `unattributed` are hardly anything, what all windows saw. */
  other_processes?: Array<TracedProcess>;
  /** Requests elsewhere that other programs made. */
  others?: RequestSum;
  /** Time in which a request that is not ours was in flight, in the windows, in nanoseconds. */
  others_busy_ns?: number;
  /** Requests in the physical ranges of our files. */
  ours?: RequestSum;
  /** Of those, the ones that threads of the kernel submitted: write-back; of direct I/O, what a limit of a control group delayed, or what a layer such as dm-crypt passed on. */
  ours_by_kernel?: RequestSum;
  /** Requests elsewhere that our own threads made: filesystem tables that a sync call writes, or other I/O of this process. */
  own_elsewhere?: RequestSum;
  /** Where on the busiest disk requests were, over time; `None` without a request. */
  places?: RequestPlaces | null;
  /** How often the driver had no room for a request and returned it; it counts once. */
  requeued_count?: number;
  /** Sampled writes that were waited for until durable. */
  syncs?: SyncOrder;
  /** CPU time of the tracing thread, which switches tracepoints and reads and sorts events; without the cost that the tracepoints add to each request. */
  thread_cpu_ns?: number;
  /** Sampled direct transfers. */
  transfers?: TransferMatch;
  /** Requests elsewhere from kernel threads, of unknown origin: another file's data written back, or a filesystem table. */
  unattributed?: RequestSum;
  /** Windows, without those that were opened because counters showed other programs: these name programs and count for no sum. */
  window_count?: number;
  /** These windows together, in nanoseconds. */
  window_ns?: number;
  /** Programs whose dirty pages the kernel wrote back in the windows, or that dirtied pages of the measured files, busiest first, one entry for each disk. `write_bytes` is about what they were seen to dirty of these files. */
  write_back?: Array<TracedProcess>;
}

/** The requests of another program to one disk, in the windows: what was seen, not more. */
export interface TracedProcess {
  /** The disk. */
  disk?: string;
  /** True if it had ended when the phase ended. */
  has_ended?: boolean;
  /** Of both, those in the measured files. */
  in_files_bytes?: number;
  /** Its name when it submitted them, as the kernel reports it; what they do, of threads of the kernel. */
  name?: string;
  /** The thread that submitted; 0 if its number is of another PID namespace, and for threads of the kernel. */
  process?: number;
  /** Bytes that it read. */
  read_bytes?: number;
  /** Bytes that it wrote. */
  write_bytes?: number;
}

/** The match of sampled direct transfers with requests to their physical ranges. */
export interface TransferMatch {
  /** Found: requests of the same direction covered every byte of the range on the disk, and began and ended within the I/O. */
  matched_count?: number;
  /** Of these, by a request that carried more than this I/O (neighbours merged). */
  merged_count?: number;
  /** Not found, although the file's physical ranges are known and did not change. */
  missing_count?: number;
  /** A description of the first that was missing. */
  missing_example?: string | null;
  /** Number of transfers to match. */
  sampled_count?: number;
  /** Of these, by more than one request. */
  split_count?: number;
  /** Not found, and the file's physical ranges are unknown or changed. */
  unplaced_count?: number;
}

/** Bus or driver that a disk is attached with. */
export type Transport = string;

/** Written blocks that are trimmed. */
export interface TrimVerify {
  /** Writes after which trims follow. */
  backlog: number;
  /** How many of them are trimmed at once; 0: all. */
  batch?: number;
  /** Trimmed blocks must read as zeros; otherwise they are not compared. */
  is_zero: boolean;
  /** Percentage of the written blocks, 1 to 100. */
  percent: number;
}

/** Whether reads, writes and trims are reported as one. */
export type Unified = "no" | "mixed" | "both";

/** Settings of io_uring. */
export interface UringOptions {
  /** Every Nth transfer is submitted with `IOSQE_ASYNC`, for execution by kernel threads; 0: none. */
  async_every?: number;
  /** Each I/O begins when all before it have completed (`IOSQE_IO_DRAIN`). */
  drain?: boolean;
  /** Completions are polled for. */
  iopoll: boolean;
  /** Register the buffers with the ring. */
  registered_buffers: boolean;
  /** Register the files with the ring. */
  registered_files: boolean;
  /** A kernel thread polls the submission queue. */
  sqpoll: boolean;
  /** The processor of the kernel thread that polls the submission queue; `None`: any. */
  sqpoll_cpu?: number | null;
  /** Transfers are `READV` and `WRITEV` with one piece, unless their buffers are registered. */
  vectored?: boolean;
}

/** One alternate setting of a mass-storage interface, from the device's own descriptors. */
export interface UsbAlternate {
  /** Number of the setting. */
  number: number;
  /** UAS pipe usages found, sorted: 1 command, 2 status, 3 data-in, 4 data-out. The kernel needs all four. */
  pipes: Array<number>;
  /** Interface protocol (0x50 is BOT, 0x62 is UAS). */
  protocol: number;
  /** Streams that the status pipe has; 0 below SuperSpeed. */
  stream_count: number;
  /** Interface subclass (6 is SCSI). */
  subclass: number;
}

/** How a USB disk is attached. The record of a run keeps it. */
export interface UsbFacts {
  /** Whether the device supports SuperSpeed. Known from a SuperSpeed link or from the capability descriptors; if unknown, see `UsbFacts::speaks_as_superspeed`. */
  can_superspeed: Fact5;
  /** The kernel's name of the device: bus and ports (`2-1`, `1-4.2`). */
  device: string;
  /** The driver that is bound to the interface; unknown if none is. */
  driver: Fact2;
  /** Vendor and product, four hexadecimal digits each (`152d:0578`). */
  id: Fact2;
  /** The kernel's name of the mass-storage interface (`2-1:1.0`). */
  interface: string;
  /** Speed of the link, in Mbit/s (480 is USB 2, 5000 and more is USB 3). */
  link_mbit_per_s: Fact9;
  /** The manufacturer's name that the device reports. */
  manufacturer: Fact2;
  /** The alternate settings of the interface. */
  offers: Fact10;
  /** The highest speed of the port, in Mbit/s. */
  port_mbit_per_s: Fact9;
  /** The product name that the device reports. */
  product: Fact2;
  /** Commands that the transport keeps in flight. */
  queue_depth: Fact4;
  /** The device's release in binary-coded decimal (`0100`). */
  release: Fact2;
  /** The device's serial number. USB reports it on both transports. */
  serial: Fact2;
  /** The transport in use, which follows from the driver. */
  transport: UsbTransport;
  /** The USB version that the device reports on this link (`3.20`, `2.10`). */
  usb_version: Fact2;
}

/** The transport of commands to a USB disk. */
export type UsbTransport = "uas" | "bot" | "none" | "other";

/** A user and a group, by their numbers. */
export interface UserPlan {
  /** Group ID; there are no supplementary groups. */
  gid: number;
  /** User ID. */
  uid: number;
}

/** The judgement of the evidence on a phase's figures, from best to worst. */
export type Verdict = "supported" | "unverified" | "suspect" | "contradicted";

/** How written blocks are read back and compared. */
export interface Verify {
  /** Number of writes after which some are read back at once; 0: all at the end. */
  backlog?: number;
  /** Number of blocks that are then read back; 0: all. */
  backlog_batch?: number;
  /** The checksum in each header. */
  checksum: Checksum;
  /** The directory of these files; `None`: the current one. */
  dump_directory?: string | null;
  /** Blocks that differ are kept in files. */
  dumps?: boolean;
  /** What each of the job's loops wrote is read back when the loop ends, not only what the last one did. */
  each_loop?: boolean;
  /** Distance of the header from its usual offset, in bytes; it is exchanged with the data there. */
  header_offset_bytes?: number;
  /** Distance from one header to the next, in bytes; 0: one header per block. */
  interval_bytes?: number;
  /** Nothing is written: the blocks that the job would write are read and compared. */
  is_offline?: boolean;
  /** Parallel jobs write to the same blocks in the same way: any of their writes is accepted, whichever came last. */
  is_shared?: boolean;
  /** The job compares the blocks that such a file lists as written. */
  loads_state?: boolean;
  /** The content of the blocks; `None`: the job's content. */
  pattern?: BlockPattern | null;
  /** Distance from one start of the pattern to the next, in bytes; 0: it starts once per block. */
  pattern_interval_bytes?: number;
  /** Written blocks are read back at the job's end. */
  reads_back?: boolean;
  /** The job's progress is saved to a file. */
  saves_state?: boolean;
  /** The file of the state; `None`: one for each worker, named after the job. */
  state_file?: string | null;
  /** The first block that differs ends the job. */
  stops_at_first?: boolean;
  /** Only blocks written before the last successful sync call are compared, because only these must be durable. */
  synced_only?: boolean;
  /** Threads that compare; 0: the worker compares. */
  threads?: number;
  /** Written blocks that are trimmed and compared with zeros. */
  trim?: TrimVerify | null;
}

/** A block that did not read back as it was written. */
export interface VerifyFailure {
  /** What was expected, in words. */
  expected: string;
  /** What was found, in words. */
  found: string;
  /** The block's length, in bytes. */
  length: number;
  /** The number that was found, and the one that was expected: of the header, the checksum of the content, or the first byte that differs from the pattern; `None`: another part differs, or what was found is not shown. */
  numbers?: Array<number> | null;
  /** The block's offset, in bytes. */
  offset: number;
  /** What of the block differs. */
  part?: BlockPart;
  /** The file. */
  path: string;
  /** The byte of the block at which its content differs from the pattern, counted from 0; `None`: no pattern was compared. */
  pattern_byte?: number | null;
}

/** Write cache that a disk declares (`queue/write_cache`). */
export type WriteCache = string;

/** RWF flags of each single I/O (`pvsync2`, `libaio`, `io_uring`). */
export interface WriteFlags {
  /** `RWF_ATOMIC` on writes: all or nothing across a power cut. Linux 6.11. */
  atomic: boolean;
  /** `RWF_DONTCACHE`: buffered, and the pages are dropped afterwards. Linux 6.14. */
  dontcache: boolean;
  /** `RWF_DSYNC` on writes. */
  dsync: boolean;
  /** `RWF_HIPRI`: poll for the completion. */
  hipri: boolean;
  /** Percentage of I/Os with it, drawn at random (`pvsync2`); `None`: all. */
  hipri_percent?: number | null;
  /** `RWF_NOWAIT`: an I/O that would have to wait fails with EAGAIN. */
  nowait?: boolean;
}

/** The expected lifetime of what is written (fcntl(2), `F_SET_RW_HINT`). */
export type WriteHint = "unchanged" | "none" | "short" | "medium" | "long" | "extreme";

/** The random offsets of writes, if they differ from those of reads. */
export interface WriteSteps {
  /** Their unit, in bytes; 0: the block size. */
  align_bytes: number;
  /** Percentage of them that continue where the last write ended. */
  sequential_percent: number;
}

/** Zone model of a disk (`queue/zoned`). */
export type ZoneModel = string;

/** How a job uses the zones of its files (`zonemode = zbd`). */
export interface ZonePlan {
  /** Writable bytes of an emulated zone; a device reports its own. */
  capacity_bytes: number;
  /** Zones are reset before they are full. */
  early_resets?: EarlyResets | null;
  /** The device's own limits are ignored. */
  ignores_device_limits: boolean;
  /** The files have no zones: the run keeps emulated write pointers, which start at the zones' first bytes. */
  is_emulated: boolean;
  /** Maximum number of partly written zones of all workers together; 0: the device's limit. */
  open_max: number;
  /** Reads may go anywhere, not only to written blocks. */
  reads_beyond: boolean;
  /** Zones skipped after each, in sequential jobs. */
  skip_zones: number;
  /** The same of each worker; 0: not limited. */
  worker_open_max: number;
  /** The rest of a zone that is less than a block is written by a smaller write; otherwise the zone is finished without it. */
  writes_remainder: boolean;
  /** Length of a zone, in bytes. */
  zone_bytes: number;
}

/** What a job did with zones. */
export interface ZoneUse {
  /** Zones finished in the measured part although they were not full. */
  finish_count: number;
  /** Zones reset in the measured part, without those that were trimmed. */
  reset_count: number;
  /** Those of them that can only be written in order. */
  sequential_count: number;
  /** The source of the zones' positions. */
  source: string;
  /** Length of a zone, in bytes. */
  zone_bytes: number;
  /** Zones of the files. */
  zone_count: number;
}

/** Zones that are used one after another. */
export interface Zones {
  /** Length of a zone, in bytes. */
  range_bytes: number;
  /** Bytes between two zones. */
  skip_bytes: number;
  /** Bytes transferred in a zone before the next zone. */
  zone_bytes: number;
}
