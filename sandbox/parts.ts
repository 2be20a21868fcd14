import { randomBytes, randomUUID } from 'node:crypto';
import { createFaults } from './api/faults.ts';
import { createPageCache } from './api/page-cache.ts';
import { createChangeService, createLive } from './changes/service.ts';
import { readSetting, type Stores, writeSetting } from './database.ts';
import { createDispatcher } from './delivery/dispatcher.ts';
import { openDisturbances } from './delivery/disturbance.ts';
import { newSigningSecret } from './delivery/endpoints.ts';
import { retryDelaySeconds } from './delivery/lane.ts';
import { allowDestinations } from './delivery/sender.ts';
import { type Organization, readApiKeys } from './organizations.ts';
import { createClock, createRealTime, type RealTime, type ServiceClock } from './time.ts';

/** The connected parts of a sandbox, before it listens. */
export type Parts = Awaited<ReturnType<typeof createParts>>;

/** Memory for pages that are ready to be sent. */
const pageCacheBytes = 256 * 1024 * 1024;
/** The end of generated data does not depend on today, so that its days and ids are always the same. */
const defaultUntil = '2026-07-01';

/** The last day of generated history, and whether it is today, by UTC. */
export function historyEnd({ until = defaultUntil }: SandboxOptions): {
  readonly until: string;
  readonly untilToday: boolean;
} {
  const untilToday = until === 'today';
  return { until: untilToday ? new Date().toISOString().slice(0, 10) : until, untilToday };
}

/** Identifiers and secrets that nobody can guess. */
export const mint = {
  newEndpointId: () => `ep_${randomBytes(14).toString('hex')}`,
  newMessageId: () => `msg_${randomBytes(14).toString('hex')}`,
  newSecret: newSigningSecret,
  newToken: () => randomBytes(24).toString('base64url'),
};

const settingOfClock = 'clockOffsetMicros';

/** Stores the offset of the clock, so that a restart does not set it back. */
export const keepClock = ({
  stores,
  clock,
}: {
  readonly stores: Stores;
  readonly clock: ServiceClock;
}): Promise<void> => writeSetting(stores.pool, settingOfClock, clock.offset().toString());

export async function createParts(
  stores: Stores,
  organizations: Organization[],
  options: SandboxOptions,
  report: (error: Error) => void,
) {
  const { pool } = stores;
  const seed = options.seed ?? 1;
  const offset = BigInt((await readSetting<string>(pool, settingOfClock)) ?? '0');
  const clock = createClock(options.now ?? createRealTime(), offset, options.timeScale);
  /** Which time signatures use: real time, unless a test asks for the service's own time. */
  const signing: { mode: 'real' | 'virtual' } = { mode: 'real' };
  const cache = createPageCache(pageCacheBytes);
  const disturbances = await openDisturbances(pool);
  const faults = createFaults(options.databaseUrl, Date.now, report);
  const dispatcher = await createDispatcher({
    pool: stores.deliveryPool,
    clock,
    concurrency: options.deliveryConcurrency ?? 16,
    headerPrefix: options.headerPrefix ?? 'webhook',
    allows: allowDestinations(options.deliverTo),
    disturbance: disturbances.of,
    signingTime: () => new Date(signing.mode === 'real' ? Date.now() : Number(clock.now() / 1000n)),
    retryDelay: (number) => retryDelaySeconds(number, options.retryJitter ?? 0, Math.random()),
    report,
  });
  const changes = createChangeService({
    pool,
    clock,
    delays: disturbances.delays,
    newId: randomUUID,
    newMessageId: mint.newMessageId,
    until: historyEnd(options).until,
    committed: ({ companyIds, events }) => {
      cache.changed(companyIds);
      if (events.length > 0) dispatcher.wake();
    },
  });
  const keys = await readApiKeys(pool);
  const live = createLive(changes, seed, report);
  return {
    stores,
    clock,
    signing,
    cache,
    disturbances,
    faults,
    dispatcher,
    changes,
    live,
    organizations,
    keys,
    seed,
    report,
  };
}

/** Stops the parts that make changes and send messages, and then the parts that those need. */
export async function closeParts(parts: Parts): Promise<void> {
  const { live, dispatcher, faults, stores, report } = parts;
  await live.stop();
  await dispatcher.close();
  // A clock that runs faster or slower than real time has changed its offset since it was last stored.
  await keepClock(parts).catch(report);
  await faults.close();
  await stores.close();
}

export interface SandboxLogEntry {
  readonly level: 'info' | 'error';
  readonly message: string;
  readonly error?: Error;
}

export interface SandboxOptions {
  /** The sandbox's own database: empty, or left by an earlier start. */
  readonly databaseUrl: string;
  readonly host?: string;
  /** 0 takes a free port. */
  readonly port?: number;
  /** Determines every generated id, value and time. Keys are random. */
  readonly seed?: number;
  readonly organizations?: number;
  readonly companies?: number;
  /** Documents of each company. */
  readonly documents?: number;
  /** Days of interval data before `until`. */
  readonly intervalDays?: number;
  /** Last day of the generated history: `YYYY-MM-DD` or `today`. */
  readonly until?: string;
  /** Share of generated bills that are superseded, sent twice, overlapping, …: 0 to 1. */
  readonly irregular?: number;
  /** One more key of the first organization. */
  readonly apiKey?: string;
  /** Deliveries in flight for each endpoint. */
  readonly deliveryConcurrency?: number;
  /** Networks, such as `172.16.0.0/12`, to which messages may go besides this machine and public ones. */
  readonly deliverTo?: readonly string[];
  /** service.md 5.3: the vendor's prefix of the signature headers. */
  readonly headerPrefix?: string;
  /** Real time in microseconds. */
  readonly now?: RealTime;
  /** How many times faster than real time the service's clock runs. */
  readonly timeScale?: number;
  /** Spread of retry delays: 0.2 is ±20 %. */
  readonly retryJitter?: number;
  /** Number of random changes per minute, from the start on. */
  readonly live?: number;
  readonly log?: (entry: SandboxLogEntry) => void;
}
