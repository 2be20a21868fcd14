import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import type { NotifyTarget } from '../../activities/notifier.ts';
import { checkNames } from '../../contract/check-names.ts';
import { defaultEndpoints, type EndpointCatalogue, endpointOverrides } from '../../contract/endpoints.ts';
import { withoutByteOrderMark } from '../../contract/json.ts';
import type { RunKind } from '../../contract/names.ts';
import { parseSecrets, SecretsError } from '../../receiver/secrets.ts';
import type { CodecKey } from '../temporal/payload-codec.ts';
import { cronHasTo, parseCron, parseDuration, type ScheduleTimes } from '../temporal/schedule-times.ts';
import { accessOf, isNetwork, problemsOfConsole } from './console-access.ts';
import { removedSettings } from './removed-settings.ts';
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

const uuid = z.guid('has to hold UUIDs separated by commas');
const list = z
  .string()
  .default('')
  .transform((text) =>
    text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  );
const url = (schemes: readonly string[], example: string) =>
  z.string().refine((text) => URL.canParse(text) && schemes.includes(new URL(text).protocol), {
    message: `has to be a URL, for example ${example}`,
    abort: true,
  });
/** Whether a URL has no part that could contain a password or token. */
const isPlainAddress = ({ username, password, search, hash }: URL): boolean =>
  `${username}${password}${search}${hash}` === '';
/** Errors never quote the value, which may hold a password. */
const proxy = z
  .string()
  .transform((text) => (text.includes('://') ? text : `http://${text}`))
  .refine(isProxy, 'has to be a URL, for example http://proxy.example:3128')
  .transform((text) => new URL(text));
