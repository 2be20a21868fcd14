import { createLatencies } from './latencies.ts';
import { LeanSocket } from './socket.ts';

/** The result of a load. */
export interface LoadReport {
  readonly events: number;
  /** Seconds from the first byte sent to the last answer. */
  readonly seconds: number;
  /** When the first byte was sent, in Unix milliseconds. */
  readonly beganAt: number;
  /** Times from a request to its answer; see `mergedLatencies`. */
  readonly latencies: string;
}

/**
 * Sends every request over `inFlight` connections, one at a time on each.
 * @throws Error if an answer is not the expected one, because a rate of refusals is not a result
 */
export async function runLoad(
  port: number,
  requests: readonly Buffer[],
  inFlight: number,
  expected = 204,
): Promise<LoadReport> {
  const latencies = createLatencies();
  const sockets = Array.from({ length: Math.min(inFlight, requests.length) }, () => new LeanSocket(port));
  await Promise.all(sockets.map((socket) => socket.open()));
  const waiting = requests.values();
  const beganAt = Date.now();
  const began = performance.now();
  try {
    await Promise.all(sockets.map((socket) => sendAll(socket, waiting, expected, (ms) => latencies.add(ms))));
    const seconds = (performance.now() - began) / 1000;
    return { events: requests.length, seconds, beganAt, latencies: latencies.encode() };
  } finally {
    for (const socket of sockets) socket.close();
  }
}

function sendAll(
  socket: LeanSocket,
  waiting: Iterator<Buffer>,
  expected: number,
  onAnswer: (ms: number) => void,
): Promise<void> {
  return new Promise((done, failed) => {
    const sendNext = () => {
      const { value: request, done: over } = waiting.next();
      if (over) return done();
      const sentAt = performance.now();
      const answered = (status: number) => {
        onAnswer(performance.now() - sentAt);
        if (status === expected) sendNext();
        else failed(new Error(`a request was answered ${status} instead of ${expected}`));
      };
      socket.send(request, answered, failed);
    };
    sendNext();
  });
}
