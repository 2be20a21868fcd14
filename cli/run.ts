import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { type Command, CommanderError } from 'commander';
import { noteTyped, seeHelp } from './command-line.ts';
import { CommandError, say, UsageError } from './output.ts';
import { buildProgram } from './program.ts';

/** Exit statuses: 0 done, 1 failed or differences found, 2 wrong usage or settings. */
const failed = 1;
const wrongUsage = 2;

/** Commands that run until they are asked to stop, and write a log. */
const services: ReadonlySet<string> = new Set(['start', 'receiver', 'worker', 'console']);
const logTakenWithinMs = 1_000;

/** Runs the command line to its end and leaves its status in `process.exitCode`. */
export async function run(args: readonly string[]): Promise<void> {
  const program = buildProgram();
  noteTyped(args);
  prepare(program);
  const lost = lostOutput();
  let called = program;
  program.hook('preAction', (_, command) => {
    called = command;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) await report(error);
    if (error instanceof UsageError) say(seeHelp(called));
    process.exitCode = exitStatus(error);
  }
  // A pipe accepts output when its reader does. A service ends even if nobody reads its log.
  const output = Promise.all([written(process.stdout), written(process.stderr)]);
  await Promise.race([output, ...(services.has(called.name()) ? [delay(logTakenWithinMs)] : [])]);
  // Errors of writing come a turn later.
  await nextTurn();
  if (lost.reason === undefined || process.exitCode) return;
  say(`metersync: standard output: ${lost.reason}`);
  process.exitCode = failed;
}

/** Waits until all that was written to a stream is out, or lost. */
const written = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((done) => stream.write('', () => done()));

/** Notes why standard output was lost, unless its reader closed the pipe, as `| head` does. */
function lostOutput(): { readonly reason?: string } {
  const lost: { reason?: string } = {};
  process.stderr.on('error', () => {});
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code !== 'EPIPE') lost.reason = message;
  });
  return lost;
}

/** Has commander throw instead of ending the process, and escape the arguments that it quotes. */
function prepare(command: Command): void {
  command.exitOverride().configureOutput({ writeErr: (text) => say(...text.trimEnd().split('\n')) });
  for (const subcommand of command.commands) prepare(subcommand);
}

function exitStatus(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : wrongUsage;
  return isWrongUsage(error) ? wrongUsage : failed;
}

/** Recognized by name, because loading the modules that throw these would slow down every command. */
const wrongSettings = ['SettingsError', 'SecretsError'];

const isWrongUsage = (error: unknown): boolean =>
  error instanceof UsageError || (error instanceof Error && wrongSettings.includes(error.name));

const isEmbeddedError = (error: unknown): boolean => error instanceof Error && error.name === 'EmbeddedError';

/** Prints an error: our own messages keep their lines, and a message that may quote others stays one line. */
async function report(error: unknown): Promise<void> {
  const ours = isWrongUsage(error);
  const debug = process.env.LOG_LEVEL === 'debug';
  const text = `metersync: ${await explain(error, debug)}`;
  say(...(ours || debug || isEmbeddedError(error) ? text.split('\n') : [text]));
  const todo = await remedyOf(error);
  if (todo !== undefined) say(`What to do: ${todo}`);
}

/** What the error itself or the catalogue of failures says to do. Loaded on demand, as below. */
async function remedyOf(error: unknown): Promise<string | undefined> {
  if (error instanceof Error && 'todo' in error) return String(error.todo);
  const { Failure, failureTypes } = await import('../contract/failures.ts');
  return error instanceof Failure ? failureTypes[error.code].operator : undefined;
}

/** Returns an error's message; with LOG_LEVEL=debug its stack, unless the message is for people. */
async function explain(error: unknown, debug: boolean): Promise<string> {
  if (!(error instanceof Error)) return String(error);
  const forPeople = error instanceof CommandError || isEmbeddedError(error);
  if (forPeople || isWrongUsage(error)) return error.message;
  // Loaded on demand: most commands end without an error.
  const { withoutStatement } = await import('../db/connection/failures.ts');
  const { message, stack } = withoutStatement(error) as Error;
  return debug ? (stack ?? message) : message;
}
