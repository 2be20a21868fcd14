import { connectWarehouse } from '../../db/connection/connect.ts';
import { createFieldCatalogue } from '../../db/fields/field-catalogue.ts';
import { recordDocumentPages, writeDocumentPages } from '../load/document-pages.ts';
import { type Bench, type Figures, type Measure, median } from '../measure.ts';
import { withClient } from '../stack.ts';

export const catalogue: Measure = {
  name: 'catalogue',
  about: 'pages of documents written with the catalogue of fields, against the same without it',
  run: measureCatalogue,
};

/** Parsing is part of neither figure, because a worker parses each page anyway to walk the listing. */
async function measureCatalogue(bench: Bench): Promise<Figures> {
  const { catalogueDocuments, catalogueRounds } = bench.size;
  const pages = await recordDocumentPages(bench, catalogueDocuments);
  const url = await bench.stack.warehouse();
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 4, onError: () => {} });
  bench.atEnd(() => warehouse.close());
  bench.say(`${pages.length} pages of 100 documents, ${catalogueRounds} rounds, with and without in turn`);
  const seconds = { with: [] as number[], without: [] as number[] };
  // The first round warms up, and notes the new fields, which a worker meets only in its first seconds.
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
      const took = await writeDocumentPages(warehouse, pages, given);
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
