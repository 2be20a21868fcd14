import { optionalSecrets, secretVariables } from '../app/settings/secret-files.ts';
import { readSettings, SettingsError } from '../app/settings/settings.ts';
import { defaultEndpoints } from '../contract/endpoints.ts';
import { formatSeconds } from '../contract/times.ts';
import { httpLimits } from '../receiver/http-limits.ts';
import { generatedFrom } from './markdown.ts';

interface Setting {
  /** The default, written as the variable's value; undefined if there is none. */
  readonly default?: string;
  readonly means: string;
}

/** metersync's settings, in the order of the page. */
const ours: Readonly<Record<string, Setting>> = {
  SERVICE_URL: { means: 'Base address of the API with its version. If unset, the sandbox is used.' },
  SERVICE_API_KEY: { means: 'API key. Required with `SERVICE_URL`.' },
  SERVICE_COMPANIES: {
    default: '',
    means: 'List of ids of companies to sync in addition to the companies that the service lists.',
  },
  SERVICE_TIME_ZONE: {
    default: 'UTC',
    means: 'Time zone of timestamps that come without one, for example Europe/Berlin.',
  },
  SERVICE_MAX_CONCURRENCY: {
    default: '10',
    means: 'Maximum number of requests to the service in flight, for each worker and each command.',
  },
  SERVICE_ENDPOINTS: {
    means: 'JSON file that overrides entries of the endpoint catalogue (see below).',
  },
  DELETES_CAP_ROWS: {
    default: '50',
    means:
      'Number of rows of a listing, or of readings of a meter, that a run may delete although nothing explains their absence. More of them wait for a decision (`metersync deletes`).',
  },
  DELETES_CAP_PERCENT: {
    default: '5',
    means:
      'The same limit in percent of the live rows, but at least 3 rows or 24 readings. The smaller limit applies.',
  },
  RETENTION_DAYS: {
    default: '90',
    means:
      'Days after which the bodies of settled events are dropped, and parts of runs that a later run read completely. 0 means never. Ids and outcomes are kept.',
  },
  WEBHOOK_SECRETS: {
    default: '',
    means:
      'List of at most 16 signing secrets of the webhook endpoint, each `whsec_` and base64 of at least 24 bytes.',
  },
  WEBHOOK_HEADER_PREFIX: {
    means: 'Another prefix of the signature headers, in addition to `webhook-` and `svix-`.',
  },
  WEBHOOK_TOLERANCE_SECONDS: {
    default: '300',
    means: 'Maximum difference between the timestamp of a delivery and now.',
  },
  DATABASE_URL: { means: 'The warehouse: Postgres 15 or newer. If unset, an embedded Postgres is used.' },
  STRICT_TLS: {
    default: 'off',
    means:
      '`on` refuses connections to other machines without verified TLS, `outside` except to Postgres and Temporal, and `off` only warns.',
  },
  CHECKS_OFF: {
    default: '',
    means: 'List of checks of the data (`ops.data_issue_checks`) to turn off.',
  },
  TEMPORAL_CODEC_KEYS: {
    default: '',
    means:
      'List of keys that encrypt payloads in Temporal, each `id:key` with 32 bytes in base64. The first key encrypts, and all of them decrypt. All processes and commands need the same list.',
  },
  TEMPORAL_PLAINTEXT: {
    default: 'refused',
    means:
      'What happens to unencrypted payloads if there are keys: `refused` makes their work wait, `accepted` runs it.',
  },
  BACKFILL_CRON: {
    default: '0 3 * * *',
    means:
      'When everything is read again: `none`, or five fields of cron in UTC. `CRON_TZ=Europe/Berlin 30 1 * * 6` names another time zone. Each start is delayed by up to 30 minutes at random.',
  },
  RECONCILE_EVERY: {
    default: '1h',
    means: 'How often recent updates are read: `none`, or an interval from 1m to 7d, for example 15m.',
  },
  RECEIVER_HOST: {
    default: '127.0.0.1',
    means: 'Address on which the receiver listens; `0.0.0.0` means all addresses.',
  },
  RECEIVER_PORT: { default: '8080', means: 'The port of the receiver; 0 chooses a free port.' },
  METRICS_HOST: {
    default: '127.0.0.1',
    means: 'Address of the [private port](metrics.md). Never make it reachable from outside.',
  },
  METRICS_PORT: { default: '9464', means: 'The private port; 0 turns it off.' },
  CONSOLE_HOST: {
    default: '127.0.0.1',
    means: 'Address on which the console listens. All but loopback need a proxy that names the user.',
  },
  CONSOLE_PORT: { default: '8090', means: "The console's port; 0 turns the console off." },
  CONSOLE_USER_HEADER: {
    means: 'Header in which your proxy names the user.',
  },
  CONSOLE_TRUSTED_PROXIES: {
    default: '',
    means: 'List of addresses and networks (`10.0.0.0/8`) of that proxy. Only they may send the header.',
  },
  CONSOLE_OPERATORS: {
    default: '',
    means: 'List of users who may act, by the names in the header. Others only look.',
  },
  TEMPORAL_UI_URL: { means: "Address of Temporal's web page, for links in the console." },
  METERSYNC_ACTOR: {
    means: 'Name of the person who runs a command, for the log of operations, if not the user of the system.',
  },
  RECEIVER_PUBLIC_URL: {
    means: 'The registered address of the webhook endpoint, through which `metersync doctor` sends a probe.',
  },
  SILENCE_HOURS: {
    default: '72',
    means: 'Number of hours without any event after which the alarm Silent opens. 0 means never.',
  },
  NOTIFY_URL: {
    means:
      'Where alarms are sent: an address that accepts JSON, or `slack+https://…` for an incoming webhook of Slack.',
  },
  NOTIFY_SECRET: {
    means: 'Secret that signs the JSON (Standard Webhooks). Required if `NOTIFY_URL` accepts JSON.',
  },
  HEARTBEAT_URL: {
    means:
      'External dead man’s switch, requested (GET) each minute while Postgres accepts writes and no alarm of severity `page` is open.',
  },
  LOG_LEVEL: {
    default: 'info',
    means: 'Lowest level that is logged: trace, debug, info, warn, error or silent.',
  },
  METERSYNC_DIR: {
    default: '.metersync',
    means:
      '[Folder](sandbox.md#the-data-folder) of the embedded stack, the link of the console, and logs of commands.',
  },
};

