/** Matches a UUID with its hyphens, in any case. */
export const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * `anySpelling` matches a UUID in any spelling that Postgres accepts: in capitals, without hyphens, in
 * braces.
 */
const digits = '[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}';
const anySpelling = new RegExp(`^(?:${digits}|\\{${digits}\\})$`, 'i');
const printed = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Spells a UUID as Postgres prints it; undefined for any other text. */
export function canonicalUuid(text: string): string | undefined {
  if (printed.test(text)) return text;
  if (!anySpelling.test(text)) return undefined;
  const hex = text.replace(/[{}-]/g, '').toLowerCase();
  return [[0, 8], [8, 12], [12, 16], [16, 20], [20]].map(([from, to]) => hex.slice(from, to)).join('-');
}

/** Spells a UUID as Postgres prints it; returns any other id unchanged. */
export const canonicalId = (text: string): string => canonicalUuid(text) ?? text;
