import { type SQL, sql } from 'drizzle-orm';
import { type PgColumn, PgDialect } from 'drizzle-orm/pg-core';
import { columnNames, excludedOf as excluded } from '../connection/arrays.ts';
import { hasPending } from '../queue/queue.ts';
import { isListedByCompany, type RecordColumn, type Resource, updatedOf } from '../resources.ts';
import { usageData } from '../schema/utility.ts';
import {
  isInDoubt,
  isPreferred,
  listerOf,
  ownerReadById,
  showsSame,
  takesSite,
} from './listers.ts';
import type { RecordPage } from './page.ts';

/** Records to write as rows. */
export interface UpsertSource {
  /** Steps whose last is a table `item` as in page.ts, or the table of `from`. */
  readonly items: SQL;
  readonly page: Pick<RecordPage, 'companyId' | 'byId' | 'apiVersion' | 'readAt' | 'replaced'>;
  /** Replaces `item` as the source of rows. */
  readonly from?: SQL;
  /** Values of columns that depend on more than the record, instead of its lister as the owner. */
  readonly given?: ReadonlyMap<PgColumn, SQL>;
  /** Values for new rows only; an existing row keeps its own. */
  readonly begins?: ReadonlyMap<PgColumn, SQL>;
  /** Whether the records are usage that belongs to the document whose record has it, whoever lists that. */
  readonly ofDocuments?: boolean;
}

/**
 * Builds two steps of a statement that write records as rows. `incoming` has one record per id.
 * `written (id, inserted, own)` has the rows that were inserted or changed, and whether the page's
 * company is their lister. Of two records with the same id the newer wins; at the same `updated`,
 * the record that comes later in the page. A tombstoned row that is read again is restored. The
 * trigger of the table computes the columns.
 */
export function upsertRecords(resource: Resource, records: UpsertSource): SQL {
  const { items, page, from = sql`item`, begins = new Map() } = records;
  const { name, table } = resource;
  const { given = ownerAlone(resource) } = records;
  const listing = !records.ofDocuments && isListing(resource, page);
  const lister = listing && table.listedBy ? ([[table.listedBy, sql`owner`]] as const) : [];
  const values = [...given, ...lister, ...begins];
  const copied = [
    table.id,
    ...values.map(([column]) => column),
    ...(table.digest ? [table.digest] : []),
    table.raw,
  ];
  const updated = table.updated && updatedOf('r');
  const newest = updated ? sql`${updated} desc nulls last,` : sql``;
  const first = name === 'sites' ? sql`owner,` : records.ofDocuments ? sql`` : newest;
  const computed = values.map(([{ name }, value]) => sql`${value} as ${sql.identifier(name)},`);
  const { set, where } = merging(resource, [...given.keys()], listing);
  return sql`${items}, incoming as (
      select distinct on (id)
        ${idOfRecord(resource)} as id,
        ${sql.join(computed, sql` `)}
        ${updated ? sql`${updated} as updated,` : sql``}
        digest, ${page.replaced ? sql`replaced,` : sql``} r as raw
      from ${from}
      order by id, ${first} place desc
    ), written as (
      insert into ${table} as held
        (${columnNames([...copied, table.apiVersion, table.syncedAt, table.unreadable])})
      select
        ${columnNames(copied)}, ${page.apiVersion}, ${page.readAt}::timestamptz,
        ${page.replaced ? sql`replaced` : sql`null::jsonb`}
      from incoming
      order by id
      on conflict (id) do update set ${set}
      where ${where} or ${isAwaited(resource)})
      returning id, (xmax = 0) as inserted, ${isOwn(resource, page)} as own
    )`;
}

/** Whether a page is a part of a company's listing, so that the company is the lister of its records. */
export const isListing = (
  { name }: Resource,
  { companyId, byId }: Pick<RecordPage, 'companyId' | 'byId'>,
): boolean => isListedByCompany(name) && companyId !== null && byId !== true;

