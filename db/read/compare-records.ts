import { and, desc, eq, type SQL, sql } from 'drizzle-orm';
import { array, columnNames, unnested } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { isRefusal, splitOnRefusal } from '../connection/failures.ts';
import { listsSites } from '../records/connection-sites.ts';
import { entryOf, listerOf, ownerOf, takesSite } from '../records/listers.ts';
import { itemTexts, type RecordPage, replacedIn } from '../records/page.ts';
import { refusedAs, refusedId } from '../records/rejected.ts';
import { type Holdable, holdableRecord, isSuspicious } from '../records/unholdable.ts';
import {
  idOfRecord,
  isListedByCompany,
  isVersioned,
  type RecordResource,
  resources,
  row,
  updatedOf,
} from '../resources.ts';
import { journal } from '../schema/metersync.ts';
import { rejectedRecords } from '../schema/reads.ts';
import { connectionSites } from '../schema/utility.ts';

/** A record that is missing, in excess or different in the warehouse. */
export interface Difference {
  /**
   * The id of the record. A record without an id has the id of its refusal, see `refusedAs`. Sites
   * that Postgres refuses with their company have the company's id.
   */
  readonly id: string;
  /** `kept`: somebody decided to keep a record that the service lacks: it is not a difference. */
  readonly state: 'missing' | 'extra' | 'different' | 'kept';
  /**
   * Fields that differ if both sides have the record, as JSON text, or otherwise columns; null if a
   * side lacks one. A record whose row is deleted has the columns of its deletion.
   */
  readonly fields?: readonly DifferentField[];
}

interface DifferentField {
  readonly field: string;
  readonly service: string | null;
  readonly warehouse: string | null;
}

const { siteId, accountIds, datasourceTypes } = connectionSites;

/**
 * The sites of a connection as one value: the sites that its record lists, and the sites in the
 * warehouse, which count as listed if the record does not list its sites.
 */
const oneValue = sql`jsonb_agg(
        jsonb_build_array(${columnNames([siteId, accountIds, datasourceTypes])})
        order by ${columnNames([siteId])}
      )`;
const heldSites = sql`(
      select ${oneValue}
      from ${connectionSites}
      where ${connectionSites.connectionId} = ${row.id}
    )`;
const listedSites = sql`case
      when ${listsSites(sql`r`)} then (
        select ${oneValue}
        from metersync.sites_listed(r -> 'sitesRelations')
      )
      else ${heldSites}
    end`;

/** Each column's value in the record and in the row; events may have changed the row's value. */
function columnsOf(resource: RecordResource): { name: string; reported: SQL; held: SQL }[] {
  const { table } = resources[resource];
  const columns = resources[resource].columns.map(({ column, kept, isOwner }) => {
    const held = sql`${row}.${sql.identifier(column.name)}`;
    const reported = isOwner ? ownerOf(resource) : sql`read.${sql.identifier(column.name)}`;
    return {
      name: column.name,
      reported: kept ? sql`coalesce(${reported}, ${held})` : reported,
      held,
    };
  });
  columns.push(
    { name: 'unreadable', reported: sql`read.unreadable`, held: sql`${row}.unreadable` },
    // A record that is shown is live.
    { name: 'deleted_at', reported: sql`null::timestamptz`, held: sql`${row.deletedAt}` },
    { name: 'deleted_reason', reported: sql`null::text`, held: sql`${row.deletedReason}` },
  );
  if (table.listedBy)
    columns.push({
      name: 'listed_by',
      reported: sql`nullif(owner, ${ownerOf(resource)})`,
      held: sql`${row}.listed_by`,
    });
  if (table.rawUpdated)
    columns.push({
      name: 'raw_updated',
      reported: sql`read.updated`,
      held: sql`${row.rawUpdated}`,
    });
  if (resource !== 'connections') return columns;
  return [...columns, { name: 'sites', reported: listedSites, held: heldSites }];
}

/** A page of the service's records, compared with the warehouse. */
interface PageCompared {
  readonly differences: readonly Difference[];
  /** Number of values of its records that no column can hold. */
  readonly unreadable: number;
}

/** A record of a page, and what is compared instead of its text, as a write would replace it. */
interface ComparedRecord {
  readonly id: string | null;
  readonly text: string;
  readonly instead?: Holdable | undefined;
}

/**
 * Compares a page of records with the warehouse; returns differences of records in the page. A
 * record that Postgres cannot hold is missing. `ids` are as in `writePage`.
 */
