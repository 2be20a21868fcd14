import { serverWaits } from '../../contract/retry-policy.ts';
import { counted } from '../../contract/words.ts';
import type { AlarmName } from '../../health/findings.ts';
import { verdictOf } from '../../health/verdict.ts';
import { acknowledge } from '../../operations/acknowledge.ts';
import { healthOf } from '../../operations/health.ts';
import { recorded } from '../../operations/recorded.ts';
import { asOperation } from '../as-operation.ts';
import { UsageError } from '../errors.ts';
import { print, printJson } from '../print.ts';
import { withWarehouse } from '../warehouse.ts';

/** `metersync alerts acknowledge`: notes that somebody knows of a finding, or takes that back. */
export async function alertsAcknowledge(
  name: AlarmName,
  options: { key?: string; note?: string; undo?: boolean; json?: boolean },
): Promise<void> {
  const { key, note, undo = false } = options;
  if (undo && note !== undefined) throw new UsageError('--undo withdraws the note, too: leave out --note');
  await withWarehouse({ temporal: 'if running' }, async ({ db, context }) => {
    const { settings, stack } = context;
    const temporal = stack.hasTemporal ? stack.temporal : undefined;
    const { answerMs } = serverWaits;
    const { databaseUrl } = stack;
    const readHealth = healthOf({ settings, databaseUrl, temporal, answerMs, again: true });
    const health = await readHealth(db);
    const operation = asOperation(settings, undo ? 'alerts unacknowledge' : 'alerts acknowledge', {
      name,
      key,
    });
    const by = undo ? undefined : { by: operation.actor, note: note ?? null };
    const inWords = (of: readonly unknown[]) =>
      `${counted(of.length, 'finding')} ${undo ? 'no longer acknowledged' : 'acknowledged'}${note === undefined ? '' : `: ${note}`}`;
    const found = await recorded(
      db,
      operation,
      () => acknowledge(db, verdictOf(health), { name, key }, by),
      inWords,
    );
    if (options.json)
      printJson({ acknowledged: !undo, findings: found.map(({ alarm, key }) => ({ name: alarm, key })) });
    else print(inWords(found));
  });
}
