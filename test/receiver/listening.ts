import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Log } from '../../contract/log.ts';
import { type MonotonicClock, systemClock } from '../../receiver/clock.ts';
import { createGroupCommit, type GroupCommit, type GroupCommitLimits } from '../../receiver/group-commit.ts';
import { type HttpLimits, httpLimits } from '../../receiver/http-limits.ts';
import { fixedSecrets, type SecretSource } from '../../receiver/secrets.ts';
import { buildReceiver, type Receiver } from '../../receiver/server.ts';
import type { Start, StartRequest } from '../../receiver/starts.ts';
import { createVerifier, headerFamilies } from '../../receiver/verify.ts';
import { exchange, type RawAnswer, type RawRequest } from './raw-http.ts';
import { frozenNow, golden, type Message, signedHeaders } from './signing.ts';

/** Records the log lines. */
export class RecordingLog implements Log {
  readonly lines: { level: string; fields: object; message: string }[] = [];
  debug = (fields: object, message: string) => void this.lines.push({ level: 'debug', fields, message });
  info = (fields: object, message: string) => void this.lines.push({ level: 'info', fields, message });
  warn = (fields: object, message: string) => void this.lines.push({ level: 'warn', fields, message });
  error = (fields: object, message: string) => void this.lines.push({ level: 'error', fields, message });
}

export interface Listening {
  readonly receiver: Receiver;
  readonly commit: GroupCommit;
  readonly port: number;
  readonly log: RecordingLog;
  /** Every attempt to start a group, in order. */
  readonly starts: StartRequest[];
  /** Returns the durable bodies by event id. */
  bodies(): Map<string, string | undefined>;
  /** Sends one delivery, signed under the golden secret unless it has its own headers. */
  deliver(message?: Message, request?: RawRequest): Promise<RawAnswer>;
}

/** Starts a complete receiver on a free port, with the test's start of workflows. It ends with the test. */
export async function listening({
  secrets = fixedSecrets([golden.secret]),
  start = async () => {},
  now = () => frozenNow,
  clock = systemClock,
  socketClock = clock,
  limits = {},
  groupLimits,
  ready = () => true,
  headerPrefix,
}: {
  secrets?: SecretSource;
  start?: Start;
  now?: () => number;
  /** The clock of the group commit. */
  clock?: MonotonicClock;
  /** The clock of the socket bounds and request arrivals; `clock` when not given. */
  socketClock?: MonotonicClock;
  limits?: Partial<HttpLimits>;
  groupLimits?: GroupCommitLimits;
  ready?: () => boolean | Promise<boolean>;
  headerPrefix?: string;
} = {}): Promise<Listening> {
  const log = new RecordingLog();
  const starts: StartRequest[] = [];
  const durable = new Map<string, string | undefined>();
  const commit = createGroupCommit({
    // Deliveries carry the arrival time of the socket clock, so the group commit has to tell the same time.
    clock: {
      now: () => socketClock.now(),
      after: (ms, callback) => clock.after(ms, callback),
      soon: (callback) => clock.soon(callback),
    },
    log,
    ...(groupLimits === undefined ? {} : { limits: groupLimits }),
    start: async (request) => {
      starts.push(request);
      await start(request);
      for (const event of request.group.events) durable.set(event.id, event.body);
    },
  });
  const receiver = buildReceiver({
    verify: createVerifier({ secrets, families: headerFamilies(headerPrefix), now, toleranceSeconds: 300 }),
    accept: (event, arrivedAt) => commit.accept(event, arrivedAt),
    drain: () => commit.drain(),
    ready,
    now,
    clock: socketClock,
    log,
    limits: { ...httpLimits, ...limits },
  });
  await receiver.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => receiver.close());
  const port = (receiver.server.address() as AddressInfo).port;
  return {
    receiver,
    commit,
    port,
    log,
    starts,
    bodies: () => durable,
    deliver: (message = {}, request = {}) =>
      exchange(port, { headers: signedHeaders(message), body: message.body ?? golden.body, ...request }),
  };
}
