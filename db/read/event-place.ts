/** A place in the order of a list of events: after the event `id`, of the candidate at `at` and `key`. */
export interface Place {
  /** A time as Postgres prints it, with microseconds. */
  readonly at: string;
  readonly key: string;
  readonly id: string;
}

/** Spells a place for addresses and commands. */
export const placeText = ({ at, key, id }: Place): string =>
  Buffer.from(JSON.stringify([at, key, id])).toString('base64url');

const time = /^(-?infinity|\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d){0,2})$/;

/** Reads a place as `placeText` spells it; undefined for any other text. */
export function readPlace(text: string): Place | undefined {
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return undefined;
  }
  if (!Array.isArray(parts) || parts.length !== 3) return undefined;
  const [at, key, id] = parts.map((part) =>
    typeof part === 'string' && !part.includes('\0') ? part : undefined,
  );
  if (at === undefined || key === undefined || id === undefined || !time.test(at)) return undefined;
  return { at, key, id };
}
