import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import type { DeliveredEvent } from '../../contract/event.ts';
import { drainBounds } from '../../contract/limits.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { recordEvents } from '../../db/events/record.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { type ActivitiesUnderTest, activitiesOn, outcomes, queues } from '../support/activities.ts';
import { company, connectionEvent, delivery, documentEvent, intervalsEvent } from '../support/events.ts';
import { shapeOf } from '../support/scripted-service.ts';

const updated = '2026-05-01T00:00:00.000002';

/** A service with documents in a state; `shown` decides which state of a document, or what else, it answers. */
function service(shown: (id: string) => string | Reply | Promise<Reply> = () => updated) {
  return async (asked: Asked): Promise<Reply> => {
    const [, , resource, scope = ''] = asked.path.split('/');
    if (resource === 'company') return { json: [company] };
    if (resource === 'document' && scope !== 'company') {
      const answer = await shown(scope);
      return typeof answer === 'string' ? { json: { id: scope, created: updated, updated: answer } } : answer;
    }
    if (resource === 'usage' && scope === 'document') return pageOf([], asked, shapeOf('usageData'));
    if (resource === 'interval') return pageOf([], asked, { key: 'intervals', total: 'totalIntervals' });
    const shape = resource === 'connection' ? 'connections' : resource === 'meter' ? 'meters' : 'documents';
    return pageOf([], asked, shapeOf(shape));
  };
}

const announced = (count: number) =>
  Array.from({ length: count }, () => delivery(documentEvent('updated', randomUUID(), updated)));

const record = ({ run, activities }: ActivitiesUnderTest, events: readonly DeliveredEvent[]) =>
  run(activities.recordGroup, { events });

/** Records a group as a local activity, which reads its records. */
const recordAndRead = ({ runLocally, activities }: ActivitiesUnderTest, events: readonly DeliveredEvent[]) =>
  runLocally(activities.recordGroup, { events });
const waits = async ({ warehouse }: ActivitiesUnderTest) =>
  (
    await warehouse.db.execute<{ attempts: number; seconds: number; code: string | null }>(sql`
      select attempts, error_code as code, extract(epoch from due_at - clock_timestamp())::float8 as seconds
      from metersync.journal where outcome = 'pending' order by id`)
  ).rows;

test('the records of a few events are read once after they were recorded, and nothing is left to the sweep', async () => {
  const under = await activitiesOn(service());
  const events = announced(3);
  await recordAndRead(under, events);
  expect(await outcomes(under)).toEqual({ applied: 3 });
  expect(under.sweeps()).toBe(0);
  const asked = under.asked().length;
  await recordAndRead(under, events);
  expect(under.asked()).toHaveLength(asked);
});

test('a group that an ordinary activity records is left to the sweep, which is due a little later', async () => {
  const under = await activitiesOn(service());
  await record(under, announced(3));
  expect(under.asked()).toEqual([]);
  expect(under.sweeps()).toBe(1);
  for (const { attempts, seconds } of await waits(under)) {
    expect(attempts).toBe(0);
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(recordPolicy.drainedSeconds);
  }
});

test('a group with many records is left to the sweep, which is started', async () => {
  const under = await activitiesOn(service());
  await recordAndRead(under, announced(drainBounds.records + 1));
  expect(under.asked()).toEqual([]);
  expect(under.sweeps()).toBe(1);
});

test('a group that took or waited long to be recorded is left to the sweep, because the worker is behind', async () => {
  let calls = 0;
  const under = await activitiesOn(
    service(),
    {},
    { now: () => calls++ * (drainBounds.recordedWithinMs + 1) },
  );
  await recordAndRead(under, announced(1));
  expect(under.asked()).toEqual([]);
  expect(under.sweeps()).toBe(1);
  const waited = await activitiesOn(service());
  const late = { events: announced(1), waitedMs: drainBounds.recordedWithinMs + 1 };
  await waited.runLocally(waited.activities.recordGroup, late);
  expect(waited.asked()).toEqual([]);
});

