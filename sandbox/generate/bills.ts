import type { CompanyObject, MeterInPlace } from '../records/company.ts';
import { type Bill, type Reading, unitsOf } from '../records/document.ts';
import type { StoredDocument } from '../records/rows.ts';
import { addDays, fromText, secondsToMicros, toText } from '../time.ts';
import type { Random } from './random.ts';

export interface BillingPlan {
  /** Number of bills of each company. */
  readonly documents: number;
  /** The day on which generated history ends. */
  readonly until: string;
  /** Whether that day is today. Then no record may be created later, because that would be in the future. */
  readonly untilToday: boolean;
}

/**
 * Generates monthly bills of a company's accounts, month by month from the newest one, until there are
 * enough. The periods of an account follow one another, sometimes with a gap or an overlap of a day.
 */
export function generateBills(
  random: Random,
  plan: BillingPlan,
  company: CompanyObject,
  meters: readonly MeterInPlace[],
): StoredDocument[] {
  const accounts = [...Map.groupBy(meters, (meter) => meter.accountId).values()];
  const nextEnd = accounts.map(() => addDays(plan.until, -random.int(3, 30)));
  const documents: StoredDocument[] = [];
  for (let turn = 0; documents.length < plan.documents && accounts.length > 0; turn++) {
    const index = turn % accounts.length;
    const own = accounts[index] ?? [];
    const end = nextEnd[index] ?? plan.until;
    const start = addDays(end, -random.int(28, 33));
    nextEnd[index] = addDays(start, random.chance(0.05) ? -2 : random.chance(0.05) ? 0 : -1);
    const bill = composeBill(random, own, start, end);
    const created = fromText(addDays(end, random.int(2, 6))) + BigInt(random.int(1, 86_399)) * 1_000_000n;
    const stamp = created + BigInt(random.int(1, 999_999));
    const corrected = bill.notes !== '';
    documents.push({
      id: random.uuid(),
      company,
      created: toText(stamp),
      updated: toText(corrected ? stamp + secondsToMicros(random.int(600, 400_000)) : stamp),
      bill,
    });
  }
  return documents;
}

/** Composes a bill for the meters of one account. */
export function composeBill(
  random: Random,
  meters: readonly MeterInPlace[],
  periodStart: string,
  periodEnd: string,
): Bill {
  const previousCents = random.int(0, 1) === 0 ? 0 : random.int(5_000, 400_000);
  return {
    periodStart,
    periodEnd,
    billDate: periodEnd,
    dueDate: addDays(periodEnd, 21),
    currency: meters[0]?.country === 'CA' ? 'CAD' : 'USD',
    invoiceId: `INV-${random.digits(9)}`,
    jobId: random.uuid(),
    sourceType: 'INVOICE',
    previousCents,
    paidCents: random.chance(0.9) ? previousCents : 0,
    fixedCents: random.int(900, 9_500),
    taxPercentMilli: random.int(2_000, 9_999),
    isFlagged: random.chance(0.02),
    revisedDocumentId: null,
    notes: random.chance(0.04) ? 'Corrected bill' : '',
    readings: meters.map((meter) => reading(random, meter, periodStart, periodEnd)),
  };
}

function reading(random: Random, meter: MeterInPlace, startDate: string, endDate: string): Reading {
  const type = meter.facts.datasourceType;
  const electric = type === 'ELECTRICITY';
  if (meter.facts.netMeteringType === 'EXPORT') return exported(random, meter, startDate, endDate);
  return {
    usageId: random.uuid(),
    meterId: meter.id,
    startDate,
    endDate,
    usageMilli: electric ? random.int(900_000, 90_000_000) : random.int(5_000, 4_000_000),
    units: unitsOf(type),
    isEstimated: random.chance(0.06),
    deliveryRate: electric ? random.int(4_000, 9_000) : random.int(30_000, 90_000),
    supplyRate: electric ? random.int(6_000, 14_000) : random.int(40_000, 90_000),
    demandMilli: electric && random.chance(0.4) ? random.int(5_000, 400_000) : null,
  };
}

/** A reading of energy that is fed into the grid: positive usage, credited below the price of supply. */
function exported(random: Random, meter: MeterInPlace, startDate: string, endDate: string): Reading {
  return {
    usageId: random.uuid(),
    meterId: meter.id,
    startDate,
    endDate,
    usageMilli: random.int(90_000, 900_000),
    units: unitsOf(meter.facts.datasourceType),
    isEstimated: false,
    deliveryRate: 0,
    supplyRate: -random.int(2_000, 5_000),
    demandMilli: null,
  };
}

