import type { AddressInfo } from 'node:net';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { html } from 'hono/html';
import { sqlMessage, sqlState } from '../db/connection/failures.ts';
import { readOperation } from '../db/operations.ts';
import { verdictOf } from '../health/verdict.ts';
import { type AssetAddresses, type Assets, pageHeaders, serveAssets } from '../web/document.ts';
import { fromOwnPages, queryOf, schemesBehindProxy, takeForms } from '../web/form.ts';
import { isSameSecret, openLink } from '../web/link.ts';
import type { Identity } from './access.ts';
import { type ConsoleLink, type TurnedAway, withoutLink } from './access.ts';
import { actionRoutes, awayPage, unlessAway } from './action-routes.ts';
import type { Asking, ConsoleDependencies, MakePage } from './asking.ts';
import { type Frame, layout, missing, type Page, plainPage } from './frame.ts';
import { companyList, companyPage, siteList } from './pages/companies.ts';
import { deletesPage } from './pages/deletes.ts';
import { eventList, eventPage } from './pages/events.ts';
import { issueList, issuePage } from './pages/issues.ts';
import { logList, operationId, operationPage, operationTone } from './pages/log.ts';
import { overview } from './pages/overview.ts';
import { runList, runPage } from './pages/runs.ts';
import { systemPage } from './pages/system.ts';
import { tracePage } from './pages/trace.ts';
import { inConsole, text } from './parts.ts';

declare module 'fastify' {
  interface FastifyRequest {
    identity: Identity;
  }
}

const pages: Readonly<Record<string, MakePage>> = {
  '/': overview,
  '/events': eventList,
  '/events/:id': eventPage,
  '/companies': companyList,
  '/companies/:id': companyPage,
  '/sites': siteList,
  '/runs': runList,
  '/runs/:id': runPage,
  '/deletes': deletesPage,
  '/issues': issueList,
  '/issues/:id': issuePage,
  '/trace': tracePage,
  '/system': systemPage,
  '/log': logList,
  '/log/:id': operationPage,
};

const site: Assets = {
  styles: { 'console.css': new URL('./assets/console.css', import.meta.url).href },
  scripts: {},
};

export interface RunningConsole {
  /** `http://host:port` */
  readonly url: string;
  /** Resolves once all actions under way have ended. */
  stop(): Promise<void>;
}

/** Serves the console. @throws Error when the port is taken */
export async function serveConsole(
  deps: ConsoleDependencies,
  at: { readonly host: string; readonly port: number },
): Promise<RunningConsole> {
  const app = fastify({
    logger: false,
    forceCloseConnections: true,
    bodyLimit: 64 * 1024,
    // Ids of events may have 256 characters, and each character may take three in an address.
    routerOptions: { maxParamLength: 3 * 256 },
  });
  const underWay = new Set<Promise<unknown>>();
  const assets = await serveAssets(app, '/assets', site);
  app.decorateRequest('identity');
  showFailures(app, deps, assets);
  if (deps.link !== undefined) linkRoute(app, deps.link, assets);
  app.register(async (guarded) => {
    takeForms(guarded);
    admitKnown(guarded, deps, assets);
    for (const [path, make] of Object.entries(pages))
      guarded.get(path, async (request, reply) => {
        const asking = await askingOf(request, deps);
        const { page, status } = await answerOf(asking, path, make);
        return await show(reply, asking, assets, page, status);
      });
    actionRoutes(guarded, {
      deps,
      underWay,
      askingOf: (request) => askingOf(request, deps),
      show: (reply, asking, page, status) => show(reply, asking, assets, page, status),
    });
    guarded.get('/*', async (request, reply) =>
      show(reply, await askingOf(request, deps), assets, missing, 404),
    );
  });
  await app.listen(at);
  const { port } = app.server.address() as AddressInfo;
  const host = at.host.includes(':') ? `[${at.host}]` : at.host;
  return {
    url: `http://${host}:${port}`,
    stop: async () => {
      await app.close();
      await Promise.allSettled([...underWay]);
    },
  };
}

/** `GET /open/{key}` is the link to the console. */
function linkRoute(app: FastifyInstance, link: ConsoleLink, assets: AssetAddresses): void {
  app.get<{ Params: { key: string } }>('/open/:key', async ({ params: { key } }, reply) => {
    if (!isSameSecret(key, link.key)) return await turnAway(reply, assets, 403, withoutLink(link));
    const title = 'Opening the console';
    return await openLink(reply, assets, { token: key, site: 'console', path: '/', leadsTo: '/', title });
  });
}

