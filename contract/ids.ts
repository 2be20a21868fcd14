/** A UUID with its hyphens, in whatever case. */
export const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A UUID in any spelling that Postgres takes for one: in capitals, without hyphens, in braces. */
const digits = '[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}';
const anySpelling = new RegExp(`^(?:${digits}|\\{${digits}\\})$`, 'i');
const printed = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The UUID as Postgres prints it, however it is spelled; undefined for what is none. */
export function canonicalUuid(text: string): string | undefined {
  if (printed.test(text)) return text;
  if (!anySpelling.test(text)) return undefined;
  const hex = text.replace(/[{}-]/g, '').toLowerCase();
  return [[0, 8], [8, 12], [12, 16], [16, 20], [20]].map(([from, to]) => hex.slice(from, to)).join('-');
}

/** An id as it is known everywhere: of a UUID its one spelling, of any other text the text. */
export const canonicalId = (text: string): string => canonicalUuid(text) ?? text;
