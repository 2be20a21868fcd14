import { type SQL, sql } from 'drizzle-orm';
import type pg from 'pg';

const mark = 'planned each time';

/** Stands in a statement that needs a plan for its parameters: no connection keeps it, however often it is sent. */
export const plannedEachTime: SQL = sql.raw(`/* ${mark} */`);

/** Whether a connection may keep a statement. */
export const mayBeKept = (text: string): boolean => !text.includes(mark);

/** Times that a pool sends a statement before its connections keep it: most are sent once or rarely. */
export const sendsMin = 20;
/**
 * Characters of its parameters beyond which a statement is planned for what it brings: the plan that is kept is made for
 * parameters that nobody knows, which are taken for a few values.
 */
export const charactersMax = 16_384;
/** Texts that are counted: a bound for what hardly grows, as texts are those of our code. */
const textsMax = 2_000;

/**
 * Has the connections of a pool keep the statements that are sent often, as prepared ones: Postgres reads each once for
 * a connection and soon plans it no more, which is half of what small statements cost. The function it returns is told of
 * each new connection. `test/db/cost` runs all statements with the plans that are kept so.
 */
export function keepsHot(): (client: pg.PoolClient) => void {
  const texts = new Map<string, { sends: number; readonly name: string; readonly kept: boolean }>();
  const nameOf = (text: string, values: readonly unknown[]): string | undefined => {
    if (values.length === 0) return undefined;
    const known = texts.get(text);
    if (known === undefined) {
      if (texts.size < textsMax)
        texts.set(text, { sends: 1, name: `hot_${texts.size}`, kept: mayBeKept(text) });
      return undefined;
    }
    known.sends += 1;
    return known.kept && known.sends > sendsMin && isSmall(values) ? known.name : undefined;
  };
  return (client) => {
    const send = client.query.bind(client) as (...args: readonly unknown[]) => unknown;
    const query = (what: unknown, values: unknown, ...more: readonly unknown[]): unknown => {
      if (!isText(what) || !Array.isArray(values)) return send(what, values, ...more);
      const name = nameOf(what.text, values);
      return send(name === undefined ? what : { ...what, name }, values, ...more);
    };
    Object.assign(client, { query });
  };
}

/** A statement as Drizzle sends it, and none that streams. */
const isText = (what: unknown): what is { readonly text: string } =>
  typeof what === 'object' && what !== null && !('submit' in what) && 'text' in what;

function isSmall(values: readonly unknown[]): boolean {
  let characters = 0;
  for (const value of values) if (typeof value === 'string') characters += value.length;
  return characters <= charactersMax;
}
