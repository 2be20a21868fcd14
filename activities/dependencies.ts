import type { CheckName } from '../contract/check-names.ts';
import type { DeletesCap } from '../contract/deletes-cap.ts';
import type { Log } from '../contract/log.ts';
import { canonicalId } from '../contract/values.ts';
import type { Database, Warehouse } from '../db/connection/connect.ts';
import type { FieldCatalogue } from '../db/fields/field-catalogue.ts';
import type { PageWritten } from '../db/records/write-page.ts';
import type { ListedResource } from '../db/resources.ts';
import type { Health } from '../health/measured.ts';
import type { ServiceClient } from '../service/client.ts';
import type { Notifier } from './notifier.ts';

/** Rows of a resource that an activity wrote. */
export interface RowsWritten extends Pick<PageWritten, 'inserted' | 'changed' | 'rejected'> {
  readonly resource: ListedResource | 'intervals';
  readonly by: 'event' | 'catch_up' | 'backfill' | 'reconcile';
}

/** Everything that activities use; they open nothing themselves. */
export interface ActivityDependencies {
  readonly warehouse: Warehouse;
  /** The warehouse with connections only for catch-ups: few, so that recording events never waits for one. */
  readonly catchingUp: Warehouse;
  /** The warehouse with connections only for the checks. */
  readonly checks: Pick<Warehouse, 'db'>;
  /** The warehouse with connections only for the watch, so that the watch never waits for one. */
  readonly watching: Pick<Warehouse, 'db'>;
  readonly service: ServiceClient;
  /** Notes the fields of every record that is written. */
  readonly catalogue: FieldCatalogue;
  /** Last part of SERVICE_URL, for example `v2.2`: stored with each record. */
  readonly apiVersion: string;
  /** Companies to sync in addition to those that the service lists. */
  readonly companies: readonly string[];
  /** A run that finds more deletions than this quarantines them. */
  readonly deletesCap: DeletesCap;
  /** Days after which bodies of settled events and superseded parts of runs are dropped; 0 keeps them. */
  readonly retentionDays: number;
  readonly checksOff: readonly CheckName[];
  /** Starts the sweep, unless it runs. */
  readonly startSweep: () => Promise<void>;
  /** Starts the first backfill of a company, unless it is running. */
  readonly backfillFirst: (companyId: string) => Promise<void>;
  /** Returns how the last workflow of this id ended, in a word; undefined while it runs. */
  readonly howEnded: (workflowId: string) => Promise<string | undefined>;
  /** Reads the deployment's health; never rejects. */
  readonly readHealth: (db: Database) => Promise<Health>;
  readonly notifier: Notifier;
  /** Unix time in milliseconds. */
  readonly wallClock: () => number;
  /** Is called with the rows that each write of a page changed. */
  readonly onWritten?: ((rows: RowsWritten) => void) | undefined;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>;
}

/** Whether the settings name a company. */
export const isConfigured = (
  { companies }: Pick<ActivityDependencies, 'companies'>,
  companyId: string,
): boolean => companies.some((id) => canonicalId(id) === companyId);
