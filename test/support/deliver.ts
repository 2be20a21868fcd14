import { randomUUID } from 'node:crypto';
import { keyOf, signedHeaders } from '../receiver/signing.ts';

/** A receiver's environment, which holds its port and signing secret. */
interface Receiving {
  readonly env: Readonly<Record<string, string>>;
}

/** Delivers an event as the service would, signed under the secret; returns the status of the answer. */
export async function deliver(
  to: Receiving,
  payload: object,
  id?: string,
): Promise<{ id: string; status: number }> {
  return await deliverBody(to, JSON.stringify(payload), id);
}

/** Delivers any body as the service would. */
export async function deliverBody(
  { env }: Receiving,
  body: string,
  id: string = `msg_${randomUUID()}`,
): Promise<{ id: string; status: number }> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const answer = await fetch(`http://127.0.0.1:${env.RECEIVER_PORT}/webhooks`, {
    method: 'POST',
    headers: signedHeaders({ id, timestamp, body, key: keyOf(env.WEBHOOK_SECRETS ?? '') }),
    body,
  });
  await answer.arrayBuffer();
  return { id, status: answer.status };
}
