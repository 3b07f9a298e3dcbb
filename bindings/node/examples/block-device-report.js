#!/usr/bin/env node
'use strict';
// Prints the facts that a disk reports and how it can be opened. Writes nothing.
//
//   node block-device-report.js DEVICE…
//
// The equal of `get-block-device` of @ronomon/direct-io, whose four lines come first.

const { open, probe } = require('@trueio/direct-io/promises');

/** Returns the report on one disk as lines. */
async function report(device) {
  const found = await probe(device);
  const file = await open(device, { policy: 'prefer' });
  try {
    const facts = await file.deviceFacts();
    const rows = {
      'Logical Sector Size': facts.logicalSectorBytes,
      'Physical Sector Size': facts.physicalSectorBytes,
      'Size': facts.sizeBytes,
      'Serial Number': facts.serial,
      'Serial Number From': facts.serialSource,
      'Minimum I/O': facts.minimumIoBytes,
      'Optimal I/O': facts.optimalIoBytes,
      'Rotational': facts.isRotational,
      'Direct I/O': `${found.support} (${found.reason})`,
      'Memory Alignment': found.alignment.memoryBytes,
      'Offset Alignment': found.alignment.writeOffsetBytes,
    };
    const width = Math.max(...Object.keys(rows).map((name) => name.length)) + 2;
    return Object.entries(rows).map(([name, value]) => `${name.padStart(width)}: ${JSON.stringify(value)}`);
  } finally {
    await file.close();
  }
}

async function main(devices) {
  if (devices.length === 0) throw new Error('usage: block-device-report DEVICE…');
  for (const device of devices) console.log(['', `${device}`, ...(await report(device)), ''].join('\n'));
}

if (require.main === module) {
  main(process.argv.slice(2)).catch((error) => {
    console.error(`Error: ${error.message}`);
    process.exitCode = 1;
  });
}

module.exports = { report };
