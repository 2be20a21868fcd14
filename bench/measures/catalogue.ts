import { connectWarehouse, type Warehouse } from '../../db/connect.ts';
import { createFieldCatalogue, type FieldCatalogue } from '../../db/fields/field-catalogue.ts';
import { upsertDocuments } from '../../db/write/documents.ts';
import { writePage } from '../../db/write/write-page.ts';
import { type Bench, type Figures, type Measure, median } from '../measure.ts';
import { startSandbox } from '../service/sandbox.ts';
import { withClient } from '../stack.ts';

const readAt = '2026-06-03 00:00:00+00';
const apiVersion = 'v2.2';

export const catalogue: Measure = {
  name: 'catalogue',
  about: 'pages of documents written with the catalogue of fields, against the same without it',
  run: measureCatalogue,
};

interface RecordedPage {
  readonly body: string;
  readonly items: readonly { readonly id: string }[];
}

/** A worker has parsed each page before, to walk the listing: that is no part of either figure. */
async function measureCatalogue(bench: Bench): Promise<Figures> {
  const { catalogueDocuments, catalogueRounds } = bench.size;
  const pages = await recordPages(bench, catalogueDocuments);
  const url = await bench.stack.warehouse();
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 4, onError: () => {} });
  bench.atEnd(() => warehouse.close());
  bench.say(`${pages.length} pages of 100 documents, ${catalogueRounds} rounds, with and without in turn`);
  const seconds = { with: [] as number[], without: [] as number[] };
  // The first round warms up connections and code; a worker meets new fields in its first seconds only.
  for (let round = 0; round <= catalogueRounds; round++) {
    const fields = createFieldCatalogue({
      db: warehouse.db,
      onError: (error) => {
        throw error;
      },
    });
    const order = round % 2 === 0 ? ([undefined, fields] as const) : ([fields, undefined] as const);
    for (const given of order) {
      await withClient(url, (client) => client.query('truncate utility.documents, utility.usage_data'));
      const took = await writeAll(warehouse, pages, given);
      if (round > 0) seconds[given === undefined ? 'without' : 'with'].push(took);
    }
    await fields.close();
  }
  const documents = pages.reduce((sum, { items }) => sum + items.length, 0);
  const [withIt, without] = [median(seconds.with), median(seconds.without)];
  return {
    ofWithout: without / withIt,
    perSecond: documents / withIt,
    withoutPerSecond: documents / without,
  };
}

async function recordPages(bench: Bench, documents: number): Promise<RecordedPage[]> {
  const sandbox = await startSandbox(bench, { companies: 1, documents, intervalDays: 0 });
  const base = new URL(sandbox.apiUrl).pathname;
  const answer = JSON.parse(await sandbox.read(`${base}/company`));
  const [company] = (Array.isArray(answer) ? answer : answer.companies) as { id: string }[];
  const recorded: RecordedPage[] = [];
  for (let page = 1; ; page++) {
    const body = await sandbox.read(`${base}/document/company/${company?.id}?page=${page}`);
    const parsed = JSON.parse(body) as { documents: { id: string }[]; hasNext: boolean };
    recorded.push({ body, items: parsed.documents });
    if (!parsed.hasNext) break;
  }
  await sandbox.stop();
  return recorded;
}

/** Seconds that it takes, the flush of what was counted included. */
async function writeAll(
  warehouse: Warehouse,
  pages: readonly RecordedPage[],
  fields: FieldCatalogue | undefined,
): Promise<number> {
  const began = performance.now();
  for (const { body, items } of pages) {
    const page = { body, itemsKey: 'documents', companyId: null, readAt, apiVersion };
    const ids = items.map(({ id }) => id);
    const { inserted } = await writePage(warehouse.db, 'documents', upsertDocuments, page, ids);
    if (inserted !== items.length) throw new Error(`${inserted} of ${items.length} documents were inserted`);
    await fields?.note('documents', apiVersion, items);
  }
  await fields?.flush();
  return (performance.now() - began) / 1000;
}