export async function comparePage(
  db: Executor,
  resource: RecordResource,
  page: RecordPage,
  ids: readonly (string | null)[],
  since: string | null = null,
): Promise<PageCompared> {
  const isSound = !isSuspicious(page.body);
  const records = itemTexts(page).map((text, at): ComparedRecord => {
    const instead = isSound ? undefined : holdableRecord(text);
    return { id: ids[at] ?? null, text, instead };
  });
  const compare = (some: readonly ComparedRecord[]) =>
    compareRecords(db, resource, page.companyId, some, since);
  try {
    return await compare(records);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const parts = await splitOnRefusal(
      records,
      compare,
      (record): PageCompared => ({
        differences: [{ id: refusedAs(record), state: 'missing' }],
        unreadable: 0,
      }),
    );
    return {
      differences: parts.flatMap(({ differences }) => differences),
      unreadable: parts.reduce((sum, part) => sum + part.unreadable, 0),
    };
  }
}

/**
 * Whether the row has to show what the listing of the company `owner` contains: unless it shows what
 * another company lists, and there is an entry about what `owner` lists.
 */
function showsListing(resource: RecordResource): SQL {
  if (resource === 'sites') return takesSite(sql`${row.id}`, sql`${row.companyId}`, sql`owner`);
  if (!isListedByCompany(resource)) return sql`true`;
  return sql`(
      coalesce(${listerOf(sql`${row}`)} = owner, true)
      or not exists (
        select from ${entryOf(resource, sql`owner`)} other offset 0
      )
    )`;
}

/** What the warehouse has of the record `r`; entries of 0.2 say only that a company lists it. */
function recordHeld(resource: RecordResource, isShown: SQL): SQL {
  if (resource === 'sites') return sql`case when ${isShown} then ${row.raw} else r end`;
  if (!isListedByCompany(resource)) return sql`${row.raw}`;
  return sql`case
        when ${isShown} then ${row.raw}
        else (
          select coalesce(other.raw, ${row.raw})
          from ${entryOf(resource, sql`owner`)} other
          offset 0
        )
      end`;
}

/** A record that differs from its row, or of which values are unreadable. */
type Compared = {
  readonly id: string | null;
  /** The place of the record in its page, from 1. A site has the place of its company. */
  readonly place: number;
  readonly missing: boolean;
  readonly differs: boolean;
  readonly unreadable: number;
  readonly fields: readonly DifferentField[];
  /** The values of the columns, in the record and in the row. */
  readonly reported: readonly (string | null)[];
  readonly held: readonly (string | null)[];
};

async function compareRecords(
  db: Executor,
  resource: RecordResource,
  companyId: string | null,
  records: readonly ComparedRecord[],
  since: string | null,
): Promise<PageCompared> {
  const { table, read, columns: recordColumns } = resources[resource];
  const columns = columnsOf(resource);
  const listOf = (parts: readonly SQL[], separator = sql`, `) => sql.join([...parts], separator);
  const differing = columns.map(
    (column) => sql`${column.held} is distinct from ${column.reported}`,
  );
  const said = recordColumns.flatMap(({ column, isOwner }) =>
    isOwner ? [] : [sql`said.${sql.identifier(column.name)}`],
  );
  const isShown = showsListing(resource);
  const heldRecord = recordHeld(resource, isShown);
  const isMissing = sql`(row.id is null or row.deleted_at is not null)`;
  const differs = sql`(
        ${isMissing}
        or ${heldRecord} is distinct from r
        or ${isShown} and (${listOf(differing, sql` or `)})
      )`;
  const { rows } = await db.execute<Compared>(sql`
    select
      r ->> 'id' as id,
      place::int,
      ${isMissing} as missing,
      ${differs} as differs,
      (select count(*)::int from jsonb_object_keys(read.unreadable)) as unreadable,
      (
        select coalesce(
          jsonb_agg(jsonb_build_object(
            'field', coalesce(a.key, b.key), 'service', a.value::text, 'warehouse', b.value::text
          )),
          '[]'
        )
        from jsonb_each(r) a
          full join jsonb_each(${heldRecord}) b on a.key = b.key
        where a.value is distinct from b.value
      ) as fields,
      array[${listOf(columns.map((column) => sql`(${column.reported})::text`))}] as reported,
      array[${listOf(columns.map((column) => sql`(${column.held})::text`))}] as held
    from ${recordsOf(resource, companyId, records)} record
      -- Without the offset the whole table is read to join the rows of a page.
      left join lateral (
        select * from ${table} where id = ${idOfRecord(resource)} offset 0
      ) row on true
      cross join lateral (
        select
          ${listOf(said)},
          metersync.with_replaced(said.unreadable, record.replaced) as unreadable
        from ${read} said
        offset 0
      ) read
    where (${differs} or read.unreadable is not null) and ${saysSince(resource, since)}`);
  const differences = rows.flatMap((one): Difference[] => {
    if (!one.differs) return [];
    const id = one.id ?? refusedAs({ id: null, text: records[one.place - 1]?.text ?? '' });
    // If the record is equal, columns differ only if something other than a read wrote them.
    const ofColumns = columns
      .map(({ name }, at) => ({
        field: `column ${name}`,
        service: one.reported[at] ?? null,
        warehouse: one.held[at] ?? null,
      }))
      .filter(({ service, warehouse }) => service !== warehouse);
    if (one.missing) {
      const tombstone = ofColumns.filter(({ field }) => field.startsWith('column deleted_'));
      return [{ id, state: 'missing', ...(tombstone.length > 0 ? { fields: tombstone } : {}) }];
    }
    return [{ id, state: 'different', fields: one.fields.length > 0 ? one.fields : ofColumns }];
  });
  return { differences, unreadable: rows.reduce((sum, one) => sum + one.unreadable, 0) };
}

