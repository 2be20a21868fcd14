import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { runCommand } from '../../support/command.ts';
import { warehouseOf02 } from '../../support/migrations.ts';
import { writeRecords } from '../../support/pages.ts';

const companyId = randomUUID();
const documents = {
  read: randomUUID(),
  announced: randomUUID(),
  neverRead: randomUUID(),
  deleted: randomUUID(),
  absent: randomUUID(),
};
const usage = { live: randomUUID(), ofDeleted: randomUUID(), absent: randomUUID() };
const connection = randomUUID();
const siteId = randomUUID();

/** Rows as 0.2.0 wrote them: of each kind one. */
const rows = [
  sql`
    insert into utility.documents
      (id, company_id, site_id, created, updated, raw_updated, raw, synced_at, deleted_at, deleted_reason)
    values
      (${documents.read}, ${companyId}, null, null, '2026-01-01', '2026-01-01', '{"updated": "2026-01-01"}', '2026-01-02', null, null),
      (${documents.announced}, ${companyId}, ${siteId}, '2025-12-31', '2026-01-05', '2026-01-01', '{"updated": "2026-01-01"}', '2026-01-02', null, null),
      (${documents.neverRead}, ${companyId}, null, '2025-12-31', '2026-01-05', null, null, null, null, null),
      (${documents.deleted}, ${companyId}, null, null, '2026-01-01', '2026-01-01', '{"updated": "2026-01-01"}', '2026-01-02', '2026-01-03', 'event'),
      (${documents.absent}, ${companyId}, null, null, '2026-01-01', '2026-01-01', '{"updated": "2026-01-01"}', '2026-01-02', '2026-01-03', 'absent')`,
  sql`
    insert into utility.usage_data (id, company_id, document_id, raw, synced_at, deleted_at, deleted_reason)
    values
      (${usage.live}, ${companyId}, ${documents.read}, '{}', '2026-01-02', null, null),
      (${usage.ofDeleted}, ${companyId}, ${documents.deleted}, '{}', '2026-01-02', '2026-01-03', 'document'),
      (${usage.absent}, ${companyId}, ${documents.read}, '{}', '2026-01-02', '2026-01-04', 'absent')`,
  sql`
    insert into utility.connections (id, company_id, status, updated, raw_updated, raw, synced_at)
    values (${connection}, ${companyId}, 'MFA', '2026-01-05', '2026-01-01',
      '{"updated": "2026-01-01", "status": "VALID"}', '2026-01-02')`,
  sql`
    insert into metersync.journal (id, type, kind, record_id, occurred_at, received_at, recorded_at, outcome)
    values ('event', 'document.updated.v2', 'document', ${documents.announced}, '2026-01-05', '2026-01-05', '2026-01-05', 'pending')`,
];

test('an upgrade from 0.2.0 keeps what events announced and what was found to be gone', async () => {
  const warehouse = await warehouseOf02();
  const { db, url } = warehouse;
  for (const statement of rows) await db.execute(statement);
  const told = async () => {
    const of = (table: string, columns: string) =>
      db.execute(
        sql.raw(
          `select id, company_id, ${columns}, deleted_at, deleted_reason from utility.${table} order by id`,
        ),
      );
    const read = [
      of('documents', 'site_id, created, updated, raw_updated'),
      of('usage_data', 'document_id'),
      of('connections', 'status, updated, raw_updated'),
    ];
    return (await Promise.all(read)).map(({ rows }) => rows);
  };
  const earlier = await told();
  expect(await runCommand(['migrate'], { env: { DATABASE_URL: url } })).toMatchObject({ status: 0 });
  expect(await told()).toEqual(earlier);

  const { rows: hints } = await db.execute(sql`
    select id, hint_event_id, hint_deletes from utility.documents where hint is not null order by id`);
  expect(hints).toEqual(
    [
      { id: documents.announced, hint_event_id: 'event', hint_deletes: false },
      { id: documents.neverRead, hint_event_id: null, hint_deletes: false },
      { id: documents.deleted, hint_event_id: null, hint_deletes: true },
    ].sort((a, b) => (a.id < b.id ? -1 : 1)),
  );
  // An answer that lags changes nothing that an event announced. A later one restores what is there.
  const records = Object.values(documents).map((id) => ({ id, updated: '2026-01-01', totalCharges: '2' }));
  await writeRecords(warehouse, 'documents', records, { companyId, readAt: '2026-01-03T01:00:00Z' });
  const live = async () =>
    (
      await db.execute<{ id: string }>(sql`
        select id from utility.documents where deleted_at is null
        union all select id from utility.usage_data where deleted_at is null`)
    ).rows.map(({ id }) => id);
  const lasting = [documents.read, documents.announced, documents.neverRead, usage.live];
  expect((await live()).sort()).toEqual([...lasting, documents.absent].sort());
  const { rows: shown } = await db.execute(sql`
    select updated = '2026-01-05' as announced from utility.documents where id = ${documents.announced}`);
  expect(shown).toEqual([{ announced: true }]);
  await writeRecords(warehouse, 'documents', records, { companyId, readAt: '2026-01-04T00:00:00Z' });
  expect((await live()).sort()).toEqual(
    [...lasting, documents.absent, documents.deleted, usage.ofDeleted].sort(),
  );
}, 60_000);
