import { createHash } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import type pg from 'pg';

const mark = 'planned each time';

/**
 * Stands in a statement that needs a plan for its parameters: no connection keeps it, however often
 * it is sent.
 */
export const plannedEachTime: SQL = sql.raw(`/* ${mark} */`);

/** Whether a connection may keep a statement. */
export const mayBeKept = (text: string): boolean => !text.includes(mark);

/**
 * Times that a pool sends a statement before its connections keep it: most are sent once or rarely.
 */
export const sendsMin = 20;
/**
 * Characters of its parameters beyond which a statement is planned for what it brings: the plan
 * that is kept is made for parameters that nobody knows, which are taken for a few values.
 */
export const charactersMax = 16_384;
/** Texts that are counted: a bound for what hardly grows, as texts are those of our code. */
const textsMax = 2_000;

/**
 * What Postgres says of a kept statement that its session does not have, or has from another
 * client.
 */
const notOurs: readonly unknown[] = ['26000', '42P05'];

/**
 * Has the connections of a pool keep the statements that are sent often, as prepared ones: Postgres
 * reads each once for a connection and soon plans it no more, which is half of what small
 * statements cost. The function it returns is told of each new connection. `test/db/cost` runs all
 * statements with the plans that are kept so.
 *
 * Behind a pooler a connection may have another session for each transaction. A statement is named
 * after its text, so that the session of another client has that very statement under the name, or
 * none; and from the first error that tells of such a pooler on nothing is kept any more.
 */
export function keepsHot(): (client: pg.PoolClient) => void {
  const texts = new Map<string, { sends: number; readonly name: string; readonly kept: boolean }>();
  let keeps = true;
  const nameOf = (text: string, values: readonly unknown[]): string | undefined => {
    if (!keeps || values.length === 0) return undefined;
    const known = texts.get(text);
    if (known === undefined) {
      if (texts.size < textsMax)
        texts.set(text, { sends: 1, name: nameFor(text), kept: mayBeKept(text) });
      return undefined;
    }
    known.sends += 1;
    return known.kept && known.sends > sendsMin && isSmall(values) ? known.name : undefined;
  };
  const look = (error: unknown): void => {
    if (notOurs.includes((error as { readonly code?: unknown } | null | undefined)?.code))
      keeps = false;
  };
  return (client) => {
    const send = client.query.bind(client) as (...args: readonly unknown[]) => unknown;
    const query = (what: unknown, values: unknown, ...more: readonly unknown[]): unknown => {
      if (!isText(what) || !Array.isArray(values)) return send(what, values, ...more);
      const name = nameOf(what.text, values);
      if (name === undefined) return send(what, values, ...more);
      // A pool calls back, a transaction is promised.
      const [done] = more;
      if (typeof done !== 'function') {
        const sent = send({ ...what, name }, values) as Promise<unknown>;
        sent.catch(look);
        return sent;
      }
      return send({ ...what, name }, values, (error: unknown, result: unknown): void => {
        look(error);
        done(error, result);
      });
    };
    Object.assign(client, { query });
  };
}

/** As long as Postgres takes for a name. */
const nameFor = (text: string): string =>
  `hot_${createHash('sha256').update(text).digest('hex').slice(0, 59)}`;

/** A statement as Drizzle sends it, and none that streams. */
const isText = (what: unknown): what is { readonly text: string } =>
  typeof what === 'object' && what !== null && !('submit' in what) && 'text' in what;

function isSmall(values: readonly unknown[]): boolean {
  let characters = 0;
  for (const value of values) if (typeof value === 'string') characters += value.length;
  return characters <= charactersMax;
}
