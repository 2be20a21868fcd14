import type { ConnectionOptions } from 'node:tls';
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import { sqlState } from './failures.ts';
import { keepsHot } from './prepare.ts';

export type Database = NodePgDatabase;
export type Transaction = Parameters<Parameters<Database['transaction']>[0]>[0];
/** Something that runs a statement: the pool, or a transaction on one connection. */
export type Executor = Pick<Database, 'execute' | 'select' | 'insert' | 'update' | 'delete'>;

export interface Warehouse {
  readonly db: Database;
  readonly pool: pg.Pool;
  /** Whether the service's timestamps without a zone are UTC. */
  readonly zoneIsUtc: boolean;
  /** Months, as `2026-01`, whose partitions of intervals are known to be there. */
  readonly intervalMonths: Set<string>;
  /** Rows that this process added to tables of records, by resource: see `analyseYoung`. */
  readonly rowsAdded: Map<string, number>;
  close(): Promise<void>;
}

/**
 * A statement that waits longer for a lock fails and is tried again: else it would hold its
 * connection for as long as somebody holds the lock, and the next try one more.
 */
const lockTimeout = '30s';

/** Times, dates and numerics stay text: a Date has milliseconds, a float is not exact. */
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

/**
 * Opens a pool on the warehouse. `timeZone` is how its sessions read the service's timestamps,
 * which carry none (seed 2).
 */
export function connectWarehouse(options: {
  url: string;
  timeZone: string;
  max: number;
  onError: (error: Error) => void;
}): Warehouse {
  const { address, given } = withoutOptions(options.url);
  const ours = `-c TimeZone=${options.timeZone} -c DateStyle=ISO,YMD -c extra_float_digits=1 -c jit=off -c lock_timeout=${lockTimeout}`;
  const pool = new pg.Pool({
    connectionString: address,
    max: options.max,
    types,
    application_name: 'metersync',
    connectionTimeoutMillis: 10_000,
    // Of an option that both set the last one holds.
    options: `${given} ${ours}`.trim(),
  });
  pool.on('error', options.onError);
  const keep = keepsHot();
  pool.on('connect', (client) => {
    // A connection in use tells whoever uses it by failing its statement; without a listener the
    // process would end.
    client.on('error', () => {});
    keep(client);
  });
  const db = drizzle(pool);
  db.transaction = (work, config) => inTransaction(pool, work, config);
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

/**
 * Where an address leads, and what keeps others on the way from reading or from answering in its
 * place.
 */
export interface Transport {
  /** A name, an address, or the folder of a Unix socket. */
  readonly host: string;
  /**
   * Verified: no server but the one of that name, under a CA that is trusted, gets as far as the
   * password.
   */
  readonly tls: 'none' | 'unverified' | 'verified';
}

/**
 * What the driver makes of an address and of its own PG… variables; nothing is connected to.
 * @throws Error when a file that the address names cannot be read
 */
export function transportOf(url: string): Transport {
  const client = new pg.Client({ connectionString: withoutOptions(url).address });
  // The driver's types know less than its parser gives.
  const ssl = client.ssl as unknown as boolean | ConnectionOptions;
  if (!ssl) return { host: client.host, tls: 'none' };
  const { rejectUnauthorized, checkServerIdentity } = ssl === true ? {} : ssl;
  const verified = rejectUnauthorized !== false && checkServerIdentity === undefined;
  return { host: client.host, tls: verified ? 'verified' : 'unverified' };
}

/**
 * Options for the server in an address would take the place of ours, and times be read in the
 * server's own zone.
 */
function withoutOptions(url: string): { readonly address: string; readonly given: string } {
  const parsed = new URL(url);
  const given = parsed.searchParams.getAll('options').join(' ');
  if (given === '') return { address: url, given };
  parsed.searchParams.delete('options');
  return { address: parsed.href, given };
}

const featureNotSupported = '0A000';

/**
 * Drizzle's own takes a connection for good when `begin` fails on it, as it does on every
 * connection that the pool still held when Postgres went away, and hides the work's error behind
 * that of the rollback.
 */
async function inTransaction<T>(
  pool: pg.Pool,
  work: (tx: Transaction) => Promise<T>,
  config: Parameters<Database['transaction']>[1],
): Promise<T> {
  const client = await pool.connect();
  let failure: unknown;
  try {
    return await drizzle(client).transaction(async (tx) => {
      try {
        return await work(tx);
      } catch (error) {
        failure = error;
        throw error;
      }
    }, config);
  } catch (error) {
    throw failure ?? error;
  } finally {
    // A migration changed what a kept statement answers: that connection can send it no more.
    client.release(sqlState(failure) === featureNotSupported);
  }
}
