import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { beforeEach, expect, test } from 'vitest';
import { probeEventType } from '../../contract/event.ts';
import type { RunKind, RunState } from '../../contract/names.ts';
import { untilDecided } from '../../contract/words.ts';
import { chooseCompanies } from '../../db/backfill/run-companies.ts';
import { concludeRun } from '../../db/backfill/run-end.ts';
import { finishRun, noteProgress, startRun } from '../../db/backfill/runs.ts';
import { rejectDeletes } from '../../db/deletes/decide.ts';
import { recordEvents } from '../../db/events/record.ts';
import { auditInWords, beginOperation, finishOperation } from '../../db/operations.ts';
import { readHealth } from '../../db/read/health.ts';
import { readStatus, readStatusAbout } from '../../db/read/status.ts';
import { noteRefused } from '../../db/watch/refused.ts';
import { runCommand } from '../support/command.ts';
import { company, delivery, documentEvent } from '../support/events.ts';
import { forFile } from '../support/for-file.ts';
import { writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());
beforeEach(async () => {
  const tables = ['journal', 'runs', 'heartbeat'].map((name) => `metersync.${name}`);
  for (const table of [...tables, 'utility.companies'])
    await warehouse.db.execute(sql.raw(`delete from ${table}`));
});

async function part(resource: string, state: 'complete' | 'failed', error?: string): Promise<void> {
  const key = { runId: randomUUID(), companyId: company.id, resource };
  await startRun(warehouse.db, key);
  await finishRun(warehouse.db, key, state, error === undefined ? {} : { error });
}

test('an empty warehouse is healthy but not loaded', async () => {
  expect(await readHealth(warehouse.db)).toMatchObject({
    loaded: false,
    oldestDueSeconds: null,
    dead: 0,
    missingLately: 0,
    parked: [],
    runs: { full: { running: 0, last: null }, reconcile: { running: 0, last: null } },
  });
});

test('a run that is under way or that failed has not loaded the warehouse', async () => {
  const key = { runId: randomUUID(), companyId: null, resource: null };
  await startRun(warehouse.db, key);
  expect(await readHealth(warehouse.db)).toMatchObject({ loaded: false, runs: { full: { running: 1 } } });
  await finishRun(warehouse.db, key, 'failed', { error: 'SERVICE_KEY_REFUSED: no' });
  expect(await readHealth(warehouse.db)).toMatchObject({ loaded: false });
  await finishRun(warehouse.db, key, 'partial', {});
  expect(await readHealth(warehouse.db)).toMatchObject({
    loaded: true,
    runs: { full: { running: 0, last: { runId: key.runId, state: 'partial' } } },
  });
});

test('a run of chosen companies has not loaded the warehouse, and a first backfill is not the last run', async () => {
  const { db } = warehouse;
  const chosen = async (runId: string, state: 'complete' | 'partial'): Promise<string> => {
    await chooseCompanies(db, runId, [company.id]);
    await startRun(db, { runId, companyId: null, resource: null });
    await finishRun(db, { runId, companyId: null, resource: null }, state, {});
    return runId;
  };
  const first = await chosen(company.id, 'complete');
  expect(await readHealth(db)).toMatchObject({
    loaded: false,
    runs: { full: { last: null, lastCompleteAt: null } },
  });
  await db.execute(sql`update metersync.runs set state = 'partial' where run_id = ${first}`);
  expect(await readHealth(db)).toMatchObject({ runs: { full: { last: { runId: first } } } });
  const byHand = await chosen(randomUUID(), 'complete');
  expect(await readHealth(db)).toMatchObject({
    loaded: false,
    runs: { full: { last: { runId: byHand }, lastCompleteAt: null } },
  });
});

test('due work has an age, and work that backs off has no age', async () => {
  const { db } = warehouse;
  await recordEvents(db, [delivery(documentEvent('created', randomUUID(), '2026-03-01T00:00:00.000001'))]);
  await db.execute(
    sql`update metersync.journal set due_at = now() - interval '5 minutes' where outcome = 'pending'`,
  );
  const { oldestDueSeconds } = await readHealth(db);
  expect(oldestDueSeconds).toBeGreaterThan(299);
  expect(oldestDueSeconds).toBeLessThan(360);
  await db.execute(
    sql`update metersync.journal set due_at = now() + interval '5 minutes' where outcome = 'pending'`,
  );
  expect(await readHealth(db)).toMatchObject({ oldestDueSeconds: null });
});

