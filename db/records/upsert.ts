import { type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { isStale } from '../catch-up/stale.ts';
import { columnNames, excludedOf as excluded } from '../connection/arrays.ts';
import { fixed } from '../connection/fixed.ts';
import { isListedByCompany, type RecordColumn, type Resource } from '../resources.ts';
import { ownerOfSite, saysOwner } from './owner.ts';
import type { RecordPage } from './page.ts';
import { unreadableOf, withReplaced } from './unreadable.ts';

/** A column of the existing row. */
const held = (column: PgColumn): SQL => sql`held.${sql.identifier(column.name)}`;
const named = (value: SQL, column: PgColumn): SQL =>
  sql`${value} as ${sql.identifier(column.name)}`;

const lines = (parts: readonly SQL[]): SQL => sql.join([...parts], sql.raw(',\n      '));
const row = (values: readonly SQL[]): SQL => sql`(${sql.join([...values], sql`, `)})`;

/**
 * A column's value after a write. An event does not decide who owns a record that was read. A row
 * that was read keeps its owner if the record to write names none: see `noteListed`.
 */
const nextOf =
  ({ name, table: { id, raw, syncedAt, deletedAt } }: Resource, by: 'record' | 'event') =>
  ({ column, kept, isOwner }: RecordColumn): SQL => {
    if (kept) return sql`coalesce(${excluded(column)}, ${held(column)})`;
    if (!isOwner) return excluded(column);
    if (name === 'sites') return ownerOfSite(held(id), held(column), excluded(column));
    const stays =
      by === 'event'
        ? sql``
        : sql`and ${held(syncedAt)} is not null
          and ${held(deletedAt)} is null
          and not ${saysOwner(name, sql`excluded`)}`;
    return sql`case
        when ${held(raw)} is not null
          ${stays}
        then ${held(column)}
        else ${excluded(column)}
      end`;
  };

const setting = (column: PgColumn, value: SQL): SQL =>
  sql`${sql.identifier(column.name)} = ${value}`;

/** Records to write as rows. */
export interface UpsertSource {
  /** Steps whose last is a table `item` as in page.ts, or the table of `from`. */
  readonly items: SQL;
  readonly page: Pick<RecordPage, 'companyId' | 'apiVersion' | 'readAt' | 'confirms' | 'replaced'>;
  /** Replaces `item` as the source of rows. */
  readonly from?: SQL;
  /** Values of columns that depend on more than the record. */
  readonly instead?: ReadonlyMap<PgColumn, SQL>;
  /** Values for new rows only; an existing row keeps its own. */
  readonly begins?: ReadonlyMap<PgColumn, SQL>;
  /** Whether a row with equal columns is not written although other fields of its record differ. */
  readonly columnsAlone?: boolean;
}

/**
 * Builds two steps of a statement that write records as rows. `incoming` has one record per id.
 * `written (id, inserted, own)` has the rows that were inserted or changed, and whether the page's
 * company owns them. Of two records with the same id the newer wins; at the same `updated`, the
 * record that comes later in the page. A tombstoned row that is read again is restored.
 */
export function upsertRecords(resource: Resource, records: UpsertSource): SQL {
  const { items, page, from = sql`item`, instead = new Map(), begins = new Map() } = records;
  const { name, table, columns } = resource;
  const others = [...instead.keys()].map((column) => column.name).join();
  const firsts = [...begins.keys()];
  const own = columns.map(({ column }) => column);
  const copied = [table.id, ...own, ...firsts, ...(table.digest ? [table.digest] : []), table.raw];
  const newest = table.updated
    ? sql`${sql.identifier(table.updated.name)} desc nulls last,`
    : sql``;
  const first = resource.name === 'sites' ? sql`owner,` : newest;
  const unreadable = fixed(`unreadable of ${name} except ${others}`, () =>
    unreadableOf(resource, columns, ({ column, isOwner }) => ({
      held: sql`${sql.identifier(column.name)}`,
      isShared: isOwner === true || instead.has(column),
    })),
  );
  return sql`${items}, incoming as (
    select distinct on (id)
      ${idOfRecord(resource)} as id,
      ${lines([
        fixed(`values of ${name} except ${others}`, () => valuesOf(resource, instead)),
        ...firsts.map((column) => named(begins.get(column) as SQL, column)),
      ])},
      digest,
      ${page.replaced ? sql`replaced,` : sql``}
      r as raw
    from ${from}
    order by id, ${first} place desc
  ), written as (
    insert into ${table} as held
      (${columnNames([...copied, table.apiVersion, table.syncedAt, table.unreadable])})
    select
      ${columnNames(copied.map((column) => (column === table.rawUpdated ? table.updated : column)))},
      ${page.apiVersion},
      ${page.readAt}::timestamptz,
      ${page.replaced ? withReplaced(unreadable) : unreadable}
    from incoming
      cross join lateral (select raw as r) record
    order by id
    on conflict (id) do update set
      ${fixed(`settings of ${name}`, () => settingsOf(resource))}
    where ${fixed(`newer ${name}`, () => sql`${isNewer(resource)} and ${yields(resource)}`)}
      and (${fixed(`changes of ${name}, ${records.columnsAlone}`, () => differs(resource, records))}
        or ${isAwaited(resource, page)})
    returning id, (xmax = 0) as inserted, ${isOwn(resource, page)} as own
  )`;
}

/** The values of a record's columns, without `rawUpdated`, which a read sets to `updated`. */
const valuesOf = (
  { table, columns }: Resource,
  instead: NonNullable<UpsertSource['instead']>,
): SQL =>
  lines(
    columns
      .filter(({ column }) => column !== table.rawUpdated)
      .map(({ column, of }) => named(instead.get(column) ?? of, column)),
  );

/** The assignments by which a record changes an existing row. */
function settingsOf(resource: Resource): SQL {
  const { table, columns } = resource;
  const next = nextOf(resource, 'record');
  const rewritten = [
    table.raw,
    table.apiVersion,
    table.syncedAt,
    ...(table.digest ? [table.digest] : []),
    table.unreadable,
  ];
  return lines([
    ...columns.map((one) => setting(one.column, next(one))),
    ...rewritten.map((column) => setting(column, excluded(column))),
    setting(table.deletedAt, sql`null`),
    setting(table.deletedReason, sql`null`),
  ]);
}

/** Whether the company that lists the record owns the written row; true if no company lists it. */
const isOwn = ({ name }: Resource, { companyId }: Pick<RecordPage, 'companyId'>): SQL =>
  isListedByCompany(name) && companyId !== null
    ? sql`held.company_id is not distinct from ${companyId}::uuid`
    : sql`true`;

/** The id of a record `r`, in the type of its table. */
export const idOfRecord = ({ table }: Resource): SQL =>
  sql.raw(
    table.id.getSQLType() === 'uuid' ? `(r ->> 'id')::uuid` : `metersync.canonical_id(r ->> 'id')`,
  );

/** How far an answer of the API may lag behind the service, as an interval. */
const apiLag = sql.raw(`interval '${recordPolicy.apiLagSeconds} seconds'`);

/**
 * Since when a read certainly shows its state: since the record was updated, but not earlier than
 * the lag of the API before the read, and not later than the read began.
 */
const showsSince = (updated: SQL, began: SQL): SQL => sql`greatest(
          ${began} - ${apiLag},
          case when ${updated} is not null then least(${updated}, ${began}) end
        )`;

/**
 * Whether a record replaces the state of its row. Of two reads, the one wins that shows its state
 * since a later time; among equal ones, the one that began later. A late answer so never undoes a
 * newer state, and a service that was restored from a backup is followed. An event counts until it
 * is settled: until then an older state does not replace its state. A row that is absent yields to
 * any read.
 */
function isNewer({ table, eventKind }: Resource): SQL {
  const { id, updated, rawUpdated = updated, raw, syncedAt, deletedReason } = table;
  const isFirst = sql`${held(raw)} is null or ${held(syncedAt)} is null`;
  if (updated === undefined || rawUpdated === undefined)
    return sql`(${isFirst} or ${excluded(syncedAt)} >= ${held(syncedAt)})`;
  const read = sql`(${showsSince(excluded(updated), excluded(syncedAt))}, ${excluded(syncedAt)})
          >= (${showsSince(held(rawUpdated), held(syncedAt))}, ${held(syncedAt)})`;
  const announced =
    eventKind === null
      ? sql``
      : sql`
        and case
          when ${held(updated)} > ${excluded(updated)}
            and ${held(rawUpdated)} is distinct from ${held(updated)}
            and ${held(updated)} <= ${excluded(syncedAt)} + ${apiLag}
          then not ${isStale(eventKind, sql`${held(id)}::text`)}
          else true
        end`;
  return sql`(
        ${held(deletedReason)} in ('absent', 'not_found')
        or (${isFirst} or ${read})${announced}
      )`;
}

/**
 * Whether the row is live or its tombstone yields. The tombstone of an event yields to a newer
 * state, and to any read that no longer lags behind the deletion. An inferred tombstone yields to a
 * later read. If a record was absent from the listing of one company and is now read for another
 * company, it has moved, and its tombstone yields to any read. Usage is excepted, because it moves
 * and is restored with its document.
 */
function yields({ name, table }: Resource): SQL {
  const { companyId, updated, deletedAt, deletedReason, syncedAt } = table;
  const moved =
    companyId !== undefined && isListedByCompany(name) && name !== 'usageData'
      ? sql`or ${held(deletedReason)} = 'absent' and ${excluded(companyId)} <> ${held(companyId)}`
      : sql``;
  const readLater = sql`(${excluded(syncedAt)} > ${held(deletedAt)} ${moved})`;
  if (updated === undefined) return sql`(${held(deletedAt)} is null or ${readLater})`;
  return sql`(
        ${held(deletedAt)} is null
        or case ${held(deletedReason)}
          when 'event' then ${excluded(updated)} > ${held(updated)}
            or ${excluded(syncedAt)} - ${apiLag} > ${held(deletedAt)}
          else ${readLater}
        end
      )`;
}

/** Whether anything changed, also the spelling: the new digest saves the next write. */
function differs(resource: Resource, { columnsAlone = false }: UpsertSource): SQL {
  const { table, columns } = resource;
  const beside = [table.unreadable, ...(columnsAlone ? [] : [table.raw, table.apiVersion])];
  const before = [...columns.map(({ column }) => held(column)), ...beside.map(held)];
  const after = [...columns.map(nextOf(resource, 'record')), ...beside.map(excluded)];
  const respelled = table.digest
    ? sql`or ${excluded(table.digest)} is not null
          and ${held(table.digest)} is distinct from ${excluded(table.digest)}`
    : sql``;
  return sql`${held(table.deletedAt)} is not null
        or ${row(before)} is distinct from ${row(after)}
        ${respelled}`;
}

/** Whether waiting events caused the read: the row is then written, to count as read now. */
const isAwaited = (
  { eventKind, table }: Resource,
  { confirms = false }: Pick<RecordPage, 'confirms'>,
): SQL =>
  confirms && eventKind !== null ? isStale(eventKind, sql`${held(table.id)}::text`) : sql`false`;

/**
 * Builds the steps of a statement that write events as rows. The newer `updated` wins. If two
 * events have the same `updated`, their fields decide, whichever comes first. An event does not
 * replace a state with the same `updated` that was read, unless the event deletes the record. A
 * tombstone yields only to a newer state. `events` is a step `item (r, owner, record_id,
 * deleted_at)`; `deleted_at` is when an event that deletes its record came (service.md 2.5). A
 * record that was never read gets a tombstone, too, so that no late event or page restores it.
 * `areReplaced` says whether `item` has `replaced`.
 */
export const upsertEvents = (resource: Resource, events: SQL, areReplaced: boolean): SQL =>
  sql`${events}, ${fixed(`events of ${resource.name}, ${areReplaced}`, () => eventsAsRows(resource, areReplaced))}`;

function eventsAsRows(resource: Resource, areReplaced: boolean): SQL {
  const { table, columns, ties } = resource;
  const next = nextOf(resource, 'event');
  const { id, updated, rawUpdated, deletedAt, deletedReason } = table;
  if (updated === undefined || rawUpdated === undefined)
    throw new Error(`events name only records with updated`);
  const ofEvents = columns.filter(({ ofRecords }) => !ofRecords);
  const all = [
    id,
    ...ofEvents.map(({ column }) => column),
    deletedAt,
    deletedReason,
    table.unreadable,
  ];
  const decided = ties.map((column) => sql`${sql.identifier(column.name)} desc nulls last`);
  const ends = sql`${excluded(deletedAt)} is not null or ${excluded(updated)} > ${held(updated)}`;
  const ending = (column: PgColumn): SQL =>
    setting(column, sql`case when ${ends} then ${excluded(column)} else ${held(column)} end`);
  const ended = [deletedAt, deletedReason].map(ending);
  const unreadable = unreadableOf({ parts: [] }, ofEvents);
  return sql`incoming as (
    select distinct on (id)
      record_id::uuid as id,
      ${lines(ofEvents.map(({ column, of }) => named(of, column)))},
      deleted_at,
      case when deleted_at is not null then 'event' end as deleted_reason,
      ${areReplaced ? withReplaced(unreadable) : unreadable} as unreadable
    from item
    order by id, ${sql.identifier(updated.name)} desc, deleted_at, ${sql.join(decided, sql`, `)}
  )
  insert into ${table} as held (${columnNames(all)})
  select ${columnNames(all)}
  from incoming
  order by id
  on conflict (id) do update set
    ${lines([
      ...ofEvents.map((one) => setting(one.column, next(one))),
      ...ended,
      setting(table.unreadable, excluded(table.unreadable)),
    ])}
  where ${held(updated)} is null
    or ${excluded(updated)} > ${held(updated)}
    or ${excluded(updated)} = ${held(updated)}
      and ${held(deletedReason)} is distinct from 'event'
      and (
        ${excluded(deletedAt)} is not null
        or ${held(rawUpdated)} is distinct from ${held(updated)}
          and ${row(ties.map(excluded))} > ${row(ties.map(held))}
      )`;
}
