import type { Command } from 'commander';

/** Adds a command with its name, its description and an example to copy. */
export const add = (parent: Command, name: string, does: string, example: string): Command =>
  parent.command(name).description(does).addHelpText('after', `\nExample:\n  ${example}`);

/** Returns a command's full name, with those of its parents. */
export function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** Points to a command's help. */
export const seeHelp = (command: Command): string => `See ${pathOf(command)} --help`;

/** Has every command point to its own help after wrong usage. */
export function pointToHelp(command: Command): void {
  command.showHelpAfterError(seeHelp(command));
  for (const subcommand of command.commands) pointToHelp(subcommand);
}
