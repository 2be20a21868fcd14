import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { recordEvents } from '../../db/events/record.ts';
import { openGate } from '../../db/queue/gates.ts';
import { readStatus } from '../../db/read/status.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { type ActivitiesUnderTest, activitiesOn, outcomes, queues } from '../support/activities.ts';
import { company, delivery, intervalsEvent } from '../support/events.ts';

const meterId = randomUUID();
const day = (n: number) => `2026-05-${String(n).padStart(2, '0')}T00:00:00`;
const hour = (n: number) => `2026-05-01T${String(n).padStart(2, '0')}:00:00`;

/** Answers every range with one reading at its start. */
function oneReading(asked: Asked): Reply {
  if (asked.path === '/v2.2/company') return { json: [company] };
  if (asked.path.startsWith('/v2.2/meter/')) {
    return pageOf([{ id: meterId }], asked, { key: 'meters', total: 'totalMeters' });
  }
  const start = asked.query.get('startDate') ?? '';
  const reading = { start, end: start.replace('00:00.', '15:00.'), usage: '1.5', usageUnits: 'kWh' };
  return pageOf([reading], asked, { key: 'intervals', total: 'totalIntervals' });
}

const catchUp = ({ run, activities }: ActivitiesUnderTest) =>
  run(activities.sweepOwners, { owners: queues('intervals', [meterId]) });
const announce = async (
  { warehouse }: ActivitiesUnderTest,
  ranges: readonly [start: string, end: string][],
  count = 0,
) => {
  const events = ranges.map(([start, end]) => delivery(intervalsEvent(meterId, start, end, count)));
  await recordEvents(warehouse.db, events);
};
const rangesAsked = ({ asked }: ActivitiesUnderTest) =>
  asked()
    .filter((path) => path.startsWith('/interval/'))
    .map((path) => {
      const query = new URLSearchParams(path.split('?')[1]);
      return [query.get('startDate'), query.get('endDate')];
    });

describe('catching up on intervals', () => {
  test('reads ranges that overlap, touch or repeat as one range, and other ranges separately', async () => {
    const under = await activitiesOn(oneReading);
    await announce(under, [
      [day(1), day(3)],
      [day(2), day(4)],
      [day(4), day(5)],
      [day(2), day(4)],
      [day(9), day(10)],
    ]);
    await catchUp(under);
    expect(rangesAsked(under)).toEqual([
      ['2026-05-01T00:00:00.000000Z', '2026-05-05T00:00:00.000000Z'],
      ['2026-05-09T00:00:00.000000Z', '2026-05-10T00:00:00.000000Z'],
    ]);
    expect(await outcomes(under)).toEqual({ applied: 5 });
    const readings = await under.warehouse.db.execute(sql`select usage from utility.intervals`);
    expect(readings.rows).toEqual([{ usage: '1.5' }, { usage: '1.5' }]);
  });

  test('reads a range again that was announced while another range of the meter was read', async () => {
    let during: (() => Promise<void>) | undefined;
    const under = await activitiesOn(async (asked) => {
      if (asked.path.startsWith('/v2.2/interval/')) await during?.();
      return oneReading(asked);
    });
    await announce(under, [[hour(1), hour(3)]]);
    during = async () => {
      during = undefined;
      // This range is announced after the read of a range around it began: its readings may be newer.
      await announce(under, [[hour(2), hour(3)]]);
    };
    await catchUp(under);
    expect(await outcomes(under)).toEqual({ applied: 1, pending: 1 });
    await catchUp(under);
    expect(await outcomes(under)).toEqual({ applied: 2 });
    expect(rangesAsked(under)).toHaveLength(2);
  });

  test('reads an unknown meter from the listing of the company that its event names', async () => {
    const under = await activitiesOn(oneReading);
    await under.warehouse.db.execute(
      sql`insert into utility.companies (id, external_id) values (${company.id}::uuid, ${company.externalId})`,
    );
    await announce(under, [[hour(1), hour(2)]]);
    await catchUp(under);
    const meters = await under.warehouse.db.execute(sql`select id, company_id from utility.meters`);
    expect(meters.rows).toEqual([{ id: meterId, company_id: company.id }]);
  });

  test('parks a refused meter with the reason, and reads the others', async () => {
    const refused = randomUUID();
    const under = await activitiesOn((asked) =>
      asked.path.includes(refused) ? { status: 403, json: { detail: 'not yours' } } : oneReading(asked),
    );
    const { warehouse, run, activities } = under;
    await recordEvents(warehouse.db, [delivery(intervalsEvent(refused, hour(1), hour(2), 1))]);
    await announce(under, [[hour(1), hour(2)]]);
    await run(activities.sweepOwners, { owners: queues('intervals', [refused, meterId]) });
    const events = await warehouse.db.execute(
      sql`select outcome, error, next_attempt_at > clock_timestamp() as waits from metersync.events order by outcome`,
    );
    expect(events.rows).toEqual([
      { outcome: 'applied', error: null, waits: null },
      { outcome: 'pending', error: expect.stringContaining('SERVICE_ACCESS_DENIED'), waits: true },
    ]);
  });
});

