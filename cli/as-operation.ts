import { systemUser } from '../app/process/system-user.ts';
import type { Settings } from '../app/settings/settings.ts';
import type { OperationAction } from '../contract/names.ts';
import type { Operation } from '../db/operations.ts';
import { say } from './print.ts';

/** What a command does, for the log of operations; parts that are undefined are left out. */
export function asOperation(
  { actor }: Pick<Settings, 'actor'>,
  action: OperationAction,
  target: Readonly<Record<string, string | undefined>>,
): Operation {
  const named = Object.entries(target).filter(([, value]) => value !== undefined);
  return {
    actor: actor ?? systemUser(),
    role: 'operator',
    source: 'command',
    action,
    target: Object.fromEntries(named) as Record<string, string>,
  };
}

/** Says why what was done is not in the log of operations. */
export const sayUnnoted = (reason: string): void => say(`Not in the log of operations: ${reason}`);
