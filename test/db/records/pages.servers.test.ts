import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { recordEvents } from '../../../db/events/record.ts';
import { warehouseNow } from '../../../db/queue/due.ts';
import { writePage } from '../../../db/records/write-page.ts';
import { tableOf } from '../../../db/resources.ts';
import { delivery, documentEvent } from '../../support/events.ts';
import { forFile } from '../../support/for-file.ts';
import { untilLocked } from '../../support/lock-waits.ts';
import { type Listing, rowOf, type SentRecord, writeRecords } from '../../support/pages.ts';
import { statementsTo } from '../../support/statements-sent.ts';
import { createWarehouse } from '../../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const companyId = randomUUID();
const early = { readAt: '2026-06-01T00:00:01Z', companyId };
const late = { readAt: '2026-06-01T00:00:02Z', companyId };
const latest = { readAt: '2026-06-01T00:00:03Z', companyId };
/** A read that began when no answer can lag behind the others any more. */
const hoursLater = { readAt: '2026-06-01T03:00:00Z', companyId };
const older = '2026-05-31T23:59:59.000001';
const newer = '2026-05-31T23:59:59.000002';

/** Makes a record of each listing with the given `name`. A site is inside a company. */
const records: Readonly<Record<Listing, (id: string, name: string, updated?: string) => SentRecord>> = {
  companies: (id, name) => ({ id, name }),
  sites: (id, name) => ({ id: companyId, sites: [{ id, name }] }),
  meters: (id, name) => ({ id, name }),
  connections: (id, name, updated) => ({ id, name, updated, status: 'CONNECTED' }),
  documents: (id, name, updated) => ({ id, name, updated }),
  usageData: (id, name, updated) => ({ id, name, updated, document: { id: documentOfUsage } }),
};
const documentOfUsage = randomUUID();
const dated = ['connections', 'documents', 'usageData'] as const;
const undated = ['companies', 'sites', 'meters'] as const;

const write = (listing: Listing, id: string, name: string, read: typeof early, updated?: string) =>
  writeRecords(warehouse, listing, [records[listing](id, name, updated)], read);
const nameOf = async (listing: Listing, id: string) =>
  ((await rowOf(warehouse, listing, id))?.raw as { name?: string } | undefined)?.name;
const deleteRow = (listing: Listing, id: string, reason: string, at: string) =>
  warehouse.db.execute(sql`update ${tableOf(listing)}
    set deleted_at = ${at}::timestamptz, deleted_reason = ${reason} where id::text = ${id}`);

// Sites are written only if their company has a row.
await writeRecords(warehouse, 'companies', [{ id: companyId }], early);

describe.each(dated)('%s, which have `updated`', (listing) => {
  test('a read whose request was retried shows what happened after it began', async () => {
    const id = randomUUID();
    const during = '2026-06-01T00:00:20';
    await write(listing, id, 'newer', early, during);
    // It was answered before the change, and arrives later.
    await write(listing, id, 'older', latest, older);
    expect(await nameOf(listing, id)).toBe('newer');
    // If the service went back to an older state, a read shows it that can no longer lag behind.
    await write(listing, id, 'older', hoursLater, older);
    expect(await nameOf(listing, id)).toBe('older');
  });

  test('the newer state wins, in any order of reads and writes', async () => {
    const [first, second] = [randomUUID(), randomUUID()];
    await write(listing, first, 'new', early, newer);
    await write(listing, first, 'old', late, older);
    await write(listing, second, 'old', late, older);
    await write(listing, second, 'new', early, newer);
    expect([await nameOf(listing, first), await nameOf(listing, second)]).toEqual(['new', 'new']);
  });

  test('at the same `updated` the read that began later wins, in any order of writes', async () => {
    const [first, second] = [randomUUID(), randomUUID()];
    await write(listing, first, 'read early', early, newer);
    await write(listing, first, 'read late', late, newer);
    await write(listing, second, 'read late', late, newer);
    await write(listing, second, 'read early', early, newer);
    expect([await nameOf(listing, first), await nameOf(listing, second)]).toEqual(['read late', 'read late']);
  });

  test('the read that began later wins when the service stops sending `updated`', async () => {
    const id = randomUUID();
    await write(listing, id, 'dated', late, newer);
    await write(listing, id, 'undated', early);
    expect(await nameOf(listing, id)).toBe('dated');
    await write(listing, id, 'undated', hoursLater);
    expect(await nameOf(listing, id)).toBe('undated');
  });

  test('an older state wins only if its read began so late that it cannot lag behind the newer one', async () => {
    const id = randomUUID();
    await write(listing, id, 'new', early, newer);
    await write(listing, id, 'old', late, older);
    expect(await nameOf(listing, id)).toBe('new');
    const [old] = [records[listing](id, 'old', older)];
    expect(await writeRecords(warehouse, listing, [old], hoursLater)).toMatchObject({
      changed: 1,
      reverted: 1,
    });
    expect(await nameOf(listing, id)).toBe('old');
    await write(listing, id, 'new', latest, newer);
    expect(await nameOf(listing, id)).toBe('old');
  });

  test('a state from the future is replaced once a read cannot lag behind it any more', async () => {
    const id = randomUUID();
    await write(listing, id, 'future', late, '2099-01-01T00:00:00');
    await write(listing, id, 'early', early, newer);
    await write(listing, id, 'latest', latest, older);
    expect(await nameOf(listing, id)).toBe('future');
    await write(listing, id, 'hours later', hoursLater, older);
    expect(await nameOf(listing, id)).toBe('hours later');
  });

  test('the newer state of a duplicate record on a page is written', async () => {
    const id = randomUUID();
    const twice = [records[listing](id, 'new', newer), records[listing](id, 'old', older)];
    expect(await writeRecords(warehouse, listing, twice, early)).toMatchObject({ inserted: 1, changed: 0 });
    expect(await nameOf(listing, id)).toBe('new');
  });
});

