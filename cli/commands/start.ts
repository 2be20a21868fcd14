import { type Running, secretsOf, startReceiver, startWorker } from '../../app/deployment.ts';
import { migrate, requireSchema } from '../../app/prepare.ts';
import { webhooksOf } from '../../app/service.ts';
import { installRuntime } from '../../app/temporal.ts';
import { type Context, openContext, UsageError } from '../context.ts';
import { sandboxControl } from '../sandbox-control.ts';
import { untilAsked } from '../until-asked.ts';

export type Part = 'receiver' | 'worker';

/** `metersync start`, `receiver`, `worker`: runs until it is asked to stop. */
export async function start(parts: readonly Part[]): Promise<void> {
  const works = parts.includes('worker');
  const context = await openContext({ postgres: works, temporal: true, service: works, quiet: false });
  const { log, stack } = context;
  const running: Running[] = [];
  const drain = async () => {
    await Promise.all(running.map((part) => part.stop()));
    await context.stop();
    log.info('stopped');
  };
  try {
    installRuntime(log);
    for (const line of stack.standIns) log.info(line);
    if (works) running.push(await work(context));
    if (parts.includes('receiver')) running.push(await receive(context));
  } catch (error) {
    await drain();
    throw error;
  }
  await untilAsked({
    finished: running.map((part) => part.finished),
    onAsked: (signal) => log.info(`${signal}: draining; once more to force`),
    drain,
  });
}

async function work(context: Context): Promise<Running> {
  const { settings, stack, service, log } = context;
  const { databaseUrl, temporal } = stack;
  if (settings.databaseUrl === undefined) await migrate(settings, databaseUrl, log);
  await requireSchema(settings, databaseUrl, log);
  const worker = await startWorker({ settings, service, databaseUrl, temporal, log });
  log.info({ service: service.url }, 'worker: running');
  return worker;
}

async function receive(context: Context): Promise<Running> {
  const { settings, stack, sandbox, log } = context;
  const { host, port } = settings.receiver;
  let webhooks = settings.webhooks;
  if (sandbox !== undefined && webhooks.secrets.length === 0 && webhooks.secretsFile === undefined) {
    const control = sandboxControl(sandbox);
    await webhooksOf({ url: sandbox.apiUrl, apiKey: sandbox.apiKey }).enable(true);
    webhooks = { ...webhooks, secrets: [await control.registerEndpoint(`http://${host}:${port}/webhooks`)] };
    log.info(
      `SERVICE_URL is not set: the sandbox stands in at ${sandbox.url}, API ${sandbox.apiUrl}, key ${sandbox.apiKey}`,
    );
  }
  if (webhooks.secrets.length === 0 && webhooks.secretsFile === undefined) {
    throw new UsageError(
      "WEBHOOK_SECRETS (or WEBHOOK_SECRETS_FILE) has to be set: the signing secret of your endpoint, from the service's webhook portal",
    );
  }
  const receiver = await startReceiver({
    settings,
    secrets: secretsOf(webhooks, log),
    temporal: stack.temporal,
    log,
  });
  log.info(`receiver: POST ${receiver.url}`);
  return receiver;
}
