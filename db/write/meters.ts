import { sql } from 'drizzle-orm';
import { decoded, inOrder } from './decoded.ts';
import { countWritten, items, laterRead, setColumns, type UpsertPage } from './page.ts';

const columns = ['company_id', 'site_id', 'account_id', 'datasource_type'] as const;

/** Meters. */
export const upsertMeters: UpsertPage = (tx, page) =>
  countWritten(
    tx,
    sql`with ${items(page)}
    insert into utility.meters as m (id, ${sql.raw(columns.join(', '))}, raw, api_version, synced_at)
    select distinct on (id) r ->> 'id' as id, ${inOrder(columns, decoded.meters(page, sql`m`))}, r, ${page.apiVersion}, ${page.readAt}::timestamptz
    from item order by id, place desc
    on conflict (id) do update set ${setColumns(columns)}
    where ${laterRead('m', columns)}
    returning (xmax = 0) as inserted`,
  );
