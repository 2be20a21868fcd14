import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { connectWarehouse, type Warehouse } from '../../db/connection/connect.ts';

/** Makes a login with a role or none, which is dropped after the test. */
export async function loginAs(
  role: string | null,
  { db, url }: Warehouse & { readonly url: string },
): Promise<Warehouse & { readonly user: string }> {
  const user = `user_${randomUUID().replaceAll('-', '')}`;
  const password = randomUUID();
  const granted = role === null ? '' : ` in role ${role}`;
  await db.execute(sql.raw(`create role ${user} login password ${pg.escapeLiteral(password)}${granted}`));
  const address = new URL(url);
  [address.username, address.password] = [user, password];
  const login = connectWarehouse({ url: address.href, timeZone: 'UTC', max: 2, onError: () => {} });
  onTestFinished(async () => {
    await login.close();
    await db.execute(sql.raw(`drop owned by ${user}`));
    await db.execute(sql.raw(`drop role ${user}`));
  });
  return { ...login, user };
}

/** Opens a transaction of a login, which stays open until the test ends it. */
export async function openTransaction(
  login: Warehouse,
  statements: readonly string[],
): Promise<{ readonly pid: number; end(): Promise<void> }> {
  const client = await login.pool.connect();
  let ended = false;
  const end = async (): Promise<void> => {
    if (!ended) await client.query('rollback');
    if (!ended) client.release();
    ended = true;
  };
  onTestFinished(end);
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  await client.query('begin');
  for (const statement of statements) await client.query(statement);
  return { pid: rows[0]?.pid ?? 0, end };
}
