import { isDeepStrictEqual } from 'node:util';
import { connectionChangePayload, connectionPayload } from '../events.ts';
import { utilities } from '../generate/catalogue.ts';
import { relation } from '../generate/company.ts';
import { Problem } from '../problem.ts';
import type { ConnectionRow } from '../records/company.ts';
import {
  type Account,
  type ConnectionFacts,
  type MeterInPlace,
  meterFacts,
  type SiteRelation,
} from '../records/company.ts';
import { fromText, laterThan, toText } from '../time.ts';
import type { ChangeOf } from './schema.ts';
import { type ChangeContext, emit, take, unused } from './working-set.ts';

/** Creates a connection and emits `connection.created.v2` (service.md 6.2). Returns its id. */
export function createConnection(context: ChangeContext, change: ChangeOf<'createConnection'>): string {
  const { set, now, newId } = context;
  const company = take(set.companies, 'company', change.companyId);
  const sites = (change.siteIds ?? firstSite(context, company.id)).map((id) => take(set.sites, 'site', id));
  const utility = utilities.find(({ name }) => name === change.datasource) ?? {
    name: change.datasource ?? 'Harbor Light & Power',
    url: change.url ?? 'https://www.harborlightpower.example',
    types: ['ELECTRICITY'],
  };
  const id = unused(set.connections, 'connection', change.id ?? newId());
  const stamp = toText(now);
  const facts: ConnectionFacts = {
    company,
    datasource: { name: utility.name, url: utility.url },
    externalId: change.externalId ?? `K-${id.slice(0, 8)}`,
    sitesRelations: sites.map(({ id: siteId, name }) => ({
      accountIds: [],
      datasourceTypes: [...utility.types],
      site: { id: siteId, name },
    })),
    status: change.status ?? 'PENDING',
    url: change.url ?? utility.url,
    statusLastUpdateTime: stamp,
    statusFirstSeenTime: stamp,
    statusErrorDetail: '',
    accounts: [],
    country: 'US',
    initialSites: sites.map((site) => site.id),
    initialDatasourceTypes: [...utility.types],
    username: `energy@${id.slice(0, 8)}.example`,
    workflowOwnerEmail: `owner@${id.slice(0, 8)}.example`,
    dataCollectionStartDate: null,
    multiplyByOccupancy: false,
    isActive: true,
  };
  const connection = { id, created: stamp, updated: stamp, facts, secrets: { password: newId() } };
  set.connections.set(id, connection);
  set.changedConnections.add(id);
  emit(set, company.id, 'connection.created.v2', connectionPayload(connection));
  return id;
}

function firstSite({ set }: ChangeContext, companyId: string): string[] {
  const site = set.sites.values().find((candidate) => candidate.companyId === companyId);
  return site === undefined ? [] : [site.id];
}

export function updateConnection(context: ChangeContext, change: ChangeOf<'updateConnection'>): void {
  const { type: _, connectionId, status, datasource, ...fields } = change;
  const connection = take(context.set.connections, 'connection', connectionId);
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  alter(context, connection, {
    ...connection.facts,
    ...given,
    ...(datasource === undefined ? {} : { datasource: { ...connection.facts.datasource, name: datasource } }),
    ...(status === undefined ? {} : withStatus(context, status)),
  });
}

/** Sets the status that the provider's answer to a check of the credentials leads to (service.md 3.3). */
export function validateConnection(context: ChangeContext, change: ChangeOf<'validateConnection'>): void {
  const connection = take(context.set.connections, 'connection', change.connectionId);
  if (connection.facts.status === change.status) return;
  const detail = { statusErrorDetail: change.statusErrorDetail ?? '' };
  alter(context, connection, { ...connection.facts, ...withStatus(context, change.status), ...detail });
}

const withStatus = ({ now }: ChangeContext, status: string) => ({
  status,
  statusLastUpdateTime: toText(now),
});

export function assignSites(context: ChangeContext, change: ChangeOf<'assignSites'>): void {
  const { set } = context;
  const connection = take(set.connections, 'connection', change.connectionId);
  const sitesRelations = change.siteIds.map((siteId): SiteRelation => {
    const { id, name, companyId } = take(set.sites, 'site', siteId);
    if (companyId !== connection.facts.company.id) throw new Problem(400, `site ${id} is of another company`);
    const known = connection.facts.sitesRelations.find((one) => one.site.id === id);
    return known ?? relation({ id, name }, metersOf(context, connection.id));
  });
  alter(context, connection, { ...connection.facts, sitesRelations });
}

const metersOf = ({ set }: ChangeContext, connectionId: string): MeterInPlace[] =>
  [...set.meters.values()].filter((meter) => meter.connectionId === connectionId);

