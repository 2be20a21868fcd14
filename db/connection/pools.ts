import type pg from 'pg';

/** The pools of transactions; `withTransaction` notes them. */
const pools = new WeakMap<object, pg.Pool>();

/** Returns the pool of a database, or of a transaction of `withTransaction`; undefined for others. */
export const poolOf = (db: object): pg.Pool | undefined =>
  '$client' in db ? (db.$client as pg.Pool) : pools.get(db);

/** Notes that a transaction has the pool of the database, or of the transaction, in which it began. */
export function belongsTo(tx: object, db: object): void {
  const pool = poolOf(db);
  if (pool !== undefined) pools.set(tx, pool);
}
