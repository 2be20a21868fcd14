import { defaultEndpoints, type EndpointName, endpointNames } from '../../contract/endpoints.ts';
import { Failure, type FailureCode } from '../../contract/failures.ts';
import { counted } from '../../contract/words.ts';
import type { Ping, ServiceClient } from '../../service/client.ts';
import type { Page } from '../../service/page.ts';
import type { WebhookConfiguration } from '../../service/webhooks.ts';
import { type Check, check, fail, type Judged, notChecked, ok, warn } from './check.ts';

/** The answer of `GET /ping`, or why there is none. */
type Pinged = { readonly ping: Ping; readonly at: number } | { readonly problem: Check };

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

function judgeAway(code: FailureCode, { saw, todo }: Check): Judged {
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

function versionOf(pinged: Pinged, asked: string): Judged {
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

/** Number of companies that are searched for a company with bills and meters. */
const companiesMax = 5;

const todo = 'Correct the entry in SERVICE_ENDPOINTS, or set it to null.';

type Query = { readonly params: Record<string, string> } | { readonly without: string };

/** Reads and checks one page or record of each endpoint, with `companies` if the service lists none. */
export async function diagnoseEndpoints(
  service: ServiceClient,
  companies: readonly string[],
  today: string,
): Promise<Check[]> {
  return await new Endpoints(service, companies, today).all();
}

class Endpoints {
  readonly #service: ServiceClient;
  readonly #today: string;
  #companies: readonly string[];
  #connectionId: string | undefined;
  #documentId: string | undefined;
  #meterId: string | undefined;

  constructor(service: ServiceClient, companies: readonly string[], today: string) {
    this.#service = service;
    this.#companies = companies;
    this.#today = today;
  }

  /** Returns one row if all endpoints answer; otherwise a row for each endpoint that does not. */
  async all(): Promise<Check[]> {
    const checks: Check[] = [];
    // Companies first; connections, documents and meters before the endpoints that need the id of one.
    const asked = endpointNames.filter((name) => this.#service.has(name) || defaultEndpoints[name] !== null);
    const order = asked.sort((a, b) => rank(a) - rank(b));
    for (const name of order) {
      checks.push(await check(`endpoint ${name}`, todo, async () => await this.#look(name)));
    }
    const wrong = checks.filter(({ state }) => state === 'warn' || state === 'fail');
    const answered = checks.filter(({ state }) => state === 'ok').length;
    if (wrong.length > 0) return wrong;
    const unasked = checks.filter(({ state }) => state === 'not checked');
    const rest = unasked.map(({ name, saw }) => `; ${name}: ${saw}`).join('');
    const found = `${counted(answered, 'endpoint')} ${answered === 1 ? 'answers' : 'answer'}${rest}`;
    return [{ name: 'endpoints', ...(answered === 0 ? notChecked(found) : ok(found)) }];
  }

  async #look(name: EndpointName): Promise<Judged> {
    if (!this.#service.has(name))
      return notChecked('the endpoint catalogue says that the service has no such endpoint');
    if (name === 'connection') return await this.#single(name, 'connection', this.#connectionId);
    if (name === 'document') return await this.#single(name, 'document', this.#documentId);
    if (name === 'documentUsage') return await this.#usageOfOne();
    const query = this.#queryOf(name);
    if ('without' in query) return notChecked(query.without);
    const page = await this.#sample(name, query.params);
    this.#keepIds(name, page);
    return await this.#judge(name, query.params, page);
  }

  #queryOf(name: EndpointName): Query {
    if (name === 'companies') return { params: {} };
    if (name === 'intervals') {
      return this.#meterId === undefined
        ? { without: 'there is no meter to request' }
        : { params: { meterId: this.#meterId } };
    }
    const [companyId] = this.#companies;
    return companyId === undefined
      ? { without: 'there is no company to request: set SERVICE_COMPANIES' }
      : { params: { companyId } };
  }

  /** Reads a page with records of one of the first companies; if there is none, the first page. */
  async #sample(name: EndpointName, params: Record<string, string>): Promise<Page> {
    const first = await this.#page(name, params);
    if (!('companyId' in params)) return first;
    let page = first;
    for (const companyId of this.#companies.slice(1, companiesMax)) {
      if (page.count > 0) break;
      page = await this.#page(name, { companyId });
    }
    return page.count > 0 ? page : first;
  }

  #keepIds(name: EndpointName, page: Page): void {
    const ids = page.ids.filter((id) => id !== null);
    if (name === 'companies' && ids.length > 0) this.#companies = ids;
    if (name === 'connections') this.#connectionId = ids[0];
    if (name === 'documents') this.#documentId = ids[0];
    if (name === 'meters') this.#meterId = ids[0];
  }

  async #judge(name: EndpointName, params: Record<string, string>, page: Page): Promise<Judged> {
    const saw = `${page.count} on the first page, ${page.total ?? 'an unknown number'} in total`;
    if (page.total === null) return warn(`${saw}: the key of the total is missing`, todo);
    if (name !== 'intervals' && page.ids.includes(null)) return warn(`${saw}, some without id`, todo);
    if (!this.#service.has(name, 'updatedSince')) return ok(saw);
    const { companyId = '' } = params;
    const complete = await this.#page(name, { companyId });
    // Tomorrow, so that records that change meanwhile are filtered out too.
    const since = new Date(Date.parse(this.#today) + 86_400_000).toISOString().slice(0, 10);
    const filtered = await this.#page(name, { companyId, since }, true);
    if (complete.total === 0 || filtered.total === null || complete.total === null) return ok(saw);
    if (filtered.total < complete.total) return ok(`${saw}; the filter by update time works`);
    return warn(
      `${saw}; asked for records updated since tomorrow, the service lists ${filtered.total} of ${complete.total}: the filter is ignored`,
      'Correct `updatedSince` of the entry in SERVICE_ENDPOINTS, or remove it: the nightly backfill finds the rest.',
    );
  }

  async #single(endpoint: EndpointName, record: string, id: string | undefined): Promise<Judged> {
    if (id === undefined) return notChecked(`there is no ${record} to request`);
    const answer = await this.#service.record({ endpoint, params: { id }, lane: 'live' });
    return answer.found ? ok(`answers with ${record} ${id}`) : missingSingle(record, id);
  }

  async #usageOfOne(): Promise<Judged> {
    const id = this.#documentId;
    if (id === undefined) return notChecked('there is no document to request');
    try {
      const page = await this.#page('documentUsage', { id });
      return ok(`${counted(page.count, 'row')} of document ${id}`);
    } catch (error) {
      if (error instanceof Failure && error.code === 'SERVICE_NOT_FOUND')
        return missingSingle('document', id);
      throw error;
    }
  }

  async #page(name: EndpointName, params: Record<string, string>, updatedSince = false): Promise<Page> {
    const filters = updatedSince ? (['updatedSince'] as const) : [];
    return await this.#service.page({ endpoint: name, params, filters, page: 1, lane: 'live' });
  }
}

const missingSingle = (record: string, id: string): Judged =>
  warn(
    `404 for ${record} ${id}, which the listing shows`,
    `${todo} Until then listings are read instead, which costs more requests.`,
  );

function rank(name: EndpointName): number {
  if (name === 'companies') return 0;
  return name === 'connections' || name === 'documents' || name === 'meters' ? 1 : 2;
}
