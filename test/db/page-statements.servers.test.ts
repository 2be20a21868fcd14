import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { notingPages } from '../../db/backfill/manifest.ts';
import { forFile } from '../support/for-file.ts';
import { type Listing, writeRecords } from '../support/pages.ts';
import { statementsTo } from '../support/statements-sent.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const companyId = randomUUID();

interface Page {
  readonly ids: readonly string[];
  readonly updated: string;
  readonly usageOfRecords?: boolean;
}

/** Writes a page that a run notes, and returns the number of statements. */
async function write(listing: Listing, { ids, updated, usageOfRecords }: Page): Promise<number> {
  const before = await statementsTo(warehouse.url);
  const key = { runId: randomUUID(), companyId, resource: 'documents', pass: 1 } as const;
  const records = ids.map((id) => ({ id, updated, ...more[listing](id) }));
  const page = { asked: 1, currentPage: 1, total: ids.length, hasNext: false, ids, readAt: updated };
  const noted = notingPages(key, [page]);
  await writeRecords(warehouse, listing, records, { companyId, readAt: updated }, usageOfRecords, noted);
  return (await statementsTo(warehouse.url)) - before;
}

const usageOf = (document: string) => ({ id: document.replace(/^.{8}/, '00000000'), usage: 1 });
const more: Readonly<Record<Listing, (id: string) => object>> = {
  companies: () => ({ name: 'A' }),
  sites: () => ({ sites: [{ id: randomUUID() }] }),
  connections: () => ({ sitesRelations: [{ site: { id: randomUUID() } }] }),
  documents: (id) => ({ usageData: [usageOf(id)] }),
  usageData: () => ({ document: { id: randomUUID() }, usage: 2 }),
  meters: () => ({ serviceType: 'ELECTRIC' }),
};
const some = () => Array.from({ length: 50 }, () => randomUUID());
const first = '2026-06-01T00:00:00Z';
const later = '2026-06-02T00:00:00Z';

describe('a page of 50 records that a run notes', () => {
  test.for([
    ['companies', 1, 1],
    ['sites', 1, 1],
    ['connections', 3, 3],
    ['usageData', 3, 3],
    ['meters', 2, 2],
  ] as const)(
    'of %s costs at most %i statements if the records are new, and %i if they changed',
    async ([listing, fresh, changed]) => {
      const ids = some();
      expect(await write(listing, { ids, updated: first })).toBeLessThanOrEqual(fresh);
      expect(await write(listing, { ids, updated: later })).toBeLessThanOrEqual(changed);
    },
  );

  // The writes that follow from changed documents need a snapshot that begins after the documents are locked.
  test.for([
    ['without', 2, 3, false],
    ['with', 4, 4, true],
  ] as const)(
    'of documents %s usage costs at most %i statements if they are new, and %i if they changed',
    async ([, fresh, changed, usageOfRecords]) => {
      const ids = some();
      expect(await write('documents', { ids, updated: first, usageOfRecords })).toBeLessThanOrEqual(fresh);
      expect(await write('documents', { ids, updated: later, usageOfRecords })).toBeLessThanOrEqual(changed);
    },
  );

  test('costs at most two statements if nothing changed', async () => {
    const ids = some();
    await write('documents', { ids, updated: first });
    expect(await write('documents', { ids, updated: first })).toBe(2);
  });
});