test('keeps the source text of readings that Postgres refuses, until they are listed without error', async () => {
  const wrong: Readonly<Record<string, object>> = {
    'a NUL in its start': { start: '2026-05-01T03:00:00\u0000' },
    'a lone surrogate in its end': { end: '\ud800' },
    'no such day': { start: '2026-04-31T01:00:00' },
    'a meter whose name holds a NUL': { meterId: 'c\u0000d' },
  };
  let listed: readonly object[] = [];
  const under = await activitiesOn((asked) =>
    asked.path.startsWith('/v2.2/interval/')
      ? pageOf(listed, asked, { key: 'intervals', total: 'totalIntervals' })
      : oneReading(asked),
  );
  const { db } = under.warehouse;
  const reading = (slot: number, fields: object = {}) => ({
    start: hour(slot),
    end: hour(slot).replace('00:00', '15:00'),
    usage: '1',
    usageUnits: 'kWh',
    ...fields,
  });
  listed = Object.values(wrong).flatMap((fields, at) => [reading(2 * at), reading(2 * at + 1, fields)]);
  await announce(under, [['2026-04-30T00:00:00', day(2)]]);
  await catchUp(under);
  const kept = await db.execute<{ record: string }>(
    sql`select record from metersync.rejected_records where resource = 'intervals' order by record_id`,
  );
  expect(kept.rows).toHaveLength(4);
  for (const text of ['00\\u0000', '\\ud800', '2026-04-31', 'c\\u0000d'])
    expect(kept.rows.filter(({ record }) => record.includes(text))).toHaveLength(1);
  const readings = await db.execute(sql`select start_at from utility.intervals`);
  expect(readings.rows).toHaveLength(4);
  listed = Object.values(wrong).flatMap((_, at) => [reading(2 * at), reading(2 * at + 1)]);
  await announce(under, [['2026-04-30T00:00:00', day(2)]]);
  await catchUp(under);
  expect((await db.execute(sql`select from metersync.rejected_records`)).rowCount).toBe(0);
});

