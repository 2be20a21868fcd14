import { formatTime } from '../../contract/times.ts';
import { type LoggedOperation, listOperations } from '../../db/operations.ts';
import { print, printJson } from '../print.ts';
import { tableOf } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

/** `metersync operations list`: prints who did what, newest first. */
export async function operationsList(options: {
  actor?: string;
  limit: number;
  before?: number;
  json?: boolean;
}): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const { actor, limit, before } = options;
    const operations = await listOperations(db, { actor }, { limit, before });
    const next = operations.length === limit ? (operations.at(-1)?.id ?? null) : null;
    if (options.json) printJson({ operations, next });
    else print(...describe(operations, next));
  });
}

function describe(operations: readonly LoggedOperation[], next: number | null): string[] {
  if (operations.length === 0) return ['No operation yet.'];
  const targetOf = ({ target }: LoggedOperation) =>
    Object.entries(target)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ');
  const wide = operations.map((one) => [
    formatTime(one.at),
    one.actor,
    one.source,
    one.action,
    targetOf(one),
    one.outcome ?? 'not ended',
    one.detail ?? '',
  ]);
  const narrow = operations.map((one) => [
    [formatTime(one.at), one.actor],
    [one.action, targetOf(one), one.outcome ?? 'not ended', one.detail ?? ''],
  ]);
  const lines = tableOf([
    { head: ['at', 'actor', 'source', 'action', 'of', 'outcome', 'detail'], rows: wide },
    { head: ['at and actor', 'what'], rows: narrow },
  ]);
  if (next !== null) lines.push(`More: --before ${next}`);
  return lines;
}
