import v8 from 'node:v8';

/**
 * Leaves promises alone. If a thread runs workflows, Temporal follows all promises of the thread for stack
 * traces, with code that it compiles for each. Without threads for workflows, these are all promises of the
 * process.
 */
v8.promiseHooks.createHook = () => () => {};
