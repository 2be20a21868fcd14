import { type SQL, sql } from 'drizzle-orm';
import { array } from './arrays.ts';
import type { Executor } from './connect.ts';
import { isAdmitted, sitesToAdmit } from './strangers.ts';

/** What of a company needs its listing read. */
export interface Unread {
  /** Whether the company, or a site of it, is known by name only. */
  readonly companies: boolean;
  /** Whether a meter is, or the usage of the given documents says something else than their meters do. */
  readonly meters: boolean;
  /** The warehouse's clock. */
  readonly now: string;
}

/** What stands around records of a company that were just read. */
export interface Surroundings extends Unread {
  /** Whether rows of the company and of all sites are there that events of the records name: nothing is to be admitted. */
  readonly admitted: boolean;
}

/** What stands around records, and around documents among them. */
export async function surroundings(
  db: Executor,
  kind: 'connections' | 'documents',
  companyId: string,
  recordIds: readonly string[],
): Promise<Surroundings> {
  const documentIds = kind === 'documents' ? recordIds : [];
  const result = await db.execute<Surroundings & Record<string, unknown>>(sql`
    select ${isAdmitted(companyId)} and not exists (select ${sitesToAdmit(kind, recordIds)}) as admitted,
      ${unread(companyId, documentIds)}`);
  return only(result.rows);
}

/** The same of what is unread alone. */
export async function unreadNeighbours(
  db: Executor,
  companyId: string,
  documentIds: readonly string[],
): Promise<Unread> {
  const result = await db.execute<Unread & Record<string, unknown>>(
    sql`select ${unread(companyId, documentIds)}`,
  );
  return only(result.rows);
}

function only<T>([row]: readonly T[]): T {
  if (row === undefined) throw new Error('a clock without a time');
  return row;
}

const unread = (companyId: string, documentIds: readonly string[]): SQL => sql`
  clock_timestamp()::text as now,
  exists (select from utility.companies where id = ${companyId}::uuid and raw is null)
    or exists (select from utility.sites where company_id = ${companyId}::uuid and raw is null) as companies,
  exists (
    with used as materialized (
      select meter_id from utility.usage_data
      where company_id = ${companyId}::uuid and meter_id is not null and deleted_at is null
    )
    select from used where not exists (select from utility.meters m where m.id = used.meter_id offset 0)
  ) or exists (
    select from unnest(${array(documentIds, 'uuid')}) as asked (id)
      cross join lateral (
        select meter_id, raw from utility.usage_data
        where document_id = asked.id and deleted_at is null offset 0
      ) u
      cross join lateral (
        select * from utility.meters where id = u.meter_id offset 0
      ) m
    where m.deleted_at is not null
      or m.site_id::text <> metersync.id_of(u.raw -> 'site')
      or m.datasource_type <> u.raw ->> 'datasourceType'
  ) as meters`;
