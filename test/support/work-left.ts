import type { Client } from '@temporalio/client';
import { sql } from 'drizzle-orm';
import type { Executor, Warehouse } from '../../db/connection/connect.ts';

/** Whether an event is pending or a backfill runs. It asks for nothing else, because tests poll it. */
async function isWorkLeft(db: Executor): Promise<boolean> {
  const { rows } = await db.execute<{ left: boolean }>(sql`
    select
      exists (select from metersync.events where outcome = 'pending')
      or exists (
        select from metersync.runs
        where kind = 'full' and company_id is null and resource is null and finished_at is null
      ) as left`);
  return rows[0]?.left ?? true;
}

/** Returns whether no event is pending and Temporal runs no workflow except those of the named types. */
export async function isAllDone(
  { client, warehouse }: { readonly client: Client; readonly warehouse: Pick<Warehouse, 'db'> },
  except: readonly string[],
): Promise<boolean> {
  const types = except.map((type) => `'${type}'`).join(', ');
  const running = `ExecutionStatus = 'Running' and WorkflowType not in (${types})`;
  const open = async () => (await client.workflow.count(running)).count;
  if ((await open()) > 0) return false;
  return !(await isWorkLeft(warehouse.db)) && (await open()) === 0;
}
