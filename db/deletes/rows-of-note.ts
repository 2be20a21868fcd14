import { sql } from 'drizzle-orm';
import { deletes } from '../schema/metersync.ts';

/** How many rows a note is about: one record, or the readings of a range. */
export const rowsOfNote = sql`coalesce(${deletes.readings}, 1)`;
