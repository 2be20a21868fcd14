import { resolve } from 'node:path';
import type { Running } from '../../app/process/running.ts';
import { webhooksOf } from '../../app/service.ts';
import { readSettings } from '../../app/settings/settings.ts';
import { openStack } from '../../app/stack.ts';
import { print, say } from '../print.ts';
import { type SandboxProcess, type SandboxSize, startSandboxProcess } from '../sandbox-process.ts';
import { untilAsked } from '../until-asked.ts';

export interface SandboxOptions extends SandboxSize {
  readonly seed?: number;
  readonly until: string;
  readonly live?: number;
  readonly irregular?: number;
  readonly host?: string;
  readonly port?: number;
  readonly deliverTo?: string;
}

/** `metersync sandbox`: runs a sandbox of the service, to integrate with, on a database of its own. */
export async function sandboxCommand(options: SandboxOptions): Promise<void> {
  const settings = readSettings({ METERSYNC_DIR: process.env.METERSYNC_DIR });
  // A sandbox that is stopped while it starts reports an error, which helps nobody.
  let stopping = false;
  const onLine = (line: string) => {
    if (!stopping) say(line);
  };
  const opened: Running[] = [];
  await untilAsked(process, {
    begin: async () => {
      const databaseUrl = process.env.SANDBOX_DATABASE_URL || (await ownDatabase());
      const sandbox = await startSandboxProcess({
        databaseUrl,
        dataDir: resolve(settings.dataDir),
        size: options,
        ...(options.port === undefined ? {} : { port: options.port }),
        more: {
          seed: options.seed,
          until: options.until,
          live: options.live,
          irregular: options.irregular,
          host: options.host,
          'deliver-to': options.deliverTo,
        },
        onLine,
      });
      opened.unshift(sandbox);
      print(...describe(sandbox, await openPortal(sandbox)));
      return opened.map(({ finished }) => finished);
    },
    onAsked: () => {
      stopping = true;
    },
    drain: async () => {
      for (const part of opened) await part.stop();
    },
  });

  async function ownDatabase(): Promise<string> {
    const stack = await openStack(settings, { postgres: false, temporal: false, sandbox: true, log: onLine });
    opened.push(stack);
    return await stack.databaseFor('sandbox');
  }
}

function describe(sandbox: SandboxProcess, portal: string): string[] {
  return [
    `The service runs at ${sandbox.url}`,
    ...['v2.2', 'v2.1', 'v2'].map((version) => `  ${version}: ${sandbox.url}/${version}`),
    `API key: ${sandbox.apiKey}`,
    `Try: curl -H 'X-API-Key: ${sandbox.apiKey}' ${sandbox.apiUrl}/company`,
    `Portal (for 7 days; webhooks are enabled): ${portal}`,
    `Control routes: curl -H 'Authorization: Bearer ${sandbox.controlToken}' ${sandbox.url}/sandbox`,
    'Ctrl-C ends it. Its data stays.',
  ];
}

/** Opens the portal. That needs webhooks (service.md 3.1), which are disabled for a new organization. */
async function openPortal(sandbox: SandboxProcess): Promise<string> {
  const webhooks = webhooksOf({ url: sandbox.apiUrl, apiKey: sandbox.apiKey });
  await webhooks.enable(true);
  return await webhooks.portal();
}
