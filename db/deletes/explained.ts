import { type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { hasPending } from '../queue/queue.ts';
import { judgedBy } from '../records/listers.ts';
import { isStateOf, type RecordResource, recordResources, row, tableOf } from '../resources.ts';
import { deletes, earlierStates, journal, runs } from '../schema/metersync.ts';
import { companies, documents } from '../schema/utility.ts';
import { decidedToKeep, keyOfNoted, note } from './tombstone.ts';

const event = alias(journal, 'event');

/** The document of a usage row. */
const bill = alias(documents, 'bill');

/**
 * Whether no read or event touched a row since a moment; a read of all usage of a document touches
 * each row that it left live. `offset 0` keeps the planner from reading the whole journal.
 */
export const untouchedSince = (resource: RecordResource, moment: SQL): SQL => {
  const isAbout =
    resource === 'companies'
      ? sql`${event.companyId} = ${row.id}`
      : sql`${event.recordId} = ${row.id}::text`;
  const readWithDocument =
    resource === 'usageData'
      ? sql`
    and not exists (
      select
      from ${documents} ${bill}
      where ${bill.id} = ${row}.document_id
        and ${bill.usageReadAt} >= ${moment}
      offset 0
    )`
      : sql``;
  return sql`${row.firstSyncedAt} < ${moment}
    and (${row.syncedAt} is null or ${row.syncedAt} < ${moment})
    and not exists (
      select
      from ${journal} ${event}
      where ${isAbout}
        and ${event.recordedAt} >= ${moment}
      offset 0
    )${readWithDocument}`;
};

/**
 * Whether somebody rejected or undid an earlier deletion of the row. Such a row is kept until a
 * listing shows it again (see `countAbsent`). Usage is kept with its document.
 */
export const isKept = (resource: RecordResource): SQL => {
  const kept = hasNote(resource, sql`${row.id}`, decidedToKeep);
  return resource === 'usageData'
    ? sql`(${kept} or ${withDocument(sql`in ('rejected', 'undone')`)})`
    : kept;
};

/** Whether a note about the row with this id meets a condition. */
const hasNote = (resource: RecordResource, id: SQL, which: SQL): SQL => sql`exists (
      select
      from ${deletes} ${note}
      where ${note.resource} = ${resource}
        and ${note.recordId} = ${id}::text
        and ${which}
      offset 0
    )`;

/** Whether a row is kept, or is usage whose document is held back. */
export const isKeptOrHeld = (resource: RecordResource): SQL =>
  resource === 'usageData'
    ? sql`(${isKept(resource)} or ${withDocument(sql`= 'quarantined'`)})`
    : isKept(resource);

/** Whether a usage row's live document has a note in a state and no read found it since. */
const withDocument = (state: SQL): SQL => sql`exists (
      select
      from ${documents} ${bill}
        cross join lateral (
          select
          from ${deletes} ${note}
          where ${note.resource} = 'documents'
            and ${note.recordId} = ${bill.id}::text
            and ${note.state} ${state}
            and (${bill.syncedAt} is null or ${bill.syncedAt} < ${note.absentSince})
          offset 0
        ) kept
      where ${bill.id} = ${row}.document_id
        and ${bill.deletedAt} is null
      offset 0
    )`;

/**
 * Whether something explains why a listing lacks a row, which is then tombstoned regardless of the
 * cap: records go with their company, usage with its document or a new version of it.
 */
export const explained = (resource: RecordResource): SQL => {
  if (resource === 'companies') return sql`false`;
  const companyIsGone = sql`exists (
      select
      from ${companies}
      where ${companies.id} = ${judgedBy(resource)}
        and ${companies.deletedAt} is not null
      offset 0
    )`;
  return resource === 'usageData' ? sql`(${companyIsGone} or ${byDocument})` : companyIsGone;
};

/**
 * When a usage row was last known to be listed: at its own read, at a read of all usage of its
 * document, or at the last complete backfill of its listing.
 */
const lastListed = sql`greatest(
          ${row.syncedAt},
          ${bill.usageReadAt},
          (
            select max(${runs.startedAt})
            from ${runs}
            where ${runs.companyId} = ${judgedBy('usageData')}
              and ${runs.resource} = 'usageData'
              and ${runs.kind} = 'full'
              and ${runs.state} = 'complete'
          )
        )`;

/**
 * Whether the document of a usage row explains its absence: it is deleted, or has waiting events
 * whose catch-up reads its usage again, or has a version that was first read after the row was last
 * listed and that does not list the row. States with the same `updated` and the same usage are one
 * version: other fields may differ at every read.
 */
const byDocument = sql`exists (
      select
      from ${documents} ${bill}
      where ${bill.id} = ${row}.document_id
        and (
          ${bill.deletedAt} is not null
          or ${hasPending('document', sql`${bill.id}::text`)}
          or ${bill.syncedAt} > ${lastListed}
            and not exists (
              select
              from jsonb_array_elements(metersync.elements(${bill.raw} -> 'usageData')) listed
              where metersync.canonical_id(listed ->> 'id') = ${row.id}::text
            )
            and not exists (
              select
              from ${earlierStates}
              where ${isStateOf('documents', bill.id)}
                and ${earlierStates.syncedAt} <= ${lastListed}
                and ${earlierStates.rawUpdated} is not distinct from ${bill.rawUpdated}
                and ${earlierStates.raw} -> 'usageData'
                  is not distinct from ${bill.raw} -> 'usageData'
              offset 0
            )
        )
      offset 0
    )`;

/**
 * Whether a noted row is still gone from its listing, as far as the warehouse knows: it is live, no
 * other company lists it now, and no read or event has shown it since.
 */
export const stillAbsent = (
  resource: RecordResource,
  isLive: SQL = sql`${row.deletedAt} is null`,
): SQL => {
  const sameCompany =
    resource === 'companies'
      ? sql``
      : sql`
    and (${note.companyId} is null or ${judgedBy(resource)} = ${note.companyId})`;
  return sql`${isLive}${sameCompany}
    and ${untouchedSince(resource, sql`${note.absentSince}`)}`;
};

/** Whether a noted row can be tombstoned without a decision. */
export const needsNobody = (resource: RecordResource): SQL =>
  sql`${explained(resource)} and not ${isKeptOrHeld(resource)}`;

/** Whether a quarantined row needs no decision: it is not absent, or its absence is explained. */
const isSettled = (resource: RecordResource): SQL => sql`exists (
      select
      from ${tableOf(resource)} ${row}
      where ${row.id} = ${keyOfNoted(resource)}
        and ((${stillAbsent(resource)}) is not true or ${needsNobody(resource)})
      offset 0
    )`;

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

const settled = recordResources.map(
  (resource) => sql`when ${resource} then ${isSettled(resource)}`,
);

/** Whether a note is about a quarantined row that waits for a decision. */
export const waits = sql`${note.state} = 'quarantined'
  and not case ${note.resource}
    ${sql.join(settled, sql` `)}
    else false
  end`;
