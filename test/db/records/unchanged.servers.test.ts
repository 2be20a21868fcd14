import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { withTransaction } from '../../../db/connection/connect.ts';
import { recordEvents } from '../../../db/events/record.ts';
import { settleRecords } from '../../../db/events/settle.ts';
import { warehouseNow } from '../../../db/queue/due.ts';
import { rejectRecords } from '../../../db/records/rejected.ts';
import { writePage, writeRows } from '../../../db/records/write-page.ts';
import { cases } from '../../support/cases.ts';
import { company, delivery, documentEvent } from '../../support/events.ts';
import { forFile } from '../../support/for-file.ts';
import { pageOfRecords, type Read, writeRecords } from '../../support/pages.ts';
import { createWarehouse } from '../../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const updated = '2026-05-01T00:00:00.000001';
const read = (readAt: string): Read => ({ companyId: company.id, readAt });
const [early, late] = ['2026-06-01T00:00:00Z', '2026-06-02T00:00:00Z'];
const [earlier, later] = [read(early), read(late)];
/** A company whose listing decides if another company lists the record, too. */
const smallest = '00000000-0000-4000-8000-000000000000';
const nothing = { inserted: 0, changed: 0, rejected: 0 };

/** Marks a row with SQL. The mark disappears when metersync writes the row, so it shows a skipped row. */
const mark = async (table: string, id: string) =>
  await warehouse.db.execute(
    sql`update utility.${sql.raw(table)} set raw = raw || '{"mark": 1}' where id::text = lower(${id})`,
  );
const isMarked = async (table: string, id: string): Promise<boolean> => {
  const { rows } = await warehouse.db.execute<{ marked: boolean }>(
    sql`select raw ? 'mark' as marked from utility.${sql.raw(table)} where id::text = lower(${id})`,
  );
  return rows[0]?.marked === true;
};

