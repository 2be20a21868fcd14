import { secretVariables } from '../app/settings/secret-files.ts';
import { readSettings, SettingsError } from '../app/settings/settings.ts';
import { defaultEndpoints } from '../contract/endpoints.ts';
import { formatSeconds } from '../contract/times.ts';
import { httpLimits } from '../receiver/http-limits.ts';
import { generatedFrom } from './markdown.ts';

interface Setting {
  /** The default, written as the variable's value; undefined if there is none. */
  readonly default?: string;
  readonly means: string;
  /** What the value must be, if no check of the settings says so; empty if its meaning does. */
  readonly hasTo?: string;
}

/** Settings of ours, in the order of the page. */
const ours: Readonly<Record<string, Setting>> = {
  SERVICE_URL: { means: 'Base address of the API with its version. Unset: the sandbox runs.' },
  SERVICE_API_KEY: { means: 'Key of the API. Needed with `SERVICE_URL`.', hasTo: '' },
  SERVICE_COMPANIES: {
    default: '',
    means: 'List of ids of companies to sync beside those that the service lists.',
    hasTo: '',
  },
  SERVICE_TIME_ZONE: {
    default: 'UTC',
    means: 'Zone of timestamps that come without one, for example Europe/Berlin.',
    hasTo: '',
  },
  SERVICE_MAX_CONCURRENCY: {
    default: '10',
    means: 'Maximum number of requests in flight to the service from one worker, or from one command.',
  },
  SERVICE_ENDPOINTS: {
    means: 'JSON file that overrides entries of the endpoint catalogue, below.',
    hasTo: '',
  },
  DELETES_CAP_ROWS: {
    default: '50',
    means:
      'Rows of a listing, or readings of a meter, that a run may delete without anybody though nothing explains why they are gone; more wait for `metersync deletes`.',
  },
  DELETES_CAP_PERCENT: {
    default: '5',
    means:
      'The same as a share of the live rows, at least 3, of readings at least 24; the smaller of both holds.',
  },
  RETENTION_DAYS: {
    default: '90',
    means:
      'Days after which bodies of settled events are dropped, and parts of runs that a later run read completely; 0 for never. Ids and outcomes stay.',
  },
  WEBHOOK_SECRETS: {
    default: '',
    means:
      'List of at most 16 signing secrets of the webhook endpoint. The receiver needs these or a file of them.',
    hasTo: 'be `whsec_` and base64 of at least 24 bytes',
  },
  WEBHOOK_HEADER_PREFIX: {
    means: 'Prefix of the signature headers, beside `webhook-` and `svix-`.',
    hasTo: '',
  },
  WEBHOOK_TOLERANCE_SECONDS: {
    default: '300',
    means: 'How far the timestamp of a delivery may be from now.',
  },
  DATABASE_URL: { means: 'The warehouse: Postgres 15 or newer. Unset: an embedded one.' },
  STRICT_TLS: {
    default: 'off',
    means:
      '`on`: commands refuse other machines without verified TLS. `outside`: but Postgres and Temporal, which are on your own networks. `off`: they warn.',
    hasTo: '',
  },
  CHECKS_OFF: {
    default: '',
    means: 'List of checks of the data (`ops.data_issue_checks`) to leave out; their issues are closed.',
    hasTo: '',
  },
  TEMPORAL_CODEC_KEYS: {
    default: '',
    means:
      'List of keys of payloads in Temporal, each `id:key` with base64 of 32 bytes: the first encrypts, all decrypt. All processes and commands need the same. Unset: only the embedded Temporal has a key.',
    hasTo: '',
  },
  TEMPORAL_PLAINTEXT: {
    default: 'refused',
    means: 'With keys: `refused` lets work with unencrypted payloads wait, `accepted` runs it.',
    hasTo: '',
  },
  BACKFILL_CRON: {
    default: '0 3 * * *',
    means:
      'When everything is read again: `none`, or five fields of cron in UTC. Write `CRON_TZ=Europe/Berlin 30 1 * * 6` for another time zone. Each start is up to 30 minutes late, at random. A worker applies this when it starts.',
    hasTo: '',
  },
  RECONCILE_EVERY: {
    default: '1h',
    means: 'How often recent updates are read: `none`, or from 1m to 7d, for example 15m.',
    hasTo: '',
  },
  RECEIVER_HOST: { default: '127.0.0.1', means: 'Where the receiver listens; `0.0.0.0`: on all addresses.' },
  RECEIVER_PORT: { default: '8080', means: 'Its port; 0 for a free one.' },
  METRICS_HOST: {
    default: '127.0.0.1',
    means: 'Where the private port (`/metrics`, `/healthz`, `/readyz`) listens; never open it to strangers.',
  },
  METRICS_PORT: { default: '9464', means: 'The private port; 0 for none.' },
  CONSOLE_HOST: {
    default: '127.0.0.1',
    means: 'Where the console listens. Other than loopback needs a proxy that says who somebody is.',
  },
  CONSOLE_PORT: { default: '8090', means: 'Its port; 0 for none.' },
  CONSOLE_USER_HEADER: {
    means: 'Header in which your proxy names the user.',
    hasTo: '',
  },
  CONSOLE_TRUSTED_PROXIES: {
    default: '',
    means: 'List of addresses and networks (`10.0.0.0/8`) of that proxy, which alone may send the header.',
    hasTo: '',
  },
  CONSOLE_OPERATORS: {
    default: '',
    means: 'List of users of the header who may act; others look.',
    hasTo: '',
  },
  TEMPORAL_UI_URL: { means: "Temporal's web page, for links of the console.", hasTo: '' },
  METERSYNC_ACTOR: {
    means: 'Who runs a command, for the log of operations. Unset: the user of the system.',
  },
  RECEIVER_PUBLIC_URL: {
    means: 'The registered address: `metersync doctor` sends a probe through it.',
    hasTo: '',
  },
  SILENCE_HOURS: {
    default: '72',
    means: 'Hours without any event that mean trouble; 0 for never.',
  },
  NOTIFY_URL: {
    means:
      'Where alarms are sent when they open and when they are over: an address that takes JSON, or `slack+https://…` for an incoming webhook of Slack.',
    hasTo: '',
  },
  NOTIFY_SECRET: {
    means: 'Signs the JSON (Standard Webhooks). Needed with such an address.',
    hasTo: '',
  },
  HEARTBEAT_URL: {
    means: 'Dead man’s switch outside, called (GET) each minute while no `page` is open.',
    hasTo: '',
  },
  LOG_LEVEL: { default: 'info', means: 'Least level that is logged.' },
  METERSYNC_DIR: {
    default: '.metersync',
    means: 'Folder of the embedded stack, and of logs of commands with a display.',
  },
};

