import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { stringify } from 'yaml';
import { prometheus } from './debian.ts';
import { temporaryFolder } from './folder.ts';
import { until } from './poll.ts';
import { freePort } from './port.ts';

const project = resolve(import.meta.dirname, '../..');

type Labels = Readonly<Record<string, string>>;

/** A Prometheus that scrapes addresses each second, with the rules of deploy/. */
export interface RunningPrometheus {
  /** Returns the labels of each series of a query's result. */
  query(promql: string): Promise<Labels[]>;
  /** Returns the labels of each series that a selector selects. */
  series(selector: string): Promise<Labels[]>;
  stop(): Promise<void>;
}

export async function startPrometheus(targets: readonly string[]): Promise<RunningPrometheus> {
  const [program, { path, remove }, port] = await Promise.all([prometheus(), temporaryFolder(), freePort()]);
  const configuration = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [join(project, 'deploy/prometheus/rules.yml')],
    scrape_configs: [{ job_name: 'metersync', static_configs: [{ targets }] }],
  };
  await writeFile(join(path, 'prometheus.yml'), stringify(configuration));
  const address = `127.0.0.1:${port}`;
  const process = spawn(
    program,
    [
      `--config.file=${join(path, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(path, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const ended = new Promise((resolveEnd) => process.once('exit', resolveEnd));
  await until('Prometheus is ready', async () => (await fetch(`http://${address}/-/ready`)).ok);
  const ask = async <T>(path: string): Promise<T> => {
    const answer = await fetch(`http://${address}/api/v1/${path}`);
    const { data, error } = (await answer.json()) as { data: T; error?: string };
    if (error !== undefined) throw new Error(`${error}: ${path}`);
    return data;
  };
  return {
    async query(promql) {
      const { result } = await ask<{ result: { metric: Labels }[] }>(
        `query?query=${encodeURIComponent(promql)}`,
      );
      return result.map(({ metric }) => metric);
    },
    series: (selector) => ask(`series?match[]=${encodeURIComponent(selector)}`),
    async stop() {
      process.kill('SIGKILL');
      await ended;
      await remove();
    },
  };
}
