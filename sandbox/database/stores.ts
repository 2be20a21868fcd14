import pg from 'pg';
import { type Guard, openGuard } from './guard.ts';
import { migrate } from './migrate.ts';

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
