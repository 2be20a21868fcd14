import { companiesOfExternalId, hasCompany } from '../db/backfill/companies.ts';
import type { Database } from '../db/connection/connect.ts';
import { CommandError, UsageError } from './errors.ts';

export interface CompanyOptions {
  readonly company?: string;
  readonly externalId?: string;
}

/** Finds the id of the company that the options name; undefined if they name none. */
export async function companyOf(db: Database, options: CompanyOptions): Promise<string | undefined> {
  if (options.company !== undefined && options.externalId !== undefined)
    throw new UsageError('name the company by --company or by --external-id, not by both');
  if (options.externalId === undefined) return options.company;
  const found = await companiesOfExternalId(db, options.externalId);
  const [first, second] = found;
  if (first === undefined) {
    throw new CommandError(
      `no company has the external id ${options.externalId}: name the company by its id with --company, or run metersync backfill all first`,
    );
  }
  if (second !== undefined) {
    throw new CommandError(
      `several companies have the external id ${options.externalId}: choose one by its id with --company: ${found.join(', ')}`,
    );
  }
  return first;
}

/** Like `companyOf`. @throws CommandError if the company is not in the warehouse */
export async function heldCompanyOf(db: Database, options: CompanyOptions): Promise<string | undefined> {
  const id = await companyOf(db, options);
  if (id !== undefined && !(await hasCompany(db, id)))
    throw new CommandError(
      `company ${id} is not in the warehouse: check the id, or backfill the company first`,
    );
  return id;
}
