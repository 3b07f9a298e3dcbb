'use strict';
// The documents of the program: records and comparisons.

const { spawnSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { ContradictedError, DocumentError, ProgramError } = require('./errors');
const { Histogram } = require('./histogram');
const { findProgram } = require('./program');

/** The words of a load, the worst last. */
const WORDS = ['confirmed', 'unverified', 'unsteady', 'disturbed', 'not the disk', 'withheld', 'failed'];

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

/** Returns the answer of a document. The program derives that of a document of an earlier version. */
function answerIn(document) {
  if (document.answer) return document.answer;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'trueio-report-'));
  try {
    const source = path.join(folder, 'document.json');
    fs.writeFileSync(source, JSON.stringify(document), { flag: 'wx' });
    const ended = spawnSync(findProgram(), ['report', source, '--json'], { encoding: 'utf8', maxBuffer: 2 ** 30 });
    if (ended.status !== 0) throw new ProgramError(`\`trueio report --json\` failed: ${(ended.stderr || '').trim()}`);
    return JSON.parse(ended.stdout).answer;
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the figure with a name of a load, or of the first load. */
function figureOf(answer, name, { load, op }) {
  const found = answer.figures.find(
    (one) =>
      one.name === name && (load === undefined || one.load === load) && (op === undefined || one.operation === op)
  );
  if (!found) throw new RangeError(`the answer has no figure ${name} (${JSON.stringify({ load, op })})`);
  return found;
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

  get answer() {
    this.answered ??= answerIn(this.document);
    return this.answered;
  }

  get verdict() {
    const indexes = this.answer.phases.map((phase) => WORDS.indexOf(phase.verdict));
    return indexes.length === 0 ? null : WORDS[Math.max(...indexes)];
  }

  get reasons() {
    return this.answer.phases.flatMap((phase) =>
      phase.objections.map((found) => `${phase.phase}: ${found.sentence}`)
    );
  }

  figure(name, { load, op } = {}) {
    return figureOf(this.answer, name, { load, op });
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
    if (!selection.allowContradicted) {
      const names = new Set(this.select(selection).map((row) => row.phase.name));
      const withheld = this.answer.phases.find((phase) => names.has(phase.phase) && !phase.is_shown);
      if (withheld) {
        const reasons = withheld.objections
          .filter((found) => found.outcome === 'contradicted' && !found.is_accepted)
          .map((found) => `${found.check}: ${found.sentence}`);
        throw new ContradictedError(
          `the evidence contradicts the figures of \`${withheld.phase}\`: ${reasons.join(' ')}`,
          reasons
        );
      }
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

  get answer() {
    this.answered ??= answerIn(this.document);
    return this.answered;
  }

  figure(name, { load } = {}) {
    return figureOf(this.answer, name, { load });
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