/** Variables of Temporal, Node and others, as far as metersync reads them itself. */
const ofOthers: Readonly<Record<string, Setting>> = {
  TEMPORAL_ADDRESS: {
    means: 'Host and port of Temporal. Without it and without a profile, an embedded Temporal is used.',
  },
  TEMPORAL_PROFILE: {
    means: "Profile of Temporal's configuration file.",
  },
  TEMPORAL_CONFIG_FILE: { means: "Temporal's configuration file, if not at its usual place." },
  TEMPORAL_DEPLOYMENT_NAME: {
    means:
      'Deployment of the workers, in which a build gets work once it is [promoted](../running.md#builds-of-workers).',
  },
  TEMPORAL_WORKER_BUILD_ID: {
    means: 'Build id of this worker. Each deployed version needs its own.',
  },
  HTTPS_PROXY: { means: 'HTTP proxy for requests to https addresses.' },
  HTTP_PROXY: {
    means: 'HTTP proxy for all other requests.',
  },
  NO_PROXY: {
    default: '',
    means: 'List of hosts, with their subdomains, that are reached without a proxy.',
  },
  NODE_TLS_REJECT_UNAUTHORIZED: {
    means: 'A variable of Node: 0 accepts any certificate. `STRICT_TLS` refuses this value.',
  },
};

