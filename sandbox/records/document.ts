import type { CompanyObject, MeterInPlace } from './company.ts';
import { decimal, scaled, toMembers } from './texts.ts';

/** The reading of one meter for one bill. Usage is in thousandths of `units`. */
export interface Reading {
  readonly usageId: string;
  readonly meterId: string;
  readonly startDate: string;
  readonly endDate: string;
  readonly usageMilli: number;
  readonly units: string;
  readonly isEstimated: boolean;
  /** Subtracted in sums, because somebody else pays for it. */
  readonly isExcluded?: boolean;
  /** Price of a unit in hundred-thousandths of the currency. */
  readonly deliveryRate: number;
  readonly supplyRate: number;
  readonly demandMilli: number | null;
}

/** The content of a bill, from which a document and its usage rows are made. Money is in cents. */
export interface Bill {
  readonly periodStart: string;
  readonly periodEnd: string;
  readonly billDate: string;
  readonly dueDate: string;
  readonly currency: string;
  readonly invoiceId: string;
  readonly jobId: string;
  readonly sourceType: string;
  readonly previousCents: number;
  readonly paidCents: number;
  readonly fixedCents: number;
  readonly taxPercentMilli: number;
  readonly isFlagged: boolean;
  readonly revisedDocumentId: string | null;
  readonly notes: string;
  readonly readings: readonly Reading[];
}

/** Units of a commodity as bills print them. */
export function unitsOf(datasourceType: string): string {
  if (datasourceType === 'GAS') return 'thm (US)';
  if (datasourceType === 'WATER') return 'kgal (US)';
  return 'kWh';
}

/** The stored texts of a document: v2 sends the header, v2.1 adds `detail`, v2.2 adds `demandMeters`. */
interface DocumentTexts {
  readonly header: string;
  readonly detail: string;
  readonly lineItems: string;
  readonly demandMeters: string;
}

interface Charge {
  readonly cents: number;
  readonly item: object;
}

/** Writes a document's JSON. `meters` has those of all readings; the first gives site and account. */
export function documentTexts(
  id: string,
  company: CompanyObject,
  bill: Bill,
  meters: ReadonlyMap<string, MeterInPlace>,
): DocumentTexts {
  const charges = bill.readings.flatMap((reading) => usageCharges(reading, accountOf(reading, meters)));
  const [first] = bill.readings;
  const main = first && meters.get(first.meterId);
  if (main === undefined) throw new Error(`document ${id} has no meter`);
  const net = charges.reduce((sum, charge) => sum + charge.cents, bill.fixedCents);
  const tax = scaled(net, bill.taxPercentMilli, 100_000);
  const lineItems = [
    fixedItem(bill.fixedCents, main.accountId),
    ...charges.map((charge) => charge.item),
    taxItem(tax, bill.taxPercentMilli, main.accountId),
  ];
  return {
    header: toMembers(header(id, company, bill, main, net, tax)),
    detail: toMembers({ startDate: bill.periodStart }),
    lineItems: JSON.stringify(lineItems),
    demandMeters: JSON.stringify(bill.readings.flatMap(demandMeter)),
  };
}

function header(
  id: string,
  company: CompanyObject,
  bill: Bill,
  main: MeterInPlace,
  net: number,
  tax: number,
): object {
  const open = bill.previousCents - bill.paidCents;
  return {
    company,
    site: main.site,
    auditTrailUrl: `https://files.utility-data.example/audit/${id}`,
    url: `https://files.utility-data.example/bills/${id}.pdf`,
    billDate: bill.billDate,
    chargesUnits: bill.currency,
    utilityCompany: main.utility.name,
    status: 'PROCESSED',
    flaggedStatus: bill.isFlagged ? 'LOW_CONFIDENCE' : '',
    revisedDocumentId: bill.revisedDocumentId,
    fileName: `${main.accountNumber}-${bill.billDate}.pdf`,
    email: '',
    jobId: bill.jobId,
    notes: bill.notes,
    dueDate: bill.dueDate,
    totalCharges: decimal(open + net + tax, 2),
    sourceType: bill.sourceType,
    isFlagged: bill.isFlagged,
    invoiceId: bill.invoiceId,
    previousCloseBalance: decimal(bill.previousCents, 2),
    afterPreviousTotalPayment: decimal(-bill.paidCents, 2),
    afterPreviousCharges: decimal(0, 2),
    afterPreviousCredits: decimal(0, 2),
    currentOpenBalance: decimal(open, 2),
    currentCharges: decimal(net + tax, 2),
    credits: decimal(0, 2),
    taxCharges: decimal(tax, 2),
    interestCharges: decimal(0, 2),
  };
}

