import { setImmediate as nextTurn } from 'node:timers/promises';
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
  const lost = lostOutput();
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) process.stderr.write(`metersync: ${await explain(error)}\n`);
    process.exitCode = exitStatus(error);
  }
  // What could not be written is told after it was.
  await nextTurn();
  if (lost.reason === undefined || process.exitCode) return;
  process.stderr.write(`metersync: standard output: ${lost.reason}\n`);
  process.exitCode = failed;
}

/** Why output was lost, which nobody else is told; not when who reads it had enough: `metersync events list | head`. */
function lostOutput(): { readonly reason?: string } {
  const lost: { reason?: string } = {};
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code !== 'EPIPE') lost.reason = message;
  });
  return lost;
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
