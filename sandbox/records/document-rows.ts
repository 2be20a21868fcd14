import type { Bill } from './bill.ts';
import type { CompanyObject } from './company.ts';
import { documentTexts } from './document.ts';
import type { MeterInPlace } from './meter.ts';
import { usageTexts } from './usage-data.ts';

/** A document in the form that the sandbox works with. Its stored texts are made when it is written. */
export interface StoredDocument {
  readonly id: string;
  readonly company: CompanyObject;
  readonly created: string;
  readonly updated: string;
  readonly bill: Bill;
}

export const documentColumns = [
  'id',
  'company_id',
  'site_id',
  'connection_id',
  'created',
  'updated',
  'bill_date',
  'period_start',
  'period_end',
  'bill',
  'header',
  'detail',
  'line_items',
  'demand_meters',
] as const;

export const usageColumns = [
  'id',
  'document_id',
  'company_id',
  'site_id',
  'connection_id',
  'meter_id',
  'datasource_type',
  'created',
  'updated',
  'bill_date',
  'start_date',
  'end_date',
  'core',
  'v20',
  'v21',
  'time_of_use',
  'time_of_use_breakdown',
] as const;

type Meters = ReadonlyMap<string, MeterInPlace>;

/** The meter whose site and connection a document belongs to: the meter of its first reading. */
export function mainMeter(document: StoredDocument, meters: Meters): MeterInPlace {
  const [first] = document.bill.readings;
  const meter = first && meters.get(first.meterId);
  if (meter === undefined) throw new Error(`document ${document.id} has no meter`);
  return meter;
}

/** Values in the order of documentColumns. */
export function documentValues(document: StoredDocument, meters: Meters): string[] {
  const { id, company, created, updated, bill } = document;
  const main = mainMeter(document, meters);
  const texts = documentTexts(id, company, bill, meters);
  return [
    id,
    company.id,
    main.site.id,
    main.connectionId,
    created,
    updated,
    bill.billDate,
    bill.periodStart,
    bill.periodEnd,
    JSON.stringify(bill),
    texts.header,
    texts.detail,
    texts.lineItems,
    texts.demandMeters,
  ];
}

/** Values in the order of usageColumns, a row for each reading, with the document's times. */
export function usageValues(document: StoredDocument, meters: Meters): string[][] {
  return document.bill.readings.map((reading) => {
    const meter = meters.get(reading.meterId);
    if (meter === undefined) throw new Error(`usage ${reading.usageId} has no meter`);
    const texts = usageTexts(reading, meter);
    return [
      reading.usageId,
      document.id,
      document.company.id,
      meter.site.id,
      meter.connectionId,
      meter.id,
      meter.facts.datasourceType,
      document.created,
      document.updated,
      document.bill.billDate,
      reading.startDate,
      reading.endDate,
      texts.core,
      texts.v20,
      texts.v21,
      texts.timeOfUse,
      texts.timeOfUseBreakdown,
    ];
  });
}
