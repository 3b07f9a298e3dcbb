'use strict';
// Latencies in the log-linear buckets of a record. The arithmetic is that of crates/model/src/histogram.rs and
// crates/stats/src/quantile.rs; a test compares both.

const { DocumentError } = require('./errors');

const SUB_BITS = 7;
const TAIL = 0.025;

/** Returns the smallest and the largest value of a bucket. Numbers are exact below 2^53; buckets end at 2^42. */
function bucket(index) {
  if (index < 256) return [index, index];
  const shift = (index >> SUB_BITS) - 1;
  const low = (index - (shift << SUB_BITS)) * 2 ** shift;
  return [low, low + 2 ** shift - 1];
}

/** Returns the fewest values that have a finite 95 % interval for a quantile: 6 for 0.5, 368 for 0.99. */
function minimumCount(share) {
  const perValue = share >= 0.5 ? Math.log(share) : Math.log1p(-share);
  return Math.max(1, Math.ceil(Math.log(TAIL) / perValue));
}

class Histogram {
  constructor(document) {
    if (document.sub_bits !== SUB_BITS) {
      throw new DocumentError(`this histogram has ${document.sub_bits} sub-bucket bits; this package reads ${SUB_BITS}`);
    }
    this.count = document.total;
    this.minNs = document.min_ns;
    this.maxNs = document.max_ns;
    this.sumNs = BigInt(document.sum_ns);
    this.steps = document.index;
    this.counts = document.count;
  }

  get meanNs() {
    return this.count === 0 ? null : Number(this.sumNs) / this.count;
  }

  *buckets() {
    let index = 0;
    for (let i = 0; i < this.steps.length; i++) {
      index += this.steps[i];
      yield [...bucket(index), this.counts[i]];
    }
  }

  valueAtRank(rank) {
    if (!(rank >= 1 && rank <= this.count)) return null;
    let seen = 0;
    for (const [, high, count] of this.buckets()) {
      seen += count;
      if (seen >= rank) return Math.min(Math.max(high, this.minNs), this.maxNs);
    }
    return this.maxNs;
  }

  percentile(percent) {
    if (!(percent > 0 && percent < 100)) {
      throw new RangeError(`a percentile is between 0 and 100, both excluded; ${percent} is not`);
    }
    const share = percent / 100;
    if (this.count < minimumCount(share)) return null;
    // 0.07 · 100 is 7.000000000000001 in binary; a part in 10^12 is taken off before rounding up.
    return this.valueAtRank(Math.max(1, Math.ceil(share * this.count * (1 - 1e-12))));
  }

  merged(other) {
    const counts = new Map();
    for (const part of [this, other]) {
      let index = 0;
      part.steps.forEach((step, i) => {
        index += step;
        counts.set(index, (counts.get(index) ?? 0) + part.counts[i]);
      });
    }
    const order = [...counts.keys()].sort((a, b) => a - b);
    const known = (values) => values.filter((value) => value !== null);
    const both = Object.create(Histogram.prototype);
    both.count = this.count + other.count;
    both.sumNs = this.sumNs + other.sumNs;
    both.minNs = known([this.minNs, other.minNs]).sort((a, b) => a - b)[0] ?? null;
    both.maxNs = known([this.maxNs, other.maxNs]).sort((a, b) => b - a)[0] ?? null;
    both.steps = order.map((index, i) => index - (i === 0 ? 0 : order[i - 1]));
    both.counts = order.map((index) => counts.get(index));
    return both;
  }
}

module.exports = { Histogram };
