/** The three headers that sign a delivery (service.md 5.3), unchanged. */
export interface SignatureHeaders {
  readonly id: string;
  readonly timestamp: string;
  readonly signature: string;
}

/** Why headers do not belong to a signed delivery. */
export type HeaderProblem = 'encoded' | 'headers-missing' | 'headers-mixed' | 'header-repeated';

/** Maps lower-case header names to their family and field. */
export type HeaderFamilies = ReadonlyMap<string, { family: string; field: keyof SignatureHeaders }>;

/** The prefix is the vendor's name (service.md 5.3). These are the unbranded one and the provider's. */
const knownPrefixes = ['webhook', 'svix'];

/**
 * Returns the known families of signature headers and that of the configured prefix, which may end in a dash.
 * @throws Error if no header name can begin with the prefix
 */
export function headerFamilies(configuredPrefix?: string): HeaderFamilies {
  const configured = configuredPrefix?.toLowerCase().replace(/-$/, '');
  if (configured !== undefined && !/^[a-z0-9][a-z0-9_-]*$/.test(configured)) {
    throw new Error('the prefix of webhook headers must be letters, digits, - and _');
  }
  const prefixes = configured === undefined ? knownPrefixes : [...knownPrefixes, configured];
  const fields = ['id', 'timestamp', 'signature'] as const;
  return new Map(
    prefixes.flatMap((family) => fields.map((field) => [`${family}-${field}`, { family, field }] as const)),
  );
}

/**
 * Finds the one complete family of signature headers, in the raw headers (name, value, name, value, …),
 * because Node joins repeated headers. An id and a signature of different families are not a delivery.
 */
export function readSignatureHeaders(
  rawHeaders: readonly string[],
  families: HeaderFamilies,
): SignatureHeaders | HeaderProblem {
  const found: { id?: string; timestamp?: string; signature?: string } = {};
  let family: string | undefined;
  let problem: HeaderProblem | undefined;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase();
    if (name === 'content-encoding') return 'encoded';
    const slot = families.get(name);
    if (slot === undefined) continue;
    family ??= slot.family;
    if (slot.family !== family) problem ??= 'headers-mixed';
    else if (found[slot.field] !== undefined) problem ??= 'header-repeated';
    else found[slot.field] = rawHeaders[at + 1] as string;
  }
  if (problem !== undefined) return problem;
  const { id, timestamp, signature } = found;
  if (id === undefined || timestamp === undefined || signature === undefined) return 'headers-missing';
  return { id, timestamp, signature };
}