/** The records `(r, place, owner, replaced)` of a page, or the sites in its companies. */
function recordsOf(
  resource: RecordResource,
  companyId: string | null,
  records: readonly ComparedRecord[],
): SQL {
  const texts = records.map(({ text, instead }) => instead?.text ?? text);
  const replaced = records.map(({ instead }) => instead?.replaced ?? null);
  const item = sql`(
      select record::jsonb as r, place, ${companyId}::uuid as owner, replaced::jsonb as replaced
      from unnest(${array(texts, 'text')}, ${array(replaced, 'text')})
        with ordinality as given (record, replaced, place)
      offset 0
    )`;
  if (resource !== 'sites') return item;
  return sql`(
      select
        site.r,
        company.place,
        (company.r ->> 'id')::uuid as owner,
        ${replacedIn('sites', sql`company.replaced`, sql`site.at - 1`)} as replaced
      from ${item} company
        cross join jsonb_array_elements(metersync.elements(company.r -> 'sites'))
          with ordinality as site (r, at)
      where company.r ->> 'id' is not null
        and metersync.uuid_of(site.r ->> 'id') is not null
      offset 0
    )`;
}

/** Whether a record `r` changed since a moment, or does not say when it changed. */
const saysSince = (resource: RecordResource, since: string | null): SQL =>
  since === null || !isVersioned(resource)
    ? sql`true`
    : sql`coalesce(${updatedOf('r')} >= ${since}::timestamptz, true)`;

/** An event of the journal about a record. */
export type EventBehind = Awaited<ReturnType<typeof readBehind>>[number]['event'];

const eventsBehindMax = 5;

async function readBehind(db: Executor, recordIds: readonly string[]) {
  const behind = db
    .select()
    .from(journal)
    .where(eq(journal.recordId, sql`given.record`))
    .orderBy(desc(journal.recordedAt))
    .limit(eventsBehindMax)
    .as('behind');
  const { id, type, outcome, occurredAt, receivedAt } = behind;
  return await db
    .select({
      record: sql<string>`given.record`,
      event: { id, type, outcome, occurredAt, receivedAt },
    })
    .from(sql`unnest(${array(recordIds, 'text')}) as given (record)`)
    .crossJoinLateral(behind)
    .orderBy(desc(behind.recordedAt));
}

/** Reads the latest events about each record; events of readings are found by their meter. */
export async function eventsBehind(
  db: Executor,
  recordIds: readonly string[],
): Promise<Map<string, EventBehind[]>> {
  const byRecord = Map.groupBy(await readBehind(db, recordIds), ({ record }) => record);
  return new Map([...byRecord].map(([record, rows]) => [record, rows.map(({ event }) => event)]));
}

/**
 * Reads why Postgres refused records that the warehouse lacks. Keys of the result are the resource
 * and the id of a record; a reading has its meter and its start as its id.
 */
export async function refusals(
  db: Executor,
  records: readonly { readonly resource: string; readonly id: string }[],
): Promise<Map<string, string>> {
  const asked = unnested('asked', records, [
    ['resource', 'text', ({ resource }) => resource],
    ['id', 'text', ({ id }) => id],
    ['record_id', 'text', ({ id }) => refusedId(id)],
  ]);
  const { resource, recordId, error } = rejectedRecords;
  const refused = await db
    .select({ resource, id: sql<string>`asked.id`, error })
    .from(rejectedRecords)
    .innerJoin(asked, and(eq(resource, sql`asked.resource`), eq(recordId, sql`asked.record_id`)));
  return new Map(refused.map((row) => [`${row.resource} ${row.id}`, row.error]));
}
