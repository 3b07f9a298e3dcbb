'use strict';
// The documents of the program: records and comparisons.

const { ContradictedError, DocumentError } = require('./errors');
const { Histogram } = require('./histogram');

const VERDICTS = ['supported', 'unverified', 'suspect', 'contradicted'];

/** Reads a document of this format, up to this version. */
function parse(text, kind, format, version) {
  let document;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw new DocumentError(`this is not JSON: ${error.message}`);
  }
  if (document === null || typeof document !== 'object' || document.format !== format) {
    throw new DocumentError(`this JSON is not a ${kind} of trueio`);
  }
  const found = document.version;
  if (!Number.isInteger(found) || found < 1) {
    throw new DocumentError(`this ${kind} has no valid version: \`version\` is ${JSON.stringify(found)}`);
  }
  if (found > version) {
    throw new DocumentError(
      `this ${kind} has version ${found}; this package reads up to version ${version} (a newer trueio reads it)`
    );
  }
  return document;
}

class Record {
  constructor(document) {
    this.document = document;
  }

  static parse(text) {
    return new Record(parse(text, 'record', 'trueio-record', 3));
  }

  get id() {
    return this.document.id;
  }

  get outcome() {
    return this.document.outcome.how;
  }

  get verdict() {
    const indexes = this.document.phases.map((phase) => VERDICTS.indexOf(phase.verdict));
    return indexes.length === 0 ? null : VERDICTS[Math.max(...indexes)];
  }

  get reasons() {
    return this.document.phases.flatMap((phase) =>
      phase.checks
        .filter((check) => check.outcome === 'suspect' || check.outcome === 'contradicted')
        .map((check) => `${phase.name}: ${check.sentence}`)
    );
  }

  /** The selected operations, each with its phase and job. */
  select({ op, job, phase } = {}) {
    const all = this.document.phases.flatMap((aPhase) =>
      aPhase.jobs.flatMap((aJob) => aJob.ops.map((anOp) => ({ phase: aPhase, job: aJob, op: anOp })))
    );
    const found = all.filter(
      (row) =>
        (op === undefined || row.op.op === op) &&
        (job === undefined || row.job.name === job) &&
        (phase === undefined || row.phase.name === phase)
    );
    if (found.length === 0) {
      const known = all.map((row) => `${row.job.name} ${row.op.op}`).join(', ') || 'none';
      throw new RangeError(`the record has no such figures (${JSON.stringify({ op, job, phase })}); it has ${known}`);
    }
    return found;
  }

  histogram(selection = {}) {
    const { latency = 'total' } = selection;
    const found = this.select(selection);
    return found.map((row) => new Histogram(row.op.latency[latency])).reduce((sum, next) => sum.merged(next));
  }

  percentile(percent, selection = {}) {
    const contradicted = this.select(selection).filter((row) => row.phase.verdict === 'contradicted');
    if (contradicted.length > 0 && !selection.allowContradicted) {
      const [{ phase }] = contradicted;
      const reasons = phase.checks
        .filter((check) => check.outcome === 'contradicted')
        .map((check) => `${check.name}: ${check.sentence}`);
      throw new ContradictedError(
        `the evidence contradicts the figures of \`${phase.name}\`: ${reasons.join(' ')}`,
        reasons
      );
    }
    return this.histogram(selection).percentile(percent);
  }
}

class Comparison {
  constructor(document) {
    this.document = document;
  }

  static parse(text) {
    return new Comparison(parse(text, 'comparison', 'trueio-comparison', 1));
  }

  get gates() {
    return this.document.gates;
  }

  get hasFailed() {
    return this.gates.some((gate) => gate.verdict === 'shown');
  }

  get isUndecided() {
    return !this.hasFailed && this.gates.some((gate) => gate.verdict === 'cannot_tell');
  }

  conclusion(metric, { side = 1, part } = {}) {
    for (const aPart of this.document.parts) {
      if (part !== undefined && aPart.name !== part) continue;
      const answer = aPart.answers.find((one) => one.metric === metric && one.side === side);
      if (answer) return answer.conclusion;
    }
    throw new RangeError(`the comparison has no answer about ${metric} of side ${side}`);
  }
}

module.exports = { Comparison, Record };
