"""The documents, as `trueio schema` describes them. Rendered by `cargo xtask types --write`."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Advice: TypeAlias = "Literal['none'] | Literal['random'] | Literal['sequential'] | Literal['noreuse']"


class Answer(TypedDict):
    basis: "Basis"
    conclusion: "Conclusion"
    metric: "Metric"
    needs: "NotRequired[Needs | None]"
    noise_floor: "NotRequired[float | None]"
    ratio: "NotRequired[Ratio | None]"
    reason: "NotRequired[str | None]"
    side: "int"



class AnsweredFigure(TypedDict):
    cause: "NotRequired[str]"
    high: "NotRequired[float | None]"
    is_shown: "bool"
    load: "str"
    low: "NotRequired[float | None]"
    name: "str"
    operation: "NotRequired[OpKind | None]"
    quantity: "NotRequired[Quantity | None]"
    sample_count: "int"
    unit: "str"
    value: "NotRequired[float | None]"
    verdict: "Mark"



class AnsweredFinding(TypedDict):
    cause: "Cause"
    details: "NotRequired[list[FoundDetail]]"
    extent: "NotRequired[str]"
    loads: "list[FoundLoad]"
    next_step: "str"
    sentence: "str"
    verdict: "Mark"



class AnsweredPhase(TypedDict):
    is_shown: "bool"
    level: "EvidenceLevel"
    objections: "list[Objection]"
    phase: "str"
    verdict: "Mark"
    words: "str"


Arrivals: TypeAlias = "Literal['linear'] | Literal['poisson']"


class AtomicWriteFacts(TypedDict):
    max_bytes: "int"
    min_bytes: "int"


Basis: TypeAlias = "Literal['pair_ratios'] | Literal['resampled_pairs'] | Literal['blocks'] | Literal['nothing']"


class BelowTrace(TypedDict):
    disks: "NotRequired[list[str]]"
    files: "NotRequired[list[str]]"
    hole_count: "NotRequired[int]"
    hole_example: "NotRequired[str | None]"
    loops: "NotRequired[list[str]]"
    missing: "NotRequired[str | None]"
    other_processes: "NotRequired[list[TracedProcess]]"
    others: "NotRequired[RequestSum]"
    others_busy_ns: "NotRequired[int]"
    ours: "NotRequired[RequestSum]"
    syncs: "NotRequired[SyncOrder]"
    transfers: "NotRequired[TransferMatch]"
    window_ns: "NotRequired[int]"


BlockPart: TypeAlias = "Literal['content'] | Literal['magic'] | Literal['length'] | Literal['run'] | Literal['offset'] | Literal['sequence'] | Literal['checksum'] | Literal['trimmed']"


class BlockPattern(TypedDict):
    bytes: "list[int]"
    offset_places: "list[int]"



class BlockSizesFixed(TypedDict):
    fixed: "int"



class BlockSizesRange(TypedDict):
    range: "dict[str, Any]"



class BlockSizesWeighted(TypedDict):
    weighted: "list[list[Any]]"


BlockSizes: TypeAlias = "BlockSizesFixed | BlockSizesRange | BlockSizesWeighted"

Cause: TypeAlias = "Literal['calls'] | Literal['cache'] | Literal['setup'] | Literal['device'] | Literal['neighbour'] | Literal['tool'] | Literal['unsteady']"


class Check(TypedDict):
    brief: "NotRequired[str]"
    cause: "NotRequired[Cause]"
    culprits: "NotRequired[list[str]]"
    expected: "str"
    explained_percent: "NotRequired[int | None]"
    found: "str"
    is_accepted: "NotRequired[bool]"
    name: "str"
    outcome: "CheckOutcome"
    sentence: "str"
    witness: "str"


CheckOutcome: TypeAlias = "Literal['passed'] | Literal['suspect'] | Literal['contradicted'] | Literal['not_seen'] | Literal['not_applicable']"

Checksum: TypeAlias = "Literal['crc32c'] | Literal['xxhash'] | Literal['md5'] | Literal['crc64'] | Literal['crc32'] | Literal['crc16'] | Literal['crc7'] | Literal['sha1'] | Literal['sha256'] | Literal['sha512'] | Literal['sha3_224'] | Literal['sha3_256'] | Literal['sha3_384'] | Literal['sha3_512'] | Literal['meta'] | Literal['pattern'] | Literal['pattern_hdr'] | Literal['null']"


class Circumstance(TypedDict):
    first: "str"
    forbids: "bool"
    name: "str"
    side: "int"
    this: "str"



class ClockOffset(TypedDict):
    bound_ns: "int"
    offset_ns: "int"
    ping_count: "int"
    round_trip_ns_median: "int"



class ClusterPhase(TypedDict):
    common: "NotRequired[CommonWindow | None]"
    end_skew_ns: "int"
    name: "str"
    nominal_ns: "NotRequired[int | None]"
    ranks: "list[RankSpan]"
    start_skew_ns: "int"



class ClusterRecord(TypedDict):
    launcher: "str"
    lost: "NotRequired[list[LostRank]]"
    phases: "list[ClusterPhase]"
    rank_count: "int"
    ranks: "list[RankRecord]"



class CommandPlan(TypedDict):
    arguments: "list[str]"



class CommonContents(TypedDict):
    first_part: "int"
    parts: "int"
    seed: "int"



class CommonWindow(TypedDict):
    begin_ns: "int"
    bytes_per_s: "float"
    end_ns: "int"
    ios_per_s: "float"
    share: "float"



class Comparison(TypedDict):
    alpha: "float"
    answer: "NotRequired[DocumentAnswer | None]"
    command: "list[str]"
    differences: "list[Circumstance]"
    format: "Literal['trueio-comparison']"
    gates: "NotRequired[list[GateResult]]"
    margin: "float"
    method: "Method"
    notes: "list[str]"
    outcome: "Outcome"
    parts: "list[Part]"
    setting: "NotRequired[RunRecord | None]"
    started_at: "str"
    tool: "ToolFacts"
    version: "int"


Conclusion: TypeAlias = "Literal['better'] | Literal['better_size_unclear'] | Literal['worse'] | Literal['worse_size_unclear'] | Literal['same'] | Literal['cannot_tell']"


class Content(TypedDict):
    common: "NotRequired[CommonContents | None]"
    compressible_bytes: "NotRequired[int]"
    compressible_percent: "int"
    duplicate_count: "NotRequired[int]"
    duplicate_percent: "int"
    kind: "ContentKind"
    pattern: "NotRequired[list[int]]"
    refill: "bool"


ContentKind: TypeAlias = "Literal['random'] | Literal['zero'] | Literal['pattern']"


class Control(TypedDict):
    criterion: "NotRequired[CriterionPlan | None]"
    flow: "NotRequired[FlowPlan | None]"
    latency_target: "NotRequired[LatencyTarget | None]"
    waits_for: "NotRequired[list[str]]"



class ControlGroupPlan(TypedDict):
    is_kept: "NotRequired[bool]"
    name: "str"
    weight: "NotRequired[int | None]"



class CpuFacts(TypedDict):
    governor: "Fact2"
    model: "Fact2"
    quota: "NotRequired[float | None]"
    usable_count: "int"



class CpuLoad(TypedDict):
    chunk_ns: "int"
    ends_with_io: "NotRequired[bool]"
    percent: "int"
    sorts: "NotRequired[bool]"



class CpuTime(TypedDict):
    system_ns: "int"
    user_ns: "int"



class Criterion(TypedDict):
    is_percent: "bool"
    is_slope: "bool"
    limit: "float"
    variable: "CriterionVariable"



class CriterionPlan(TypedDict):
    criterion: "Criterion"
    ramp_ns: "int"
    span_ns: "int"
    window_ns: "int"



class CriterionRecord(TypedDict):
    deviation_max: "float"
    is_attained: "bool"
    slope: "float"
    spans: "list[CriterionSpan]"
    value: "float"



class CriterionSpan(TypedDict):
    bytes_per_s: "float"
    ios_per_s: "float"
    latency_ns: "float"


CriterionVariable: TypeAlias = "Literal['ios'] | Literal['bytes'] | Literal['latency']"

Decision: TypeAlias = "Literal['yes'] | Literal['no'] | Literal['cannot_tell']"

DelayStart: TypeAlias = "Literal['phase'] | Literal['run']"


class Dependence(TypedDict):
    inflations: "list[Inflation]"
    mean_factor: "NotRequired[float | None]"
    slice_count: "int"
    span_ns: "int"



class DepthSearch(TypedDict):
    depth: "int"
    is_found: "bool"
    window_count: "int"
    windows: "list[DepthWindow]"



class DepthWindow(TypedDict):
    depth: "int"
    io_count: "int"
    is_met: "bool"
    late_count: "int"



class DeviceCounters(TypedDict):
    busy_ms: "int"
    discard_bytes: "int"
    discard_count: "int"
    flush_count: "NotRequired[int | None]"
    read_bytes: "int"
    read_count: "int"
    read_merge_count: "NotRequired[int]"
    read_ms: "NotRequired[int]"
    weighted_ms: "int"
    write_bytes: "int"
    write_count: "int"
    write_merge_count: "NotRequired[int]"
    write_ms: "NotRequired[int]"



class DeviceDelta(TypedDict):
    baseline: "DeviceCounters"
    baseline_ns: "int"
    disk: "str"
    measured: "DeviceCounters"
    measured_ns: "int"



class DirectFacts(TypedDict):
    atomic_write: "NotRequired[Fact11]"
    memory_alignment_bytes: "Fact4"
    read_alignment_bytes: "Fact4"
    reason: "str"
    support: "DirectSupport"
    write_alignment_bytes: "Fact4"


DirectPolicy: TypeAlias = "Literal['require'] | Literal['prefer'] | Literal['off']"

DirectSupport: TypeAlias = "Literal['direct'] | Literal['silently_buffered'] | Literal['refused'] | Literal['unknown']"


class DiskFacts(TypedDict):
    counts_io: "Fact5"
    device_number: "list[Any]"
    firmware: "NotRequired[Fact2]"
    has_fua: "Fact5"
    is_rotational: "Fact5"
    limits: "NotRequired[DiskLimits]"
    link: "NotRequired[DiskLink | None]"
    logical_sector_bytes: "Fact4"
    max_request_bytes: "Fact"
    model: "Fact2"
    name: "str"
    physical_sector_bytes: "Fact4"
    read_ahead_bytes: "Fact"
    request_count: "Fact4"
    scheduler: "Fact2"
    serial: "Fact2"
    size_bytes: "Fact"
    transport: "Fact3"
    usb: "NotRequired[UsbFacts | None]"
    write_cache: "Fact6"
    wwid: "NotRequired[Fact2]"



class DiskLimits(TypedDict):
    alignment_offset_bytes: "NotRequired[Fact7]"
    atomic_write_max_bytes: "NotRequired[Fact]"
    can_poll: "NotRequired[Fact5]"
    chunk_bytes: "NotRequired[Fact]"
    discard_granularity_bytes: "NotRequired[Fact]"
    discard_max_bytes: "NotRequired[Fact]"
    dma_alignment_bytes: "NotRequired[Fact]"
    hardware_queue_count: "NotRequired[Fact4]"
    is_read_only: "NotRequired[Fact5]"
    is_removable: "NotRequired[Fact5]"
    max_hw_request_bytes: "NotRequired[Fact]"
    max_segment_bytes: "NotRequired[Fact]"
    max_segment_count: "NotRequired[Fact4]"
    minimum_io_bytes: "NotRequired[Fact]"
    optimal_io_bytes: "NotRequired[Fact]"
    queue_depth: "NotRequired[Fact4]"
    tag_count: "NotRequired[Fact4]"
    write_zeroes_max_bytes: "NotRequired[Fact]"
    zoned: "NotRequired[Fact8]"



class DiskLinkPcie(TypedDict):
    bus: "Literal['pcie']"
    gt_per_s: "float"
    gt_per_s_max: "NotRequired[float | None]"
    lanes: "int"
    lanes_max: "NotRequired[int | None]"
    source: "str"



class DiskLinkSata(TypedDict):
    bus: "Literal['sata']"
    gbit_per_s: "float"
    source: "str"


DiskLink: TypeAlias = "DiskLinkPcie | DiskLinkSata"

Distribution0: TypeAlias = "Literal['uniform']"


class DistributionZipf(TypedDict):
    zipf: "dict[str, Any]"



class DistributionPareto(TypedDict):
    pareto: "dict[str, Any]"



class DistributionNormal(TypedDict):
    normal: "dict[str, Any]"



class DistributionZoned(TypedDict):
    zoned: "dict[str, Any]"



class DistributionZonedBytes(TypedDict):
    zoned_bytes: "dict[str, Any]"



class DistributionSequence(TypedDict):
    sequence: "dict[str, Any]"



class DistributionPrecondition(TypedDict):
    precondition: "dict[str, Any]"


Distribution: TypeAlias = "Distribution0 | DistributionZipf | DistributionPareto | DistributionNormal | DistributionZoned | DistributionZonedBytes | DistributionSequence | DistributionPrecondition"


class DisturbedSpan(TypedDict):
    cause: "Cause"
    from_ns: "int"
    until_ns: "int"
    what: "str"



class DocumentAnswer(TypedDict):
    doubts: "list[str]"
    figures: "list[AnsweredFigure]"
    headline: "list[str]"
    next_steps: "list[str]"
    statements: "list[Statement]"



class DrivenDisk(TypedDict):
    can_trim: "Fact5"
    has_fua: "Fact5"
    write_cache: "Fact6"



class EarlyResets(TypedDict):
    every: "int"
    threshold: "float"


EngineKind: TypeAlias = "Literal['sync'] | Literal['psync'] | Literal['vsync'] | Literal['pvsync'] | Literal['pvsync2'] | Literal['libaio'] | Literal['io_uring'] | Literal['mmap'] | Literal['splice'] | Literal['posixaio'] | Literal['falloc'] | Literal['ftruncate'] | Literal['e4defrag'] | Literal['filecreate'] | Literal['filestat'] | Literal['fileread'] | Literal['filedelete'] | Literal['dircreate'] | Literal['dirstat'] | Literal['dirdelete'] | Literal['page_fault'] | Literal['cpuio'] | Literal['exec'] | Literal['uas'] | Literal['null'] | Literal['simulated'] | Literal['command']"


class Environment(TypedDict):
    clock_source: "Fact2"
    cpu: "CpuFacts"
    distribution: "Fact2"
    hypervisor: "Fact2"
    is_root: "bool"
    load_average: "Fact13"
    memory_available_bytes: "Fact"
    memory_bytes: "Fact"
    memory_limit_bytes: "NotRequired[int | None]"
    system: "str"



class Estimate(TypedDict):
    high: "float"
    low: "float"
    value: "float"


EvidenceLevel: TypeAlias = "Literal['E0'] | Literal['E1'] | Literal['E2'] | Literal['E3'] | Literal['E4']"


class ExecPlan(TypedDict):
    arguments: "list[str]"
    grace_ns: "int"
    output: "NotRequired[str | None]"



class Fact(TypedDict):
    source: "str"
    value: "NotRequired[int | None]"



class Fact10(TypedDict):
    source: "str"
    value: "NotRequired[list[UsbAlternate] | None]"



class Fact11(TypedDict):
    source: "str"
    value: "NotRequired[AtomicWriteFacts | None]"



class Fact12(TypedDict):
    source: "str"
    value: "NotRequired[list[IoLimit] | None]"



class Fact13(TypedDict):
    source: "str"
    value: "NotRequired[list[float] | None]"



class Fact2(TypedDict):
    source: "str"
    value: "NotRequired[str | None]"



class Fact3(TypedDict):
    source: "str"
    value: "NotRequired[Transport | None]"



class Fact4(TypedDict):
    source: "str"
    value: "NotRequired[int | None]"



class Fact5(TypedDict):
    source: "str"
    value: "NotRequired[bool | None]"



class Fact6(TypedDict):
    source: "str"
    value: "NotRequired[WriteCache | None]"



class Fact7(TypedDict):
    source: "str"
    value: "NotRequired[int | None]"



class Fact8(TypedDict):
    source: "str"
    value: "NotRequired[ZoneModel | None]"



class Fact9(TypedDict):
    source: "str"
    value: "NotRequired[float | None]"



class Figure(TypedDict):
    metric: "Metric"
    value: "float"


FileAccess: TypeAlias = "Literal['private'] | Literal['umask'] | Literal['group']"


class FilePlan(TypedDict):
    extends_from: "NotRequired[int | None]"
    offset_bytes: "int"
    path: "str"
    prepare: "Prepare"
    remove_after: "bool"
    size_bytes: "int"


FileSelection0: TypeAlias = "Literal['round_robin']"

FileSelection1: TypeAlias = "Literal['sequential']"

FileSelection2: TypeAlias = "Literal['random']"


class FileSelectionDrawn(TypedDict):
    drawn: "dict[str, Any]"


FileSelection: TypeAlias = "FileSelection0 | FileSelection1 | FileSelection2 | FileSelectionDrawn"


class FilesystemFacts(TypedDict):
    available_bytes: "Fact"
    block_bytes: "Fact"
    kind: "FilesystemKind"
    mount_point: "str"
    options: "str"
    size_bytes: "Fact"
    source: "str"
    uuid: "NotRequired[Fact2]"


FilesystemKind: TypeAlias = "str"


class FioJob(TypedDict):
    clone: "int"
    clones: "int"
    given: "list[FioWord]"
    group: "int"
    is_from_command_line: "bool"
    name: "str"
    number: "int"



class FioWord(TypedDict):
    is_global: "bool"
    name: "str"
    origin: "Origin"
    spelled: "NotRequired[str | None]"
    text: "str"



class FlowPlan(TypedDict):
    id: "int"
    sleep_ns: "int"
    watermark: "NotRequired[int]"
    weight: "int"



class Flush(TypedDict):
    end_fdatasync: "NotRequired[bool]"
    end_fsync: "bool"
    fdatasync_every: "int"
    fsync_every: "int"
    fsync_on_close: "NotRequired[bool]"
    range: "NotRequired[RangeSync | None]"



class Follow(TypedDict):
    job: "str"
    kind: "FollowKind"
    rank: "int"


FollowKind: TypeAlias = "Literal['repeat'] | Literal['complete']"


class FoundDetail(TypedDict):
    check: "str"
    loads: "list[str]"
    outcome: "str"
    sentence: "str"



class FoundLoad(TypedDict):
    brief: "str"
    explained_percent: "NotRequired[int | None]"
    is_of_latencies: "NotRequired[bool]"
    load: "str"



class GateResult(TypedDict):
    condition: "str"
    part: "str"
    sentence: "str"
    side: "int"
    verdict: "GateVerdict"


GateVerdict: TypeAlias = "Literal['absent'] | Literal['cannot_tell'] | Literal['shown']"


class Ground(TypedDict):
    load: "str"
    verdict: "Mark"


Grouping: TypeAlias = "Literal['job'] | Literal['worker'] | Literal['group']"


class Guard(TypedDict):
    bytes_per_s_min: "NotRequired[int]"
    cycle_ns: "NotRequired[int]"
    ios_per_s_min: "NotRequired[int]"
    latency_ns_max: "NotRequired[int]"
    of_writes: "NotRequired[list[Any] | None]"
    settle_ns: "NotRequired[int]"



class Handling(TypedDict):
    advice: "NotRequired[Advice]"
    allocates_each_donor: "NotRequired[bool]"
    appends: "NotRequired[bool]"
    creates_only: "NotRequired[bool]"
    huge_page_bytes: "NotRequired[int]"
    invalidates_each_pass: "NotRequired[bool]"
    locking: "NotRequired[Locking]"
    memory: "NotRequired[Memory]"
    new_files: "NotRequired[FileAccess]"
    remakes_each_pass: "NotRequired[bool]"
    renews_files: "NotRequired[bool]"
    stat: "NotRequired[StatCall]"
    write_hint: "NotRequired[WriteHint]"



class Histogram(TypedDict):
    count: "list[int]"
    index: "list[int]"
    max_ns: "NotRequired[int | None]"
    min_ns: "NotRequired[int | None]"
    overflow: "int"
    sub_bits: "int"
    sum_ns: "str"
    total: "int"



class IgnoredError(TypedDict):
    errno: "int"
    op: "OpKind"



class Inflation(TypedDict):
    factor: "float"
    share_above: "float"



class IoFailure(TypedDict):
    address: "int"
    count: "int"
    errno: "int"
    explanation: "str"
    length: "int"
    offset: "int"
    op: "OpKind"
    path: "str"
    returned: "int"



class IoLimit(TypedDict):
    device: "str"
    device_number: "list[Any]"
    group: "str"
    kind: "IoLimitKind"
    source: "str"
    value: "int"


IoLimitKind: TypeAlias = "Literal['read_bytes'] | Literal['write_bytes'] | Literal['read_count'] | Literal['write_count'] | Literal['latency_target'] | Literal['cost_weight']"

IoPriority = TypedDict(
    "IoPriority",
    {
        "class": "int",
        "hint": "NotRequired[int]",
        "level": "int",
    },
)


class JobPlan(TypedDict):
    buffer_alignment_bytes: "int"
    buffer_offset_bytes: "NotRequired[int]"
    command: "NotRequired[CommandPlan | None]"
    content: "Content"
    continue_on_error: "bool"
    control: "NotRequired[Control]"
    control_group: "NotRequired[ControlGroupPlan | None]"
    cpu_load: "NotRequired[CpuLoad | None]"
    cpus: "list[int]"
    direct: "DirectPolicy"
    directories: "NotRequired[list[str]]"
    engine: "EngineKind"
    exec: "NotRequired[ExecPlan | None]"
    file_selection: "FileSelection"
    files: "list[FilePlan]"
    files_at_a_time: "NotRequired[int]"
    flush: "Flush"
    follows: "NotRequired[Follow | None]"
    guard: "NotRequired[Guard]"
    handling: "NotRequired[Handling]"
    invalidate: "bool"
    ios_per_file: "NotRequired[int]"
    limits: "Limits"
    memory_policy: "NotRequired[MemoryPolicy | None]"
    name: "str"
    names: "NotRequired[NameSet | None]"
    nice: "NotRequired[int | None]"
    offset_alignment_bytes: "NotRequired[int]"
    offset_increment_bytes: "NotRequired[int]"
    output: "NotRequired[OutputPlan]"
    pace: "NotRequired[Pace | None]"
    pattern: "Pattern"
    phase: "int"
    pre_read: "NotRequired[bool]"
    priorities: "NotRequired[list[PriorityShare]]"
    queue: "Queue"
    replay: "NotRequired[ReplayPlan | None]"
    scheduling: "NotRequired[Scheduling]"
    seed: "int"
    simulated: "NotRequired[SimulatedDevice | None]"
    skipped_ios: "NotRequired[int]"
    source: "NotRequired[SourcePlan | None]"
    steady_state: "NotRequired[SteadyPlan | None]"
    strace: "NotRequired[bool]"
    sync: "SyncMode"
    think: "NotRequired[Think | None]"
    tolerance: "NotRequired[Tolerance]"
    trace_syscalls: "NotRequired[bool]"
    uring: "UringOptions"
    user: "NotRequired[UserPlan | None]"
    values: "list[PlanValue]"
    verify: "NotRequired[Verify | None]"
    workers: "int"
    write_flags: "WriteFlags"
    zones: "NotRequired[ZonePlan | None]"



class JobRecord(TypedDict):
    achieved_depth: "NotRequired[float | None]"
    backlog_count: "int"
    close_ns: "NotRequired[int | None]"
    criterion: "NotRequired[CriterionRecord | None]"
    depth_searches: "NotRequired[list[DepthSearch]]"
    elapsed_ns: "int"
    engine_notes: "list[str]"
    failures: "list[IoFailure]"
    name: "str"
    open_ns: "NotRequired[int | None]"
    ops: "list[OpRecord]"
    pacing_lateness: "Histogram"
    queue: "NotRequired[QueueCounts | None]"
    read_back: "NotRequired[ReadBack | None]"
    series: "list[SeriesRow]"
    source_wait_ns: "NotRequired[int | None]"
    threads: "NotRequired[ThreadUsage]"
    verified_block_count: "int"
    verify_failure_count: "int"
    verify_failures: "list[VerifyFailure]"
    workers: "NotRequired[list[JobRecord]]"
    zones: "NotRequired[ZoneUse | None]"



class JobSpec(TypedDict):
    fio: "NotRequired[FioJob | None]"
    name: "str"
    options: "dict[str, SpecValue]"



class JobSyscalls(TypedDict):
    calls: "NotRequired[list[SyscallRow]]"
    name: "NotRequired[str]"
    thread_count: "NotRequired[int]"



class JudgedLimit(TypedDict):
    condition: "str"
    high: "NotRequired[float | None]"
    load: "str"
    low: "NotRequired[float | None]"
    next_step: "NotRequired[str]"
    operation: "NotRequired[OpKind | None]"
    outcome: "LimitOutcome"
    sentence: "str"
    threshold: "NotRequired[float | None]"
    unit: "str"
    value: "NotRequired[float | None]"



class LatencyParts(TypedDict):
    device: "PartTimes"
    io_count: "int"
    op: "OpKind"
    rest: "PartTimes"
    scheduler: "PartTimes"
    total: "PartTimes"



class LatencySet(TypedDict):
    completion: "Histogram"
    from_intended: "Histogram"
    submission: "Histogram"
    total: "Histogram"



class LatencyTarget(TypedDict):
    keeps_running: "bool"
    percent: "float"
    target_ns: "int"
    window_ns: "int"



class Layer(TypedDict):
    depth: "int"
    facts: "NotRequired[list[NamedFact]]"
    kind: "LayerKind"
    name: "str"
    source: "str"


LayerKind: TypeAlias = "str"

LimitOutcome: TypeAlias = "Literal['met'] | Literal['undecided'] | Literal['missed']"


class LimitSet(TypedDict):
    conditions: "list[str]"
    reference: "NotRequired[Reference | None]"



class Limits(TypedDict):
    delays_from: "NotRequired[DelayStart]"
    io_bytes: "int"
    io_count: "NotRequired[int | None]"
    is_time_based: "bool"
    loops: "int"
    measures_short_ramp: "NotRequired[bool]"
    ramp_ns: "int"
    runtime_ns: "NotRequired[int | None]"
    start_delay_ns: "int"


Locking: TypeAlias = "Literal['none'] | Literal['exclusive'] | Literal['readwrite']"

LogKind: TypeAlias = "Literal['bw'] | Literal['iops'] | Literal['slat'] | Literal['clat'] | Literal['lat'] | Literal['histogram']"


class LogPlan(TypedDict):
    average_ns: "NotRequired[int]"
    bw: "NotRequired[str | None]"
    has_issue_time: "NotRequired[bool]"
    has_offset: "NotRequired[bool]"
    has_priority: "NotRequired[bool]"
    has_unix_time: "NotRequired[bool]"
    hist: "NotRequired[str | None]"
    hist_coarseness: "NotRequired[int]"
    hist_ns: "NotRequired[int]"
    iolog: "NotRequired[str | None]"
    iops: "NotRequired[str | None]"
    is_compressed: "NotRequired[bool]"
    is_shared: "NotRequired[bool]"
    lat: "NotRequired[str | None]"
    left_out: "NotRequired[list[LogKind]]"
    window: "NotRequired[LogWindow]"


LogWindow: TypeAlias = "Literal['mean'] | Literal['max'] | Literal['both']"


class LostRank(TypedDict):
    host: "str"
    rank: "int"
    reason: "str"


Mark: TypeAlias = "Literal['confirmed'] | Literal['unverified'] | Literal['unsteady'] | Literal['disturbed'] | Literal['not the disk'] | Literal['withheld'] | Literal['failed']"

Memory: TypeAlias = "Literal['malloc'] | Literal['mmap'] | Literal['mmap_shared'] | Literal['mmap_huge'] | Literal['shm'] | Literal['shm_huge']"

MemoryMode: TypeAlias = "Literal['default'] | Literal['prefer'] | Literal['bind'] | Literal['interleave'] | Literal['local']"


class MemoryPolicy(TypedDict):
    mode: "MemoryMode"
    nodes: "NotRequired[list[int]]"



class MethodInterleaved(TypedDict):
    head_ns: "int"
    how: "Literal['interleaved']"
    look_count: "int"
    look_max: "int"
    round_count: "int"
    round_max: "int"
    seed: "int"
    slice_ns: "int"



class MethodRecords(TypedDict):
    how: "Literal['records']"


Method: TypeAlias = "MethodInterleaved | MethodRecords"

Metric: TypeAlias = "Literal['bandwidth'] | Literal['iops'] | Literal['p50'] | Literal['p99'] | Literal['p999'] | Literal['cpu_per_io']"


class NameCounts(TypedDict):
    block_bytes: "int"
    ios: "int"
    names: "int"



class NameSet(TypedDict):
    branch: "int"
    depth: "int"
    file_bytes: "int"
    in_leaves: "bool"
    is_compared: "NotRequired[bool]"
    is_made_here: "bool"
    is_new: "bool"
    is_private: "bool"
    is_tree: "bool"
    owner: "int"
    stays: "bool"
    syncs_files: "NotRequired[bool]"
    syncs_filesystem: "NotRequired[bool]"



class NamedFact(TypedDict):
    fact: "Fact2"
    name: "str"



class Needs(TypedDict):
    pair_count: "int"
    time_ns: "int"



class Objection(TypedDict):
    brief: "NotRequired[str]"
    cause: "Cause"
    check: "str"
    expected: "NotRequired[str]"
    found: "NotRequired[str]"
    is_accepted: "NotRequired[bool]"
    outcome: "CheckOutcome"
    sentence: "str"


OpKind: TypeAlias = "Literal['read'] | Literal['write'] | Literal['trim'] | Literal['sync']"


class OpMixOnly(TypedDict):
    only: "OpKind"



class OpMixReadWrite(TypedDict):
    read_write: "dict[str, Any]"


OpMix: TypeAlias = "OpMixOnly | OpMixReadWrite"


class OpRecord(TypedDict):
    byte_count: "int"
    dependence: "NotRequired[Dependence | None]"
    error_count: "int"
    io_count: "int"
    ios_per_s: "NotRequired[Estimate | None]"
    latency: "LatencySet"
    mean_latency_ns: "NotRequired[Estimate | None]"
    op: "OpKind"
    percentiles: "NotRequired[list[Percentile]]"
    priorities: "NotRequired[list[PriorityRecord]]"
    short_count: "int"


Order0: TypeAlias = "Literal['sequential']"


class OrderRandom(TypedDict):
    random: "dict[str, Any]"


Order: TypeAlias = "Order0 | OrderRandom"

OriginDefault = TypedDict(
    "OriginDefault",
    {
        "from": "Literal['default']",
    },
)

OriginFile = TypedDict(
    "OriginFile",
    {
        "from": "Literal['file']",
        "line": "int",
        "path": "str",
    },
)

OriginFlag = TypedDict(
    "OriginFlag",
    {
        "flag": "str",
        "from": "Literal['flag']",
    },
)

OriginPreset = TypedDict(
    "OriginPreset",
    {
        "from": "Literal['preset']",
        "name": "str",
    },
)

OriginDerived = TypedDict(
    "OriginDerived",
    {
        "from": "Literal['derived']",
        "reason": "str",
    },
)

Origin: TypeAlias = "OriginDefault | OriginFile | OriginFlag | OriginPreset | OriginDerived"


class OutcomeComplete(TypedDict):
    how: "Literal['complete']"



class OutcomeInterrupted(TypedDict):
    how: "Literal['interrupted']"
    signal: "str"



class OutcomeFailed(TypedDict):
    how: "Literal['failed']"
    reason: "str"


Outcome: TypeAlias = "OutcomeComplete | OutcomeInterrupted | OutcomeFailed"


class OutputPlan(TypedDict):
    bw_average_ns: "NotRequired[int]"
    clat_percentiles: "NotRequired[bool]"
    grouping: "NotRequired[Grouping]"
    hides_bw: "NotRequired[bool]"
    hides_clat: "NotRequired[bool]"
    hides_lat: "NotRequired[bool]"
    hides_slat: "NotRequired[bool]"
    iops_average_ns: "NotRequired[int]"
    lat_percentiles: "NotRequired[bool]"
    logs: "NotRequired[LogPlan]"
    names: "NotRequired[NameCounts | None]"
    new_group: "NotRequired[bool]"
    percentiles: "NotRequired[list[float]]"
    shows_draws: "NotRequired[bool]"
    shows_files: "NotRequired[bool]"
    shows_ios: "NotRequired[bool]"
    shows_verify: "NotRequired[bool]"
    slat_percentiles: "NotRequired[bool]"
    unified: "NotRequired[Unified]"



class Pace(TypedDict):
    arrivals: "Arrivals"
    bytes_per_s: "NotRequired[float | None]"
    ios_per_s: "NotRequired[float | None]"
    of_writes: "NotRequired[float | None]"



class Part(TypedDict):
    answers: "list[Answer]"
    name: "str"
    sides: "list[Side]"



class PartTimes(TypedDict):
    mean_ns: "int"
    p50_ns: "int"
    p99_ns: "int"



class Pattern(TypedDict):
    mix: "OpMix"
    order: "Order"
    read_sizes: "BlockSizes"
    steps: "NotRequired[Steps]"
    trim_sizes: "BlockSizes"
    write_sizes: "BlockSizes"



class Percentile(TypedDict):
    high_ns: "NotRequired[int | None]"
    latency_ns: "int"
    low_ns: "NotRequired[int | None]"
    needs_ns: "NotRequired[int | None]"
    percent: "float"



class PhaseRecord(TypedDict):
    begin_ns: "int"
    checks: "list[Check]"
    cpu: "CpuTime"
    devices: "list[DeviceDelta]"
    disturbances: "NotRequired[list[DisturbedSpan]]"
    elapsed_ns: "int"
    jobs: "list[JobRecord]"
    level: "EvidenceLevel"
    name: "str"
    outcome: "Outcome"
    residency: "list[list[Any]]"
    steady_state: "NotRequired[SteadyState | None]"
    syscalls: "NotRequired[SyscallTrace | None]"
    trace: "NotRequired[TraceRecord | None]"
    verdict: "Verdict"
    worker_cpu: "CpuTime"



class Plan(TypedDict):
    accepted_checks: "NotRequired[list[str]]"
    idle_baseline_ns: "int"
    idle_wait_ns: "NotRequired[int | None]"
    jobs: "list[JobPlan]"
    limits: "NotRequired[LimitSet | None]"
    notes: "list[str]"



class PlanValue(TypedDict):
    name: "str"
    origin: "Origin"
    value: "str"



class PowerLoss(TypedDict):
    acknowledged: "int"
    at_risk: "int"
    cuts: "int"
    is_kept: "bool"
    lost: "int"
    methods: "list[str]"
    opposed_by: "NotRequired[str | None]"
    reach: "PowercutReach"
    reach_reason: "str"
    record_id: "str"
    started_at: "str"


PowercutReach: TypeAlias = "Literal['disk'] | Literal['memory']"

Prepare: TypeAlias = "Literal['use_existing'] | Literal['create_filled'] | Literal['create_allocated'] | Literal['create_empty'] | Literal['create_reserved'] | Literal['create_sparse'] | Literal['nothing']"


class PriorityRecord(TypedDict):
    latency: "LatencySet"
    priority: "IoPriority"



class PriorityShare(TypedDict):
    length_bytes: "NotRequired[int | None]"
    op: "OpKind"
    percent: "int"
    priority: "IoPriority"



class ProcessorWait(TypedDict):
    involuntary_switch_count: "NotRequired[int]"
    run_count: "NotRequired[int]"
    wait_ns: "NotRequired[int]"


Quantity: TypeAlias = "Literal['iops'] | Literal['bandwidth'] | Literal['mean'] | Literal['p50'] | Literal['p99'] | Literal['p99.9'] | Literal['max']"


class Queue(TypedDict):
    complete_max: "int"
    complete_min: "int"
    depth: "int"
    low: "NotRequired[int]"
    serializes_overlap: "NotRequired[bool]"
    submit_batch: "NotRequired[int | None]"



class QueueCounts(TypedDict):
    complete: "list[int]"
    depth: "list[int]"
    submit: "list[int]"



class RangeSync(TypedDict):
    every: "int"
    waits_after: "bool"
    waits_before: "bool"
    writes: "bool"



class RankRecord(TypedDict):
    boot_id: "str"
    host: "str"
    rank: "int"
    record: "RunRecord"



class RankSpan(TypedDict):
    begin_ns: "int"
    byte_count: "int"
    clock_after: "NotRequired[ClockOffset | None]"
    clock_before: "ClockOffset"
    common_bytes: "float"
    common_io_count: "float"
    end_ns: "int"
    io_count: "int"
    late_ns: "int"
    rank: "int"



class Ratio(TypedDict):
    alpha: "float"
    estimate: "float"
    high: "float"
    low: "float"
    p: "NotRequired[float | None]"
    pair_count: "int"



class ReadBack(TypedDict):
    elapsed_ns: "int"
    loops_ns: "NotRequired[int]"
    reads: "OpRecord"
    within_count: "int"



class Reference(TypedDict):
    figures: "list[AnsweredFigure]"
    loads: "list[ReferenceLoad]"
    record_id: "str"
    started_at: "str"



class ReferenceLoad(TypedDict):
    name: "str"
    shape: "str"



class ReplayPlan(TypedDict):
    align_bytes: "int"
    is_paced: "bool"
    length_bytes_max: "int"
    log: "str"
    names: "list[str]"
    offset_divisor: "int"
    ops: "list[OpKind]"
    redirect: "NotRequired[str | None]"
    skips: "list[OpKind]"
    time_scale_percent: "int"



class RequestPlaces(TypedDict):
    begin_bytes: "NotRequired[int]"
    column_count: "NotRequired[int]"
    disk: "NotRequired[str]"
    end_bytes: "NotRequired[int]"
    index: "NotRequired[list[int]]"
    other_count: "NotRequired[list[int]]"
    outside_count: "NotRequired[int]"
    own_count: "NotRequired[list[int]]"
    row_count: "NotRequired[int]"
    span_ns: "NotRequired[int]"



class RequestSum(TypedDict):
    bytes: "NotRequired[int]"
    count: "NotRequired[int]"



class Residency(TypedDict):
    cached_pages: "int"
    dirty_pages: "NotRequired[int | None]"
    page_bytes: "int"
    region_pages: "int"
    source: "str"



class Ruler(TypedDict):
    clock: "str"
    clock_cost_ns: "float"
    clock_resolution_ns: "float"
    null_cpu_ns_per_io: "float"
    null_latency_ns_p50: "int"



class RunAnswer(TypedDict):
    accept_hint: "NotRequired[str | None]"
    decision: "NotRequired[Decision | None]"
    evidence: "str"
    figures: "list[AnsweredFigure]"
    findings: "list[AnsweredFinding]"
    headline: "str"
    levels: "NotRequired[str | None]"
    limits: "NotRequired[list[JudgedLimit]]"
    next_steps: "list[str]"
    not_checked: "NotRequired[list[str]]"
    notes: "NotRequired[list[str]]"
    phases: "NotRequired[list[AnsweredPhase]]"
    statements: "list[Statement]"



class RunRecord(TypedDict):
    answer: "NotRequired[RunAnswer | None]"
    cluster: "NotRequired[ClusterRecord | None]"
    command: "list[str]"
    environment: "Environment"
    format: "Literal['trueio-record']"
    id: "str"
    kind: "str"
    outcome: "Outcome"
    phases: "list[PhaseRecord]"
    plan: "Plan"
    power_loss: "NotRequired[PowerLoss | None]"
    ruler: "Ruler"
    spec: "list[JobSpec]"
    started_at: "str"
    started_unix_ms: "NotRequired[int]"
    started_unix_s: "int"
    targets: "list[TargetFacts]"
    tool: "ToolFacts"
    version: "int"



class Scheduling(TypedDict):
    ends_others: "NotRequired[bool]"
    ends_others_on_error: "NotRequired[bool]"
    ends_run: "NotRequired[bool]"
    io_hint: "NotRequired[int]"
    io_priority: "NotRequired[list[Any] | None]"
    shares_cpus: "NotRequired[bool]"
    starts_after_failure: "NotRequired[bool]"



class SeriesRow(TypedDict):
    end_ns: "int"
    latency_ns_max: "int"
    latency_ns_p50: "int"
    latency_ns_p99: "int"
    other_count: "int"
    read_bytes: "int"
    read_count: "int"
    span_ns: "int"
    trim_bytes: "NotRequired[int]"
    trim_count: "NotRequired[int]"
    write_bytes: "int"
    write_count: "int"



class Side(TypedDict):
    detail: "str"
    figures: "list[Figure]"
    latency: "Histogram"
    level: "EvidenceLevel"
    name: "str"
    objections: "NotRequired[list[Objection]]"
    percentiles: "NotRequired[list[list[Any]]]"
    reasons: "list[str]"
    slices: "list[Slice]"
    syscalls: "NotRequired[SyscallTrace | None]"
    verdict: "Verdict"
    word: "NotRequired[Mark | None]"



class SimulatedDevice(TypedDict):
    channels: "int"
    failing_ios: "list[int]"
    service_ns: "int"
    slowdowns: "NotRequired[list[list[Any]]]"
    stalls: "list[list[Any]]"



class Slice(TypedDict):
    begin_ns: "int"
    figures: "list[Figure]"
    place: "int"
    round: "int"
    verdict: "Verdict"



class SourceAddress(TypedDict):
    host: "str"
    path: "str"
    port: "int"



class SourcePlan(TypedDict):
    address: "SourceAddress"
    direct_bytes: "int"
    is_verified: "bool"
    length_bytes: "int"



class SpecValue(TypedDict):
    origin: "Origin"
    text: "str"


StatCall: TypeAlias = "Literal['statx'] | Literal['stat'] | Literal['lstat']"


class Statement(TypedDict):
    kind: "StatementKind"
    rests_on: "list[Ground]"
    sentence: "str"


StatementKind: TypeAlias = "Literal['class'] | Literal['database'] | Literal['limit'] | Literal['past'] | Literal['power_loss'] | Literal['winner']"


class SteadyPlan(TypedDict):
    round_ns: "int"
    rounds_max: "int"



class SteadyRound(TypedDict):
    bytes_per_s: "float"
    elapsed_ns: "int"
    ios_per_s: "float"
    latency_ns_p99: "NotRequired[int | None]"



class SteadyState(TypedDict):
    excursion_percent_max: "float"
    is_attained: "bool"
    range_percent_max: "float"
    rounds: "list[SteadyRound]"
    variables: "list[SteadyVariable]"
    window_rounds: "int"



class SteadyVariable(TypedDict):
    excursion_percent: "NotRequired[float | None]"
    is_steady: "bool"
    name: "str"
    range_percent: "NotRequired[float | None]"



class Steps(TypedDict):
    align_bytes: "NotRequired[int]"
    is_unaligned: "NotRequired[bool]"
    of_writes: "NotRequired[WriteSteps | None]"
    random_every: "NotRequired[int]"
    repeats: "NotRequired[bool]"
    sequential_percent: "NotRequired[int]"
    skip_bytes: "NotRequired[int]"
    trims_first: "NotRequired[bool]"
    zones: "NotRequired[Zones | None]"


SyncMode: TypeAlias = "Literal['none'] | Literal['dsync'] | Literal['sync']"


class SyncOrder(TypedDict):
    failure_example: "NotRequired[str | None]"
    flushed_count: "NotRequired[int]"
    fua_count: "NotRequired[int]"
    sampled_count: "NotRequired[int]"
    uncached_count: "NotRequired[int]"
    unflushed_count: "NotRequired[int]"
    unplaced_count: "NotRequired[int]"
    unwritten_count: "NotRequired[int]"



class SyscallError(TypedDict):
    count: "NotRequired[int]"
    errno: "NotRequired[int]"



class SyscallIo(TypedDict):
    asked: "NotRequired[SyscallSizes]"
    flags: "NotRequired[list[list[Any]]]"
    opened: "NotRequired[list[list[Any]]]"
    places: "NotRequired[SyscallPlaces | None]"
    returned: "NotRequired[SyscallSizes]"
    unit: "NotRequired[SyscallUnit]"



class SyscallPlaces(TypedDict):
    begin_bytes: "NotRequired[int]"
    end_bytes: "NotRequired[int]"
    following_count: "NotRequired[int]"
    is_unique_least: "NotRequired[bool]"
    placed_count: "NotRequired[int]"
    sequential_count: "NotRequired[int]"
    unique_count: "NotRequired[int]"



class SyscallRow(TypedDict):
    count: "NotRequired[int]"
    errors: "NotRequired[list[SyscallError]]"
    io: "NotRequired[SyscallIo | None]"
    latency: "NotRequired[Histogram]"
    name: "NotRequired[str]"
    number: "NotRequired[int]"
    unfinished_count: "NotRequired[int]"



class SyscallSizes(TypedDict):
    counts: "NotRequired[list[list[Any]]]"
    other_count: "NotRequired[int]"
    sum: "NotRequired[int]"



class SyscallTrace(TypedDict):
    jobs: "NotRequired[list[JobSyscalls]]"
    lost_event_count: "NotRequired[int]"
    missing: "NotRequired[str | None]"
    span_ns: "NotRequired[int]"
    thread_cpu_ns: "NotRequired[int]"


SyscallUnit: TypeAlias = "Literal['bytes'] | Literal['ios']"


class TargetFacts(TypedDict):
    direct: "DirectFacts"
    disks: "list[DiskFacts]"
    driven: "NotRequired[DrivenDisk | None]"
    filesystem: "NotRequired[FilesystemFacts | None]"
    io_limits: "NotRequired[Fact12]"
    kind: "TargetKind"
    path: "str"
    size_bytes: "Fact"
    stack: "list[Layer]"


TargetKind: TypeAlias = "Literal['directory'] | Literal['file'] | Literal['block_device'] | Literal['character_device']"


class Think(TypedDict):
    after_ns: "NotRequired[int]"
    every: "int"
    spin_ns: "NotRequired[int]"
    time_ns: "int"



class ThreadUsage(TypedDict):
    context_switch_count: "NotRequired[int]"
    elapsed_ns: "NotRequired[int]"
    major_fault_count: "NotRequired[int]"
    minor_fault_count: "NotRequired[int]"
    system_ns: "NotRequired[int]"
    user_ns: "NotRequired[int]"
    waiting: "NotRequired[ProcessorWait | None]"



class Tolerance(TypedDict):
    ends_when_full: "NotRequired[bool]"
    ignored: "NotRequired[list[IgnoredError]]"
    reads: "NotRequired[bool]"
    writes: "NotRequired[bool]"



class ToolFacts(TypedDict):
    build: "str"
    name: "str"
    version: "str"



class TraceRecord(TypedDict):
    below: "NotRequired[BelowTrace | None]"
    disks: "NotRequired[list[str]]"
    filesystem: "NotRequired[RequestSum]"
    inseparable: "NotRequired[str | None]"
    kernel_work: "NotRequired[list[TracedProcess]]"
    latency: "NotRequired[list[LatencyParts]]"
    lost_event_count: "NotRequired[int]"
    missing: "NotRequired[str | None]"
    other_processes: "NotRequired[list[TracedProcess]]"
    others: "NotRequired[RequestSum]"
    others_busy_ns: "NotRequired[int]"
    ours: "NotRequired[RequestSum]"
    ours_by_kernel: "NotRequired[RequestSum]"
    own_elsewhere: "NotRequired[RequestSum]"
    places: "NotRequired[RequestPlaces | None]"
    requeued_count: "NotRequired[int]"
    syncs: "NotRequired[SyncOrder]"
    thread_cpu_ns: "NotRequired[int]"
    transfers: "NotRequired[TransferMatch]"
    unattributed: "NotRequired[RequestSum]"
    window_count: "NotRequired[int]"
    window_ns: "NotRequired[int]"
    write_back: "NotRequired[list[TracedProcess]]"



class TracedProcess(TypedDict):
    disk: "NotRequired[str]"
    has_ended: "NotRequired[bool]"
    in_files_bytes: "NotRequired[int]"
    name: "NotRequired[str]"
    process: "NotRequired[int]"
    read_bytes: "NotRequired[int]"
    write_bytes: "NotRequired[int]"



class TransferMatch(TypedDict):
    matched_count: "NotRequired[int]"
    merged_count: "NotRequired[int]"
    missing_count: "NotRequired[int]"
    missing_example: "NotRequired[str | None]"
    sampled_count: "NotRequired[int]"
    split_count: "NotRequired[int]"
    unplaced_count: "NotRequired[int]"


Transport: TypeAlias = "str"


class TrimVerify(TypedDict):
    backlog: "int"
    batch: "NotRequired[int]"
    is_zero: "bool"
    percent: "int"


Unified: TypeAlias = "Literal['no'] | Literal['mixed'] | Literal['both']"


class UringOptions(TypedDict):
    async_every: "NotRequired[int]"
    drain: "NotRequired[bool]"
    iopoll: "bool"
    registered_buffers: "bool"
    registered_files: "bool"
    sqpoll: "bool"
    sqpoll_cpu: "NotRequired[int | None]"
    vectored: "NotRequired[bool]"



class UsbAlternate(TypedDict):
    number: "int"
    pipes: "list[int]"
    protocol: "int"
    stream_count: "int"
    subclass: "int"



class UsbFacts(TypedDict):
    can_superspeed: "Fact5"
    device: "str"
    driver: "Fact2"
    id: "Fact2"
    interface: "str"
    link_mbit_per_s: "Fact9"
    manufacturer: "Fact2"
    offers: "Fact10"
    port_mbit_per_s: "Fact9"
    product: "Fact2"
    queue_depth: "Fact4"
    release: "Fact2"
    serial: "Fact2"
    transport: "UsbTransport"
    usb_version: "Fact2"


UsbTransport: TypeAlias = "Literal['uas'] | Literal['bot'] | Literal['none'] | Literal['other']"


class UserPlan(TypedDict):
    gid: "int"
    uid: "int"


Verdict: TypeAlias = "Literal['supported'] | Literal['unverified'] | Literal['suspect'] | Literal['contradicted']"


class Verify(TypedDict):
    backlog: "NotRequired[int]"
    backlog_batch: "NotRequired[int]"
    checksum: "Checksum"
    dump_directory: "NotRequired[str | None]"
    dumps: "NotRequired[bool]"
    each_loop: "NotRequired[bool]"
    header_offset_bytes: "NotRequired[int]"
    interval_bytes: "NotRequired[int]"
    is_offline: "NotRequired[bool]"
    is_shared: "NotRequired[bool]"
    loads_state: "NotRequired[bool]"
    pattern: "NotRequired[BlockPattern | None]"
    pattern_interval_bytes: "NotRequired[int]"
    reads_back: "NotRequired[bool]"
    saves_state: "NotRequired[bool]"
    state_file: "NotRequired[str | None]"
    stops_at_first: "NotRequired[bool]"
    synced_only: "NotRequired[bool]"
    threads: "NotRequired[int]"
    trim: "NotRequired[TrimVerify | None]"



class VerifyFailure(TypedDict):
    expected: "str"
    found: "str"
    length: "int"
    numbers: "NotRequired[list[int] | None]"
    offset: "int"
    part: "NotRequired[BlockPart]"
    path: "str"
    pattern_byte: "NotRequired[int | None]"


WriteCache: TypeAlias = "str"


class WriteFlags(TypedDict):
    atomic: "bool"
    dontcache: "bool"
    dsync: "bool"
    hipri: "bool"
    hipri_percent: "NotRequired[int | None]"
    nowait: "NotRequired[bool]"


WriteHint: TypeAlias = "Literal['unchanged'] | Literal['none'] | Literal['short'] | Literal['medium'] | Literal['long'] | Literal['extreme']"


class WriteSteps(TypedDict):
    align_bytes: "int"
    sequential_percent: "int"


ZoneModel: TypeAlias = "str"


class ZonePlan(TypedDict):
    capacity_bytes: "int"
    early_resets: "NotRequired[EarlyResets | None]"
    ignores_device_limits: "bool"
    is_emulated: "bool"
    open_max: "int"
    reads_beyond: "bool"
    skip_zones: "int"
    worker_open_max: "int"
    writes_remainder: "bool"
    zone_bytes: "int"



class ZoneUse(TypedDict):
    finish_count: "int"
    reset_count: "int"
    sequential_count: "int"
    source: "str"
    zone_bytes: "int"
    zone_count: "int"



class Zones(TypedDict):
    range_bytes: "int"
    skip_bytes: "int"
    zone_bytes: "int"