/** The ways in which a bill can be irregular. Each returns the changed and the added documents. */
const irregularities: Readonly<
  Record<string, (random: Random, document: StoredDocument) => StoredDocument[]>
> = {
  superseded: (random, document) => supersede(random, document),
  sentTwice: (random, document) => [document, later(random, document, reissued(random, document.bill))],
  gapBefore: (random, document) => [withBill(document, startsLater(document.bill, random.int(3, 9)))],
  overlap: (random, document) => [withBill(document, startsLater(document.bill, -random.int(3, 9)))],
  twoMonths: (_, document) => [withBill(document, startsLater(document.bill, -31))],
  estimated: (_, document) => [withReadings(document, (reading) => ({ ...reading, isEstimated: true }))],
  exclusion: (random, document) => [withBill(document, withExclusion(random, document.bill))],
  peak: (random, document) => [scaledUsage(document, random.int(8, 12))],
  unused: (_, document) => [scaledUsage(document, 0)],
  negative: (_, document) => [scaledUsage(document, -1)],
  endUnknown: (_, document) => [
    withReadings(document, (reading) => ({ ...reading, endDate: reading.startDate })),
  ],
  otherCurrency: (_, { bill, ...document }) => [
    { ...document, bill: { ...bill, currency: bill.currency === 'CAD' ? 'USD' : 'CAD' } },
  ],
};

/** Makes a share of the bills irregular, as every utility's are. Bills that it adds are not drawn again. */
export function makeIrregular(
  random: Random,
  share: number,
  documents: readonly StoredDocument[],
): StoredDocument[] {
  const names = Object.keys(irregularities);
  return documents.flatMap((document) => {
    if (!random.chance(share)) return [document];
    return irregularities[random.pick(names)]?.(random, document) ?? [document];
  });
}

/** The same bill as when a utility sends it again: only the ids and the number differ. */
function reissued(random: Random, bill: Bill): Bill {
  return {
    ...bill,
    invoiceId: `INV-${random.digits(9)}`,
    jobId: random.uuid(),
    revisedDocumentId: null,
    readings: bill.readings.map((reading) => ({ ...reading, usageId: random.uuid() })),
  };
}

/** A bill that replaces another. It is for the same days, with corrected usage and charges. */
export function corrected(random: Random, bill: Bill): Bill {
  const next = reissued(random, bill);
  return {
    ...next,
    fixedCents: next.fixedCents + random.int(1, 500),
    notes: 'Replaces an earlier bill',
    readings: next.readings.map((reading) => ({
      ...reading,
      usageMilli: reading.usageMilli + random.int(1, 50_000),
      isEstimated: false,
    })),
  };
}

/** Links the old bill to a new one. In half of the cases, the new bill is superseded again. */
function supersede(random: Random, document: StoredDocument): StoredDocument[] {
  const next = later(random, document, corrected(random, document.bill));
  const old = {
    ...document,
    updated: next.created,
    bill: { ...document.bill, revisedDocumentId: next.id },
  };
  return [old, ...(random.chance(0.5) ? supersede(random, next) : [next])];
}

function later(random: Random, document: StoredDocument, bill: Bill): StoredDocument {
  const stamp = toText(fromText(document.updated) + secondsToMicros(random.int(86_400, 864_000)));
  return { ...document, id: random.uuid(), created: stamp, updated: stamp, bill };
}

const withBill = (document: StoredDocument, bill: Bill): StoredDocument => ({ ...document, bill });

const withReadings = ({ bill, ...document }: StoredDocument, change: (reading: Reading) => Reading) => ({
  ...document,
  bill: { ...bill, readings: bill.readings.map(change) },
});

const scaledUsage = (document: StoredDocument, factor: number): StoredDocument =>
  withReadings(document, (reading) => ({ ...reading, usageMilli: reading.usageMilli * factor }));

function startsLater(bill: Bill, days: number): Bill {
  const periodStart = addDays(bill.periodStart, days);
  return {
    ...bill,
    periodStart,
    readings: bill.readings.map((reading) => ({ ...reading, startDate: periodStart })),
  };
}

/** Adds an excluded reading, which sums subtract: a tenth of the usage belongs to a tenant. */
function withExclusion(random: Random, bill: Bill): Bill {
  const [first] = bill.readings;
  if (first === undefined) return bill;
  const excluded: Reading = {
    ...first,
    usageId: random.uuid(),
    usageMilli: Math.trunc(first.usageMilli / 10),
    isExcluded: true,
    deliveryRate: 0,
    supplyRate: 0,
    demandMilli: null,
  };
  return { ...bill, readings: [...bill.readings, excluded] };
}
