import module from 'node:module';
import fc from 'fast-check';
import { afterAll } from 'vitest';
import { cleanUpFile } from './file-end.ts';
import './without-promise-hooks.ts';

/**
 * If `CI` is set, every property draws the same cases; `PROPERTY_SEED` repeats those of a seed. Otherwise
 * each run draws others, and a failure prints its seed.
 */
const seed = process.env.PROPERTY_SEED ?? (process.env.CI === undefined ? undefined : '1');
if (seed !== undefined) fc.configureGlobal({ seed: Number(seed) });

// Vitest lets Node search each file for a source map, which metersync's files do not have.
module.setSourceMapsSupport(false);

afterAll(cleanUpFile);
