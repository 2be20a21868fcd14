import { JsonTokens } from '../../contract/json.ts';

/**
 * Postgres holds neither NUL nor half of a surrogate pair. Both are replaced by U+FFFD before a text
 * is written. In JSON they can only be escapes, because UTF-8 has no halves and JSON no bare NUL.
 */
const replacement = '\ufffd';

/** An escape of NUL, or of any half: one scan tells whether a text has to be read closely. */
const suspicious = /\\u(?:0000|[dD][89a-fA-F])/;

/** Whole pairs, NUL and halves, and any other escape, so that `\\u0000` is read as a backslash. */
const escapes =
  /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u(?:0000|[dD][89a-fA-F][\da-fA-F]{2})|\\./g;
const escapeLength = '\\u0000'.length;

/** Replaces escapes of characters that Postgres cannot hold in JSON, or in a part of it. */
export function holdableJson(json: string): string {
  if (!suspicious.test(json)) return json;
  return json.replace(escapes, (found) => (found.length === escapeLength ? '\\ufffd' : found));
}

/** Replaces characters that Postgres cannot hold in a text that JSON.parse has read. */
export const holdable = (text: string): string => text.replaceAll('\0', replacement).toWellFormed();

/** A text as JSON spells it, without its quotes, so that Postgres can hold it. */
export const asSent = (text: string): string => JSON.stringify(text).slice(1, -1);

/** Whether JSON may have characters that Postgres cannot hold. */
export const isSuspicious = (json: string): boolean => suspicious.test(json);

/** JSON that Postgres can hold, and the texts that were replaced in it. */
export interface Holdable {
  readonly text: string;
  /** The replaced texts as the service sent them, with their escapes, by their paths, as JSON. */
  readonly replaced: string;
}

/**
 * Replaces the characters that Postgres cannot hold in the JSON of a record. Returns undefined if
 * there are none, or if its own id has them: the record would get the id of another record.
 */
export function holdableRecord(record: string): Holdable | undefined {
  const text = holdableJson(record);
  if (text === record) return undefined;
  const { replaced, isOfId } = replacedTexts(record);
  return isOfId ? undefined : { text, replaced };
}

/** Maximum length of a path, in characters. A record may nest thousands of names. */
const pathMax = 200;

/** A container that is open, and the place in it. */
interface Place {
  readonly path: string;
  readonly isArray: boolean;
  at: string | number;
}

/** Returns the replaced texts of a record, and whether one of them belongs to its own id. */
export function replacedTexts(record: string): { replaced: string; isOfId: boolean } {
  const tokens = new JsonTokens(record);
  const open: Place[] = [];
  const replaced = new Map<string, string>();
  let isOfId = false;
  const note = (path: string, token: string): void => {
    let free = path;
    for (let n = 2; replaced.has(free); n++) free = `${path} (${n})`;
    replaced.set(free, token.slice(1, token.lastIndexOf('"')));
  };
  while (tokens.next()) {
    const { kind, from, to } = tokens;
    const inside = open.at(-1);
    if (kind === 'close') open.pop();
    if (kind === 'comma' && inside?.isArray) inside.at = Number(inside.at) + 1;
    if (kind === 'open') open.push({ path: pathOf(inside), isArray: record[from] === '[', at: 0 });
    if (kind === 'name' && inside) inside.at = holdable(tokens.name);
    if (kind !== 'name' && kind !== 'text') continue;
    const token = record.slice(from, to);
    if (holdableJson(token) === token) continue;
    const isInId = open[0]?.isArray === false && open[0].at === 'id';
    if (isInId && (kind === 'text' || open.length > 1)) isOfId = true;
    note(kind === 'name' ? `${pathOf(inside)} (name)` : pathOf(inside), token);
  }
  return { replaced: JSON.stringify(Object.fromEntries(replaced)), isOfId };
}

/** The path of the value that is read: `lineItems[3].description`. */
function pathOf(inside: Place | undefined): string {
  if (inside === undefined) return '';
  const { path, isArray, at } = inside;
  if (path.length >= pathMax) return path;
  const longer = isArray ? `${path}[${at}]` : path === '' ? String(at) : `${path}.${at}`;
  return longer.slice(0, pathMax).toWellFormed();
}
