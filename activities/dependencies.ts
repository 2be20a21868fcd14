import type { Logger } from 'pino';
import type { CatchUpKind, CheckName } from '../contract/names.ts';
import type { Warehouse } from '../db/connect.ts';
import type { DeletesCap } from '../db/deletes/absent.ts';
import type { FieldCatalogue } from '../db/fields/field-catalogue.ts';
import type { ServiceClient } from '../service/client.ts';

/** What activities are given; they open nothing themselves. */
export interface ActivityDependencies {
  readonly warehouse: Warehouse;
  /** The warehouse over connections that nothing but catching up uses: few, so that events are recorded beside it. */
  readonly catchingUp: Warehouse;
  /** The warehouse over connections that nothing but the checks of the data use. */
  readonly checks: Pick<Warehouse, 'db'>;
  readonly service: ServiceClient;
  /** Told of every record that is written. */
  readonly catalogue: FieldCatalogue;
  /** Last part of SERVICE_URL, for example `v2.2`: stored beside what it brought. */
  readonly apiVersion: string;
  /** Companies to sync beside those that the service lists. */
  readonly companies: readonly string[];
  /** More deletions than this are not inferred from absence alone. */
  readonly deletesCap: DeletesCap;
  /** Days after which payloads of settled events are dropped; 0 keeps them. */
  readonly journalPayloadDays: number;
  /** Days before today of which a reconcile reads what was updated. */
  readonly reconcileDays: number;
  /** Checks of the data that are left out. */
  readonly checksOff: readonly CheckName[];
  /** Starts the catch-up of a kind, or tells the running one that there is more to do. */
  readonly wake: (kind: CatchUpKind) => Promise<void>;
  /** Starts the first backfill of a company, unless it is running. */
  readonly backfillFirst: (companyId: string) => Promise<void>;
  /** How the last workflow of this id ended, in a word; undefined while it runs. */
  readonly howEnded: (workflowId: string) => Promise<string | undefined>;
  /** Milliseconds of a clock that only goes forward. */
  readonly now: () => number;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
}
