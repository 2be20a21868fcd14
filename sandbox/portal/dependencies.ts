import type { Pool } from 'pg';
import type { ServiceClock } from '../clock.ts';
import type { Dispatcher } from '../delivery/dispatcher.ts';

/** What the portal's pages need. */
export interface PortalDependencies {
  readonly pool: Pool;
  readonly clock: ServiceClock;
  readonly dispatcher: Pick<Dispatcher, 'reload' | 'wake'>;
  /** The address of this server. Called only while the server listens. */
  readonly address: () => string;
  readonly newEndpointId: () => string;
  readonly newSecret: () => string;
  readonly newMessageId: () => string;
  readonly newToken: () => string;
  /** Receives errors that a page does not explain. */
  readonly report: (error: Error) => void;
}

/** Parameters of routes that have the id of a record in their path. */
export interface ById {
  Params: { id: string };
}
