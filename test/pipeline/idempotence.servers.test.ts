import { randomUUID } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { cases } from '../support/cases.ts';
import { deliver } from '../support/deliver.ts';
import { forFile } from '../support/for-file.ts';
import { startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';

const pipeline = await forFile(startPipeline({ size: { companies: 2, documents: 60, intervalDays: 1 } }));
await pipeline.backfill();

const rows = async (query: SQL): Promise<Record<string, unknown>[]> =>
  (await pipeline.warehouse.db.execute(query)).rows;
const noDifferences = { differences: 0, examples: [] };
const recordTables = ['companies', 'sites', 'connections', 'documents', 'usage_data', 'meters', 'intervals'];

/** Digests the row versions of all tables, which change with every write, even of equal values. */
async function versionsOfAllRows(): Promise<Record<string, unknown>> {
  const versions = recordTables.map(
    (table) => sql`select ${table} as name, count(*)::int as rows,
      md5(string_agg(xmin::text || ctid::text, ',' order by tableoid, ctid)) as version from ${sql.raw(`utility.${table}`)}`,
  );
  const read = await rows(sql.join(versions, sql` union all `));
  return Object.fromEntries(read.map(({ name, ...version }) => [String(name), version]));
}

test('repeated, late and shuffled events end in the state of the service, each once in the journal', {
  timeout: 120_000,
}, async () => {
  const { service } = pipeline;
  await service.disturb({ duplicate: 0.5, shuffle: true, delayMs: [0, 2_500], seed: 31 });
  for (const seed of [31, 32, 33]) await service.random(cases(45, 150), seed);
  await pipeline.settled();
  await service.disturb({});
  const { events, deliveries } = await service.status();
  expect(deliveries.duplicates).toBeGreaterThan(cases(30, 100));
  const outcomes = await rows(sql`select outcome, count(*)::int as n from metersync.events group by outcome`);
  expect(outcomes.reduce((sum, { n }) => sum + Number(n), 0)).toBe(events.total);
  expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(['applied', 'superseded']);
  expect(await pipeline.audit()).toMatchObject(noDifferences);
});

test('delivering all events again, under the same ids, changes no row', async () => {
  const history = await pipeline.service.events();
  const before = await versionsOfAllRows();
  for (let from = 0; from < history.length; from += 50) {
    const batch = history.slice(from, from + 50).map(({ id, payload }) => deliver(pipeline, payload, id));
    expect((await Promise.all(batch)).map(({ status }) => status)).toEqual(batch.map(() => 204));
  }
  await pipeline.settled();
  expect(await versionsOfAllRows()).toEqual(before);
});

test('a backfill of unchanged records changes no row', async () => {
  const before = await versionsOfAllRows();
  expect(before.documents).toMatchObject({ rows: expect.toSatisfy((n: number) => n > 100) });
  expect(await pipeline.backfill()).toBe('complete');
  expect(await versionsOfAllRows()).toEqual(before);
  const [run] = await rows(sql`select rows_inserted::int as inserted, rows_changed::int as changed,
    rows_tombstoned::int as tombstoned, rows_unchanged > 300 as read from metersync.runs
    where company_id is null and resource is null order by started_at desc limit 1`);
  expect(run).toEqual({ inserted: 0, changed: 0, tombstoned: 0, read: true });
});

test('late events about a deleted document change nothing', async () => {
  const { service } = pipeline;
  const [company] = await service.read<{ id: string }[]>('/company');
  const { meters } = await service.read<{ meters: { id: string }[] }>(`/meter/company/${company?.id}`);
  const documentId = randomUUID();
  await service.change({ type: 'createDocument', id: documentId, meterId: meters[0]?.id });
  await service.change({ type: 'reprocessDocument', documentId, reason: 'correction' });
  await service.change({ type: 'deleteDocument', documentId });
  await pipeline.settled();
  const before = await versionsOfAllRows();
  const sent = (await service.events()).filter(({ payload }) => payload.id === documentId);
  const late = sent.filter(({ type }) => type !== 'document.deleted.v2').reverse();
  expect(late.map(({ type }) => type)).toEqual(['document.updated.v2', 'document.created.v2']);
  for (const { payload } of late) {
    const { id } = await deliver(pipeline, payload);
    await until('the late event is superseded', () =>
      rows(sql`select from metersync.events where id = ${id} and outcome = 'superseded'`).then(
        ({ length }) => length === 1,
      ),
    );
  }
  await pipeline.settled();
  expect(await versionsOfAllRows()).toEqual(before);
  expect(await pipeline.audit()).toMatchObject(noDifferences);
});

test('an event of an unknown type is acknowledged, kept and ignored', async () => {
  const { id, status } = await deliver(pipeline, { eventType: 'job.finished.v9', id: 7 });
  expect(status).toBe(204);
  const kept = await until('the event is in the journal', async () => {
    const [event] = await rows(sql`select type, outcome, payload from metersync.events where id = ${id}`);
    return event;
  });
  expect(kept).toEqual({
    type: 'job.finished.v9',
    outcome: 'ignored',
    payload: { eventType: 'job.finished.v9', id: 7 },
  });
});

test('a company that first appears in an event is read completely', async () => {
  const { service } = pipeline;
  const [companyId, connectionId, meterId] = [randomUUID(), randomUUID(), randomUUID()];
  // The service counts all of this as delivered.
  await service.disturb({ drop: 1 });
  await service.change({ type: 'createCompany', id: companyId, name: 'Latecomer' });
  await service.change({ type: 'createConnection', id: connectionId, companyId });
  const { sites } = await service.read<{ sites: { id: string }[] }>(`/site/company/${companyId}`);
  await service.change({ type: 'addAccount', connectionId, siteId: sites[0]?.id, meterId });
  const documents = Array.from({ length: 4 }, () => ({ type: 'createDocument', meterId }));
  await service.change(...documents);
  await service.change({
    type: 'syncIntervals',
    meterId,
    mode: 'insert',
    start: '2026-06-01T00:00:00',
    end: '2026-06-01T06:00:00',
  });
  await service.disturb({});
  await service.change({ type: 'updateConnection', connectionId, externalId: 'the first sign of it' });
  await pipeline.settled();
  expect(await pipeline.audit()).toMatchObject(noDifferences);
  const of = (table: string) =>
    sql`(select count(*)::int from ${sql.raw(`utility.${table}`)} where company_id = ${companyId}::uuid)`;
  expect(
    await rows(sql`select ${of('connections')} as connections, ${of('documents')} as documents,
      (select count(*)::int from utility.intervals where meter_id = ${meterId}) as readings`),
  ).toEqual([{ connections: 1, documents: 4, readings: 24 }]);
});