describe('an unchanged record', () => {
  test.each([
    ['documents', 'documents'],
    ['usageData', 'usage_data'],
    ['connections', 'connections'],
    ['meters', 'meters'],
  ] as const)('is skipped among changed records: %s', async (listing, table) => {
    const [same, other] = [
      { id: randomUUID(), updated, documentId: randomUUID(), text: 'a \\" ] {' },
      { id: randomUUID().toUpperCase(), updated, documentId: randomUUID() },
    ];
    expect(await writeRecords(warehouse, listing, [same, other], earlier)).toMatchObject({ inserted: 2 });
    await mark(table, same.id);
    await mark(table, other.id);
    expect(await writeRecords(warehouse, listing, [same, other], later)).toEqual(nothing);
    const changed = { ...other, more: 1 };
    expect(await writeRecords(warehouse, listing, [changed, same], later)).toEqual({
      ...nothing,
      changed: 1,
    });
    expect([await isMarked(table, same.id), await isMarked(table, other.id)]).toEqual([true, false]);
  });

  test.each([
    ['by a company with a smaller id', { ...later, companyId: smallest }],
    ['in another version of the API', { ...later, apiVersion: 'v1' }],
    ['while events wait for it', later],
  ])('is written again when it is read %s', async (_, again) => {
    const [record, other] = [
      { id: randomUUID(), updated },
      { id: randomUUID(), updated },
    ];
    await writeRecords(warehouse, 'documents', [record, other], earlier);
    await recordEvents(warehouse.db, [delivery(documentEvent('updated', record.id, updated))]);
    await mark('documents', record.id);
    await writeRecords(warehouse, 'documents', [record], again);
    expect(await isMarked('documents', record.id)).toBe(false);
    await mark('documents', other.id);
    await writeRecords(warehouse, 'documents', [other], later);
    expect(await isMarked('documents', other.id)).toBe(true);
  });

  describe.each([
    ['companies', 'companies'],
    ['sites', 'sites'],
    ['connections', 'connections'],
    ['documents', 'documents'],
    ['usageData', 'usage_data'],
    ['meters', 'meters'],
  ] as const)('of %s', (listing, table) => {
    /** Writes a record at an early time, notes it with a state, and reads it again. Returns its date. */
    async function readAgain(note: string | null): Promise<unknown> {
      const [id, companyId] = [randomUUID(), randomUUID()];
      const ofNobody = listing === 'companies' || listing === 'sites';
      const owner = listing === 'sites' ? { id: companyId, sites: [{ id }] } : { id };
      const write = async (resource: typeof listing, readAt: string) =>
        await writeRecords(warehouse, resource, [owner], { companyId: ofNobody ? null : companyId, readAt });
      if (listing === 'sites') await write('companies', early);
      await write(listing, early);
      if (note !== null)
        await warehouse.db.execute(sql`
          insert into metersync.deletes (run_id, company_id, resource, record_id, state, absent_since)
          values (${randomUUID()}, ${listing === 'companies' ? null : companyId}, ${listing}, ${id}, ${note},
            '2026-06-01T12:00:00Z')`);
      await write(listing, late);
      const { rows } = await warehouse.db.execute<{ day: number }>(
        sql`select extract(day from synced_at)::int as day from utility.${sql.raw(table)} where id::text = ${id}`,
      );
      return rows[0]?.day;
    }

    test.each([
      ['that somebody keeps', 'rejected'],
      ['that somebody keeps after its deletion', 'undone'],
      ['that is held back for a decision', 'quarantined'],
    ])('%s counts as read when it is listed', async (_, state) => {
      expect(await readAgain(state)).toBe(2);
    });

    test('is not dated anew if nothing waits on it', async () => {
      expect(await readAgain(null)).toBe(1);
    });
  });

  test('is written again when the company of the listing does not own its row and it is held back', async () => {
    const [owner, lister, id] = [randomUUID(), randomUUID(), randomUUID()].sort() as [string, string, string];
    const write = async (companyId: string, readAt: string) =>
      await writeRecords(warehouse, 'meters', [{ id }], { companyId, readAt });
    await write(owner, early);
    await write(lister, early);
    await warehouse.db.execute(sql`
      insert into metersync.deletes (run_id, company_id, resource, record_id, state, absent_since)
      values (${randomUUID()}, ${owner}, 'meters', ${id}, 'quarantined', '2026-06-01T12:00:00Z')`);
    await write(lister, late);
    const { rows } = await warehouse.db.execute(sql`select company_id from utility.meters where id = ${id}`);
    expect(rows).toEqual([{ company_id: lister }]);
  });

  test('settles the events of a company that lists it, too, although its row shows what the owner lists', async () => {
    const [owner, id] = [smallest, randomUUID()];
    const record = { id, updated };
    const event = delivery(documentEvent('updated', id, updated, { company: { id: company.id } }));
    await recordEvents(warehouse.db, [event]);
    const readAt = await warehouseNow(warehouse.db);
    await writeRecords(warehouse, 'documents', [record], { companyId: owner, readAt });
    await writeRecords(warehouse, 'documents', [{ ...record, more: 1 }], { companyId: company.id, readAt });
    const { rows } = await warehouse.db.execute(
      sql`select company_id, raw from utility.documents where id = ${id}::uuid`,
    );
    expect(rows).toEqual([{ company_id: owner, raw: record }]);
    expect(await settleRecords(warehouse.db, 'documents', [id], readAt)).toEqual({ applied: 1, waiting: 0 });
  });

  test('is skipped in any listing, and written again when a listing names another document', async () => {
    const [id, documentId, otherId] = [randomUUID(), randomUUID(), randomUUID()];
    const usage = { id, updated };
    const write = async (of?: string) => {
      const page = {
        ...pageOfRecords([usage], later),
        ...(of === undefined ? {} : { documentOf: { [id]: of } }),
      };
      return await writePage(warehouse.db, 'usageData', page, [id]);
    };
    expect([await write(documentId), await write()]).toMatchObject([{ inserted: 1 }, nothing]);
    expect([await write(otherId), await write()]).toMatchObject([{ changed: 1 }, nothing]);
    const { rows } = await warehouse.db.execute(
      sql`select document_id from utility.usage_data where id = ${id}::uuid`,
    );
    expect(rows).toEqual([{ document_id: otherId }]);
  });

  test('is written again when its row is tombstoned', async () => {
    const record = { id: randomUUID(), updated };
    await writeRecords(warehouse, 'documents', [record], earlier);
    await warehouse.db.execute(sql`
      update utility.documents set deleted_at = '2026-06-01T12:00:00Z', deleted_reason = 'absent'
      where id = ${record.id}::uuid`);
    expect(await writeRecords(warehouse, 'documents', [record], later)).toEqual({ ...nothing, changed: 1 });
  });

  test('is written once more if the same values are spelled in another way', async () => {
    const id = randomUUID();
    const spelled = [
      `{"id":"${id}","updated":"${updated}","a":1.50}`,
      `{"a":1.50, "id":"${id}","updated":"${updated}"}`,
    ];
    const ids = async (text = '') => await writeRecords(warehouse, 'documents', [text], later);
    expect(await ids(spelled[0])).toMatchObject({ inserted: 1 });
    expect(await ids(spelled[1])).toMatchObject({ changed: 1 });
    expect(await ids(spelled[1])).toEqual(nothing);
    const { rows } = await warehouse.db.execute(sql`select from history.documents where id = ${id}::uuid`);
    expect(rows).toEqual([]);
  });

  test('deletes its earlier rejected records', async () => {
    const record = { id: randomUUID(), updated };
    await writeRecords(warehouse, 'documents', [record], earlier);
    const refused = {
      resource: 'documents',
      companyId: company.id,
      id: record.id,
      text: '{',
      error: 'of before',
    };
    await rejectRecords(warehouse.db, [refused]);
    await writeRecords(warehouse, 'documents', [record], { ...later, readAt: '2100-01-01T00:00:00Z' });
    const { rows } = await warehouse.db.execute(
      sql`select from metersync.rejected_records where record_id = ${record.id}`,
    );
    expect(rows).toEqual([]);
  });
});

