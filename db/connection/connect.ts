import type { ConnectionOptions } from 'node:tls';
import { type SQLWrapper, sql } from 'drizzle-orm';
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import { serverWaits } from '../../contract/retry-policy.ts';
import { formatSeconds } from '../../contract/times.ts';
import { sqlState } from './failures.ts';

export type Database = NodePgDatabase & { readonly $client: pg.Pool };
export type Transaction = Parameters<Parameters<Database['transaction']>[0]>[0];
/** Runs statements: the pool, or a transaction on one connection. */
export type Executor = Omit<Database, '$client' | 'transaction'>;

/** An interface as the type of the rows that a statement returns. */
export type Row<T> = Pick<T, keyof T>;

export interface Warehouse {
  readonly db: Database;
  readonly pool: pg.Pool;
  /** Whether the service's timestamps without a zone are UTC. */
  readonly zoneIsUtc: boolean;
  /** Months, such as `2026-01`, for which a partition of intervals exists. */
  readonly intervalMonths: Set<string>;
  /** Rows that this process added to tables of records, by resource: see `analyseYoung`. */
  readonly rowsAdded: Map<string, number>;
  close(): Promise<void>;
}

/** Keeps times and numerics as text: a Date has only milliseconds, and a float is not exact. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text') => {
    const asText: number[] = [
      pg.types.builtins.TIMESTAMPTZ,
      pg.types.builtins.TIMESTAMP,
      pg.types.builtins.DATE,
      pg.types.builtins.NUMERIC,
    ];
    return asText.includes(oid) ? (value: string) => value : pg.types.getTypeParser(oid, format);
  }) as pg.CustomTypesConfig['getTypeParser'],
};

/** Where names are looked up: not in `public`, where a function may hide a function of Postgres. */
export const searchPath = ['pg_catalog', 'pg_temp'];

/** Opens a pool whose sessions read times without a zone in `timeZone` (service.md 2). */
export function connectWarehouse(options: {
  url: string;
  timeZone: string;
  max: number;
  /** Further options of its sessions, as `-c name=value`. */
  session?: string | undefined;
  /** How long opening a connection may take. */
  connectMs?: number;
  onError: (error: Error) => void;
}): Warehouse {
  const { address, given } = withoutOptions(options.url);
  const ours = [
    `-c TimeZone=${options.timeZone}`,
    '-c DateStyle=ISO,YMD',
    '-c extra_float_digits=1',
    '-c jit=off',
    `-c lock_timeout=${serverWaits.lockMs}`,
    // Writers wait for one another's locks, and go on with what was committed meanwhile.
    '-c default_transaction_isolation=read\\ committed',
    `-c search_path=${searchPath.join(',')}`,
  ].join(' ');
  const pool = new pg.Pool({
    connectionString: address,
    max: options.max,
    types,
    application_name: 'metersync',
    connectionTimeoutMillis: options.connectMs ?? serverWaits.postgresConnectMs,
    // A server that vanished does not say so: without keep-alive, statements would wait forever.
    keepAlive: true,
    keepAliveInitialDelayMillis: serverWaits.postgresSilentMs,
    // If both set an option, the last one counts.
    options: `${given} ${ours} ${options.session ?? ''}`.trim(),
  });
  pool.on('error', options.onError);
  // A lost connection fails its statement; without a listener the process would end, too.
  pool.on('connect', (client) => client.on('error', () => {}));
  const db = drizzle(pool);
  const zoneIsUtc = /^(etc\/)?(utc|gmt|zulu)$/i.test(options.timeZone);
  return {
    db,
    pool,
    zoneIsUtc,
    intervalMonths: new Set(),
    rowsAdded: new Map(),
    close: () => pool.end(),
  };
}

/** The server to which an address leads, and how the connection is protected. */
export interface Transport {
  /** A name, an address, or the folder of a Unix socket. */
  readonly host: string;
  /** Verified: only a server that a trusted CA certifies for this name gets the password. */
  readonly tls: 'none' | 'unverified' | 'verified';
}

/**
 * Parses an address as the driver does, with its own PG… variables; connects to nothing.
 * @throws Error when a file that the address names cannot be read
 */
