import type { Dispatcher } from 'undici';

/** A request to any server but the service, whose client is in service/. */
interface Request {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** The way through proxies, or a pool of connections; the caller closes it. */
  readonly dispatcher?: Dispatcher | undefined;
  /** Time for all of it, from connecting to the last byte. */
  readonly withinMs: number;
  /** How much of the answer is read. */
  readonly bytesMax?: number;
}

interface Answer {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData['headers'];
  /** The text of the answer, up to `bytesMax`. */
  readonly text: string;
  /** Whether the text is complete: it was not cut, and its sender did not break off. */
  readonly isWhole: boolean;
}

/** Enough for an answer that is only quoted, and for a small document. */
const quotedBytesMax = 16 * 1024;

/**
 * Sends a request and reads the start of its answer, of any status, without following redirects. Nobody can
 * fill our memory or hold us up with an endless answer. Once the status is known, the request does not fail.
 * @throws Error of undici or the network; its name is TimeoutError if no status came in time
 */
export async function ask(url: string | URL, request: Request): Promise<Answer> {
  const { status, headers, body } = await open(url, request);
  return { status, headers, ...(await readStart(body, request.bytesMax ?? quotedBytesMax)) };
}

/** Sends a request and returns its answer as a stream, for what is too large for memory. */
export async function open(
  url: string | URL,
  { method = 'GET', headers = {}, body, dispatcher, withinMs }: Omit<Request, 'bytesMax'>,
): Promise<{ status: number; headers: Answer['headers']; body: Dispatcher.ResponseData['body'] }> {
  // Loaded on demand: most commands send no such request.
  const { request } = await import('undici');
  const answer = await request(url, {
    ...(dispatcher && { dispatcher }),
    method,
    headers,
    body: body ?? null,
    signal: AbortSignal.timeout(withinMs),
    // One time-out is enough.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return { status: answer.statusCode, headers: answer.headers, body: answer.body };
}

async function readStart(
  body: AsyncIterable<Buffer>,
  bytesMax: number,
): Promise<Pick<Answer, 'text' | 'isWhole'>> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  let isWhole = true;
  try {
    for await (const piece of body) {
      pieces.push(piece);
      bytes += piece.length;
      // Leaving the loop ends the connection.
      if (bytes > bytesMax) break;
    }
  } catch {
    isWhole = false;
  }
  const text = Buffer.concat(pieces).subarray(0, bytesMax).toString();
  return { text, isWhole: isWhole && bytes <= bytesMax };
}
