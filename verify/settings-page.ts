import { secretVariables } from '../app/secret-files.ts';
import { readSettings, SettingsError } from '../app/settings.ts';
import { defaultEndpoints } from '../contract/endpoints.ts';
import { httpLimits } from '../contract/http-limits.ts';
import { formatSeconds } from '../contract/times.ts';
import { generatedFrom } from './markdown.ts';

interface Setting {
  /** The default, written as the variable's value; undefined if there is none. */
  readonly default?: string;
  readonly means: string;
  /** What the value must be, if no check of the settings says so; empty if its meaning does. */
  readonly hasTo?: string;
}

/** Every variable of app/settings.ts, in the order of the page. A test compares this with the source. */
export const settings: Readonly<Record<string, Setting>> = {
  SERVICE_URL: { means: 'Base address of the API with its version. Unset: the sandbox runs instead.' },
  SERVICE_API_KEY: { means: 'The key of the API. Needed with `SERVICE_URL`.' },
  SERVICE_COMPANIES: {
    default: '',
    means: 'Ids of companies to sync beside those that the service lists, separated by commas.',
    hasTo: '',
  },
  SERVICE_TIME_ZONE: { default: 'UTC', means: 'Zone of the timestamps that the service sends without one.' },
  SERVICE_MAX_CONCURRENCY: {
    default: '10',
    means: 'Requests to the service at once, over all workers on the warehouse.',
  },
  SERVICE_MAX_PER_SECOND: {
    means: 'Requests to the service a second, over all workers on the warehouse.',
  },
  SERVICE_ENDPOINTS: {
    means: 'JSON file that overrides entries of the endpoint catalogue, below.',
    hasTo: '',
  },
  DELETES_CAP_ROWS: {
    default: '50',
    means: 'Rows of one listing that a run may tombstone; more wait for `metersync deletes`.',
  },
  DELETES_CAP_PERCENT: {
    default: '5',
    means: 'The same as a share of the live rows, 3 rows at least; the smaller of both holds.',
  },
  JOURNAL_PAYLOAD_DAYS: {
    default: '90',
    means:
      'Days after which payloads of settled events are dropped from the journal; 0 for never. Ids and outcomes stay.',
  },
  RUNS_DAYS: {
    default: '90',
    means:
      'Days after which parts of runs are dropped that a later run read completely; 0 for never. The runs stay.',
  },
  WEBHOOK_SECRETS: {
    default: '',
    means:
      'Signing secrets of the webhook endpoint, separated by commas. The receiver needs these or a file of them.',
    hasTo: 'be `whsec_` and base64 of at least 24 bytes; at most 16',
  },
  WEBHOOK_SECRETS_FILE: {
    means: `File with one secret a line, read again within ${formatSeconds(httpLimits.secretsCheckMs / 1000)} of a change; the one word \`none\` revokes all.`,
    hasTo: '',
  },
  WEBHOOK_HEADER_PREFIX: {
    means: 'One more prefix of the signature headers, beside `webhook-` and `svix-`.',
  },
  WEBHOOK_TOLERANCE_SECONDS: {
    default: '300',
    means: 'How far the timestamp of a delivery may be from now.',
  },
  DATABASE_URL: { means: 'The warehouse: Postgres 15 or newer. Unset: an embedded Postgres runs.' },
  TEMPORAL_ADDRESS: {
    means: 'Host and port of Temporal. Without this and a profile, an embedded Temporal runs.',
  },
  TEMPORAL_PROFILE: {
    means: "Profile of Temporal's own configuration file.",
    hasTo: '',
  },
  TEMPORAL_CONFIG_FILE: { means: 'That file, when it is not at its usual place.', hasTo: '' },
  STRICT_TLS: {
    default: 'off',
    means: 'Whether commands refuse other machines without verified TLS; when off they warn.',
  },
  PLAINTEXT_HOSTS: {
    default: '',
    means: 'Hosts on your own network that need no TLS, as the addresses name them, separated by commas.',
    hasTo: '',
  },
  NODE_TLS_REJECT_UNAUTHORIZED: {
    means: "Node's own: 0 accepts any certificate. It is warned of, and refused with `STRICT_TLS`.",
    hasTo: '',
  },
  RECONCILE_DAYS: {
    default: '2',
    means: 'Days before today (UTC) whose updates a reconcile reads.',
  },
  CHECKS_OFF: {
    default: '',
    means:
      'Checks of the data (`metersync checks describe`) to leave out, separated by commas; their issues are closed as `check_off`.',
    hasTo: '',
  },
  TEMPORAL_CODEC_KEYS: {
    default: '',
    means:
      'Keys of payloads in Temporal, `id:key` pairs separated by commas: the first encrypts, all decrypt. All processes and commands need the same. Unset: only the embedded Temporal has a key.',
  },
  TEMPORAL_PLAINTEXT: {
    default: 'refused',
    means:
      'With keys: `refused` lets work with unencrypted payloads wait, `accepted` runs it, while the last ones from before the keys are in flight.',
  },
  TEMPORAL_DEPLOYMENT_NAME: {
    means:
      'Names the deployment of the workers, with `TEMPORAL_WORKER_BUILD_ID`. Then Temporal tells builds apart, and one gets work once it is promoted (`metersync workers`). Without them any worker gets any work.',
  },
  TEMPORAL_WORKER_BUILD_ID: { means: 'The build of this worker: another for each version that is deployed.' },
  MAKE_SCHEDULES: {
    default: 'on',
    means: 'Whether a worker makes absent schedules (`metersync schedule`), but none that was removed.',
  },
  RECEIVER_HOST: { default: '127.0.0.1', means: 'Where the receiver listens; `0.0.0.0` for all addresses.' },
  RECEIVER_PORT: { default: '8080', means: 'Port of the receiver; 0 for a free one.' },
  METRICS_HOST: {
    default: '127.0.0.1',
    means: 'Where the private port listens (`/metrics`, `/healthz`, `/readyz`); never open it to strangers.',
  },
  METRICS_PORT: { default: '9464', means: 'Private port of monitors; 0 for none.' },
  CONSOLE_HOST: {
    default: '127.0.0.1',
    means: 'Where the console listens. Other than loopback needs passwords or a proxy.',
  },
  CONSOLE_PORT: { default: '8090', means: 'Port of the console; 0 for none.' },
  CONSOLE_PASSWORDS_FILE: {
    means:
      'File of users, a line each as `metersync console password` makes them. It is read again on a change.',
    hasTo: '',
  },
  CONSOLE_USER_HEADER: {
    means: 'Instead of passwords: the header in which your proxy names the user.',
  },
  CONSOLE_TRUSTED_PROXIES: {
    default: '',
    means: 'Addresses and networks of that proxy, which alone may send the header, separated by commas.',
  },
  CONSOLE_OPERATORS: {
    default: '',
    means: 'Users of the header who may act, separated by commas; others look.',
    hasTo: '',
  },
  TEMPORAL_UI_URL: { means: "Address of Temporal's web page, for links of the console." },
  METERSYNC_ACTOR: {
    means: 'Who runs a command, for `metersync operations`. Unset: the user of the system.',
  },
  RECEIVER_PUBLIC_URL: {
    means: 'The registered address: `metersync doctor` sends a signed probe through it.',
  },
  SILENCE_HOURS: {
    default: '72',
    means: 'Hours without any event that mean trouble: the endpoint may be disabled; 0 for never.',
  },
  NOTIFY_URLS: {
    default: '',
    means:
      'Targets of alarms, separated by commas: `slack+https://…` of an incoming webhook, `pagerduty://KEY` (`pagerduty://KEY@events.eu.pagerduty.com` in Europe), `alertmanager+https://…` (base address), `json+https://…`.',
    hasTo: '',
  },
  NOTIFY_SECRET: {
    means: 'Signs what `json` targets get, as Standard Webhooks says.',
    hasTo: 'be `whsec_` and base64 of at least 24 bytes',
  },
  HEARTBEAT_URL: {
    means: 'A dead man’s switch outside, called (GET) each minute while no `page` is open.',
  },
  LOG_LEVEL: { default: 'info', means: 'Least level that is logged.' },
  METERSYNC_DIR: {
    default: '.metersync',
    means: 'Folder of the embedded stack and of logs of commands with a display.',
  },
};

