import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';

/** The connection that holds the lock of a database, so that two sandboxes never share one. */
export interface Guard {
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
export async function openGuard(databaseUrl: string, report: (error: Error) => void): Promise<Guard> {
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
