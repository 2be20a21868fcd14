import { type Bill, type Reading, unitsOf } from '../records/bill.ts';
import type { CompanyObject } from '../records/company.ts';
import type { MeterInPlace } from '../records/meter.ts';
import { addDays, fromText, secondsToMicros, toText } from '../timestamps.ts';
import type { Random } from './random.ts';
import type { DocumentRow } from './rows.ts';

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
): DocumentRow[] {
  const accounts = [...Map.groupBy(meters, (meter) => meter.accountId).values()];
  const nextEnd = accounts.map(() => addDays(plan.until, -random.int(3, 30)));
  const documents: DocumentRow[] = [];
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
