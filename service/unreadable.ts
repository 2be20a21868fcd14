import { Failure } from '../contract/failures.ts';
import { jsonStopsAt } from '../contract/json.ts';

/** The parts of a success that a message may describe. */
export interface Received {
  readonly text: string;
  readonly contentType: string | undefined;
}

/** Types and encodings that a message may name; others could be the answer's own text. */
const named =
  /^(?:application\/(?:json|problem\+json|octet-stream|pdf|xml|zip)|text\/(?:csv|html|plain|xml)|br|compress|deflate|zstd)$/;

/** Names a content type or encoding for a message. */
export function nameOf(header: string | undefined): string {
  const [name = ''] = (header ?? '').toLowerCase().split(';', 1);
  return named.test(name.trim()) ? name.trim() : name === '' ? 'no type' : 'an unknown type';
}

/**
 * Parses the body of a success, which is never quoted: it contains records.
 * @throws Failure SERVICE_ANSWER_UNREADABLE, with the type and length, and where it stops being JSON
 */
export function parse(answer: Received): unknown {
  try {
    return JSON.parse(answer.text);
  } catch {
    const at = jsonStopsAt(answer.text);
    const where =
      at < answer.text.length
        ? `not JSON from character ${at} on`
        : 'cut short, or wrong inside one of its texts';
    throw unexpected('JSON', answer, where);
  }
}

/** Makes the failure for an answer that is not `wanted`, without quoting it. */
export function unexpected(wanted: string, { text, contentType }: Received, found: string): Failure {
  const got = text === '' ? 'an empty body' : `${text.length} characters of ${nameOf(contentType)}: ${found}`;
  return new Failure('SERVICE_ANSWER_UNREADABLE', `expected ${wanted}, got ${got}`);
}
