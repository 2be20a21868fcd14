import { createRandom, type Random } from './random.ts';
import type { Connection, Document, World } from './world.ts';

/** How often each change is drawn, as in the sandbox: documents, then connections, then intervals. */
const weights = {
  createDocument: 24,
  reprocessDocument: 22,
  deleteDocument: 5,
  syncIntervals: 15,
  validateConnection: 12,
  changeConnection: 22,
} as const;
export type Change = keyof typeof weights;
const everyChange = Object.keys(weights) as readonly Change[];

const statuses = ['CONNECTED', 'WEBSITE_DOWN', 'OTHER_ERROR', 'MFA_TOKEN_EXPIRED', 'PASSWORD_INCORRECT'];

/** Draws event bodies, of any change or of the given ones. */
interface Events {
  take(count: number, changes?: readonly Change[]): string[];
}

/** Draws changes of a world and makes the bodies of their events (service.md 2.4 to 2.6), by time. */
export function createEvents(world: World, seed: number): Events {
  const random = createRandom(seed);
  // Microseconds since a time after the world's records. Each event is newer than the previous one.
  let micros = 0;
  const now = (): string => {
    micros += random.int(1, 900);
    const at = new Date(Date.UTC(2026, 5, 1) + Math.floor(micros / 1000)).toISOString().slice(0, -1);
    return `${at}${String(micros % 1000).padStart(3, '0')}`;
  };
  const waiting: object[] = [];
  return {
    take: (count, changes = everyChange) =>
      Array.from({ length: count }, () => {
        while (waiting.length === 0) waiting.push(...draw(drawChange(random, changes), world, random, now()));
        return JSON.stringify(waiting.shift());
      }),
  };
}

function draw(change: Change, world: World, random: Random, at: string): object[] {
  switch (change) {
    case 'createDocument':
      return [createDocument(world, random, at)];
    case 'reprocessDocument': {
      const document = random.pick(world.documents);
      const old = { updated: document.updated };
      document.updated = at;
      return [documentPayload('document.updated.v2', document, { old })];
    }
    case 'deleteDocument':
      return [deleteDocument(world, random, at)];
    case 'syncIntervals':
      return [intervalsPayload(world, random)];
    case 'validateConnection': {
      const connection = random.pick(world.connections);
      const old = { status: connection.status };
      connection.status = random.pick(statuses.filter((status) => status !== connection.status));
      return ['connection.validated.v2', 'connection.updated.v2'].map((eventType) =>
        connectionPayload(connection, at, { eventType, protectedChanges: ['status'], old }),
      );
    }
    case 'changeConnection': {
      const changed = { eventType: 'connection.updated.v2', protectedChanges: ['password'], old: {} };
      return [connectionPayload(random.pick(world.connections), at, changed)];
    }
  }
}

function drawChange(random: Random, changes: readonly Change[]): Change {
  const total = changes.reduce((sum, change) => sum + weights[change], 0);
  let left = random.int(1, total);
  for (const change of changes) {
    left -= weights[change];
    if (left <= 0) return change;
  }
  return 'createDocument';
}

function createDocument(world: World, random: Random, at: string): object {
  const company = random.pick(world.companies);
  const document = { id: random.uuid(), company, site: random.pick(company.sites), created: at, updated: at };
  world.documents.push(document);
  return documentPayload('document.created.v2', document);
}

function deleteDocument(world: World, random: Random, at: string): object {
  const place = random.int(0, world.documents.length - 1);
  const document = world.documents[place] as Document;
  const last = world.documents.pop() as Document;
  if (last !== document) world.documents[place] = last;
  document.updated = at;
  return documentPayload('document.deleted.v2', document);
}

const companyObject = ({ externalId, id, name, publicId }: Document['company']) => ({
  externalId,
  id,
  name,
  publicId,
});

function documentPayload(eventType: string, document: Document, more: object = {}): object {
  const { id, company, site, created, updated } = document;
  return { eventType, id, company: companyObject(company), site, created, updated, ...more };
}

function connectionPayload(connection: Connection, at: string, more: object): object {
  const { id, company, created, accounts, status } = connection;
  const number = Number.parseInt(id.slice(0, 4), 16);
  return {
    company: companyObject(company),
    created,
    datasource: { name: `Utility ${number % 40}` },
    externalId: `K-${number}`,
    id,
    sitesRelations: company.sites.slice(0, 2).map((site, index) => ({
      accountIds: [accounts[index]],
      datasourceTypes: ['ELECTRICITY'],
      site,
    })),
    status,
    updated: at,
    url: `https://www.utility-${number % 40}.example`,
    ...more,
  };
}

function intervalsPayload(world: World, random: Random): object {
  const meter = random.pick(world.meters);
  const day = random.int(1, 27);
  const range = { start: `2026-05-${String(day).padStart(2, '0')}T00:00:00.000000` };
  return {
    meterId: meter.id,
    ...range,
    end: `2026-05-${String(day + 1).padStart(2, '0')}T00:00:00.000000`,
    intervalCount: 96,
    createdCount: 96,
    updatedCount: 0,
    companyExternalId: meter.company.externalId,
    accountNumber: null,
    granularitySeconds: [900],
    usageUnits: ['kWh'],
    qualities: ['ACTUAL'],
  };
}
