import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cases } from '../support/cases.ts';
import { atFileEnd } from '../support/file-end.ts';
import { borrowWarehouse } from '../support/warehouse.ts';
import { keepBooks } from './bookkeeping.ts';
import { Records } from './changes.ts';
import { compare, compareAtAnyTime, compareTold } from './compare.ts';
import { counterExamples } from './counter-examples.ts';
import { Service } from './service.ts';
import { type History, history, World } from './world.ts';

const service = await Service.open();
atFileEnd.add(() => service.close());
const records = new Records(service);

async function play(of: History): Promise<void> {
  await records.begin(of);
  const warehouse = await borrowWarehouse();
  try {
    await keepBooks(warehouse);
    const world = new World(service, records, warehouse, of);
    await world.timeline.note();
    for (const command of of.commands) {
      await world.do(command);
      await compareAtAnyTime(world);
    }
    await world.settle();
    if (world.told) await compareTold(world);
    await world.conclude();
    await compare(world);
  } finally {
    await warehouse.drop();
  }
}

test.each(counterExamples)('the warehouse follows the service if $what', async ({ of }) => {
  await play(of);
  expect.hasAssertions();
});

const seed = Number(process.env.SEED ?? 20_261_129);

test(`the warehouse follows the service in any history (seed ${seed})`, { timeout: 1_800_000 }, async () => {
  const numRuns = cases(25, 600);
  await fc.assert(fc.asyncProperty(history, play), { seed, numRuns, interruptAfterTimeLimit: 1_500_000 });
});
