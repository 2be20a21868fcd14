import type { Command } from 'commander';
import { buildProgram } from '../cli/program.ts';
import { generatedFrom } from './markdown.ts';

const columns = 110;

/** Makes docs/command.md: the help of every subcommand. */
export function commandPage(): string {
  const program = buildProgram();
  return [
    generatedFrom('cli/program.ts'),
    '# The command',
    '',
    '`npx metersync …` once installed; `npm run -s metersync -- …` in a checkout.',
    'Settings come from the environment: [settings.md](settings.md).',
    '',
    'Exit status: 0 done; 1 failed, or differences found; 2 wrong usage or settings.',
    '',
    'Times are in UTC: to the second for people, RFC 3339 with every digit in `--json`. Tables fit the terminal; where output is piped nothing is broken.',
    '',
    help(program),
    ...sections(program, 'metersync', '##'),
    '',
  ].join('\n');
}

function sections(parent: Command, path: string, heading: string): string[] {
  return parent.commands.flatMap((command) => {
    const name = `${path} ${command.name()}`;
    return ['', `${heading} ${name}`, '', help(command), ...sections(command, name, `${heading}#`)];
  });
}

/** Returns a command's complete help, including the example after commander's part. */
function help(command: Command): string {
  let text = '';
  command.configureOutput({
    getOutHelpWidth: () => columns,
    writeOut: (piece) => {
      text += piece;
    },
  });
  command.outputHelp();
  return `\`\`\`text\n${text.trimEnd()}\n\`\`\``;
}
