/** A place in a list of events: after event `id`, which the list has at this time. */
export interface Place {
  /** A time as Postgres prints it, with microseconds. */
  readonly at: string;
  readonly id: string;
}

/** Encodes a place for URLs and commands. */
export const placeText = ({ at, id }: Place): string =>
  Buffer.from(JSON.stringify([at, id])).toString('base64url');

const time = /^(-?infinity|\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d){0,2})$/;

/** Decodes a place that `placeText` encoded; undefined for any other text. */
export function readPlace(text: string): Place | undefined {
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return undefined;
  }
  if (!Array.isArray(parts) || parts.length !== 2) return undefined;
  const [at, id] = parts.map((part) =>
    typeof part === 'string' && !part.includes('\0') ? part : undefined,
  );
  if (at === undefined || id === undefined || !time.test(at)) return undefined;
  return { at, id };
}
