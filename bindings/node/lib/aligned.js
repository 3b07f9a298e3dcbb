'use strict';
// Aligned memory as a Buffer.
//
// First choice: memory of our own, which begins at the aligned address, and which transfers share.
// Where the program forbids that (Electron since 21: its V8 keeps all memory in a sandbox), memory of
// V8's own that is larger by `alignment - 1`, of which the aligned part is given. Such a Buffer has a
// `byteOffset`, and a larger `buffer`. V8 does not move memory of this kind.
//
// Never a copy of aligned memory: that is what others did, and a copy is not aligned.

/**
 * A zeroed Buffer of `size` bytes whose address is a multiple of `alignment`.
 *
 * `native` is the compiled half; tests put one in its place that forbids foreign memory.
 */
function allocate(native, size, alignment) {
  const own = native.allocateAligned(size, alignment);
  if (own !== null && own !== undefined) return own;
  const memory = new ArrayBuffer(size + alignment - 1);
  const past = native.addressOf(Buffer.from(memory)) % alignment;
  return Buffer.from(memory, past === 0 ? 0 : alignment - past, size);
}

module.exports = { allocate };
