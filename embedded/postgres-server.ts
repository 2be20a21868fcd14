import { existsSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type PostgresAccount, postgresAccount } from './postgres-account.ts';
import { findPostgresBinaries, type PostgresBinaries } from './postgres-binaries.ts';
import {
  builtinLocale,
  checkPostgresData,
  createPostgresData,
  postgresSuperuser,
  readPostgresPassword,
} from './postgres-data.ts';
import { postgresHome, reachableBinaries } from './postgres-home.ts';
import type { Addresses } from './running.ts';
import type { ServerCommand } from './servers.ts';

/** A data folder that is ready, with the program and account to run on it. */
export interface PreparedPostgres {
  dir: string;
  data: string;
  program: string;
  account: PostgresAccount | undefined;
}

/** The programs of a version, and the locale arguments that its initdb knows. */
export interface PostgresRelease {
  readonly binaries: PostgresBinaries;
  readonly locale: readonly string[];
}

/** Makes the data folder, or checks an existing one; `release` is Postgres 18 when not given. */
export async function preparePostgres(
  dir: string,
  log: (message: string) => void,
  release?: PostgresRelease,
): Promise<PreparedPostgres> {
  const link = join(dir, 'postgres');
  const account = postgresAccount(link);
  const home = postgresHome(dir, account);
  const binaries = release?.binaries ?? (await findPostgresBinaries());
  const { postgres, initdb } = await reachableBinaries(binaries, account, home);
  if (existsSync(link)) {
    checkPostgresData(link);
  } else {
    log(home === dir ? 'making a Postgres data folder' : `making a Postgres data folder in ${home}`);
    // It may be a dangling link to data that was deleted.
    rmSync(link, { force: true });
    await createPostgresData({ dir, home, initdb, locale: release?.locale ?? builtinLocale, account });
  }
  return { dir, data: realpathSync(link), program: postgres, account };
}

/** Returns how to run Postgres on a prepared data folder, and its address. */
export function postgresServer(
  { dir, data, program, account }: PreparedPostgres,
  port: number,
): { server: ServerCommand; address: NonNullable<Addresses['postgres']> } {
  return {
    server: {
      name: 'postgres',
      command: program,
      args: ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', ''],
      cwd: '/',
      env: { LC_ALL: 'C' },
      ...(account && { user: account }),
      logFile: join(dir, 'logs', 'postgres.log'),
    },
    address: { port, user: postgresSuperuser, password: readPostgresPassword(data) },
  };
}
