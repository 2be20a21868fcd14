import pg from 'pg';
import { inject } from 'vitest';

/** Trouble with one database of the run's Postgres, as if the server were gone or restarting. */
export interface Outage {
  /** Ends all connections and prevents new ones until `end`. */
  begin(): Promise<void>;
  end(): Promise<void>;
  /** Cuts all connections and returns their number. New ones can be made at once. */
  cut(): Promise<number>;
  close(): Promise<void>;
}

export async function outageOf(databaseUrl: string): Promise<Outage> {
  const name = new URL(databaseUrl).pathname.slice(1);
  const admin = new pg.Client({ connectionString: inject('postgresUrl') });
  await admin.connect();
  const allow = (whether: boolean) =>
    admin.query(`alter database ${pg.escapeIdentifier(name)} allow_connections ${whether}`);
  const cut = async () => {
    const cutOff = await admin.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1',
      [name],
    );
    return cutOff.rowCount ?? 0;
  };
  return {
    begin: async () => {
      await allow(false);
      await cut();
    },
    end: async () => {
      await allow(true);
    },
    cut,
    close: () => admin.end(),
  };
}
