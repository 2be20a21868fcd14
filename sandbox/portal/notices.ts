import type { FastifyRequest } from 'fastify';
import { field, queryOf } from '../../web/form.ts';

/** Sentences about the previous request, by a word in the address, whose own text is never shown. */
const notices = {
  added: 'The endpoint was added. It receives messages from now on.',
  inspecting: 'The inspection URL is ready. What is sent to it appears below.',
  saved: 'The changes were saved.',
  rotated: 'The secret was rotated. Both secrets sign for the next 24 hours.',
  disabled: 'The endpoint is disabled. Its remaining attempts were cancelled.',
  enabled: 'The endpoint is active again.',
  removed: 'The endpoint was removed. Its remaining attempts were cancelled.',
  example: 'The example was sent.',
  resent: 'The message is being sent again.',
  replaying: 'The messages are being sent again. You see below how far it has come.',
  nothing: 'There is nothing to send again in that time.',
} as const;
type Notice = keyof typeof notices;

/** The notice that a request's address asks for, if any. */
export function noticeFor(request: FastifyRequest): string | undefined {
  const name = field(queryOf(request), 'done');
  return Object.hasOwn(notices, name) ? notices[name as Notice] : undefined;
}