function accountOf(reading: Reading, meters: ReadonlyMap<string, MeterInPlace>): MeterInPlace {
  const meter = meters.get(reading.meterId);
  if (meter === undefined) throw new Error(`no meter ${reading.meterId}`);
  return meter;
}

function usageCharges(reading: Reading, meter: MeterInPlace): Charge[] {
  const type = meter.facts.datasourceType;
  const charges = [usageCharge(reading, meter, 'DELIVERY', reading.deliveryRate)];
  if (type !== 'WATER') charges.push(usageCharge(reading, meter, 'SUPPLY', reading.supplyRate));
  if (reading.demandMilli !== null) {
    const cents = scaled(reading.demandMilli, 925, 1000);
    charges.push({
      cents,
      item: lineItem({
        rate: '9.25',
        totalCharge: decimal(cents, 2),
        description: 'Demand charge',
        quantity: decimal(reading.demandMilli, 3),
        quantityUnits: 'kW',
        accountIds: [meter.accountId],
        chargeType: 'USAGE',
        electricityChargeType: 'DELIVERY',
        electricityIsDemand: true,
      }),
    });
  }
  return charges;
}

function usageCharge(reading: Reading, meter: MeterInPlace, part: string, rate: number): Charge {
  // thousandths of a unit × hundred-thousandths of the currency = 10⁻⁸; cents are 10⁻²
  const cents = scaled(reading.usageMilli, rate, 1_000_000);
  const type = meter.facts.datasourceType;
  return {
    cents,
    item: lineItem({
      rate: decimal(rate, 5),
      totalCharge: decimal(cents, 2),
      description: part === 'SUPPLY' ? 'Supply charge' : 'Delivery charge',
      quantity: decimal(reading.usageMilli, 3),
      quantityUnits: reading.units,
      accountIds: [meter.accountId],
      chargeType: 'USAGE',
      ...(type === 'ELECTRICITY' ? { electricityChargeType: part } : {}),
      ...(type === 'GAS' ? { gasChargeType: part } : {}),
    }),
  };
}

const fixedItem = (cents: number, accountId: string) =>
  lineItem({
    totalCharge: decimal(cents, 2),
    description: 'Customer charge',
    accountIds: [accountId],
    chargeType: 'FIXED',
  });

const taxItem = (cents: number, percentMilli: number, accountId: string) =>
  lineItem({
    rate: decimal(percentMilli, 3),
    totalCharge: decimal(cents, 2),
    description: 'State and local taxes',
    accountIds: [accountId],
    chargeType: 'TAX',
  });

/** Fields of another commodity are left out, because they would be null. */
const lineItem = (fields: object) => ({ multipliers: [], billingPeriod: 'CURRENT', ...fields });

function demandMeter(reading: Reading): object[] {
  if (reading.demandMilli === null) return [];
  return [
    {
      startDate: reading.startDate,
      endDate: reading.endDate,
      isEstimated: reading.isEstimated,
      demandUsage: decimal(reading.demandMilli, 3),
      demandUsageUnits: 'kW',
      description: null,
      demandType: 'PEAK',
      usageDataIds: [reading.usageId],
    },
  ];
}
