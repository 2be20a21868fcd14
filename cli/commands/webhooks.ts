import { webhooksOf } from '../../app/service.ts';
import { asOperation } from '../as-operation.ts';
import { type Context, withContext } from '../context.ts';
import { CommandError, UsageError } from '../errors.ts';
import { print, printJson, say } from '../print.ts';
import { notedWherePossible } from '../warehouse.ts';

export type WebhooksAction = 'enable' | 'disable' | 'portal';

/** `metersync webhooks`: switches the service's events and opens its portal, with the user's API key. */
export async function webhooks(
  action: WebhooksAction,
  options: { json?: boolean; yes?: boolean },
): Promise<void> {
  if (action === 'disable' && !options.yes)
    throw new UsageError('This turns events off for every endpoint of the organization: confirm with --yes');
  const changes = action === 'enable' || action === 'disable';
  await withContext(
    {
      // Changes are noted in the warehouse's log of operations, if there is one. There may be none yet,
      // because webhooks are enabled before the warehouse is made.
      postgres: changes ? 'if there' : false,
      temporal: false,
      // No sandbox is started for the portal, because the portal would end with this command.
      service: action === 'portal' ? 'if known' : true,
      quiet: true,
      existing: true,
    },
    async (context) => {
      const work = () => act(context, action);
      const result =
        changes && context.stack.databaseUrl !== ''
          ? await notedWherePossible(
              context,
              asOperation(context.settings, `webhooks ${action}`, {}),
              work,
              describe,
            )
          : await work();
      if (options.json) printJson(result);
      else print(describe(result));
      if ('portal' in result && !options.json) say('(valid for 7 days)');
    },
  );
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
      'the portal is not available while webhooks are disabled: run metersync webhooks enable first',
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
