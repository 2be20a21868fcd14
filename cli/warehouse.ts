import { requireAnswer, requireSchema } from '../app/schema.ts';
import type { Settings } from '../app/settings/settings.ts';
import { openToAsk, openWarehouse, outageOf } from '../app/warehouse.ts';
import { serverWaits } from '../contract/retry-policy.ts';
import { type Database, type Warehouse, withTimeout } from '../db/connection/connect.ts';
import { readServer } from '../db/connection/session.ts';
import type { Operation } from '../db/operations.ts';
import { companiesOfExternalId, hasCompany } from '../db/records/companies.ts';
import { recordedWherePossible } from '../operations/recorded.ts';
import { type Context, type Need, withContext } from './context.ts';
import { CommandError, say, UsageError } from './output.ts';

/** Opens the warehouse for a command that reads it, and closes everything when the work is over. */
export async function withWarehouse<T>(
  {
    connections = () => 4,
    ...need
  }: Pick<Need, 'temporal'> & {
    readonly service?: Need['service'];
    readonly connections?: (settings: Settings) => number;
  },
  work: (opened: {
    readonly db: Database;
    readonly warehouse: Warehouse;
    readonly context: Context;
  }) => Promise<T>,
): Promise<T> {
  return await withContext({ service: false, ...need, quiet: true, existing: true }, async (context) => {
    const { settings, stack, log } = context;
    await requireAnswer(settings, stack.databaseUrl, log);
    await requireSchema(settings, stack.databaseUrl, log);
    const warehouse = openWarehouse(settings, stack.databaseUrl, log, connections(settings));
    try {
      return await work({ db: warehouse.db, warehouse, context });
    } finally {
      await warehouse.close();
    }
  });
}

/** Acts, and notes the action in the log, or says that it is not there: some actions need no warehouse. */
export async function notedWherePossible<T>(
  { settings, stack, log }: Pick<Context, 'settings' | 'stack' | 'log'>,
  operation: Operation,
  action: () => Promise<T>,
  inWords: (result: T) => string,
): Promise<T> {
  const warehouse = openToAsk(settings, stack.databaseUrl, log, 1);
  const sayUnnoted = (reason: string) => say(`Not in the log of operations: ${reason}`);
  try {
    const absence = await withTimeout(readServer(warehouse.db), serverWaits.answerMs).then(
      () => undefined,
      (error: unknown) => outageOf(stack.databaseUrl, error),
    );
    if (absence === undefined)
      return await recordedWherePossible(warehouse.db, operation, action, inWords, sayUnnoted);
    const done = await action();
    sayUnnoted(absence.away);
    return done;
  } finally {
    await warehouse.close();
  }
}

export interface CompanyOptions {
  readonly company?: string;
  readonly externalId?: string;
}

/** Finds the id of the company that the options name; undefined if they name none. */
export async function chosenCompany(db: Database, options: CompanyOptions): Promise<string | undefined> {
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
  const id = await chosenCompany(db, options);
  if (id !== undefined && !(await hasCompany(db, id)))
    throw new CommandError(
      `company ${id} is not in the warehouse: check the id, or backfill the company first`,
    );
  return id;
}
