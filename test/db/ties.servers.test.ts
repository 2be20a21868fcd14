import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import type { DeliveredEvent } from '../../contract/event.ts';
import { recordEvents } from '../../db/events/record.ts';
import { settleRecords } from '../../db/events/settle.ts';
import { dueRecords, warehouseNow } from '../../db/queue/due.ts';
import { company, connectionEvent, delivery, documentEvent } from '../support/events.ts';
import { forFile } from '../support/for-file.ts';
import { rowOf, writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const updated = '2026-05-01T00:00:00.000001';
type Variant = 'this' | 'that';
/** Events and records with the same `updated` and two different values. */
const variants = {
  documents: {
    event: (id: string, variant: Variant) =>
      documentEvent('updated', id, updated, { site: { id: sites[variant], name: variant } }),
    record: (id: string, variant: Variant) => ({ id, updated, site: sites[variant] }),
    column: 'site_id',
    value: (variant: Variant) => sites[variant],
  },
  connections: {
    event: (id: string, variant: Variant) => connectionEvent('updated', id, updated, variant, 'PENDING'),
    record: (id: string, variant: Variant) => ({ id, updated, status: variant }),
    column: 'status',
    value: (variant: Variant): string => variant,
  },
} as const;
const sites = { this: randomUUID(), that: randomUUID() };

type Happening = { readonly event: Variant } | { readonly page: Variant };
const both: readonly Variant[] = ['this', 'that'];
/** Two events, or an event and a page that was read before it, in either order. */
const histories: readonly (readonly Happening[])[] = both.flatMap((first) =>
  both
    .filter((second) => second !== first)
    .flatMap((second) => [
      [{ event: first }, { event: second }],
      [{ event: first }, { page: second }],
      [{ page: first }, { event: second }],
    ]),
);

describe.each(['documents', 'connections'] as const)('%s: different states of one `updated`', (resource) => {
  const { event, record, column, value } = variants[resource];

  test.each(histories.flatMap((history) => both.map((truth) => ({ history, truth }))))(
    'of $history are read again, and the state of the service ($truth) stays',
    async ({ history, truth }) => {
      const id = randomUUID();
      const early = await warehouseNow(warehouse.db);
      const events: DeliveredEvent[] = [];
      for (const one of history) {
        if ('page' in one) await writeRecords(warehouse, resource, [record(id, one.page)], { readAt: early });
        else {
          events.push(delivery(event(id, one.event)));
          await recordEvents(warehouse.db, events.slice(-1));
        }
      }
      const { due } = await dueRecords(warehouse.db, resource, company.id, 1_000);
      expect(due).toContain(id);
      const readAt = await warehouseNow(warehouse.db);
      await writeRecords(warehouse, resource, [record(id, truth)], { readAt, confirms: true });
      await settleRecords(warehouse.db, resource, [id], readAt);
      // Repeated deliveries and earlier reads do not undo the state.
      await recordEvents(warehouse.db, events);
      await writeRecords(warehouse, resource, [record(id, truth === 'this' ? 'that' : 'this')], {
        readAt: early,
      });
      expect(await rowOf(warehouse, resource, id)).toMatchObject({ [column]: value(truth) });
      const outcomes = await warehouse.db.execute(
        sql`select distinct outcome from metersync.events where record_id = ${id}`,
      );
      expect(outcomes.rows).toEqual([{ outcome: 'applied' }]);
    },
  );

  test('lead to the same row for any order of events, even before they are read', async () => {
    const columnAfter = async (order: readonly Variant[]) => {
      const id = randomUUID();
      for (const variant of order) await recordEvents(warehouse.db, [delivery(event(id, variant))]);
      return (await rowOf(warehouse, resource, id))?.[column];
    };
    expect(await columnAfter(['this', 'that'])).toBe(await columnAfter(['that', 'this']));
  });
});
