import { type EventType, eventTypes } from '../events/payloads.ts';
import { badRequest } from '../problem.ts';

export const isEventType = (text: string): text is EventType =>
  (eventTypes as readonly string[]).includes(text);

/** The event types that were ticked in a form. Throws a Problem 400 if one does not exist. */
export function chosenTypes(form: URLSearchParams): EventType[] {
  const chosen = form.getAll('type');
  if (!chosen.every(isEventType)) throw badRequest('There is no such event type.');
  return eventTypes.filter((type) => chosen.includes(type));
}
