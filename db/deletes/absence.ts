import { type SQL, sql } from 'drizzle-orm';
import { array, printedUuids } from '../connection/arrays.ts';
import { recordRead } from '../records/companies.ts';
import { isListedBy, judgedBy } from '../records/listers.ts';
import { type RecordResource, recordResources, row, tableOf } from '../resources.ts';
import { companies } from '../schema/utility.ts';
import { decidedToKeep, keyOfNoted, note } from './tombstone.ts';

/** A company's listing, or without a company: the companies, all sites, or ownerless rows. */
export interface Listing {
  readonly resource: RecordResource;
  readonly companyId: string | null;
  /** Companies that settings name. They and their sites stay live even if no list contains them. */
  readonly configured?: readonly string[];
}

/** What a pass listed, and when it began by the warehouse's clock. */
export interface Seen {
  readonly ids: readonly string[];
  readonly beganAt: string;
  /** The listing that it walked, if another listing is judged by it: the list of companies. */
  readonly of?: Listing | undefined;
}

/**
 * What the warehouse knows about a `row` that a listing lacks since a moment, as one word. The
 * function `metersync.absence_of` (in analytics/functions) decides it, and explains the words.
 */
export const absenceOf = (resource: RecordResource, since: SQL): SQL => {
  const companyId = resource === 'companies' ? sql`null` : judgedBy(resource);
  return sql`metersync.absence_of(
      ${resource}, ${row.id}::text, ${companyId}, ${documentOf(resource)},
      ${row.firstSyncedAt}, ${row.syncedAt}, ${since}
    )`;
};

/** Whether somebody decided to keep a `row`, or the document of this usage, while it is absent. */
export const isKept = (resource: RecordResource): SQL<boolean> =>
  sql`metersync.is_kept(${resource}, ${row.id}::text, ${documentOf(resource)})`;

const documentOf = (resource: RecordResource): SQL =>
  resource === 'usageData' ? sql`${row}.document_id` : sql`null`;

/** Whether the absence of a noted row is judged by the listing that the note is about. */
const isOfNote = (resource: RecordResource): SQL =>
  resource === 'companies'
    ? sql`true`
    : sql`(${note.companyId} is null or ${judgedBy(resource)} = ${note.companyId})`;

/** What `absenceOf` says about a noted row, since the pass that found it absent. */
export const absenceOfNoted = (resource: RecordResource): SQL =>
  absenceOf(resource, sql`${note.absentSince}`);

/**
 * Whether a noted row is still gone from its listing, as far as the warehouse knows: it is live, no
 * other company lists it now, and no read or event has shown it since.
 */
export const stillAbsent = (
  resource: RecordResource,
  isLive: SQL = sql`${row.deletedAt} is null`,
): SQL => sql`${isLive}
    and ${isOfNote(resource)}
    and ${absenceOfNoted(resource)} <> 'shown'`;

/** Whether a noted row is still absent, and can be tombstoned without a decision. */
export const needsNoDecision = (resource: RecordResource): SQL => sql`${row.deletedAt} is null
    and ${isOfNote(resource)}
    and ${absenceOfNoted(resource)} = 'explained'`;

/** A noted row waits unless it is not absent any more, or its absence is explained. */
const waiting = recordResources.map(
  (resource) => sql`when ${resource} then not exists (
      select
      from ${tableOf(resource)} ${row}
      where ${row.id} = ${keyOfNoted(resource)}
        and (
          ${row.deletedAt} is null
          and ${isOfNote(resource)}
          and ${absenceOfNoted(resource)} not in ('shown', 'explained')
        ) is not true
    )`,
);

/** Whether a note is about a quarantined row that waits for a decision. */
export const waits = sql`${note.state} = 'quarantined'
  and case ${note.resource}
    ${sql.join(waiting, sql` `)}
    else true
  end`;

const alive = recordResources.map(
  (resource) => sql`when ${resource} then exists (
      select
      from ${tableOf(resource)} ${row}
      where ${row.id} = ${keyOfNoted(resource)}
        and ${row.deletedAt} is null
      offset 0
    )`,
);

/** Whether somebody decided that the row of a note stays although the service no longer has it. */
export const keeps = sql`${decidedToKeep}
  and case ${note.resource}
    ${sql.join(alive, sql` `)}
    else true
  end`;

/**
 * Whether the listing should contain a row: not a company that settings name, or that was read but
 * never listed, and not a site if the record of its company has no list of sites.
 */
export const isListed = ({ resource, companyId, configured = [] }: Listing): SQL => {
  const ofCompany =
    companyId === null ? sql`${row.companyId} is null` : sql`${row.companyId} = ${companyId}::uuid`;
  const named = array(printedUuids(configured), 'uuid');
  switch (resource) {
    case 'companies':
      return sql`${row.deletedAt} is null
    and not (${row.id} = any(${named}))
    and (${row.raw} is not null or not ${recordRead(sql`${row.id}`)})`;
    case 'sites':
      return sql`${row.deletedAt} is null
    and ${companyId === null ? sql`not (${row.companyId} = any(${named}))` : ofCompany}
    and ${hasListOfSites}`;
    default:
      return sql`${row.deletedAt} is null
    and ${companyId === null ? ofCompany : isListedBy(sql`${companyId}::uuid`)}`;
  }
};

/** Whether the record of a site's company has a list of sites. */
export const hasListOfSites = sql`exists (
      select
      from ${companies}
      where ${companies.id} = ${row.companyId}
        and jsonb_typeof(${companies.raw} -> 'sites') = 'array'
      offset 0
    )`;

/** Whether a row is not in the listing, nothing showed it since, and nobody decided to keep it. */
export const isAbsent = ({ resource }: Listing, { ids, beganAt }: Seen): SQL => {
  const seen = printedUuids(ids);
  // An empty list of companies proves nothing about companies that were never listed.
  const neverListed =
    resource === 'companies' && ids.length === 0 ? sql`${row.raw} is not null and` : sql``;
  return sql`${neverListed} not (${row.id}::text = any(${array(seen, 'text')}))
    and ${absenceIn(resource, beganAt)} not in ('shown', 'kept')`;
};

/**
 * Whether the cap counts an absent row, because nothing explains its absence. A row that was never
 * read has no data to lose, and counts only if the listing is empty, which proves nothing.
 */
export const isCapped = (resource: RecordResource, { ids, beganAt }: Seen): SQL =>
  sql`(${ids.length === 0} or ${row.raw} is not null)
    and ${absenceIn(resource, beganAt)} in ('held', 'unexplained')`;

/** Whether an absent row is usage whose document waits for a decision. */
export const isHeldWithDocument = (resource: RecordResource, { beganAt }: Seen): SQL =>
  resource === 'usageData' ? sql`${absenceIn(resource, beganAt)} like 'held%'` : sql`false`;

const absenceIn = (resource: RecordResource, beganAt: string): SQL =>
  absenceOf(resource, sql`${beganAt}::timestamptz`);
