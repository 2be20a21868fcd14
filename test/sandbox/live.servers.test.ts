import pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { until } from '../support/poll.ts';
import { type AnyRecord, type Service, startService } from './support/service.ts';

let service: Service;
afterEach(() => service.stop());
const total = async () => (await service.control<AnyRecord>('GET', '/sandbox/status')).events.total as number;

describe('live changes', () => {
  test('continue at the given rate until it is 0', async () => {
    service = await startService({ live: 1200 });
    await service.enableWebhooks();
    await until('changes happen by themselves', async () => (await total()) >= 10);
    expect(await service.control('POST', '/sandbox/live', { perMinute: 0 })).toEqual({ perMinute: 0 });
    await service.control('POST', '/sandbox/random', { count: 1, types: ['createDocument'] });
    const after = await total();
    await service.control('POST', '/sandbox/random', { count: 1, types: ['createDocument'] });
    expect(await total()).toBe(after + 1);
    expect(service.errors).toEqual([]);
  });
});

async function ask<T extends pg.QueryResultRow>(text: string): Promise<T> {
  const client = new pg.Client({ connectionString: service.databaseUrl });
  await client.connect();
  const { now } = await service.control<AnyRecord>('GET', '/sandbox/status');
  const { rows } = await client.query<T>(text, [now]);
  await client.end();
  return rows[0] as T;
}

/** Counts pairs of bills of one meter that share more than a day, and bills of an unfinished period. */
const implausible = () =>
  ask<{ twice: number; early: number; bills: number }>(
    `select
      (select count(*)::int from sandbox.usage_data a join sandbox.usage_data b on b.meter_id = a.meter_id
        where a.id < b.id
          and least(a.end_date, b.end_date) - greatest(a.start_date, b.start_date) > 1) as twice,
      (select count(*)::int from sandbox.documents where period_end >= $1::timestamp::date) as early,
      (select count(*)::int from sandbox.documents) as bills`,
  );

const noon = BigInt(Date.parse('2026-07-02T12:00:00Z')) * 1000n;

describe('readings', () => {
  test('are only for times that are over', async () => {
    service = await startService({ now: () => noon });
    const readings = () =>
      ask<{ early: number; all: number }>(
        `select count(*)::int as all,
          count(*) filter (where start_at + seconds * interval '1 second' > $1::timestamp)::int as early
          from sandbox.intervals`,
      );
    const before = await readings();
    await service.control('POST', '/sandbox/random', { count: 100, types: ['syncIntervals'] });
    await service.control('POST', '/sandbox/random', { count: 100, types: ['syncIntervals'] });
    const after = await readings();
    expect([before.early, after.early]).toEqual([0, 0]);
    expect(after.all).toBeGreaterThan(before.all + 100);
  });
});

describe('bills', () => {
  test('are for the next period once it is over, and otherwise corrections, so that no month is billed twice', async () => {
    service = await startService({ documents: 60 });
    const { bills } = await implausible();
    const drawn = { createDocument: 0, reprocessDocument: 0 };
    // The changes are made one after another, like live changes.
    for (let seed = 0; seed < 80; seed++) {
      const { changesByType } = await service.control<AnyRecord>('POST', '/sandbox/random', {
        count: 1,
        seed,
      });
      for (const type of ['createDocument', 'reprocessDocument'] as const)
        drawn[type] += changesByType[type] ?? 0;
    }
    expect(await implausible()).toEqual({ twice: 0, early: 0, bills: bills + drawn.createDocument });
    expect(drawn.reprocessDocument).toBeGreaterThan(10);
    // Bills that are requested by type are older bills.
    await service.control('POST', '/sandbox/random', { count: 200, types: ['createDocument'] });
    expect(await implausible()).toEqual({ twice: 0, early: 0, bills: bills + drawn.createDocument + 200 });
  });
});

describe('the clock', () => {
  test('runs at its scale and moves only forward', async () => {
    service = await startService({ timeScale: 100 });
    const now = async () =>
      Date.parse(`${(await service.control<AnyRecord>('GET', '/sandbox/status')).now}Z`);
    const [real, virtual] = [Date.now(), await now()];
    await until('a second of service time has passed', async () => (await now()) - virtual > 1000);
    expect((await now()) - virtual).toBeGreaterThan(10 * (Date.now() - real));
    const before = await now();
    await service.control('POST', '/sandbox/clock', { advanceSeconds: 3600 });
    expect((await now()) - before).toBeGreaterThanOrEqual(3_600_000);
    await expect(service.control('POST', '/sandbox/clock', { advanceSeconds: -1 })).rejects.toThrow('400');
  });
});
