import { type SQL, sql } from 'drizzle-orm';
import { judgedBy } from '../records/listers.ts';
import { type RecordResource, recordResources, row, tableOf } from '../resources.ts';
import { decidedToKeep, keyOfNoted, note } from './tombstone.ts';

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

const absenceOfNoted = (resource: RecordResource): SQL =>
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
    )`,
);

/** Whether somebody decided that the row of a note stays although the service no longer has it. */
export const keeps = sql`${decidedToKeep}
  and case ${note.resource}
    ${sql.join(alive, sql` `)}
    else true
  end`;
