import type { Measure } from '../measure.ts';
import { acknowledged } from './acknowledged.ts';
import { analytics, analyticsLarge } from './analytics.ts';
import { applied } from './applied.ts';
import { audit } from './audit.ts';
import { backfill } from './backfill.ts';
import { catalogue } from './catalogue.ts';
import { catchUp } from './catch-up.ts';
import { checks } from './checks.ts';
import { consolePages, consolePagesLarge } from './console.ts';
import { cost } from './cost.ts';
import { customer } from './customer.ts';
import { growth } from './growth.ts';
import { growthStatements } from './growth-statements.ts';
import { history } from './history.ts';
import { intervals } from './intervals.ts';
import { joins } from './joins.ts';
import { live } from './live.ts';
import { lone } from './lone.ts';
import { metrics } from './metrics.ts';
import { peers } from './peers.ts';
import { sandbox } from './sandbox.ts';

/** Every measure, in the order of a complete run. */
export const measures: readonly Measure[] = [
  acknowledged,
  applied,
  cost,
  lone,
  live,
  backfill,
  intervals,
  catalogue,
  catchUp,
  history,
  analytics,
  checks,
  audit,
  sandbox,
  growth,
  growthStatements,
  analyticsLarge,
  joins,
  customer,
  consolePages,
  consolePagesLarge,
  metrics,
  peers,
];