test('events and the latest parts of live companies count as parked until a later run reads them', async () => {
  const { db } = warehouse;
  await db.execute(sql`insert into utility.companies (id) values (${company.id})`);
  await part('documents', 'failed', 'SERVICE_ACCESS_DENIED: no');
  await part('meters', 'failed', 'SERVICE_UNREACHABLE: later');
  await part('companies', 'failed', 'SERVICE_ACCESS_DENIED: not of a company');
  await recordEvents(db, [delivery(documentEvent('created', randomUUID(), '2026-03-01T00:00:00.000001'))]);
  await db.execute(
    sql`update metersync.journal set error_code = 'SERVICE_ACCESS_DENIED', error = 'no' where outcome = 'pending'`,
  );
  expect(await readHealth(db)).toMatchObject({
    parked: [{ code: 'SERVICE_ACCESS_DENIED', events: 1, parts: 1 }],
  });
  await part('documents', 'complete');
  await db.execute(
    sql`update metersync.journal set outcome = 'applied', queue = null, due_at = null, error_code = null, error = null`,
  );
  expect(await readHealth(db)).toMatchObject({ parked: [] });
  await part('documents', 'failed', 'SERVICE_ACCESS_DENIED: no');
  await db.execute(sql`update utility.companies set deleted_at = now(), deleted_reason = 'absent'`);
  expect(await readHealth(db)).toMatchObject({ parked: [] });
});

test('a dead event counts until a later state of its record is written', async () => {
  const { db } = warehouse;
  const id = randomUUID();
  // Postgres cannot hold the number, so the event is dead.
  const event = documentEvent('updated', id, '2026-03-01T00:00:00.000001');
  await recordEvents(db, [delivery(JSON.stringify({ ...event, n: 'N' }).replace('"N"', '1e200000'))]);
  expect(await readHealth(db)).toMatchObject({ dead: 1 });
  const read = { companyId: company.id };
  // A page that was read before the event does not count.
  await writeRecords(warehouse, 'documents', [{ id, updated: '2026-03-01T00:00:00.000001' }], read);
  expect(await readHealth(db)).toMatchObject({ dead: 1 });
  const readAt = new Date(Date.now() + 1_000).toISOString();
  await writeRecords(warehouse, 'documents', [{ id, updated: '2026-03-02T00:00:00.000001' }], {
    ...read,
    readAt,
  });
  expect(await readHealth(db)).toMatchObject({ dead: 0 });
  expect((await readStatus(db)).events).toMatchObject({ dead: 1 });
});

test('pending events are counted by kind and state, up to a limit', async () => {
  const { db } = warehouse;
  const events = Array.from({ length: 5 }, () =>
    delivery(documentEvent('created', randomUUID(), '2026-03-01T00:00:00.000001')),
  );
  await recordEvents(db, events);
  await db.execute(sql`update metersync.journal set
    due_at = now() + make_interval(mins => n::int - 2),
    error_code = case when n = 5 then 'SERVICE_ACCESS_DENIED' end
    from (
      select id as of, row_number() over () as n from metersync.journal where outcome = 'pending'
    ) numbered
    where id = of`);
  const { pending } = await readHealth(db);
  expect(pending.document).toMatchObject({ due: 2, waiting: 2, parked: 1 });
  expect(pending.document.oldestDueSeconds).toBeGreaterThan(59);
  expect(pending.document.oldestSeconds).toBeGreaterThan(0);
  expect(pending.interval).toMatchObject({ due: 0, waiting: 0, parked: 0, oldestSeconds: null });
  expect((await readHealth(db, { countMax: 1 })).pending.document).toMatchObject({ due: 2, waiting: 2 });
  expect((await readHealth(db, { countMax: 0 })).pending.document).toMatchObject({ due: 1, waiting: 1 });
});

test('the health of each kind of run says how far the current run is, and what the last run did', async () => {
  const { db } = warehouse;
  const counts = {
    pages: 1,
    passes: 1,
    reportedTotal: 1,
    distinctIds: 1,
    inserted: 1,
    changed: 0,
    unchanged: 0,
  };
  const ended = { runId: randomUUID(), companyId: null, resource: null };
  await startRun(db, ended);
  for (const [resource, state] of [
    ['documents', 'complete'],
    ['meters', 'failed'],
  ] as const) {
    const key = { ...ended, companyId: company.id, resource };
    await startRun(db, key);
    await finishRun(db, key, state, {});
  }
  await finishRun(db, ended, 'complete', { counts: { ...counts, tombstoned: 0, rejected: 0, missed: 3 } });
  const under = { runId: randomUUID(), companyId: null, resource: null };
  const part = { ...under, companyId: company.id, resource: 'intervals' };
  await startRun(db, under);
  await startRun(db, part);
  await db.execute(sql`update metersync.runs set started_at = now() - interval '2 hours'
    where run_id = ${under.runId}::uuid`);
  const progress = async () => (await readHealth(db)).runs.full.underWay?.progressSecondsAgo;
  expect(await progress()).toBeGreaterThan(7_000);
  await noteProgress(db, part, counts);
  expect(await progress()).toBeLessThan(60);
  expect((await readHealth(db)).runs).toMatchObject({
    full: {
      running: 1,
      underWay: { runId: under.runId },
      last: { runId: ended.runId, missedRows: 3, parts: { complete: 1, failed: 1, running: 0 } },
      lastCompleteAt: expect.any(String),
      lastCompleteSecondsAgo: expect.any(Number),
    },
    reconcile: { running: 0, underWay: null, last: null, lastCompleteAt: null },
  });
});

