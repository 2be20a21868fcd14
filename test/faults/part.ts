import { spawnSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';

/** One process of a part, from its start to its end. */
export interface Life {
  readonly pid: number;
  /** Resolves once the process serves. */
  readonly ready: Promise<unknown>;
  /** Resolves with a description of how the process ended. */
  readonly ended: Promise<string>;
}

/** A process that faults hit, and that is restarted as a supervisor would do it. */
export interface Part {
  readonly name: string;
  readonly pid: number;
  readonly kills: number;
  /** How the process ended each time that it was not killed. It was started again afterwards. */
  readonly endedByItself: readonly string[];
  /** Starts the process and waits until it serves. If the process ends before that, it is started again. */
  start(): Promise<void>;
  /** Sends kill -9 only to the main process of a server, and resolves once that process has ended. */
  kill(): Promise<void>;
  /** Sends a signal that may end the process. The process then stays down until it is started. */
  stop(signal: NodeJS.Signals): Promise<void>;
  /** `pause` sends SIGSTOP to the process and all its children, and `resume` sends SIGCONT. */
  pause(): void;
  resume(): void;
}

/** A server that was killed may need several attempts to start, until its remaining processes have ended. */
const triesMax = 120;
const betweenTriesMs = 500;

export function createPart(name: string, launch: () => Life): Part {
  const endedByItself: string[] = [];
  let life: Life | undefined;
  let wanted = false;
  let kills = 0;

  const bringUp = async (): Promise<void> => {
    for (let tries = 1; wanted; tries++) {
      const mine = launch();
      life = mine;
      // If the process ends before it serves, how it ended says more than the time-out.
      const served = mine.ready.then(
        () => undefined,
        () => mine.ended,
      );
      const how = await Promise.race([served, mine.ended]);
      if (how === undefined) {
        void mine.ended.then((ending) => comeBack(mine, ending));
        return;
      }
      if (tries >= triesMax)
        throw new Error(`${name} does not start: it ended ${tries} times, at last by ${how}`);
      await delay(betweenTriesMs);
    }
  };
  const comeBack = (mine: Life, ending: string) => {
    if (!wanted || life !== mine) return;
    endedByItself.push(ending);
    bringUp().catch((error: unknown) => endedByItself.push(String(error)));
  };
  const current = (): Life => {
    if (life === undefined) throw new Error(`${name} was never started`);
    return life;
  };
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    wanted = false;
    if (life === undefined) return;
    signalIfThere(life.pid, signal);
    await life.ended;
  };

  return {
    name,
    get pid() {
      return current().pid;
    },
    get kills() {
      return kills;
    },
    endedByItself,
    start: async () => {
      if (wanted) return;
      wanted = true;
      await bringUp();
    },
    stop,
    kill: async () => {
      if (wanted) kills += 1;
      await stop('SIGKILL');
    },
    pause: () => {
      for (const pid of tree(current().pid)) signalIfThere(pid, 'SIGSTOP');
    },
    resume: () => {
      for (const pid of tree(current().pid)) signalIfThere(pid, 'SIGCONT');
    },
  };
}

/** Combines several parts into one, which start and end together. */
export function together(name: string, parts: readonly Part[]): Part {
  const each = async (act: (part: Part) => Promise<void>): Promise<void> => {
    await Promise.all(parts.map(act));
  };
  return {
    name,
    get pid() {
      return parts[0]?.pid ?? 0;
    },
    get kills() {
      return parts.reduce((sum, { kills }) => sum + kills, 0);
    },
    get endedByItself() {
      return parts.flatMap(({ endedByItself }) => endedByItself);
    },
    start: () => each((part) => part.start()),
    kill: () => each((part) => part.kill()),
    stop: (signal) => each((part) => part.stop(signal)),
    pause: () => {
      for (const part of parts) part.pause();
    },
    resume: () => {
      for (const part of parts) part.resume();
    },
  };
}

function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Lists a process and all its descendants, because Postgres serves each connection with its own process. */
function tree(root: number): number[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  const all = stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number) as [number, number]);
  const found = [root];
  for (const parent of found) found.push(...all.filter(([, ppid]) => ppid === parent).map(([pid]) => pid));
  return found;
}
