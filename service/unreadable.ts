import { Failure } from '../contract/failures.ts';
import { jsonStopsAt } from '../contract/json-members.ts';

/** A success, as far as a message may tell of it. */
export interface Received {
  readonly text: string;
  readonly contentType: string | undefined;
}

/** Types and encodings that are named; others are an answer's own words. */
const named =
  /^(?:application\/(?:json|problem\+json|octet-stream|pdf|xml|zip)|text\/(?:csv|html|plain|xml)|br|compress|deflate|zstd)$/;

/** A content type or encoding as a message may tell it. */
export function nameOf(header: string | undefined): string {
  const [name = ''] = (header ?? '').toLowerCase().split(';', 1);
  return named.test(name.trim()) ? name.trim() : name === '' ? 'no type' : 'an unknown type';
}

/**
 * Parses the answer to a success.
 * @throws Failure SERVICE_ANSWER_UNREADABLE, which says of what kind and length it is and where it stops being JSON. No
 *   success is ever quoted, as it is made of records; the parser's own error would quote it too.
 */
export function parse(answer: Received): unknown {
  try {
    return JSON.parse(answer.text);
  } catch {
    const at = jsonStopsAt(answer.text);
    const where =
      at < answer.text.length
        ? `no JSON from character ${at} on`
        : 'cut short, or wrong inside one of its texts';
    throw unexpected('JSON', answer, where);
  }
}

/** An answer that is not `wanted`, told without quoting it. */
export function unexpected(wanted: string, { text, contentType }: Received, found: string): Failure {
  const got = text === '' ? 'an empty body' : `${text.length} characters of ${nameOf(contentType)}: ${found}`;
  return new Failure('SERVICE_ANSWER_UNREADABLE', `expected ${wanted}, got ${got}`);
}
