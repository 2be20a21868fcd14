import { Failure, type FailureCode } from '../../contract/failures.ts';
import type { Ping } from '../../service/client.ts';
import type { WebhookConfiguration } from '../../service/webhooks.ts';
import { type Check, check, fail, notChecked, ok, type Verdict, warn } from './check.ts';

/** The answer of `GET /ping`, or why there is none. */
export type Pinged = { readonly ping: Ping; readonly at: number } | { readonly problem: Check };

/** Requests `GET /ping`. Without an answer the key is unchecked. `at` is the middle of the request. */
export async function pingService(
  ping: () => Promise<Ping>,
  now: () => number,
): Promise<{ checks: readonly Check[]; pinged: Pinged; failed: FailureCode | undefined }> {
  const began = now();
  let answer: Ping | undefined;
  let failed: FailureCode | undefined;
  const key = await check('API key', 'Check SERVICE_URL and SERVICE_API_KEY.', async () => {
    try {
      answer = await ping();
    } catch (error) {
      failed = error instanceof Failure ? error.code : undefined;
      throw error;
    }
    return ok('the service accepts it (GET /ping)');
  });
  if (answer !== undefined)
    return { checks: [key], pinged: { ping: answer, at: (began + now()) / 2 }, failed };
  if (failed === undefined || !saysNothingOfKey.includes(failed))
    return { checks: [key], pinged: { problem: key }, failed };
  const service: Check = { name: 'service', ...judgeAway(failed, key) };
  return {
    checks: [service, { name: 'API key', ...notChecked('the service did not check it') }],
    pinged: { problem: service },
    failed,
  };
}

const saysNothingOfKey: readonly FailureCode[] = ['SERVICE_UNREACHABLE', 'SERVICE_BUSY', 'SERVICE_ERROR'];

function judgeAway(code: FailureCode, { saw, todo }: Check): Verdict {
  if (code !== 'SERVICE_UNREACHABLE') return fail(saw, todo ?? '');
  return fail(
    `away: ${saw}`,
    'Check SERVICE_URL, the network and HTTPS_PROXY. If they are right, wait for the service.',
  );
}

/** If neither `/ping` nor the webhook switch is found, the address is wrong: other checks are pointless. */
export const wrongAddress = (url: string): Check => ({
  name: 'service',
  ...fail(
    `${url} answers 404 to /ping and to the webhook switch`,
    'Correct SERVICE_URL: it has to end in the version of the API, for example /v2.2.',
  ),
});

/** Whether the service answers in the version of SERVICE_URL; service.md 9.5 leaves the shape open. */
export function checkVersion(pinged: Pinged, asked: string): Check {
  return { name: 'API version', ...versionOf(pinged, asked) };
}

function versionOf(pinged: Pinged, asked: string): Verdict {
  if ('problem' in pinged) return notChecked('/ping was not answered');
  const { version } = pinged.ping;
  if (version === null) return notChecked('the answer of /ping names no version');
  if (plain(version) === plain(asked)) return ok(`${version}, as SERVICE_URL asks`);
  return warn(
    `/ping says ${version}, SERVICE_URL ends in ${asked}`,
    'Set the version at the end of SERVICE_URL: documents and usage differ between versions.',
  );
}

/** Makes `v2`, `2` and `v2.0` equal (service.md 9). */
const plain = (version: string): string => version.replace(/^v/i, '').replace(/\.0$/, '');

/** Compares clocks. Webhooks too far from the receiver's time are refused; half of that is a warning. */
export function checkClock(pinged: Pinged, warehouseAheadMs: number | null, toleranceSeconds: number): Check {
  const offs: { of: string; ms: number }[] = [];
  if ('ping' in pinged && pinged.ping.date !== null) {
    // The header has whole seconds: the middle of its second is the best estimate.
    offs.push({ of: 'the service', ms: Date.parse(pinged.ping.date) + 500 - pinged.at });
  }
  if (warehouseAheadMs !== null) offs.push({ of: 'the warehouse', ms: warehouseAheadMs });
  const measured = offs.filter(({ ms }) => Number.isFinite(ms));
  if (measured.length === 0)
    return { name: 'clock', ...notChecked('neither the service nor the warehouse returned the time') };
  const saw = measured.map(({ of, ms }) => `${(ms / 1000).toFixed(1)} s from the clock of ${of}`).join(', ');
  const worst = Math.max(...measured.map(({ ms }) => Math.abs(ms)));
  const todo = `Let NTP set the clock of this machine: webhooks that differ by more than WEBHOOK_TOLERANCE_SECONDS (${toleranceSeconds}) are refused.`;
  const verdict =
    worst > toleranceSeconds * 1000
      ? fail(saw, todo)
      : worst > toleranceSeconds * 500
        ? warn(saw, todo)
        : ok(saw);
  return { name: 'clock', ...verdict };
}

export async function checkWebhooks(configuration: WebhookConfiguration): Promise<Check> {
  return await check('webhooks', 'Correct SERVICE_API_KEY, or ask the operator of the service.', async () =>
    (await configuration.enabled())
      ? ok('enabled for the organization')
      : fail('disabled for the organization: the service sends no events', 'Run metersync webhooks enable.'),
  );
}
