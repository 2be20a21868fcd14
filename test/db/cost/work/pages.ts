import { sql } from 'drizzle-orm';
import { isAmong } from '../../../../db/connection/arrays.ts';
import type { Warehouse } from '../../../../db/connection/connect.ts';
import { forgetListed, rememberListed } from '../../../../db/records/also-listed.ts';
import { holdDocuments, retireUsage } from '../../../../db/records/usage.ts';
import { writeDocumentSets, writePage } from '../../../../db/records/write-page.ts';
import { tableOf } from '../../../../db/resources.ts';
import { type Listing, pageOfRecords, writeRecords } from '../../../support/pages.ts';
import { idOf, meterOf } from '../rows.ts';
import { changedAt, numbers, readAt, type Work } from './work.ts';

type Make = (plot: number, n: number) => { readonly id: string };

const site = (plot: number) => ({ id: idOf('site', plot), name: 'Main street' });
const usage: Make = (plot, n) => ({
  id: idOf('usage', plot, n),
  updated: changedAt,
  usage: n + 1,
  usageUnits: 'kWh',
  meter: meterOf(plot, 1),
  document: { id: idOf('document', plot, Math.ceil(n / 2)) },
});
const document: Make = (plot, n) => ({
  id: idOf('document', plot, n),
  updated: changedAt,
  site: idOf('site', plot),
  usageData: [usage(plot, 2 * n - 1), usage(plot, 2 * n)],
});

/** Writes a page of five documents, one of which has a value that Postgres refuses. */
const writeSpoilt = (warehouse: Warehouse, plot: number, spoilt: object) => {
  const records = numbers(1, 5).map((n) => ({ ...document(plot, n), ...(n === 3 ? spoilt : {}) }));
  return writeRecords(warehouse, 'documents', records, { readAt, companyId: idOf('company', plot) }, true);
};

const make = {
  companies: (plot: number) => ({ id: idOf('company', plot), name: 'New', sites: [site(plot)] }),
  sites: (plot) => ({ id: idOf('company', plot), name: 'New', sites: [site(plot)] }),
  connections: (plot, n) => ({
    id: idOf('connection', plot, n),
    updated: changedAt,
    status: 'INVALID',
    sitesRelations: [{ site: site(plot), accountIds: ['b'] }],
  }),
  documents: document,
  usageData: usage,
  meters: (plot, n) => ({ id: meterOf(plot, n), site: idOf('site', plot), datasourceType: 'GAS' }),
} satisfies Record<Listing, Make>;

const older = '2025-01-01T00:00:00Z';
/** When rows were read, they had been updated just before, and a listing that lags behind follows shortly. */
const [justBefore, shortlyAfter] = ['2025-03-01T23:59:00Z', '2025-03-02T00:10:00Z'];

/** Writes a page of records in an older state than their rows have. */
const writeOlder = (
  warehouse: Warehouse,
  listing: 'documents' | 'usageData',
  plot: number,
  readAt: string,
) => {
  const records = numbers(1, 50).map((n) => ({ ...make[listing](plot, n), updated: older }));
  return writeRecords(warehouse, listing, records, { readAt, companyId: idOf('company', plot) });
};

/** How many records of each listing a plot has. Records with higher numbers are new. */
const existing: Readonly<Record<Listing, number>> = {
  companies: 1,
  sites: 1,
  connections: 20,
  documents: 50,
  usageData: 100,
  meters: 5,
};

function page(listing: Listing, fresh: boolean, usageOfRecords = false, confirms = false): Work {
  const rows = fresh ? 50 : Math.min(50, existing[listing]);
  const mode = usageOfRecords ? ' with usage' : '';
  return {
    name: `a page of ${rows} ${fresh ? 'new' : 'changed'} ${listing}${mode}${confirms ? ', confirmed' : ''}`,
    // A document brings its usage rows.
    rows: listing === 'documents' ? 3 * rows : rows,
    run: (warehouse, plot) => {
      const records = numbers(1, rows).map((n) => make[listing](plot, fresh ? n + 1_000 : n));
      const read = { readAt, companyId: idOf('company', plot), confirms };
      return writeRecords(warehouse, listing, records, read, usageOfRecords);
    },
  };
}

