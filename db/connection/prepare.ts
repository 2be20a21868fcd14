import { createHash } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import type pg from 'pg';

const mark = 'planned each time';

/**
 * Marks a statement that needs a plan for its parameters: no connection prepares it, however often
 * it is sent.
 */
export const plannedEachTime: SQL = sql.raw(`/* ${mark} */`);

/** Whether a connection may prepare a statement. */
export const mayBeKept = (text: string): boolean => !text.includes(mark);

/**
 * How often a pool sends a statement before its connections prepare it: most are sent once or
 * rarely.
 */
export const sendsMin = 20;
/**
 * Characters of parameters beyond which a statement is planned for its values: the generic plan
 * expects few values.
 */
export const charactersMax = 16_384;
/** Statement texts that are counted: a bound, though the texts of our code hardly grow. */
const textsMax = 2_000;

/** Errors for a prepared statement that the session lacks, or has from another client. */
const notOurs: readonly unknown[] = ['26000', '42P05'];

/**
 * Prepares statements that are sent often on the connections of a pool. Postgres parses each once
 * per connection and soon plans it no more, which halves the cost of small statements. Call the
 * returned function with each new connection. `test/db/cost` runs all statements with these plans.
 * Behind a pooler each transaction may have another session. Statements are named after their text,
 * so another client's session has the same statement under the name, or none. After the first error
 * of such a pooler nothing is prepared any more.
 */
export function keepsHot(): (client: pg.PoolClient) => void {
  const texts = new Map<string, { sends: number; readonly name: string; readonly kept: boolean }>();
  let keeps = true;
  const nameOf = (text: string, values: readonly unknown[]): string | undefined => {
    if (!keeps || values.length === 0) return undefined;
    const existing = texts.get(text);
    if (existing === undefined) {
      if (texts.size < textsMax)
        texts.set(text, { sends: 1, name: nameFor(text), kept: mayBeKept(text) });
      return undefined;
    }
    existing.sends += 1;
    return existing.kept && existing.sends > sendsMin && isSmall(values)
      ? existing.name
      : undefined;
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
      // A pool takes a callback, a transaction returns a promise.
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

/** Names a statement, as long as Postgres allows. */
const nameFor = (text: string): string =>
  `hot_${createHash('sha256').update(text).digest('hex').slice(0, 59)}`;

/** Whether this is a statement as Drizzle sends it, not a stream. */
const isText = (what: unknown): what is { readonly text: string } =>
  typeof what === 'object' && what !== null && !('submit' in what) && 'text' in what;

function isSmall(values: readonly unknown[]): boolean {
  let characters = 0;
  for (const value of values) if (typeof value === 'string') characters += value.length;
  return characters <= charactersMax;
}
