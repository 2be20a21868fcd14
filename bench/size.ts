/** `full`: the goals are for it. `whole`: all measures in eight minutes. `tiny` only proves that all runs. */
const names = ['full', 'whole', 'quick', 'tiny'] as const;
export type SizeName = (typeof names)[number];

/** How much each measure does, at each of these sizes. */
const amounts = {
  /** Rounds of each measurement of a load, in turn with its reference. */
  rounds: [3, 2, 1, 1],
  /** Events of a round with 512 and with 64 requests in flight, and one at a time. */
  events512: [12_000, 12_000, 8_000, 200],
  events64: [4_000, 4_000, 2_000, 100],
  eventsLone: [150, 100, 30, 2],
  /** Events that are sent before anything is timed. */
  warmUpEvents: [3_000, 3_000, 1_500, 50],
  loneCompanies: [20, 20, 10, 2],
  liveCompanies: [100, 100, 20, 2],
  /** Events that the sandbox delivers. */
  liveEvents: [10_000, 10_000, 2_000, 60],
  backfillCompanies: [100, 50, 20, 2],
  /** Documents of each company. */
  backfillDocuments: [500, 500, 500, 110],
  /** Companies with five documents each. */
  backfillSmallCompanies: [600, 300, 200, 3],
  /** Meters, replacements of readings for each meter, and readings of a replacement. */
  intervalMeters: [8, 8, 3, 1],
  intervalCalls: [6, 6, 4, 1],
  intervalReadings: [5_000, 5_000, 5_000, 200],
  /** Companies whose views are measured, a tenth of them first, and whose views are joined. */
  analyticsCompanies: [200, 40, 20, 10],
  /** For each company: bills, meters with readings, and readings of such a meter. */
  analyticsDocuments: [1_000, 1_000, 1_000, 40],
  analyticsMeters: [2, 2, 2, 1],
  analyticsReadings: [25_500, 25_500, 25_500, 200],
  /** Companies whose months are read, and summed up. */
  analyticsLargeCompanies: [2_000, 200, 200, 10],
  /** Companies that a peer loads, and the small documents of each. */
  peersCompanies: [100, 100, 20, 3],
  peersDocuments: [500, 500, 500, 110],
  /**
   * Companies of the console's warehouse, each with 200 events, 200 readings and 20 parts of runs. A second
   * warehouse has ten times as many.
   */
  consolePlots: [5_000, 5_000, 500, 4],
  growthCompanies: [2_000, 2_000, 200, 10],
  /** Documents of each company. */
  growthDocuments: [500, 500, 500, 20],
  /** Events that are pending while others arrive, and events of a round. */
  growthWaiting: [500_000, 500_000, 50_000, 200],
  growthEvents: [10_000, 10_000, 8_000, 200],
} as const satisfies Record<string, readonly [number, number, number, number]>;

export type Size = Readonly<Record<keyof typeof amounts, number>>;

export function sizeOf(name: SizeName): Size {
  const at = names.indexOf(name);
  return Object.fromEntries(Object.entries(amounts).map(([what, much]) => [what, much[at]])) as Size;
}