/** The id of a record `r`, in the type of its table. */
export const idOfRecord = ({ table }: Resource): SQL =>
  sql.raw(
    table.id.getSQLType() === 'uuid' ? `(r ->> 'id')::uuid` : `metersync.canonical_id(r ->> 'id')`,
  );

/** The lister as the owner of a record that names none. */
const ownerAlone = ({ columns }: Resource): ReadonlyMap<PgColumn, SQL> =>
  new Map(columns.filter(({ isOwner }) => isOwner).map(({ column }) => [column, sql`owner`]));

/** Whether the company of a listing is the lister of the written row; true for other pages. */
const isOwn = (resource: Resource, page: Pick<RecordPage, 'companyId' | 'byId'>): SQL =>
  isListing(resource, page)
    ? sql`${listerOf(sql`held`)} is not distinct from ${page.companyId}::uuid`
    : sql`true`;

interface Merging {
  readonly set: SQL;
  /** The condition up to whether anything waits on the row, which has parameters. */
  readonly where: SQL;
}

const rendered = new Map<string, Merging>();
const dialect = new PgDialect();

/** How records change existing rows. It is rendered once: that takes as long as a small statement runs. */
function merging(resource: Resource, given: readonly PgColumn[], listing: boolean): Merging {
  const key = `${resource.name} ${listing}`;
  const before = rendered.get(key);
  if (before !== undefined) return before;
  const render = (part: SQL): SQL => {
    const { sql: text, params } = dialect.sqlToQuery(part);
    if (params.length > 0) throw new Error(`the statement for ${key} has parameters`);
    return sql.raw(text);
  };
  const made = {
    set: render(settingsOf(resource, given, listing)),
    where: render(
      sql`${isNewer(resource, listing)}
        and ${yields(resource)}
        and (${differs(resource, listing)}`,
    ),
  };
  rendered.set(key, made);
  return made;
}

/** A column of the existing row. */
const held = (column: PgColumn): SQL => sql`held.${sql.identifier(column.name)}`;

/** A column's value after a write. */
const nextOf =
  ({ name }: Resource, listing: boolean) =>
  ({ column, kept, isOwner }: RecordColumn): SQL => {
    if (kept) return sql`coalesce(${excluded(column)}, ${held(column)})`;
    return isOwner && isListedByCompany(name) && !listing ? ownerReadById(name) : excluded(column);
  };

/** The assignments by which a record changes an existing row. */
function settingsOf(resource: Resource, given: readonly PgColumn[], listing: boolean): SQL {
  const { name, table, columns } = resource;
  const next = nextOf(resource, listing);
  const rewritten = [
    table.raw,
    table.apiVersion,
    table.syncedAt,
    ...(table.digest ? [table.digest] : []),
    table.unreadable,
  ];
  // A row that is read by its id keeps its lister while it keeps its owner.
  const lister = listing
    ? sql`excluded.listed_by`
    : sql`case when ${ownerReadById(name)} = held.company_id then held.listed_by end`;
  // A usage row that keeps its document is deleted as before.
  const documentDeletedAt = sql`case
          when excluded.document_id is null then held.document_deleted_at
          else excluded.document_deleted_at
        end`;
  const values: (readonly [PgColumn, SQL])[] = [
    ...columns
      .filter(({ column }) => given.includes(column))
      .map((one) => [one.column, next(one)] as const),
    ...(given.includes(usageData.documentDeletedAt)
      ? [[usageData.documentDeletedAt, documentDeletedAt] as const]
      : []),
    ...(table.listedBy ? [[table.listedBy, lister] as const] : []),
    ...rewritten.map((column) => [column, excluded(column)] as const),
    [table.absentSince, sql`null`],
    [table.absentBy, sql`null`],
  ];
  const set = values.map(([column, value]) => sql`${sql.identifier(column.name)} = ${value}`);
  return sql.join(set, sql.raw(',\n        '));
}

/** The rule by which of two reads the later one wins, as a value that can be compared. */
const readKey = (updated: SQL, began: SQL): SQL =>
  sql`(metersync.shows_since(${updated}, ${began}), ${began})`;

