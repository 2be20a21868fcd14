import pg from 'pg';
import { connectWarehouse } from '../../db/connection/connect.ts';
import { migrateWarehouse } from '../../db/migrate/migrate.ts';
import type { PostgresRelease } from '../../embedded/postgres.ts';
import type { AlarmName } from '../../health/findings.ts';
import { type PostgresPart, preparePart } from '../faults/postgres-part.ts';
import { temporaryFolder } from '../support/folder.ts';
import { freePort } from '../support/port.ts';
import { configurePostgres } from '../support/stack.ts';
import { describeSchema } from './schema.ts';

/** Alarms that may open: a run finds listings that move, and the work of the part that was struck is late. */
export const may: readonly AlarmName[] = ['ChangesMissed', 'RunUnwell', 'RunStalled'];

/** Runs work on a new Postgres, by default 18, and removes it afterwards. */
export async function withPostgres<T>(
  { release, settings = [] }: { release?: PostgresRelease | undefined; settings?: readonly string[] },
  work: (postgres: PostgresPart) => Promise<T>,
): Promise<T> {
  const folder = await temporaryFolder();
  try {
    const postgres = await preparePart(folder.path, await freePort(), release);
    await configurePostgres(postgres.data, settings);
    await postgres.part.start();
    try {
      return await work(postgres);
    } finally {
      await postgres.part.stop('SIGQUIT');
    }
  } finally {
    await folder.remove();
  }
}

/** Migrates a new warehouse as its owner, and returns its schema with a line for each object. */
export async function migratedSchema({ users }: PostgresPart): Promise<string[]> {
  const url = await users.ensureDatabase('schema', { createRoles: true });
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 1, onError: () => {} });
  try {
    await migrateWarehouse(warehouse.db);
    return await describeSchema(warehouse.db);
  } finally {
    await warehouse.close();
  }
}

/** Runs statements, each in its own transaction, and returns the rows of the last one. */
export async function administer<T extends pg.QueryResultRow>(
  url: string,
  statements: readonly string[],
): Promise<T[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    let rows: T[] = [];
    for (const statement of statements) ({ rows } = await client.query<T>(statement));
    return rows;
  } finally {
    await client.end();
  }
}
