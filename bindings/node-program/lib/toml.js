'use strict';
// Writes a job as TOML. Source: TOML 1.0, sections String and Keys.

/** Returns a job file: of the options of one job, or of the tables `defaults` and `job`. */
function jobFile(job) {
  const isTable = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
  const whole = isTable(job.job) ? job : { job: { job } };
  const unknown = Object.keys(whole).find((name) => name !== 'defaults' && name !== 'job');
  if (unknown !== undefined) throw new TypeError(`a job file has the tables \`defaults\` and \`job\`, not \`${unknown}\``);
  const tables = [
    [['defaults'], whole.defaults ?? {}],
    ...Object.entries(whole.job).map(([name, table]) => [['job', name], table]),
  ];
  const lines = tables.flatMap(([keys, table]) => [
    `[${keys.map(text).join('.')}]`,
    ...Object.entries(table).map(([name, value]) => `${text(name)} = ${written(value)}`),
  ]);
  return lines.join('\n') + '\n';
}

function written(value) {
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value);
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  if (typeof value === 'string') return text(value);
  if (Array.isArray(value)) return `[${value.map(written).join(', ')}]`;
  throw new TypeError(`an option is a text, a number, a boolean or a list of these, not ${String(value)}`);
}

/** A JSON string is a TOML string, except that TOML escapes DEL, too. */
function text(string) {
  return JSON.stringify(string).replaceAll('\u007f', '\\u007f');
}

module.exports = { jobFile };
