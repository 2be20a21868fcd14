import { readSettings, SettingsError } from '../app/settings.ts';
import { defaultEndpoints } from '../contract/endpoints.ts';
import { httpLimits } from '../contract/http-limits.ts';
import { formatSeconds } from '../contract/times.ts';
import { generatedFrom, markdownTable } from './markdown.ts';

interface Setting {
  /** The default, written as the variable's value; undefined if there is none. */
  readonly default?: string;
  readonly means: string;
  /** What the value must be, if no check of the settings says so. */
  readonly hasTo?: string;
}

/** Every variable of app/settings.ts, in the order of the page. A test compares this with the source. */
export const settings: Readonly<Record<string, Setting>> = {
  SERVICE_URL: { means: 'Base address of the API with its version. Unset: the sandbox runs instead.' },
  SERVICE_API_KEY: { means: 'The key of the API. Needed with `SERVICE_URL`.' },
  SERVICE_COMPANIES: {
    default: '',
    means: 'Ids of companies to sync beside those that the service lists, separated by commas.',
  },
  SERVICE_TIME_ZONE: { default: 'UTC', means: 'Zone of the timestamps that the service sends without one.' },
  SERVICE_MAX_CONCURRENCY: {
    default: '10',
    means:
      'Requests to the service at once, over all workers on the warehouse. Each takes its part; more workers than that take turns.',
  },
  SERVICE_MAX_PER_SECOND: {
    means:
      'Requests to the service a second, over all workers on the warehouse. Unset: as many as it answers, `SERVICE_MAX_CONCURRENCY` at once.',
  },
  SERVICE_ENDPOINTS: { means: 'File that overrides entries of the endpoint catalogue, below.' },
  DELETES_CAP_ROWS: {
    default: '50',
    means:
      'Rows of one listing that a backfill may tombstone because the service no longer shows them, or a reconcile because it lists them as deleted; more wait for `metersync deletes`.',
  },
  DELETES_CAP_PERCENT: {
    default: '5',
    means: 'The same as a share of the live rows, of 3 rows at least; the smaller of both holds.',
  },
  JOURNAL_PAYLOAD_DAYS: {
    default: '90',
    means:
      'Days after which the payloads of settled events are dropped from the journal; 0 keeps them for ever. Ids and outcomes stay, and so do payloads of events that wait, are dead or missing.',
  },
  RUNS_DAYS: {
    default: '90',
    means:
      'Days after which parts of runs (`metersync.runs`) are dropped that a later run read completely; 0 keeps them for ever. The rows of the runs stay, with the sums of their parts.',
  },
  WEBHOOK_SECRETS: {
    default: '',
    means:
      'Signing secrets of the webhook endpoint, separated by commas: a delivery has to verify under one of them. The receiver needs these or a file of them.',
    hasTo: 'be `whsec_` and base64 of at least 24 bytes; at most 16',
  },
  WEBHOOK_SECRETS_FILE: {
    means: `File with one secret a line, read again within ${formatSeconds(httpLimits.secretsCheckMs / 1000)} of a change; the one word \`none\` revokes all. It wins over \`WEBHOOK_SECRETS\`.`,
    hasTo: 'name a file that can be read',
  },
  WEBHOOK_HEADER_PREFIX: {
    means: 'One more prefix of the three signature headers, beside `webhook-` and `svix-`.',
  },
  WEBHOOK_TOLERANCE_SECONDS: {
    default: '300',
    means: 'How far the timestamp of a delivery may be from now.',
  },
  DATABASE_URL: { means: 'The warehouse: Postgres 15 or newer. Unset: an embedded Postgres runs.' },
  TEMPORAL_ADDRESS: {
    means: 'Host and port of Temporal. With neither this nor a profile set, an embedded Temporal runs.',
  },
  TEMPORAL_PROFILE: {
    means: "Profile of Temporal's own configuration file.",
    hasTo: 'be in that file',
  },
  TEMPORAL_CONFIG_FILE: { means: 'That file, when it is not at its usual place.', hasTo: 'name a TOML file' },
  STRICT_TLS: {
    default: 'off',
    means:
      'Whether commands refuse to connect to another machine without TLS and a verified certificate: the warehouse, the service, Temporal. When off, `start`, `receiver`, `worker`, `migrate` and `doctor` warn.',
  },
  PLAINTEXT_HOSTS: {
    default: '',
    means:
      'Hosts that need no TLS, as the network between is yours alone: names as in the addresses, separated by commas. They are neither warned of nor refused.',
    hasTo: 'hold names of hosts',
  },
  NODE_TLS_REJECT_UNAUTHORIZED: {
    means:
      "Node's own: 0 has any certificate taken, by everything. It is warned of, and refused with `STRICT_TLS`.",
    hasTo: 'be unset',
  },
  RECONCILE_DAYS: {
    default: '2',
    means: 'Days before today, by UTC, of which a reconcile reads what was updated.',
  },
  CHECKS_OFF: {
    default: '',
    means:
      'Checks of the data that are left out: they open no issue, and what is open of them is closed as `check_off` at the next look.',
    hasTo: 'hold names that `metersync checks describe` lists, separated by commas',
  },
  TEMPORAL_CODEC_KEYS: {
    default: '',
    means:
      'Keys that encrypt what Temporal is given, events above all: `id:key` pairs separated by commas. The first encrypts, all decrypt. The receiver, the workers and commands need the same. Unset: nothing is encrypted, but in the embedded Temporal, for which a key is made.',
  },
  TEMPORAL_PLAINTEXT: {
    default: 'refused',
    means:
      'With keys: whether a payload that none of them encrypted, or that a version before 0.1.0 did, is `refused`: its work waits and is reported; or `accepted`, while the last payloads from before the keys are in flight.',
  },
  TEMPORAL_DEPLOYMENT_NAME: {
    means:
      'Names the deployment of the workers, with `TEMPORAL_WORKER_BUILD_ID`. Then Temporal tells builds apart, and one gets work once it is promoted (`metersync workers`). Without them any worker gets any work.',
  },
  TEMPORAL_WORKER_BUILD_ID: { means: 'The build of this worker: another for each version that is deployed.' },
  MAKE_SCHEDULES: {
    default: 'on',
    means:
      'Whether a worker makes the schedules that are not there (`metersync schedule`). It never changes one that is, nor makes one anew that was removed.',
  },
  RECEIVER_HOST: { default: '127.0.0.1', means: 'Where the receiver listens; `0.0.0.0` for all addresses.' },
  RECEIVER_PORT: { default: '8080', means: 'Port of the receiver; 0 for a free one.' },
  METRICS_HOST: {
    default: '127.0.0.1',
    means:
      'Where `/metrics`, `/healthz` and `/readyz` of the private port listen; never open it to strangers.',
  },
  METRICS_PORT: { default: '9464', means: 'Private port of monitors; 0 for none.' },
  CONSOLE_HOST: {
    default: '127.0.0.1',
    means: 'Where the console listens. Another than this machine needs one of the two ways below.',
  },
  CONSOLE_PORT: { default: '8090', means: 'Port of the console; 0 for none.' },
  CONSOLE_PASSWORDS_FILE: {
    means:
      'File of those who may use the console, a line each, as `metersync console password` makes them: a viewer looks, an operator acts. It is read again on a change.',
    hasTo: 'name a file that can be read',
  },
  CONSOLE_USER_HEADER: {
    means: 'Instead of passwords: the header in which your proxy names who is logged in.',
  },
  CONSOLE_TRUSTED_PROXIES: {
    default: '',
    means:
      'Addresses and networks of that proxy, separated by commas. From others the header is not accepted.',
  },
  CONSOLE_OPERATORS: {
    default: '',
    means: 'Who of those that the header names may act, separated by commas; the others look.',
    hasTo: 'hold names',
  },
  TEMPORAL_UI_URL: { means: "Address of Temporal's web page, to which the console then leads." },
  METERSYNC_ACTOR: {
    means: 'Who runs a command, for `metersync operations`. Unset: the user of the system.',
  },
  RECEIVER_PUBLIC_URL: {
    means:
      'The address that you gave the portal of the service: `metersync doctor` sends a signed probe through it.',
  },
  SILENCE_HOURS: {
    default: '72',
    means:
      'Hours without any event after which `metersync status` and `doctor` say that the webhook endpoint may be disabled; 0 for never.',
  },
  NOTIFY_URLS: {
    default: '',
    means:
      'Targets to which workers report alarms, separated by commas: `slack+https://…` of an incoming webhook, `pagerduty://KEY` (`pagerduty://KEY@events.eu.pagerduty.com` in Europe), `alertmanager+https://…` by its base address, `json+https://…` for anything else.',
  },
  NOTIFY_SECRET: {
    means: 'Signs what `json` targets get, as Standard Webhooks says. Needed with one.',
    hasTo: 'be `whsec_` and base64 of at least 24 bytes',
  },
  HEARTBEAT_URL: {
    means:
      'Called (GET) each minute while no `page` is open: a dead man’s switch outside then tells when all of metersync is gone.',
  },
  LOG_LEVEL: { default: 'info', means: 'Least level that is logged.' },
  METERSYNC_DIR: {
    default: '.metersync',
    means: 'Folder of the embedded stack and of the log of commands with a display.',
  },
};

