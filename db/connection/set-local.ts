import { sql } from 'drizzle-orm';
import { oneRow } from './arrays.ts';
import type { Executor } from './connect.ts';

/** Changes settings of the session until the transaction ends. */
export async function setLocal(
  tx: Executor,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const set = Object.entries(settings).map(
    ([name, value]) => [name, sql`set_config(${name}, ${value}, true)`] as const,
  );
  await tx.select(Object.fromEntries(set)).from(oneRow);
}
