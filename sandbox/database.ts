import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import type { Client, Pool, PoolClient } from 'pg';
import pg from 'pg';

/** The connections of a running sandbox. */
export interface Stores {
  /** Prevents a second sandbox from using the database. */
  readonly guard: Guard;
  readonly pool: pg.Pool;
  /** For writes of deliveries. Its commits do not wait for the disk: a crash of Postgres repeats some. */
  readonly deliveryPool: pg.Pool;
  close(): Promise<void>;
}

/** Connections to Postgres for reads, changes and deliveries together. */
const poolSize = 8;

const deliveryPoolSize = 4;

/** Connects, takes the lock and brings the schema up to date. */
export async function openStores(databaseUrl: string, report: (error: Error) => void): Promise<Stores> {
  const guard = await openGuard(databaseUrl, report);
  const pool = openPool({ connectionString: databaseUrl, max: poolSize }, report);
  const deliveryPool = openPool(
    { connectionString: databaseUrl, max: deliveryPoolSize, options: '-c synchronous_commit=off' },
    report,
  );
  const close = async () => {
    await Promise.all([pool.end(), deliveryPool.end()]);
    await guard.close();
  };
  try {
    await migrate(guard.client);
  } catch (error) {
    await close();
    throw error;
  }
  return { guard, pool, deliveryPool, close };
}

function openPool(config: pg.PoolConfig, report: (error: Error) => void): pg.Pool {
  const pool = new pg.Pool(config);
  pool.on('error', report);
  // A connection in use reports its loss by failing the next query; without a listener the process would end.
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** Runs `work` in a transaction: committed when it returns, rolled back when it throws. */
export async function inTransaction<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch((failure: Error) => {
      broken = failure;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}

/** The connection that holds the lock of a database, so that two sandboxes never share one. */
interface Guard {
  /** The first connection that took the lock. */
  readonly client: pg.Client;
  /** Resolves if another sandbox took the lock while the connection was lost. This sandbox must then end. */
  readonly lost: Promise<Error>;
  close(): Promise<void>;
}

const advisoryLock = 7_205_114;

/** Wait after a failed attempt to connect, for example while Postgres restarts. */
const retryMs = 500;

class Taken extends Error {}

/** Takes the lock, again after each lost connection. Throws an Error when another sandbox has it. */
async function openGuard(databaseUrl: string, report: (error: Error) => void): Promise<Guard> {
  const lost = Promise.withResolvers<Error>();
  let closed = false;
  let held: pg.Client | undefined;

  const takeAgain = async () => {
    while (!closed) {
      try {
        await take();
        return;
      } catch (error) {
        if (!closed && error instanceof Taken) return lost.resolve(error);
        await wait(retryMs);
      }
    }
  };

  const take = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: databaseUrl });
    client.on('error', report);
    await client.connect();
    const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [
      advisoryLock,
    ]);
    if (closed || !rows[0]?.taken) {
      await client.end();
      throw new Taken('another sandbox is running on this database');
    }
    client.once('end', () => void takeAgain());
    held = client;
    return client;
  };

  return {
    client: await take(),
    lost: lost.promise,
    async close() {
      closed = true;
      await held?.end();
    },
  };
}

/** Brings the database to the newest schema: ordered SQL files, each applied once, all in one transaction. */
async function migrate(client: Client, folder = new URL('./migrations/', import.meta.url)) {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  await client.query('begin');
  try {
    await client.query('create schema if not exists sandbox');
    await client.query('create table if not exists sandbox.migrations (name text primary key)');
    const done = await client.query<{ name: string }>('select name from sandbox.migrations');
    const applied = new Set(done.rows.map((row) => row.name));
    for (const name of files.filter((file) => !applied.has(file))) {
      await client.query(await readFile(new URL(name, folder), 'utf8'));
      await client.query('insert into sandbox.migrations (name) values ($1)', [name]);
    }
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw error;
  }
}

/** Reads a setting that was changed at run time and survives a restart, stored as JSON by name. */
export async function readSetting<T>(pool: Pool, name: string): Promise<T | undefined> {
  const { rows } = await pool.query<{ value: string }>('select value from sandbox.settings where name = $1', [
    name,
  ]);
  return rows[0] === undefined ? undefined : (JSON.parse(rows[0].value) as T);
}

export async function writeSetting(pool: Pool, name: string, value: unknown): Promise<void> {
  await pool.query(
    `insert into sandbox.settings (name, value) values ($1, $2)
      on conflict (name) do update set value = excluded.value`,
    [name, JSON.stringify(value)],
  );
}
