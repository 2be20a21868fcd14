/** A process of strangers that opens many connections and reopens each when it ends. flood.ts starts it. */
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { limits } from '../../contract/limits.ts';

/**
 * `unsigned`: 1 MiB without a signature. `forged`: with well-formed headers. Both stop before the end.
 * `complete`: `forged` to the end. `chunks`: 4,000 chunks of one byte, at each path in turn. `blank`: blank
 * lines instead of a request, as many as the receiver takes.
 */
export type FloodKind = 'unsigned' | 'forged' | 'complete' | 'chunks' | 'blank';

export interface FloodFigures {
  /** Number of connections opened so far. */
  readonly opened: number;
  /** Answers by status. */
  readonly answers: Readonly<Record<string, number>>;
}

const [port, connections, kind] = process.argv.slice(2) as [string, string, FloodKind];
const body = Buffer.alloc(limits.webhookBodyBytesMax - 1, 'x');
const unfinished = body.subarray(0, -2);
const answers: Record<string, number> = {};
let opened = 0;

const chunks = Buffer.from(`${'1\r\nx\r\n'.repeat(4_000)}0\r\n\r\n`);
const bodies: Readonly<Record<Exclude<FloodKind, 'blank'>, Buffer>> = {
  unsigned: unfinished,
  forged: unfinished,
  complete: body,
  chunks,
};

function head(kind: keyof typeof bodies): string {
  const forged =
    `webhook-id: msg_${randomBytes(12).toString('hex')}\r\n` +
    `webhook-timestamp: ${Math.floor(Date.now() / 1_000)}\r\n` +
    `webhook-signature: v1,${randomBytes(32).toString('base64')}\r\n`;
  const length = `content-length: ${body.length}\r\n`;
  const doors: Readonly<Record<keyof typeof bodies, readonly [target: string, headers: string][]>> = {
    unsigned: [['POST /webhooks', length]],
    forged: [['POST /webhooks', forged + length]],
    complete: [['POST /webhooks', forged + length]],
    chunks: [
      ['POST /webhooks', forged],
      ['POST /webhooks', ''],
      ['POST /x', ''],
      ['GET /healthz', ''],
    ].map(([target, headers]) => [target as string, `${headers}transfer-encoding: chunked\r\n`]),
  };
  const [target, headers] = doors[kind][opened % doors[kind].length] as [string, string];
  return `${target} HTTP/1.1\r\nhost: a\r\n${headers}\r\n`;
}

const blank = Buffer.from('\r\n'.repeat(32 * 1024));

function sendBlankLines(socket: Socket): void {
  if (socket.destroyed) return;
  if (socket.write(blank)) setImmediate(sendBlankLines, socket);
  else socket.once('drain', () => sendBlankLines(socket));
}

function open(): void {
  opened += 1;
  const socket = connect({ port: Number(port), host: '127.0.0.1' });
  socket.once('connect', () => {
    if (kind === 'blank') sendBlankLines(socket);
    else {
      socket.write(head(kind));
      socket.write(bodies[kind]);
    }
  });
  socket.on('data', (answer) => {
    const status = answer.toString('latin1', 9, 12);
    answers[status] = (answers[status] ?? 0) + 1;
    // Each socket sends one body only.
    socket.destroy();
  });
  // A reset comes from unread bytes; the connection is reopened when it closes.
  socket.on('error', () => {});
  socket.once('close', () => setImmediate(open));
}

process.on('message', () => process.send?.({ opened, answers } satisfies FloodFigures));
process.on('disconnect', () => process.exit());
for (let n = 0; n < Number(connections); n += 1) open();
