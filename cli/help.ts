import type { Command } from 'commander';

/** Adds a command with its name, its description and an example to copy. */
export const add = (parent: Command, name: string, does: string, example: string): Command =>
  parent.command(name).description(does).addHelpText('after', `\nExample:\n  ${example}`);

export function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

export const seeHelp = (command: Command): string => `See ${pathOf(command)} --help`;

export function pointToHelp(command: Command): void {
  command.showHelpAfterError(seeHelp(command));
  for (const subcommand of command.commands) pointToHelp(subcommand);
}
