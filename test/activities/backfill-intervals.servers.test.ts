import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import type { IntervalCursor } from '../../activities/backfill/cursor.ts';
import { attemptPolicy, requestPolicy } from '../../contract/retry-policy.ts';
import { openGate, serviceScope } from '../../db/queue/gates.ts';
import { readRunProgress } from '../../db/read/runs.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { type ActivitiesUnderTest, activitiesOn, activityEnvironment } from '../support/activities.ts';
import { outageOf } from '../support/outage.ts';

const companyId = randomUUID();
const onlyIntervals = { connections: null, documents: null, usageData: null, meters: null };
const readings = (count: number) =>
  Array.from({ length: count }, (_, at) => {
    const start = new Date(Date.UTC(2026, 0, 1) + at * 900_000).toISOString();
    return { start, end: new Date(Date.parse(start) + 900_000).toISOString(), usage: '1', usageUnits: 'kWh' };
  });
const shape = { key: 'intervals', total: 'totalIntervals', perPage: 2_500 };
const pagesAsked = ({ asked }: ActivitiesUnderTest) =>
  asked()
    .filter((path) => path.startsWith('/interval/'))
    .map((path) => Number(new URLSearchParams(path.split('?')[1]).get('page')));

test('reports the pages of an interrupted meter, writes none of them, and reads the meter again', async () => {
  let failing = true;
  const under = await activitiesOn((asked: Asked): Reply => {
    const refused = failing && asked.query.get('page') === '4';
    return refused ? { status: 500, json: {} } : pageOf(readings(11_000), asked, shape);
  }, onlyIntervals);
  const { db } = under.warehouse;
  await db.execute(sql`insert into utility.meters (id, company_id) values ('m-1', ${companyId}::uuid)`);
  const input = { runId: randomUUID(), companyId };
  const environment = activityEnvironment();
  let cursor: unknown;
  environment.on('heartbeat', (details) => {
    cursor = (details as { cursor: unknown } | undefined)?.cursor;
  });
  const first = environment.run(under.activities.readCompany, input);
  await expect(first).rejects.toMatchObject({ type: 'SERVICE_ERROR' });
  expect(pagesAsked(under)).toEqual([1, 2, 3, ...Array(requestPolicy.attemptsMax).fill(4)]);
  const { rows, running } = await readRunProgress(db, input.runId);
  // How often the pages are noted depends on time.
  const pages = [1, 2, 3].map((count) => (count * 2_500) / 11_000);
  expect({ rows, running }).toMatchObject({ rows: 0, running: [{ done: expect.toBeOneOf(pages), of: 1 }] });
  failing = false;
  const asked = pagesAsked(under).length;
  await under.run(under.activities.readCompany, input, cursor);
  expect(pagesAsked(under).slice(asked)).toEqual([1, 2, 3, 4, 5]);
  const { rows: runs } = await db.execute(sql`
    select state, rows_inserted::int as inserted, pages::int as pages, (select count(*)::int from utility.intervals) as stored
    from metersync.runs where resource = 'intervals'`);
  expect(runs).toEqual([{ state: 'complete', inserted: 11_000, pages: 5, stored: 11_000 }]);
});

test('is suspect when a meter lists fewer readings than its total, never ends, or lists none of the stored readings', async () => {
  let [listed, total, moving] = [readings(4), 4, false];
  const under = await activitiesOn((asked: Asked): Reply => {
    const { json } = pageOf(listed, asked, { ...shape, perPage: 2 }) as { json: object };
    const page = moving && asked.query.get('page') === '2' ? { currentPage: 1 } : {};
    return { json: { ...json, totalIntervals: total, ...page } };
  }, onlyIntervals);
  const { db } = under.warehouse;
  await db.execute(sql`insert into utility.meters (id, company_id) values ('m-1', ${companyId}::uuid)`);
  const backfill = async () => {
    const runId = randomUUID();
    const asked = under.asked().length;
    await under.run(under.activities.readCompany, { runId, companyId });
    const { rows } = await db.execute(sql`
      select state, total_said::int as said, distinct_ids::int as seen, error from metersync.runs
      where run_id = ${runId}::uuid and resource = 'intervals'`);
    return { ...rows[0], requests: under.asked().length - asked };
  };
  const doubt = (what: string) => `1 meter is in doubt: of meter m-1 the service ${what}`;
  expect(await backfill()).toEqual({ state: 'complete', said: 4, seen: 4, error: null, requests: 2 });
  listed = readings(2);
  expect(await backfill()).toEqual({
    state: 'suspect',
    said: 4,
    seen: 2,
    requests: 2,
    error: doubt('shows 2 of the 4 readings of its total'),
  });
  listed = [];
  expect(await backfill()).toEqual({
    state: 'suspect',
    said: 4,
    seen: 0,
    requests: 2,
    error: doubt('shows 0 of the 4 readings of its total'),
  });
  total = 0;
  expect(await backfill()).toEqual({
    state: 'suspect',
    said: 0,
    seen: 0,
    requests: 1,
    error: doubt('no longer lists 4 readings: deletion is held back (metersync deletes list)'),
  });
  [listed, total, moving] = [readings(4), 2, true];
  expect(await backfill()).toEqual({
    state: 'suspect',
    said: 2,
    seen: 2,
    requests: 4,
    error: doubt('showed no end of the readings'),
  });
  await db.execute(sql`truncate utility.intervals`);
  [listed, total, moving] = [[], 0, false];
  expect(await backfill()).toEqual({ state: 'complete', said: 0, seen: 0, error: null, requests: 1 });
});

