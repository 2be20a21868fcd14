import { type Command, InvalidArgumentError } from 'commander';
import { systemUser } from '../app/process/version.ts';
import type { Settings } from '../app/settings/settings.ts';
import { parseDuration } from '../app/temporal/schedule-times.ts';
import type { OperationAction } from '../contract/names.ts';
import { uuid as uuidPattern } from '../contract/values.ts';
import type { Operation } from '../db/operations.ts';
import { readTimeOrAgo, timeOrAgoHasTo } from '../operations/time-or-ago.ts';

/** Parsers of values that a user types. Their errors say what is wrong; commander adds value and option. */

export function count(text: string): number {
  if (!/^\d{1,9}$/.test(text))
    throw new InvalidArgumentError('It must be a whole number of up to nine digits.');
  return Number(text);
}

export function share(text: string): number {
  if (/^(0(\.\d+)?|1(\.0+)?)$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be from 0 to 1, for example 0.2.');
}

export function uuid(text: string): string {
  if (uuidPattern.test(text)) return text.toLowerCase();
  throw new InvalidArgumentError('It must be a UUID.');
}

export function issueId(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be the number of an issue.');
}

export function wait(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined)
    throw new InvalidArgumentError('It must be a number and s, m, h or d, for example 15m.');
  if (ms <= 3_600_000) return ms;
  throw new InvalidArgumentError('It must be at most 1h.');
}

export function atLeastOne(text: string): number {
  const number = count(text);
  if (number === 0) throw new InvalidArgumentError('It must be 1 or more.');
  return number;
}

/** Parses a time, or how long ago it was: `90m`, `24h`, `7d`. */
export function timeOrAgo(text: string): string {
  const time = readTimeOrAgo(text, Date.now());
  if (time === undefined) throw new InvalidArgumentError(timeOrAgoHasTo);
  return time;
}

/** Adds a command with its name, its description and an example to copy. */
export const add = (parent: Command, name: string, does: string, example: string): Command =>
  parent.command(name).description(does).addHelpText('after', `\nExample:\n  ${example}`);

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

export const seeHelp = (command: Command): string => `See ${pathOf(command)} --help`;

export function pointToHelp(command: Command): void {
  command.showHelpAfterError(seeHelp(command));
  for (const subcommand of command.commands) pointToHelp(subcommand);
}

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
