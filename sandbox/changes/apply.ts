import type { ClientBase } from 'pg';
import { type OutboxSettings, type WrittenEvent, writeEvents } from '../events/outbox.ts';
import { type Micros, toText } from '../timestamps.ts';
import { createCompany } from './company.ts';
import {
  addAccount,
  assignSites,
  createConnection,
  rotateCredentials,
  touchConnection,
  updateConnection,
  validateConnection,
} from './connection.ts';
import {
  createDocument,
  deleteDocument,
  linkDocument,
  reprocessDocument,
  supersedeDocument,
  touchDocument,
} from './document.ts';
import { syncIntervals } from './intervals.ts';
import { readWorkingSet } from './read.ts';
import type { Change } from './schema.ts';
import { type ChangeContext, take, type WorkingSet } from './working-set.ts';
import { writeWorkingSet } from './write.ts';

export interface ApplySettings extends Omit<OutboxSettings, 'now'> {
  readonly now: Micros;
  readonly newId: () => string;
}

export interface AppliedChange {
  readonly type: string;
  /** The id of the record that was created or changed. */
  readonly id: string;
}

export interface Applied {
  readonly changes: readonly AppliedChange[];
  readonly events: readonly WrittenEvent[];
  /** The companies whose records were written. */
  readonly companyIds: ReadonlySet<string>;
}

/**
 * Applies changes in their order and writes their events in the caller's transaction (service.md 6). Interval
 * syncs are applied after all others, so that they find the meters that the batch adds.
 * @throws Problem if one change cannot be applied; then no change is applied
 */
export async function applyChanges(
  client: ClientBase,
  changes: readonly Change[],
  settings: ApplySettings,
): Promise<Applied> {
  const set = await readWorkingSet(client, changes);
  const context: ChangeContext = { set, now: settings.now, newId: settings.newId };
  const applied = changes.map((change) => ({ type: change.type, id: applyOne(context, change) }));
  await writeWorkingSet(client, set);
  const syncs = changes.filter((change) => change.type === 'syncIntervals');
  const synced = await syncIntervals(client, context, syncs);
  const events = await writeEvents(client, set.events, { ...settings, now: toText(settings.now) });
  return { changes: applied, events, companyIds: new Set([...writtenCompanies(set), ...synced]) };
}

function writtenCompanies(set: WorkingSet): string[] {
  return [
    ...set.newCompanies.map(({ company }) => company.id),
    ...[...set.changedConnections].map((id) => take(set.connections, 'connection', id).facts.company.id),
    ...[...set.changedDocuments].map((id) => take(set.documents, 'document', id).company.id),
  ];
}

function applyOne(context: ChangeContext, change: Change): string {
  switch (change.type) {
    case 'createCompany':
      return createCompany(context, change);
    case 'createConnection':
      return createConnection(context, change);
    case 'addAccount':
      return addAccount(context, change);
    case 'createDocument':
      return createDocument(context, change);
    case 'syncIntervals':
      return change.meterId;
    case 'noop':
      return existing(context, change.resource, change.id);
    case 'touch':
      if (change.resource === 'connection') touchConnection(context, change.id);
      else touchDocument(context, change.id);
      return change.id;
    case 'reprocessDocument':
      reprocessDocument(context, change);
      return change.documentId;
    case 'supersedeDocument':
      return supersedeDocument(context, change);
    case 'linkDocument':
      linkDocument(context, change);
      return change.documentId;
    case 'deleteDocument':
      deleteDocument(context, change);
      return change.documentId;
    default:
      return applyToConnection(context, change);
  }
}

function applyToConnection(
  context: ChangeContext,
  change: Extract<
    Change,
    { type: 'updateConnection' | 'validateConnection' | 'assignSites' | 'rotateCredentials' }
  >,
): string {
  if (change.type === 'updateConnection') updateConnection(context, change);
  else if (change.type === 'validateConnection') validateConnection(context, change);
  else if (change.type === 'assignSites') assignSites(context, change);
  else rotateCredentials(context, change);
  return change.connectionId;
}

function existing({ set }: ChangeContext, resource: 'connection' | 'document', id: string): string {
  return resource === 'connection'
    ? take(set.connections, resource, id).id
    : take(set.documents, resource, id).id;
}
