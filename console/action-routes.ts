import { setTimeout as wait } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { html } from 'hono/html';
import type { OperationAction } from '../contract/names.ts';
import { consolePolicy } from '../contract/retry-policy.ts';
import { withoutStatement } from '../db/connection/failures.ts';
import { beginOperation, finishOperation, type Operation } from '../db/operations.ts';
import type { Away } from '../health/measured.ts';
import { NotBegun, record } from '../operations/recorded.ts';
import { formOf } from '../web/form.ts';
import { icons } from '../web/parts.ts';
import { actions, isAction } from './actions.ts';
import { type Asking, asked, type ConsoleDependencies, mayAct, type Question } from './asking.ts';
import { missing, type Page } from './frame.ts';
import { inConsole, nothing, text } from './parts.ts';

interface Serving {
  readonly deps: ConsoleDependencies;
  /** Actions under way. Stopping the console waits for them. */
  readonly underWay: Set<Promise<unknown>>;
  readonly askingOf: (request: FastifyRequest) => Promise<Asking>;
  readonly show: (reply: FastifyReply, asking: Asking, page: Page, status?: number) => Promise<FastifyReply>;
}

interface ByName {
  Params: { name: string };
}

/** `GET /act/{name}` says what an action would do; the form of that page posts to the same address. */
export function actionRoutes(app: FastifyInstance, serving: Serving): void {
  const { deps, askingOf, show } = serving;
  app.get<ByName>('/act/:name', async (request, reply) => {
    const asking = await askingOf(request);
    const action = nameOf(request);
    if (!isAction(action)) return await show(reply, asking, missing, 404);
    if (!mayAct(asking)) return await show(reply, asking, notForViewers, 403);
    try {
      const wanted = await unlessAway(asking, () => actions[action](asking));
      if ('away' in wanted) return await show(reply, asking, awayPage(wanted), 503);
      return await show(reply, asking, question(asking, wanted));
    } catch (error) {
      return await show(reply, asking, refusal(asking, whyNot(error)), 409);
    }
  });
  app.post<ByName>('/act/:name', async (request, reply) => {
    const asking = await askingOf(request);
    const action = nameOf(request);
    if (!isAction(action)) return await show(reply, asking, missing, 404);
    const { warehouse } = asking.health;
    if ('away' in warehouse) return await show(reply, asking, awayPage(warehouse), 503);
    const operation = operationOf(asking, action);
    const refuse = async (why: string, page: Page, status: number) => {
      await finishOperation(deps.writer, await beginOperation(deps.writer, operation), 'refused', why);
      return await show(reply, asking, page, status);
    };
    if (!mayAct(asking)) return await refuse('a viewer may not act', notForViewers, 403);
    let wanted: Question | Away;
    try {
      wanted = await unlessAway(asking, () => actions[action](asking));
    } catch (error) {
      const why = whyNot(error);
      return await refuse(why, refusal(asking, why), 409);
    }
    if ('away' in wanted) return await show(reply, asking, awayPage(wanted), 503);
    return await act(serving, asking, wanted, operation, formOf(request), reply);
  });
}

/** Says why an action failed, without the parameters of SQL statements. */
const whyNot = (error: unknown): string => (withoutStatement(error) as Error).message;

const nameOf = ({ params }: FastifyRequest<ByName>): string => params.name.replaceAll('-', ' ');

/** Parameters of the query that the log of operations keeps, because they say what an action is about. */
const noted = ['code', 'outcome', 'type', 'id', 'record', 'company', 'since', 'until', 'run', 'kind', 'key'];

function operationOf({ identity, query }: Asking, action: OperationAction): Operation {
  const about = noted.flatMap((name) => {
    const value = asked(query, name);
    return value === undefined ? [] : [[name === 'kind' ? 'schedule' : name, value] as const];
  });
  const { name: actor, role } = identity;
  return { actor, role, source: 'console', action, target: Object.fromEntries(about) };
}

async function act(
  { deps, underWay, show }: Serving,
  asking: Asking,
  wanted: Question,
  operation: Operation,
  form: URLSearchParams,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const begun = await record(
    deps.writer,
    operation,
    (operation) => wanted.act(form, operation),
    (detail) => detail,
  );
  const { id } = begun;
  const ended = begun.ended.then(
    () => undefined,
    (error: Error) => error,
  );
  const running = ended.finally(() => underWay.delete(running));
  underWay.add(running);
  const slow = Symbol('under way');
  const failure = await Promise.race([ended, wait(consolePolicy.actionShownMs, slow, { ref: false })]);
  if (failure === slow) return reply.redirect(`/log/${id}`, 303);
  if (failure instanceof Error) {
    if (!(failure instanceof NotBegun)) deps.log.error({ err: failure }, `${operation.action} failed`);
    return await show(reply, asking, question(asking, wanted, whyNot(failure)), 409);
  }
  const back = backOf(asking);
  return reply.redirect(`${back}${back.includes('?') ? '&' : '?'}done=${id}`, 303);
}

/** The page that led here. An address of another site is never accepted. */
const backOf = ({ query }: Asking): string => {
  const back = query.get('back') ?? '/';
  return /^\/(?![/\\])[\w\-./?=&%:+~@,]*$/.test(back) ? back : '/';
};

function question(asking: Asking, wanted: Question, failed?: string): Page {
  const { title, says, fields, button, danger = false } = wanted;
  const back = backOf(asking);
  return {
    title,
    notice:
      failed === undefined ? undefined : { tone: 'bad', words: `The action failed: ${inConsole(failed)}` },
    body: html`<h1>${title}</h1><form method="post" class="card form question">
<p class="with-icon">${icons.warning}<span>${says}</span></p>${fields}
<div class="actions"><button class="${danger ? 'danger' : ''}">${button}</button><a class="button outline" href="${back}">Cancel</a></div></form>`,
  };
}

const refusal = (asking: Asking, words: string): Page => ({
  title: 'Nothing was done',
  notice: { tone: 'bad', words: `Nothing was done: ${inConsole(words)}` },
  body: html`<p><a class="button outline" href="${backOf(asking)}">Back</a></p>`,
});

const notForViewers: Page = {
  title: 'Read-only access',
  notice: { tone: 'bad', words: 'Viewers cannot perform actions. Ask an operator.' },
  body: html`<p><a class="button outline" href="/">Overview</a></p>`,
};

/**
 * Creates what a page shows, or returns why Postgres is away: it is asked if that fails or takes longer than
 * `askAfterMs`, so a server that hangs delays a page only briefly.
 */
export async function unlessAway<T>(
  { deps, health }: Pick<Asking, 'deps' | 'health'>,
  make: () => Promise<T>,
): Promise<T | Away> {
  if ('away' in health.warehouse) return health.warehouse;
  const made = make();
  const over = new AbortController();
  const asked = async (): Promise<T | Away> => {
    await wait(consolePolicy.askAfterMs, undefined, { signal: over.signal });
    return (await deps.readAbsence()) ?? (await made);
  };
  try {
    return await Promise.race([made, asked()]);
  } catch (error) {
    const absence = await deps.readAbsence();
    if (absence === undefined) throw error;
    return absence;
  } finally {
    over.abort();
  }
}

/** Takes the place of a page that needs Postgres. */
export const awayPage = ({ away, todo }: Away): Page => ({
  title: 'Without Postgres',
  live: true,
  body: html`<h1>Without Postgres</h1>${nothing('This page cannot be shown now', html`${text(away)}. <b>What to do:</b> ${text(todo)}`)}`,
});