/** A page that is read because of events. Every other record on it has changed. */
function partly(listing: 'connections' | 'documents' | 'meters', usageOfRecords = false): Work {
  const rows = Math.min(50, existing[listing]);
  const write = (warehouse: Warehouse, plot: number, more: object) => {
    const records = numbers(1, rows).map((n) => ({ ...make[listing](plot, n), ...(n % 2 ? {} : more) }));
    const read = { readAt, companyId: idOf('company', plot), confirms: true };
    return writeRecords(warehouse, listing, records, read, usageOfRecords);
  };
  return {
    name: `a page of ${rows} ${listing}${usageOfRecords ? ' with usage' : ''}, half of them changed, confirmed`,
    rows: listing === 'documents' ? 2 * rows : rows,
    prepare: (warehouse, plot) => write(warehouse, plot, {}),
    run: (warehouse, plot) => write(warehouse, plot, { more: 1 }),
  };
}

const listings = Object.keys(make) as Listing[];

export const pages: readonly Work[] = [
  ...listings
    .filter((listing) => listing !== 'documents')
    .flatMap((one) => [page(one, true), page(one, false)]),
  ...[false, true].flatMap((usageOfRecords) => [
    page('documents', true, usageOfRecords),
    page('documents', false, usageOfRecords),
  ]),
  page('documents', false, false, true),
  partly('documents'),
  partly('documents', true),
  partly('connections'),
  partly('meters'),
  page('connections', false, false, true),
  {
    name: 'a page of 50 unchanged documents',
    rows: 150,
    prepare: page('documents', false, true).run,
    run: page('documents', false, true).run,
  },
  ...(['documents', 'usageData'] as const).map((listing) => ({
    name: `a page of 50 ${listing} in an older state than a recent read`,
    rows: 150,
    prepare: (warehouse: Warehouse, plot: number) => {
      const ids = numbers(1, 50).map((n) => make[listing](plot, n).id);
      return warehouse.db.execute(sql`
        update ${tableOf(listing)}
        set raw = raw || ${JSON.stringify({ updated: justBefore })}::jsonb
        where ${isAmong(sql`id`, ids, 'uuid')}`);
    },
    run: async (warehouse: Warehouse, plot: number) => {
      const written = await writeOlder(warehouse, listing, plot, shortlyAfter);
      if (written.older !== 50) throw new Error(`${written.older} records were older`);
    },
  })),
  ...(['documents', 'usageData'] as const).map((listing) => ({
    name: `a page of 50 ${listing} that went back to an older state`,
    rows: 150,
    run: async (warehouse: Warehouse, plot: number) => {
      const written = await writeOlder(warehouse, listing, plot, readAt);
      if (written.reverted !== 50) throw new Error(`${written.reverted} records were reverted`);
    },
  })),
  {
    name: 'a page of 50 documents of another company, which then lists only one of them',
    rows: 150,
    run: async (warehouse, plot) => {
      const records = numbers(1, 50).map((n) => document(plot, n));
      const companyId = idOf('company', plot + 100_000);
      await writeRecords(warehouse, 'documents', records, { readAt, companyId });
      const lister = { resource: 'documents', companyId } as const;
      await forgetListed(warehouse.db, lister, { ids: [idOf('document', plot, 1)], beganAt: readAt });
      const owner = { ...lister, companyId: idOf('company', plot) };
      await forgetListed(warehouse.db, owner, { ids: [], beganAt: readAt });
    },
  },
  ...(['connections', 'meters'] as const).map(
    (listing): Work => ({
      name: `a page of ${listing} of another company`,
      rows: existing[listing],
      run: (warehouse, plot) => {
        const records = numbers(1, existing[listing]).map((n) => make[listing](plot, n));
        return writeRecords(warehouse, listing, records, {
          readAt,
          companyId: idOf('company', plot + 100_000),
        });
      },
    }),
  ),
  {
    name: 'a company remembers what it lists of records of another company, under a key or in a list',
    rows: 3 * existing.connections,
    run: async ({ db }, plot) => {
      const companyId = idOf('company', plot + 100_000);
      for (const listing of ['connections', 'meters'] as const) {
        const records = numbers(1, existing[listing]).map((n) => make[listing](plot, n));
        const page = {
          ...pageOfRecords(records, { readAt, companyId }),
          digests: records.map(() => '00'),
          walk: { resource: listing, companyId, began: readAt },
        };
        await rememberListed(db, listing, page);
        await rememberListed(db, listing, { ...page, body: JSON.stringify(records), itemsKey: null });
      }
    },
  },
  {
    name: '50 documents with their usage, from their own endpoints',
    rows: 150,
    run: ({ db }, plot) => {
      const companyId = idOf('company', plot);
      const read = { readAt, companyId };
      const documents = numbers(1, 50).map((n) => document(plot, n));
      // Every other row is no longer listed.
      const rows = numbers(1, 50).map((n) => usage(plot, 2 * n));
      const ids = documents.map(({ id }) => id);
      return writeDocumentSets(db, {
        documentIds: ids,
        documents: { page: pageOfRecords(documents, read), ids },
        usage: { page: pageOfRecords(rows, read), ids: rows.map(({ id }) => id) },
        readAt,
      });
    },
  },
  {
    name: '50 documents with their usage, from several answers joined into one body',
    rows: 150,
    run: ({ db }, plot) => {
      const companyId = idOf('company', plot);
      const read = { companyId, byId: true, readAt, apiVersion: 'v2.2', joined: true };
      const documents = numbers(1, 50).map((n) => document(plot, n));
      const ids = documents.map(({ id }) => id);
      const rows = numbers(1, 100).map((n) => usage(plot, n));
      const answers = ids.map((_, at) => ({ items: rows.slice(2 * at, 2 * at + 2) }));
      return writeDocumentSets(db, {
        documentIds: ids,
        documents: { page: { ...read, body: JSON.stringify(documents), itemsKey: '' }, ids },
        usage: {
          page: {
            ...read,
            body: JSON.stringify(answers),
            itemsKey: 'items',
            documentOf: { [rows[0]?.id ?? '']: ids[0] ?? '' },
          },
          ids: rows.map(({ id }) => id),
        },
        readAt,
      });
    },
  },
  ...(['companies', 'sites', 'connections', 'documents', 'usageData', 'meters'] as const).map(
    (listing): Work => ({
      name: `a page of ${listing} that is a bare array`,
      rows: 15,
      run: ({ db }, plot) => {
        const records = numbers(1, Math.min(5, existing[listing])).map((n) => make[listing](plot, n));
        const page = { ...pageOfRecords([], { readAt, companyId: idOf('company', plot) }), itemsKey: null };
        const ids = records.map(({ id }) => id);
        const bare = { ...page, body: JSON.stringify(records) };
        return writePage(db, listing, bare, ids);
      },
    }),
  ),
  {
    name: 'companies that are read again because an event named one of them',
    rows: 10,
    run: async ({ db }, plot) => {
      const records = [make.companies(plot)];
      const page = { ...pageOfRecords(records, { readAt }), existingOnly: true };
      for (const listing of ['companies', 'sites'] as const)
        await writePage(db, listing, page, [records[0]?.id ?? null]);
    },
  },
  {
    name: 'a page with a record that Postgres refuses',
    rows: 60,
    run: (warehouse, plot) => writeSpoilt(warehouse, plot, { created: 'never' }),
  },
  {
    name: 'a page of documents with usage that Postgres refuses',
    rows: 60,
    run: (warehouse, plot) =>
      writeSpoilt(warehouse, plot, { usageData: [{ ...usage(plot, 5), usage: 'much' }] }),
  },
  {
    name: 'a page of 50 documents that were absent from listings and come back with their usage',
    // A document brings its usage, which is looked up by the document, restored and compared.
    rows: 300,
    prepare: async ({ db }, plot) => {
      const gone = sql`deleted_at = '2025-05-01', deleted_reason`;
      const ofPlot = sql`company_id = ${idOf('company', plot)}::uuid`;
      await db.execute(sql`update utility.documents set ${gone} = 'absent' where ${ofPlot}`);
      await db.execute(sql`update utility.usage_data set ${gone} = 'document' where ${ofPlot}`);
    },
    run: page('documents', false).run,
  },
  {
    name: 'the usage of 50 documents is tombstoned',
    rows: 150,
    run: ({ db }, plot) =>
      db.transaction(async (tx) => {
        const ids = numbers(1, 50).map((n) => idOf('document', plot, n));
        await holdDocuments(tx, ids);
        await retireUsage(tx, ids, [], readAt, idOf('company', plot));
      }),
  },
];