test('only a few groups are read within workflow tasks at the same time, and no other waits for them', async () => {
  const answer = Promise.withResolvers<Reply>();
  const under = await activitiesOn(service(() => answer.promise));
  const group = () => {
    const other = { ...company, id: randomUUID() };
    return [delivery(documentEvent('updated', randomUUID(), updated, { company: other }))];
  };
  const reading = Array.from({ length: drainBounds.atOnce }, () => recordAndRead(under, group()));
  const documents = () => under.asked().filter((path) => path.startsWith('/document/'));
  await expect.poll(() => documents().length).toBe(drainBounds.atOnce);
  await recordAndRead(under, group());
  expect(documents()).toHaveLength(drainBounds.atOnce);
  expect(under.sweeps()).toBe(1);
  answer.resolve({ status: 404, json: { detail: 'Not found.' } });
  await Promise.all(reading);
});

test('a read that the service does not answer ends by itself, and its event is left to the sweep', async () => {
  const under = await activitiesOn(service(() => new Promise(() => {})));
  await recordAndRead(under, announced(1));
  expect(await waits(under)).toEqual([{ attempts: 0, code: null, seconds: expect.any(Number) }]);
  expect(under.sweeps()).toBe(1);
});

test('a read that waits for a lock in the warehouse does not hold up its group, whose event is left to the sweep', async () => {
  const under = await activitiesOn(service());
  const { db } = under.warehouse;
  await db.transaction(async (tx) => {
    await tx.execute(sql`lock table utility.usage_data in access exclusive mode`);
    await recordAndRead(under, announced(1));
    expect(await outcomes(under)).toEqual({ pending: 1 });
    expect(under.sweeps()).toBe(1);
  });
  await recordAndRead(under, announced(1));
  expect(await outcomes(under)).toEqual({ applied: 1, pending: 1 });
});

test('an event whose state is not shown yet is due again after a second, and the sweep is started', async () => {
  const under = await activitiesOn(service(() => '2026-05-01T00:00:00.000001'));
  const events = announced(1);
  await recordAndRead(under, events);
  expect(await waits(under)).toEqual([
    { attempts: 1, code: 'RECORD_NOT_SHOWN', seconds: expect.closeTo(0.5, -0.5) },
  ]);
  expect(under.sweeps()).toBe(1);
  // A repeated delivery makes no request: the sweep is responsible for the event now.
  const asked = under.asked().length;
  await recordAndRead(under, events);
  expect(under.asked()).toHaveLength(asked);
});

test('an owner that cannot be read keeps its events as they are for the sweep, and holds up no other', async () => {
  const denied = { ...company, id: randomUUID() };
  const under = await activitiesOn(async (asked) =>
    asked.path.includes(denied.id) ? { status: 403, json: { detail: 'no' } } : await service()(asked),
  );
  const refused = connectionEvent('created', randomUUID(), updated, 'CONNECTED');
  await recordAndRead(under, [delivery({ ...refused, company: denied }), ...announced(1)]);
  expect(await outcomes(under)).toEqual({ applied: 1, pending: 1 });
  expect(await waits(under)).toEqual([{ attempts: 0, code: null, seconds: expect.any(Number) }]);
  expect(under.sweeps()).toBe(1);
});

test('after the key was refused, only the sweep sends requests', async () => {
  let requests = 0;
  const both = Promise.withResolvers<void>();
  const under = await activitiesOn(async (asked) => {
    requests += 1;
    if (requests > 2) return await service()(asked);
    // A document and its usage are requested at the same time, and refused when both requests have arrived.
    if (requests === 2) both.resolve();
    await both.promise;
    return { status: 401, json: { detail: 'no' } };
  });
  await recordAndRead(under, announced(1));
  expect(under.asked()).toHaveLength(2);
  await recordAndRead(under, announced(1));
  expect(under.asked()).toHaveLength(2);
  expect(await outcomes(under)).toEqual({ pending: 2 });
});

test('ranges of readings are left to the sweep, which reads a meter in one lane at a time', async () => {
  const under = await activitiesOn(service());
  await recordAndRead(under, [delivery(intervalsEvent(randomUUID(), '2026-05-01', '2026-05-02', 0))]);
  expect(under.asked()).toEqual([]);
  expect(under.sweeps()).toBe(1);
});

