import { randomUUID } from 'node:crypto';
import { keyOf, signedHeaders } from '../receiver/signing.ts';
import type { Pipeline } from './pipeline.ts';

/** Delivers an event as the service would, signed under the pipeline's secret; returns the status of the answer. */
export async function deliver(
  { env }: Pipeline,
  payload: object,
  id: string = `msg_${randomUUID()}`,
): Promise<{ id: string; status: number }> {
  const body = JSON.stringify(payload);
  const timestamp = String(Math.floor(Date.now() / 1000));
  const answer = await fetch(`http://127.0.0.1:${env.RECEIVER_PORT}/webhooks`, {
    method: 'POST',
    headers: signedHeaders({ id, timestamp, body, key: keyOf(env.WEBHOOK_SECRETS ?? '') }),
    body,
  });
  await answer.arrayBuffer();
  return { id, status: answer.status };
}