/**
 * Whether a record replaces the record of its row. Of two reads, the one wins that shows its state
 * since a later time; among equal ones, the one that began later. A late answer so never undoes a
 * newer state, and a service that was restored from a backup is followed. Of what two companies
 * list, one is preferred: see listers.ts. A row that is absent yields to any read.
 */
function isNewer({ name, table }: Resource, listing: boolean): SQL {
  const { updated, rawUpdated = updated, raw, syncedAt, deletedReason, companyId, id } = table;
  const isLater = rawUpdated
    ? sql`${readKey(excluded(rawUpdated), excluded(syncedAt))}
              >= ${readKey(held(rawUpdated), held(syncedAt))}`
    : sql`${excluded(syncedAt)} >= ${held(syncedAt)}`;
  const wins = listing
    ? sql`case
            when ${showsSame(name)} or ${held(table.deletedAt)} is not null then ${isLater}
            else ${isPreferred(name)}
          end`
    : isLater;
  const newer = sql`(
          ${held(raw)} is null
          or ${held(syncedAt)} is null
          or ${held(deletedReason)} in ('absent', 'not_found')
          or ${wins}
        )`;
  return name === 'sites' && companyId
    ? sql`${newer}
        and ${takesSite(held(id), held(companyId), excluded(companyId))}`
    : newer;
}

/**
 * Whether the row is live or its tombstone yields. The tombstone of an event yields to a newer
 * state, and to any read that no longer lags behind the deletion. An inferred tombstone yields to a
 * later read. If a record was absent from the listing of one company and is now read for another
 * company, it has moved, and its tombstone yields to any read. Usage is excepted, because it moves
 * and is restored with its document.
 */
function yields({ name, table }: Resource): SQL {
  const { hintUpdated, hintCame, updated, deletedAt, deletedReason, syncedAt } = table;
  const moved =
    isListedByCompany(name) && name !== 'usageData'
      ? sql`or ${held(deletedReason)} = 'absent'
            and ${listerOf(sql`excluded`)} <> ${listerOf(sql`held`)}`
      : sql``;
  const readLater = sql`(${excluded(syncedAt)} > ${held(deletedAt)} ${moved})`;
  if (updated === undefined || hintUpdated === undefined || hintCame === undefined)
    return sql`(${held(deletedAt)} is null or ${readLater})`;
  return sql`(
          ${held(deletedAt)} is null
          or case ${held(deletedReason)}
            when 'event' then metersync.ends_deletion(
              ${excluded(updated)}, ${excluded(syncedAt)}, ${held(hintUpdated)}, ${held(hintCame)}
            )
            else ${readLater}
          end
        )`;
}

/** Whether anything changed, also the spelling: the new digest saves the next write. */
function differs(resource: Resource, listing: boolean): SQL {
  const { table, columns } = resource;
  const beside = [
    table.unreadable,
    table.raw,
    table.apiVersion,
    ...(listing && table.listedBy ? [table.listedBy] : []),
  ];
  const before = [...columns.map(({ column }) => held(column)), ...beside.map(held)];
  const after = [...columns.map(nextOf(resource, listing)), ...beside.map(excluded)];
  const respelled = table.digest
    ? sql`or ${excluded(table.digest)} is not null
            and ${held(table.digest)} is distinct from ${excluded(table.digest)}`
    : sql``;
  return sql`${held(table.deletedAt)} is not null
          or (${sql.join(before, sql`, `)}) is distinct from (${sql.join(after, sql`, `)})
          ${respelled}`;
}

/**
 * Whether events or a decision wait on the row. Then it is written although the record did not
 * change, to count as read now.
 */
function isAwaited({ name, eventKind, table }: Resource): SQL {
  const inDoubt = isInDoubt(name, held(table.id));
  if (eventKind === null) return inDoubt;
  return sql`${hasPending(eventKind, sql`${held(table.id)}::text`)} or ${inDoubt}`;
}
