import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { startEmbedded } from '../embedded/start.ts';
import type { Settings } from './settings.ts';
import type { TemporalPlace } from './temporal.ts';

/** Database and Temporal: those that the environment names, or embedded ones that stand in. */
export interface Stack {
  readonly databaseUrl: string;
  readonly temporal: TemporalPlace;
  /** Temporal's web page, where the embedded one stands in. */
  readonly temporalUi: string | undefined;
  /** What stands in for what the environment does not name, for people. */
  readonly standIns: readonly string[];
  /** A database of its own in the embedded Postgres, which is started for it when it isn't running. */
  databaseFor(name: string): Promise<string>;
  stop(): Promise<void>;
}

export const warehouseDatabase = 'metersync';

/** Opens what a command needs; nothing is started that the environment names or another process already runs. */
export async function openStack(
  settings: Settings,
  need: {
    readonly postgres: boolean;
    readonly temporal: boolean;
    readonly sandbox: boolean;
    readonly log: (line: string) => void;
  },
): Promise<Stack> {
  const dir = resolve(settings.dataDir);
  mkdirSync(dir, { recursive: true });
  const embeddedTemporal = need.temporal && !settings.temporalConfigured;
  const standInPostgres = need.postgres && settings.databaseUrl === undefined;
  const embeddedPostgres = standInPostgres || need.sandbox;
  const embedded = await startEmbedded({
    dir,
    postgres: embeddedPostgres,
    temporal: embeddedTemporal,
    log: need.log,
    binDir: resolve('.metersync/bin'),
  });
  const databaseFor = async (name: string): Promise<string> => {
    if (embedded.postgres === undefined) throw new Error('the embedded Postgres was not asked for');
    return await embedded.postgres.ensureDatabase(name);
  };
  const databaseUrl = standInPostgres ? await databaseFor(warehouseDatabase) : (settings.databaseUrl ?? '');
  const standIns: string[] = [];
  if (standInPostgres) standIns.push(`DATABASE_URL is not set: an embedded Postgres, psql ${databaseUrl}`);
  if (embedded.temporal !== undefined) {
    standIns.push(
      `TEMPORAL_ADDRESS is not set: an embedded Temporal at ${embedded.temporal.address}, web page ${embedded.temporal.uiUrl}`,
    );
  }
  return {
    databaseUrl,
    temporal: {
      ...(embedded.temporal === undefined
        ? {}
        : { address: embedded.temporal.address, namespace: 'default' }),
      codecKeys: settings.temporalCodecKeys,
    },
    temporalUi: embedded.temporal?.uiUrl,
    standIns,
    databaseFor,
    stop: () => embedded.stop(),
  };
}
