import type { Reading } from './bill.ts';
import { decimal, scaled } from './decimal.ts';
import { toMembers } from './members.ts';
import type { MeterInPlace } from './meter.ts';

/**
 * The stored texts of a usage row. v2 sends core, timeOfUse, v20; v2.1 and v2.2 send core, timeOfUse, v21;
 * inside a v2.2 document, timeOfUseBreakdown replaces timeOfUse (service.md 9.2, 9.3).
 */
export interface UsageTexts {
  readonly core: string;
  readonly v20: string;
  readonly v21: string;
  readonly timeOfUse: string;
  readonly timeOfUseBreakdown: string;
}

export function usageTexts(reading: Reading, meter: MeterInPlace): UsageTexts {
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
