import { connect, type Socket } from 'node:net';

const headEnd = Buffer.from('\r\n\r\n');

/**
 * One keep-alive connection that sends complete requests in turn and reads only the status of an answer. It
 * must be cheap, because it shares the machine with the measured process.
 */
export class LeanSocket {
  readonly #port: number;
  #socket: Socket | undefined;
  #seen: Buffer = Buffer.alloc(0);
  #status = 0;
  #closing = false;
  #bodyBytesMissing = 0;
  #answered: ((status: number) => void) | undefined;
  #failed: ((error: Error) => void) | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  /** Sends the bytes of a request. Calls back with the status of its answer, or with an error. */
  send(request: Buffer, answered: (status: number) => void, failed: (error: Error) => void): void {
    this.#answered = answered;
    this.#failed = failed;
    this.#socket ??= this.#open();
    this.#socket.write(request);
  }

  /** Connects before the first request, so that connecting is not timed. */
  async open(): Promise<void> {
    const socket = this.#open();
    this.#socket = socket;
    await new Promise<void>((done, failed) => socket.once('connect', done).once('error', failed));
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #open(): Socket {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    socket.on('data', (bytes) => this.#read(bytes));
    socket.on('error', (error) => this.#failed?.(error));
    socket.on('close', () => {
      if (this.#socket === socket && this.#answered !== undefined) {
        this.#failed?.(new Error('the connection was closed before the answer'));
      }
      if (this.#socket === socket) this.#socket = undefined;
    });
    return socket;
  }

  /** Keeps only the head. Only the end of the body matters. */
  #read(bytes: Buffer): void {
    if (this.#bodyBytesMissing > 0) {
      this.#readBody(bytes.length);
      return;
    }
    this.#seen = this.#seen.length === 0 ? bytes : Buffer.concat([this.#seen, bytes]);
    const end = this.#seen.indexOf(headEnd);
    if (end < 0) return;
    const head = this.#seen.toString('latin1', 0, end);
    this.#status = Number(head.slice(9, 12));
    this.#closing = /^connection: *close/im.test(head);
    this.#bodyBytesMissing =
      this.#status === 204 ? 0 : Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
    const bodyBytes = this.#seen.length - end - headEnd.length;
    this.#seen = Buffer.alloc(0);
    this.#readBody(bodyBytes);
  }

  #readBody(bytes: number): void {
    this.#bodyBytesMissing -= bytes;
    if (this.#bodyBytesMissing > 0) return;
    this.#bodyBytesMissing = 0;
    if (this.#closing) this.close();
    const answered = this.#answered;
    this.#answered = undefined;
    answered?.(this.#status);
  }
}
