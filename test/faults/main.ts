import { resolve } from 'node:path';
import { describeReports } from './reports.ts';
import { type Passed, runFaults } from './run.ts';

const reportsOf = (passed: Passed) => passed.flatMap(({ fault }) => fault ?? []);

/** The program of `npm run test:faults`. */
await runFaults({
  command: 'test:faults',
  about: 'Does faults to real processes under load, and holds both sides against each other afterwards.',
  names: 'C1 to C23',
  from: 'the older release of C21, as a revision of git; without it C21 is left out',
  seedsByDefault: 5,
  config: resolve(import.meta.dirname, 'vitest.config.ts'),
  describe: (passed) => describeReports(reportsOf(passed)),
});
