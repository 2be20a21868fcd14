import { parseArgs } from 'node:util';
import { visibleText } from '../web/parts.ts';
import type { SandboxLogEntry, SandboxOptions } from './parts.ts';
import { type Sandbox, startSandbox } from './sandbox.ts';

const usage = `Runs the Utility Data Service on a database of its own, whose address SANDBOX_DATABASE_URL holds: a Postgres database,
empty or left by an earlier start. It is not an option, because every user of the machine can read options.

  --host HOST --port PORT   where to listen (127.0.0.1, a free port)
  --seed N                  number from which every generated id, value and time is derived; keys are random (1)
  --organizations N --companies N --documents N --interval-days N
                            how much data: documents are for each company (1, 10, 50, 7)
  --until YYYY-MM-DD        last day of the generated history, or today (2026-07-01)
  --irregular X             share of bills that are out of the ordinary, 0 to 1 (0)
  --api-key KEY             one more key of the first organization
  --concurrency N           deliveries in flight for each endpoint (16)
  --deliver-to NETWORK      also send to these networks, separated by commas, for example 172.16.0.0/12
  --header-prefix NAME      prefix of the signature headers (webhook)
  --time-scale X            how many times faster than real time the service's clock runs (1)
  --retry-jitter X          spread of retry delays, 0.2 is ±20 % (0)
  --live N                  random changes a minute (0)
  --json                    print {url, apiUrl, apiKey, controlToken} on one line when ready
  --with-parent             stop when the parent process goes away
`;

/** Bounds of the options that are numbers, and the names of these options at a start. */
const numbers = {
  port: ['port', { most: 65_535 }],
  seed: ['seed', {}],
  organizations: ['organizations', { least: 1 }],
  companies: ['companies', {}],
  documents: ['documents', {}],
  'interval-days': ['intervalDays', {}],
  irregular: ['irregular', { most: 1, whole: false }],
  concurrency: ['deliveryConcurrency', { least: 1 }],
  'time-scale': ['timeScale', { least: 0.001, whole: false }],
  'retry-jitter': ['retryJitter', { most: 1, whole: false }],
  live: ['live', { most: 60_000, whole: false }],
} as const satisfies Record<string, readonly [keyof SandboxOptions, NumberBounds]>;

interface NumberBounds {
  readonly least?: number;
  readonly most?: number;
  readonly whole?: boolean;
}

const texts = ['host', 'until', 'api-key', 'deliver-to', 'header-prefix'] as const;
const flags = ['json', 'with-parent', 'help'] as const;

type Given = Partial<Record<keyof typeof numbers | (typeof texts)[number], string>> &
  Record<(typeof flags)[number], boolean>;

/** A wrong command line: explained on stderr, exit status 2. */
class Usage extends Error {}

async function main(args: readonly string[]): Promise<void> {
  const values = parse(args);
  if (values.help) {
    console.log(usage);
    return;
  }
  const sandbox = await startSandbox(startOptions(values));
  stopWhenAsked(sandbox, values['with-parent']);
  sandbox.lost.then(end);
  console.log(values.json ? ready(sandbox) : summary(sandbox));
}

function parse(args: readonly string[]): Given {
  const options = Object.fromEntries([
    ...[...Object.keys(numbers), ...texts].map((name) => [name, { type: 'string' }] as const),
    ...flags.map((name) => [name, { type: 'boolean', default: false }] as const),
  ]);
  try {
    return parseArgs({ args: [...args], options, strict: true }).values as Given;
  } catch (error) {
    throw new Usage(`${error instanceof Error ? error.message : error}\n\n${usage}`);
  }
}

function startOptions(given: Given): SandboxOptions {
  const databaseUrl = process.env.SANDBOX_DATABASE_URL;
  if (!databaseUrl) throw new Usage(`SANDBOX_DATABASE_URL is needed\n\n${usage}`);
  const options = {
    ...Object.fromEntries(
      Object.entries(numbers).map(([option, [name, bounds]]) => [
        name,
        number(option, given[option as keyof typeof numbers], bounds),
      ]),
    ),
    host: given.host,
    until: day(given.until),
    apiKey: given['api-key'],
    deliverTo: given['deliver-to']?.split(','),
    headerPrefix: headerPrefix(given['header-prefix']),
  };
  const set = Object.entries(options).filter(([, value]) => value !== undefined);
  return { databaseUrl, log: printLog, ...Object.fromEntries(set) };
}

function number(name: string, given: string | undefined, bounds: NumberBounds): number | undefined {
  if (given === undefined) return undefined;
  const { least = 0, most = 999_999_999, whole = true } = bounds;
  const value = given.trim() === '' ? Number.NaN : Number(given);
  if (value >= least && value <= most && (!whole || Number.isInteger(value))) return value;
  throw new Usage(`--${name} must be a ${whole ? 'whole ' : ''}number from ${least} to ${most}`);
}

/** A day of the calendar, or `today`. */
function day(given: string | undefined): string | undefined {
  if (given === undefined || given === 'today') return given;
  const date = /^\d{4}-\d{2}-\d{2}$/.test(given) ? new Date(`${given}T00:00:00Z`) : undefined;
  if (date === undefined || Number.isNaN(date.getTime()) || date.toISOString().slice(0, 10) !== given)
    throw new Usage('--until must be a day as YYYY-MM-DD, or today');
  return given;
}

function headerPrefix(given: string | undefined): string | undefined {
  if (given === undefined || /^[a-z0-9-]+$/i.test(given)) return given;
  throw new Usage('--header-prefix may contain only letters, digits and hyphens');
}

function printLog({ level, message, error }: SandboxLogEntry): void {
  console.error(visibleText(level === 'error' ? (error?.stack ?? message) : message));
}

const ready = ({ url, apiUrl, apiKey, controlToken }: Sandbox): string =>
  JSON.stringify({ url, apiUrl, apiKey, controlToken });

const summary = ({
  url,
  apiUrl,
  apiKey,
  controlToken,
}: Sandbox): string => `The Utility Data Service is ready.

  API      ${apiUrl}   (also ${url}/v2.1 and ${url}/v2)
  key      ${apiKey}
  control  ${url}/sandbox
  token    ${controlToken}

  curl -H 'X-API-Key: ${apiKey}' ${apiUrl}/company
  curl -H 'Authorization: Bearer ${controlToken}' ${url}/sandbox
`;

/** SIGTERM, SIGINT and the end of the parent close in order. A second signal ends the process at once. */
function stopWhenAsked(sandbox: Sandbox, withParent: boolean): void {
  let stopping = false;
  const stop = () => {
    if (stopping) process.exit(1);
    stopping = true;
    sandbox.close().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  if (!withParent) return;
  if (process.channel) process.on('disconnect', stop);
  else process.stdin.on('end', stop).on('error', stop).resume();
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  end(error);
}

function end(error: unknown): never {
  console.error(error instanceof Error ? error.message : error);
  process.exit(error instanceof Usage ? 2 : 1);
}
