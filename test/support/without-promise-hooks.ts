import v8 from 'node:v8';

/**
 * Turns Node's promise hooks off. If a thread runs workflows, Temporal follows all promises of the thread for
 * stack traces, with code that it compiles for each promise. Without threads for workflows, it would follow
 * all promises of the process.
 */
v8.promiseHooks.createHook = () => () => {};
