import { requireAnswer, requireSchema } from '../app/warehouse/prepare.ts';
import { openWarehouse } from '../app/warehouse/warehouse.ts';
import type { Database, Warehouse } from '../db/connection/connect.ts';
import { type Context, openContext } from './context.ts';

/** Opens the warehouse for a command that reads it, and closes everything when the work is over. */
export async function withWarehouse<T>(
  need: { readonly temporal: boolean | 'if running' },
  work: (opened: {
    readonly db: Database;
    readonly warehouse: Warehouse;
    readonly context: Context;
  }) => Promise<T>,
): Promise<T> {
  const context = await openContext({ ...need, service: false, quiet: true, existing: true });
  try {
    const { settings, stack, log } = context;
    await requireAnswer(settings, stack.databaseUrl, log);
    await requireSchema(settings, stack.databaseUrl, log);
    const warehouse = openWarehouse(settings, stack.databaseUrl, log, 4);
    try {
      return await work({ db: warehouse.db, warehouse, context });
    } finally {
      await warehouse.close();
    }
  } finally {
    await context.stop();
  }
}