export function transportOf(url: string): Transport {
  const client = new pg.Client({ connectionString: withoutOptions(url).address });
  // The driver's types lack fields that its parser returns.
  const ssl = client.ssl as unknown as boolean | ConnectionOptions;
  if (!ssl) return { host: client.host, tls: 'none' };
  const { rejectUnauthorized, checkServerIdentity } = ssl === true ? {} : ssl;
  const verified = rejectUnauthorized !== false && checkServerIdentity === undefined;
  return { host: client.host, tls: verified ? 'verified' : 'unverified' };
}

/** Separates an address from its server options, which would replace metersync's own options. */
function withoutOptions(url: string): { readonly address: string; readonly given: string } {
  const parsed = new URL(url);
  const given = parsed.searchParams.getAll('options').join(' ');
  if (given === '') return { address: url, given };
  parsed.searchParams.delete('options');
  return { address: parsed.href, given };
}

/**
 * SQLSTATEs after which a session is not used again. `0A000`: a migration changed the result of a
 * prepared statement. `25006`: its server accepts no writes, for example after a failover.
 */
const lastStates: readonly (string | undefined)[] = ['0A000', '25006'];

/**
 * Runs work in a transaction; within a given transaction, as a part that can fail without failing
 * the whole.
 */
export async function withTransaction<T>(
  db: Database | Transaction,
  work: (tx: Transaction) => Promise<T>,
  config?: Parameters<Database['transaction']>[1],
): Promise<T> {
  if ('$client' in db) return await withConnection(db, work, config);
  return await db.transaction(async (tx) => {
    belongsTo(tx, db);
    return await work(tx);
  });
}

/**
 * Runs work in a transaction, and gives it the connection, for COPY. Drizzle's own function leaks
 * the connection if `begin` fails, as it does after Postgres went down, and hides the work's error
 * behind the error of the rollback.
 */
export async function withConnection<T>(
  db: Database,
  work: (tx: Transaction, client: pg.PoolClient) => Promise<T>,
  config?: Parameters<Database['transaction']>[1],
): Promise<T> {
  const client = await db.$client.connect();
  let failure: unknown;
  try {
    return await drizzle(client).transaction(async (tx) => {
      belongsTo(tx, db);
      try {
        return await work(tx, client);
      } catch (error) {
        failure = error;
        throw error;
      }
    }, config);
  } catch (error) {
    throw failure ?? error;
  } finally {
    client.release(lastStates.includes(sqlState(failure)));
  }
}

/** The pools of transactions; `withTransaction` notes them. */
const pools = new WeakMap<object, pg.Pool>();

/** Returns the pool of a database, or of a transaction of `withTransaction`; undefined for others. */
export const poolOf = (db: object): pg.Pool | undefined =>
  '$client' in db ? (db.$client as pg.Pool) : pools.get(db);

/** Notes that a transaction has the pool of the database, or of the transaction, in which it began. */
function belongsTo(tx: object, db: object): void {
  const pool = poolOf(db);
  if (pool !== undefined) pools.set(tx, pool);
}

/** Changes settings of the session until the transaction ends. */
export async function setLocal(
  tx: Executor,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  await tx.execute(sql`
    select set_config(name, value, true)
    from jsonb_each_text(${JSON.stringify(settings)}::jsonb) as given (name, value)`);
}

/** A server did not answer in time. */
export class NoAnswer extends Error {
  constructor(ms: number) {
    super(`no answer within ${formatSeconds(ms / 1_000)}`);
    this.name = 'NoAnswer';
  }
}

/** Waits at most `ms` for Postgres, because statements to a server that hangs wait forever. */
export async function withTimeout<T>(
  asking: Promise<T>,
  ms: number = serverWaits.healthInAllMs,
): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new NoAnswer(ms)), ms);
  try {
    return await Promise.race([asking, late]);
  } finally {
    clearTimeout(timer);
    // An error that comes later, such as a broken connection, is of no interest.
    asking.catch(() => {});
  }
}

/**
 * Waits for the lock of a table and holds it until the transaction ends. It excludes other sessions that take
 * it, but neither readers nor writers of the table. Any login can take an advisory lock, but only a login that
 * may write to a table can take a lock on it that is stronger than a reader's.
 */
export async function lock(tx: Executor, table: SQLWrapper): Promise<void> {
  await tx.execute(sql`lock table ${table} in share update exclusive mode`);
}
