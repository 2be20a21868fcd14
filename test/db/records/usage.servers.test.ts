import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { recordEvents } from '../../../db/events/record.ts';
import { warehouseNow } from '../../../db/queue/due.ts';
import { forgetListed } from '../../../db/records/also-listed.ts';
import { writeDocumentSets } from '../../../db/records/write-page.ts';
import { delivery, documentEvent } from '../../support/events.ts';
import { forFile } from '../../support/for-file.ts';
import { untilLocked } from '../../support/lock-waits.ts';
import { pageOfRecords, type Read, rowOf, writeRecords } from '../../support/pages.ts';
import { createWarehouse } from '../../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const companyId = randomUUID();
const now = async (): Promise<Read> => ({ readAt: await warehouseNow(warehouse.db), companyId });
const [older, newer, newest] = [1, 2, 3].map((n) => `2026-05-01T00:00:00.00000${n}`) as [
  string,
  string,
  string,
];

interface Row {
  readonly id: string;
  readonly usage: string;
  readonly updated: string;
}
const row = (usage: string, updated = older, id: string = randomUUID()): Row => ({ id, usage, updated });
const bill = (id: string, updated: string, usageData: unknown, lineItems: unknown = []) => ({
  id,
  updated,
  usageData,
  lineItems,
});
type Show = (bills: readonly object[], read: Read) => Promise<void>;
const listed = (id: string, rows: readonly Row[]) =>
  rows.map((one) => ({ ...one, document: { id }, listed: true }));
const live = async (id: string) =>
  (
    await warehouse.db.execute<{ id: string; usage: string; listed: boolean }>(
      sql`select id, usage, raw ? 'listed' as listed from utility.usage_data
        where document_id = ${id}::uuid and deleted_at is null order by usage`,
    )
  ).rows;

const state = async (id: string) => {
  const result = await warehouse.db.execute<{ updated: string }>(sql`
    select to_char(updated at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as updated
    from utility.documents where id = ${id}::uuid`);
  const usage = (await live(id)).map((one) => one.usage).sort();
  return { updated: result.rows[0]?.updated, usage };
};

/** Returns what other sessions see of a document while a write of the document waits for its last row. */
async function heldBackBy(rowId: string, documentId: string, write: () => Promise<unknown>) {
  let written: Promise<unknown> | undefined;
  const meanwhile = await warehouse.db.transaction(async (tx) => {
    await tx.execute(sql`select from utility.usage_data where id = ${rowId}::uuid for update`);
    written = write();
    await untilLocked(warehouse.db, 'the write waits');
    return await state(documentId);
  });
  await written;
  return meanwhile;
}

/** Writes a bill whose record and whose usage listing agree. */
async function billWithUsage(rows: readonly Row[]) {
  const id = randomUUID();
  await writeRecords(warehouse, 'documents', [bill(id, older, rows)], await now());
  await writeRecords(warehouse, 'usageData', listed(id, rows), await now());
  return id;
}

describe('a corrected bill corrects its usage', () => {
  test('through its record: rows change, appear and are tombstoned in the transaction that writes the document', async () => {
    const [kept, changed, gone] = [row('1'), row('2'), row('3')];
    const id = await billWithUsage([kept, changed, gone]);
    const corrected = [kept, row('20', newer, changed.id), row('4', newer)];
    const items = [{ totalCharge: '9.99' }];
    const read = await now();
    const meanwhile = await heldBackBy(gone.id, id, () =>
      writeRecords(warehouse, 'documents', [bill(id, newer, corrected, items)], read, true),
    );
    expect(meanwhile).toEqual({ updated: older, usage: ['1', '2', '3'] });
    expect(await state(id)).toEqual({ updated: newer, usage: ['1', '20', '4'] });
    expect(await rowOf(warehouse, 'usageData', gone.id)).toMatchObject({ deleted_reason: 'absent' });
    expect((await rowOf(warehouse, 'documents', id))?.raw).toMatchObject({ lineItems: items });
  });

  test('through the usage endpoint: document, rows and tombstones are written in one transaction', async () => {
    const [changed, gone] = [row('1'), row('2')];
    const id = await billWithUsage([changed, gone]);
    const { readAt = '', ...read } = await now();
    const rows = [row('10', newer, changed.id), row('3', newer)];
    const set = (records: readonly { id: string }[], documentOf = {}) => ({
      page: { ...pageOfRecords(records, { readAt, ...read }), documentOf },
      ids: records.map((record) => record.id),
    });
    // Rows of a listing that was asked for one document need not name the document.
    const documentOf = Object.fromEntries(rows.map((one) => [one.id, id]));
    const documents = set([bill(id, newer, rows)]);
    const sets = { documentIds: [id], readAt, documents, usage: set(rows, documentOf) };
    const meanwhile = await heldBackBy(gone.id, id, () => writeDocumentSets(warehouse.db, sets));
    expect(meanwhile).toEqual({ updated: older, usage: ['1', '2'] });
    expect(await state(id)).toEqual({ updated: newer, usage: ['10', '3'] });
    expect(await rowOf(warehouse, 'usageData', gone.id)).toMatchObject({ deleted_reason: 'absent' });
  });
});

