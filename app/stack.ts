import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { withTimeout } from '../db/connection/connect.ts';
import { prepareFolder, readRunning } from '../embedded/folder.ts';
import type { OwnerRights } from '../embedded/postgres.ts';
import { hasData, runsTemporal, startEmbedded } from '../embedded/start.ts';
import { writePrivateFile } from './process/private-file.ts';
import { askAgain } from './process/running.ts';
import type { Settings } from './settings/settings.ts';
import { embeddedCodecKey } from './temporal/payload-codec.ts';
import type { TemporalPlace } from './temporal/place.ts';
import { WarehouseAway } from './warehouse.ts';

/** Postgres and Temporal, either the servers that the environment names or embedded servers. */
export interface Stack {
  readonly databaseUrl: string;
  readonly temporal: TemporalPlace;
  /** Whether the settings name a Temporal, or an embedded one runs. */
  readonly hasTemporal: boolean;
  /** URL of the embedded Temporal's web page, if it is used and was started with its page. */
  readonly temporalUi: string | undefined;
  /** Lines for people that name each embedded server and the variable that is not set. */
  readonly standIns: readonly string[];
  /** Makes a database in the embedded Postgres if it is absent, and returns its URL. */
  databaseFor(name: string, rights?: OwnerRights): Promise<string>;
  /** Rejects when an embedded server that was started here ends by itself. Otherwise never settles. */
  readonly finished: Promise<void>;
  stop(): Promise<void>;
}

/** Folder of the demo's data within the data folder. */
export const demoFolder = 'demo';

/** Nothing is configured, and the data folder holds no data yet. */
class NothingHere extends Error {
  constructor(dir: string, unset: readonly string[]) {
    const demo = join(dir, demoFolder);
    const beside = existsSync(demo) ? `; the demo's data is in METERSYNC_DIR=${demo}` : '';
    super(
      `${dir} has no data yet: run npm start (or metersync start) first, or set ${unset.join(' and ')}${beside}`,
    );
    this.name = 'NothingHere';
  }
}

const warehouseDatabase = 'metersync';

/** Search path of psql: the schemas that people query come first. */
const readableSchemas = ['$user', 'public', 'analytics', 'ops', 'utility'];

/** Whether TEMPORAL_ADDRESS names the embedded Temporal of a folder, whose key a client then needs. */
async function namesTemporalOf(dir: string): Promise<boolean> {
  const { address } = readRunning(dir)?.addresses.temporal ?? {};
  if (address === undefined) return false;
  const { connectOptions } = await import('./temporal/place.ts');
  const named = connectOptions({}).connectionOptions.address;
  return named?.replace(/^localhost:/, '127.0.0.1:') === address;
}

