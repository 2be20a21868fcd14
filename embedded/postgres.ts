import { createHmac } from 'node:crypto';
import pg from 'pg';
import type { Addresses } from './running.ts';

export interface EmbeddedPostgres {
  /** Returns the URL of a database with the superuser. It is only for set-up and tests, not for programs. */
  superuserUrl(database: string): string;
  /** Returns the URL of a database that `ensureDatabase` made, without asking the server, which may hang. */
  databaseUrl(name: string): string;
  /** Creates the database, if needed, owned by a role that is not a superuser. Returns that role's URL. */
  ensureDatabase(name: string, rights?: OwnerRights): Promise<string>;
}

export interface OwnerRights {
  /** Whether the owner can create roles and let them connect. Otherwise only the owner can use the database. */
  readonly createRoles?: boolean;
  readonly searchPath?: readonly string[];
}

/** Limits one attempt, because a server that accepts connections without answering has to be asked again. */
const connectWithin = { connectionTimeoutMillis: 2_000 };

type PostgresAddress = NonNullable<Addresses['postgres']>;

/** Gives access to the Postgres that runs at this address. */
export function embeddedPostgres(address: PostgresAddress): EmbeddedPostgres {
  const databaseUrl = (name: string) => postgresUrl({ ...address, ...ownerOf(address, name) }, name);
  return {
    superuserUrl: (database) => postgresUrl(address, database),
    databaseUrl,
    ensureDatabase: async (name, { createRoles = false, searchPath = [] } = {}) => {
      const owner = ownerOf(address, name);
      await connected(postgresUrl(address, 'postgres'), async (client) => {
        // Two commands may begin at once. Only superusers can connect here, so no other role holds the lock.
        await client.query("select pg_advisory_lock(hashtext('metersync set-up'))");
        await client.query('revoke connect on database postgres, template1 from public');
        await ensureOwner(client, owner, createRoles);
        await ensureOwned(client, name, owner.user);
        if (searchPath.length > 0) {
          const schemas = searchPath.map((schema) => pg.escapeIdentifier(schema)).join(', ');
          await client.query(`alter database ${pg.escapeIdentifier(name)} set search_path = ${schemas}`);
        }
        if (!createRoles)
          await client.query(`revoke connect on database ${pg.escapeIdentifier(name)} from public`);
      });
      return databaseUrl(name);
    },
  };
}

/** Whether Postgres answers a query at this address. */
export async function postgresAnswers(address: PostgresAddress): Promise<boolean> {
  const url = postgresUrl(address, 'postgres');
  const asked = connected(url, (client) => client.query('select 1'), connectWithin);
  return await asked.then(
    () => true,
    () => false,
  );
}

/** Derives the owner of a database, with an HMAC of the superuser's password, so that no file holds it. */
function ownerOf({ password }: PostgresAddress, database: string): { user: string; password: string } {
  const user = `${database}_owner`;
  return { user, password: createHmac('sha256', password).update(user).digest('hex').slice(0, 32) };
}

async function ensureOwner(
  client: pg.Client,
  { user, password }: { user: string; password: string },
  createRoles: boolean,
): Promise<void> {
  const role = pg.escapeIdentifier(user);
  const { rowCount } = await client.query('select from pg_roles where rolname = $1', [user]);
  if (rowCount === 0) await client.query(`create role ${role}`);
  await client.query(
    `alter role ${role} login nosuperuser nocreatedb noreplication nobypassrls ${createRoles ? 'createrole' : 'nocreaterole'} password ${pg.escapeLiteral(password)}`,
  );
}

async function ensureOwned(client: pg.Client, name: string, owner: string): Promise<void> {
  const { rowCount } = await client.query('select from pg_database where datname = $1', [name]);
  if (rowCount === 0)
    await client.query(`create database ${pg.escapeIdentifier(name)} owner ${pg.escapeIdentifier(owner)}`);
}

async function connected<T>(
  connectionString: string,
  work: (client: pg.Client) => Promise<T>,
  options: pg.ClientConfig = {},
): Promise<T> {
  const client = new pg.Client({ connectionString, ...options });
  // If the server goes away meanwhile, the query fails. Without a listener, the process would end.
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

function postgresUrl({ port, user, password }: PostgresAddress, database: string): string {
  return `postgres://${encodeURIComponent(user)}:${password}@127.0.0.1:${port}/${encodeURIComponent(database)}`;
}
