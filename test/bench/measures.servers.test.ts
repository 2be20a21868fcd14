import { afterAll, expect, inject, test } from 'vitest';
import { runMeasure } from '../../bench/measure.ts';
import { measures } from '../../bench/measures/all.ts';
import { goals } from '../../bench/report.ts';
import { sizeOf } from '../../bench/size.ts';
import { startBenchStack } from '../../bench/stack.ts';
import { long } from '../support/cases.ts';

const stack = await startBenchStack(inject('temporalAddress'));

afterAll(async () => {
  await stack.stop();
});

/** Measurements that take a second or a few. `lone` starts a deployment and the sandbox. */
const quick = ['intervals', 'lone'];
// `npm run test:long` also tests the others, except `peers`, which fetches other programs.
const own = measures.filter(({ name }) => name !== 'peers' && (long || quick.includes(name)));

test.each(own)('$name runs on real parts and yields a finite figure for every goal', async (measure) => {
  const figures = await runMeasure(measure, {
    stack,
    size: sizeOf('tiny'),
    say: () => {},
  });
  for (const [name, figure] of Object.entries(figures)) {
    expect(figure, `${measure.name}.${name}`).toSatisfy(Number.isFinite);
    // Memory may shrink during a measurement, and little work may take less than a tick of the processor's time.
    if (!/growth/i.test(name) && measure.name !== 'cost')
      expect(figure, `${measure.name}.${name}`).toBeGreaterThan(0);
  }
  expect(Object.keys(figures)).toEqual(expect.arrayContaining(Object.keys(goals[measure.name] ?? {})));
});
