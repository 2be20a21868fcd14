import type { RetryPolicy } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { sql } from 'drizzle-orm';
import PQueue from 'p-queue';
import { pino } from 'pino';
import { expect, onTestFinished } from 'vitest';
import { readCompany } from '../../activities/backfill/company.ts';
import type { CompanyKey } from '../../activities/backfill/cursor.ts';
import { reconcileCompany } from '../../activities/backfill/reconcile.ts';
import { createActivities } from '../../activities/create-activities.ts';
import type { ActivityDependencies } from '../../activities/dependencies.ts';
import { mapFailures } from '../../activities/map-failures.ts';
import { createNotifier } from '../../activities/notifier.ts';
import { activitySettings, readSettings } from '../../app/settings/settings.ts';
import { defaultEndpoints, type EndpointCatalogue } from '../../contract/endpoints.ts';
import {
  type CatchUpKind,
  type Queue,
  type ReconciledResource,
  reconciledResources,
} from '../../contract/names.ts';
import { activityPolicy } from '../../contract/retry-policy.ts';
import type { Warehouse } from '../../db/connection/connect.ts';
import { createFieldCatalogue, type FieldCatalogue } from '../../db/fields/field-catalogue.ts';
import type { Script } from '../service/scripted-server.ts';
import { setup } from '../service/setup.ts';
import { borrowWarehouse } from './warehouse.ts';

/** The activities of a worker, and the reads of one company, which a worker's activities do for many. */
export type SingleActivities = ReturnType<typeof activitiesAlone>;

export interface ActivitiesUnderTest {
  readonly activities: SingleActivities;
  readonly warehouse: Warehouse & { readonly url: string };
  /** How often the sweep was started. */
  sweeps(): number;
  /** Companies whose first backfill was requested. */
  readonly backfilled: string[];
  /** Errors of the field catalogue: none, unless a test expects and removes them. */
  readonly catalogueTroubles: unknown[];
  /** Lists the requests so far, each as its path and query without the version. */
  asked(): string[];
  /** Runs an activity as a worker would, with the `heartbeatDetails` of an earlier attempt. */
  run<I, O>(
    activity: (input: I) => Promise<O>,
    input: I,
    heartbeatDetails?: unknown,
    attempt?: number,
  ): Promise<O>;
  /** Runs an activity as a worker would within a workflow task. */
  runLocally<I, O>(activity: (input: I) => Promise<O>, input: I): Promise<O>;
}

/** Makes a worker's activities on an empty warehouse and a scripted service. */
export async function activitiesOn(
  script: Script,
  endpoints: Partial<EndpointCatalogue> = {},
  { companies = [], now }: { readonly companies?: readonly string[]; readonly now?: () => number } = {},
): Promise<ActivitiesUnderTest> {
  const warehouse = await borrowWarehouse();
  onTestFinished(() => warehouse.drop());
  const { client, server } = await setup(script, { endpoints: { ...defaultEndpoints, ...endpoints } });
  let sweeps = 0;
  const backfilled: string[] = [];
  const catalogueTroubles: unknown[] = [];
  const onError = (error: unknown): void => void catalogueTroubles.push(error);
  const catalogue = createFieldCatalogue({ db: warehouse.db, onError });
  onTestFinished(async () => {
    expect(catalogueTroubles).toEqual([]);
  });
  const activities = activitiesAlone(warehouse, catalogue, {
    service: client,
    apiVersion: 'v2.2',
    companies,
    startSweep: async () => {
      sweeps += 1;
    },
    backfillFirst: async (companyId) => void backfilled.push(companyId),
    ...(now === undefined ? {} : { now }),
  });
  return {
    activities,
    warehouse,
    sweeps: () => sweeps,
    backfilled,
    catalogueTroubles,
    asked: () =>
      server.asked.map(({ path, query }) => {
        const search = query.toString();
        return path.replace('/v2.2', '') + (search === '' ? '' : `?${search}`);
      }),
    run: async (activity, input, heartbeatDetails, attempt) =>
      await activityEnvironment(heartbeatDetails, attempt).run(activity, input),
    runLocally: async (activity, input) =>
      await new MockActivityEnvironment({ isLocal: true }, { logger: new DefaultLogger('ERROR') }).run(
        activity,
        input,
      ),
  };
}

/** The queues of owners, as the sweep names them. */
export const queues = (kind: CatchUpKind, owners: readonly string[]): Queue[] =>
  owners.map((owner) => ({ kind, owner }));

/** Counts the events so far by their outcome. */
export async function outcomes({ warehouse }: ActivitiesUnderTest): Promise<Record<string, number>> {
  const { rows } = await warehouse.db.execute<{ outcome: string; n: number }>(
    sql`select outcome, count(*)::int as n from metersync.events group by outcome`,
  );
  return Object.fromEntries(rows.map(({ outcome, n }) => [outcome, n]));
}

/** Makes a worker's activities with the default settings and without a Temporal server. */
export function activitiesAlone(
  warehouse: Warehouse,
  catalogue: FieldCatalogue,
  own: Pick<ActivityDependencies, 'service' | 'apiVersion'> & Partial<ActivityDependencies>,
) {
  const deps: ActivityDependencies = {
    ...activitySettings(readSettings({})),
    warehouse,
    catchingUp: warehouse,
    checks: warehouse,
    watching: warehouse,
    catalogue,
    startSweep: async () => {},
    backfillFirst: async () => {},
    howEnded: async () => 'completed',
    readHealth: async () => ({ warehouse: nobody, temporal: nobody, schema: null }),
    notifier: createNotifier({ target: undefined, now: Date.now }),
    wallClock: Date.now,
    now: () => performance.now(),
    log: pino({ level: 'silent' }),
    ...own,
  };
  const turns = new PQueue({ concurrency: 1 });
  return {
    ...createActivities(deps),
    readCompany: mapFailures((company: CompanyKey) => readCompany(deps, company, turns)),
    /** Reconciles some resources of a company. Returns those that other companies can skip. */
    reconcileCompany: mapFailures(
      async ({
        resources = reconciledResources,
        ...company
      }: CompanyKey & { resources?: readonly ReconciledResource[] }) => {
        const skipped = new Set(reconciledResources.filter((resource) => !resources.includes(resource)));
        await reconcileCompany(deps, company, skipped);
        return { unsupportedFilters: resources.filter((resource) => skipped.has(resource)) };
      },
    ),
  };
}

const nobody = { away: 'nobody asks', todo: 'Nothing.' };

/** Makes the environment in which an activity runs without a worker. Failed activities are not logged. */
export function activityEnvironment(
  heartbeatDetails?: unknown,
  attempt = 1,
  retryPolicy?: RetryPolicy,
): MockActivityEnvironment {
  const heartbeatTimeoutMs = activityPolicy.reading.heartbeatTimeout;
  const info = {
    attempt,
    heartbeatTimeoutMs,
    ...(retryPolicy === undefined ? {} : { retryPolicy }),
    ...(heartbeatDetails === undefined ? {} : { heartbeatDetails: { cursor: heartbeatDetails, attempt: 1 } }),
  };
  return new MockActivityEnvironment(info, { logger: new DefaultLogger('ERROR') });
}
