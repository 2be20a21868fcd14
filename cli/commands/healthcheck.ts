import { readSettings } from '../../app/settings/settings.ts';
import { monitorPolicy } from '../../contract/retry-policy.ts';
import { print } from '../print.ts';

/** `metersync healthcheck`: asks the private port on this machine and ends with 0 or 1, for containers. */
export async function healthcheck(options: { ready?: boolean }): Promise<void> {
  const { metrics } = readSettings(process.env);
  if (metrics.port === 0) throw new Error('METRICS_PORT is 0, so there is no private port to ask');
  const host = metrics.host === '0.0.0.0' || metrics.host === '::' ? 'localhost' : metrics.host;
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${metrics.port}/${options.ready ? 'readyz' : 'healthz'}`;
  const { ok, text } = await fetch(url, { signal: AbortSignal.timeout(monitorPolicy.checkWithinMs) }).then(
    async (answer) => ({ ok: answer.ok, text: await answer.text() }),
    (error: Error) => ({ ok: false, text: `${url} does not answer: ${reasonOf(error)}` }),
  );
  print(text);
  if (!ok) process.exitCode = 1;
}

const reasonOf = ({ message, cause }: Error): string => (cause instanceof Error ? cause.message : message);
