import type { Command } from 'commander';
import { buildProgram } from '../cli/program.ts';
import { generatedFrom } from './markdown.ts';

const columns = 110;

/** Makes docs/reference/command.md: what there is to run. The rest is what `-h` of each subcommand prints. */
export function commandPage(): string {
  const program = buildProgram();
  return [
    generatedFrom('cli/program.ts'),
    '# The command',
    '',
    '`npx metersync …` once installed; `npm run -s metersync -- …` in a checkout. `-h` after a subcommand',
    'shows its arguments and options.',
    'Settings come from the environment: [settings.md](settings.md).',
    '',
    'Exit status: 0 done; 1 failed, or differences found; 2 wrong usage or settings.',
    '',
    'Times are in UTC: to the second for people, RFC 3339 with every digit in `--json`. Tables fit',
    'the terminal; where output is piped nothing is broken.',
    '',
    help(program),
    '',
    '## Subcommands with subcommands',
    '',
    ...program.commands.filter(({ commands }) => commands.length > 0).map(actions),
    '',
  ].join('\n');
}

const actions = (command: Command): string =>
  `- \`${command.name()}\`: ${command.commands.map((action) => `\`${action.name()}\``).join(', ')}`;

/** Returns the help of the command, without that of the help itself. */
function help(program: Command): string {
  let text = '';
  program.configureOutput({
    getOutHelpWidth: () => columns,
    writeOut: (piece) => {
      text += piece;
    },
  });
  program.outputHelp();
  const shortened = text
    .replace(/^ +(?:-h, --help|help \[command\]) .*\n/gm, '')
    .replace(/^Commands:\n$/m, '');
  return `\`\`\`text\n${shortened.trim()}\n\`\`\``;
}