test('rows of a listing that name no document keep their existing document', async () => {
  const [kept, corrected] = [row('1'), row('2')];
  const id = await billWithUsage([kept, corrected]);
  const rows = [kept, { ...corrected, usage: '3', updated: newer }, row('4')];
  await writeRecords(warehouse, 'usageData', rows, await now());
  expect(await state(id)).toEqual({ updated: older, usage: ['1', '3'] });
});

describe("the usage of a document's record", () => {
  test('is not written if usage has a listing', async () => {
    const rows = [row('1'), row('2')];
    const id = await billWithUsage(rows);
    await writeRecords(warehouse, 'documents', [bill(id, newer, [row('3')])], await now());
    expect((await live(id)).map(({ usage }) => usage)).toEqual(['1', '2']);
  });

  test('is all of its usage otherwise, even after a row moved to another bill', async () => {
    const [moved, kept] = [row('1'), row('2')];
    const [from, to] = [randomUUID(), randomUUID()];
    const show = async (...bills: object[]) =>
      await writeRecords(warehouse, 'documents', bills, await now(), true);
    await show(bill(from, older, [moved, kept]));
    await show(bill(to, newer, [row('3', newer, moved.id)]));
    await show(bill(from, newer, [row('4', newer, kept.id)]));
    expect([await state(from), await state(to)]).toMatchObject([{ usage: ['4'] }, { usage: ['3'] }]);
  });

  test('is back when an equal record of its document is read, after a late answer moved a row away', async () => {
    const [moved, kept] = [row('1'), row('2')];
    const [from, to] = [randomUUID(), randomUUID()];
    const show = async (...bills: object[]) =>
      await writeRecords(warehouse, 'documents', bills, await now(), true);
    await show(bill(from, older, [kept]), bill(to, newer, [moved]));
    await show(bill(from, newest, [moved, kept]));
    await show(bill(from, newest, [kept]));
    expect(await state(to)).toMatchObject({ usage: [] });
    await show(bill(from, newest, [kept]), bill(to, newer, [moved]));
    expect([await state(from), await state(to)]).toMatchObject([{ usage: ['2'] }, { usage: ['1'] }]);
  });

  test.each<[string, (moved: Row, from: string, to: string, show: Show) => Promise<void>]>([
    [
      'the bill that gives a row away is read later and written before',
      async (moved, from, to, show) => {
        const early = await now();
        await show([bill(from, newer, [])], await now());
        await show([bill(to, newer, [moved])], early);
      },
    ],
    [
      'an event deletes the bill that gives a row away',
      async (moved, from, to, show) => {
        const early = await now();
        await recordEvents(warehouse.db, [delivery(documentEvent('deleted', from, newer))]);
        await show([bill(to, newer, [moved])], early);
      },
    ],
  ])('moves with the next page of the other bill if %s', async (_, happens) => {
    const [moved, from, to] = [row('1'), randomUUID(), randomUUID()];
    const show: Show = async (bills, read) => {
      await writeRecords(warehouse, 'documents', bills, read, true);
    };
    await show([bill(from, older, [moved]), bill(to, older, [])], await now());
    await happens(moved, from, to, show);
    await show([bill(to, newer, [moved])], await now());
    expect(await state(to)).toMatchObject({ usage: ['1'] });
  });

  test('stays with one of two bills that list it, and goes to the other one when the first no longer does', async () => {
    const [shared, one, two] = [row('1'), randomUUID(), randomUUID()];
    const show = async (...bills: object[]) =>
      await writeRecords(warehouse, 'documents', bills, await now(), true);
    const owner = async () => (await rowOf(warehouse, 'usageData', shared.id))?.document_id;
    for (let night = 0; night < 3; night++) {
      await show(bill(one, newer, [shared]));
      await show(bill(two, older, [shared]));
      expect(await owner()).toBe(one);
    }
    const { rows } = await warehouse.db.execute(sql`
      select from metersync.earlier_states where id in (${one}, ${two}, ${shared.id})`);
    expect(rows).toEqual([]);
    await show(bill(one, newest, []));
    await show(bill(two, older, [shared]));
    expect(await owner()).toBe(two);
    expect(await state(two)).toMatchObject({ usage: ['1'] });
  });

  test('is written with an equal record once the records become its source', async () => {
    const [id, before, after] = [randomUUID(), row('1'), row('2')];
    await writeRecords(warehouse, 'documents', [bill(id, older, [before])], await now());
    await writeRecords(warehouse, 'usageData', listed(id, [before]), await now());
    await writeRecords(warehouse, 'documents', [bill(id, newer, [after])], await now());
    await writeRecords(warehouse, 'documents', [bill(id, newer, [after])], await now(), true);
    expect(await state(id)).toMatchObject({ usage: ['2'] });
  });

  test('is that of the other company that lists its bill, when the first no longer does', async () => {
    const [id, first, other] = [randomUUID(), randomUUID(), randomUUID()];
    await writeRecords(warehouse, 'companies', [{ id: first }, { id: other }]);
    const show = async (company: string, record: object) => {
      const { readAt = '' } = await now();
      const read = { readAt, companyId: company };
      await writeRecords(warehouse, 'documents', [{ ...record, company: first }], read, true);
    };
    await show(first, bill(id, newer, [row('1')]));
    const ofOther = bill(id, older, [row('2')]);
    await show(other, ofOther);
    const { readAt: beganAt = '' } = await now();
    await forgetListed(warehouse.db, { resource: 'documents', companyId: first }, { ids: [], beganAt });
    await show(other, ofOther);
    expect((await live(id)).map(({ usage }) => usage)).toEqual(['2']);
  });

  test.each<[string, unknown]>([
    ['has no usage', undefined],
    ['has text instead of rows', 'see attachment'],
    ['has rows without an id', [{ usage: '1' }]],
  ])('stays as it is if the record %s', async (_, usageData) => {
    const rows = [row('1')];
    const id = await billWithUsage(rows);
    await writeRecords(warehouse, 'documents', [bill(id, newer, usageData)], await now(), true);
    expect(await live(id)).toHaveLength(1);
  });

  test('gets the new owner of its document, unless a row moved to another bill', async () => {
    const [kept, gone, taken] = [row('1'), row('2'), row('3')];
    const [from, to, other] = [randomUUID(), randomUUID(), randomUUID()];
    const show = async (...bills: object[]) =>
      await writeRecords(warehouse, 'documents', bills, await now(), true);
    await show({ ...bill(from, older, [kept, gone, taken]), company: companyId });
    await show(
      { ...bill(from, newer, [kept]), company: other },
      bill(to, older, [row('4', newer, taken.id)]),
    );
    const shown = await Promise.all([kept, gone, taken].map(({ id }) => rowOf(warehouse, 'usageData', id)));
    expect(shown).toMatchObject([
      { document_id: from, company_id: other, deleted_at: null },
      { document_id: from, company_id: other, deleted_reason: 'absent' },
      { document_id: to, company_id: companyId, deleted_at: null, usage: '4' },
    ]);
  });

  test('does not replace usage that was read after the record', async () => {
    const [first, second] = [row('1'), row('2', newer)];
    const id = await billWithUsage([first]);
    const before = await now();
    const { readAt = '' } = await now();
    const usage = { page: pageOfRecords(listed(id, [second]), { readAt, companyId }), ids: [second.id] };
    await writeDocumentSets(warehouse.db, { documentIds: [id], readAt, usage });
    await writeRecords(warehouse, 'documents', [bill(id, newer, [first])], before, true);
    expect((await live(id)).map(({ usage }) => usage)).toEqual(['2']);
  });
});
