import type { SiteObject } from './company.ts';

export interface Identifier {
  readonly rawName: string;
  readonly value: string;
  readonly name: string;
}

/** Every member of a meter record except its id. */
export interface MeterFacts {
  readonly site: string;
  readonly account: string;
  readonly address: string;
  readonly identifiers: readonly Identifier[];
  readonly datasourceType: string;
  readonly isTracked: boolean;
  readonly timeOfUse: string | null;
  readonly netMeteringType: string | null;
  readonly waterType: string | null;
  readonly meterHighLow: string | null;
  readonly gasType: string | null;
  readonly fuelType: string | null;
  readonly districtType: string | null;
  readonly districtMediumType: string | null;
  readonly wasteDescription: string | null;
  readonly wasteType: string | null;
  readonly wasteStream: string | null;
  readonly refrigerantType: string | null;
}

/** Returns the facts of a meter that follow from its site, its account and its commodity. */
export function meterFacts(
  numbers: { readonly meter: string; readonly account: string },
  place: Pick<MeterFacts, 'site' | 'account' | 'address' | 'datasourceType' | 'timeOfUse'>,
): MeterFacts {
  const { site, account, address, datasourceType, timeOfUse } = place;
  return {
    site,
    account,
    address,
    identifiers: [
      { rawName: 'Meter No.', value: numbers.meter, name: 'METER' },
      { rawName: 'Account Number', value: numbers.account, name: 'ACCOUNT' },
    ],
    datasourceType,
    isTracked: true,
    timeOfUse,
    netMeteringType: null,
    waterType: datasourceType === 'WATER' ? 'POTABLE_WATER' : null,
    meterHighLow: null,
    gasType: datasourceType === 'GAS' ? 'NATURAL_GAS' : null,
    fuelType: null,
    districtType: null,
    districtMediumType: null,
    wasteDescription: null,
    wasteType: null,
    wasteStream: null,
    refrigerantType: null,
  };
}

/** A meter with what a bill needs from its account, site and connection. */
export interface MeterInPlace {
  readonly id: string;
  readonly number: number;
  readonly companyId: string;
  readonly connectionId: string;
  readonly accountId: string;
  readonly accountNumber: string;
  readonly site: SiteObject;
  readonly utility: { readonly name: string; readonly url: string };
  readonly country: string;
  readonly facts: MeterFacts;
}
