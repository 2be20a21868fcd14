import { systemUser } from '../app/process/system-user.ts';
import type { Settings } from '../app/settings/settings.ts';
import type { OperationAction } from '../contract/names.ts';
import type { Operation } from '../db/operations.ts';

/** Characters of a command line that the log of operations keeps. */
const typedMax = 500;

let typed = '';

/** Keeps the command line for the log of operations; an argument with a space is quoted. */
export function noteTyped(args: readonly string[]): void {
  const line = ['metersync', ...args.map((arg) => (/^[^\s"']+$/.test(arg) ? arg : JSON.stringify(arg)))].join(
    ' ',
  );
  typed = line.length > typedMax ? `${line.slice(0, line.lastIndexOf(' ', typedMax))} …` : line;
}

/** What a command does, for the log of operations; parts that are undefined are left out. */
export function asOperation(
  { actor }: Pick<Settings, 'actor'>,
  action: OperationAction,
  target: Readonly<Record<string, string | undefined>>,
): Operation {
  const named = Object.entries({ command: typed, ...target }).filter(([, value]) => value !== undefined);
  return {
    actor: actor ?? systemUser(),
    role: 'operator',
    source: 'command',
    action,
    target: Object.fromEntries(named) as Record<string, string>,
  };
}
