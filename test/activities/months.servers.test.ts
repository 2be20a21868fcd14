import { expect, onTestFinished, test } from 'vitest';
import { monthActivities } from '../../activities/checks.ts';
import { activityEnvironment } from '../support/activities.ts';
import { createWarehouse } from '../support/warehouse.ts';

test('one turn recomputes the months of every company that changed', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  await warehouse.pool.query(`insert into metersync.company_changes (company_id)
    select gen_random_uuid() from generate_series(1, 21)`);
  const { keepMonths } = monthActivities({ checks: warehouse });
  expect(await activityEnvironment().run(keepMonths, {})).toBe(21);
  expect(await activityEnvironment().run(keepMonths, {})).toBe(0);
});
