import type { Pool } from 'pg';
import { fromText, type ServiceClock, toText } from '../time.ts';
import type { Disturbance } from './disturbance.ts';
import { type Endpoint, listEndpoints } from './endpoints.ts';
import { createLane, type Lane } from './lane.ts';
import { claimDue, createLedger, nextDue, releaseClaims, unclaim } from './ledger.ts';
import { type Allows, connectorTo, createSender, type Sender } from './sender.ts';

export interface DispatcherDependencies {
  readonly pool: Pool;
  readonly clock: ServiceClock;
  readonly concurrency: number;
  readonly headerPrefix: string;
  /** Where messages may be sent. */
  readonly allows: Allows;
  readonly disturbance: (endpointId: string) => Disturbance;
  readonly signingTime: () => Date;
  readonly retryDelay: (number: number) => number | undefined;
  readonly report: (error: Error) => void;
}

/** Sends due deliveries to the active endpoints. */
export interface Dispatcher {
  /** Reads the endpoints again, after one was added, changed or removed. */
  reload(): Promise<void>;
  /** Looks for due deliveries. Called after a commit or a change of the clock. */
  wake(): void;
  /** Attempts under way or not yet recorded, second copies included. */
  busy(): number;
  close(): Promise<void>;
}

interface Route {
  readonly endpoint: Endpoint;
  readonly lane: Lane;
  readonly sender: Sender;
  timer: NodeJS.Timeout | undefined;
}

/** The longest sleep of a timer, which then looks at the service's clock again. */
const timerMaxMs = 60_000;
/** How long closing waits for answers before it cuts connections. */
const closeGraceMs = 2_000;
/** Wait after a failure of the database, before the next attempt. */
const retryMs = 500;

export async function createDispatcher(dependencies: DispatcherDependencies): Promise<Dispatcher> {
  const { pool, clock, report } = dependencies;
  const routes = new Map<string, Route>();
  /** Routes that start no further attempts; those in flight have their 15 seconds (service.md 4.1.2). */
  const ending = new Map<Route, Promise<void>>();
  const connect = connectorTo(dependencies.allows);
  const ledger = createLedger({ pool, report, disabled: () => void reload().catch(report) });

  const wake = () => {
    for (const route of routes.values()) route.lane.wake();
  };

  const sleepUntilDue = async (route: Route) => {
    clearTimeout(route.timer);
    const due = await nextDue(pool, route.endpoint.id);
    if (due === undefined || routes.get(route.endpoint.id) !== route) return;
    const wait = Math.min(clock.millisUntil(fromText(due)), timerMaxMs);
    clearTimeout(route.timer);
    route.timer = setTimeout(() => route.lane.wake(), wait);
  };

  const failed = (route: Route) => (error: unknown) => {
    report(error instanceof Error ? error : new Error(String(error)));
    clearTimeout(route.timer);
    route.timer = setTimeout(() => route.lane.wake(), retryMs);
  };

  const open = (endpoint: Endpoint): Route => {
    const secrets = () => [endpoint.secret, ...stillValid(endpoint, clock.now())];
    const { concurrency, headerPrefix, signingTime, retryDelay } = dependencies;
    const { url } = endpoint;
    const sender = createSender({ url, secrets, connections: concurrency, headerPrefix, connect });
    const lane = createLane({
      endpointId: endpoint.id,
      sender,
      concurrency,
      claim: (limit) => claimDue(pool, endpoint.id, toText(clock.now()), limit),
      disturbance: () => dependencies.disturbance(endpoint.id),
      now: clock.now,
      signingTime,
      retryDelay,
      record: async (outcome) => {
        await ledger.add(outcome);
        // The route of this lane is closing, so another route makes the next attempt.
        if (ending.has(route)) wake();
      },
      idle: () => void sleepUntilDue(route).catch((error: unknown) => failed(route)(error)),
      failed: (error) => failed(route)(error),
    });
    const route: Route = { endpoint, lane, sender, timer: undefined };
    return route;
  };

  const end = async (route: Route) => {
    clearTimeout(route.timer);
    const { unsent, ended } = route.lane.stop();
    await unsent.then((claims) => unclaim(pool, claims)).catch(report);
    wake();
    await ended;
    await route.sender.close();
    ending.delete(route);
  };
  const shut = (route: Route) => ending.set(route, end(route).catch(report));

  await releaseClaims(pool);
  const reload = async () => {
    const active = (await listEndpoints(pool)).filter(({ state }) => state === 'active');
    const kept = new Set(
      active.filter((one) => sameRoute(routes.get(one.id)?.endpoint, one)).map(({ id }) => id),
    );
    for (const [id, route] of routes) {
      if (kept.has(id)) continue;
      routes.delete(id);
      shut(route);
    }
    for (const endpoint of active) if (!kept.has(endpoint.id)) routes.set(endpoint.id, open(endpoint));
    wake();
  };
  await reload();

  return {
    reload,
    wake,
    busy: () =>
      [...routes.values(), ...ending.keys()].reduce((sum, { lane }) => sum + lane.inFlight(), ledger.open()),
    async close() {
      for (const route of routes.values()) shut(route);
      routes.clear();
      const cut = () => {
        for (const { sender } of ending.keys()) void sender.close();
      };
      const grace = setTimeout(cut, closeGraceMs);
      await Promise.all(ending.values());
      clearTimeout(grace);
      await ledger.close();
    },
  };
}

const sameRoute = (before: Endpoint | undefined, now: Endpoint): boolean =>
  before !== undefined && JSON.stringify(before) === JSON.stringify(now);

function stillValid({ previousSecret, previousSecretUntil }: Endpoint, now: bigint): string[] {
  if (previousSecret === null || previousSecretUntil === null) return [];
  return fromText(previousSecretUntil) > now ? [previousSecret] : [];
}
