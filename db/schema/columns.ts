import { type SQL, sql } from 'drizzle-orm';
import { boolean, customType, jsonb, text, timestamp, uuid } from 'drizzle-orm/pg-core';

/** A time with microseconds, as text in JavaScript: a Date would round it to milliseconds. */
export const time = <Name extends string>(name: Name) =>
  timestamp(name, { withTimezone: true, precision: 6, mode: 'string' });

export const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });

export const now: SQL = sql`now()`;

const absences = ['absent', 'not_found', 'listed'] as const;
const deletedReasons = [...absences, 'event', 'document'] as const;

/** Columns that every record table has in addition to the service's own fields. */
export const synced = () => ({
  raw: jsonb('raw'),
  apiVersion: text('api_version'),
  firstSyncedAt: time('first_synced_at').notNull().default(now),
  syncedAt: time('synced_at'),
  deletedAt: time('deleted_at'),
  deletedReason: text('deleted_reason', { enum: deletedReasons }),
});

/** The fields whose values no column could hold, each with its text; NULL if there are none. */
export const unreadable = () => jsonb('unreadable');

/**
 * The company whose listing shows the record that a row has, in tables whose records companies list.
 * NULL if it is the owner of the row.
 */
export const listedBy = () => uuid('listed_by');

/** Since when a record was found to be gone, and by what: the columns `deleted_*` follow from it. */
export const absence = () => ({
  absentSince: time('absent_since'),
  absentBy: text('absent_by', { enum: absences }),
});

/**
 * What the newest event announced about a record, in tables whose records events name. The columns
 * of the row show it until a read shows that state or a newer one: see db/records/hints.ts.
 */
export const hint = () => ({
  hintEventId: text('hint_event_id'),
  /** The payload of the event, while the columns show it. */
  hint: jsonb('hint'),
  hintUpdated: time('hint_updated'),
  hintDeletes: boolean('hint_deletes'),
  /** When the warehouse recorded the event. */
  hintCame: time('hint_came'),
  /** When the event was given up because the service never showed its state. */
  hintSettledAt: time('hint_settled_at'),
});
