import v8 from 'node:v8';

/**
 * Leaves promises alone. Where a thread runs workflows, Temporal follows all promises of the thread, for stack
 * traces, with code that it compiles for each. Without threads for workflows, these are all of the process.
 */
v8.promiseHooks.createHook = () => () => {};
