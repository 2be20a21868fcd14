import type { Measure } from '../measure.ts';
import { analytics } from './analytics.ts';
import { backfill } from './backfill.ts';
import { consolePages } from './console.ts';
import { cost } from './cost.ts';
import { growth } from './growth.ts';
import { intervals } from './intervals.ts';
import { live } from './live.ts';
import { lone } from './lone.ts';
import { peers } from './peers.ts';

/** Every measure, in the order of a complete run. */
export const measures: readonly Measure[] = [
  cost,
  lone,
  live,
  backfill,
  intervals,
  analytics,
  growth,
  consolePages,
  peers,
];