test('the kinds of records take turns in the sweep', async () => {
  const under = await activitiesOn(service());
  const companies = Array.from({ length: 5 }, () => ({ ...company, id: randomUUID() }));
  await record(under, [
    ...companies.map((one) =>
      delivery({ ...connectionEvent('created', randomUUID(), updated, 'CONNECTED'), company: one }),
    ),
    ...companies.map((one) => delivery(documentEvent('updated', randomUUID(), updated, { company: one }))),
    ...companies.map(() => delivery(intervalsEvent(randomUUID(), '2026-05-01', '2026-05-02', 0))),
  ]);
  const dueForSweep = (limit: number, except: Parameters<typeof under.activities.dueForSweep>[0]['except']) =>
    under.run(under.activities.dueForSweep, { limit, except });
  const early = await dueForSweep(6, []);
  expect(early.owners).toEqual([]);
  expect(early.dueInMs).toBeGreaterThan(0);
  expect(early.dueInMs).toBeLessThanOrEqual(recordPolicy.drainedSeconds * 1000);
  await under.warehouse.db.execute(
    sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`,
  );
  const { owners, dueInMs } = await dueForSweep(6, []);
  expect(owners.map(({ kind }) => kind)).toEqual([
    'connections',
    'documents',
    'intervals',
    'connections',
    'documents',
    'intervals',
  ]);
  expect(dueInMs).toBeNull();
  const others = await dueForSweep(20, owners);
  expect(others.owners).toHaveLength(9);
  expect(await dueForSweep(20, [...owners, ...others.owners])).toEqual({
    owners: [],
    dueInMs: null,
    probes: [],
  });
});

test('a group whose worker died after recording it is read by the retry, which returns only counts', async () => {
  const under = await activitiesOn(service());
  const events = announced(2);
  await recordEvents(under.warehouse.db, events, { drains: true });
  expect(await recordAndRead(under, events)).toEqual({ fresh: 0, duplicates: 2, dead: 0 });
  expect(await outcomes(under)).toEqual({ applied: 2 });
  expect(under.sweeps()).toBe(0);
  const others = announced(1);
  await recordEvents(under.warehouse.db, others, { drains: true });
  await record(under, others);
  expect(under.sweeps()).toBe(1);
});

test.each(['a drain', 'the sweep'] as const)(
  '%s does not settle an event that was recorded while it read the record',
  async (reader) => {
    const id = randomUUID();
    // `updated` stays the same, so only the times of the read and of the event decide.
    const events = () => [delivery(documentEvent('updated', id, updated))];
    let meanwhile: (() => Promise<unknown>) | undefined;
    const under = await activitiesOn(
      service(async () => {
        const again = meanwhile;
        meanwhile = undefined;
        await again?.();
        return { json: { id, created: updated, updated } };
      }),
    );
    const { db } = under.warehouse;
    const sweep = () =>
      under.run(under.activities.sweepOwners, { owners: queues('documents', [company.id]) });
    meanwhile = () => recordEvents(db, events());
    if (reader === 'a drain') await recordAndRead(under, events());
    else {
      await recordEvents(db, events());
      await sweep();
    }
    expect(await outcomes(under)).toEqual({ applied: 1, pending: 1 });
    await sweep();
    expect(await outcomes(under)).toEqual({ applied: 2 });
  },
);

test('a warehouse that fails after a group was recorded leaves its events to the sweep', async () => {
  const under = await activitiesOn(service());
  const { db } = under.warehouse;
  // Recording does not need the gates, and the first statement of the drain does.
  await db.execute(sql`alter table metersync.gates rename to gates_away`);
  await recordAndRead(under, announced(1)).finally(() =>
    db.execute(sql`alter table metersync.gates_away rename to gates`),
  );
  expect(under.asked()).toEqual([]);
  expect(await outcomes(under)).toEqual({ pending: 1 });
  expect(under.sweeps()).toBe(1);
});
