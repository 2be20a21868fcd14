import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { askAgain } from '../../app/process/running.ts';
import { readVersion } from '../../app/process/version.ts';
import { openService, webhooksOf } from '../../app/service.ts';
import type { Settings } from '../../app/settings/settings.ts';
import type { Insecure } from '../../app/settings/transport.ts';
import { withClient } from '../../app/temporal/client.ts';
import type { TemporalPlace } from '../../app/temporal/place.ts';
import { openToAsk, outageOf } from '../../app/warehouse.ts';
import { eventKinds, eventTypes, kindOfType } from '../../contract/event.ts';
import { doctorPolicy, serverWaits } from '../../contract/retry-policy.ts';
import { describeFit, fitOf, type SchemaVersions } from '../../contract/schema-versions.ts';
import { counted } from '../../contract/words.ts';
import { type Database, type Executor, withTimeout } from '../../db/connection/connect.ts';
import { readServer } from '../../db/connection/session.ts';
import { readSchemaVersions } from '../../db/migrate/migrations.ts';
import { kindsHeld, typesAmong, typesSeen } from '../../db/read/arrivals.ts';
import { liveCompanies } from '../../db/read/extra-rows.ts';
import type { VerdictWord } from '../../health/finding-type.ts';
import {
  acknowledgedInWords,
  type Finding,
  type Verdict,
  verdictOf,
  worstFirst,
} from '../../health/verdict.ts';
import type { SecretSource } from '../../receiver/secrets.ts';
import { throughProxies } from '../../service/proxy.ts';
import { healthOf } from '../health.ts';
import { type Check, check, fail, type Judged, notChecked, ok, warn } from './check.ts';
import { checkReceiver } from './receiver.ts';
import {
  checkClock,
  checkVersion,
  checkWebhooks,
  diagnoseEndpoints,
  pingService,
  wrongAddress,
} from './service.ts';

export interface DoctorOptions {
  readonly settings: Settings;
  readonly databaseUrl: string;
  /** Undefined if no Temporal is configured and none runs here. */
  readonly temporal: TemporalPlace | undefined;
  /** Its URL is empty if no service is configured and no sandbox runs. */
  readonly service: { readonly url: string; readonly apiKey: string };
  readonly insecure: readonly Insecure[];
  /** Whether the sandbox replaces the service; only metersync start knows its secret. */
  readonly standIn: boolean;
  /** @throws Error that says what is wrong with the secrets */
  readonly secrets: () => SecretSource;
  readonly log: Logger;
  /** Unix time in milliseconds. */
  readonly now: () => number;
  /** Id of the probe's event, never used before. */
  readonly probeId: string;
  /** How long the probe may take from its answer to the journal. */
  readonly probeArrivesWithinMs: number;
}

/** What the doctor found: checks of what a sync needs, the pipeline's health, and one word for both. */
interface Examination {
  readonly checks: readonly Check[];
  readonly verdict: Verdict;
}

/**
 * Checks everything that a sync needs, from the key to the silence of events. Changes nothing, except that it
 * sends one ignored event if the receiver's public address is known. Never rejects.
 */
export async function examine(options: DoctorOptions): Promise<Examination> {
  const { settings, databaseUrl, log } = options;
  const warehouse = openToAsk(settings, databaseUrl, log, 6);
  try {
    const storing = examineWarehouse(warehouse.db, options);
    const { temporal: place } = options;
    const { answerMs } = serverWaits;
    const readHealth = healthOf({ settings, databaseUrl, temporal: place, answerMs, again: true });
    const [stored, temporal, service, secrets, receiver, events, health] = await Promise.all([
      storing,
      checkTemporal(place),
      examineService(storing, options),
      checkSecrets(options),
      storing.then((stored) => examineReceiver(stored, options)),
      storing.then(examineEvents),
      readHealth(warehouse.db).then(verdictOf),
    ]);
    const checks = [
      { name: 'metersync', ...ok(`${readVersion()} on Node ${process.versions.node}`) },
      ...service,
      ...stored.checks,
      ...temporal,
      { name: 'transport', ...judgeInsecure(options.insecure) },
      secrets,
      receiver,
      events,
    ];
    return {
      checks: [...checks, ...checksOf(health, checks)],
      verdict: withChecks(health, checks),
    };
  } finally {
    await warehouse.close();
  }
}

async function examineReceiver({ db }: Stored, options: DoctorOptions): Promise<Check> {
  const { settings, secrets, probeId, now, probeArrivesWithinMs } = options;
  if ((await checkSecrets(options)).state !== 'ok')
    return { name: 'receiver', ...notChecked('no secret to sign a probe with') };
  return await checkReceiver({
    url: settings.webhooks.publicUrl,
    dispatcher: throughProxies(settings.proxies),
    secrets,
    db,
    id: probeId,
    now,
    arrivesWithinMs: probeArrivesWithinMs,
  });
}