test('rows are the same with and without digests, for any pages and events', async () => {
  const states = 3;
  const time = (state: number) => `2026-05-0${state + 1}T00:00:00.000001`;
  const record = (id: string, state: number, variant: number) => ({
    id,
    updated: time(state),
    variant,
    site: variant === 0 ? undefined : { id: company.id },
  });
  const step = fc.oneof(
    fc.record({
      what: fc.constant('page' as const),
      readAt: fc.nat(3),
      listed: fc.array(fc.record({ id: fc.nat(1), state: fc.nat(states - 1), variant: fc.nat(1) }), {
        minLength: 1,
        maxLength: 3,
      }),
    }),
    fc.record({
      what: fc.constantFrom('updated' as const, 'deleted' as const),
      id: fc.nat(1),
      state: fc.nat(states - 1),
    }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 10 }), async (steps) => {
      const worlds = await Promise.all(
        [true, false].map(async (withDigests) => {
          const ids = [randomUUID(), randomUUID()];
          for (const one of steps) {
            if (one.what !== 'page') {
              const event = documentEvent(one.what, ids[one.id] as string, time(one.state));
              await recordEvents(warehouse.db, [delivery(event)]);
              continue;
            }
            const at = read(`2026-06-0${one.readAt + 1}T00:00:00Z`);
            const listed = one.listed.map(({ id, state, variant }) =>
              record(ids[id] as string, state, variant),
            );
            if (withDigests) await writeRecords(warehouse, 'documents', listed, at);
            else {
              const page = pageOfRecords(listed, at);
              await withTransaction(warehouse.db, (tx) => writeRows(tx, 'documents', page, []));
            }
          }
          const { rows } = await warehouse.db.execute(sql`
            select site_id, updated, raw_updated, raw ->> 'variant' as variant, synced_at,
              deleted_at is null as lives, deleted_reason,
              (select count(*)::int from history.documents h where h.id = d.id) as states
            from utility.documents d where id = any(${sql`array[${ids[0]}::uuid, ${ids[1]}::uuid]`})
            order by id = ${ids[0]}::uuid desc`);
          return rows;
        }),
      );
      expect(worlds[0]).toEqual(worlds[1]);
    }),
    { numRuns: cases(50, 150) },
  );
});
