import { randomBytes, randomUUID } from 'node:crypto';
import { type Asked, type Reply, ScriptedServer } from '../service/scripted-server.ts';

/** The secrets by the places where they were planted. */
export type Planted = Map<string, string>;

/** A word that is not a secret. A test must find it, which proves that the search works. */
export const openWord = 'open-word-of-everybody';

/** Returns a function that makes a new secret for a place and notes it. */
export function planter(planted: Planted): (place: string) => string {
  return (place) => {
    const secret = `hush${planted.size}q${randomBytes(9).toString('hex')}`;
    planted.set(place, secret);
    return secret;
  };
}

export interface PlantedService {
  readonly url: string;
  readonly companyId: string;
  /** A company whose listing of connections is refused. */
  readonly deniedId: string;
  readonly connectionId: string;
  readonly documentId: string;
  /** A document whose record is always cut short. */
  readonly brokenId: string;
  stop(): Promise<void>;
}

const times = { created: '2026-01-01T00:00:00.000001', updated: '2026-02-01T00:00:00.000001' };

/** Starts a service with secrets in everything that it sends, also in errors and cut-off answers. */
export async function startPlantedService(
  plant: (place: string) => string,
  apiKey: string,
): Promise<PlantedService> {
  const [companyId, deniedId, connectionId, documentId, brokenId, meterId] = Array.from({ length: 6 }, () =>
    randomUUID(),
  ) as [string, string, string, string, string, string];
  const companies = [companyId, deniedId].map((id) => ({
    id,
    name: `${openWord} ${id}`,
    externalId: null,
    clientSecret: plant(`company ${id}`),
    sites: [{ id: randomUUID(), name: 'Site', access: { gate: { PIN: plant(`site of ${id}`) } } }],
  }));
  const connection = {
    id: connectionId,
    company: { id: companyId },
    status: 'CONNECTED',
    note: openWord,
    ...times,
    login: { username: 'somebody', password: plant('login.password'), passwordUpdatedAt: times.updated },
    accounts: [
      {
        id: randomUUID(),
        accountNumber: '1',
        credentials: { user: { pw: [plant('accounts[].credentials')] } },
      },
    ],
    Password: plant('Password'),
    passphrase: plant('passphrase'),
    accessToken: plant('accessToken'),
    apiKey: plant('apiKey'),
    mfaCode: plant('mfaCode'),
    securityAnswer: plant('securityAnswer'),
    securityQuestions: [{ question: 'Which?', answer: plant('securityQuestions') }],
    connectionMagicLink: {
      secret: plant('connectionMagicLink.secret'),
      url: `https://x/?t=${plant('magic link url')}`,
    },
    connectionMagicLinkSecret: plant('connectionMagicLinkSecret'),
    SESSION_COOKIE: plant('SESSION_COOKIE'),
  };
  // The name is spelled with an escape in the sent text.
  const escaped = `{"pass\\u0077ord":"${plant('escaped name')}"}`;
  const refused = {
    ...connection,
    id: randomUUID(),
    factor: 'HUGE',
    note: 'with a\0NUL',
    connectionMagicLinkSecret: plant('of a refused record'),
    deep: { deeper: [{ refresh_token: plant('deep in a refused record') }] },
  };
  const usage = {
    id: randomUUID(),
    document: documentId,
    meter: meterId,
    startDate: '2026-01-01',
    endDate: '2026-01-31',
  };
  const document = {
    id: documentId,
    company: companyId,
    notes: openWord,
    billDate: '2026-01-31',
    ...times,
    download: { headers: { 'X-Api-Key': plant('document header') } },
  };
  const row = {
    ...usage,
    usage: '1.5',
    usageUnits: 'kWh',
    ...times,
    additionalFields: { portal_passcode: plant('usage') },
  };
  const meter = { id: meterId, site: null, remote: { privateKey: plant('meter') } };
  const reading = {
    start: '2026-01-01T00:00:00Z',
    end: '2026-01-01T00:15:00Z',
    usage: '1',
    token: plant('reading'),
  };
  const stray = { note: 'without a place in time', usage: '1', Token: plant('refused reading') };
  const cutShort = `{"id":"${brokenId}","note":"x","connectionMagicLinkSecret":"${plant('cut short')}","more":"`;
  const denied = {
    detail: `the key ${Buffer.from(`:${apiKey}`).toString('base64')} of ${apiKey} sees nothing`,
    accessToken: plant('error body'),
  };
  const headers = {
    'set-cookie': `session=${plant('header set-cookie')}`,
    'x-auth-token': plant('header x-auth-token'),
  };
  const page = (key: string, total: string, items: readonly unknown[]): Reply => ({
    headers,
    body: JSON.stringify({
      [key]: items,
      [total]: items.length,
      totalPages: 1,
      currentPage: 1,
      hasNext: false,
      perPage: 100,
    })
      .replace('"ESCAPED"', escaped)
      // Postgres holds no such number.
      .replace('"HUGE"', '1e200000'),
  });
  const of = (id: string | undefined, items: readonly unknown[]) => (id === companyId ? items : []);
  const server = await ScriptedServer.start(({ path }: Asked): Reply => {
    const [, , resource, scope, id] = path.split('/');
    if (resource === 'company') return { json: companies, headers };
    if (resource === 'connection' && id === deniedId) return { status: 403, json: denied, headers };
    if (resource === 'connection')
      return page(
        'connections',
        'totalConnections',
        of(id, [{ ...connection, escaped: 'ESCAPED' }, refused]),
      );
    if (resource === 'meter') return page('meters', 'totalMeters', of(id, [meter]));
    if (resource === 'interval') return page('intervals', 'totalIntervals', [reading, stray]);
    if (resource === 'usage')
      return page('usageData', 'totalUsageData', scope === 'document' || id === companyId ? [row] : []);
    if (resource === 'document' && scope === 'company')
      return page('documents', 'totalDocuments', of(id, [document]));
    if (scope === brokenId) return { body: cutShort, headers };
    if (scope === documentId) return { json: document, headers };
    if (resource === 'ping') return { json: { version: 'v2.2', apiKey: plant('ping') }, headers };
    return { status: 404, json: { detail: 'no', Cookie: plant('error of what is not there') }, headers };
  });
  return {
    url: server.url,
    companyId,
    deniedId,
    connectionId,
    documentId,
    brokenId,
    stop: () => server.stop(),
  };
}