test('a run that was suspect only because of deletions is complete once all the deletions are decided', async () => {
  const { db } = warehouse;
  const whole = { companyId: null, resource: null };
  const ended = async (parts: Readonly<Record<string, string>>) => {
    const runId = randomUUID();
    await startRun(db, { runId, ...whole });
    for (const [resource, error] of Object.entries(parts)) {
      const key = { runId, companyId: company.id, resource };
      await startRun(db, key);
      await finishRun(db, key, 'suspect', { error });
      await db.execute(sql`
        insert into metersync.deletes (run_id, company_id, resource, record_id, state, absent_since)
        values (${runId}, ${company.id}, ${resource}, ${randomUUID()}, 'quarantined', now())`);
    }
    await concludeRun(db, runId);
    return runId;
  };
  const full = async () => (await readHealth(db)).runs.full;
  const gone = `2 of 9 rows are absent: ${untilDecided}`;
  await ended({ meters: `${gone}; not stable: total changed from 2 to 3`, sites: gone });
  await db.execute(sql`delete from metersync.deletes`);
  expect(await full()).toMatchObject({ last: { state: 'suspect' } });

  const runId = await ended({ documents: gone, sites: `${gone}; ${gone}` });
  expect(await full()).toMatchObject({
    last: { runId, state: 'suspect', error: expect.stringContaining(gone) },
  });
  expect(await rejectDeletes(db, runId)).toEqual({ kept: 2 });
  const { last, lastCompleteAt } = await full();
  expect(last).toMatchObject({ runId, state: 'complete', error: null, parts: { suspect: 2 } });
  expect(lastCompleteAt).toBe(last?.finishedAt);
});

test('issues are counted by check, and acknowledged issues separately', async () => {
  const { db } = warehouse;
  await db.execute(sql`insert into ops.data_issues
    (check_name, severity, company_id, entity_type, entity_id, evidence, acknowledged_at)
    select 'late_bill', 'warning', ${company.id}::uuid, 'document', n::text, '{}',
      case when n = 3 then now() end
    from generate_series(1, 3) n`);
  expect(await readHealth(db)).toMatchObject({
    issues: [{ check: 'late_bill', severity: 'warning', open: 2 }],
    acknowledgedIssues: 1,
  });
});

test('the status counts all events, and says approximately how many rows a large table has', async () => {
  const { db } = warehouse;
  await db.execute(sql`insert into metersync.journal (id, type, kind, received_at, recorded_at, outcome)
    select n::text, 'connection.updated.v2', 'connection', now(), now() + interval '20 ms', 'applied'
    from generate_series(1, 12000) n`);
  await db.execute(
    sql`insert into utility.companies (id) select gen_random_uuid() from generate_series(1, 12000)`,
  );
  await db.execute(sql`analyze utility.companies`);
  const health = await readHealth(db);
  expect(health.delays).toEqual({ row: { p50: 0.02, p99: 0.02 }, record: null });
  const [about, exact] = [await readStatusAbout(db, health), await readStatus(db)];
  expect(exact.events.applied).toBe(12_000);
  const { companies } = about.rows as Record<string, number>;
  expect(companies).toBeGreaterThan(11_000);
  expect(companies).toBeLessThan(13_000);
  expect(about).toEqual({
    ...exact,
    rows: { ...exact.rows, companies },
    lastEventSecondsAgo: expect.any(Number),
    silence: { ...about.silence, quietSeconds: expect.any(Number) },
  });
  const printed = async (...options: string[]) =>
    (await runCommand(['status', ...options], { env: { DATABASE_URL: warehouse.url } })).stdout;
  expect(await printed()).toMatch(
    /applied +│ +12,000[\s\S]*companies +│ +10,000\+[\s\S]*10,000\+ means that there are more: --exact counts them/,
  );
  expect(await printed('--exact')).not.toContain('10,000+');
});

/** Begins and ends a run of all companies. */
async function wholeRun(kind: RunKind, state: Exclude<RunState, 'running'> = 'complete'): Promise<void> {
  const key = { runId: randomUUID(), companyId: null, resource: null };
  await startRun(warehouse.db, key, { kind });
  await finishRun(warehouse.db, key, state, {});
}

