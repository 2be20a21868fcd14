import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { alertmanager } from './debian.ts';
import { temporaryFolder } from './folder.ts';
import { until } from './poll.ts';
import { freePort } from './port.ts';

interface HeldAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly status: { readonly inhibitedBy: readonly string[] };
}

/** A real Alertmanager. */
export interface TestAlertmanager {
  readonly url: string;
  /** The alarms that it holds, each with the alarms that inhibit it. */
  alerts(): Promise<readonly HeldAlert[]>;
  stop(): Promise<void>;
}

/** Starts an Alertmanager with deploy/prometheus/alertmanager.yml that notifies `target` at once. */
export async function startAlertmanager(target: string): Promise<TestAlertmanager> {
  const folder = await temporaryFolder();
  const config = parse(await readFile('deploy/prometheus/alertmanager.yml', 'utf8'));
  config.receivers = [{ name: 'operators', webhook_configs: [{ url: target, send_resolved: true }] }];
  Object.assign(config.route, { group_wait: '0s', group_interval: '1s', repeat_interval: '1h' });
  const file = join(folder.path, 'alertmanager.yml');
  await writeFile(file, stringify(config));
  const port = await freePort();
  const { path, cwd } = await alertmanager();
  const child = spawn(
    path,
    [
      `--config.file=${file}`,
      `--storage.path=${join(folder.path, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--cluster.listen-address=',
    ],
    { cwd, stdio: 'ignore' },
  );
  const ended = once(child, 'exit');
  const killWithUs = () => child.kill('SIGKILL');
  process.once('exit', killWithUs);
  const url = `http://127.0.0.1:${port}`;
  await until('Alertmanager is ready', async () => (await fetch(`${url}/-/ready`)).ok);
  return {
    url,
    alerts: async () => (await (await fetch(`${url}/api/v2/alerts`)).json()) as HeldAlert[],
    stop: async () => {
      process.off('exit', killWithUs);
      child.kill('SIGKILL');
      await ended;
      await folder.remove();
    },
  };
}