/** Files of secrets that are not read as a single line. */
const files: Readonly<Record<string, Setting>> = {
  WEBHOOK_SECRETS_FILE: {
    means: `File with one secret on each line. It is read again within ${formatSeconds(httpLimits.secretsCheckMs / 1000)} of a change. The single word \`none\` revokes all secrets.`,
  },
};

/** Every variable of app/settings/environment.ts. A test compares this with the source. */
export const settings = { ...ours, ...ofOthers, ...files };

/** Makes docs/reference/settings.md: the variables of the environment, with defaults and requirements. */
export function settingsPage(): string {
  const lines = Object.entries(ours).map(([name, setting]) => `- ${described(name, setting)}`);
  const rows = Object.entries(ofOthers).map(([name, { means }]) => `| \`${name}\` | ${means} |`);
  return [
    generatedFrom('app/settings/environment.ts and verify/settings-page.ts'),
    '# Settings',
    '',
    'Settings are environment variables, which are read once at the start. The default and the limits are in brackets.',
    'Items of a list are separated by commas. An empty variable counts as unset.',
    '',
    ...lines,
    '',
    '## Variables of Temporal and Node',
    '',
    "All of Temporal's environment configuration applies, for example `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY` and",
    '`TEMPORAL_TLS_CLIENT_CERT_PATH`.',
    '',
    '| Variable | Meaning |',
    '| --- | --- |',
    ...rows,
    '',
    '## Secrets in files',
    '',
    'Each of these secrets can be in a file of one line. Then set `NAME_FILE` to the path of the file instead of `NAME`:',
    `${secretVariables.map((name) => `\`${name}\``).join(', ')}. Restart a process after a change.`,
    `A file may be empty for ${optionalSecrets.map((name) => `\`${name}\``).join(', ')}: then the setting is not set.`,
    '',
    ...Object.entries(files).map(([name, setting]) => described(name, setting)),
    '',
    '## The endpoint catalogue',
    '',
    'The catalogue says where the service has each resource. `SERVICE_ENDPOINTS` names a JSON file with any of these',
    'entries. An entry replaces the whole default entry, and `null` means that there is no such endpoint.',
    '',
    '- `path` and `query` can contain `{companyId}`, `{meterId}`, `{id}`, `{start}` and `{end}`. A parameter',
    '  whose placeholder has no value is left out.',
    "- `items` and `total` name keys of the service's envelope. A bare array counts as one page.",
    '- A reconcile uses the parameters of `updatedSince` (with the day `{since}`), and the parameters of `withDeleted` to include deleted records.',
    '',
    '```json',
    catalogue(),
    '```',
    '',
  ].join('\n');
}

function described(name: string, { default: value, means }: Setting): string {
  const demand = demandOf(name);
  const range = /^be a whole number from (.*)$/.exec(demand)?.[1];
  const [, example] = /^be a (?:URL|host and a port), for example (.*)$/.exec(demand) ?? [];
  const set = [value === undefined || value === '' ? undefined : `\`${value}\``, range].filter(Boolean);
  const limits = set.length === 0 ? '' : ` (${set.join('; ')})`;
  return `\`${name}\`${limits}: ${means}${example === undefined ? '' : ` For example ${example}.`}`;
}

/** Returns what the code requires of a variable, from the error that a wrong value causes. */
function demandOf(name: string): string {
  const wrong = 'no value is this!';
  try {
    readSettings({ [name]: wrong });
    return '';
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    const demand = error.problems.find((problem) => problem.startsWith(`${name} has to `)) ?? '';
    return demand.slice(`${name} has to `.length).split(`: ${wrong}`)[0] ?? '';
  }
}

function catalogue(): string {
  const lines = Object.entries(defaultEndpoints).map(
    ([name, endpoint]) => `  ${JSON.stringify(name)}: ${spaced(JSON.stringify(endpoint))}`,
  );
  return `{\n${lines.join(',\n')}\n}`;
}

const spaced = (json: string): string => json.replace(/(?<=[:,])(?=["{])/g, ' ');
