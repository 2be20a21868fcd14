import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import type { SandboxProcess } from '../../cli/sandbox.ts';
import { sandboxControl } from '../../sandbox/control/client.ts';
import { changedDocument, deliver } from '../build/signed-event.ts';
import { until } from '../support/poll.ts';
import { type Deployment, makeDeployment, project } from './deployment.ts';
import { engineMissing } from './engine.ts';

const usage = `Usage: npm run test:compose -- [options]

Builds the image, brings docker-compose.yml up from nothing next to a sandbox of the service, and goes through the steps of
docs/running.md: first start, backfill, webhooks, audit, rotation of secrets, down and up again. It uses a project and
an image of its own. Without a container engine it is skipped, with status 0.

  --no-build             use the image of an earlier run
  --pull POLICY          whether to pull the other images: always, missing or never (missing)
  --keep                 leave the deployment running
  --verbose              print each command
`;

const { values: options } = parseArgs({
  options: {
    'no-build': { type: 'boolean', default: false },
    pull: { type: 'string', default: 'missing' },
    keep: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const minutes = (n: number) => ({ timeoutMs: n * 60_000, everyMs: 500 });

/** Repeats a command until it succeeds: on a busy machine a server may take too long to answer at first. */
const patiently = (what: string, command: () => Promise<string>) => until(what, command, minutes(5));

async function main(): Promise<void> {
  if (options.help) return console.log(usage);
  const missing = await engineMissing();
  if (missing !== undefined)
    return console.log(`Skipped: docker-compose.yml was not tried, because ${missing}.`);
  const deployment = await makeDeployment(options.verbose ? console.log : () => {});
  try {
    await tryAll(deployment);
    console.log('docker-compose.yml: everything worked');
  } catch (error) {
    console.log((await deployment.attempt('ps', '--all')).stdout);
    console.log((await deployment.attempt('logs', '--no-color', '--tail', '10')).stdout);
    console.error(error);
    process.exitCode = 1;
  } finally {
    if (options.keep) console.log(`kept: project ${project} in ${deployment.folder}`);
    else await deployment.remove();
  }
}

/** Runs one step, and prints its name and its time. */
async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  try {
    const result = await work();
    console.log(`ok ${name} (${((performance.now() - began) / 1_000).toFixed(1)} s)`);
    return result;
  } catch (error) {
    throw new Error(`failed: ${name}`, { cause: error });
  }
}

async function tryAll(deployment: Deployment): Promise<void> {
  const { compose } = deployment;
  // A run that was ended may have left a deployment.
  await compose('down', '--volumes', '--remove-orphans');
  if (!options['no-build']) await step('builds the image', () => compose('build'));
  await step('makes the secrets, and says which are missing', async () => {
    equal(
      await deployment.secretsScript(),
      'write secrets/service_api_key, then run this again\nwrite secrets/receiver/webhook_secrets, then run this again\n',
    );
  });
  const service = await step('starts the service', () => startService(deployment));
  const first = await step('enables webhooks before the first start, and starts nothing for it', () =>
    firstSecret(deployment, service),
  );
  await step('comes up from nothing', () => up(deployment));
  await step('backfills everything', async () => {
    match(await deployment.metersync('backfill', 'all', '--follow'), /complete/);
  });
  await step('receives 300 changes as webhooks, and equals the service', async () => {
    await sandboxControl(service).randomChanges(300, 7);
    await settled(deployment, service);
    await auditsToNoDifference(deployment);
  });
  await step('doctor finds nothing wrong', () =>
    patiently('doctor ends with status 0', () => deployment.metersync('doctor')),
  );
  await step('shows the console on a port of this machine, to whoever has its link', async () => {
    const closed = await until('the console answers', () => fetch(deployment.consoleUrl), minutes(1));
    equal(closed.status, 403);
    const file = await compose('exec', '-T', 'console', 'cat', '/var/lib/metersync/console-link');
    const opened = await fetch(new URL(new URL(file.trim()).pathname, deployment.consoleUrl));
    const cookie = opened.headers.getSetCookie().map((one) => one.split(';')[0]);
    const answer = await fetch(deployment.consoleUrl, { headers: { cookie: cookie.join('; ') } });
    equal(answer.status, 200);
    match(await answer.text(), /In sync|Catching up|Needs you/);
  });
  await step('starts nothing when somebody looks', () => lookingStartsNothing(deployment));
  await step('sees signing secrets that are replaced by renaming a file', () =>
    rotateSigningSecret(deployment, service, first),
  );
  await step('gets new passwords by renaming files, as documented', () => rotatePasswords(deployment));
  await step('keeps its data when it goes down and up again', () => downAndUp(deployment, service));
}

const up = ({ compose }: Deployment, ...more: string[]) =>
  compose('up', '--detach', '--wait', '--no-build', '--pull', options.pull, ...more);

async function startService(deployment: Deployment): Promise<SandboxProcess> {
  await up(deployment, 'service');
  const file = await deployment.compose('exec', '-T', 'service', 'cat', '/var/lib/metersync/sandbox.json');
  const sandbox = JSON.parse(file) as SandboxProcess;
  const url = `http://${(await deployment.compose('port', 'service', '9000')).trim()}`;
  return { ...sandbox, url, apiUrl: `${url}/v2.2` };
}

/** The steps of the guide before the first start, up to the signing secret, which is returned. */
async function firstSecret(deployment: Deployment, service: SandboxProcess): Promise<string> {
  await deployment.replaceSecret('service_api_key', `${service.apiKey}\n`);
  const before = await deployment.containers();
  const once = (...args: string[]) =>
    deployment.attempt('run', '--rm', '--no-deps', '-T', 'worker', 'webhooks', ...args);
  const enabled = await once('enable');
  equal(enabled.status, 0, enabled.stderr);
  match(enabled.stdout, /Webhooks are enabled/);
  match(enabled.stderr, /Not in the log of operations: Postgres at postgres:5432\/warehouse/);
  match((await once('portal')).stdout, /^http:\/\//);
  deepEqual(await deployment.containers(), before);
  const { secret, moveTo } = await sandboxControl(service).endpoint();
  await moveTo('http://receiver:8080/webhooks');
  await deployment.replaceSecret('receiver/webhook_secrets', `${secret}\n`);
  equal(await deployment.secretsScript(), '');
  return secret;
}

/** Waits until all deliveries of the service were accepted, and all events are settled. */
async function settled(deployment: Deployment, service: SandboxProcess): Promise<void> {
  const control = sandboxControl(service);
  await until('the service has delivered everything', async () => (await control.status()).quiet, minutes(5));
  const { deliveries } = await control.status();
  ok((deliveries.delivered ?? 0) > 0, JSON.stringify(deliveries));
  equal(deliveries.failed ?? 0, 0, JSON.stringify(deliveries));
  await until(
    'no event is pending',
    async () => {
      const { events } = JSON.parse(await deployment.metersync('status', '--json'));
      equal(events.dead, 0);
      return events.pending === 0 && events.applied > 0;
    },
    minutes(5),
  );
}

async function auditsToNoDifference(deployment: Deployment): Promise<number> {
  const report = await patiently('audit', () => deployment.metersync('audit', '--json'));
  const { compared, differences } = JSON.parse(report);
  equal(differences, 0);
  ok(compared > 1_000, `only ${compared} records were compared`);
  return compared;
}

/** Runs the commands that the guide names for looking. Each container stays as it was. */
async function lookingStartsNothing(deployment: Deployment): Promise<void> {
  const before = await deployment.containers();
  const once = (service: string, ...args: string[]) =>
    deployment.compose('run', '--rm', '--no-deps', '-T', service, ...args);
  await patiently('status', () => deployment.metersync('status'));
  await patiently('status without a worker', () => once('worker', 'status'));
  await patiently('upgrade check', () => once('worker', 'upgrade', 'check'));
  match(await once('migrate', 'migrate', '--plan'), /up to date/);
  deepEqual(await deployment.containers(), before);
}

const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;

async function rotateSigningSecret(
  deployment: Deployment,
  service: SandboxProcess,
  first: string,
): Promise<void> {
  const event = await changedDocument(service);
  const answerTo = async (secret: string) => {
    const delivery = { ...event, id: `msg_${randomUUID()}` };
    return (await deliver(`${deployment.receiverUrl}/webhooks`, delivery, secret)).status;
  };
  const second = newSecret();
  equal(await answerTo(first), 204);
  equal(await answerTo(second), 401);
  await deployment.replaceSecret('receiver/webhook_secrets', 'none\n');
  await until('a revoked secret is refused', async () => (await answerTo(first)) === 401, minutes(1));
  await deployment.replaceSecret('receiver/webhook_secrets', `${second}\n`);
  await until('the new secret is accepted', async () => (await answerTo(second)) === 204, minutes(1));
  equal(await answerTo(first), 401);
  await deployment.replaceSecret('receiver/webhook_secrets', `${second}\n${first}\n`);
  await until('both secrets are accepted', async () => (await answerTo(first)) === 204, minutes(1));
}

async function rotatePasswords(deployment: Deployment): Promise<void> {
  const password = () => randomBytes(24).toString('hex');
  await deployment.replaceSecret('temporal/temporal_password', `${password()}\n`);
  await deployment.replaceSecret(
    'worker_url',
    `postgres://metersync_worker:${password()}@postgres:5432/warehouse\n`,
  );
  await up(deployment, '--force-recreate');
  const backfill = () => deployment.metersync('backfill', 'all', '--follow');
  match(await patiently('backfill', backfill), /complete/);
}

async function downAndUp(deployment: Deployment, service: SandboxProcess): Promise<void> {
  const rows = async () =>
    (
      await deployment.compose(
        ...['exec', '-T', 'postgres', 'psql', '--username=postgres', 'warehouse', '--tuples-only'],
        '--command=select (select count(*) from utility.documents), (select count(*) from utility.intervals)',
      )
    ).trim();
  const before = await rows();
  await deployment.compose('down', '--timeout', '30');
  await up(deployment);
  equal(await rows(), before);
  const again = await startService(deployment);
  equal(again.apiKey, service.apiKey);
  await sandboxControl(again).randomChanges(50, 8);
  await settled(deployment, again);
  await auditsToNoDifference(deployment);
}

await main();
