import { expect, onTestFinished, test } from 'vitest';
import { monthActivities } from '../../activities/months.ts';
import { batches } from '../../contract/limits.ts';
import { activityEnvironment } from '../support/activities.ts';
import { createWarehouse } from '../support/warehouse.ts';

test('the months of companies are kept batch by batch, until none is left or the time is up', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const companies = 2 * batches.companiesOfMonths + 1;
  const note = () =>
    warehouse.pool.query(`insert into metersync.company_changes (company_id, changed_at)
      select gen_random_uuid(), now() - interval '1 hour' from generate_series(1, ${companies})`);
  const keepWith = async (now: () => number): Promise<number> => {
    const { keepMonths } = monthActivities({ checks: warehouse, now } as unknown as Parameters<
      typeof monthActivities
    >[0]);
    return await activityEnvironment().run(keepMonths, {});
  };
  await note();
  expect(await keepWith(() => 0)).toBe(companies);
  expect(await keepWith(() => 0)).toBe(0);
  await note();
  let clock = 0;
  expect(await keepWith(() => (clock += 15_000))).toBe(batches.companiesOfMonths);
});