/** Makes the bodies of deliveries with secrets, with their expected outcomes. */
export function plantedDeliveries(
  { companyId, connectionId, documentId, brokenId }: PlantedService,
  plant: (place: string) => string,
): { readonly outcome: 'taken' | 'ignored' | 'dead'; readonly body: string }[] {
  const company = { id: companyId, name: 'Planted' };
  const event = (more: object) =>
    JSON.stringify({ company, ...times, status: 'CONNECTED', url: 'https://x', note: openWord, ...more });
  const connection = (more: object) =>
    event({ id: connectionId, eventType: 'connection.updated.v2', protectedChanges: ['password'], ...more });
  return [
    {
      outcome: 'taken',
      body: connection({ old: { Password: plant('old of an event') }, token: plant('event') }),
    },
    {
      outcome: 'taken',
      body: `\ufeff${connection({
        Authorization: `Bearer ${plant('event with a byte order mark')}`,
        bearer: plant('bearer of an event'),
        session: { id: plant('session of an event') },
      })}`,
    },
    {
      outcome: 'taken',
      body: event({
        eventType: 'document.updated.v2',
        id: documentId,
        secrets: [[plant('secrets of an event')]],
      }),
    },
    {
      outcome: 'taken',
      body: event({
        eventType: 'document.created.v2',
        id: brokenId,
        api_key: plant('event of a broken bill'),
      }),
    },
    {
      outcome: 'ignored',
      body: event({ eventType: 'planet.moved.v9', a: { b: { CREDENTIALS: { c: plant('ignored event') } } } }),
    },
    {
      outcome: 'dead',
      body: event({ eventType: 'document.created.v2', apiKey: plant('event without an id') }),
    },
    {
      outcome: 'dead',
      body: connection({
        id: randomUUID(),
        x: 'HUGE',
        otp: plant('event that Postgres refuses'),
      }).replace('"HUGE"', '1e200000'),
    },
    {
      outcome: 'taken',
      body: connection({ x: 'a\0b', otp: plant('event with a NUL') }),
    },
    {
      outcome: 'dead',
      body: `{"eventType":"connection.updated.v2","note":"${openWord}","login":{"password":"${plant('event cut short')}`,
    },
    { outcome: 'dead', body: `${openWord}&password=${plant('event that is a form')}` },
    {
      outcome: 'dead',
      body: event({
        eventType: 'intervals.synced',
        meterId: randomUUID(),
        start: '2026-02-30T00:00',
        end: '2026-03-01T00:00',
        pass_word: plant('event of no day'),
      }),
    },
  ];
}
