import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as it arrived. */
export interface Delivery {
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: string;
  readonly method: string;
  readonly at: number;
}

/** Answers a delivery, the `count`th since the start (from 1). */
export type Answerer = (delivery: Delivery, response: ServerResponse, count: number) => void;

export interface Receiver {
  readonly url: string;
  readonly deliveries: Delivery[];
  answer: Answerer;
  close(): Promise<void>;
}

export const answerWith =
  (status: number, headers: Record<string, string> = {}, body = ''): Answerer =>
  (_delivery, response) => {
    response.writeHead(status, headers).end(body);
  };

/** Starts a webhook receiver that keeps all requests and answers as set. */
export async function startReceiver(answer: Answerer = answerWith(204)): Promise<Receiver> {
  const deliveries: Delivery[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { headers, rawHeaders, method = '' } = request;
      const body = Buffer.concat(chunks).toString('utf8');
      const delivery = { headers, rawHeaders, method, body, at: Date.now() };
      deliveries.push(delivery);
      receiver.answer(delivery, response, deliveries.length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`,
    deliveries,
    answer,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return receiver;
}
