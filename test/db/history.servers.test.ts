import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { startRun } from '../../db/backfill/runs.ts';
import { recordEvents } from '../../db/events/record.ts';
import { type RecordResource, recordResources, tableName } from '../../db/resources.ts';
import { company, connectionEvent, delivery, documentEvent } from '../support/events.ts';
import { forFile } from '../support/for-file.ts';
import { type Listing, rowOf, writeRecords } from '../support/pages.ts';
import { connectExplained, nodesOf } from '../support/plans.ts';
import { runsAndPlansOf } from '../support/statements-sent.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

type Earlier = Record<string, unknown> & { raw: Record<string, unknown> | null };

async function earlier(listing: Listing, id: string): Promise<Earlier[]> {
  const { rows } = await warehouse.db.execute<Earlier>(sql`
    select *, valid_to > valid_from as lasted,
      valid_from = coalesce(lag(valid_to) over (order by valid_to), first_synced_at) as follows
    from ${sql.raw(`history.${tableName(listing)}`)} where id::text = ${id} order by valid_to`);
  return rows;
}

const at = (second: number) => `2026-05-01T00:00:0${second}.000001`;

test.each(['companies', 'connections', 'documents', 'usageData', 'meters'] as const)(
  'a page that changes %s keeps each earlier state once, with its begin and end',
  async (listing) => {
    const id = randomUUID();
    const states = [{ name: 'a' }, { name: 'b' }, { name: 'b' }, { name: 'c' }];
    for (const [second, state] of states.entries()) {
      const updated = at(state.name === 'b' ? 1 : second);
      const more = listing === 'companies' || listing === 'meters' ? {} : { updated };
      await writeRecords(warehouse, listing, [{ id, ...more, ...state }], {
        readAt: `2026-06-01T00:00:0${second}Z`,
      });
    }
    const kept = await earlier(listing, id);
    expect(kept.map(({ raw }) => raw?.name)).toEqual(['a', 'b']);
    for (const state of kept) {
      expect(state).toMatchObject({ lasted: true, follows: true, ended_by: null, ended_by_kind: null });
    }
  },
);

test('history names the run that reads the company as the cause of a change without a waiting event', async () => {
  const [id, companyId, runId] = [randomUUID(), randomUUID(), randomUUID()];
  await writeRecords(warehouse, 'documents', [{ id, updated: at(1) }], { companyId });
  await startRun(warehouse.db, { runId, companyId, resource: 'documents' });
  await writeRecords(warehouse, 'documents', [{ id, updated: at(2) }], {
    companyId,
    readAt: '2026-06-02T00:00:00Z',
  });
  expect(await earlier('documents', id)).toMatchObject([{ ended_by_kind: 'run', ended_by: runId }]);
});

test('history names the event that caused a read as the cause of the change', async () => {
  const id = randomUUID();
  await writeRecords(warehouse, 'documents', [{ id, updated: at(1), site: company.id }], {
    companyId: company.id,
  });
  const event = delivery(
    documentEvent('updated', id, at(2), { site: { id: company.id, name: 'Main street' } }),
  );
  await recordEvents(warehouse.db, [event]);
  expect(await earlier('documents', id)).toEqual([]);
  await writeRecords(warehouse, 'documents', [{ id, updated: at(2), site: company.id }], {
    companyId: company.id,
    readAt: '2026-06-02T00:00:00Z',
  });
  expect(await earlier('documents', id)).toMatchObject([{ ended_by_kind: 'event', ended_by: event.id }]);
});

test('history names an event as the cause of a new status, and of the deletion of a document with its usage', async () => {
  const [id, connectionId, usageId] = [randomUUID(), randomUUID(), randomUUID()];
  await writeRecords(warehouse, 'documents', [{ id, updated: at(1) }]);
  await writeRecords(warehouse, 'usageData', [{ id: usageId, updated: at(1), document: { id } }]);
  await writeRecords(warehouse, 'connections', [{ id: connectionId, status: 'CONNECTED', updated: at(1) }]);
  const events = [
    delivery(documentEvent('deleted', id, at(1))),
    delivery(connectionEvent('validated', connectionId, at(2), 'PASSWORD_INCORRECT', 'CONNECTED')),
  ];
  await recordEvents(warehouse.db, events);
  const [deletion, validation] = events.map((event) => ({ ended_by_kind: 'event', ended_by: event.id }));
  expect(await earlier('documents', id)).toMatchObject([{ ...deletion, deleted_at: null }]);
  expect(await earlier('usageData', usageId)).toMatchObject([{ ...deletion, deleted_at: null }]);
  expect(await earlier('connections', connectionId)).toMatchObject([{ ...validation, status: 'CONNECTED' }]);
});

/** The columns of each table whose change makes another state. */
const compared: Readonly<Record<RecordResource, readonly string[]>> = {
  companies: ['external_id', 'public_id', 'name'],
  sites: ['company_id', 'name'],
  connections: ['company_id', 'external_id', 'datasource', 'status', 'url'],
  documents: ['company_id', 'site_id'],
  usageData: ['company_id', 'document_id', 'meter_id', 'start_date', 'end_date', 'usage', 'usage_units'],
  meters: ['company_id', 'site_id', 'account_id', 'datasource_type'],
};

