import type { Bill, Reading } from '../records/bill.ts';
import { addDays, fromText, secondsToMicros, toText } from '../timestamps.ts';
import type { Random } from './random.ts';
import type { DocumentRow } from './rows.ts';

/** The ways in which a bill can be irregular. Each returns the changed and the added documents. */
const irregularities: Readonly<Record<string, (random: Random, document: DocumentRow) => DocumentRow[]>> = {
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
  documents: readonly DocumentRow[],
): DocumentRow[] {
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
function supersede(random: Random, document: DocumentRow): DocumentRow[] {
  const next = later(random, document, corrected(random, document.bill));
  const old = {
    ...document,
    updated: next.created,
    bill: { ...document.bill, revisedDocumentId: next.id },
  };
  return [old, ...(random.chance(0.5) ? supersede(random, next) : [next])];
}

function later(random: Random, document: DocumentRow, bill: Bill): DocumentRow {
  const stamp = toText(fromText(document.updated) + secondsToMicros(random.int(86_400, 864_000)));
  return { ...document, id: random.uuid(), created: stamp, updated: stamp, bill };
}

const withBill = (document: DocumentRow, bill: Bill): DocumentRow => ({ ...document, bill });

const withReadings = ({ bill, ...document }: DocumentRow, change: (reading: Reading) => Reading) => ({
  ...document,
  bill: { ...bill, readings: bill.readings.map(change) },
});

const scaledUsage = (document: DocumentRow, factor: number): DocumentRow =>
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
