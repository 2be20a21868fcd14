import type { Command } from 'commander';
import { buildProgram } from '../cli/program.ts';
import { generatedFrom } from './markdown.ts';

const columns = 110;

/** Makes docs/reference/command.md: what there is to run. The rest is what `-h` of each subcommand prints. */
export function commandPage(): string {
  const program = buildProgram();
  const withOwn = program.commands.filter(({ commands }) => commands.length > 0);
  return [
    generatedFrom('cli/program.ts'),
    '# The command',
    '',
    '`npx metersync …` once installed; `npm run -s metersync -- …` in a checkout. `-h` after a subcommand',
    'shows its subcommands, arguments and options. [Settings](settings.md) come from the environment.',
    '',
    'Exit status: 0 done; 1 failed, or differences found; 2 wrong usage or settings. Times are in UTC: to',
    'the second for people, RFC 3339 with every digit in `--json`.',
    '',
    help(program),
    '',
    `With subcommands of their own: ${withOwn.map((command) => `\`${command.name()}\``).join(', ')}.`,
    '',
  ].join('\n');
}

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