/** Variables of Temporal, Node and others, as far as metersync reads them itself. */
const ofOthers: Readonly<Record<string, Setting>> = {
  TEMPORAL_ADDRESS: {
    means: 'Host and port of Temporal. Without this and a profile: an embedded one.',
  },
  TEMPORAL_PROFILE: {
    means: "Profile of Temporal's configuration file.",
    hasTo: '',
  },
  TEMPORAL_CONFIG_FILE: { means: "Temporal's configuration file, if not at its usual place.", hasTo: '' },
  TEMPORAL_DEPLOYMENT_NAME: {
    means:
      'Deployment of the workers. With it a build gets work once it is promoted (docs/runbooks.md). Without it any worker gets any work.',
    hasTo: '',
  },
  TEMPORAL_WORKER_BUILD_ID: {
    means: 'Build of this worker. Each version that is deployed needs another.',
    hasTo: '',
  },
  HTTPS_PROXY: { means: 'HTTP proxy of requests to https addresses.' },
  HTTP_PROXY: {
    means: 'HTTP proxy of requests to http addresses, and to https without `HTTPS_PROXY`.',
    hasTo: '',
  },
  NO_PROXY: {
    default: '',
    means: 'List of hosts (with subdomains) that are reached without a proxy. Lower case holds, too.',
    hasTo: '',
  },
  NODE_TLS_REJECT_UNAUTHORIZED: {
    means: "Node's own: 0 accepts any certificate; `STRICT_TLS` refuses it.",
    hasTo: '',
  },
};

/** Files of secrets that are read in another way than those of one line. */
const files: Readonly<Record<string, Setting>> = {
  WEBHOOK_SECRETS_FILE: {
    means: `File with one secret a line, read again within ${formatSeconds(httpLimits.secretsCheckMs / 1000)} of a change; the one word \`none\` revokes all.`,
    hasTo: '',
  },
};