test('refused deliveries are counted until a complete run of all companies has begun after them', async () => {
  const { db } = warehouse;
  const refused = async () => (await readHealth(db)).refused;
  const quiet = () =>
    db.execute(sql`update metersync.heartbeat set refused_since = refused_since - interval '20 minutes',
      refused_until = refused_until - interval '20 minutes'`);
  expect(await refused()).toBe(null);
  const under = { runId: randomUUID(), companyId: null, resource: null };
  await startRun(db, under);
  await noteRefused(db, { 'signature-wrong': 770 });
  await noteRefused(db, { 'signature-wrong': 2, 'timestamp-old': 1 });
  expect(await refused()).toMatchObject({
    reasons: { 'signature-wrong': 772, 'timestamp-old': 1 },
    unread: 773,
  });
  // It began before the deliveries were refused.
  await finishRun(db, under, 'complete', {});
  await wholeRun('reconcile', 'partial');
  expect(await refused()).toMatchObject({ unread: 773 });
  // After ten minutes without any, the reasons start again, and the number does not.
  await quiet();
  await db.execute(sql`update metersync.runs set started_at = now() - interval '1 hour'`);
  await noteRefused(db, { 'timestamp-new': 4 });
  await noteRefused(db, { 'timestamp-new': 1 });
  expect(await refused()).toMatchObject({ reasons: { 'timestamp-new': 5 }, unread: 778 });
  await wholeRun('reconcile');
  expect(await refused()).toMatchObject({ reasons: { 'timestamp-new': 5 }, unread: 0 });
  await quiet();
  await noteRefused(db, { 'signature-wrong': 1 });
  expect(await refused()).toMatchObject({ reasons: { 'signature-wrong': 1 }, unread: 1 });
});

test('differences of an audit count until a wider audit finds none, or a later backfill is complete', async () => {
  const { db } = warehouse;
  const note = async (target: Readonly<Record<string, string>>, differences: number) => {
    const id = await beginOperation(db, {
      actor: 'ada',
      role: 'operator',
      source: 'command',
      action: 'audit',
      target: { command: 'metersync audit', ...target },
    });
    await finishOperation(db, id, 'done', auditInWords({ differences, compared: 21_894 }));
  };
  const differences = async () => (await readHealth(db)).audit?.differences ?? null;
  expect(await differences()).toBe(null);
  await note({}, 1_265);
  expect(await differences()).toBe(1_265);
  await note({ company: company.id }, 0);
  await wholeRun('reconcile');
  expect(await differences()).toBe(1_265);
  await note({}, 0);
  expect(await differences()).toBe(null);
  await note({ company: company.id, resources: 'documents', since: '2026-11-21T00:00:00Z' }, 1);
  expect(await differences()).toBe(1);
  for (const narrower of [
    { company: randomUUID() },
    { resources: 'meters' },
    { since: '2026-11-22T00:00:00Z' },
  ])
    await note(narrower, 0);
  expect(await differences()).toBe(1);
  await note({ resources: 'meters documents', since: '2026-11-20T00:00:00Z' }, 0);
  expect(await differences()).toBe(null);
  await note({}, 7);
  await wholeRun('full', 'partial');
  expect(await differences()).toBe(7);
  await wholeRun('full');
  expect(await differences()).toBe(null);
});

test('changes count as missed only if no accepted event waited when the run ended', async () => {
  const { db } = warehouse;
  const key = { runId: randomUUID(), companyId: company.id, resource: 'documents' };
  const counts = {
    pages: 1,
    passes: 1,
    reportedTotal: 3,
    distinctIds: 3,
    inserted: 0,
    changed: 3,
    unchanged: 0,
    rejected: 0,
  };
  await startRun(db, key);
  await finishRun(db, key, 'complete', { counts: { ...counts, missed: 3 } });
  const missed = async () => (await readHealth(db)).silence.missedRows;
  expect(await missed()).toBe(3);
  const event = (id: string, received: string, recorded: string) =>
    db.execute(sql`insert into metersync.journal (id, type, kind, received_at, recorded_at, outcome)
      select ${id}, 'document.updated.v2', 'document', started_at - ${received}::interval,
        finished_at + ${recorded}::interval, 'applied'
      from metersync.runs`);
  await event('on its way', '10 seconds', '1 second');
  expect(await missed()).toBe(3);
  await event('waited', '9 minutes', '3 minutes');
  expect(await missed()).toBe(0);
  await event('passed it', '2 minutes', '-1 hour');
  expect(await missed()).toBe(3);
});

test('a probe of the doctor does not count as the last event', async () => {
  const { db } = warehouse;
  await db.execute(sql`insert into metersync.journal (id, type, kind, received_at, recorded_at, outcome)
    values ('event', 'connection.updated.v2', 'connection', now() - interval '1 hour', now(), 'applied'),
      ('probe', ${probeEventType}, 'ignored', now(), now(), 'ignored')`);
  expect((await readStatus(db)).lastEventSecondsAgo).toBeGreaterThanOrEqual(3_600);
});