/** A value of each type, which differs from the value of another turn. */
const literalOf = (type: string, turn: number): string =>
  ({
    uuid: `md5('${turn}')::uuid`,
    text: `'text ${turn}'`,
    date: `date '2025-01-01' + ${turn}`,
    numeric: `${turn}.5`,
    bytea: `'\\x0${turn}'`,
    boolean: `${turn === 1}`,
    jsonb: `jsonb_build_object('turn', ${turn}, 'revisedDocumentId', md5('${turn}')::uuid, 'isEstimated', true,
      'exclusion', false, 'netMeteringType', 'IMPORT', 'billedDemand', '1.${turn}')`,
    'timestamp(6) with time zone': `timestamptz '2025-01-01 00:00:00.123456Z' + ${turn} * interval '1 day'`,
  })[type] ?? `a value of type ${type}`;

test.each(recordResources)(
  'a state of %s has the value of each column, and ends with a change of the record, not with a read of it',
  async (resource) => {
    const [table, states] = [`utility.${tableName(resource)}`, `history.${tableName(resource)}`];
    const { rows: columns } = await warehouse.db.execute<{ name: string; type: string; isKept: boolean }>(sql`
      select attname as name, format_type(atttypid, atttypmod) as type, attname in (
          select attname from pg_attribute where attrelid = ${states}::regclass
        ) as "isKept"
      from pg_attribute
      where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attgenerated = ''
        and attname <> 'id'`);
    const rowIn = async (relation: string, id: string) => {
      const { rows } = await warehouse.db.execute<{ row: Record<string, unknown> }>(
        sql.raw(`select to_jsonb(t) as row from ${relation} t where id = '${id}'`),
      );
      return rows.map(({ row }) => row);
    };
    const ending: string[] = [];
    for (const { name, type } of columns.filter(({ isKept }) => isKept)) {
      const id = randomUUID();
      await warehouse.db.transaction(async (tx) => {
        // Triggers would compute columns from the record.
        await tx.execute(sql`set local session_replication_role = replica`);
        await tx.execute(
          sql.raw(`insert into ${table} (id, ${columns.map((column) => column.name)})
            values ('${id}', ${columns.map((column) => literalOf(column.type, 1))})`),
        );
      });
      const [before] = await rowIn(table, id);
      await warehouse.db.execute(
        sql.raw(`update ${table} set ${name} = ${literalOf(type, 2)} where id = '${id}'`),
      );
      const [state] = await rowIn(states, id);
      await warehouse.db.execute(sql.raw(`delete from ${table} where id = '${id}'`));
      if (state === undefined) continue;
      ending.push(name);
      const { valid_from, valid_to, ended_by, ended_by_kind, ...kept } = state;
      expect(before, name).toMatchObject(kept);
      expect(Object.values(kept)).not.toContain(null);
      expect(valid_from).toBe(before?.first_synced_at);
    }
    expect(ending.sort()).toEqual([...compared[resource], 'raw', 'api_version', 'deleted_at'].sort());
  },
);

test('a change that is rolled back leaves no history', async () => {
  const id = randomUUID();
  await writeRecords(warehouse, 'meters', [{ id, name: 'a' }]);
  const failed = warehouse.db.transaction(async (tx) => {
    await tx.execute(sql`update utility.meters set raw = '{}' where id = ${id}`);
    throw new Error('no');
  });
  await expect(failed).rejects.toThrow('no');
  expect(await earlier('meters', id)).toEqual([]);
});

test('the statements that follow a write are planned once per session, with a plan that suits any number of rows', async () => {
  const ids = Array.from({ length: 300 }, () => randomUUID());
  const pages = (second: number) => ids.map((id) => ({ id, updated: at(second), second }));
  const write = (second: number, count: number) =>
    writeRecords(session, 'documents', pages(second).slice(0, count), {
      companyId: company.id,
      readAt: `2026-06-03T00:00:0${second}Z`,
    });
  await writeRecords(warehouse, 'documents', pages(0), { companyId: company.id });
  const session = connectExplained(warehouse.url, {
    'pg_stat_statements.track': 'all',
    'pg_stat_statements.track_planning': 'on',
  });
  onTestFinished(() => session.close());
  await write(1, 1);
  await write(2, 1);
  const ran = await session.plansOf(() => write(3, ids.length));
  for (const table of ['metersync.earlier_states', 'metersync.company_changes']) {
    const text = `insert into ${table}`;
    const nodes = ran
      .filter((statement) => statement.text.startsWith(text))
      .flatMap(({ plan }) => nodesOf(plan));
    const joins = nodes.filter((node) => node['Node Type'] === 'Hash Join');
    expect(joins.map((node) => node['Actual Rows'])).toEqual([ids.length]);
    expect(await runsAndPlansOf(warehouse.url, text)).toContainEqual({ runs: 3, plans: 1 });
  }
});

test('a record is written even if values of its fields do not fit their columns', async () => {
  const [id, usageId] = [randomUUID(), randomUUID()];
  const odd = {
    revisedDocumentId: 'none yet',
    isEstimated: 'maybe',
    exclusion: 1,
    billedDemand: '9'.repeat(5_000),
  };
  const written = await writeRecords(warehouse, 'documents', [{ id, updated: at(1), ...odd }]);
  await writeRecords(warehouse, 'usageData', [{ id: usageId, updated: at(1), document: { id }, ...odd }]);
  expect(written).toMatchObject({ inserted: 1, rejected: 0 });
  expect(await rowOf(warehouse, 'documents', id)).toMatchObject({ revised_document_id: null });
  expect(await rowOf(warehouse, 'usageData', usageId)).toMatchObject({
    is_estimated: null,
    exclusion: null,
    billed_demand: null,
  });
});
