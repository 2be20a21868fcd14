import type { CompanyRow, ConnectionRow, SiteRow } from '../records/company.ts';
import {
  type Account,
  type CompanyObject,
  type ConnectionFacts,
  failingStatuses,
  type MeterInPlace,
  meterFacts,
  type SiteObject,
  type SiteRelation,
} from '../records/company.ts';
import type { StoredDocument } from '../records/rows.ts';
import { addDays, fromText, secondsToMicros, toText } from '../time.ts';
import { type BillingPlan, generateBills, makeIrregular } from './bills.ts';
import {
  type City,
  cities,
  companyFirsts,
  companyForms,
  companySeconds,
  siteKinds,
  streets,
  type Utility,
  utilities,
} from './catalogue.ts';
import { createRandom, type Random } from './random.ts';

export interface CompanyPlan extends BillingPlan {
  readonly seed: number;
  readonly organizationId: string;
  /** Position of the company in the whole data set, from 1. */
  readonly ordinal: number;
  readonly firstMeterNumber: number;
  /** Share of bills that are irregular. If it is more than 0, some accounts also have net metering. */
  readonly irregular: number;
}

/** Everything that belongs to one company, except intervals, which are streamed. */
export interface CompanyData {
  readonly company: CompanyRow;
  readonly sites: readonly SiteRow[];
  readonly connections: readonly ConnectionRow[];
  readonly meters: readonly MeterInPlace[];
  readonly documents: readonly StoredDocument[];
}

interface Place {
  readonly site: SiteRow;
  readonly city: City;
}

/** How many months the bills of an account reach back. For more documents there are more accounts. */
const monthsMax = 24;

/** Generates everything about one company. The random choices depend only on the seed and the ordinal. */
export function generateCompany(plan: CompanyPlan): CompanyData {
  const random = createRandom('company', plan.seed, plan.ordinal);
  const company = companyObject(random, plan.ordinal);
  const accountCount = Math.max(2, Math.ceil(plan.documents / monthsMax));
  const places = Array.from({ length: Math.max(1, Math.ceil(accountCount / 3)) }, (_, index) =>
    place(random, company.id, index),
  );
  const connections: ConnectionRow[] = [];
  const meters: MeterInPlace[] = [];
  for (let account = 0; account < accountCount; ) {
    const count = Math.min(random.int(1, 4), accountCount - account);
    const served = places.slice(Math.floor(account / 3), Math.floor((account + count - 1) / 3) + 1);
    const connection = connect(random, plan, company, served, count, plan.firstMeterNumber + meters.length);
    connections.push(connection.row);
    meters.push(...connection.meters);
    account += count;
  }
  if (random.chance(0.3)) connections.push(connect(random, plan, company, places.slice(0, 1), 0, 0).row);
  const facts = {
    users: [`energy@${company.externalId.toLowerCase()}.example`],
    dataCollectionStartDate: `${Number(plan.until.slice(0, 4)) - 1}-01-01`,
    isDemandEnabled: random.chance(0.5),
    isImpliedMeteringEnabled: false,
    impliedMeteringFraction: '0.0000',
    isBasicIdentifierMappingEnabled: true,
    isLowAccuracyModeEnabled: false,
  };
  const documents = makeIrregular(
    createRandom('irregular', plan.seed, plan.ordinal),
    plan.irregular,
    generateBills(random, plan, company, meters),
  );
  return {
    company: {
      organizationId: plan.organizationId,
      company,
      facts,
    },
    sites: places.map(({ site }) => site),
    connections,
    meters,
    documents: plan.untilToday ? documents.map((document) => madeBefore(document, plan.until)) : documents,
  };
}

/** Returns the document with times before a day, moved back by as many whole days as necessary. */
function madeBefore(document: StoredDocument, day: string): StoredDocument {
  const begins = fromText(day);
  const oneDay = secondsToMicros(86_400);
  const sooner = (at: bigint, limit: bigint): bigint =>
    at < limit ? at : at - ((at - limit) / oneDay + 1n) * oneDay;
  return {
    ...document,
    created: toText(sooner(fromText(document.created), begins - oneDay)),
    updated: toText(sooner(fromText(document.updated), begins)),
  };
}

function companyObject(random: Random, ordinal: number): CompanyObject {
  const words = [random.pick(companyFirsts), random.pick(companySeconds), random.pick(companyForms)];
  return {
    externalId: `C-${ordinal.toString().padStart(5, '0')}`,
    id: random.uuid(),
    name: words.join(' '),
    publicId: random.uuid(),
  };
}

function place(random: Random, companyId: string, index: number): Place {
  const city = random.pick(cities);
  const name = `${city.name} ${random.pick(siteKinds)} ${index + 1}`;
  const site = {
    id: random.uuid(),
    companyId,
    name,
    timeZone: city.timeZone,
    facts: {
      dataCollectionStopDate: null,
      externalId: `S-${random.digits(6)}`,
      address: `${random.int(1, 999)} ${random.pick(streets)}, ${city.name}, ${city.state} ${city.postcode}`,
      path: [city.country, city.state, city.name],
      occupancyPercent: random.chance(0.5) ? '100.0000' : null,
    },
  };
  return { site, city };
}

interface Connected {
  readonly row: ConnectionRow;
  readonly meters: readonly MeterInPlace[];
}

