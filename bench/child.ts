import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** A module with which the commands of metersync begin, too. */
const quickStart = new URL('../cli/quick-start.ts', import.meta.url).href;

/** Time that a child has to end after it was asked to. Then it is killed. */
const stopWithinMs = 15_000;

/** A process that works for the bench, so that each part has its own event loop. */
export interface Child<C extends Calls> {
  readonly pid: number;
  /** Rejects with the child's message if the call fails or the child ends. */
  call<K extends keyof C & string>(name: K, input: Parameters<C[K]>[0]): Promise<Awaited<ReturnType<C[K]>>>;
  /** Asks the child to clean up and end. */
  stop(): Promise<void>;
}

/**
 * Starts a script of the bench whose last statement is `serve(...)`. It ends with this process.
 * @param script path relative to `bench/`
 * @param output file to which its output is added
 */
export function startChild<C extends Calls>(script: string, output: string): Child<C> {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const log = openSync(output, 'a');
  const child = fork(path, {
    execArgv: ['--import', quickStart],
    serialization: 'advanced',
    stdio: ['ignore', log, 'inherit', 'ipc'],
  });
  closeSync(log);
  const waiting = new Map<number, PromiseWithResolvers<never>>();
  let asked = 0;
  child.on('message', (answer: Answer) => {
    const call = waiting.get(answer.id);
    waiting.delete(answer.id);
    if ('error' in answer) call?.reject(new Error(`${script}: ${answer.error}`));
    else call?.resolve(answer.value);
  });
  child.on('exit', (code, signal) => {
    for (const call of waiting.values()) call.reject(new Error(`${script} ended (${signal ?? code})`));
    waiting.clear();
  });
  return {
    pid: child.pid ?? 0,
    call: async (name, input) => {
      const call = Promise.withResolvers<never>();
      const request: Request = { id: asked, name, input };
      asked += 1;
      // Throws if the input cannot be sent; then nothing waits for an answer.
      child.send(request, (error) => error && call.reject(error));
      waiting.set(request.id, call);
      return await call.promise;
    },
    stop: () => stopChild(child),
  };
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  // The child cleans up and ends when its channel closes.
  if (child.connected) child.disconnect();
  const ended = await Promise.race([exit.then(() => true), delay(stopWithinMs, false, { ref: false })]);
  if (ended) return;
  child.kill('SIGKILL');
  await exit;
}

/** The calls of a child. Each takes one value and returns one value. */
// biome-ignore lint/suspicious/noExplicitAny: the table is only a bound; every call site is typed by its own table
export type Calls = Record<string, (input: any) => unknown>;

interface Request {
  readonly id: number;
  readonly name: string;
  readonly input: unknown;
}
type Answer =
  | { readonly id: number; readonly value: never }
  | { readonly id: number; readonly error: string };

/**
 * Answers the calls of the process that forked this one, until `stop` or that process closes the channel.
 * Then awaits `cleanUp`.
 */
export function serve(calls: Calls, cleanUp: () => Promise<void> = async () => {}): void {
  process.on('message', async (request: Request) => {
    const answer = await answerTo(calls, request);
    if (process.connected) process.send?.(answer);
  });
  process.on('disconnect', () => {
    cleanUp().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  });
  // Ctrl-C reaches every process of the terminal, but the parent decides when this process ends.
  process.on('SIGINT', () => {});
}

async function answerTo(calls: Calls, { id, name, input }: Request): Promise<Answer> {
  try {
    const call = calls[name];
    if (call === undefined) throw new Error(`there is no call ${name}`);
    return { id, value: (await call(input)) as never };
  } catch (error) {
    return { id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
