import { html } from 'hono/html';
import type { Markup } from './markup.ts';

/** How a message stands, with one endpoint or overall (docs/portal.md). */
export const messageStatuses = ['delivered', 'pending', 'retrying', 'failed', 'missing'] as const;
export type MessageStatus = (typeof messageStatuses)[number];

export const statusNames: Readonly<Record<MessageStatus, string>> = {
  delivered: 'Delivered',
  pending: 'Pending',
  retrying: 'Retrying',
  failed: 'Failed',
  missing: 'Not sent',
};

const tones: Readonly<Record<MessageStatus, string>> = {
  delivered: 'good',
  pending: 'busy',
  retrying: 'uneasy',
  failed: 'bad',
  missing: 'plain',
};

export const badge = (tone: string, words: string): Markup =>
  html`<span class="badge ${tone}">${words}</span>`;

export const statusBadge = (status: MessageStatus): Markup => badge(tones[status], statusNames[status]);

/** Seed 3.2, and whether an active endpoint's last attempts failed. */
export function endpointBadge(state: string, failingSince: string | null): Markup {
  if (state === 'removed') return badge('plain', 'Removed');
  if (state === 'disabled') return badge('bad', 'Disabled');
  return failingSince === null ? badge('good', 'Active') : badge('uneasy', 'Failing');
}
