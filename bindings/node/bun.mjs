// For `import` on Bun, which finds the enumerable names of a CommonJS module only, and `promises` is not one of them.
import direct from './index.js';

export const { O_DIRECT, O_DSYNC, O_EXCL, O_EXLOCK, O_SYNC, getAlignedBuffer, getBlockDevice, setF_NOCACHE, setFlock, setFSCTL_LOCK_VOLUME, promises } = direct;
export default direct;
