import { randomBytes, randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { defaultEndpoints } from '../../contract/endpoints.ts';
import { approveDeletes, readDeletes, rejectDeletes, undoDeletes } from '../../db/deletes/decide.ts';
import { recordEvents } from '../../db/events/record.ts';
import { unlistedMeters } from '../../db/read/extra-rows.ts';
import { readHealth } from '../../db/read/health.ts';
import { readStatus } from '../../db/read/status.ts';
import { repair } from '../../operations/audit/audit.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { setup } from '../service/setup.ts';
import { activitiesOn, queues } from '../support/activities.ts';
import { delivery, intervalsEvent } from '../support/events.ts';

const companyId = randomUUID();
const onlyIntervals = { connections: null, documents: null, usageData: null, meters: null };
const shape = { key: 'intervals', total: 'totalIntervals' };
const minute = (n: number): string => new Date(Date.UTC(2026, 4, 1, 0, n)).toISOString().slice(0, 19);

interface Listed {
  readonly id?: string;
  readonly start: string;
  readonly end: string;
  readonly usage: string;
  readonly usageUnits: string;
  readonly updated: string;
}

const reading = (from: number, to: number, usage = '1', updated = '2026-05-02T00:00:00'): Listed => ({
  start: minute(from),
  end: minute(to),
  usage,
  usageUnits: 'kWh',
  updated,
});
const quarters = Array.from({ length: 12 }, (_, at) => reading(at * 15, at * 15 + 15));
const hours = [0, 1, 2].map((hour) => reading(hour * 60, hour * 60 + 60, '4', '2026-04-01T00:00:00'));

/** Makes a meter whose listing a test can change. */
async function meterListing(listed: readonly Listed[], perPage = 100) {
  const nothing = async (): Promise<void> => undefined;
  const service = { listed, onAsked: nothing, onAnswer: nothing };
  const script = async (asked: Asked): Promise<Reply> => {
    if (asked.path === '/v2.2/company') return { json: [{ id: companyId }] };
    await service.onAsked();
    const [from, to] = ['startDate', 'endDate'].map((name) => asked.query.get(name)?.slice(0, 19));
    const within = service.listed.filter(({ start, end }) => start >= (from ?? '') && end <= (to ?? '9999'));
    const answer = pageOf(within, asked, { ...shape, perPage });
    await service.onAnswer();
    return answer;
  };
  const under = await activitiesOn(script, onlyIntervals);
  const { db } = under.warehouse;
  await db.execute(
    sql`insert into utility.companies (id) values (${companyId}::uuid) on conflict do nothing`,
  );
  await db.execute(sql`insert into utility.meters (id, company_id, raw)
      values ('m-1', ${companyId}::uuid, '{"identifiers": [{"name": "METER", "value": "E-77"}]}')`);
  return {
    ...under,
    db,
    script,
    list: (readings: readonly Listed[]) => {
      service.listed = readings;
    },
    onAsked: (act: () => Promise<void>) => {
      service.onAsked = act;
    },
    /** Acts once, when the next answer is made but not sent yet. */
    onNextAnswer: (act: () => Promise<void>) => {
      service.onAnswer = async () => {
        service.onAnswer = nothing;
        await act();
      };
    },
    backfill: async () => {
      const runId = randomUUID();
      await under.run(under.activities.readCompany, { runId, companyId });
      const { rows } = await db.execute<{ state: string }>(
        sql`select state from metersync.runs where run_id = ${runId}::uuid and resource = 'intervals'`,
      );
      return { runId, state: rows[0]?.state };
    },
    sendEvent: async (from = minute(0), to = minute(180)) => {
      await recordEvents(db, [delivery(intervalsEvent('m-1', from, to, 0))]);
      await under.run(under.activities.sweepOwners, { owners: queues('intervals', ['m-1']) });
    },
    stored: async () => {
      const { rows } = await db.execute<{ usage: string }>(
        sql`select usage from utility.intervals where meter_id = 'm-1' order by start_at, usage`,
      );
      return rows.map(({ usage }) => usage);
    },
    heldBack: async () => (await readDeletes(db, { all: false })).map(({ rows }) => rows),
  };
}

describe('a proved listing of a meter replaces its readings', () => {
  test.each([false, true])(
    'even if they were imported again with another length and an older state (event: %s)',
    async (event) => {
      const meter = await meterListing(quarters);
      await meter.backfill();
      meter.list(hours);
      if (event) await meter.sendEvent();
      else expect(await meter.backfill()).toMatchObject({ state: 'complete' });
      expect(await meter.stored()).toEqual(['4', '4', '4']);
      expect(await meter.backfill()).toMatchObject({ state: 'complete' });
      expect(await meter.stored()).toEqual(['4', '4', '4']);
    },
  );
});

describe('more vanished readings than the cap', () => {
  const vanished = async () => {
    const meter = await meterListing(quarters);
    await meter.backfill();
    meter.list([]);
    const run = await meter.backfill();
    expect(run.state).toBe('suspect');
    expect(await meter.stored()).toHaveLength(12);
    expect(await readDeletes(meter.db, { all: false })).toMatchObject([
      {
        runId: run.runId,
        isRun: true,
        resource: 'intervals',
        companyId,
        rows: 12,
        examples: ['m-1 2026-05-01 00:00 to 2026-05-01 03:00 UTC'],
        names: ['E-77'],
      },
    ]);
    // Health and status count readings, as the list of deletions does.
    expect(await readHealth(meter.db)).toMatchObject({ undecidedDeletes: 12 });
    expect(await readHealth(meter.db, { countMax: 5 })).toMatchObject({ undecidedDeletes: 6 });
    expect(await readStatus(meter.db)).toMatchObject({ quarantinedDeletes: 12 });
    return { ...meter, ...run };
  };

  test('are held back until somebody approves their removal, and can be brought back', async () => {
    const meter = await vanished();
    expect(await approveDeletes(meter.db, meter.runId)).toEqual({ tombstoned: 12, spared: 0 });
    expect(await meter.stored()).toEqual([]);
    expect(await meter.backfill()).toMatchObject({ state: 'complete' });
    expect(await undoDeletes(meter.db, meter.runId)).toMatchObject({ revived: 12 });
    expect(await meter.stored()).toHaveLength(12);
    // Readings that somebody restored are not removed again.
    expect(await meter.backfill()).toMatchObject({ state: 'complete' });
    expect(await meter.stored()).toHaveLength(12);
    expect(await meter.heldBack()).toEqual([]);
    expect(await undoDeletes(meter.db, meter.runId)).toEqual({ revived: 0, waiting: 12 });
    expect(await meter.heldBack()).toEqual([12]);
  });

  test('are not brought back where the meter has other readings by now', async () => {
    const meter = await vanished();
    await approveDeletes(meter.db, meter.runId);
    meter.list([hours[0] as Listed, reading(75, 90, '7')]);
    await meter.backfill();
    expect(await undoDeletes(meter.db, meter.runId)).toMatchObject({ revived: 7 });
    expect(await meter.stored()).toEqual(['4', '1', '7', ...Array.from({ length: 6 }, () => '1')]);
  });

  test('stay when somebody rejects their removal', async () => {
    const meter = await vanished();
    expect(await rejectDeletes(meter.db, meter.runId)).toEqual({ kept: 12 });
    expect(await meter.backfill()).toMatchObject({ state: 'complete' });
    expect(await meter.stored()).toHaveLength(12);
    expect((await readHealth(meter.db)).keptDeletes).toBe(12);
    // A listing that shows the readings ends the decision.
    meter.list(quarters);
    await meter.backfill();
    expect((await readHealth(meter.db)).keptDeletes).toBe(0);
    meter.list([]);
    expect(await meter.backfill()).toMatchObject({ state: 'suspect' });
    expect(await meter.heldBack()).toEqual([12]);
  });

  test('are removed without a decision by a later read that explains their absence', async () => {
    const meter = await vanished();
    meter.list(hours);
    expect(await meter.backfill()).toMatchObject({ state: 'complete' });
    expect(await meter.stored()).toEqual(['4', '4', '4']);
    expect(await meter.heldBack()).toEqual([]);
  });

  test('are no longer held back once they are listed again', async () => {
    const meter = await vanished();
    meter.list(quarters);
    expect(await meter.backfill()).toMatchObject({ state: 'complete' });
    expect(await meter.heldBack()).toEqual([]);
    expect(await meter.stored()).toHaveLength(12);
  });

  test('are also held back in an announced range', async () => {
    const meter = await meterListing(quarters);
    await meter.backfill();
    meter.list(quarters.slice(0, 8));
    await meter.sendEvent(minute(120), minute(180));
    expect(await meter.stored()).toHaveLength(12);
    expect(await meter.heldBack()).toEqual([4]);
    expect(await readDeletes(meter.db, { all: false })).toMatchObject([{ isRun: false }]);
  });

  test('wait only as far as they are not listed again, and the next backfill judges the others', async () => {
    const meter = await vanished();
    meter.list([reading(0, 15, '9'), ...quarters.slice(1, 4)]);
    await meter.sendEvent(minute(0), minute(60));
    expect(await meter.heldBack()).toEqual([8]);
    expect(await meter.stored()).toHaveLength(12);
    expect(await meter.backfill()).toMatchObject({ state: 'complete' });
    expect(await meter.heldBack()).toEqual([]);
    expect(await meter.stored()).toEqual(['9', '1', '1', '1']);
  });

  test('are held back in a range about which nothing is listed, although a daily reading covers it', async () => {
    const meter = await meterListing([reading(0, 1_440, '96'), ...quarters]);
    await meter.backfill();
    meter.list([]);
    await meter.sendEvent(minute(150), minute(180));
    expect(await meter.stored()).toHaveLength(13);
    expect(await meter.heldBack()).toEqual([2]);
  });

  test('stay kept by a decision if a range within them is read that lists none of them', async () => {
    const meter = await vanished();
    await rejectDeletes(meter.db, meter.runId);
    await meter.sendEvent(minute(60), minute(120));
    expect(await meter.stored()).toHaveLength(12);
    expect((await readHealth(meter.db)).keptDeletes).toBe(12);
  });

  test('are held back for one unit, even if readings in another unit are listed for the same time', async () => {
    const of = (usageUnits: string) =>
      Array.from({ length: 60 }, (_, at) => ({ ...reading(at * 15, at * 15 + 15), usageUnits }));
    const meter = await meterListing([...of('kWh'), ...of('kW')]);
    await meter.backfill();
    meter.list(of('kWh'));
    const { runId, state } = await meter.backfill();
    expect(state).toBe('suspect');
    expect(await meter.stored()).toHaveLength(120);
    expect(await meter.heldBack()).toEqual([60]);
    expect(await approveDeletes(meter.db, runId)).toEqual({ tombstoned: 60, spared: 0 });
    const { rows } = await meter.db.execute(sql`select distinct usage_units from utility.intervals`);
    expect(rows).toEqual([{ usage_units: 'kWh' }]);
  });
});

test('of two readings of one time, the one stays that is listed', async () => {
  const now = (minutesAgo: number) => new Date(Date.now() - minutesAgo * 60_000).toISOString().slice(0, 19);
  const [recent, old] = [reading(0, 60, '1', now(60)), reading(0, 60, '5', '2026-04-01T00:00:00')];
  const meter = await meterListing([recent, old]);
  await meter.backfill();
  expect(await meter.stored()).toEqual(['1', '5']);
  meter.list([old]);
  await meter.sendEvent();
  expect(await meter.stored()).toEqual(['5']);
});

test('a listing that grows while it is read is read once, and one whose readings move is not stored twice', async () => {
  const meter = await meterListing(quarters, 5);
  let asked = 0;
  meter.onAsked(async () => {
    asked += 1;
    if (asked === 2) meter.list([...quarters, reading(180, 195)]);
  });
  expect(await meter.backfill()).toMatchObject({ state: 'complete' });
  expect(asked).toBe(3);
  expect(await meter.stored()).toHaveLength(13);
  await meter.db.execute(sql`truncate utility.intervals, metersync.interval_reads`);
  let listed = quarters;
  meter.onAsked(async () => {
    const from = -15 * listed.length;
    listed = [reading(from, from + 15), ...listed];
    meter.list(listed);
  });
  expect(await meter.backfill()).toMatchObject({ state: 'suspect' });
  expect(await meter.stored()).toEqual([]);
});

test('readings that no row can hold do not prevent the replacement of other readings', async () => {
  const meter = await meterListing(quarters);
  await meter.backfill();
  const long = randomBytes(10_000).toString('hex');
  meter.list([
    ...quarters.slice(1),
    { ...reading(180, 195), end: '' },
    { ...reading(195, 210), usageUnits: long },
  ]);
  await meter.backfill();
  expect(await meter.stored()).toHaveLength(11);
});

test.each(['existing', 'none'])(
  'a page that was requested before a later read removed a reading does not restore the reading (%s before)',
  async (before) => {
    const meter = await meterListing(quarters);
    if (before === 'existing') await meter.backfill();
    meter.list(before === 'existing' ? [...quarters, reading(180, 195)] : quarters);
    const left = quarters.filter((_, at) => at !== 5);
    meter.onNextAnswer(async () => {
      await meter.sendEvent(minute(0), minute(195));
      meter.list(left);
      await meter.sendEvent(minute(0), minute(195));
    });
    await meter.backfill();
    expect(await meter.stored()).toHaveLength(left.length);
  },
);

test('a reading that an event brings while a backfill reads its range again is kept', async () => {
  const meter = await meterListing(quarters, 2);
  await meter.backfill();
  meter.list(hours);
  let asked = 0;
  meter.onAsked(async () => {
    asked += 1;
    // The first request of the second pass.
    if (asked !== 3) return;
    meter.list([...hours, reading(180, 195, '5')]);
    await meter.sendEvent(minute(180), minute(195));
    meter.list(hours);
  });
  await meter.backfill();
  expect(await meter.stored()).toEqual(['4', '4', '4', '5']);
});

test('readings of a deleted meter do not count in any view or audit', async () => {
  const meter = await meterListing(quarters);
  await meter.backfill();
  const counted = async () => {
    const { rows } = await meter.db.execute<{ n: number }>(
      sql`select count(*)::int as n from analytics.interval_readings where meter_id = 'm-1'`,
    );
    return rows[0]?.n;
  };
  expect(await counted()).toBe(12);
  await meter.db.execute(sql`update utility.meters set deleted_at = now(), deleted_reason = 'absent'`);
  expect(await counted()).toBe(0);
  expect(await unlistedMeters(meter.db, companyId, [])).toEqual([]);
});

test('no transaction is open while a request to the service is in flight', async () => {
  const meter = await meterListing(quarters, 2);
  const open: unknown[] = [];
  let asked = 0;
  meter.onAsked(async () => {
    asked += 1;
    const { rows } = await meter.db.execute(sql`select query from pg_stat_activity
      where datname = current_database() and state like 'idle in transaction%'`);
    open.push(...rows);
  });
  await meter.backfill();
  const before = asked;
  meter.list(hours);
  await meter.sendEvent();
  expect(asked).toBeGreaterThan(before + 1);
  meter.list(quarters);
  await meter.backfill();
  meter.list(hours.slice(1));
  const endpoints = { ...defaultEndpoints, ...onlyIntervals };
  const { client } = await setup(meter.script, { endpoints });
  const options = { warehouse: meter.warehouse, service: client, concurrency: 1 };
  await repair({ ...options, apiVersion: 'v2.2' });
  expect(await meter.stored()).toEqual(['4', '4']);
  expect(open).toEqual([]);
});
