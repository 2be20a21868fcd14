import type { Warehouse } from '../../db/connection/connect.ts';
import type { FieldCatalogue } from '../../db/fields/field-catalogue.ts';
import { writePage } from '../../db/records/write-page.ts';
import type { Bench } from '../measure.ts';
import { startSandbox } from '../service/sandbox.ts';

const readAt = '2026-06-03 00:00:00+00';
const apiVersion = 'v2.2';

export interface DocumentPage {
  readonly body: string;
  readonly items: readonly { readonly id: string }[];
}

/** Lists a company's documents, as the sandbox sends them. */
export async function recordDocumentPages(bench: Bench, documents: number): Promise<DocumentPage[]> {
  const sandbox = await startSandbox(bench, { companies: 1, documents, intervalDays: 0 });
  const base = new URL(sandbox.apiUrl).pathname;
  const answer = JSON.parse(await sandbox.read(`${base}/company`));
  const [company] = (Array.isArray(answer) ? answer : answer.companies) as { id: string }[];
  const recorded: DocumentPage[] = [];
  for (let page = 1; ; page++) {
    const body = await sandbox.read(`${base}/document/company/${company?.id}?page=${page}`);
    const parsed = JSON.parse(body) as { documents: { id: string }[]; hasNext: boolean };
    recorded.push({ body, items: parsed.documents });
    if (!parsed.hasNext) break;
  }
  await sandbox.stop();
  return recorded;
}

/** Makes the same pages after a correction of every record. */
export function corrected(pages: readonly DocumentPage[]): DocumentPage[] {
  return pages.map(({ body }) => {
    const later = body.replaceAll(/"updated":"\d{4}/g, '"updated":"2030');
    return { body: later, items: JSON.parse(later).documents };
  });
}

/** Returns the seconds to write the pages and counts. Every record must be new or changed: see `written`. */
export async function writeDocumentPages(
  warehouse: Warehouse,
  pages: readonly DocumentPage[],
  fields: FieldCatalogue | undefined,
  written: 'inserted' | 'changed' = 'inserted',
): Promise<number> {
  const began = performance.now();
  for (const { body, items } of pages) {
    const page = { body, itemsKey: 'documents', companyId: null, readAt, apiVersion };
    const ids = items.map(({ id }) => id);
    const counts = await writePage(warehouse.db, 'documents', page, ids);
    if (counts[written] !== items.length)
      throw new Error(`${counts[written]} of ${items.length} documents were ${written}`);
    await fields?.note('documents', apiVersion, items);
  }
  await fields?.flush();
  return (performance.now() - began) / 1000;
}