const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, `has to be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((n) => n >= min && n <= max, `has to be a whole number from ${min} to ${max}`);
const integer = (min: number, max: number, fallback: number) => wholeNumber(min, max).default(fallback);
const timeZone = z
  .string()
  .default('UTC')
  .refine((zone) => isTimeZone(zone), 'has to be a time zone, for example UTC or Europe/Berlin');

const minute = 60_000;

const codecKeysHaveTo =
  'has to hold id:key pairs separated by commas, each key base64 of 32 bytes, each id once';
/** Errors never quote the value, which may be a key. */
const codecKeys = list
  .refine((items) => items.every((item) => /^[\w.-]{1,64}:[A-Za-z0-9+/]{43}=$/.test(item)), {
    message: codecKeysHaveTo,
    abort: true,
  })
  .transform((items) =>
    items.map((item): CodecKey => {
      const [id = '', key = ''] = item.split(':');
      return { id, key: Buffer.from(key, 'base64') };
    }),
  )
  .refine((keys) => new Set(keys.map(({ id }) => id)).size === keys.length, codecKeysHaveTo);

/** Errors never quote the value, which may hold a key. */
const notifyUrlHasTo =
  'has to be an address that accepts JSON (https://…) or an incoming webhook of Slack (slack+https://…)';

const strictness = ['on', 'outside', 'off'] as const;

const environment = z.object({
  SERVICE_URL: url(['http:', 'https:'], 'https://service.example/v2.2')
    .refine((text) => /\/v\d[^/\s]*\/?$/.test(text), 'has to end in the version, for example /v2.2')
    .refine((text) => isPlainAddress(new URL(text)), {
      message: 'has to be an address without a key, because it is logged: the key goes into SERVICE_API_KEY',
    })
    .optional(),
  SERVICE_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'has to be printable text without spaces')
    .optional(),
  SERVICE_COMPANIES: list.pipe(z.array(uuid)),
  SERVICE_TIME_ZONE: timeZone,
  SERVICE_MAX_CONCURRENCY: integer(1, 100, 10),
  SERVICE_ENDPOINTS: z.string().optional(),
  DELETES_CAP_ROWS: integer(0, 1_000_000, 50),
  DELETES_CAP_PERCENT: integer(0, 100, 5),
  RETENTION_DAYS: integer(0, 36_500, 90),
  WEBHOOK_SECRETS: list,
  WEBHOOK_SECRETS_FILE: z.string().optional(),
  WEBHOOK_HEADER_PREFIX: z
    .string()
    .regex(/^[a-z0-9-]{1,40}$/i, 'has to be the start of header names, for example webhook-')
    .optional(),
  WEBHOOK_TOLERANCE_SECONDS: integer(1, 86_400, 300),
  DATABASE_URL: url(
    ['postgres:', 'postgresql:'],
    'postgres://user:password@host:5432/warehouse?sslmode=verify-full',
  ).optional(),
  TEMPORAL_ADDRESS: z
    .string()
    .refine(isAddress, 'has to be a host and a port, for example temporal.example:7233')
    .optional(),
  STRICT_TLS: z.enum(strictness, 'has to be on, outside or off').default('off'),
  HTTPS_PROXY: proxy.optional(),
  HTTP_PROXY: proxy.optional(),
  NO_PROXY: z.string().default(''),
  CHECKS_OFF: list.pipe(
    z.array(
      z.enum(checkNames, {
        error: ({ input }) =>
          `has to be names of checks separated by commas, and ${input} is not a check: the checks are ${checkNames.join(', ')}`,
      }),
    ),
  ),
  TEMPORAL_CODEC_KEYS: codecKeys,
  TEMPORAL_PLAINTEXT: z.enum(['refused', 'accepted'], 'has to be refused or accepted').default('refused'),
  // Temporal joins the names of the deployment and the build by a dot, so the first cannot contain one.
  TEMPORAL_DEPLOYMENT_NAME: z
    .string()
    .regex(/^[A-Za-z0-9_/-]{1,200}$/, 'has to be letters, digits, -, _ and /')
    .optional(),
  TEMPORAL_WORKER_BUILD_ID: z
    .string()
    .regex(/^[A-Za-z0-9_./-]{1,200}$/, 'has to be letters, digits, -, _, . and /')
    .optional(),
  BACKFILL_CRON: z
    .string()
    .default('0 3 * * *')
    .refine((text) => text === 'none' || isTimeZone(parseCron(text)?.timeZone ?? ''), cronHasTo)
    .transform(parseCron),
  RECONCILE_EVERY: z
    .string()
    .default('1h')
    .transform((text) => (text === 'none' ? undefined : (parseDuration(text) ?? 0)))
    .refine(
      (everyMs) => everyMs === undefined || (everyMs >= minute && everyMs <= 7 * 24 * 60 * minute),
      'has to be none or a time from 1m to 7d, for example 15m or 6h',
    ),
  RECEIVER_HOST: z.string().min(1).default('127.0.0.1'),
  RECEIVER_PORT: integer(0, 65_535, 8080),
  METRICS_HOST: z.string().min(1).default('127.0.0.1'),
  METRICS_PORT: integer(0, 65_535, 9464),
  CONSOLE_HOST: z.string().min(1).default('127.0.0.1'),
  CONSOLE_PORT: integer(0, 65_535, 8090),
  CONSOLE_USER_HEADER: z
    .string()
    .regex(/^[a-z0-9-]{1,60}$/i, 'has to be the name of a header, for example x-forwarded-user')
    .optional(),
  CONSOLE_TRUSTED_PROXIES: list.refine(
    (networks) => networks.every(isNetwork),
    'has to hold addresses or networks separated by commas, for example 10.0.0.0/8',
  ),
  CONSOLE_OPERATORS: list,
  TEMPORAL_UI_URL: url(['http:', 'https:'], 'https://temporal.example').optional(),
  METERSYNC_ACTOR: z.string().max(200, 'has to be at most 200 characters').optional(),
  RECEIVER_PUBLIC_URL: url(['http:', 'https:'], 'https://hooks.example/webhooks').optional(),
  SILENCE_HOURS: integer(0, 8_760, 72),
  NOTIFY_URL: z
    .string()
    .transform(parseTarget)
    .refine((target) => target !== undefined, notifyUrlHasTo)
    .optional(),
  NOTIFY_SECRET: z.string().optional(),
  HEARTBEAT_URL: url(['http:', 'https:'], 'https://hc.example/ping').optional(),
  LOG_LEVEL: z
    .enum(
      ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
      'has to be trace, debug, info, warn, error or silent',
    )
    .default('info'),
  METERSYNC_DIR: z.string().min(1).default('.metersync'),
});
const proxyVariables = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'] as const;

/** Decodes the environment and its files of secrets; throws a SettingsError that names every problem. */
export function readSettings(env: Readonly<Record<string, string | undefined>>) {
  const { given, problems: ofFiles } = readSecretFiles(env);
  // Both spellings are usual. Like curl, metersync prefers lower case.
  for (const name of proxyVariables) {
    const lower = given[name.toLowerCase()];
    if (lower !== undefined) given[name] = lower;
  }
  const removed = removedSettings(given);
  const decoded = environment.safeParse(given);
  const problems = [
    ...ofFiles,
    ...removed.problems,
    ...new Set(decoded.error?.issues.map((issue) => `${String(issue.path[0])} ${issue.message}`)),
  ];
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
    warnings: removed.warnings,
  };
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

function parseTarget(text: string): NotifyTarget | undefined {
  const [, slack, url] = /^(slack\+)?(https?:\/\/\S+)$/.exec(text) ?? [];
  if (url === undefined || !URL.canParse(url)) return undefined;
  return { kind: slack === undefined ? 'json' : 'slack', url };
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

/** Refuses a path, which the rest of a password after an unescaped `/`, `?` or `#` would be taken for. */
function isProxy(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, pathname, search, hash, username, password } = new URL(text);
  if (!/^https?:$/.test(protocol) || `${pathname}${search}${hash}` !== '/') return false;
  try {
    decodeURIComponent(`${username}:${password}`);
    return true;
  } catch {
    return false;
  }
}

/** Accepts a host with or without a port. Without a port, Temporal's default port is used. */
function isAddress(text: string): boolean {
  const [, port = '7233'] = /^(?:\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/i.exec(text) ?? [undefined, '0'];
  return Number(port) >= 1 && Number(port) <= 65_535;
}

function isTimeZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
    // An offset is refused: Postgres reads its sign the other way round.
    return /^[A-Za-z][A-Za-z0-9_+/-]*$/.test(zone);
  } catch {
    return false;
  }
}
