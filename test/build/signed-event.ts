import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { Webhook } from 'standardwebhooks';
import type { SandboxProcess } from '../../cli/sandbox.ts';
import { until } from '../support/poll.ts';
import type { Program } from './package.ts';

/** The signing secret of the receivers under test. */
export const secret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;

/** Waits until the receiver of a program listens; returns its address. */
export async function receiving({ child, said }: Program): Promise<string> {
  return await until('the receiver says where it listens', () => {
    if (child.exitCode !== null) throw new Error(said());
    return /receiver: POST (http:\S+)\/webhooks/.exec(said())?.[1];
  });
}

export interface SignedEvent {
  readonly id: string;
  readonly body: string;
}

/** Makes an event of an existing document of the service, with its present state. */
export async function changedDocument(
  service: Pick<SandboxProcess, 'apiUrl' | 'apiKey'>,
): Promise<SignedEvent> {
  const read = async (path: string) =>
    await (await fetch(`${service.apiUrl}${path}`, { headers: { 'x-api-key': service.apiKey } })).json();
  const [{ sites, ...company }] = (await read('/company')) as [{ id: string; sites: unknown[] }];
  const { documents } = (await read(`/document/company/${company.id}`)) as {
    documents: { id: string; created: string; updated: string }[];
  };
  const { id, created, updated } = documents[0] ?? { id: '', created: '', updated: '' };
  const payload = {
    eventType: 'document.updated.v2',
    id,
    company,
    site: sites[0],
    created,
    updated,
    old: {},
  };
  return { id: `msg_${randomUUID()}`, body: JSON.stringify(payload) };
}

/** Signs an event and sends it to a receiver. */
export async function deliver(
  url: string,
  { id, body }: SignedEvent,
  signedWith = secret,
): Promise<Response> {
  const now = new Date();
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
    'webhook-signature': new Webhook(signedWith).sign(id, now, body),
  };
  return await fetch(url, { method: 'POST', headers, body });
}

/** Reads what became of an event; undefined until it is recorded. */
export async function outcomeOf(warehouseUrl: string, eventId: string): Promise<string | undefined> {
  const client = new pg.Client({ connectionString: warehouseUrl });
  await client.connect();
  try {
    const { rows } = await client.query('select outcome from metersync.events where id = $1', [eventId]);
    return rows[0]?.outcome;
  } finally {
    await client.end();
  }
}
