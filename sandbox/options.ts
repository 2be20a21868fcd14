import type { RealTime } from './clock.ts';

export interface SandboxLogEntry {
  readonly level: 'info' | 'error';
  readonly message: string;
  readonly error?: Error;
}

export interface SandboxOptions {
  /** The sandbox's own database: empty, or left by an earlier start. */
  readonly databaseUrl: string;
  readonly host?: string;
  /** 0 takes a free port. */
  readonly port?: number;
  /** Determines every generated id, value and time. Keys are random. */
  readonly seed?: number;
  readonly organizations?: number;
  readonly companies?: number;
  /** Documents of each company. */
  readonly documents?: number;
  /** Days of interval data before `until`. */
  readonly intervalDays?: number;
  /** Last day of the generated history: `YYYY-MM-DD` or `today`. */
  readonly until?: string;
  /** Share of generated bills that are superseded, sent twice, overlapping, …: 0 to 1. */
  readonly irregular?: number;
  /** One more key of the first organization. */
  readonly apiKey?: string;
  /** Deliveries in flight for each endpoint. */
  readonly deliveryConcurrency?: number;
  /** Networks, such as `172.16.0.0/12`, to which messages may go besides this machine and public ones. */
  readonly deliverTo?: readonly string[];
  /** service.md 5.3: the vendor's prefix of the signature headers. */
  readonly headerPrefix?: string;
  /** Real time in microseconds. */
  readonly now?: RealTime;
  /** How many times faster than real time the service's clock runs. */
  readonly timeScale?: number;
  /** Spread of retry delays: 0.2 is ±20 %. */
  readonly retryJitter?: number;
  /** Number of random changes per minute, from the start on. */
  readonly live?: number;
  readonly log?: (entry: SandboxLogEntry) => void;
}
