import type { CompanyObject, MeterInPlace } from './company.ts';
import { type Bill, documentTexts, type Reading } from './document.ts';
import { decimal, scaled, toMembers } from './texts.ts';

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

/**
 * The stored texts of a usage row. v2 sends core, timeOfUse, v20; v2.1 and v2.2 send core, timeOfUse, v21;
 * inside a v2.2 document, timeOfUseBreakdown replaces timeOfUse (service.md 9.2, 9.3).
 */
interface UsageTexts {
  readonly core: string;
  readonly v20: string;
  readonly v21: string;
  readonly timeOfUse: string;
  readonly timeOfUseBreakdown: string;
}

function usageTexts(reading: Reading, meter: MeterInPlace): UsageTexts {
  const electric = meter.facts.datasourceType === 'ELECTRICITY';
  return {
    core: toMembers(core(reading, meter)),
    v20: toMembers({ serviceAddress: meter.facts.address }),
    v21: toMembers({
      electricityType: electric ? 'USAGE' : null,
      isEstimated: reading.isEstimated,
      isImplied: false,
      netMeteringGeneratedKwh: null,
      netMeteringGridImportKwh: null,
      netMeteringGridExportKwh: null,
      exclusion: reading.isExcluded ?? false,
      currentReading: null,
      previousReading: null,
      multiplier: '1',
      tariff: electric ? 'GS-2' : null,
      billedDemand: reading.demandMilli === null ? null : decimal(reading.demandMilli, 3),
      supplierName: null,
      utilityName: meter.utility.name,
      country: meter.country,
    }),
    timeOfUse: toMembers({ timeOfUse: meter.facts.timeOfUse }),
    timeOfUseBreakdown: toMembers({ timeOfUseBreakdown: breakdown(reading, meter) }),
  };
}

function core(reading: Reading, meter: MeterInPlace): object {
  const { facts } = meter;
  return {
    startDate: reading.startDate,
    endDate: reading.endDate,
    usage: decimal(reading.usageMilli, 3),
    usageUnits: reading.units,
    meter: meter.id,
    meterAddress: facts.address,
    meterIsTracked: facts.isTracked,
    site: meter.site,
    identifiers: facts.identifiers,
    datasourceType: facts.datasourceType,
    netMeteringType: facts.netMeteringType,
    waterType: facts.waterType,
    meterHighLow: facts.meterHighLow,
    gasType: facts.gasType,
    fuelType: facts.fuelType,
    districtType: facts.districtType,
    districtMediumType: facts.districtMediumType,
    wasteDescription: facts.wasteDescription,
    wasteType: facts.wasteType,
    wasteStream: facts.wasteStream,
    refrigerantType: facts.refrigerantType,
    additionalFields: {},
  };
}

/** Splits the usage of a time-of-use meter into peak and off-peak. Both parts add up exactly to the usage. */
function breakdown(reading: Reading, meter: MeterInPlace): object[] {
  if (meter.facts.timeOfUse === null) return [];
  const peak = scaled(reading.usageMilli, 37, 100);
  const part = (timeOfUse: string, milli: number) => ({
    timeOfUse,
    usage: decimal(milli, 3),
    usageUnits: reading.units,
    description: null,
    startDate: reading.startDate,
    endDate: reading.endDate,
  });
  return [part('PEAK', peak), part('OFF_PEAK', reading.usageMilli - peak)];
}
