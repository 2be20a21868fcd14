import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Answer, CallOf, Calls, Request } from './serve.ts';

/** A module with which the commands of metersync begin, too. */
const quickStart = new URL('../../cli/quick-start.ts', import.meta.url).href;

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
 * @param options.output file to which its output is added
 * @param options.profileDir folder for a CPU profile that it writes at its end
 */
export function startChild<C extends Calls>(
  script: string,
  { output, profileDir }: { readonly output: string; readonly profileDir?: string | undefined },
): Child<C> {
  const path = fileURLToPath(new URL(`../${script}`, import.meta.url));
  const log = openSync(output, 'a');
  const profile =
    profileDir === undefined
      ? []
      : [
          '--cpu-prof',
          `--cpu-prof-dir=${profileDir}`,
          `--cpu-prof-name=${script.replace(/\W+/g, '-')}-${process.pid}-${Date.now()}.cpuprofile`,
        ];
  const child = fork(path, {
    execArgv: ['--import', quickStart, ...profile],
    serialization: 'advanced',
    stdio: ['ignore', log, 'inherit', 'ipc'],
  });
  closeSync(log);
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
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
      const call = Promise.withResolvers<unknown>();
      const request: Request = { id: asked, name, input };
      asked += 1;
      // Throws if the input cannot be sent; then nothing waits for an answer.
      child.send(request, (error) => error && call.reject(error));
      waiting.set(request.id, call);
      return (await call.promise) as CallOf<C, typeof name>;
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
