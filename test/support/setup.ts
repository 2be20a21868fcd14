import module from 'node:module';
import fc from 'fast-check';
import { afterAll } from 'vitest';
import { cleanUpFile } from './file-end.ts';
import './without-promise-hooks.ts';

/**
 * If `CI` is set, every property draws the same cases, so that the result of a run does not depend on chance.
 * Otherwise each run draws other cases, and a failure prints its seed. `PROPERTY_SEED` repeats the cases of a
 * seed.
 */
const seed = process.env.PROPERTY_SEED ?? (process.env.CI === undefined ? undefined : '1');
if (seed !== undefined) fc.configureGlobal({ seed: Number(seed) });

// Vitest lets Node search each file for a source map. metersync's files run as they are written, without
// source maps.
module.setSourceMapsSupport(false);

afterAll(cleanUpFile);
