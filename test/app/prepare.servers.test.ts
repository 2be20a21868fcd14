import { expect, onTestFinished, test } from 'vitest';
import { requireZone } from '../../app/prepare.ts';
import { createWarehouse } from '../support/warehouse.ts';

test('sessions in another time zone than the configured one are refused with advice', async () => {
  const warehouse = await createWarehouse('Europe/Berlin');
  onTestFinished(() => warehouse.drop());
  await requireZone(warehouse, 'europe/berlin');
  await expect(requireZone(warehouse, 'UTC')).rejects.toThrow(
    /use the time zone Europe\/Berlin instead of UTC: .*alter role … set timezone = 'UTC'.*running\.md/,
  );
});
