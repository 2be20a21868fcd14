import { sql } from 'drizzle-orm';
import type { Database } from '../app/warehouse.ts';
import { CommandError, UsageError } from './errors.ts';

/** How a command names one company. */
export interface CompanyOptions {
  readonly company?: string;
  readonly externalId?: string;
}

/** The id of the company that a command names; undefined when it names none. */
export async function companyOf(db: Database, options: CompanyOptions): Promise<string | undefined> {
  if (options.company !== undefined && options.externalId !== undefined)
    throw new UsageError('name the company by --company or by --external-id, not by both');
  if (options.externalId === undefined) return options.company;
  const found = await db.execute<{ id: string }>(
    sql`select id from utility.companies where external_id = ${options.externalId} and deleted_at is null`,
  );
  const [first, second] = found.rows;
  if (first === undefined) {
    throw new CommandError(
      `no company with external id ${options.externalId} is known yet: give its id with --company, or backfill all first`,
    );
  }
  if (second !== undefined) {
    const ids = found.rows.map(({ id }) => id).join(', ');
    throw new CommandError(
      `several companies have the external id ${options.externalId}: give one of ${ids}`,
    );
  }
  return first.id;
}
