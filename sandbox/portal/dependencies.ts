import type { Pool } from 'pg';
import type { ServiceClock } from '../clock.ts';
import type { Dispatcher } from '../delivery/dispatcher.ts';

/** What the portal's pages work with. */
export interface PortalDependencies {
  readonly pool: Pool;
  readonly clock: ServiceClock;
  readonly dispatcher: Pick<Dispatcher, 'reload' | 'wake'>;
  /** Where this server is reached; asked when it listens. */
  readonly address: () => string;
  readonly newEndpointId: () => string;
  readonly newSecret: () => string;
  readonly newMessageId: () => string;
  readonly newToken: () => string;
  /** Receives errors that a page does not explain. */
  readonly report: (error: Error) => void;
}

/** Routes below a record's id. */
export interface ById {
  Params: { id: string };
}
