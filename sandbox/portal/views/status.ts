import { badge, type Tone } from '../../../web/badge.ts';
import type { Markup } from '../../../web/markup.ts';

/** The state of a message, for one endpoint or overall (docs/guides/sandbox.md). */
export const messageStatuses = ['delivered', 'pending', 'retrying', 'failed', 'missing'] as const;
export type MessageStatus = (typeof messageStatuses)[number];

export const statusNames: Readonly<Record<MessageStatus, string>> = {
  delivered: 'Delivered',
  pending: 'Pending',
  retrying: 'Retrying',
  failed: 'Failed',
  missing: 'Not sent',
};

const tones: Readonly<Record<MessageStatus, Tone>> = {
  delivered: 'good',
  pending: 'busy',
  retrying: 'uneasy',
  failed: 'bad',
  missing: 'plain',
};

export const statusBadge = (status: MessageStatus): Markup => badge(tones[status], statusNames[status]);

/** Shows an endpoint's state (service.md 3.2), and of an active one whether its last attempts failed. */
export function endpointBadge(state: string, failingSince: string | null): Markup {
  if (state === 'removed') return badge('plain', 'Removed');
  if (state === 'disabled') return badge('bad', 'Disabled');
  return failingSince === null ? badge('good', 'Active') : badge('uneasy', 'Failing');
}
