import { type Command, CommanderError } from 'commander';
import { SettingsError } from '../app/settings.ts';
import { CommandError, UsageError } from './context.ts';
import { buildProgram } from './program.ts';

/** Exit statuses: 0 done, 1 failed or differences found, 2 wrong usage or settings. */
const failed = 1;
const wrongUsage = 2;

/** Runs the command line to its end and leaves its status in `process.exitCode`. */
export async function run(args: readonly string[]): Promise<void> {
  const program = buildProgram();
  throwInsteadOfExit(program);
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) process.stderr.write(`metersync: ${await explain(error)}\n`);
    process.exitCode = exitStatus(error);
  }
}

function throwInsteadOfExit(command: Command): void {
  command.exitOverride();
  for (const one of command.commands) throwInsteadOfExit(one);
}

function exitStatus(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : wrongUsage;
  return error instanceof SettingsError || error instanceof UsageError || isSecretsError(error)
    ? wrongUsage
    : failed;
}

/** Told by name: loading the receiver for every command would cost more than the check. */
const isSecretsError = (error: unknown): boolean => error instanceof Error && error.name === 'SecretsError';

async function explain(error: unknown): Promise<string> {
  if (!(error instanceof Error)) return String(error);
  const forPeople =
    error instanceof SettingsError || error instanceof UsageError || error instanceof CommandError;
  if (forPeople || isSecretsError(error) || error.name === 'EmbeddedError') return error.message;
  // Loaded when it is needed: most commands end without an error.
  const { withoutStatement } = await import('../app/warehouse.ts');
  const { message, stack } = withoutStatement(error) as Error;
  return process.env.LOG_LEVEL === 'debug' ? (stack ?? message) : message;
}
