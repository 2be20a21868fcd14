import { type SQL, sql } from 'drizzle-orm';
import { customType, jsonb, text, timestamp } from 'drizzle-orm/pg-core';

/** A time with microseconds, as text in JavaScript: a Date would round it to milliseconds. */
export const time = <Name extends string>(name: Name) =>
  timestamp(name, { withTimezone: true, precision: 6, mode: 'string' });

export const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });

export const now: SQL = sql`now()`;

const deletedReasons = ['event', 'absent', 'not_found', 'document', 'listed'] as const;

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
