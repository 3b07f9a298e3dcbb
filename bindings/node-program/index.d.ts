import type {
  AnsweredFigure,
  Comparison as ComparisonDocument,
  DocumentAnswer,
  GateResult,
  Histogram as HistogramDocument,
  Mark,
  RunAnswer,
  RunRecord,
} from './documents';

/** A value of an option of a job. */
export type OptionValue = string | number | bigint | boolean | readonly (string | number)[];
/** The options of one job, by name; `trueio-job(5)` lists them. */
export type JobOptions = { readonly [option: string]: OptionValue };
/** The path of a job file, the options of one job, or the tables of a job file. */
export type Job =
  | string
  | JobOptions
  | { readonly defaults?: JobOptions; readonly job: { readonly [name: string]: JobOptions } };

export type OpName = 'read' | 'write' | 'trim' | 'sync';
/** The word of a load: `confirmed`, `unverified`, `unsteady`, `disturbed`, `not the disk`, `withheld`, `failed`. */
export type Verdict = Mark;
/** A figure with its unit, interval, sample and word. */
export type Figure = AnsweredFigure;
export type Metric = 'bandwidth' | 'iops' | 'p50' | 'p99' | 'p999' | 'cpu_per_io';
export type Conclusion = 'better' | 'better_size_unclear' | 'worse' | 'worse_size_unclear' | 'same' | 'cannot_tell';

/** An event of a run. Latencies are in nanoseconds; `null` is unknown. */
export type Progress =
  | { event: 'preparing'; path: string; done_bytes: number; size_bytes: number }
  | { event: 'phase'; phase: string; index: number; count: number }
  | { event: 'round'; phase: string; index: number; count: number; round: number; rounds_max: number }
  | {
      event: 'progress';
      phase: string;
      index: number;
      count: number;
      /** The share of the phase that is done, from 0 to 1. */
      fraction: number;
      bytes_per_s: number;
      ios_per_s: number;
      latency_ns_p50: number | null;
      latency_ns_p99: number | null;
      left_ns: number | null;
    }
  | { event: 'comparison'; round: number; rounds_max: number; left_ns: number; answers: ComparisonAnswer[] };

/** How a side compares with the first after a round; `null` is not known yet. */
export interface ComparisonAnswer {
  /** Its index. */
  side: number;
  metric: Metric;
  conclusion: Conclusion;
  /** Its value over that of the first side, and the interval. */
  ratio: number | null;
  low: number | null;
  high: number | null;
}

export interface CallOptions {
  /** Interrupts the run when it is aborted; the error has what was measured. */
  signal?: AbortSignal;
  /** Interrupts the run after this number of milliseconds. */
  timeout?: number;
  /** The directory of relative paths. */
  cwd?: string;
}

export interface RunOptions extends CallOptions {
  /** Store the record in the history, as the command does. Default: false. */
  history?: boolean;
  /** Collect evidence. Default: true. */
  evidence?: boolean;
  /** Checks whose findings are accepted. */
  accept?: readonly string[];
}

export interface BaselineOptions extends RunOptions {
  /** `quick` takes about 10 seconds, `usual` a minute. */
  extent?: 'usual' | 'quick' | 'thorough';
}

export interface CompareOptions extends CallOptions {
  /** Run the job files now, interleaved. */
  live?: boolean;
  /** Create the sides from one job by varying an option. */
  vary?: { readonly [option: string]: readonly (string | number)[] };
  /** Time limit of the command: `60s`. */
  budget?: string;
  /** Differences up to this count as none: `5%`. */
  margin?: string;
  /** Gates: `p99 > +5%`. */
  failIf?: readonly string[];
  evidence?: boolean;
  acceptDifferences?: readonly string[];
}

/** A run that has begun: a promise of its document, and an async iterable of its progress. */
export interface Run<T> extends PromiseLike<T>, AsyncIterable<Progress> {
  catch<R>(reject: (error: unknown) => R): Promise<T | R>;
  finally(handle: () => void): Promise<T>;
}

export interface Selection {
  op?: OpName;
  job?: string;
  phase?: string;
  /** Default: `total`. */
  latency?: 'total' | 'submission' | 'completion' | 'from_intended';
}

export class Histogram {
  constructor(document: HistogramDocument);
  readonly count: number;
  readonly minNs: number | null;
  readonly maxNs: number | null;
  readonly sumNs: bigint;
  readonly meanNs: number | null;
  /** The occupied buckets, smallest first: smallest value, largest value, count. */
  buckets(): Generator<[number, number, number]>;
  valueAtRank(rank: number): number | null;
  /** A percentile in nanoseconds; `null` if the sample does not support it: p99.9 needs 3,688 values. */
  percentile(percent: number): number | null;
  merged(other: Histogram): Histogram;
}

/** One run, whole. */
export class Record {
  constructor(document: RunRecord);
  static parse(text: string): Record;
  readonly document: RunRecord;
  readonly id: string;
  readonly outcome: 'complete' | 'interrupted' | 'failed';
  /** What every output of the program prints of it. That of an earlier version is derived by the program. */
  readonly answer: RunAnswer;
  /** The worst word of all phases; `null` if nothing was measured. */
  readonly verdict: Verdict | null;
  readonly reasons: string[];
  /** A figure of the answer by its name: `iops`, `bandwidth`, `mean`, `p50`, `p99`, `p99.9`, `max`. */
  figure(name: string, where?: { load?: string; op?: OpName }): Figure;
  histogram(selection?: Selection): Histogram;
  /**
   * A percentile of the latency in nanoseconds, computed from all I/Os; `null` if there are too few.
   * Throws ContradictedError if the figures are withheld, unless `allowContradicted` is set.
   */
  percentile(percent: number, selection?: Selection & { allowContradicted?: boolean }): number | null;
}

export class Comparison {
  constructor(document: ComparisonDocument);
  static parse(text: string): Comparison;
  readonly document: ComparisonDocument;
  readonly answer: DocumentAnswer;
  /** A figure of the answer by its name: `iops` of a side, `change of iops`. */
  figure(name: string, where?: { load?: string }): Figure;
  readonly gates: GateResult[];
  readonly hasFailed: boolean;
  readonly isUndecided: boolean;
  conclusion(metric: Metric, where?: { side?: number; part?: string }): Conclusion;
}

export function run(job: Job, options?: RunOptions): Run<Record>;
export function baseline(target?: string, options?: BaselineOptions): Run<Record>;
export function compare(sides: readonly (string | Record)[], options?: CompareOptions): Run<Comparison>;
/** The path of the program: that of TRUEIO_PROGRAM, the one in this package, or `trueio` of PATH. */
export function findProgram(): string;

export class TrueioError extends Error {
  readonly code: string;
}
/** The program was not found, or does not run on this machine. */
export class ProgramError extends TrueioError {}
/** The request was refused or malformed. Nothing was touched. */
export class RefusedError extends TrueioError {
  /** The identifier of the rule that refuses it; undefined if the request is malformed. */
  readonly rule?: string;
  readonly hint?: string;
}
/** The run failed. */
export class FailedError extends TrueioError {
  readonly record?: Record;
}
export class TimedOutError extends TrueioError {
  readonly record?: Record;
}
export class AbortError extends TrueioError {
  readonly record?: Record;
}
/** The kernel or the device counted something that contradicts the figure. */
export class ContradictedError extends TrueioError {
  readonly reasons: string[];
}
/** A text is not a document of trueio, or a newer version wrote it. */
export class DocumentError extends TrueioError {}
