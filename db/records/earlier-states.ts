import { type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { RecordResource } from '../resources.ts';
import { earlierStates } from '../schema/metersync.ts';

/** Whether an earlier state is a state of a record. The resource is a literal, as in the indexes. */
export const isStateOf = (resource: RecordResource, id: SQLWrapper | string): SQL => {
  const key = resource === 'meters' ? earlierStates.meterId : earlierStates.id;
  return sql`${earlierStates.resource} = ${sql.raw(`'${resource}'`)} and ${key} = ${id}`;
};