/** Adds an account with one meter, as if it was found at the provider. Returns the meter's id. */
export function addAccount(context: ChangeContext, change: ChangeOf<'addAccount'>): string {
  const { set, now, newId } = context;
  const connection = take(set.connections, 'connection', change.connectionId);
  const site = take(set.sites, 'site', change.siteId);
  const id = change.id ?? newId();
  const meterId = unused(set.meters, 'meter', change.meterId ?? newId());
  const meter = newMeter(connection, site, meterId, id, change.datasourceType);
  set.meters.set(meter.id, meter);
  set.newMeters.push(meter);
  const stamp = toText(now);
  const account: Account = {
    id,
    meters: [meter.id],
    accountNumber: meter.accountNumber,
    isTracked: true,
    trackingStatus: 'ENABLED',
    isDuplicated: 'false',
    dataCollectionStartDate: null,
    isCollectingInvoiceData: true,
    isCollectingSmartMeterData: true,
    datasourceTypes: [change.datasourceType],
    lastServiceDate: null,
    status: 'ONBOARDED',
    statusLastUpdateTime: stamp,
    statusFirstSeenTime: stamp,
    statusErrorDetail: '',
  };
  const { facts } = connection;
  const other = facts.sitesRelations.filter((one) => one.site.id !== site.id);
  const known = facts.sitesRelations.find((one) => one.site.id === site.id);
  const served: SiteRelation = {
    accountIds: [...(known?.accountIds ?? []), meter.accountNumber],
    datasourceTypes: [...new Set([...(known?.datasourceTypes ?? []), change.datasourceType])],
    site: { id: site.id, name: site.name },
  };
  alter(context, connection, {
    ...facts,
    accounts: [...facts.accounts, account],
    sitesRelations: [...other, served],
  });
  return meter.id;
}

function newMeter(
  { id: connectionId, facts }: ConnectionRow,
  site: { id: string; name: string },
  id: string,
  accountId: string,
  datasourceType: string,
): MeterInPlace {
  const accountNumber = (Number.parseInt(accountId.slice(0, 8), 16) + 1_000_000_000).toString();
  return {
    id,
    number: 0,
    companyId: facts.company.id,
    connectionId,
    accountId,
    accountNumber,
    site: { id: site.id, name: site.name },
    utility: facts.datasource,
    country: facts.country,
    facts: meterFacts(
      { meter: Number.parseInt(id.slice(0, 7), 16).toString(), account: accountNumber },
      { site: site.id, account: accountId, address: site.name, datasourceType, timeOfUse: null },
    ),
  };
}

/** Changes credentials. Events name the changed fields, but show no values (service.md 2.4). */
export function rotateCredentials(context: ChangeContext, change: ChangeOf<'rotateCredentials'>): void {
  const connection = take(context.set.connections, 'connection', change.connectionId);
  const { username = connection.facts.username, password, securityQuestions } = change;
  const secrets = {
    ...connection.secrets,
    ...(password === undefined ? {} : { password }),
    ...(securityQuestions === undefined ? {} : { securityQuestions }),
  };
  alter(context, connection, { ...connection.facts, username }, secrets);
}

/** Changes only `updated`, so there is no event (service.md 6.1.3). */
export function touchConnection({ set, now }: ChangeContext, id: string): void {
  const connection = take(set.connections, 'connection', id);
  const updated = toText(laterThan(fromText(connection.updated), now));
  set.connections.set(id, { ...connection, updated });
  set.changedConnections.add(id);
}

/** Fields whose values no event may show. */
const secretFields = ['username', 'password', 'securityQuestions'];
/** Times that accompany a change, but are not a change themselves (service.md 6.1.3). */
const timestampFields = ['statusLastUpdateTime', 'statusFirstSeenTime'];

/** Stores a connection's new state, if it differs, and emits the events of service.md 6.3. */
function alter(
  { set, now }: ChangeContext,
  before: ConnectionRow,
  facts: ConnectionFacts,
  secrets: ConnectionRow['secrets'] = before.secrets,
): void {
  const changed = [
    ...changedKeys(before.facts, facts).filter((key) => !timestampFields.includes(key)),
    ...changedKeys(before.secrets, secrets),
  ];
  if (changed.length === 0) return;
  const updated = toText(laterThan(fromText(before.updated), now));
  const after = { ...before, updated, facts, secrets };
  set.connections.set(before.id, after);
  set.changedConnections.add(before.id);
  const shown = changed.filter((key) => !secretFields.includes(key));
  const old = Object.fromEntries(shown.map((key) => [key, before.facts[key as keyof ConnectionFacts]]));
  const protectedChanges = changed.filter((key) => key === 'status' || secretFields.includes(key));
  const payload = (type: 'connection.updated.v2' | 'connection.validated.v2') =>
    emit(set, facts.company.id, type, connectionChangePayload(type, after, protectedChanges, old));
  if (changed.includes('status')) payload('connection.validated.v2');
  payload('connection.updated.v2');
}

function changedKeys<T extends object>(before: T, after: T): string[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].filter((key) => !isDeepStrictEqual(before[key as keyof T], after[key as keyof T]));
}
