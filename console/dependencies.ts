import type { Logger } from 'pino';
import type { Settings } from '../app/settings/settings.ts';
import type { TemporalPlace } from '../app/temporal/place.ts';
import type { Database } from '../db/connection/connect.ts';
import type { Away, Health } from '../health/measured.ts';
import type { Identify } from './identify.ts';
import type { ConsoleLink } from './link.ts';

/** What the console's pages need. */
export interface ConsoleDependencies {
  /** Read-only sessions, which all pages use. */
  readonly db: Database;
  /** Sessions for actions and for the log of operations. */
  readonly writer: Database;
  readonly settings: Settings;
  readonly temporal: TemporalPlace;
  /** Address of Temporal's web page; undefined if it is not known. */
  readonly temporalUi: string | undefined;
  /** Never rejects, and asks the servers at most every few seconds. */
  readonly readHealth: () => Promise<Health>;
  /** Asks whether Postgres is away; undefined if it is there. Never rejects, and waits only briefly. */
  readonly readAbsence: () => Promise<Away | undefined>;
  readonly identify: Identify;
  /** The link that opens the console; undefined behind a proxy, which signs users in. */
  readonly link: ConsoleLink | undefined;
  readonly log: Logger;
  /** Unix time in milliseconds. */
  readonly now: () => number;
}
