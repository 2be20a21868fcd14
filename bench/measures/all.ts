import type { Measure } from '../measure.ts';
import { acknowledged } from './acknowledged.ts';
import { analytics } from './analytics.ts';
import { applied } from './applied.ts';
import { audit } from './audit.ts';
import { backfill } from './backfill.ts';
import { catalogue } from './catalogue.ts';
import { catchUp } from './catch-up.ts';
import { checks } from './checks.ts';
import { history } from './history.ts';
import { intervals } from './intervals.ts';
import { lone } from './lone.ts';
import { sandbox } from './sandbox.ts';

/** Every measure, in the order in which a whole run takes them. */
export const measures: readonly Measure[] = [
  acknowledged,
  applied,
  lone,
  backfill,
  intervals,
  catalogue,
  catchUp,
  history,
  analytics,
  checks,
  audit,
  sandbox,
];
