import { resolve } from 'node:path';
import { readSettings } from '../../app/settings.ts';
import { openStack } from '../../app/stack.ts';
import type { SandboxSize } from '../sandbox-process.ts';
import { startSandboxProcess } from '../sandbox-process.ts';
import { untilAsked } from '../until-asked.ts';

/** `metersync sandbox`: the service itself, to integrate with, on a database of its own. */
export async function sandboxCommand(
  options: SandboxSize & { port?: number; databaseUrl?: string },
): Promise<void> {
  const settings = readSettings({ METERSYNC_DIR: process.env.METERSYNC_DIR });
  const say = (line: string) => console.error(line);
  const stack =
    options.databaseUrl === undefined
      ? await openStack(settings, { postgres: false, temporal: false, sandbox: true, log: say })
      : undefined;
  const sandbox = await startSandboxProcess({
    databaseUrl: options.databaseUrl ?? (await stack?.databaseFor('sandbox')) ?? '',
    dataDir: resolve(settings.dataDir),
    size: options,
    ...(options.port === undefined ? {} : { port: options.port }),
    onLine: say,
  });
  console.log(
    [
      `The service runs at ${sandbox.url}`,
      ...['v2.2', 'v2.1', 'v2'].map((version) => `  ${version}: ${sandbox.url}/${version}`),
      `API key: ${sandbox.apiKey}`,
      `Try: curl -H 'X-API-Key: ${sandbox.apiKey}' ${sandbox.apiUrl}/company`,
      `Control routes: curl ${sandbox.url}/sandbox`,
      'Ctrl-C ends it; its data stays.',
    ].join('\n'),
  );
  await untilAsked({
    finished: [],
    onAsked: () => {},
    drain: async () => {
      await sandbox.stop();
      await stack?.stop();
    },
  });
}
