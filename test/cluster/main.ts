import { resolve } from 'node:path';
import { describeReports } from '../faults/reports.ts';
import { type Passed, runFaults } from '../faults/run.ts';
import { temporalPrograms } from './programs.ts';
import { ratesTable } from './rates.ts';

const reportsOf = (passed: Passed) => passed.flatMap(({ fault }) => fault ?? []);
const ratesOf = (passed: Passed) => passed.flatMap(({ rates }) => rates ?? [])[0];

/** The program of `npm run test:cluster`. */
await runFaults({
  command: 'test:cluster',
  about:
    "Builds Temporal's server with Go, and runs everything on its services as processes of their own, on Postgres.",
  names: 'T1 to T8',
  seedsByDefault: 1,
  config: resolve(import.meta.dirname, 'vitest.config.ts'),
  prepare: () => temporalPrograms(console.error),
  describe: (passed) => {
    const rates = ratesOf(passed);
    return [describeReports(reportsOf(passed)), ...(rates === undefined ? [] : [ratesTable(rates)])].join(
      '\n',
    );
  },
});
