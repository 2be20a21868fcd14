import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DeliveredEvent } from '../../contract/delivery.ts';
import { dueRecords, warehouseNow } from '../../db/catch-up/due.ts';
import { settleRecords } from '../../db/catch-up/settle.ts';
import { recordEvents } from '../../db/events/record-events.ts';
import { company, connectionEvent, delivery, documentEvent } from '../support/events.ts';
import { rowOf, writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
beforeAll(async () => {
  warehouse = await createWarehouse();
});
afterAll(() => warehouse.drop());

const updated = '2026-05-01T00:00:00.000001';
type Told = 'this' | 'that';
/** Events and records of one `updated` that say two things. */
const sayings = {
  documents: {
    event: (id: string, told: Told) =>
      documentEvent('updated', id, updated, { site: { id: sites[told], name: told } }),
    record: (id: string, told: Told) => ({ id, updated, site: sites[told] }),
    told: 'site_id',
    value: (told: Told) => sites[told],
  },
  connections: {
    event: (id: string, told: Told) => connectionEvent('updated', id, updated, told, 'PENDING'),
    record: (id: string, told: Told) => ({ id, updated, status: told }),
    told: 'status',
    value: (told: Told): string => told,
  },
} as const;
const sites = { this: randomUUID(), that: randomUUID() };

type Happening = { readonly event: Told } | { readonly page: Told };
const both: readonly Told[] = ['this', 'that'];
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

describe.each(['documents', 'connections'] as const)(
  '%s: states of one `updated` that differ',
  (resource) => {
    const { event, record, told, value } = sayings[resource];

    test.each(histories.flatMap((history) => both.map((truth) => ({ history, truth }))))(
      '$history: are read again, and what the service then shows ($truth) stands',
      async ({ history, truth }) => {
        const id = randomUUID();
        const early = await warehouseNow(warehouse.db);
        const events: DeliveredEvent[] = [];
        for (const one of history) {
          if ('page' in one)
            await writeRecords(warehouse, resource, [record(id, one.page)], { readAt: early });
          else {
            events.push(delivery(event(id, one.event)));
            await recordEvents(warehouse.db, events.slice(-1));
          }
        }
        expect((await dueRecords(warehouse.db, resource, company.id, 1_000)).due).toContain(id);
        const readAt = await warehouseNow(warehouse.db);
        await writeRecords(warehouse, resource, [record(id, truth)], { readAt, confirms: true });
        await settleRecords(warehouse.db, resource, [id], readAt);
        // Neither what comes again, nor what was read before, undoes it.
        await recordEvents(warehouse.db, events);
        await writeRecords(warehouse, resource, [record(id, truth === 'this' ? 'that' : 'this')], {
          readAt: early,
        });
        expect(await rowOf(warehouse, resource, id)).toMatchObject({ [told]: value(truth) });
        const outcomes = await warehouse.db.execute(
          sql`select distinct outcome from metersync.events where record_id = ${id}`,
        );
        expect(outcomes.rows).toEqual([{ outcome: 'applied' }]);
      },
    );

    test('leave the warehouse the same, whichever event came first, until they are read', async () => {
      const toldAfter = async (order: readonly Told[]) => {
        const id = randomUUID();
        for (const one of order) await recordEvents(warehouse.db, [delivery(event(id, one))]);
        return (await rowOf(warehouse, resource, id))?.[told];
      };
      expect(await toldAfter(['this', 'that'])).toBe(await toldAfter(['that', 'this']));
    });
  },
);
