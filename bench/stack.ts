import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import pg from 'pg';
import { retries } from '../app/temporal/client.ts';
import type { TemporalPlace } from '../app/temporal/place.ts';
import { workflowBundle } from '../app/temporal/workflow-bundle.ts';
import { connectWarehouse } from '../db/connection/connect.ts';
import { migrateWarehouse } from '../db/migrate/migrate.ts';
import { startEmbedded } from '../embedded/start.ts';

/** How long Temporal's parts may take to notice a new namespace. */
const namespaceWithinMs = 20_000;

export type NamedPlace = TemporalPlace & { readonly address: string; readonly namespace: string };

/** Real servers for one run of the bench; their data is removed after it. */
export interface BenchStack {
  /** Folder of the servers' data and of the logs. */
  readonly dir: string;
  /** Path of the workflows as one script, bundled once for every worker of the run. */
  workflowBundle(): Promise<string>;
  /** Makes an empty database. */
  database(name: string): Promise<string>;
  /** Returns a database's URL as superuser, who may see plans and make the tables of a peer. */
  asSuperuser(url: string): string;
  /** Makes a migrated warehouse in its own database. */
  warehouse(): Promise<string>;
  /** Makes a Temporal namespace in which nothing was ever started. */
  namespace(): Promise<NamedPlace>;
  stop(): Promise<void>;
}

/**
 * Starts Postgres and Temporal in a temporary folder. Temporal stores its data in a file (WAL,
 * synchronous=FULL).
 * @param temporalAddress host and port of another Temporal, which is used instead
 */
export async function startBenchStack(temporalAddress?: string): Promise<BenchStack> {
  const dir = await mkdtemp(join(tmpdir(), 'metersync-bench-'));
  const embedded = await startEmbedded({
    dir,
    postgres: true,
    temporal: temporalAddress === undefined,
  });
  const stop = async () => {
    await embedded.stop();
    await rm(dir, { recursive: true, force: true });
  };
  let bundled: Promise<string> | undefined;
  // A migration takes a second: it runs once, and the warehouses of measures are copies.
  let template: Promise<string> | undefined;
  try {
    const { postgres, temporal } = embedded;
    const address = temporalAddress ?? temporal?.address;
    if (postgres === undefined || address === undefined) throw new Error('the stack lacks a server');
    const database = (name: string) => postgres.ensureDatabase(`${name}_${randomBytes(4).toString('hex')}`);
    return {
      dir,
      workflowBundle: () => {
        bundled ??= writeBundle(join(dir, 'workflow-bundle.js'));
        return bundled;
      },
      database,
      asSuperuser: (url) => postgres.superuserUrl(new URL(url).pathname.slice(1)),
      warehouse: async () => {
        template ??= database('template').then(migrated);
        return await copyOf(await template, postgres.superuserUrl('postgres'));
      },
      namespace: () => newNamespace(address),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function writeBundle(path: string): Promise<string> {
  const bundle = await workflowBundle({ debug() {}, warn() {}, error: console.error });
  if ('codePath' in bundle) return bundle.codePath;
  await writeFile(path, bundle.code);
  return path;
}

async function migrated(url: string): Promise<string> {
  const { db, close } = connectWarehouse({ url, timeZone: 'UTC', max: 2, onError: () => {} });
  try {
    await migrateWarehouse(db);
    return url;
  } finally {
    await close();
  }
}

/** Copies a database for the same owner. No session may be connected to it. */
async function copyOf(url: string, superuserUrl: string): Promise<string> {
  const copy = new URL(url);
  copy.pathname = `warehouse_${randomBytes(4).toString('hex')}`;
  const name = (of: URL) => pg.escapeIdentifier(of.pathname.slice(1));
  const owner = pg.escapeIdentifier(copy.username);
  await withClient(superuserUrl, (client) =>
    client.query(
      `create database ${name(copy)} template ${name(new URL(url))} owner ${owner} strategy file_copy`,
    ),
  );
  return copy.href;
}

async function newNamespace(address: string): Promise<NamedPlace> {
  const namespace = `bench-${randomBytes(6).toString('hex')}`;
  const connection = await Connection.connect({ address, interceptors: [...retries] });
  try {
    const workflowExecutionRetentionPeriod = msToTs('1 day');
    await connection.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod });
    const client = new Client({ connection, namespace });
    // The server's parts notice a namespace one after another; only a successful start proves that all have.
    for (const deadline = Date.now() + namespaceWithinMs; ; ) {
      try {
        const probe = await client.workflow.start('probe', { taskQueue: 'probe', workflowId: 'probe' });
        await probe.terminate();
        return { address, namespace };
      } catch (error) {
        if (Date.now() > deadline) throw error;
        await delay(25);
      }
    }
  } finally {
    await connection.close();
  }
}

/** Opens one connection to a database, and closes it after the work. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
