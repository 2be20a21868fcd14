import { randomBytes, randomUUID } from 'node:crypto';
import { type ApiKeys, type Organization, readApiKeys } from './api/keys.ts';
import { createPageCache, type PageCache } from './api/page-cache.ts';
import { createLive, type Live } from './changes/live.ts';
import { type ChangeService, createChangeService } from './changes/service.ts';
import { createClock, createRealTime, type ServiceClock } from './clock.ts';
import { readSetting, writeSetting } from './database/settings.ts';
import type { Stores } from './database/stores.ts';
import { allowDestinations } from './delivery/destination.ts';
import { createDispatcher, type Dispatcher } from './delivery/dispatcher.ts';
import { type Disturbances, openDisturbances } from './delivery/disturbances.ts';
import { retryDelaySeconds } from './delivery/schedule.ts';
import { createFaults, type Faults } from './faults/faults.ts';
import type { SandboxOptions } from './options.ts';

/** Which time signatures use: real time, unless a test asks for the service's own time. */
export interface Signing {
  mode: 'real' | 'virtual';
}

/** The connected parts of a sandbox, before it listens. */
export interface Parts {
  readonly stores: Stores;
  readonly clock: ServiceClock;
  readonly signing: Signing;
  readonly cache: PageCache;
  readonly disturbances: Disturbances;
  readonly faults: Faults;
  readonly dispatcher: Dispatcher;
  readonly changes: ChangeService;
  readonly live: Live;
  readonly organizations: Organization[];
  readonly keys: ApiKeys;
  readonly seed: number;
  readonly report: (error: Error) => void;
}

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

export const newMessageId = (): string => `msg_${randomBytes(14).toString('hex')}`;

const settingOfClock = 'clockOffsetMicros';

/** Stores the offset of the clock, so that a restart does not set it back. */
export const keepClock = ({ stores, clock }: Pick<Parts, 'stores' | 'clock'>): Promise<void> =>
  writeSetting(stores.pool, settingOfClock, clock.offset().toString());

export async function createParts(
  stores: Stores,
  organizations: Organization[],
  options: SandboxOptions,
  report: (error: Error) => void,
): Promise<Parts> {
  const { pool } = stores;
  const seed = options.seed ?? 1;
  const offset = BigInt((await readSetting<string>(pool, settingOfClock)) ?? '0');
  const clock = createClock(options.now ?? createRealTime(), offset, options.timeScale);
  const signing: Signing = { mode: 'real' };
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
    newMessageId,
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
