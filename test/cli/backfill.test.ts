import { describe, expect, test } from 'vitest';
import { describeRun } from '../../cli/commands/backfill.ts';
import type { CompanyProgress, RunProgress } from '../../db/read/runs.ts';

const run = (more: Partial<RunProgress> = {}): RunProgress => ({
  kind: 'full',
  state: 'running',
  error: null,
  workflowId: null,
  seconds: 60,
  companies: 10,
  companiesDone: 0,
  rows: 12_345,
  running: [],
  failed: [],
  ...more,
});
const company = (more: Partial<CompanyProgress> = {}): CompanyProgress => ({
  name: 'Acme',
  resource: 'documents',
  step: 3,
  done: 250,
  of: 1_000,
  unit: 'records',
  ...more,
});
const lines = (progress: RunProgress) => describeRun(progress);

describe('the lines of a run', () => {
  test('have companies, rows, rate and remaining time', () => {
    expect(lines(run({ companiesDone: 4 }))).toEqual([
      'backfill: 4 of 10 companies, 12,345 rows, 206 rows/s, about 90 s left',
    ]);
    expect(lines(run())[0]).toBe('backfill: 0 of 10 companies, 12,345 rows, 206 rows/s');
    expect(lines(run({ kind: 'reconcile', companiesDone: 4 }))[0]).toMatch(/^reconcile: 4 of 10 companies, /);
    expect(lines(run({ state: null }))).toEqual(['no worker has started the run yet']);
    expect(lines(run({ state: 'complete', companiesDone: null }))[0]).toMatch(
      /^backfill: complete, its parts are no longer kept/,
    );
    expect(lines(run({ state: 'complete', companiesDone: 10 }))[0]).toBe(
      'backfill: 10 of 10 companies, 12,345 rows, 206 rows/s, 60 s in all',
    );
  });

  test('have no remaining time once all companies are begun, because their readings are not counted', () => {
    const reading = company({ resource: 'intervals', step: 5, unit: 'meters', done: 0.3, of: 1 });
    expect(lines(run({ companies: 23, companiesDone: 22, running: [reading] }))).toEqual([
      'backfill: 22 of 23 companies, 12,345 rows, 206 rows/s',
      `  ${'Acme'.padEnd(28)}  intervals   (5 of 5), reading meter 1 of 1`,
    ]);
    expect(lines(run({ companies: 23, companiesDone: 20, running: [reading] }))[0]).toContain(
      'about 9 s left',
    );
  });

  test.each([
    [company(), 'documents   (3 of 5), 250 of 1,000 records'],
    [company({ done: 0, of: null }), 'documents   (3 of 5), 0 records'],
    [
      company({ resource: 'intervals', step: 5, unit: 'meters', done: 2.5, of: 40 }),
      'intervals   (5 of 5), reading meter 3 of 40',
    ],
    [
      company({ resource: 'intervals', step: 5, unit: 'meters', done: 40, of: 40 }),
      'intervals   (5 of 5), reading meter 40 of 40',
    ],
    [
      company({ resource: 'intervals', step: 5, unit: 'meters', done: 0, of: 0 }),
      'intervals   (5 of 5), 0 of 0 meters',
    ],
  ])('describe a company: %j', (company, words) => {
    expect(lines(run({ running: [company] }))[1]).toBe(`  ${'Acme'.padEnd(28)}  ${words}`);
  });

  test('fit a terminal: ten companies, long names cut, then failures', () => {
    const name = 'A company with a name that goes on and on';
    const drawn = lines(
      run({
        running: Array.from({ length: 12 }, () => company({ name })),
        failed: [{ name, resource: 'meters', state: 'failed', error: 'SERVICE_ACCESS_DENIED: no' }],
      }),
    );
    expect(drawn).toHaveLength(13);
    expect(drawn[1]).toMatch(/^ {2}A company with a name that … {2}documents/);
    expect(drawn.slice(11)).toEqual([
      '  … and 2 more',
      '  failed: A company with a name that … meters: SERVICE_ACCESS_DENIED: no',
    ]);
    for (const line of drawn) expect(line.length).toBeLessThan(110);
  });
});
