import { spawnSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';

/** One life of a part: a process from its start to its end. */
export interface Life {
  readonly pid: number;
  /** Resolves when it serves. */
  readonly ready: Promise<unknown>;
  /** Resolves, with how it ended, when it is gone. */
  readonly ended: Promise<string>;
}

/** A process that faults are done to, and that comes back as under any supervisor. */
export interface Part {
  readonly name: string;
  readonly pid: number;
  readonly kills: number;
  /** How it ended when nobody had killed it. It was started again then. */
  readonly endedByItself: readonly string[];
  /** Starts it and waits until it serves, however often it has to be started for that. */
  start(): Promise<void>;
  /** kill -9, of a server's main process alone; resolves when that is gone. */
  kill(): Promise<void>;
  /** A signal that it may answer by ending; then it stays down until it is started. */
  stop(signal: NodeJS.Signals): Promise<void>;
  /** SIGSTOP and SIGCONT, with all of its processes. */
  pause(): void;
  resume(): void;
}

/** A server that was killed may need some tries, as long as what it left behind ends. */
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
      // When it ends before it serves, its end says more than what waited for it.
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

function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** A process and all below it: Postgres serves each connection by a process of its own. */
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
