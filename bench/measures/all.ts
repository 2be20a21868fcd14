import type { Measure } from '../measure.ts';
import { acknowledged } from './acknowledged.ts';
import { applied } from './applied.ts';
import { intervals } from './intervals.ts';

/** Every measure, in the order in which a whole run takes them. */
export const measures: readonly Measure[] = [acknowledged, applied, intervals];