/** Every variable of app/settings/settings.ts. A test compares this with the source. */
export const settings = { ...ours, ...ofOthers, ...files };

/** Makes docs/reference/settings.md: the variables of the environment, with defaults and requirements. */
export function settingsPage(): string {
  const lines = Object.entries(ours).map(([name, setting]) => `- ${described(name, setting)}`);
  const rows = Object.entries(ofOthers).map(([name, { means }]) => `| \`${name}\` | ${means} |`);
  return [
    generatedFrom('app/settings/settings.ts and verify/settings-page.ts'),
    '# Settings',
    '',
    'Settings are read from the environment once, at the start. Brackets have the default and the bounds.',
    'Items of a list are separated by commas. An empty variable counts as unset. A command lists all that',
    'is wrong and ends with status 2.',
    '',
    ...lines,
    '',
    '## Variables of Temporal and Node',
    '',
    "All of Temporal's environment configuration holds, for example `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`,",
    '`TEMPORAL_TLS`, `TEMPORAL_TLS_CLIENT_CERT_PATH` and `TEMPORAL_TLS_CLIENT_KEY_PATH`.',
    '',
    '| Variable | Meaning |',
    '| --- | --- |',
    ...rows,
    '',
    '## Secrets in files',
    '',
    'A file of one line may hold each of these: `NAME_FILE` names it in place of `NAME`.',
    `${secretVariables.map((name) => `\`${name}\``).join(', ')}. Restart a process to change them.`,
    '',
    ...Object.entries(files).map(([name, setting]) => described(name, setting)),
    '',
    '## The endpoint catalogue',
    '',
    'Where the service keeps each resource. `SERVICE_ENDPOINTS` names a JSON file with any of these',
    'entries. An entry replaces the default as a whole; `null` says that there is no such endpoint.',
    '',
    '- `path` and `query` may hold `{companyId}`, `{meterId}`, `{id}`, `{start}` and `{end}`. A parameter',
    '  whose placeholder has no value is left out.',
    "- `items` and `total` name keys of the service's envelope; a bare array is one page.",
    '- A reconcile asks with `updatedSince` (the day `{since}`), and with `withDeleted` for deleted records.',
    '',
    '```json',
    catalogue(),
    '```',
    '',
  ].join('\n');
}

function described(name: string, { default: value, means, hasTo }: Setting): string {
  const demand = hasTo ?? demandOf(name) ?? '';
  const range = rangeOf(demand);
  const set = [value === undefined || value === '' ? undefined : `\`${value}\``, range].filter(Boolean);
  const limits = set.length === 0 ? '' : ` (${set.join('; ')})`;
  return `\`${name}\`${limits}: ${means}${range === undefined ? sentenceOf(demand) : ''}`;
}

/** Returns the range that a number must be in: `1 to 100`. */
const rangeOf = (demand: string): string | undefined => /^be a whole number from (.*)$/.exec(demand)?.[1];

/** Writes what a value must be; of an address an example. */
function sentenceOf(demand: string): string {
  const [, example] = /^be a (?:URL|host and a port), for example (.*)$/.exec(demand) ?? [];
  if (example !== undefined) return ` For example ${example}.`;
  return demand === '' ? '' : ` Has to ${demand}.`;
}

/**
 * Returns what the code requires of a variable, from its error for a wrong value; undefined if it accepts
 * that.
 */
function demandOf(name: string): string | undefined {
  const wrong = 'no value is this!';
  try {
    readSettings({ [name]: wrong });
    return undefined;
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    const demand = error.problems.find((problem) => problem.startsWith(`${name} has to `));
    return demand?.slice(`${name} has to `.length).split(`: ${wrong}`)[0];
  }
}

function catalogue(): string {
  const lines = Object.entries(defaultEndpoints).map(
    ([name, endpoint]) => `  ${JSON.stringify(name)}: ${spaced(JSON.stringify(endpoint))}`,
  );
  return `{\n${lines.join(',\n')}\n}`;
}

const spaced = (json: string): string => json.replace(/(?<=[:,])(?=["{])/g, ' ');
