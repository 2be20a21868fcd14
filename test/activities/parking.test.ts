import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { readParked } from '../../db/read/status.ts';
import { recordEvents } from '../../db/record/record-events.ts';
import { trySleep } from '../../db/record/wake.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { type ActivitiesUnderTest, activitiesOn } from '../support/activities.ts';
import { connectionEvent, delivery, intervalsEvent } from '../support/events.ts';

/** A service that refuses what it is told to refuse. */
function service() {
  const refuses = new Map<string, number>();
  const script = (asked: Asked): Reply => {
    for (const [path, status] of refuses) {
      if (asked.path.startsWith(`/v2.2/${path}`)) return { status, json: { detail: 'no' } };
    }
    const [, , resource = ''] = asked.path.split('/');
    if (resource === 'company') return { json: [] };
    const key = `${resource}s`;
    return pageOf([], asked, { key, total: `total${key[0]?.toUpperCase()}${key.slice(1)}` });
  };
  return { refuses, script };
}

const meters = (count: number) => Array.from({ length: count }, () => randomUUID());
const announce = async ({ warehouse }: ActivitiesUnderTest, meterIds: readonly string[]) => {
  const events = meterIds.map((id) => delivery(intervalsEvent(id, '2026-05-01', '2026-05-02', 0)));
  await recordEvents(warehouse.db, events);
};
/** One round of the catch-up workflow: what is due, in one chunk. */
async function round(under: ActivitiesUnderTest, kind: 'intervals' | 'connections' = 'intervals') {
  const owners = await under.run(under.activities.dueOwners, { kind, limit: 32 });
  if (owners.length > 0) await under.run(under.activities.catchUpOwners, { kind, owners });
  return owners.length;
}
const outcomes = async ({ warehouse }: ActivitiesUnderTest) => {
  const result = await warehouse.db.execute<{ outcome: string; n: number }>(
    sql`select outcome, count(*)::int as n from metersync.events group by outcome order by outcome`,
  );
  return Object.fromEntries(result.rows.map(({ outcome, n }) => [outcome, n]));
};
/** As if the pause were over. */
const waitOut = async ({ warehouse }: ActivitiesUnderTest) => {
  await warehouse.db.execute(sql`update metersync.parked set next_attempt_at = clock_timestamp()`);
  await warehouse.db.execute(sql`update metersync.events set next_attempt_at = clock_timestamp()
    where outcome = 'pending' and next_attempt_at is not null`);
};
const pauseOf = async ({ warehouse }: ActivitiesUnderTest) =>
  (
    await warehouse.db.execute<{ attempts: number; seconds: number }>(sql`select attempts,
      round(extract(epoch from next_attempt_at - clock_timestamp()))::int as seconds from metersync.parked`)
  ).rows[0];

describe('a refused key', () => {
  test('parks all work after one request, and nothing is asked until the pause is over', async () => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    refuses.set('', 401);
    await announce(under, meters(20));
    expect(await round(under)).toBe(20);
    expect(under.asked()).toHaveLength(1);
    await announce(under, meters(5));
    for (const kind of ['intervals', 'connections'] as const) expect(await round(under, kind)).toBe(0);
    expect(under.asked()).toHaveLength(1);
    expect(await under.warehouse.db.transaction((tx) => trySleep(tx, 'intervals'))).toEqual({
      ...{ asleep: false, dueInMs: expect.closeTo(10_000, -4) },
    });
    expect(await readParked(under.warehouse.db)).toEqual([
      {
        ...{ code: 'SERVICE_KEY_REFUSED', reason: expect.stringContaining('401'), backfillParts: 0 },
        ...{ events: 1, owners: 1, operator: expect.stringContaining('SERVICE_API_KEY') },
        ...{ since: expect.any(String), nextAttemptAt: expect.any(String) },
      },
    ]);
  });

  test('is tried again with one request each time, after growing pauses', async () => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    refuses.set('', 401);
    await announce(under, meters(10));
    const pauses = [10, 20, 40, 80, 160, 320, 640, 900, 900];
    for (const [at, seconds] of pauses.entries()) {
      const attempt = at + 1;
      await round(under);
      expect(under.asked()).toHaveLength(attempt);
      const pause = await pauseOf(under);
      expect(pause).toEqual({ attempts: attempt, seconds: expect.closeTo(seconds, -1) });
      await waitOut(under);
    }
    expect(await outcomes(under)).toEqual({ pending: 10 });
  });

  test('that is accepted again revives all work with the first success, of every kind', async () => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    await recordEvents(under.warehouse.db, [
      delivery(connectionEvent('created', randomUUID(), '2026-05-01T00:00:00', 'CONNECTED')),
    ]);
    refuses.set('', 401);
    await announce(under, meters(3));
    await round(under, 'connections');
    await under.warehouse.db.execute(sql`update metersync.events set next_attempt_at = next_attempt_at + '1 hour'
      where kind = 'connection'`);
    refuses.clear();
    await under.warehouse.db.execute(sql`update metersync.parked set next_attempt_at = clock_timestamp()`);
    expect(await round(under)).toBe(3);
    expect(await outcomes(under)).toEqual({ applied: 3, pending: 1 });
    expect(under.woken).toEqual(['connections']);
    expect(await pauseOf(under)).toBeUndefined();
    expect(await under.run(under.activities.dueOwners, { kind: 'connections', limit: 9 })).toHaveLength(1);
  });

  test('that a backfill finds accepted revives what events left', async () => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    refuses.set('', 401);
    await announce(under, meters(2));
    await round(under);
    refuses.clear();
    expect(await round(under)).toBe(0);
    await under.run(under.activities.beginRun, { runId: randomUUID(), companies: [] });
    expect(under.woken).toEqual(['intervals']);
    expect(await round(under)).toBe(2);
    expect(await outcomes(under)).toEqual({ applied: 2 });
  });
});

describe('what the service refuses of one owner', () => {
  test.each([
    [403, 'SERVICE_ACCESS_DENIED'],
    [404, 'SERVICE_NOT_FOUND'],
    [400, 'SERVICE_REQUEST_REFUSED'],
  ] as const)('%i parks that owner alone, with %s', async (status, code) => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    const [bad = '', ...good] = meters(4);
    refuses.set(`interval/meter/${bad}`, status);
    await announce(under, [bad, ...good]);
    expect(await round(under)).toBe(4);
    expect(await outcomes(under)).toEqual({ applied: 3, pending: 1 });
    expect(await round(under)).toBe(0);
    const [parked] = await readParked(under.warehouse.db);
    expect(parked).toMatchObject({ code, events: 1, owners: 1 });
  });

  test('access that is granted again is tried for the others too; what is not found waits for its own time', async () => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    const [denied = '', other = '', lost = '', found = ''] = meters(4);
    for (const id of [denied, other]) refuses.set(`interval/meter/${id}`, 403);
    for (const id of [lost, found]) refuses.set(`interval/meter/${id}`, 404);
    await announce(under, [denied, other, lost, found]);
    await round(under);
    refuses.delete(`interval/meter/${denied}`);
    refuses.delete(`interval/meter/${found}`);
    await under.warehouse.db.execute(sql`update metersync.events set next_attempt_at = clock_timestamp()
      where record_id in (${denied}, ${found})`);
    expect(await round(under)).toBe(2);
    expect(await under.run(under.activities.dueOwners, { kind: 'intervals', limit: 9 })).toEqual([other]);
  });
});
