import type { Logger } from 'pino';
import { counted } from '../../contract/words.ts';
import type { Database } from '../../db/connection/connect.ts';
import { recordsWaiting } from '../../db/read/waiting.ts';

interface Recorded {
  readonly fresh: number;
  readonly dead: number;
}

export interface EventsLog {
  add(recorded: Recorded): void;
  stop(): Promise<void>;
}

/** Logs every `everyMs` how many events were taken, if any, and how many records wait for a read. */
export function logEvents(options: { db: Database; log: Logger; everyMs: number }): EventsLog {
  const { db, log, everyMs } = options;
  let since = { fresh: 0, dead: 0 };
  const report = async () => {
    if (since.fresh === 0) return;
    const counts = since;
    since = { fresh: 0, dead: 0 };
    try {
      log.info(describeTaken(counts, await recordsWaiting(db, waitingMax)));
    } catch (error) {
      log.debug({ err: error }, 'waiting records could not be counted');
    }
  };
  const timer = setInterval(report, everyMs).unref();
  return {
    add: ({ fresh, dead }) => {
      since = { fresh: since.fresh + fresh, dead: since.dead + dead };
    },
    stop: async () => {
      clearInterval(timer);
      await report();
    },
  };
}

const waitingMax = 1_000;

/** `12 events recorded, all settled`. */
export function describeTaken({ fresh, dead }: Recorded, waiting: number): string {
  const taken = `${counted(fresh, 'event')} recorded${dead === 0 ? '' : `, ${dead} of them dead`}`;
  if (waiting === 0) return `${taken}, all settled`;
  const many =
    waiting > waitingMax ? `more than ${counted(waitingMax, 'record')}` : counted(waiting, 'record');
  return `${taken}, ${many} to be read again`;
}