test.each(['', ' although /ping fails too'])(
  'retries a meter that alone fails%s, then leaves it out and names it, but an outage fails the attempt',
  async (without) => {
    const [patient, last] = [3, 4];
    const [failing, refused, fine] = ['m-1', 'm-2', 'm-3'];
    let down = false;
    const under = await activitiesOn(
      (asked: Asked): Reply => {
        const fails = asked.path.includes(failing) || (without !== '' && asked.path.endsWith('/ping'));
        if (down || fails) return { status: 500, json: {} };
        if (asked.path.includes(refused)) return { status: 404, json: {} };
        return pageOf(readings(2), asked, shape);
      },
      { ...onlyIntervals, meters: { path: '/meter/company/{companyId}' } },
    );
    const { db } = under.warehouse;
    const input = { runId: randomUUID(), companyId };
    await db.execute(sql`insert into utility.meters (id, company_id)
    select id, ${companyId}::uuid from unnest(array[${failing}, ${refused}, ${fine}]) id`);
    await db.execute(sql`insert into metersync.runs (run_id, company_id, resource, state, finished_at)
    values (${input.runId}::uuid, ${companyId}::uuid, 'meters', 'complete', now())`);
    const attempt = (number: number) => under.run(under.activities.readCompany, input, undefined, number);
    await expect(attempt(patient)).rejects.toMatchObject({ type: 'SERVICE_ERROR' });
    down = true;
    for (const [number, type] of [
      [last, 'SERVICE_ERROR'],
      [36, 'SERVICE_OUTAGE'],
    ] as const)
      await expect(attempt(number)).rejects.toMatchObject({ type });
    down = false;
    await openGate(db, serviceScope);
    await attempt(last);
    const { rows } = await db.execute(sql`select state, error_code, error, rows_inserted::int as inserted
    from metersync.runs where resource = 'intervals'`);
    expect(rows).toEqual([
      {
        state: 'partial',
        error_code: 'SERVICE_NOT_FOUND',
        inserted: 2,
        error: expect.stringMatching(/^2 meters: SERVICE_NOT_FOUND: .* \(m-1, m-2\)$/),
      },
    ]);
  },
);

test.each([
  ['one of its meters fails', 'partial', 5_000],
  ['the part fails', 'failed', null],
] as const)('counts the rows that a part wrote although %s later', async (_, state, seen) => {
  let status = 500;
  const under = await activitiesOn(
    (asked: Asked): Reply =>
      asked.path.includes('m-2') ? { status, json: {} } : pageOf(readings(5_000), asked, shape),
    onlyIntervals,
  );
  const { db } = under.warehouse;
  await db.execute(sql`
    insert into utility.meters (id, company_id)
    select id, ${companyId}::uuid
    from unnest(array['m-1', 'm-2']) id`);
  const run = { runId: randomUUID(), companyId };
  await db.execute(sql`
    insert into metersync.runs (run_id, state)
    values (${run.runId}, 'running')`);
  await db.execute(sql`insert into utility.companies (id) values (${companyId})`);
  const lane = { runId: run.runId, kind: 'full', lane: 0, chosen: false, listed: true } as const;
  const read = (attempt: number) => under.run(under.activities.readCompanies, lane, undefined, attempt);
  if (state === 'failed') {
    await expect(read(1)).rejects.toMatchObject({ type: 'SERVICE_ERROR' });
    await read(attemptPolicy.triesOfPart.full + 1);
  } else {
    status = 404;
    await read(1);
  }
  const { rows } = await db.execute(sql`
    select state, rows_inserted::int as inserted, (select count(*)::int from utility.intervals) as stored,
      total_said::int as said, distinct_ids::int as seen
    from metersync.runs where resource = 'intervals'`);
  expect(rows).toEqual([{ state, inserted: 5_000, stored: 5_000, said: seen, seen }]);
});

test('leaves out no meter because of an outage of the warehouse, however long it lasts', async () => {
  let goesAway = async (): Promise<void> => {};
  const under = await activitiesOn(async (asked: Asked) => {
    await goesAway();
    return pageOf(readings(2), asked, shape);
  }, onlyIntervals);
  const { db, url } = under.warehouse;
  await db.execute(sql`insert into utility.meters (id, company_id) values ('m-1', ${companyId}::uuid)`);
  const outage = await outageOf(url);
  goesAway = () => outage.begin();
  const environment = activityEnvironment(undefined, 36);
  const heartbeats: unknown[] = [];
  environment.on('heartbeat', (details) => heartbeats.push(details));
  const input = { runId: randomUUID(), companyId };
  try {
    await expect(environment.run(under.activities.readCompany, input)).rejects.toMatchObject({
      type: 'WAREHOUSE_UNAVAILABLE',
    });
  } finally {
    await outage.end();
    await outage.close();
  }
  const meters = under.asked().filter((path) => path.includes('m-1')).length;
  // Another attempt would begin the meter at its first page.
  const cursors = heartbeats.flatMap((details) =>
    details === undefined ? [] : [(details as { cursor: IntervalCursor }).cursor],
  );
  const read = cursors.filter(({ after }) => after !== null);
  expect([meters, read]).toEqual([1, []]);
  // The field catalogue reports the outage too. It writes its fields with the next page.
  expect(under.catalogueTroubles.splice(0)).toEqual([
    expect.objectContaining({
      message: expect.stringMatching(/not currently accepting|terminating connection/),
    }),
  ]);
});