/** Opens what a command needs. It starts nothing that the environment names or that another process runs. */
export async function openStack(
  settings: Settings,
  need: {
    /** `if there`: the Postgres of the settings, or existing embedded data. */
    readonly postgres: boolean | 'if there';
    /** `if running`: the Temporal of the settings or a running embedded one; none is started. */
    readonly temporal: boolean | 'if running';
    /** Whether an embedded Temporal that is started serves its web page. */
    readonly temporalUi?: boolean;
    readonly sandbox: boolean;
    /** Opens only existing data: makes no folder and no database. */
    readonly existing?: boolean;
    /** Refuses embedded servers of another process. */
    readonly alone?: boolean;
    readonly log: (line: string) => void;
  },
): Promise<Stack> {
  const dir = resolve(settings.dataDir);
  const wantsPostgres = need.postgres === 'if there' ? hasData(dir, 'postgres') : need.postgres;
  const standInPostgres = wantsPostgres && settings.databaseUrl === undefined;
  const wantsTemporal = need.temporal === 'if running' ? runsTemporal(dir) : need.temporal;
  const embeddedTemporal = wantsTemporal && !settings.temporalConfigured;
  if (need.existing) {
    const unset = [
      ...(standInPostgres && !hasData(dir, 'postgres') ? ['DATABASE_URL'] : []),
      ...(embeddedTemporal && !hasData(dir, 'temporal') ? ['TEMPORAL_ADDRESS'] : []),
      ...(need.sandbox && !hasData(dir, 'postgres') ? ['SERVICE_URL'] : []),
    ];
    if (unset.length > 0) throw new NothingHere(dir, unset);
  }
  const embeddedPostgres = standInPostgres || need.sandbox;
  if (embeddedPostgres || embeddedTemporal) prepareFolder(dir);
  const isOwn =
    embeddedTemporal ||
    (need.temporal !== false && settings.temporalConfigured && (await namesTemporalOf(dir)));
  const ownKey = isOwn ? embeddedCodecKey(dir) : undefined;
  const embedded = await startEmbedded({
    dir,
    postgres: embeddedPostgres,
    temporal: embeddedTemporal,
    temporalUi: need.temporalUi ?? false,
    alone: need.alone ?? false,
    log: need.log,
  });
  const databaseFor = async (name: string, rights?: OwnerRights): Promise<string> => {
    if (embedded.postgres === undefined) throw new Error('the embedded Postgres was not asked for');
    return await embedded.postgres.ensureDatabase(name, rights);
  };
  // The owner can create roles, because migrations do, and logins with these roles are created later.
  const ofEmbedded = async () => {
    const url = embedded.postgres?.databaseUrl(warehouseDatabase) ?? '';
    if (need.existing && !embedded.owned) return url;
    const made = databaseFor(warehouseDatabase, { createRoles: true, searchPath: readableSchemas });
    // A server that another process started may hang.
    if (embedded.owned) return await made;
    const asked = askAgain((withinMs) => withTimeout(made, withinMs));
    const { answer } = await asked.catch((error: unknown) => {
      throw new WarehouseAway(url, error, true);
    });
    return answer;
  };
  const databaseUrl = (standInPostgres ? await ofEmbedded() : settings.databaseUrl) ?? '';
  const standIns: string[] = [];
  if (standInPostgres) {
    if (embedded.owned && !need.existing)
      writePrivateFile(passwordFileOf(dir), passwordLine(new URL(databaseUrl)));
    standIns.push(`DATABASE_URL is not set: an embedded Postgres, ${psqlCommand(databaseUrl, dir)}`);
  }
  // A running stack that was joined for its Postgres also has a Temporal, which this process may not want.
  const ownTemporal = embeddedTemporal ? embedded.temporal : undefined;
  if (ownTemporal !== undefined) {
    const { address, uiUrl } = ownTemporal;
    const page = uiUrl === undefined ? '' : `, web page ${uiUrl}`;
    standIns.push(`TEMPORAL_ADDRESS is not set: an embedded Temporal at ${address}${page}`);
  }
  const temporal: TemporalPlace = {
    ...(ownTemporal === undefined ? {} : { address: ownTemporal.address, namespace: 'default' }),
    codecKeys: [...settings.temporalCodecKeys, ...(ownKey === undefined ? [] : [ownKey])],
    plaintext: settings.temporalPlaintext,
  };
  return {
    databaseUrl,
    temporal,
    hasTemporal: settings.temporalConfigured || ownTemporal !== undefined,
    temporalUi: ownTemporal?.uiUrl,
    standIns,
    databaseFor,
    finished: embedded.finished,
    stop: () => embedded.stop(),
  };
}

/**
 * Writes the psql command. It names a file with the password, because other users can read arguments, and a log
 * may be readable by others, too.
 */
export function psqlCommand(databaseUrl: string, dir: string): string {
  const url = new URL(databaseUrl);
  url.password = '';
  return `PGPASSFILE=${quoted(passwordFileOf(dir))} psql ${url.href}`;
}

/** The password file of Postgres's own programs (libpq), for the warehouse in the embedded Postgres. */
const passwordFileOf = (dir: string): string => join(dir, 'pgpass');

const passwordLine = ({ hostname, port, pathname, username, password }: URL): string =>
  `${[hostname, port, pathname.slice(1), username, password].map(decodeURIComponent).join(':')}\n`;

/** The addresses and keys of the sandbox that last ran in a data folder. */
export const sandboxFile = (dir: string): string => join(resolve(dir), 'sandbox.json');

/** Whether the sandbox replaces the service: none is configured, and a sandbox has run on the data folder. */
export const usesSandbox = ({ service, webhooks, dataDir }: Settings): boolean =>
  service.url === undefined &&
  webhooks.secrets.length === 0 &&
  webhooks.secretsFile === undefined &&
  existsSync(sandboxFile(dataDir));

/** Quotes a text for a shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