describe.each(undated)('%s, which have no `updated`', (listing) => {
  test('the read that began later wins, in any order of writes', async () => {
    const [first, second] = [randomUUID(), randomUUID()];
    await write(listing, first, 'read early', early);
    await write(listing, first, 'read late', late);
    await write(listing, second, 'read late', late);
    await write(listing, second, 'read early', early);
    expect([await nameOf(listing, first), await nameOf(listing, second)]).toEqual(['read late', 'read late']);
  });
});

describe.each([...dated, ...undated])('%s', (listing) => {
  test('the same record in another version of the API is written again', async () => {
    const id = randomUUID();
    await write(listing, id, 'same', early, newer);
    const again = [records[listing](id, 'same', newer)];
    const read = { ...late, apiVersion: 'v2.1' };
    expect(await writeRecords(warehouse, listing, again, read)).toMatchObject({ inserted: 0, changed: 1 });
    expect(await rowOf(warehouse, listing, id)).toMatchObject({ api_version: 'v2.1' });
  });

  test('a row that was tombstoned as absent is restored by a read that began later, but not by an earlier read', async () => {
    const id = randomUUID();
    await write(listing, id, 'seen', early, newer);
    await deleteRow(listing, id, 'absent', late.readAt);
    await write(listing, id, 'seen', early, newer);
    expect(await rowOf(warehouse, listing, id)).toMatchObject({ deleted_reason: 'absent' });
    await write(listing, id, 'seen', latest, newer);
    expect(await rowOf(warehouse, listing, id)).toMatchObject({ deleted_at: null, deleted_reason: null });
  });
});

describe('values from a record', () => {
  const column = async (
    listing: Listing,
    record: SentRecord & { id: string },
    name: string,
    read = early,
  ) => {
    await writeRecords(warehouse, listing, [record], read);
    return (await rowOf(warehouse, listing, record.id))?.[name];
  };
  const other = randomUUID();

  test.each(['documents', 'connections'] as const)(
    '%s: the company as an object, as an id, or from the listing',
    async (listing) => {
      const of = (company: unknown) =>
        column(listing, { id: randomUUID(), ...(company ? { company } : {}) }, 'company_id');
      expect(await of({ id: other, name: 'Other' })).toBe(other);
      expect(await of(other)).toBe(other);
      expect(await of(undefined)).toBe(companyId);
    },
  );

  test('the site of a document: from itself, from its first usage row, or from an earlier event', async () => {
    const of = (more: object, id: string = randomUUID()) => column('documents', { id, ...more }, 'site_id');
    expect(await of({ site: { id: other } })).toBe(other);
    expect(await of({ site: other })).toBe(other);
    expect(await of({ usageData: [{ site: { id: other } }, { site: { id: companyId } }] })).toBe(other);
    const withSite = randomUUID();
    await warehouse.db.execute(
      sql`insert into utility.documents (id, site_id) values (${withSite}::uuid, ${other}::uuid)`,
    );
    expect(await of({ updated: newer }, withSite)).toBe(other);
  });

  test('a company keeps the public id that an event named, and its sites are written', async () => {
    const [id, publicId, siteId] = [randomUUID(), randomUUID(), randomUUID()];
    await warehouse.db.execute(
      sql`insert into utility.companies (id, public_id) values (${id}::uuid, ${publicId})`,
    );
    const company = { id, externalId: 'x-1', name: 'Acme', sites: [{ id: siteId, name: 'Plant' }] };
    expect(await column('companies', company, 'public_id')).toBe(publicId);
    await writeRecords(warehouse, 'sites', [company, { id: randomUUID(), sites: 'none' }], early);
    expect(await rowOf(warehouse, 'sites', siteId)).toMatchObject({ company_id: id, name: 'Plant' });
  });

  test('the sites of a connection follow records that list them, and otherwise stay', async () => {
    const id = randomUUID();
    const [first, second] = [randomUUID(), randomUUID()];
    const relation = (site: string, accountIds: string[]) => ({
      site: { id: site },
      accountIds,
      datasourceTypes: ['GAS'],
    });
    const sites = async () =>
      (
        await warehouse.db.execute(
          sql`select site_id, account_ids from utility.connection_sites where connection_id = ${id}::uuid order by account_ids`,
        )
      ).rows;
    const relations = [relation(first, ['1']), relation(second, ['2'])];
    await writeRecords(warehouse, 'connections', [{ id, updated: older, sitesRelations: relations }], early);
    expect(await sites()).toEqual([
      { site_id: first, account_ids: ['1'] },
      { site_id: second, account_ids: ['2'] },
    ]);
    const corrected = { id, updated: newer, sitesRelations: [relation(second, ['3', '4'])] };
    await writeRecords(warehouse, 'connections', [corrected], late);
    await writeRecords(warehouse, 'connections', [{ id, updated: older, sitesRelations: relations }], latest);
    expect(await sites()).toEqual([{ site_id: second, account_ids: ['3', '4'] }]);
    await writeRecords(warehouse, 'connections', [{ id, updated: newer }], latest);
    expect(await sites()).toEqual([{ site_id: second, account_ids: ['3', '4'] }]);
  });
});