/** Warns of connections that are not safe; with STRICT_TLS on they were refused before. */
function judgeInsecure(insecure: readonly Insecure[]): Judged {
  if (insecure.length === 0)
    return ok('connections to other machines use verified TLS, or STRICT_TLS=outside allows them');
  return warn(
    insecure.map(({ saw }) => saw).join('; '),
    [...new Set(insecure.map(({ todo }) => todo))].join(' '),
  );
}

interface Stored {
  readonly checks: readonly Check[];
  /** Whether Postgres did not answer. */
  readonly away: boolean;
  /** The warehouse, if its schema fits this metersync. */
  readonly db: Database | undefined;
  readonly aheadMs: number | null;
}

async function examineWarehouse(
  db: Database,
  { settings, databaseUrl, now }: DoctorOptions,
): Promise<Stored> {
  let aheadMs: number | null = null;
  const reached = await check('warehouse', '', async () => {
    try {
      // The first answer includes the time for connecting, which would look like a wrong clock.
      await askAgain((withinMs) => withTimeout(askWarehouse(db, now), withinMs));
      const asked = await askWarehouse(db, now);
      aheadMs = asked.aheadMs;
      const { host, pathname } = new URL(databaseUrl);
      return ok(`Postgres ${asked.version} at ${host}${pathname}`);
    } catch (error) {
      const { away, todo } = outageOf(databaseUrl, error, { embedded: settings.databaseUrl === undefined });
      return fail(away, todo);
    }
  });
  if (reached.state === 'fail') {
    const schema = { name: 'schema', ...notChecked('Postgres did not answer') };
    return { checks: [reached, schema], away: true, db: undefined, aheadMs };
  }
  const schema = await check('schema', 'Run metersync migrate.', async () =>
    judgeSchema(await readSchemaVersions(db)),
  );
  const fits = schema.state !== 'fail';
  return { checks: [reached, schema], away: false, db: fits ? db : undefined, aheadMs };
}

/** Checks the service. Only the sandbox, which needs Postgres, waits for Postgres first. */
async function examineService(storing: Promise<Stored>, options: DoctorOptions): Promise<Check[]> {
  const { settings, service, standIn, log, now } = options;
  if (service.url === '') {
    const todo = 'Set SERVICE_URL and SERVICE_API_KEY, or run metersync start, which starts a sandbox.';
    return [{ name: 'service', ...notChecked('SERVICE_URL is not set, and no sandbox is running', todo) }];
  }
  if (standIn && settings.databaseUrl === undefined && (await storing).away)
    return [{ name: 'service', ...notChecked('the sandbox stores its records in the same Postgres') }];
  const { client, apiVersion } = openService(
    settings,
    service.url,
    service.apiKey,
    log,
    doctorPolicy.requests,
  );
  try {
    const [{ checks, pinged, failed }, stored] = await Promise.all([
      pingService(() => client.ping(), now),
      storing,
    ]);
    const clock = checkClock(pinged, stored.aheadMs, settings.webhooks.toleranceSeconds);
    const first = [...checks, checkVersion(pinged, apiVersion), clock];
    // If the service does not answer or refuses the key, all further checks would fail for the same reason.
    const withoutRest = (why: string): Check[] =>
      ['webhooks', 'endpoints'].map((name) => ({ name, ...notChecked(why) }));
    if (checks.some(({ name }) => name === 'service'))
      return [...first, ...withoutRest('the service cannot be reached')];
    if ('problem' in pinged && failed !== 'SERVICE_NOT_FOUND')
      return [...first, ...withoutRest('the service refused the key')];
    const webhooks = await checkWebhooks(webhooksOf(service, settings));
    if (failed === 'SERVICE_NOT_FOUND' && /SERVICE_NOT_FOUND/.test(webhooks.saw))
      return [wrongAddress(service.url), ...withoutRest('SERVICE_URL is wrong')];
    const today = new Date(now()).toISOString().slice(0, 10);
    const warehoused = stored.db === undefined ? [] : await liveCompanies(stored.db);
    const companies = [...settings.service.companies, ...warehoused];
    const endpoints = await diagnoseEndpoints(client, companies, today);
    return [...first, webhooks, ...endpoints];
  } finally {
    await client.close();
  }
}

async function checkSecrets({ secrets, settings, standIn }: DoctorOptions): Promise<Check> {
  const { webhooks } = settings;
  if (webhooks.secrets.length === 0 && webhooks.secretsFile === undefined) {
    const judged = standIn
      ? notChecked('the sandbox replaces the service')
      : notChecked(
          'only receivers need them',
          'For a probe, set WEBHOOK_SECRETS_FILE to the file of the secrets.',
        );
    return { name: 'webhook secrets', ...judged };
  }
  const todo =
    'Set WEBHOOK_SECRETS or WEBHOOK_SECRETS_FILE to the signing secret that the portal shows for the endpoint.';
  return await check('webhook secrets', todo, () => {
    const count = secrets()().length;
    if (count === 0) return fail('the file contains no secret, so every delivery is refused', todo);
    return ok(count === 1 ? 'one is set' : `${count} are set`);
  });
}