/** Generates a connection to a utility with accounts, each at one site with a meter for each flow. */
function connect(
  random: Random,
  plan: CompanyPlan,
  company: CompanyObject,
  places: readonly Place[],
  accountCount: number,
  firstMeterNumber: number,
): Connected {
  const id = random.uuid();
  const utility = random.pick(utilities);
  const created = fromText(addDays(plan.until, -random.int(30, 700))) + BigInt(random.word());
  const updated = created + secondsToMicros(random.int(60, 86_400)) + BigInt(random.int(1, 999_999));
  const stamp = toText(updated);
  const accounts: Account[] = [];
  const meters: MeterInPlace[] = [];
  for (let index = 0; index < accountCount; index++) {
    const at = places[index % places.length];
    if (at === undefined) break;
    const accountId = random.uuid();
    const accountNumber = random.digits(10);
    const types = random.chance(0.3) ? utility.types.slice(0, 2) : [random.pick(utility.types)];
    const netMetered = plan.irregular > 0 && types.includes('ELECTRICITY') && random.chance(0.3);
    const flows = [
      ...types.map((type) => ({
        type,
        netMeteringType: netMetered && type === 'ELECTRICITY' ? 'IMPORT' : null,
      })),
      ...(netMetered ? [{ type: 'ELECTRICITY', netMeteringType: 'EXPORT' }] : []),
    ];
    const own = flows.map(
      ({ type, netMeteringType }, offset): MeterInPlace => ({
        id: random.uuid(),
        number: firstMeterNumber + meters.length + offset,
        companyId: company.id,
        connectionId: id,
        accountId,
        accountNumber,
        site: siteObject(at),
        utility: { name: utility.name, url: utility.url },
        country: at.city.country,
        facts: {
          ...meterFacts(
            { meter: random.digits(8), account: accountNumber },
            {
              site: at.site.id,
              account: accountId,
              address: at.site.facts.address,
              datasourceType: type,
              timeOfUse: type === 'ELECTRICITY' && random.chance(0.3) ? 'PEAK' : null,
            },
          ),
          netMeteringType,
        },
      }),
    );
    meters.push(...own);
    accounts.push(account(random, accountId, accountNumber, own, stamp));
  }
  const status = accountCount === 0 ? 'PENDING' : statusOf(plan.ordinal);
  const facts = connectionFacts(random, company, utility, places, accounts, meters, status, stamp);
  return {
    row: { id, created: toText(created), updated: stamp, facts, secrets: { password: random.digits(12) } },
    meters,
  };
}

/** Every fourth company has a failing connection, with each status in turn: forty companies show all. */
const statusOf = (ordinal: number): string =>
  (ordinal % 4 === 0 ? failingStatuses[(ordinal / 4) % failingStatuses.length] : undefined) ?? 'CONNECTED';

function connectionFacts(
  random: Random,
  company: CompanyObject,
  utility: Utility,
  places: readonly Place[],
  accounts: readonly Account[],
  meters: readonly MeterInPlace[],
  status: string,
  stamp: string,
): ConnectionFacts {
  const amiss = failingStatuses.includes(status);
  return {
    company,
    datasource: { name: utility.name, url: utility.url },
    externalId: `K-${random.digits(8)}`,
    sitesRelations: places.map((at) => relation(siteObject(at), meters)),
    status,
    url: utility.url,
    statusLastUpdateTime: stamp,
    statusFirstSeenTime: stamp,
    statusErrorDetail: amiss ? `The provider answered: ${status.toLowerCase().replaceAll('_', ' ')}` : '',
    accounts,
    country: places[0]?.city.country ?? 'US',
    initialSites: places.map(({ site }) => site.id),
    initialDatasourceTypes: [...utility.types],
    username: `energy${random.digits(4)}@${company.externalId.toLowerCase()}.example`,
    workflowOwnerEmail: `owner@${company.externalId.toLowerCase()}.example`,
    dataCollectionStartDate: null,
    multiplyByOccupancy: false,
    isActive: true,
  };
}

/** Describes a site of a connection (service.md 2.4): its accounts and commodities there. */
export function relation(site: SiteObject, meters: readonly MeterInPlace[]): SiteRelation {
  const here = meters.filter((meter) => meter.site.id === site.id);
  return {
    accountIds: [...new Set(here.map((meter) => meter.accountNumber))],
    datasourceTypes: [...new Set(here.map((meter) => meter.facts.datasourceType))],
    site,
  };
}

const siteObject = ({ site }: Place): SiteObject => ({ id: site.id, name: site.name });

function account(
  random: Random,
  id: string,
  accountNumber: string,
  meters: readonly MeterInPlace[],
  stamp: string,
): Account {
  return {
    id,
    meters: meters.map((meter) => meter.id),
    accountNumber,
    isTracked: true,
    trackingStatus: random.pick(['ENABLED', 'UNSET']),
    isDuplicated: 'false',
    dataCollectionStartDate: null,
    isCollectingInvoiceData: true,
    isCollectingSmartMeterData: random.chance(0.5),
    datasourceTypes: meters.map((meter) => meter.facts.datasourceType),
    lastServiceDate: null,
    status: 'PULL_COMPLETED',
    statusLastUpdateTime: stamp,
    statusFirstSeenTime: stamp,
    statusErrorDetail: '',
  };
}
