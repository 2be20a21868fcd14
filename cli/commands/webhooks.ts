import { createInterface } from 'node:readline/promises';
import { webhooksOf } from '../../app/service.ts';
import { openToAsk } from '../../app/warehouse/warehouse.ts';
import { recordedWherePossible } from '../../operations/recorded.ts';
import { asOperation, sayUnnoted } from '../as-operation.ts';
import { type Context, openContext } from '../context.ts';
import { CommandError, UsageError } from '../errors.ts';
import { print, printJson, say } from '../print.ts';

export type WebhooksAction = 'enable' | 'disable' | 'portal';

/** `metersync webhooks`: switches the service's events and opens its portal, with the user's API key. */
export async function webhooks(
  action: WebhooksAction,
  options: { json?: boolean; yes?: boolean },
): Promise<void> {
  if (action === 'disable' && !options.yes) await confirm();
  const changes = action === 'enable' || action === 'disable';
  const context = await openContext({
    // Changes are noted in the warehouse's log of operations, where there is one: events come before it is made.
    postgres: changes ? 'if there' : false,
    temporal: false,
    // The portal of a sandbox of this command would end with it.
    service: action === 'portal' ? 'if known' : true,
    quiet: true,
    existing: true,
  });
  try {
    const result = changes ? await noted(context, action) : await act(context, action);
    if (options.json) printJson(result);
    else print(describe(result));
    if ('portal' in result && !options.json) say('(valid for 7 days)');
  } finally {
    await context.stop();
  }
}

/** Asks before events are turned off, which other receivers of the organization would miss too. */
async function confirm(): Promise<void> {
  const what = 'This turns events off for every endpoint of the organization';
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw new UsageError(`${what}: add --yes to confirm`);
  const asked = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await asked.question(`${what}. Continue? [y/N] `);
    if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError('nothing was changed');
  } finally {
    asked.close();
  }
}

async function noted(
  context: Context,
  action: Extract<WebhooksAction, 'enable' | 'disable'>,
): Promise<Result> {
  const { settings, stack, log } = context;
  if (stack.databaseUrl === '') return await act(context, action);
  const warehouse = openToAsk(settings, stack.databaseUrl, log, 1);
  try {
    return await recordedWherePossible(
      warehouse.db,
      asOperation(settings, `webhooks ${action}`, {}),
      () => act(context, action),
      describe,
      sayUnnoted,
    );
  } finally {
    await warehouse.close();
  }
}

type Result = { readonly enabled: boolean } | { readonly portal: string };

async function act(context: Context, action: WebhooksAction): Promise<Result> {
  if (context.service.url === '')
    throw new CommandError(
      'no sandbox is running, so there is no portal: run metersync start first, or set SERVICE_URL',
    );
  const configuration = webhooksOf(context.service, context.settings);
  if (action === 'enable' || action === 'disable') {
    return { enabled: await configuration.enable(action === 'enable') };
  }
  if (!(await configuration.enabled())) {
    throw new CommandError(
      'webhooks are disabled, and the portal with them: run metersync webhooks enable first',
    );
  }
  return { portal: await configuration.portal() };
}

function describe(result: Result): string {
  if ('portal' in result) return result.portal;
  return result.enabled
    ? 'Webhooks are enabled: the service sends events.'
    : 'Webhooks are disabled: the service sends no events (metersync webhooks enable).';
}
