import { isIPv4, isIPv6 } from 'node:net';
import { z } from 'zod';
import type { NotifyTarget } from '../../activities/notifier.ts';
import { checkNames } from '../../contract/check-names.ts';
import type { CodecKey } from '../temporal/payload-codec.ts';
import { cronHasTo, parseCron, parseDuration } from '../temporal/schedule-times.ts';

const uuid = z.guid('has to hold UUIDs separated by commas');

export const list = z
  .string()
  .default('')
  .transform((text) =>
    text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  );

export const url = (schemes: readonly string[], example: string) =>
  z.string().refine((text) => URL.canParse(text) && schemes.includes(new URL(text).protocol), {
    message: `has to be a URL, for example ${example}`,
    abort: true,
  });

/** Whether a URL has no part that could contain a password or token. */
const isPlainAddress = ({ username, password, search, hash }: URL): boolean =>
  `${username}${password}${search}${hash}` === '';

/** Errors never quote the value, which may hold a password. */
export const proxy = z
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

export const timeZone = z
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

export const environment = z.object({
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

function parseTarget(text: string): NotifyTarget | undefined {
  const [, slack, url] = /^(slack\+)?(https?:\/\/\S+)$/.exec(text) ?? [];
  if (url === undefined || !URL.canParse(url)) return undefined;
  return { kind: slack === undefined ? 'json' : 'slack', url };
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

/** Whether a text is an address, or a network such as `10.0.0.0/8`. */
function isNetwork(text: string): boolean {
  const [address = '', length, ...more] = text.split('/');
  const bits = isIPv4(address) ? 32 : isIPv6(address) ? 128 : 0;
  if (bits === 0 || more.length > 0) return false;
  return length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= bits);
}
