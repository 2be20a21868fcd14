import { type SQL, sql } from 'drizzle-orm';
import { type PgColumn, PgDialect } from 'drizzle-orm/pg-core';
import { array, columnNames, excludedOf as excluded } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { hasPending } from '../queue/queue.ts';
import {
  idOfRecord,
  isListedByCompany,
  type RecordColumn,
  type RecordResource,
  type Resource,
  resources,
  updatedOf,
} from '../resources.ts';
import { alsoListed, rejectedRecords } from '../schema/reads.ts';
import { documents, usageData } from '../schema/utility.ts';
import {
  isHeldBack,
  isInDoubt,
  isPreferred,
  listerOf,
  ownerReadById,
  showsSame,
  takesSite,
} from './listers.ts';
import { type RecordPage, recordsOf } from './page.ts';
import { refusedId } from './rejected.ts';

/** A row that a page wrote. */
export interface WrittenRow extends Record<string, unknown> {
  readonly id: string;
  readonly inserted: boolean;
  /** Whether it shows what the company of the listing lists; true for other pages. */
  readonly own: boolean;
  /** Whether another company is known to list the record of a row of a listing that changed. */
  readonly shared: boolean;
  /** Whether the service went back to an older state than an earlier read showed. */
  readonly reverted: boolean;
  /** Of a document: whether its record is the source of its usage, and lists it, each row with an id. */
  readonly listsUsage?: boolean;
  /** Of a document: the texts that were replaced in its record, by their paths, as JSON. */
  readonly replaced?: string | null;
  /** Of usage: the document to which the row belonged, if it now belongs to another one. */
  readonly takenFrom?: string | null;
}

/**
 * Writes the records of a page as rows; returns the rows that it inserted or changed. Of two records
 * with the same id the newer wins; at the same `updated`, the record that comes later in the page. A
 * tombstoned row that is read again is restored. The trigger of the table computes the columns. Also
 * deletes earlier refusals of the records `ids`, because they were read without error. The last
 * parts of the statement see the rows from before the write. `ofDocuments` is a table of usage that
 * belongs to the documents whose records have it, whoever lists them.
 */
export async function upsertRecords(
  tx: Executor,
  name: RecordResource,
  page: RecordPage,
  ids: readonly (string | null)[],
  ofDocuments?: SQL,
): Promise<WrittenRow[]> {
  const resource = resources[name];
  const { table } = resource;
  const listing = ofDocuments === undefined && isListing(name, page);
  const updated = table.updated ? updatedOf('r') : sql`null::timestamptz`;
  const first = name === 'sites' ? sql`owner,` : sql`${updated} desc nulls last,`;
  const given = givenTo(name, listing);
  const columns = columnNames(given.map(([column]) => column));
  const isOwn = sql`${listerOf(sql`held`)} is not distinct from ${page.companyId}::uuid`;
  const refusedIds = ids.flatMap((id) => (id === null ? [] : [refusedId(id)]));
  const { rows } = await prepared(tx, 'upsertRecords').execute<WrittenRow>(sql`
    with incoming as (
      select distinct on (id)
        ${idOfRecord(name)} as id, ${updated} as updated, ${valuesOf(given)}
      from ${ofDocuments ?? recordsOf(name, page)} item
      order by id, ${ofDocuments ? sql`` : first} place desc
    ), written as (
      insert into ${table} as held (id, ${columns}, api_version, synced_at)
      select id, ${columns}, ${page.apiVersion}, ${page.readAt}::timestamptz
      from incoming
      order by id
      on conflict (id) do update set
        ${ownership(name, listing)}
        raw = excluded.raw,
        unreadable = excluded.unreadable,
        api_version = excluded.api_version,
        synced_at = excluded.synced_at,
        absent_since = null,
        absent_by = null
      where ${wins(resource, listing)}
        and (${differs(resource, listing)} or ${isAwaited(resource)})
      returning id, xmax = 0 as inserted, ${listing ? isOwn : sql`true`} as own
    ), cleared as (
      delete from ${rejectedRecords}
      where resource = ${name === 'sites' ? 'companies' : name}
        -- The planner expects ten ids from a subquery. For many ids, Postgres before 17 would read
        -- the whole table instead of looking them up.
        and record_id = any(array(select unnest(${array(refusedIds, 'text')})))
        and rejected_at < ${page.readAt}::timestamptz
    )${listing ? sql`, ${displaced(name, page)}` : sql``}
    select
      written.id, written.inserted, written.own,
      ${listing ? isShared(name) : sql`false`} as shared,
      ${isReverted(resource)} as reverted${further[name] ?? sql``}
    from written
      join incoming on incoming.id = written.id
      left join lateral (
        select * from ${table} where id = written.id and not written.inserted offset 0
      ) earlier on true`);
  return rows;
}

