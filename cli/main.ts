#!/usr/bin/env node
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { SettingsError } from '../app/settings.ts';
import { readVersion } from '../app/version.ts';
import { CommandError, UsageError } from './context.ts';

/** Exit statuses: 0 done, 1 failed or differences found, 2 wrong usage or settings. */
const failed = 1;
const wrongUsage = 2;

function count(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('has to be a whole number.');
  return Number(text);
}

/** The command, with each subcommand's code loaded when it is called. */
function build(): Command {
  const program = new Command('metersync')
    .description('Keeps your own Postgres equal to a Utility Data Service, and proves it.')
    .version(readVersion())
    .showHelpAfterError('(metersync --help tells more)');

  program
    .command('start')
    .description('run receiver and worker in one process; what the environment does not name is stood in for')
    .action(async () => (await import('./commands/start.ts')).start(['worker', 'receiver']));
  program
    .command('receiver')
    .description('run the receiver of webhooks alone')
    .action(async () => (await import('./commands/start.ts')).start(['receiver']));
  program
    .command('worker')
    .description('run the worker alone')
    .action(async () => (await import('./commands/start.ts')).start(['worker']));
  program
    .command('migrate')
    .description("bring the warehouse's schema up to date")
    .action(async () => (await import('./commands/migrate.ts')).migrateCommand());
  program
    .command('backfill')
    .description('read everything that the service has, of all companies or of one')
    .argument('[scope]', 'all')
    .option('--company <id>', 'one company, by its id')
    .option('--external-id <id>', 'one company, by the id that you gave it')
    .option('--follow', 'show progress and wait for the end: 0 complete, 1 partial, suspect or failed')
    .action(async (scope, options) => (await import('./commands/backfill.ts')).backfill(scope, options));
  program
    .command('status')
    .description('what has been applied, what waits and why')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/status.ts')).status(options));
  program
    .command('audit')
    .description('compare the warehouse with the service and print each difference; changes nothing')
    .option('--company <id>', 'one company, by its id')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/audit.ts')).auditCommand(options));
  program
    .command('sandbox')
    .description('run the service itself, with generated data, to try and test against')
    .option('--companies <n>', 'companies to generate', count, 10)
    .option('--documents <n>', 'documents for each company', count, 100)
    .option('--interval-days <n>', 'days of interval readings', count, 14)
    .option('--port <n>', 'port to listen on', count)
    .option('--database-url <url>', 'its own Postgres database; an embedded one when not given')
    .action(async (options) => (await import('./commands/sandbox.ts')).sandboxCommand(options));
  program
    .command('demo')
    .description('see it all work: a service, a backfill, live changes, an audit')
    .option('--companies <n>', 'companies to generate', count, 10)
    .option('--documents <n>', 'documents for each company', count, 150)
    .option('--interval-days <n>', 'days of interval readings', count, 7)
    .option('--events <n>', 'live changes', count, 2_000)
    .option('--keep', 'keep everything running at the end', false)
    .action(async (options) => (await import('./commands/demo.ts')).demo(options));
  return program;
}

function exitStatus(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : wrongUsage;
  return error instanceof SettingsError || error instanceof UsageError || isSecretsError(error)
    ? wrongUsage
    : failed;
}

/** Told by name: loading the receiver for every command would cost more than the check. */
const isSecretsError = (error: unknown): boolean => error instanceof Error && error.name === 'SecretsError';

function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const forPeople =
    error instanceof SettingsError || error instanceof UsageError || error instanceof CommandError;
  if (forPeople || isSecretsError(error) || error.name === 'EmbeddedError') return error.message;
  return process.env.LOG_LEVEL === 'debug' ? (error.stack ?? error.message) : error.message;
}

async function main(args: readonly string[]): Promise<void> {
  const program = build();
  for (const command of [program, ...program.commands]) command.exitOverride();
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) process.stderr.write(`metersync: ${explain(error)}\n`);
    process.exitCode = exitStatus(error);
  }
}

await main(process.argv.slice(2));
// Connections that a failed start left open must not keep a finished command alive.
process.exit();