describe('a service with a reading for each hour, which leaves out those that cross the bounds of a request,', () => {
  async function withHours() {
    let usage = '1';
    const under = await activitiesOn((asked) => {
      if (!asked.path.startsWith('/v2.2/interval/')) return oneReading(asked);
      const [from = '', to = ''] = [asked.query.get('startDate') ?? '', asked.query.get('endDate') ?? ''];
      const hours = Array.from({ length: 72 }, (_, at) => {
        const time = (n: number) =>
          new Date(Date.UTC(2026, 3, 30) + n * 3_600_000).toISOString().slice(0, 19);
        return { start: time(at), end: time(at + 1), usage, usageUnits: 'kWh' };
      });
      const within = hours.filter(({ start, end }) => `${start}.000000Z` >= from && `${end}.000000Z` <= to);
      return pageOf(within, asked, { key: 'intervals', total: 'totalIntervals' });
    });
    const read = async (start: string, end: string, count: number, now: string) => {
      usage = now;
      const event = { ...intervalsEvent(meterId, start, end, count), granularitySeconds: [3600] };
      await recordEvents(under.warehouse.db, [delivery(event)]);
      await catchUp(under);
      const { rows } = await under.warehouse.db.execute<{ start: string }>(sql`
        select to_char(start_at at time zone 'UTC', 'DD HH24') as start from utility.intervals
        where usage = ${now}::numeric order by start_at`);
      return rows.map((row) => row.start);
    };
    return { under, read };
  }

  test('has the reading that a range within it announces, and all readings of a date', async () => {
    const { under, read } = await withHours();
    // A date is a day in an unknown zone, from 14 hours before its midnight in UTC to 12 hours after its end.
    const days = await read('2026-05-01', '2026-05-01', 24, '1');
    expect([days[0], days.length, days.at(-1)]).toEqual(['30 10', 50, '02 11']);
    expect(await read('2026-05-01T10:15:00', '2026-05-01T10:45:00', 1, '2')).toEqual(['01 10']);
    expect(await outcomes(under)).toEqual({ applied: 2 });
    const { rows } = await under.warehouse.db.execute(
      sql`select intervals_found::int as found from metersync.journal order by recorded_at`,
    );
    expect(rows).toEqual([{ found: 50 }, { found: 1 }]);
  });

  test('has new readings that only overlap a range, which is read again because it lacks them', async () => {
    const { under, read } = await withHours();
    expect(await read('2026-05-01T10:30:00', '2026-05-01T11:30:00', 2, '3')).toEqual([]);
    expect(await outcomes(under)).toEqual({ pending: 1 });
    await under.warehouse.db.execute(sql`update metersync.journal set due_at = clock_timestamp()`);
    await catchUp(under);
    expect(await outcomes(under)).toEqual({ applied: 1 });
    const { rows } = await under.warehouse.db.execute(sql`
      select intervals_found::int as found from metersync.journal`);
    expect(rows).toEqual([{ found: 2 }]);
  });
});

