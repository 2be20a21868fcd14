import pg from 'pg';

/**
 * The content of the sandbox's own database, as its generator wrote it: nothing of it passed our pipeline.
 */
export interface SandboxData {
  readonly documents: readonly SandboxDocument[];
  readonly meters: ReadonlyMap<string, SandboxMeter>;
  readonly connections: readonly { readonly id: string }[];
  readonly intervals: readonly SandboxInterval[];
}

export interface SandboxReading {
  readonly usageId: string;
  readonly meterId: string;
  readonly startDate: string;
  readonly endDate: string;
  readonly usageMilli: number;
  readonly units: string;
  readonly isEstimated: boolean;
  readonly isExcluded?: boolean;
  readonly demandMilli: number | null;
}

export interface SandboxLine {
  readonly totalCharge: string;
  readonly quantity?: string;
  readonly electricityChargeType?: string;
  readonly electricityIsDemand?: boolean;
}

export interface SandboxDocument {
  readonly id: string;
  readonly company: string;
  readonly companyId: string;
  readonly siteId: string;
  readonly site: string;
  readonly created: string;
  readonly deleted: boolean;
  readonly account: string;
  readonly provider: string;
  readonly currency: string;
  readonly invoiceId: string;
  readonly billDate: string;
  readonly dueDate: string;
  /** Cents. */
  readonly cost: bigint;
  readonly total: bigint;
  readonly tax: bigint;
  readonly successor: string | null;
  readonly readings: readonly SandboxReading[];
  readonly lines: readonly SandboxLine[];
}

export interface SandboxMeter {
  readonly id: string;
  readonly companyId: string;
  readonly siteId: string;
  readonly site: string;
  readonly type: string;
  readonly netMetering: string | null;
}

export interface SandboxInterval {
  readonly meter: SandboxMeter;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly seconds: number;
  readonly units: string;
  /** Thousandths. */
  readonly milli: bigint;
}

/** Reads a decimal number as an integer, in units of its last place. */
export const scaledInteger = (decimal: string): bigint => BigInt(decimal.replace('.', ''));

export async function readSandbox(databaseUrl: string): Promise<SandboxData> {
  const client = new pg.Client({ connectionString: databaseUrl, types: { getTypeParser: () => String } });
  await client.connect();
  const read = async (query: string) => (await client.query<Record<string, string>>(query)).rows;
  const meters = new Map(
    (
      await read(`select m.id, m.company_id, s.id as site_id, s.name as site, m.datasource_type, m.members, m.number
        from sandbox.meters m join sandbox.sites s on s.id = m.site_id`)
    ).map((row) => {
      const { netMeteringType } = JSON.parse(`{${row.members}}`) as { netMeteringType: string | null };
      const meter = {
        id: row.id ?? '',
        companyId: row.company_id ?? '',
        number: row.number ?? '',
        siteId: row.site_id ?? '',
        site: row.site ?? '',
        type: row.datasource_type ?? '',
        netMetering: netMeteringType,
      };
      return [meter.id, meter] as const;
    }),
  );
  const byNumber = new Map([...meters.values()].map((meter) => [meter.number, meter]));
  const documents =
    await read(`select d.*, d.deleted_at is not null as deleted, c.name as company, s.name as site
    from sandbox.documents d join sandbox.companies c on c.id = d.company_id join sandbox.sites s on s.id = d.site_id`);
  const intervals =
    await read(`select meter_number, to_char(start_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as at, seconds, usage_units, usage
    from sandbox.intervals order by start_at`);
  const connections = await read('select id from sandbox.connections order by id');
  await client.end();
  return {
    meters,
    connections: connections.map(({ id = '' }) => ({ id })),
    documents: documents.map(documentOf),
    intervals: intervals.map((row) => ({
      meter: byNumber.get(row.meter_number ?? '') as SandboxMeter,
      at: Date.parse(row.at ?? ''),
      seconds: Number(row.seconds),
      units: row.usage_units ?? '',
      milli: scaledInteger(row.usage ?? ''),
    })),
  };
}