/** Makes docs/reference/settings.md: the variables of the environment, with defaults and requirements. */
export function settingsPage(): string {
  const rows = Object.entries(settings).map(([name, setting]) => [
    `\`${name}\``,
    setting.default === undefined || setting.default === '' ? '' : `\`${setting.default}\``,
    setting.means,
    setting.hasTo ?? demandOf(name) ?? 'be text',
  ]);
  return [
    generatedFrom('app/settings.ts and verify/settings-page.ts'),
    '# Settings',
    '',
    'Settings are read from the environment once, at the start. An empty variable counts as unset.',
    'A command lists all that is wrong and ends with status 2.',
    '',
    markdownTable(['Variable', 'Default', 'What it is', 'Has to'], rows),
    '',
    "Temporal's own variables hold too: `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, `TEMPORAL_TLS`,",
    '`TEMPORAL_TLS_CLIENT_CERT_PATH`, `TEMPORAL_TLS_CLIENT_KEY_PATH` and the rest of its environment',
    'configuration.',
    '',
    '## The endpoint catalogue',
    '',
    'Where the service keeps each resource. `SERVICE_ENDPOINTS` names a JSON file with any of these',
    'entries. An entry replaces the default as a whole; `null` says that there is no such endpoint.',
    '',
    '- `path` and `query` may hold `{companyId}`, `{meterId}`, `{id}`, `{start}` and `{end}`. A parameter',
    '  whose placeholder has no value is left out.',
    "- `items` and `total` name keys of the service's envelope; a bare array is one page.",
    '- `updatedSince` are the parameters for what was updated since the day `{since}`, `withDeleted` those',
    '  that bring deleted records: a reconcile asks with both.',
    '',
    '```json',
    catalogue(),
    '```',
    '',
  ].join('\n');
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
