import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface RawRequest {
  method?: string;
  path?: string;
  headers?: readonly (readonly [string, string])[];
  body?: string | Buffer;
}

/** Makes the bytes of a request, with the right Content-Length unless the headers have another. */
export function requestBytes({
  method = 'POST',
  path = '/webhooks',
  headers = [],
  body = '',
}: RawRequest): Buffer {
  const names = headers.map(([name]) => name.toLowerCase());
  const framed = names.includes('content-length') || names.includes('transfer-encoding');
  const all = [
    ...(names.includes('host') ? [] : [['host', 'receiver.test']]),
    ...headers,
    ...(framed || method === 'GET' || method === 'HEAD' ? [] : [['content-length', Buffer.byteLength(body)]]),
  ];
  const head = `${method} ${path} HTTP/1.1\r\n${all.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]);
}

/** A socket on which a test writes any bytes and reads answers. */
export class RawConnection {
  readonly socket: Socket;
  /** Resolves when the other side has ended the socket, cleanly or not. */
  readonly closed: Promise<void>;
  #received = Buffer.alloc(0);
  #wake: () => void = () => {};
  #isClosed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#wake();
    });
    // A server that ends a socket with unread bytes resets it; its earlier answers still count.
    socket.on('error', () => {});
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#isClosed = true;
        this.#wake();
        resolve();
      });
    });
  }

  static async open(port: number): Promise<RawConnection> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: false });
    const connection = new RawConnection(socket);
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return connection;
  }

  write(bytes: string | Buffer): void {
    if (!this.#isClosed) this.socket.write(bytes);
  }

  end(): void {
    this.socket.destroy();
  }

  /** Reads the next answer. @throws Error when the socket ends without one */
  async answer({ bodiless = false } = {}): Promise<RawAnswer> {
    for (;;) {
      const answer = this.#take(bodiless);
      if (answer !== undefined) return answer;
      if (this.#isClosed) throw new Error('the socket was closed without an answer');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #take(bodiless: boolean): RawAnswer | undefined {
    const end = this.#received.indexOf('\r\n\r\n');
    if (end < 0) return undefined;
    const [statusLine = '', ...lines] = this.#received.toString('latin1', 0, end).split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    const length = bodiless ? 0 : Number(headers['content-length'] ?? 0);
    if (this.#received.length < end + 4 + length) return undefined;
    const body = this.#received.toString('utf8', end + 4, end + 4 + length);
    this.#received = this.#received.subarray(end + 4 + length);
    return { status: Number(statusLine.split(' ')[1]), headers, body };
  }
}

/** Sends one request on a socket of its own and returns the answer. */
export async function exchange(port: number, request: RawRequest | Buffer): Promise<RawAnswer> {
  const connection = await RawConnection.open(port);
  connection.write(Buffer.isBuffer(request) ? request : requestBytes(request));
  const bodiless = !Buffer.isBuffer(request) && request.method === 'HEAD';
  try {
    return await connection.answer({ bodiless });
  } finally {
    connection.end();
  }
}