/** Whether a page is a part of a company's listing, so that the company is the lister of its records. */
export const isListing = (
  name: RecordResource,
  { companyId, byId }: Pick<RecordPage, 'companyId' | 'byId'>,
): boolean => isListedByCompany(name) && companyId !== null && byId !== true;

/** The columns of a row that a write gives, with their values; the trigger computes the others. */
function givenTo(name: RecordResource, listing: boolean): readonly (readonly [PgColumn, SQL])[] {
  const { table } = resources[name];
  const isUsage = name === 'usageData';
  return [
    [table.raw, sql`r`],
    [table.unreadable, sql`replaced`],
    ...(table.digest ? [[table.digest, sql`digest`] as const] : []),
    ...(table.companyId
      ? [[table.companyId, isUsage ? sql`company_id` : sql`owner`] as const]
      : []),
    ...(listing && table.listedBy ? [[table.listedBy, sql`owner`] as const] : []),
    ...(name === 'documents' ? [[documents.usageReadAt, sql`usage_read_at`] as const] : []),
    ...(isUsage
      ? ([
          [usageData.documentId, sql`document_id`],
          [usageData.documentDeletedAt, sql`document_deleted_at`],
        ] as const)
      : []),
  ];
}

const valuesOf = (given: readonly (readonly [PgColumn, SQL])[]): SQL =>
  sql.join(
    given.map(([{ name }, value]) => sql`${value} as ${sql.identifier(name)}`),
    sql`, `,
  );

/** What a record also changes in an existing row: who owns and lists it, and what it is part of. */
function ownership(name: RecordResource, listing: boolean): SQL {
  if (name === 'companies') return sql``;
  if (name === 'sites') return sql`company_id = excluded.company_id,`;
  // A usage row that keeps its document is deleted as before.
  const ofUsage = sql`document_id = coalesce(excluded.document_id, held.document_id),
        document_deleted_at = case
          when excluded.document_id is null then held.document_deleted_at
          else excluded.document_deleted_at
        end,`;
  // A row that is read by its id keeps its lister while it keeps its owner.
  const lister = listing
    ? sql`excluded.listed_by`
    : sql`case when ${ownerReadById(name)} = held.company_id then held.listed_by end`;
  return once(
    `ownership ${name} ${listing}`,
    () => sql`company_id = ${listing ? sql`excluded.company_id` : ownerReadById(name)},
        listed_by = ${lister},
        digest = excluded.digest,
        ${name === 'usageData' ? ofUsage : sql``}`,
  );
}

const rendered = new Map<string, SQL>();
const dialect = new PgDialect();

/** Renders a part of a statement only once: that takes as long as a small statement runs. */
function once(key: string, make: () => SQL): SQL {
  const before = rendered.get(key);
  if (before !== undefined) return before;
  const { sql: text, params } = dialect.sqlToQuery(make());
  if (params.length > 0) throw new Error(`the part ${key} of a statement has parameters`);
  const made = sql.raw(text);
  rendered.set(key, made);
  return made;
}

/** A column of the existing row. */
const held = (column: PgColumn): SQL => sql`held.${sql.identifier(column.name)}`;

/** Whether a record replaces the record of its row. */
const wins = (resource: Resource, listing: boolean): SQL =>
  once(
    `wins ${resource.name} ${listing}`,
    () => sql`${isNewer(resource, listing)}
        and ${yields(resource)}`,
  );

/** The rule by which of two reads the later one wins, as a value that can be compared. */
const readKey = (updated: SQL, began: SQL): SQL =>
  sql`(metersync.shows_since(${updated}, ${began}), ${began})`;

/**
 * Of two reads, the one wins that shows its state since a later time; among equal ones, the one that
 * began later. A late answer so never undoes a newer state, and a service that was restored from a
 * backup is followed. Of what two companies list, one is preferred: see listers.ts. A row that is
 * absent yields to any read.
 */
function isNewer({ name, table }: Resource, listing: boolean): SQL {
  const { updated, rawUpdated = updated, syncedAt } = table;
  const isLater = rawUpdated
    ? sql`${readKey(excluded(rawUpdated), excluded(syncedAt))}
              >= ${readKey(held(rawUpdated), held(syncedAt))}`
    : sql`excluded.synced_at >= held.synced_at`;
  const isFirst = listing
    ? sql`case
            when ${showsSame(name)} or held.deleted_at is not null then ${isLater}
            else ${isPreferred(name)}
          end`
    : isLater;
  const isTheirs = takesSite(sql`held.id`, sql`held.company_id`, sql`excluded.company_id`);
  return sql`(
          held.raw is null
          or held.synced_at is null
          or held.deleted_reason in ('absent', 'not_found')
          or ${isFirst}
        )${name === 'sites' ? sql` and ${isTheirs}` : sql``}`;
}