describe('the ledger of a meter', () => {
  const ledger = async ({ warehouse }: ActivitiesUnderTest) =>
    (
      await warehouse.db.execute(sql`
        select announced = fetched as complete, isempty(missing) as nothing_missing, readings_reported::int as reported,
          readings_found::int as found, shortfall::int as shortfall
        from metersync.interval_ledger where meter_id = ${meterId}`)
    ).rows[0];
  const due = ({ warehouse }: ActivitiesUnderTest) =>
    warehouse.db.execute(
      sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`,
    );

  test('shows what was announced, what was read and what is missing, even after a range is announced again', async () => {
    const under = await activitiesOn(oneReading);
    await announce(under, [[hour(1), hour(3)]], 1);
    expect(await ledger(under)).toMatchObject({
      complete: false,
      nothing_missing: false,
      reported: 1,
      found: 0,
    });
    await catchUp(under);
    const fetched = { complete: true, nothing_missing: true, reported: 1, found: 1, shortfall: 0 };
    expect(await ledger(under)).toEqual(fetched);
    await announce(under, [[hour(2), hour(3)]]);
    expect(await ledger(under)).toMatchObject({ nothing_missing: false });
    await catchUp(under);
    expect(await ledger(under)).toMatchObject({ nothing_missing: true });
  });

  test('looks again for missing readings, and keeps the shortfall until they are listed', async () => {
    let count = 1;
    const under = await activitiesOn((asked) => {
      if (!asked.path.startsWith('/v2.2/interval/')) return oneReading(asked);
      const readings = Array.from({ length: count }, (_, at) => ({
        start: `2026-05-01T01:0${at}:00`,
        end: `2026-05-01T01:0${at + 1}:00`,
        usage: '1',
        usageUnits: 'kWh',
      }));
      return pageOf(readings, asked, { key: 'intervals', total: 'totalIntervals' });
    });
    await announce(under, [[hour(1), hour(2)]], 3);
    for (let look = 1; look <= 4; look++) {
      await catchUp(under);
      expect(await outcomes(under)).toEqual({ pending: 1 });
      await due(under);
    }
    await catchUp(under);
    expect(await outcomes(under)).toEqual({ applied: 1 });
    expect(await ledger(under)).toMatchObject({ reported: 3, found: 1, shortfall: 2 });
    expect((await readStatus(under.warehouse.db)).intervalShortfall).toEqual({ events: 1, readings: 2 });
    count = 3;
    await announce(under, [[hour(1), hour(2)]]);
    await catchUp(under);
    expect(await ledger(under)).toMatchObject({ shortfall: 0 });
    expect((await readStatus(under.warehouse.db)).intervalShortfall).toEqual({ events: 0, readings: 0 });
  });

  test('reads a wide range in overlapping pieces, and resumes after the last piece written', async () => {
    let interruptAt: string | undefined = '2027';
    const under = await activitiesOn((asked) => {
      const start = asked.query.get('startDate') ?? '';
      if (interruptAt !== undefined && start.startsWith(interruptAt)) return { status: 403, json: {} };
      if (!asked.path.startsWith('/v2.2/interval/')) return oneReading(asked);
      const only = { start: '2026-03-01T00:00:00', end: '2026-03-01T00:15:00', usage: '1.5' };
      const shown = start < only.start ? [only] : [];
      return pageOf(shown, asked, { key: 'intervals', total: 'totalIntervals' });
    });
    const wide: [string, string] = ['2026-01-01T00:00:00', '2028-01-01T00:00:00'];
    await announce(under, [wide], 1);
    await catchUp(under);
    const before = rangesAsked(under);
    expect(before.length).toBeGreaterThan(1);
    expect(await outcomes(under)).toEqual({ pending: 1 });
    interruptAt = undefined;
    await openGate(under.warehouse.db, `interval/${meterId}`);
    await due(under);
    await catchUp(under);
    const pieces = rangesAsked(under).slice(before.length);
    for (const [at, [start = '']] of pieces.entries())
      if (at > 0) expect((start ?? '') < (pieces[at - 1]?.[1] ?? '')).toBe(true);
    expect(pieces.at(-1)?.[1]).toBe('2028-01-01T00:00:00.000000Z');

    // The cursor is from an attempt that was interrupted after the second piece.
    await announce(under, [wide], 1);
    const asked = rangesAsked(under).length;
    const cursor = {
      meterId,
      runId: randomUUID(),
      readAt: '2100-01-01T00:00:00Z',
      ranges: [{ start: pieces[0]?.[0], end: pieces.at(-1)?.[1] }],
      granularity: { shortest: 900, longest: 86_400 },
      range: 0,
      within: { from: pieces[1]?.[1], width: 4 },
    };
    const { run, activities } = under;
    await run(activities.sweepOwners, { owners: queues('intervals', [meterId]) }, cursor);
    expect(rangesAsked(under).slice(asked)).toEqual(pieces.slice(2));
    expect(await outcomes(under)).toEqual({ applied: 2 });
  });
});

/** Catches up a meter with four readings on two pages, which change after the first page is read. */
async function changesAfterTheFirstPage(change: (listed: object[]) => void) {
  const at = (slot: number) => `2026-05-01T0${slot}:00:00`;
  const listed: object[] = [1, 2, 3, 4].map((slot) => ({ start: at(slot), end: at(slot + 1), usage: '1' }));
  let changed = false;
  const under = await activitiesOn((asked) => {
    if (!asked.path.startsWith('/v2.2/interval/')) return oneReading(asked);
    const page = pageOf(listed, asked, { key: 'intervals', total: 'totalIntervals', perPage: 2 });
    if (!changed) change(listed);
    changed = true;
    return page;
  });
  await announce(under, [[hour(1), hour(9)]]);
  await catchUp(under);
  const { db } = under.warehouse;
  const waiting = await db.execute(
    sql`select error_code as code from metersync.journal where outcome = 'pending'`,
  );
  await db.execute(sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`);
  await catchUp(under);
  const readings = await db.execute(sql`select from utility.intervals`);
  return { first: waiting.rows, outcomes: await outcomes(under), stored: readings.rowCount };
}

test('reads a range again at once if its readings moved while it was read', async () => {
  const moves = (listed: object[]) => listed.push(...listed.splice(0, 1));
  expect(await changesAfterTheFirstPage(moves)).toEqual({ first: [], outcomes: { applied: 1 }, stored: 4 });
});

test('reads a range again at once that lost a reading from a page that was read', async () => {
  expect(await changesAfterTheFirstPage((listed) => listed.splice(0, 1))).toEqual({
    first: [],
    outcomes: { applied: 1 },
    stored: 3,
  });
});

test('a range whose listing is never consistent does not hold up other ranges of its meter', async () => {
  const under = await activitiesOn((asked) => {
    const page = oneReading(asked) as { json: object };
    const isOdd = asked.query.get('startDate')?.startsWith('2026-05-01') === true;
    return isOdd ? { json: { ...page.json, totalIntervals: 2 } } : page;
  });
  await announce(under, [
    [hour(1), hour(2)],
    [day(9), day(10)],
  ]);
  await catchUp(under);
  expect(await outcomes(under)).toEqual({ applied: 1, pending: 1 });
  const { rows } = await under.warehouse.db.execute(sql`
    select error_code as code, due_at > clock_timestamp() as waits from metersync.journal where outcome = 'pending'`);
  expect(rows).toEqual([{ code: 'LISTING_UNSTABLE', waits: true }]);
});

describe('readings that the service replaces', () => {
  const [before, after] = ['2026-05-02T00:00:00', '2026-05-03T00:00:00'];
  const of = (start: string, end: string, usageUnits = 'kWh', updated: string | null = before) => ({
    start: `2026-05-01T${start}:00`,
    end: `2026-05-01T${end}:00`,
    usage: '1',
    usageUnits,
    updated,
  });
  /**
   * Announces and reads one to three o'clock with the first listing, then one to two o'clock with the second,
   * of `perPage` readings a page.
   */
  async function replace(first: object[], second: object[], perPage = 100) {
    let listed = first;
    let page = 100;
    const under = await activitiesOn((asked) => {
      if (!asked.path.startsWith('/v2.2/interval/')) return oneReading(asked);
      const end = asked.query.get('endDate') ?? '';
      const within = listed.filter((reading) => `${(reading as { end: string }).end}.000000Z` <= end);
      return pageOf(within, asked, { key: 'intervals', total: 'totalIntervals', perPage: page });
    });
    await announce(under, [[hour(1), hour(3)]]);
    await catchUp(under);
    [listed, page] = [second, perPage];
    await announce(under, [[hour(1), hour(2)]]);
    const asked = rangesAsked(under).length;
    await catchUp(under);
    const { rows } = await under.warehouse.db.execute<{ id: string }>(sql`
      select to_char(start_at at time zone 'UTC', 'HH24:MI') || ' ' || granularity_seconds || usage_units as id
      from utility.intervals order by id`);
    return { held: rows.map(({ id }) => id), requests: rangesAsked(under).length - asked };
  }

  test.each<[string, object[], object[], string[]]>([
    ['another unit', [of('01:00', '01:15')], [of('01:00', '01:15', 'Wh', after)], ['01:00 900Wh']],
    ['an earlier end', [of('01:00', '01:15')], [of('01:00', '01:05', 'kWh', after)], ['01:00 300kWh']],
    ['an end within', [of('01:00', '03:00')], [of('01:00', '01:15', 'kWh', after)], ['01:00 900kWh']],
    [
      'one for four',
      [of('01:00', '01:15'), of('01:15', '01:30'), of('01:30', '01:45'), of('01:45', '02:00')],
      [of('01:00', '02:00', 'kWh', after)],
      ['01:00 3600kWh'],
    ],
    ['an earlier start', [of('01:15', '01:30')], [of('01:00', '02:00', 'kWh', after)], ['01:00 3600kWh']],
    ['a later start', [of('01:00', '02:00')], [of('01:30', '02:00', 'kWh', after)], ['01:30 1800kWh']],
    [
      'no time of change',
      [of('01:00', '01:15', 'kWh', null)],
      [of('01:00', '01:15', 'Wh', null)],
      ['01:00 900Wh'],
    ],
  ])('are removed if the service no longer lists them: %s', async (_, first, second, held) => {
    expect((await replace(first, second)).held).toEqual(held);
  });

  test('stay only if they are listed, on whichever page', async () => {
    const both = [of('01:00', '01:15', 'kW'), of('01:00', '01:15', 'kWh', after), of('01:15', '01:30')];
    const all = ['01:00 900kW', '01:00 900kWh', '01:15 900kWh'];
    expect(await replace(both, both, 1)).toEqual({ held: all, requests: 3 });
    const [kw, kwh] = both as [object, object];
    expect((await replace(both, [kw])).held).toEqual(['01:00 900kW']);
    expect((await replace([kw, kwh], [kwh])).held).toEqual(['01:00 900kWh']);
    expect(await replace([of('01:00', '01:15'), of('01:15', '01:30')], [of('01:00', '01:15')])).toEqual({
      held: ['01:00 900kWh'],
      requests: 1,
    });
  });
});

describe('a range that an event invents', () => {
  const claimed: [string, string] = ['0001-01-01T00:00:00', '9999-12-31T00:00:00'];
  /** Answers for a meter with a reading a week for five years, a hundred on a page. */
  const years = (asked: Asked): Reply => {
    if (!asked.path.startsWith('/v2.2/interval/')) return oneReading(asked);
    const [from, to] = [asked.query.get('startDate') ?? '', asked.query.get('endDate') ?? ''];
    const starts = Array.from({ length: 260 }, (_, week) => Date.UTC(2021, 0, 1) + week * 7 * 86_400_000)
      .map((time) => new Date(time).toISOString())
      .filter((start) => start >= from && start < to);
    const readings = starts.map((start) => ({ start, end: start.replace('00:00.', '15:00.'), usage: '1' }));
    return pageOf(readings, asked, { key: 'intervals', total: 'totalIntervals' });
  };

  test.each([
    ['the years 1 to 9999', [900], ''],
    ['the same, which begins before year 1 in UTC', [900], '+01:00'],
    ['the same, with readings of a second', [1], ''],
    ['the same, with readings of a second and of 31 years', [1, 999_999_999], ''],
    ['the same, with readings of 31 years', [999_999_999], ''],
  ])('costs few requests, and its readings are fetched: %s', async (_name, granularitySeconds, zone) => {
    const under = await activitiesOn(years);
    const [start, end] = claimed;
    await recordEvents(under.warehouse.db, [
      delivery({ ...intervalsEvent(meterId, start + zone, end, 0), granularitySeconds }),
    ]);
    await catchUp(under);
    expect(rangesAsked(under).length).toBeLessThan(45);
    expect(await outcomes(under)).toEqual({ applied: 1 });
    const readings = await under.warehouse.db.execute(sql`select from utility.intervals`);
    expect(readings.rowCount).toBe(260);
  });

  test('is read in pieces of the usual width if a piece is too large for one answer', async () => {
    const under = await activitiesOn((asked) => {
      const [from, to] = [asked.query.get('startDate') ?? '', asked.query.get('endDate') ?? ''];
      const tooMuch = from < '2022' && to > '2021' && Date.parse(to) - Date.parse(from) > 300 * 86_400_000;
      return tooMuch ? { body: '<html>' } : years(asked);
    });
    await announce(under, [['2000-01-01T00:00:00', '2026-01-01T00:00:00']]);
    await catchUp(under);
    expect(await outcomes(under)).toEqual({ applied: 1 });
    const readings = await under.warehouse.db.execute(sql`select from utility.intervals`);
    expect(readings.rowCount).toBe(260);
  });
});