describe('the statements of a page', () => {
  const companyId = randomUUID();

  interface Page {
    readonly ids: readonly string[];
    readonly updated: string;
    readonly usageOfRecords?: boolean;
  }

  /** Writes a page, and returns the number of statements. */
  async function write(listing: Listing, { ids, updated, usageOfRecords }: Page): Promise<number> {
    const before = await statementsTo(warehouse.url);
    const records = ids.map((id) => ({ id, updated, ...more[listing](id) }));
    await writeRecords(warehouse, listing, records, { companyId, readAt: updated }, usageOfRecords);
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

  describe('a page of 50 records', () => {
    test.for([
      ['companies', 1, 1],
      ['sites', 1, 1],
      ['connections', 3, 4],
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
      ['with', 4, 6, true],
    ] as const)(
      'of documents %s usage costs at most %i statements if they are new, and %i if they changed',
      async ([, fresh, changed, usageOfRecords]) => {
        const ids = some();
        expect(await write('documents', { ids, updated: first, usageOfRecords })).toBeLessThanOrEqual(fresh);
        expect(await write('documents', { ids, updated: later, usageOfRecords })).toBeLessThanOrEqual(
          changed,
        );
      },
    );

    test('costs one statement if nothing changed', async () => {
      const ids = some();
      await write('documents', { ids, updated: first });
      expect(await write('documents', { ids, updated: first })).toBe(1);
    });
  });
});

describe('a page that comes late', () => {
  const updated = '2026-05-01T00:00:00.000002';
  const aDocument = () => {
    const id = randomUUID();
    const usageId = randomUUID();
    return {
      id,
      usageId,
      record: { id, updated },
      usage: { id: usageId, updated, usage: '1', document: { id } },
      deleted: delivery(documentEvent('deleted', id, updated)),
    };
  };
  describe('a delete event and a page of usage that are written at the same time', () => {
    const pageOf = (usage: object, readAt: string) => ({
      body: JSON.stringify([usage]),
      itemsKey: null,
      companyId: null,
      readAt,
      apiVersion: 'v2.2',
    });
    const someoneWaits = () => untilLocked(warehouse.db, 'one transaction waits for the other');

    test('wait for each other: the event tombstones what the page wrote', async () => {
      const { usageId, usage, deleted } = aDocument();
      const readAt = await warehouseNow(warehouse.db);
      let recorded: Promise<unknown> | undefined;
      await warehouse.db.transaction(async (tx) => {
        await writePage(tx, 'usageData', pageOf(usage, readAt), [usageId]);
        recorded = recordEvents(warehouse.db, [deleted]);
        await someoneWaits();
      });
      await recorded;
      expect(await rowOf(warehouse, 'usageData', usageId)).toMatchObject({ deleted_reason: 'document' });
    });

    test('wait for each other: the page writes nothing after the event', async () => {
      const { id, usageId, record, usage } = aDocument();
      await writeRecords(warehouse, 'documents', [record]);
      const readAt = await warehouseNow(warehouse.db);
      let written: Promise<unknown> | undefined;
      await warehouse.db.transaction(async (tx) => {
        await tx.execute(
          sql`update utility.documents set deleted_at = now(), deleted_reason = 'event' where id = ${id}::uuid`,
        );
        written = writeRecords(warehouse, 'usageData', [usage], { readAt });
        await someoneWaits();
      });
      await written;
      expect(await rowOf(warehouse, 'usageData', usageId)).toBeUndefined();
    });
  });
});