/**
 * Whether the row is live or its tombstone yields. The tombstone of an event yields to a newer
 * state, and to any read that no longer lags behind the deletion. An inferred tombstone yields to a
 * later read. If a record was absent from the listing of one company and is now read for another
 * company, it has moved, and its tombstone yields to any read. Usage is excepted, because it moves
 * and is restored with its document.
 */
function yields({ name, eventKind }: Resource): SQL {
  const moved =
    isListedByCompany(name) && name !== 'usageData'
      ? sql`or held.deleted_reason = 'absent'
            and ${listerOf(sql`excluded`)} <> ${listerOf(sql`held`)}`
      : sql``;
  const readLater = sql`(excluded.synced_at > held.deleted_at ${moved})`;
  if (eventKind === null) return sql`(held.deleted_at is null or ${readLater})`;
  return sql`(
          held.deleted_at is null
          or case held.deleted_reason
            when 'event' then metersync.ends_deletion(
              excluded.updated, excluded.synced_at, held.hint_updated, held.hint_came
            )
            else ${readLater}
          end
        )`;
}

/** A column's value after a write. */
const nextOf =
  (name: RecordResource, listing: boolean) =>
  ({ column, kept, isOwner }: RecordColumn): SQL => {
    if (kept) return sql`coalesce(${excluded(column)}, ${held(column)})`;
    return isOwner && isListedByCompany(name) && !listing ? ownerReadById(name) : excluded(column);
  };

/** Whether anything changed, also the spelling: the new digest saves the next write. */
function differs({ name, table, columns }: Resource, listing: boolean): SQL {
  const beside = [
    table.unreadable,
    table.raw,
    table.apiVersion,
    ...(listing && table.listedBy ? [table.listedBy] : []),
  ];
  const before = [...columns.map(({ column }) => column), ...beside].map(held);
  const after = [...columns.map(nextOf(name, listing)), ...beside.map(excluded)];
  const respelled = table.digest
    ? sql`or excluded.digest is not null and held.digest is distinct from excluded.digest`
    : sql``;
  return once(
    `differs ${name} ${listing}`,
    () => sql`held.deleted_at is not null
          or (${sql.join(before, sql`, `)}) is distinct from (${sql.join(after, sql`, `)})
          ${respelled}`,
  );
}

/**
 * Whether events or a decision wait on the row. Then it is written although the record did not
 * change, to count as read now.
 */
function isAwaited({ name, eventKind }: Resource): SQL {
  const inDoubt = isInDoubt(name, sql`held.id`);
  if (eventKind === null) return inDoubt;
  return sql`${hasPending(eventKind, sql`held.id::text`)} or ${inDoubt}`;
}

/** Remembers what another company lists of records whose rows now show what the page's company lists. */
const displaced = (name: RecordResource, { companyId }: RecordPage): SQL => sql`displaced as (
      insert into ${alsoListed} as entry
        (resource, record_id, company_id, raw, digest, api_version, read_at)
      select
        ${name}, held.id::text, ${listerOf(sql`held`)}, held.raw,
        case when held.unreadable is null then held.digest end, held.api_version, held.synced_at
      from written
        cross join lateral (
          select *
          from ${resources[name].table} held
          where held.id = written.id
            and not written.inserted
            and written.own
            and ${listerOf(sql`held`)} <> ${companyId}::uuid
            and held.raw is not null
            and held.deleted_at is null
            and not ${isHeldBack(name, sql`held`)}
          offset 0
        ) held
      order by held.id
      on conflict (resource, record_id, company_id) do update set
        raw = excluded.raw,
        digest = excluded.digest,
        api_version = excluded.api_version,
        read_at = excluded.read_at
      where coalesce(entry.read_at <= excluded.read_at, true)
        and (entry.raw, entry.digest) is distinct from (excluded.raw, excluded.digest)
    )`;

/** Whether another company is known to list the record of a `written` row of a listing. */
const isShared = (name: RecordResource): SQL =>
  sql`written.own and not written.inserted and exists (
        select from ${alsoListed}
        where resource = ${name}
          and record_id = written.id::text
        offset 0
      )`;

/** Whether a record of `incoming` is older than the row `earlier` that it replaces. */
function isReverted({ table: { updated, rawUpdated = updated } }: Resource): SQL {
  if (rawUpdated === undefined) return sql`false`;
  return sql`coalesce(earlier.${sql.identifier(rawUpdated.name)} > incoming.updated, false)`;
}

/** What is said about the rows of some resources in addition: see `WrittenRow`. */
const further: Partial<Record<RecordResource, SQL>> = {
  documents: sql`,
      incoming.usage_read_at is not null as "listsUsage", incoming.unreadable::text as replaced`,
  usageData: sql`,
      case
        when earlier.document_id <> incoming.document_id then earlier.document_id::text
      end as "takenFrom"`,
};
