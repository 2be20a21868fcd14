import { resources } from '../resources.ts';
import { countWritten, items, type UpsertPage } from './page.ts';
import { upsertRecords } from './upsert.ts';

/** Writes meters. */
export const upsertMeters: UpsertPage = (tx, page) =>
  countWritten(tx, upsertRecords(resources.meters, { items: items(page), page }));
