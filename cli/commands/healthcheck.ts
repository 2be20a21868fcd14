import { readSettings } from '../../app/settings/settings.ts';
import { monitorPolicy } from '../../contract/retry-policy.ts';
import { ask } from '../../http/ask.ts';
import { print } from '../output.ts';

/** `metersync healthcheck`: asks the private port on this machine and ends with 0 or 1, for containers. */
export async function healthcheck(options: { ready?: boolean }): Promise<void> {
  const { metrics } = readSettings(process.env);
  if (metrics.port === 0) throw new Error('METRICS_PORT is 0, so there is no private port to ask');
  const host = metrics.host === '0.0.0.0' || metrics.host === '::' ? 'localhost' : metrics.host;
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${metrics.port}/${options.ready ? 'readyz' : 'healthz'}`;
  const { ok, text } = await ask(url, { withinMs: monitorPolicy.checkWithinMs }).then(
    ({ status, text }) => ({ ok: status === 200, text }),
    ({ message, code }: NodeJS.ErrnoException) => ({
      ok: false,
      text: `${url} does not answer: ${message || code}`,
    }),
  );
  print(text);
  if (!ok) process.exitCode = 1;
}