/** Makes docs/reference/settings.md: the variables of the environment, with defaults and requirements. */
export function settingsPage(): string {
  const lines = Object.entries(settings).map(([name, { default: value, means, hasTo }]) => {
    const set = value === undefined || value === '' ? '' : ` (\`${value}\`)`;
    return `- \`${name}\`${set}: ${means}${sentenceOf(hasTo ?? demandOf(name) ?? '')}`;
  });
  return [
    generatedFrom('app/settings.ts and verify/settings-page.ts'),
    '# Settings',
    '',
    'Settings are read from the environment once, at the start, with defaults in brackets. An empty',
    'variable counts as unset. A command lists all that is wrong and ends with status 2.',
    '',
    ...lines,
    '',
    "Temporal's own variables hold too: `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, `TEMPORAL_TLS`,",
    '`TEMPORAL_TLS_CLIENT_CERT_PATH`, `TEMPORAL_TLS_CLIENT_KEY_PATH` and the rest of its environment',
    'configuration.',
    '',
    '## Secrets in files',
    '',
    'Instead of these a variable of the same name and `_FILE` may name a file of one line:',
    `${secretVariables.map((name) => `\`${name}\``).join(', ')}. Restart a process to change them.`,
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

/** Writes what a value must be; of a number its range, of an address an example. */
function sentenceOf(demand: string): string {
  const [, range] = /^be a whole number from (.*)$/.exec(demand) ?? [];
  if (range !== undefined) return ` From ${range}.`;
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
