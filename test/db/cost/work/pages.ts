import { writeDocumentSets } from '../../../../db/write/document-sets.ts';
import type { RecordPage } from '../../../../db/write/page.ts';
import { holdDocuments, retireUsage } from '../../../../db/write/usage-data.ts';
import { type Listing, pageOfRecords, writeRecords } from '../../../support/pages.ts';
import { idOf, meterOf } from '../rows.ts';
import { changedAt, numbers, readAt, type Work } from './work.ts';

type Make = (plot: number, n: number) => { readonly id: string };

const site = (plot: number) => ({ id: idOf('site', plot), name: 'Main street' });
const usage: Make = (plot, n) => ({
  id: idOf('usage', plot, n),
  ...{ updated: changedAt, usage: n + 1, usageUnits: 'kWh', meter: meterOf(plot, 1) },
  document: { id: idOf('document', plot, Math.ceil(n / 2)) },
});
const document: Make = (plot, n) => ({
  id: idOf('document', plot, n),
  ...{
    updated: changedAt,
    site: idOf('site', plot),
    usageData: [usage(plot, 2 * n - 1), usage(plot, 2 * n)],
  },
});

const make = {
  companies: (plot) => ({ id: idOf('company', plot), name: 'New', sites: [site(plot)] }),
  sites: (plot) => ({ id: idOf('company', plot), name: 'New', sites: [site(plot)] }),
  connections: (plot, n) => ({
    id: idOf('connection', plot, n),
    ...{ updated: changedAt, status: 'INVALID', sitesRelations: [{ site: site(plot), accountIds: ['b'] }] },
  }),
  documents: document,
  usageData: usage,
  meters: (plot, n) => ({ id: meterOf(plot, n), site: idOf('site', plot), datasourceType: 'GAS' }),
} satisfies Record<Listing, Make>;

/** Where the records of each listing that a plot has are: from 1 on; those beyond are new. */
const known: Readonly<Record<Listing, number>> = {
  companies: 1,
  sites: 1,
  connections: 20,
  documents: 50,
  usageData: 100,
  meters: 5,
};

function page(listing: Listing, fresh: boolean, usageMode?: RecordPage['usage'], confirms = false): Work {
  const rows = fresh ? 50 : Math.min(50, known[listing]);
  const mode = usageMode === undefined ? '' : `, usage: ${usageMode}`;
  return {
    name: `a page of ${rows} ${fresh ? 'new' : 'changed'} ${listing}${mode}${confirms ? ', confirmed' : ''}`,
    // A document's usage comes with it.
    rows: listing === 'documents' ? 3 * rows : rows,
    run: (warehouse, plot) => {
      const records = numbers(1, rows).map((n) => make[listing](plot, fresh ? n + 1_000 : n));
      const read = { readAt, companyId: idOf('company', plot), confirms };
      return writeRecords(warehouse, listing, records, read, usageMode);
    },
  };
}

const listings = Object.keys(make) as Listing[];

export const pages: readonly Work[] = [
  ...listings
    .filter((listing) => listing !== 'documents')
    .flatMap((one) => [page(one, true), page(one, false)]),
  ...(['all', 'corrected', 'alone', 'none'] as const).flatMap((mode) => [
    page('documents', true, mode),
    page('documents', false, mode),
  ]),
  page('documents', false, 'none', true),
  page('connections', false, undefined, true),
  {
    name: 'a page of 50 documents that have not changed',
    rows: 150,
    prepare: page('documents', false, 'all').run,
    run: page('documents', false, 'all').run,
  },
  {
    name: '50 documents with their usage, as their own endpoints showed them',
    rows: 150,
    run: ({ db }, plot) => {
      const companyId = idOf('company', plot);
      const read = { readAt, companyId };
      const documents = numbers(1, 50).map((n) => document(plot, n));
      // Every other row is no longer shown.
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
    name: 'the usage of 50 documents is gone',
    rows: 150,
    run: ({ db }, plot) =>
      db.transaction(async (tx) => {
        const ids = numbers(1, 50).map((n) => idOf('document', plot, n));
        await holdDocuments(tx, ids);
        await retireUsage(tx, ids, [], readAt);
      }),
  },
];
