import { sql } from 'drizzle-orm';
import { canonicalUuid } from '../../contract/ids.ts';
import type { Executor } from '../connection/connect.ts';
import { journal, runs } from '../schema/metersync.ts';
import { companies, connections, documents, meters } from '../schema/utility.ts';

/** Kinds of ids that the search knows. */
export const foundKinds = ['event', 'run', 'company', 'document', 'connection', 'meter'] as const;
export type FoundKind = (typeof foundKinds)[number];

/** A thing with the given id; `name` is what a person calls it, if it has one. */
export interface Found {
  readonly kind: FoundKind;
  readonly id: string;
  readonly name: string | null;
}

/** Finds what has an id, or the id that a customer gave it. */
export async function findById(db: Executor, given: string): Promise<Found[]> {
  const id = canonicalUuid(given) ?? null;
  const result = await db.execute<Found & Record<string, unknown>>(sql`
    select
      'event' as kind,
      ${journal.id},
      ${journal.type} as name
    from ${journal}
    where ${journal.id} = ${given}
    union all
    select
      'run',
      ${runs.runId}::text,
      ${runs.kind}
    from ${runs}
    where ${runs.runId} = ${id}::uuid
      and ${runs.companyId} is null
      and ${runs.resource} is null
    union all
    select
      'company',
      ${companies.id}::text,
      ${companies.name}
    from ${companies}
    where ${companies.id} = ${id}::uuid
    union all
    (
      select
        'company',
        ${companies.id}::text,
        ${companies.name}
      from ${companies}
      where ${companies.externalId} = ${given}
      limit 10
    )
    union all
    select
      'document',
      ${documents.id}::text,
      null
    from ${documents}
    where ${documents.id} = ${id}::uuid
    union all
    select
      'connection',
      ${connections.id}::text,
      ${connections.datasource}
    from ${connections}
    where ${connections.id} = ${id}::uuid
    union all
    select
      'meter',
      ${meters.id},
      null
    from ${meters}
    where ${meters.id} = ${given}`);
  return result.rows;
}
