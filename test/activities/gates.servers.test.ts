import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import type { CatchUpKind } from '../../contract/names.ts';
import { attemptPolicy } from '../../contract/retry-policy.ts';
import { array } from '../../db/connection/arrays.ts';
import { recordEvents } from '../../db/events/record.ts';
import { dueOwners, nextDue, warehouseNow } from '../../db/queue/due.ts';
import { closeGate } from '../../db/queue/gates.ts';
import { readHealth } from '../../db/read/health.ts';
import { readStatus } from '../../db/read/status.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { type ActivitiesUnderTest, activitiesOn, outcomes, queues } from '../support/activities.ts';
import { connectionEvent, delivery, documentEvent, intervalsEvent } from '../support/events.ts';

/** Makes a service that refuses the paths in `refuses`. */
function service() {
  const refuses = new Map<string, number | Reply>();
  const script = (asked: Asked): Reply => {
    for (const [path, answer] of refuses) {
      if (!asked.path.startsWith(`/v2.2/${path}`)) continue;
      return typeof answer === 'number' ? { status: answer, json: { detail: 'no' } } : answer;
    }
    const [, , resource = ''] = asked.path.split('/');
    if (resource === 'company') return { json: [] };
    const key = `${resource}s`;
    return pageOf([], asked, { key, total: `total${key[0]?.toUpperCase()}${key.slice(1)}` });
  };
  return { refuses, script };
}

