import { resolve } from 'node:path';
import { describeReports } from '../faults/reports.ts';
import { type Passed, runFaults } from '../faults/run.ts';
import { findRelease, majors } from './releases.ts';

const reportsOf = (passed: Passed) => passed.flatMap(({ fault }) => fault ?? []);

/** The program of `npm run test:postgres`. */
await runFaults({
  command: 'test:postgres',
  about:
    'Runs everything on Postgres 15 to 18, behind a pooler, on a managed one, through a failover, copied, restored.',
  names: 'P1 to P10',
  seedsByDefault: 1,
  config: resolve(import.meta.dirname, 'vitest.config.ts'),
  prepare: async () => {
    for (const major of majors) await findRelease(major);
  },
  describe: (passed) => describeReports(reportsOf(passed)),
});