async function examineEvents({ db }: Stored): Promise<Check> {
  const name = 'event types';
  if (db === undefined) return { name, ...notChecked('the warehouse cannot be read') };
  return await check(name, 'See metersync status.', () => judgeEventTypes(db));
}

const stateOf: Readonly<Record<VerdictWord, Check['state']>> = {
  'In sync': 'ok',
  'Catching up': 'warn',
  'Needs you': 'warn',
  Broken: 'fail',
  Unknown: 'fail',
};

/** Turns the findings of the pipeline's health into checks, unless a check of that name already reports one. */
function checksOf({ findings }: Verdict, checks: readonly Check[]): Check[] {
  if (findings.length === 0) return [{ name: 'pipeline', ...ok('nothing is wrong') }];
  return findings.flatMap(({ name, word, saw, todo, acknowledged }) =>
    checks.some((other) => other.name === name && other.state !== 'ok')
      ? []
      : [
          acknowledged === null
            ? { name, state: stateOf[word], saw, todo }
            : { name, state: stateOf[word], saw: `${saw}; ${acknowledgedInWords(acknowledged)}`, todo: null },
        ],
  );
}

/** Adds failed checks to the verdict, unless a finding of that name says the same. */
function withChecks({ findings }: Verdict, checks: readonly Check[]): Verdict {
  const failed = checks
    .filter(({ name, state }) => state === 'fail' && !findings.some((finding) => finding.name === name))
    .map(
      ({ name, saw, todo }): Finding => ({
        name,
        word: 'Broken',
        brief: `the check of ${name} fails`,
        saw,
        todo: todo ?? '',
        alarm: null,
        key: '',
        counts: {},
        open: null,
        acknowledged: null,
      }),
    );
  return worstFirst([...failed, ...findings]);
}

/** Checks that Temporal answers, and says whether its payloads are encrypted. */
async function checkTemporal(place: TemporalPlace | undefined): Promise<Check[]> {
  // The verdict already reports that there is no Temporal.
  if (place === undefined) return [];
  const todo = 'Check TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE, and that Temporal runs.';
  const temporal = await check('Temporal', todo, () =>
    askAgain((withinMs) => withClient(place, answersOf, withinMs)).then(({ answer }) => answer),
  );
  return [temporal, { name: 'payloads', ...judgePayloads(place) }];
}

const answersOf = async (client: Client): Promise<Judged> =>
  ok(`answers; namespace ${client.options.namespace}`);

function judgePayloads({ codecKeys = [], plaintext }: TemporalPlace): Judged {
  const [first] = codecKeys;
  if (first === undefined) {
    return ok('not encrypted: anyone who reaches Temporal can read and forge events (TEMPORAL_CODEC_KEYS)');
  }
  const under = `encrypted under the key "${first.id}"`;
  if (plaintext !== 'accepted') return ok(`${under}; other payloads are refused`);
  return warn(
    `${under}; unencrypted payloads are accepted, too, from anyone who reaches Temporal`,
    'Remove TEMPORAL_PLAINTEXT when no workflow is running that began before the keys were set.',
  );
}

/** Reads the server's version, and by how many milliseconds its clock is ahead of this machine's. */
async function askWarehouse(
  db: Executor,
  now: () => number,
): Promise<{ readonly version: string; readonly aheadMs: number }> {
  const began = now();
  const { version, nowMs } = await readServer(db);
  return { version, aheadMs: nowMs - (began + now()) / 2 };
}

export function judgeSchema(versions: SchemaVersions): Judged {
  const fit = fitOf(versions);
  if (fit === 'same') return ok('has the version that this metersync needs');
  const { saw, todo } = describeFit(versions);
  return fit === 'ahead' ? warn(saw, todo) : fail(saw, todo);
}

/** Among fewer events than this, there may be none of a kind by chance. */
const typesJudgedFrom = 100;

/** Judges which types of events arrive: each kind of which the warehouse has rows should have events. */
async function judgeEventTypes(db: Executor): Promise<Judged> {
  const seen = await typesSeen(db);
  if (seen.size === 0)
    return notChecked(
      'no event has arrived yet, so it is not known whether the service signs with your secret',
    );
  const never = eventTypes.filter((type) => !seen.has(type));
  const events = [...seen.values()].reduce((sum, some) => sum + some, 0);
  const among =
    events < typesAmong
      ? `among the ${counted(events, 'event')} so far`
      : `among the newest ${typesAmong.toLocaleString('en')} events`;
  const saw = never.length === 0 ? 'events of every type arrive' : `no ${never.join(', ')} ${among}`;
  const held = await kindsHeld(db);
  const silent = held.filter((kind) => ![...seen.keys()].some((type) => kindOfType(type) === kind));
  if (silent.length === 0 || events < typesJudgedFrom) return ok(saw);
  const kinds = silent.map((kind) => eventKinds[kind].plural).join(' and ');
  return warn(
    `${saw}, and none about ${kinds}, although the warehouse has such records`,
    'Check in the portal (metersync webhooks portal) whether the endpoint is subscribed to all event types.',
  );
}
