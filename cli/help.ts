import type { Command } from 'commander';

/** Adds a command: its name, what it does, and a line that a person can copy. */
export const add = (parent: Command, name: string, does: string, example: string): Command =>
  parent.command(name).description(does).addHelpText('after', `\nExample:\n  ${example}`);

/** How a person calls a command: with the names of those that it belongs to. */
export function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** Where what is wrong with a call is explained. */
export const seeHelp = (command: Command): string => `See ${pathOf(command)} --help`;

/** After wrong usage each command points to its own help. */
export function pointToHelp(command: Command): void {
  command.showHelpAfterError(seeHelp(command));
  for (const one of command.commands) pointToHelp(one);
}