function documentOf(row: Record<string, string>): SandboxDocument {
  const header = JSON.parse(`{${row.header}}`) as Record<string, string>;
  const detail = JSON.parse(`{${row.detail}}`) as Record<string, string>;
  const bill = JSON.parse(row.bill ?? '') as { readings: SandboxReading[]; revisedDocumentId: string | null };
  return {
    id: row.id ?? '',
    company: row.company ?? '',
    companyId: row.company_id ?? '',
    siteId: row.site_id ?? '',
    site: row.site ?? '',
    created: row.created ?? '',
    deleted: row.deleted === 't',
    account: detail.accountNumber ?? '',
    provider: header.utilityCompany ?? '',
    currency: header.chargesUnits ?? '',
    invoiceId: header.invoiceId ?? '',
    billDate: header.billDate ?? '',
    dueDate: header.dueDate ?? '',
    cost: scaledInteger(header.currentCharges ?? ''),
    total: scaledInteger(header.totalCharges ?? ''),
    tax: scaledInteger(header.taxCharges ?? ''),
    successor: bill.revisedDocumentId,
    readings: bill.readings,
    lines: JSON.parse(row.line_items ?? '') as SandboxLine[],
  };
}

/**
 * The document at the end of the chain, of those that are not deleted; undefined if the document itself
 * counts.
 */
export function successorOf(data: SandboxData, document: SandboxDocument): SandboxDocument | undefined {
  let last: SandboxDocument | undefined;
  for (let id = document.successor; id !== null; ) {
    const next = data.documents.find((one) => one.id === id);
    if (next !== undefined && !next.deleted) last = next;
    id = next?.successor ?? null;
  }
  return last;
}

export const effective = (data: SandboxData): SandboxDocument[] =>
  data.documents.filter((document) => !document.deleted && successorOf(data, document) === undefined);

/** Divides, rounded half away from zero to this many places. */
export function quotient(numerator: bigint, denominator: bigint, places: number): string {
  const scaled = numerator * 10n ** BigInt(places);
  const negative = scaled < 0n !== denominator < 0n;
  const [top, bottom] = [scaled < 0n ? -scaled : scaled, denominator < 0n ? -denominator : denominator];
  const rounded = (2n * top + bottom) / (2n * bottom);
  const digits = `${rounded}`.padStart(places + 1, '0');
  const text = places === 0 ? digits : `${digits.slice(0, -places)}.${digits.slice(-places)}`;
  return negative && rounded !== 0n ? `-${text}` : text;
}

const dayMs = 86_400_000;
export const toDay = (date: string): number => Date.parse(date) / dayMs;
export const toDate = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10);

/**
 * A reading that counts, on whole days, without `until`. A day shared with the meter's next reading belongs
 * to that.
 */
export interface Period {
  readonly document: SandboxDocument;
  readonly reading: SandboxReading;
  readonly meter: SandboxMeter;
  readonly from: number;
  readonly until: number;
  /** The sign in sums: negative if excluded or exported, but not if both, nor if the usage is negative. */
  readonly sign: bigint;
}

export function periods(data: SandboxData): Period[] {
  const all = effective(data).flatMap((document) =>
    document.readings.map((reading) => ({ document, reading })),
  );
  const starts = new Map(
    [...Map.groupBy(all, ({ reading }) => reading.meterId)].map(([meterId, own]) => [
      meterId,
      [...new Set(own.map(({ reading }) => toDay(reading.startDate)))].sort((a, b) => a - b),
    ]),
  );
  return all.map(({ document, reading }) => {
    const meter = data.meters.get(reading.meterId) as SandboxMeter;
    const [from, end] = [toDay(reading.startDate), toDay(reading.endDate)];
    const next = starts.get(meter.id)?.find((start) => start > from);
    const until = end > from && next === end ? end : end + 1;
    const isSubtracted = (meter.netMetering === 'EXPORT') !== (reading.isExcluded === true);
    const sign = isSubtracted && reading.usageMilli >= 0 ? -1n : 1n;
    return { document, reading, meter, from, until, sign };
  });
}

/** Finds the newest bill for each meter and day; two readings of one bill both count. */
export function newestOfDay(all: readonly Period[]): Map<string, Map<number, string>> {
  const meters = new Map<string, Map<number, string>>();
  const byAge = [...all].sort((a, b) =>
    a.document.created === b.document.created
      ? a.document.id.localeCompare(b.document.id)
      : a.document.created < b.document.created
        ? -1
        : 1,
  );
  for (const { meter, document, from, until } of byAge) {
    const days = meters.get(meter.id) ?? new Map<number, string>();
    for (let day = from; day < until; day++) days.set(day, document.id);
    meters.set(meter.id, days);
  }
  return meters;
}