const meters = (count: number) => Array.from({ length: count }, () => randomUUID());
/** Announces readings of meters that the service has listed. */
const announce = async ({ warehouse }: ActivitiesUnderTest, meterIds: readonly string[]) => {
  await warehouse.db.execute(sql`insert into utility.meters (id)
    select unnest(${array(meterIds, 'text')}) on conflict (id) do nothing`);
  const events = meterIds.map((id) => delivery(intervalsEvent(id, '2026-05-01', '2026-05-02', 0)));
  await recordEvents(warehouse.db, events);
};
/** Makes one round of the sweep with the due owners in one lane. */
async function round(under: ActivitiesUnderTest, kind: CatchUpKind = 'intervals', attempt = 1) {
  const owners = await dueOwners(under.warehouse.db, kind, 32);
  if (owners.length > 0)
    await under.run(under.activities.sweepOwners, { owners: queues(kind, owners) }, undefined, attempt);
  return owners.length;
}
/** Makes the next probe of each gate and all pending events due now. */
const waitOut = async ({ warehouse }: ActivitiesUnderTest) => {
  await warehouse.db.execute(sql`update metersync.gates set next_probe_at = clock_timestamp()`);
  await warehouse.db.execute(
    sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`,
  );
};
const probe = (under: ActivitiesUnderTest) => under.run(under.activities.probeGates, { scopes: ['service'] });
const pauseOf = async ({ warehouse }: ActivitiesUnderTest) =>
  (
    await warehouse.db.execute<{ attempts: number; seconds: number }>(sql`select attempts,
      round(extract(epoch from next_probe_at - clock_timestamp()))::int as seconds from metersync.gates
      where scope = 'service'`)
  ).rows[0];

describe('a refused key', () => {
  test('closes the gate for all requests after one, and sends no other request until the pause is over', async () => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    refuses.set('', 401);
    await announce(under, meters(20));
    expect(await round(under)).toBe(20);
    expect(under.asked()).toHaveLength(1);
    await announce(under, meters(5));
    for (const kind of ['intervals', 'connections'] as const) expect(await round(under, kind)).toBe(0);
    expect(under.asked()).toHaveLength(1);
    await probe(under);
    expect(under.asked()).toHaveLength(1);
    const { db } = under.warehouse;
    const next = await nextDue(db, await warehouseNow(db));
    expect(next).toEqual({ dueInMs: expect.closeTo(10_000, -4), probes: [] });
    expect((await readHealth(under.warehouse.db)).parked).toEqual([
      {
        code: 'SERVICE_KEY_REFUSED',
        reason: expect.stringContaining('401'),
        parts: 0,
        events: 0,
        owners: 0,
        since: expect.any(String),
        nextAttemptAt: expect.any(String),
      },
    ]);
  });

  test('is tried again with one request after each of growing pauses', async () => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    refuses.set('', 401);
    await announce(under, meters(10));
    const pauses = [10, 20, 40, 80, 160, 320, 640, 900, 900];
    await round(under);
    for (const [at, seconds] of pauses.entries()) {
      const attempt = at + 1;
      if (attempt > 1) await Promise.all([probe(under), probe(under)]);
      expect(under.asked()).toHaveLength(attempt);
      const pause = await pauseOf(under);
      expect(pause).toEqual({ attempts: attempt, seconds: expect.closeTo(seconds, -1) });
      await waitOut(under);
      const { db } = under.warehouse;
      expect(await nextDue(db, await warehouseNow(db))).toMatchObject({ probes: ['service'] });
    }
    expect(await outcomes(under)).toEqual({ pending: 10 });
  });

  test('is over with the first probe that succeeds, and no event has changed', async () => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    const { db } = under.warehouse;
    await recordEvents(db, [
      delivery(connectionEvent('created', randomUUID(), '2026-05-01T00:00:00', 'CONNECTED')),
    ]);
    await announce(under, meters(3));
    const rows = async () => (await db.execute(sql`select * from metersync.journal order by id`)).rows;
    const before = await rows();
    refuses.set('', 401);
    await round(under, 'connections');
    refuses.clear();
    await waitOut(under);
    await probe(under);
    expect(await pauseOf(under)).toBeUndefined();
    expect((await rows()).map((row) => ({ ...row, due_at: '' }))).toEqual(
      before.map((row) => ({ ...row, due_at: '' })),
    );
    expect(await round(under)).toBe(3);
    expect(await dueOwners(db, 'connections', 9)).toHaveLength(1);
  });

  test('is over with a probe of a listing that is refused for another reason', async () => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    refuses.set('', 401);
    await announce(under, meters(1));
    await round(under);
    refuses.set('', 403);
    await waitOut(under);
    await probe(under);
    expect(await pauseOf(under)).toBeUndefined();
  });

  test('fails backfills and reconciles without a request', async () => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    refuses.set('', 401);
    await announce(under, meters(2));
    await round(under);
    const asked = under.asked().length;
    const runId = randomUUID();
    const refused = { type: 'SERVICE_KEY_REFUSED', nonRetryable: true };
    await expect(under.run(under.activities.beginRun, { runId, kind: 'full' })).rejects.toMatchObject(
      refused,
    );
    const company = { runId, companyId: randomUUID() };
    await under.run(under.activities.readCompany, company);
    const reconciled = { ...company, runId: randomUUID() };
    expect(await under.run(under.activities.reconcileCompany, reconciled)).toEqual({
      unsupportedFilters: ['documents', 'usageData'],
    });
    expect(under.asked()).toHaveLength(asked);
  });
});

describe('a refusal of one owner', () => {
  test.each([
    [403, 'SERVICE_ACCESS_DENIED'],
    [404, 'SERVICE_NOT_FOUND'],
    [400, 'SERVICE_REQUEST_REFUSED'],
  ] as const)('%i parks only that owner, with %s', async (status, code) => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    const [bad = '', ...good] = meters(4);
    refuses.set(`interval/meter/${bad}`, status);
    await announce(under, [bad, ...good]);
    expect(await round(under)).toBe(4);
    expect(await outcomes(under)).toEqual({ applied: 3, pending: 1 });
    expect(await round(under)).toBe(0);
    const { parked } = await readHealth(under.warehouse.db);
    expect(parked[0]).toMatchObject({ code, events: 1, owners: 1 });
  });

  test('ends for all denied owners when access is granted, while an owner that was not found waits for its own probe', async () => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    const [denied = '', other = '', lost = '', found = ''] = meters(4);
    for (const id of [denied, other]) refuses.set(`interval/meter/${id}`, 403);
    for (const id of [lost, found]) refuses.set(`interval/meter/${id}`, 404);
    await announce(under, [denied, other, lost, found]);
    await round(under);
    refuses.delete(`interval/meter/${denied}`);
    refuses.delete(`interval/meter/${found}`);
    await under.warehouse.db.execute(sql`update metersync.gates set next_probe_at = clock_timestamp()
      where scope in (${`interval/${denied}`}, ${`interval/${found}`})`);
    expect(await round(under)).toBe(2);
    expect(await dueOwners(under.warehouse.db, 'intervals', 9)).toEqual([other]);
  });
});

/** Returns the error codes and attempts of waiting events, by meter. */
const waits = async ({ warehouse }: ActivitiesUnderTest) => {
  const { rows } = await warehouse.db.execute<{ meter: string; code: string | null; attempts: number }>(sql`
    select record_id as meter, error_code as code, attempts from metersync.events where outcome = 'pending'`);
  return Object.fromEntries(rows.map(({ meter, code, attempts }) => [meter, { code, attempts }]));
};

describe('a failure of one owner', () => {
  test('does not stop other owners, appears in the status, backs off, and ends with the first success', async () => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    const [failing = '', unreadable = '', hangingUp = '', ...good] = meters(6);
    refuses.set(`interval/meter/${failing}`, 500);
    refuses.set(`interval/meter/${unreadable}`, { body: '<html>' });
    refuses.set(`interval/meter/${hangingUp}`, 'hang up');
    await announce(under, [failing, unreadable, hangingUp]);
    await announce(under, good);
    expect(await round(under)).toBe(6);
    expect(await outcomes(under)).toEqual({ applied: 3, pending: 3 });
    expect(await round(under)).toBe(0);
    const waiting = (code: string, meterId: string) => ({
      code,
      reason: expect.stringContaining(meterId),
      events: 1,
      owners: 1,
      nextAttemptAt: expect.any(String),
    });
    expect((await readStatus(under.warehouse.db)).waiting).toEqual([
      waiting('SERVICE_ANSWER_UNREADABLE', unreadable),
      waiting('SERVICE_ERROR', failing),
      waiting('SERVICE_UNREACHABLE', hangingUp),
    ]);
    const attempts = 11;
    for (let at = 2; at <= attempts; at++) {
      await waitOut(under);
      await round(under);
    }
    // Events have attempts of their own: none of them was read.
    expect(await waits(under)).toEqual({
      [failing]: { code: 'SERVICE_ERROR', attempts: 0 },
      [unreadable]: { code: 'SERVICE_ANSWER_UNREADABLE', attempts: 0 },
      [hangingUp]: { code: 'SERVICE_UNREACHABLE', attempts: 0 },
    });
    const { rows } = await under.warehouse.db.execute(sql`select distinct attempts from metersync.gates`);
    expect(rows).toEqual([{ attempts }]);
    const later = await under.warehouse.db.execute(sql`select from metersync.events
      where next_attempt_at between clock_timestamp() + interval '5 minutes' and clock_timestamp() + interval '15 minutes'`);
    expect(later.rowCount).toBe(3);
    refuses.clear();
    await waitOut(under);
    await round(under);
    expect(await outcomes(under)).toEqual({ applied: 6 });
  });

  test.each([
    ['has no list of companies', { companies: null }],
    ['fails its list of companies', {}],
  ])('does not stop other owners if the service %s', async (_, endpoints) => {
    const { refuses, script } = service();
    const under = await activitiesOn(script, endpoints);
    // The failing company has the smallest id, so it is the first company that is asked for.
    const [failing, good] = ['00000000-0000-4000-8000-000000000001', randomUUID()];
    const { db } = under.warehouse;
    await db.execute(sql`insert into utility.companies (id, raw, synced_at)
      select unnest(${array([failing, good], 'uuid')}), '{}', now()`);
    for (const id of [failing, good]) {
      const event = connectionEvent('created', randomUUID(), '2026-05-01T00:00:00', 'CONNECTED');
      await recordEvents(db, [delivery({ ...event, company: { ...event.company, id } })]);
    }
    refuses.set('company', 500);
    for (const resource of ['connection', 'document']) refuses.set(`${resource}/company/${failing}`, 500);
    expect(await round(under, 'connections')).toBe(2);
    const { rows } = await db.execute(sql`select company_id as owner, error_code from metersync.events
      where outcome = 'pending' order by 1`);
    expect(rows).toEqual([
      { owner: failing, error_code: 'SERVICE_ERROR' },
      { owner: good, error_code: 'RECORD_NOT_SHOWN' },
    ]);
    expect(await pauseOf(under)).toBeUndefined();
  });

  test('waits for its own time even if an interrupted activity is retried', async () => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    const owners = meters(3);
    const [bad = '', ...good] = owners;
    refuses.set(`interval/meter/${bad}`, 500);
    await announce(under, owners);
    await round(under);
    await announce(under, good);
    const asked = under.asked().length;
    await under.run(under.activities.sweepOwners, { owners: queues('intervals', owners) }, undefined, 2);
    expect(under.asked().slice(asked)).toHaveLength(good.length);
    expect(await outcomes(under)).toEqual({ applied: 4, pending: 1 });
  });

  test('delays the other owners for some attempts if the warehouse or a defect causes the failure', async () => {
    const { refuses, script } = service();
    const under = await activitiesOn(script);
    const [noMemory = '', mistaken = '', good = ''] = meters(3);
    const reading = { start: '2026-05-01T00:00:00Z', end: '2026-05-01T00:15:00Z', usage: '1' };
    for (const id of [noMemory, mistaken])
      refuses.set(`interval/meter/${id}`, { json: { intervals: [reading], totalIntervals: 1 } });
    await under.warehouse.db.execute(
      sql.raw(`create function public.fail() returns trigger language plpgsql as $$ begin
        if new.meter_id = '${noMemory}' then raise 'not this one' using errcode = '53200'; end if;
        raise 'not this one' using errcode = '42P01'; end $$;
      create trigger fail before insert on utility.intervals for each row execute function public.fail()`),
    );
    await announce(under, [noMemory, mistaken]);
    await announce(under, [good]);
    await expect(round(under, 'intervals', attemptPolicy.unclearMax)).rejects.toThrow('not this one');
    expect(await outcomes(under)).toEqual({ pending: 3 });
    await round(under, 'intervals', attemptPolicy.unclearMax + 1);
    expect(await outcomes(under)).toEqual({ applied: 1, pending: 2 });
    expect(await waits(under)).toEqual({
      [noMemory]: { code: 'WAREHOUSE_UNAVAILABLE', attempts: 0 },
      [mistaken]: { code: 'UNEXPECTED_ERROR', attempts: 0 },
    });
  });
});

test('a failure that all owners share does not use up an attempt of any owner', async () => {
  const { refuses, script } = service();
  const under = await activitiesOn(script);
  const owners = meters(2);
  await announce(under, owners);
  const untouched = { code: null, attempts: 0 };
  const fails = async (answer: Reply, type: string, attempt: number) => {
    refuses.set('', answer);
    await under.warehouse.db.execute(sql`delete from metersync.gates`);
    const asked = under.asked().length;
    await expect(round(under, 'intervals', attempt)).rejects.toMatchObject({ type, nonRetryable: false });
    expect(Object.values(await waits(under))).toEqual([untouched, untouched]);
    const meterOf = (path: string) => path.split('?')[0];
    const later = under.asked().slice(asked);
    expect(new Set(later.filter((path) => path.startsWith('/interval/')).map(meterOf)).size).toBe(1);
  };
  await fails('hang up', 'SERVICE_UNREACHABLE', 1);
  await fails({ status: 500, json: {} }, 'SERVICE_ERROR', 1);
  // This is true however long the service does not answer.
  await fails('hang up', 'SERVICE_UNREACHABLE', 100);
  const slowDown = { status: 429, json: {}, headers: { 'retry-after': '3600' } };
  await fails(slowDown, 'SERVICE_BUSY', 100);
});

test('a service that fails everything except /ping is an outage, which is reported until a request succeeds', async () => {
  const { refuses, script } = service();
  const under = await activitiesOn((asked) =>
    asked.path.endsWith('/ping') ? { json: { version: 'v2.2' } } : script(asked),
  );
  const { db } = under.warehouse;
  const owners = meters(2);
  await announce(under, owners);
  const parked = async () => (await readHealth(db)).parked;
  const outage = [expect.objectContaining({ code: 'SERVICE_OUTAGE', events: 0, parts: 0 })];
  const fails = { type: 'SERVICE_ERROR', nonRetryable: false };
  refuses.set('', 500);
  // An attempt does not count against an owner, however many there were.
  await expect(round(under, 'intervals', attemptPolicy.unclearMax + 1)).rejects.toMatchObject(fails);
  expect(await parked()).toEqual(outage);
  expect(await round(under)).toBe(0);
  expect(Object.values(await waits(under))).toEqual([0, 0].map((attempts) => ({ code: null, attempts })));
  refuses.clear();
  await waitOut(under);
  await probe(under);
  expect(await parked()).toEqual([]);
  expect(await round(under)).toBe(2);
  expect(await outcomes(under)).toEqual({ applied: 2 });

  const reading = { runId: randomUUID(), companyId: randomUUID() };
  refuses.set('', 500);
  await expect(under.run(under.activities.readCompany, reading)).rejects.toMatchObject(fails);
  expect(await parked()).toEqual(outage);
  // The probe fails, too. It asks again at least once a minute.
  for (let attempt = 2; attempt < 9; attempt++) {
    await waitOut(under);
    await probe(under);
  }
  expect(await pauseOf(under)).toEqual({ attempts: 8, seconds: expect.closeTo(60, -1) });
});

test('the probe of an owner reads one record, and once a probe succeeds, the others are due', async () => {
  const { refuses, script } = service();
  const under = await activitiesOn(script);
  const { db } = under.warehouse;
  const events = Array.from({ length: 20 }, () =>
    documentEvent('created', randomUUID(), '2026-05-01T00:00:00'),
  );
  await recordEvents(
    db,
    events.map((event) => delivery(event)),
  );
  const companyId = events[0]?.company?.id ?? '';
  await db.execute(sql`insert into utility.companies (id, raw, synced_at) values (${companyId}, '{}', now())
    on conflict (id) do update set raw = excluded.raw, synced_at = excluded.synced_at`);
  refuses.set('document', 403);
  expect(await round(under, 'documents')).toBe(1);
  const asked = under.asked().length;
  await waitOut(under);
  await round(under, 'documents');
  const ofDocuments = under
    .asked()
    .slice(asked)
    .filter((path) => path.startsWith('/document/'));
  expect(new Set(ofDocuments).size).toBeLessThanOrEqual(2);
  expect(await dueOwners(db, 'documents', 9)).toEqual([]);
  refuses.clear();
  await waitOut(under);
  await round(under, 'documents');
  expect(await dueOwners(db, 'documents', 9)).toEqual([companyId]);
});

test('a gate without events behind it is removed when it is time to probe it', async () => {
  const under = await activitiesOn(service().script);
  const { db } = under.warehouse;
  await closeGate(db, 'interval/m-1', { code: 'SERVICE_ACCESS_DENIED', message: 'no' });
  await closeGate(db, 'service', { code: 'SERVICE_OUTAGE', message: 'away' });
  const left = async () => (await db.execute(sql`select scope from metersync.gates order by 1`)).rows;
  await nextDue(db, await warehouseNow(db));
  expect(await left()).toEqual([{ scope: 'interval/m-1' }, { scope: 'service' }]);
  await waitOut(under);
  await nextDue(db, await warehouseNow(db));
  expect(await left()).toEqual([{ scope: 'service' }]);
});
