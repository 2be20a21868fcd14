import { Readable, Writable } from 'node:stream';
import { run } from '../../cli/run.ts';

export interface CommandOptions {
  /** The complete environment except PATH and HOME: none of the developer's own settings leaks in. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Its standard input; empty when absent. */
  readonly input?: string;
  /** Whether nobody reads its output. */
  readonly stalled?: boolean;
}

export interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

const signals = ['SIGINT', 'SIGTERM'] as const;

/** The running command. The next command waits for it, because both share this process. */
let running: Promise<unknown> = Promise.resolve();

/** Runs `metersync ARGS` in this process, which takes a tenth of a separate one's processor time. */
export function runCommand(args: readonly string[], options: CommandOptions = {}): Promise<Outcome> {
  const outcome = running.then(() => runAlone(args, options));
  running = outcome.catch(() => {});
  return outcome;
}

async function runAlone(args: readonly string[], options: CommandOptions): Promise<Outcome> {
  const [stdout, stderr] = [collect(options.stalled), collect()];
  const restores = [
    // First, because only this can fail.
    replaceFolder(options.cwd),
    replaceEnvironment(options.env ?? {}),
    replaceStream('stdin', Readable.from(options.input ?? '')),
    replaceStream('stdout', stdout.stream),
    replaceStream('stderr', stderr.stream),
    forgetStatus(),
    forgetListeners(),
  ];
  try {
    await run(args);
    return { status: Number(process.exitCode ?? 0), stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    for (const restore of restores) restore();
  }
}

/** Makes a stream that keeps what is written, a turn later, as a pipe. `text` omits the last line end. */
function collect(stalled = false): { readonly stream: Writable; text(): string } {
  const pieces: Buffer[] = [];
  const stream = new Writable({
    write: (piece: Buffer, _, done) => {
      if (stalled) return;
      setImmediate(() => {
        pieces.push(piece);
        done();
      });
    },
  });
  return { stream, text: () => Buffer.concat(pieces).toString('utf8').replace(/\n$/, '') };
}

/** Changes the variables in `process.env` one by one, because native code reads them, too. */
function replaceEnvironment(env: Readonly<Record<string, string>>): () => void {
  const before = { ...process.env };
  const set = (variables: NodeJS.ProcessEnv) => {
    for (const name of Object.keys(process.env)) delete process.env[name];
    Object.assign(process.env, variables);
  };
  const { PATH = '', HOME = '' } = before;
  set({ PATH, HOME, ...env });
  return () => set(before);
}

function replaceFolder(folder: string | undefined): () => void {
  const before = process.cwd();
  if (folder !== undefined) process.chdir(folder);
  return () => process.chdir(before);
}

function replaceStream(name: 'stdin' | 'stdout' | 'stderr', stream: Readable | Writable): () => void {
  const before = Object.getOwnPropertyDescriptor(process, name) as PropertyDescriptor;
  Object.defineProperty(process, name, { ...before, get: () => stream });
  return () => Object.defineProperty(process, name, before);
}

function forgetStatus(): () => void {
  const before = process.exitCode;
  process.exitCode = undefined;
  return () => {
    process.exitCode = before;
  };
}

/** Removes listeners for signals that a failed command leaves because it expects its process to end. */
function forgetListeners(): () => void {
  const before = signals.map((signal) => process.listeners(signal));
  return () => {
    for (const [at, signal] of signals.entries()) {
      for (const listener of process.listeners(signal)) {
        if (!before[at]?.includes(listener)) process.off(signal, listener);
      }
    }
  };
}
