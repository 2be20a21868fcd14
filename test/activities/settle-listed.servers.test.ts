import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { type ActivitiesUnderTest, activitiesOn, outcomes } from '../support/activities.ts';
import { company, connectionEvent, delivery, documentEvent, site } from '../support/events.ts';
import { shapeOf } from '../support/scripted-service.ts';

const older = '2026-05-01T00:00:00.000001';
const updated = '2026-05-01T00:00:00.000002';
const [document, behind, connection] = [randomUUID(), randomUUID(), randomUUID()];

/** A service that lists two documents, the second in an older state, and a connection. */
const service =
  (answers: (kind: string) => boolean = () => true) =>
  (asked: Asked): Reply => {
    const [, , kind = ''] = asked.path.split('/');
    if (!answers(kind)) return { status: 403, json: { detail: 'no' } };
    if (kind === 'company') return { json: [{ ...company, sites: [site] }] };
    if (kind === 'interval') return pageOf([], asked, { key: 'intervals', total: 'totalIntervals' });
    if (kind === 'document') {
      const documents = [
        { id: document, created: older, updated },
        { id: behind, created: older, updated: older },
      ];
      return pageOf(documents, asked, shapeOf('documents'));
    }
    if (kind === 'connection')
      return pageOf([{ id: connection, status: 'CONNECTED', updated }], asked, shapeOf('connections'));
    return pageOf([], asked, shapeOf(kind === 'meter' ? 'meters' : 'usageData'));
  };

const announced = () => [
  delivery(documentEvent('updated', document, updated)),
  delivery(documentEvent('updated', behind, updated)),
  delivery(connectionEvent('created', connection, updated, 'CONNECTED')),
];

async function backfill({ run, activities }: ActivitiesUnderTest): Promise<void> {
  const runId = randomUUID();
  await run(activities.beginRun, { runId, kind: 'full' });
  await run(activities.readCompany, { runId, companyId: company.id });
  await run(activities.concludeRun, { runId });
}

test('a backfill settles the events that it shows, and counts as an attempt for the others', async () => {
  const under = await activitiesOn(service());
  await under.run(under.activities.recordGroup, { events: announced() });
  await under.warehouse.db.execute(sql`update metersync.journal set due_at = clock_timestamp()`);
  await backfill(under);
  expect(await outcomes(under)).toEqual({ applied: 2, pending: 1 });
  const { rows } = await under.warehouse.db.execute(
    sql`select record_id, attempts, error_code from metersync.events where outcome = 'pending'`,
  );
  expect(rows).toEqual([{ record_id: behind, attempts: 1, error_code: 'RECORD_NOT_SHOWN' }]);
  // Only the run asks for a document by its id, to see whether that endpoint exists.
  const single = under.asked().filter((path) => /^\/document\/[^/]+$/.test(path));
  expect(single.length).toBeLessThanOrEqual(1);
});

test('an event that was recorded after its listing began waits for another read', async () => {
  let early: (() => Promise<unknown>) | undefined;
  const under = await activitiesOn(async (asked) => {
    if (asked.path.includes('/usage/')) {
      await early?.();
      early = undefined;
    }
    return service()(asked);
  });
  early = () => under.run(under.activities.recordGroup, { events: announced().slice(0, 1) });
  await backfill(under);
  expect(early).toBeUndefined();
  expect(await outcomes(under)).toEqual({ pending: 1 });
  await backfill(under);
  expect(await outcomes(under)).toEqual({ applied: 1 });
});

test('the events of documents wait if the usage of their company was not listed', async () => {
  const under = await activitiesOn(service((kind) => kind !== 'usage'));
  await under.run(under.activities.recordGroup, { events: announced() });
  await backfill(under);
  expect(await outcomes(under)).toEqual({ applied: 1, pending: 2 });
});

test('the events of records that name a site of which the service shows nothing wait for the sweep', async () => {
  const under = await activitiesOn((asked) =>
    asked.path.includes('/company') && !asked.path.includes('/company/')
      ? { json: [{ ...company, sites: [] }] }
      : service()(asked),
  );
  await under.run(under.activities.recordGroup, { events: announced() });
  await backfill(under);
  expect(await outcomes(under)).toEqual({ pending: 3 });
});
