import { Context } from '@temporalio/activity';
import { workflowNames } from '../../contract/names.ts';
import type { Warehouse } from '../../db/connection/connect.ts';
import type { RecordPage } from '../../db/records/page.ts';
import { analyseYoung, type PageWritten, sum, writePage } from '../../db/records/write-page.ts';
import type { ListedResource } from '../../db/resources.ts';
import type { ServiceClient } from '../../service/client.ts';
import type { Page } from '../../service/page.ts';
import type { ActivityDependencies, RowsWritten } from '../dependencies.ts';

/** One page, or one record, to be written to its table. `RecordPage` describes the options. */
export interface PageWrite {
  readonly listing: ListedResource;
  readonly companyId: string | null;
  readonly byId?: boolean | undefined;
  readonly readAt: string;
  readonly walkBegan?: string | undefined;
  readonly page: Pick<Page, 'body' | 'itemsKey' | 'ids' | 'items'> & { readonly joined?: boolean };
  readonly usageOfRecords?: boolean;
  readonly existingOnly?: boolean | undefined;
  readonly confirms?: boolean;
}

/** The source of usage: the records of documents if companies have no listing of usage. */
export const usageSource = (service: Pick<ServiceClient, 'has'>): Pick<PageWrite, 'usageOfRecords'> => ({
  usageOfRecords: !service.has('usageData'),
});

/** Writes a page and notes its fields in the catalogue. */
export async function write(deps: ActivityDependencies, given: PageWrite): Promise<PageWritten> {
  const withUsage = { ...given, ...usageSource(deps.service) };
  const written = await rewrite(deps.warehouse, deps.apiVersion, withUsage);
  noteWritten(deps, given.listing, written);
  await noteFields(deps, given.listing, given.page.items);
  await analyseYoung(deps.warehouse, given.listing, written.inserted);
  return written;
}

/** Notes the fields of written records in the catalogue, before the cursor moves on. */
export async function noteFields(
  { catalogue, apiVersion }: ActivityDependencies,
  listing: ListedResource | 'intervals',
  items: readonly unknown[],
): Promise<void> {
  await catalogue.note(listing, apiVersion, items);
  if (listing !== 'companies') return;
  const sites = (items as readonly { sites?: unknown }[]).flatMap((company) => company?.sites ?? []);
  await catalogue.note('sites', apiVersion, sites);
}

/** Writes a page for an audit that repairs, without noting its fields in the catalogue. */
export async function rewrite(
  warehouse: Warehouse,
  apiVersion: string,
  {
    listing,
    companyId,
    byId,
    readAt,
    walkBegan,
    page,
    usageOfRecords = false,
    existingOnly,
    confirms = false,
  }: Omit<PageWrite, 'page'> & {
    readonly page: Omit<PageWrite['page'], 'items'>;
  },
): Promise<PageWritten> {
  const { body, itemsKey, joined = false } = page;
  const source = { companyId, byId, readAt, walkBegan, usageOfRecords, apiVersion, existingOnly, confirms };
  const record: RecordPage = { body, itemsKey, joined, ...source };
  if (listing !== 'companies') return await writePage(warehouse.db, listing, record, page.ids);
  const written = await writePage(warehouse.db, listing, record, page.ids);
  return sum(written, await writePage(warehouse.db, 'sites', record, page.ids));
}

/** Reports rows that the activity wrote, with the work that it belongs to. */
export function noteWritten(
  { onWritten }: { readonly onWritten?: ((rows: RowsWritten) => void) | undefined },
  resource: RowsWritten['resource'],
  { inserted, changed, rejected }: PageWritten,
): void {
  if (onWritten === undefined) return;
  const { workflowType } = Context.current().info;
  const by =
    workflowType === workflowNames.sweep || workflowType === workflowNames.applyEvents
      ? 'catch_up'
      : workflowType === workflowNames.backfillUpdates
        ? 'reconcile'
        : 'backfill';
  onWritten({ resource, by, inserted, changed, rejected });
}
