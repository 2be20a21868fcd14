import { existsSync, readFileSync } from 'node:fs';
import { endpointOverrides } from '../../contract/endpoint-file.ts';
import { defaultEndpoints, type EndpointCatalogue } from '../../contract/endpoints.ts';
import { withoutByteOrderMark } from '../../contract/json.ts';
import type { RunKind } from '../../contract/names.ts';
import { parseSecrets, SecretsError } from '../../receiver/secrets.ts';
import type { ScheduleTimes } from '../temporal/schedule-times.ts';
import { environment, list } from './environment.ts';
import { readSecretFiles, setTwice } from './secret-files.ts';

/** Everything that metersync reads from its environment, decoded once; undefined where something is not set. */
export type Settings = Readonly<ReturnType<typeof readSettings>>;

export const activitySettings = (settings: Settings) => ({
  companies: settings.service.companies,
  deletesCap: settings.deletesCap,
  retentionDays: settings.retentionDays,
  checksOff: settings.checksOff,
});

/** Lists all wrong settings, each with the variable's name and what would be right. */
export class SettingsError extends Error {
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`Wrong settings:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.name = 'SettingsError';
    this.problems = problems;
  }
}

const proxyVariables = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'] as const;

/** Decodes the environment and its files of secrets; throws a SettingsError that names every problem. */
export function readSettings(env: Given) {
  const { given, problems: ofFiles } = readSecretFiles(env);
  // Both spellings are usual. Like curl, metersync prefers lower case.
  for (const name of proxyVariables) {
    const lower = given[name.toLowerCase()];
    if (lower !== undefined) given[name] = lower;
  }
  const decoded = environment.safeParse(given);
  const problems = [
    ...ofFiles,
    ...new Set(decoded.error?.issues.map((issue) => `${String(issue.path[0])} ${issue.message}`)),
  ];
  problems.push(...problemsTogether(given));
  const endpoints = readEndpoints(given.SERVICE_ENDPOINTS, problems);
  if (decoded.success) problems.push(...problemsOfConsole(decoded.data));
  if (!decoded.success || problems.length > 0) throw new SettingsError(problems);
  const e = decoded.data;
  return {
    /** Without a URL, the sandbox replaces the service. */
    service: {
      url: e.SERVICE_URL?.replace(/\/$/, ''),
      apiKey: e.SERVICE_API_KEY,
      companies: e.SERVICE_COMPANIES,
      timeZone: e.SERVICE_TIME_ZONE,
      maxConcurrency: e.SERVICE_MAX_CONCURRENCY,
      endpoints,
    },
    /** A run tombstones no more absent records of a listing than the smaller of the two limits. */
    deletesCap: { rows: e.DELETES_CAP_ROWS, percent: e.DELETES_CAP_PERCENT },
    /** Days after which bodies of settled events and superseded parts of runs are dropped; 0 keeps them. */
    retentionDays: e.RETENTION_DAYS,
    webhooks: {
      secrets: e.WEBHOOK_SECRETS,
      secretsFile: e.WEBHOOK_SECRETS_FILE,
      headerPrefix: e.WEBHOOK_HEADER_PREFIX,
      toleranceSeconds: e.WEBHOOK_TOLERANCE_SECONDS,
      publicUrl: e.RECEIVER_PUBLIC_URL,
    },
    /** Without a URL, the embedded Postgres is used. */
    databaseUrl: e.DATABASE_URL,
    /** Which connections to other machines need verified TLS: all, all but Postgres and Temporal, or none. */
    strictTls: e.STRICT_TLS,
    proxies: { https: e.HTTPS_PROXY, http: e.HTTP_PROXY, none: e.NO_PROXY },
    /** Whether Node is set to accept any certificate. */
    certificatesIgnored: given.NODE_TLS_REJECT_UNAUTHORIZED === '0',
    /** Whether Temporal's own environment configuration names a server, instead of the embedded one. */
    temporalConfigured: temporalVariables.some((name) => given[name] !== undefined),
    checksOff: e.CHECKS_OFF,
    /** The first key encrypts. Without keys nothing is encrypted. */
    temporalCodecKeys: e.TEMPORAL_CODEC_KEYS,
    temporalPlaintext: e.TEMPORAL_PLAINTEXT,
    /** The build of the workers, if Temporal is to know their versions. */
    workerVersion: workerVersionOf(e.TEMPORAL_DEPLOYMENT_NAME, e.TEMPORAL_WORKER_BUILD_ID),
    /** When backfills and reconciles start by themselves; undefined for never. */
    schedules: {
      full: e.BACKFILL_CRON,
      reconcile: e.RECONCILE_EVERY === undefined ? undefined : { everyMs: e.RECONCILE_EVERY },
    } satisfies Record<RunKind, ScheduleTimes | undefined>,
    receiver: { host: e.RECEIVER_HOST, port: e.RECEIVER_PORT },
    /** The private port of monitors. Port 0 turns it off, as it does for the console. */
    metrics: { host: e.METRICS_HOST, port: e.METRICS_PORT },
    console: {
      host: e.CONSOLE_HOST,
      port: e.CONSOLE_PORT,
      access: accessOf(e),
      temporalUi: e.TEMPORAL_UI_URL?.replace(/\/$/, ''),
    },
    /** Who runs commands, for the log of operations; by default the user of the system. */
    actor: e.METERSYNC_ACTOR,
    /** Hours without any event after which events probably cannot arrive; 0 for never. */
    silenceHours: e.SILENCE_HOURS,
    notify: { target: e.NOTIFY_URL, secret: e.NOTIFY_SECRET, heartbeatUrl: e.HEARTBEAT_URL },
    logLevel: e.LOG_LEVEL,
    dataDir: e.METERSYNC_DIR,
  };
}

type Given = Readonly<Record<string, string | undefined>>;

/** Lists what is wrong with settings that belong together. */
function problemsTogether(given: Given): readonly string[] {
  const problems: string[] = [];
  if (given.WEBHOOK_SECRETS !== undefined && given.WEBHOOK_SECRETS_FILE !== undefined) {
    problems.push(setTwice('WEBHOOK_SECRETS', 'WEBHOOK_SECRETS_FILE'));
  }
  if (given.SERVICE_URL !== undefined && given.SERVICE_API_KEY === undefined) {
    problems.push(
      'SERVICE_API_KEY has to be set together with SERVICE_URL: it is the key that the service gave you',
    );
  }
  // The library ignores it without a profile, and would connect to another server.
  if (given.TEMPORAL_CONFIG_FILE !== undefined && !existsSync(given.TEMPORAL_CONFIG_FILE)) {
    problems.push(
      `TEMPORAL_CONFIG_FILE has to name a TOML file: ${given.TEMPORAL_CONFIG_FILE} does not exist`,
    );
  }
  if ((given.TEMPORAL_DEPLOYMENT_NAME === undefined) !== (given.TEMPORAL_WORKER_BUILD_ID === undefined)) {
    problems.push(
      'TEMPORAL_DEPLOYMENT_NAME and TEMPORAL_WORKER_BUILD_ID have to be set together: they name a build of the workers',
    );
  }
  problems.push(...problemsOfSecrets('WEBHOOK_SECRETS', list.parse(given.WEBHOOK_SECRETS)));
  problems.push(...problemsOfNotifySecret(given.NOTIFY_SECRET, given.NOTIFY_URL));
  return problems;
}

const workerVersionOf = (deploymentName: string | undefined, buildId: string | undefined) =>
  deploymentName === undefined || buildId === undefined ? undefined : { deploymentName, buildId };

const temporalVariables = ['TEMPORAL_ADDRESS', 'TEMPORAL_CONFIG_FILE', 'TEMPORAL_PROFILE'] as const;

/** Lists what is wrong with the signing secrets of a setting, without quoting any. */
function problemsOfSecrets(setting: string, secrets: readonly string[]): readonly string[] {
  try {
    if (secrets.length > 0) parseSecrets(secrets);
    return [];
  } catch (error) {
    if (!(error instanceof SecretsError)) throw error;
    return error.problems.map((problem) => `${setting}: ${problem}`);
  }
}

function problemsOfNotifySecret(secret: string | undefined, url: string | undefined): readonly string[] {
  if (secret !== undefined) return problemsOfSecrets('NOTIFY_SECRET', [secret]);
  return url === undefined || url.startsWith('slack+')
    ? []
    : ['NOTIFY_SECRET has to be set together with NOTIFY_URL: it signs what is sent there'];
}

function readEndpoints(path: string | undefined, problems: string[]): EndpointCatalogue {
  if (path === undefined) return defaultEndpoints;
  if (!existsSync(path)) {
    problems.push(`SERVICE_ENDPOINTS has to be the path of a JSON file: ${path} does not exist`);
    return defaultEndpoints;
  }
  const file = readJson(path);
  if ('problem' in file) {
    problems.push(`SERVICE_ENDPOINTS: ${path} ${file.problem}`);
    return defaultEndpoints;
  }
  const overrides = endpointOverrides.safeParse(file.value);
  if (overrides.success) return { ...defaultEndpoints, ...overrides.data } as EndpointCatalogue;
  for (const issue of overrides.error.issues) {
    problems.push(`SERVICE_ENDPOINTS: ${path}: ${issue.path.join('.') || 'file'}: ${issue.message}`);
  }
  return defaultEndpoints;
}

function readJson(path: string): { readonly value: unknown } | { readonly problem: string } {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    return { problem: `cannot be read: ${(error as NodeJS.ErrnoException).code}` };
  }
  try {
    return { value: JSON.parse(withoutByteOrderMark(text)) };
  } catch (error) {
    // Some messages quote the file, which may hold secrets if it was named by mistake.
    const where = /at position \d+ \(.*\)$/.exec((error as Error).message)?.[0];
    return { problem: where === undefined ? 'is not JSON' : `is not JSON: ${where}` };
  }
}

export type ConsoleAccess =
  | { readonly by: 'loopback' }
  /** A proxy names the user in a header; no other peer may send it. */
  | {
      readonly by: 'proxy';
      readonly header: string;
      readonly proxies: readonly string[];
      readonly operators: readonly string[];
    };

interface Environment {
  readonly CONSOLE_HOST: string;
  readonly CONSOLE_USER_HEADER?: string | undefined;
  readonly CONSOLE_TRUSTED_PROXIES: readonly string[];
  readonly CONSOLE_OPERATORS: readonly string[];
}

function accessOf(e: Environment): ConsoleAccess {
  if (e.CONSOLE_USER_HEADER !== undefined)
    return {
      by: 'proxy',
      header: e.CONSOLE_USER_HEADER.toLowerCase(),
      proxies: e.CONSOLE_TRUSTED_PROXIES,
      operators: e.CONSOLE_OPERATORS,
    };
  return { by: 'loopback' };
}

/** Lists what is wrong with the settings of the console. Other machines need a proxy to reach it. */
function problemsOfConsole(e: Environment): readonly string[] {
  const { CONSOLE_HOST: host, CONSOLE_USER_HEADER: header, CONSOLE_TRUSTED_PROXIES: proxies } = e;
  if (header !== undefined && proxies.length === 0)
    return [
      'CONSOLE_TRUSTED_PROXIES has to be set together with CONSOLE_USER_HEADER: otherwise anybody could send that header',
    ];
  if (header === undefined && proxies.length + e.CONSOLE_OPERATORS.length > 0)
    return [
      'CONSOLE_USER_HEADER has to be set together with CONSOLE_TRUSTED_PROXIES or CONSOLE_OPERATORS: otherwise they restrict nobody',
    ];
  if (accessOf(e).by === 'loopback' && !isLoopback(host))
    return [
      `CONSOLE_HOST is ${host}, which other machines reach: put a proxy that logs users in before it, and set CONSOLE_USER_HEADER and CONSOLE_TRUSTED_PROXIES`,
    ];
  return [];
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