/** Lets in only users that the console knows, and accepts changes only from its own pages. */
function admitKnown(app: FastifyInstance, deps: ConsoleDependencies, assets: AssetAddresses): void {
  app.addHook('onRequest', async (request, reply) => {
    const { headers, socket } = request;
    const known = await deps.identify({ headers, peer: socket.remoteAddress });
    if ('words' in known) return await turnAway(reply, assets, 403, known);
    request.identity = known;
    const schemes = deps.link === undefined ? schemesBehindProxy(headers) : undefined;
    if (request.method !== 'GET' && request.method !== 'HEAD' && !fromOwnPages(headers, schemes))
      return await turnAway(reply, assets, 403, fromElsewhere);
    return undefined;
  });
}

const fromElsewhere: TurnedAway = { words: 'This request came from another site. Nothing was done.' };

async function turnAway(
  reply: FastifyReply,
  assets: AssetAddresses,
  status: number,
  { title, words }: TurnedAway,
): Promise<FastifyReply> {
  const usual = status === 503 ? 'This page cannot be shown now' : 'This request was refused';
  return reply
    .status(status)
    .headers(pageHeaders)
    .send(String(await plainPage(assets, title ?? usual, words)));
}

async function askingOf(request: FastifyRequest, deps: ConsoleDependencies): Promise<Asking> {
  const health = await deps.readHealth();
  return {
    deps,
    identity: request.identity,
    health,
    verdict: verdictOf(health),
    params: request.params as Readonly<Record<string, string>>,
    query: queryOf(request),
    now: deps.now(),
  };
}

async function show(
  reply: FastifyReply,
  { identity, verdict, now }: Asking,
  assets: AssetAddresses,
  page: Page,
  status = 200,
): Promise<FastifyReply> {
  const frame: Frame = { identity, verdict, assets, now };
  return reply
    .status(status)
    .headers(pageHeaders)
    .send(String(await layout(frame, page)));
}

/** Pages that also work, with less content, while the warehouse cannot be reached. */
const withoutWarehouse: readonly string[] = ['/', '/system'];

/** Makes a page, or the page that takes its place if the address names nothing or something fails. */
async function answerOf(
  asking: Asking,
  path: string,
  make: MakePage,
): Promise<{ readonly page: Page; readonly status: number }> {
  const whole = async () => {
    const made = await make(asking);
    return made && (await withNotice(asking, made));
  };
  try {
    const isAway = 'away' in asking.health.warehouse;
    const made =
      isAway && withoutWarehouse.includes(path) ? await make(asking) : await unlessAway(asking, whole);
    if (made === undefined) return { page: missing, status: 404 };
    return 'away' in made ? { page: awayPage(made), status: 503 } : { page: made, status: 200 };
  } catch (error) {
    asking.deps.log.error({ err: error }, 'a page of the console failed');
    const body = html`<h1>This page failed</h1><p>${text(wordsOf(error))}</p>`;
    return { page: { title: 'This page failed', body }, status: 503 };
  }
}

/** Adds the result of the action that led here. It is read from the log of operations. */
async function withNotice({ deps, query }: Asking, page: Page): Promise<Page> {
  const id = operationId(query.get('done') ?? undefined);
  const operation = id === undefined ? undefined : await readOperation(deps.db, id);
  if (operation === undefined) return page;
  const { action, detail, outcome } = operation;
  const words = html`<a href="/log/${operation.id}">${action}</a>: ${outcome === null ? 'under way' : text(inConsole(detail ?? ''))}`;
  return { ...page, notice: { tone: operationTone(outcome), words } };
}

const queryCanceled = '57014';

/** Answers each failure with a page that says what to do next. Details are only logged. */
function showFailures(app: FastifyInstance, { log }: ConsoleDependencies, assets: AssetAddresses): void {
  app.setErrorHandler(async (error: Error & { statusCode?: number }, _request, reply) => {
    const status = error.statusCode ?? 500;
    if (status < 500) return await turnAway(reply, assets, status, { words: error.message });
    log.error({ err: error }, 'a page of the console failed');
    return await turnAway(reply, assets, 503, { words: wordsOf(error) });
  });
}

/** Describes the error of a page for a reader. It assumes that Postgres can be reached. */
function wordsOf(error: unknown): string {
  const state = sqlState(error);
  if (state === queryCanceled)
    return 'Postgres takes too long for this page. Narrow the filter, or use the command.';
  return state === undefined
    ? 'This page failed; the log of the console says why.'
    : `Postgres: ${sqlMessage(error)}`;
}
