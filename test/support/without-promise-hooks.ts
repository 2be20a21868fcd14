import v8 from 'node:v8';

/**
 * Turns Node's promise hooks off. If a thread runs workflows, Temporal follows all of its promises for stack
 * traces, and without threads all promises of the process.
 */
v8.promiseHooks.createHook = () => () => {};
