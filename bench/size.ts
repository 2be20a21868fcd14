/** How much each measure does. */
export interface Size {
  /** Rounds of each measurement of a load, in turn with its reference. */
  readonly rounds: number;
  /** Events of a round with 512 and with 64 requests in flight. */
  readonly events512: number;
  readonly events64: number;
  /** Events that are sent before anything is timed. */
  readonly warmUpEvents: number;
  readonly eventsLone: number;
  readonly loneCompanies: number;
  readonly liveCompanies: number;
  /** Events that the sandbox delivers. */
  readonly liveEvents: number;
  readonly backfillCompanies: number;
  /** Documents of each company. */
  readonly backfillDocuments: number;
  /** Companies with five documents each. */
  readonly backfillSmallCompanies: number;
  readonly intervalMeters: number;
  /** Replacements of readings for each meter. */
  readonly intervalCalls: number;
  /** Readings of a call. */
  readonly intervalReadings: number;
  /** Companies whose views are measured, a tenth of them first, and whose views are joined. */
  readonly analyticsCompanies: number;
  /** For each company: bills, meters with readings, and readings of such a meter. */
  readonly analyticsDocuments: number;
  readonly analyticsMeters: number;
  readonly analyticsReadings: number;
  /** Companies whose months are read, and summed up. */
  readonly analyticsLargeCompanies: number;
  /** Documents that are loaded with and without history and catalogue, in turn, and the rounds of each. */
  readonly analyticsLoaded: number;
  readonly analyticsLoadRounds: number;
  /** Companies that a peer loads, and the small documents of each. */
  readonly peersCompanies: number;
  readonly peersDocuments: number;
  /**
   * Companies of the console's warehouse, each with 200 events, 200 readings and 20 parts of runs. A second
   * warehouse has ten times as many.
   */
  readonly consolePlots: number;
  readonly growthCompanies: number;
  /** Documents of each company. */
  readonly growthDocuments: number;
  /** Events that are pending while others arrive. */
  readonly growthWaiting: number;
  /** Events of a round. */
  readonly growthEvents: number;
  /** Additional companies in the warehouse where work is measured, as large as in test/db/cost. */
  readonly growthPlots: number;
  /** Only every nth piece of that work is done. This is n. */
  readonly growthEveryNthWork: number;
}

/** The goals are for this size. */
const full = {
  rounds: 3,
  events512: 12_000,
  events64: 4_000,
  warmUpEvents: 3_000,
  eventsLone: 150,
  loneCompanies: 20,
  liveCompanies: 100,
  liveEvents: 10_000,
  backfillCompanies: 100,
  backfillDocuments: 500,
  backfillSmallCompanies: 600,
  intervalMeters: 8,
  intervalCalls: 6,
  intervalReadings: 5_000,
  analyticsCompanies: 200,
  analyticsDocuments: 1_000,
  analyticsMeters: 2,
  analyticsReadings: 25_500,
  analyticsLargeCompanies: 2_000,
  analyticsLoaded: 2_000,
  analyticsLoadRounds: 9,
  peersCompanies: 100,
  peersDocuments: 500,
  consolePlots: 5_000,
  growthCompanies: 2_000,
  growthDocuments: 500,
  growthWaiting: 500_000,
  growthEvents: 10_000,
  growthPlots: 20_000,
  growthEveryNthWork: 1,
} as const satisfies Size;

export const sizes = {
  /** For measures that are requested by name. */
  full,
  /** For all measures, within eight minutes on two cores: the longest measures do less. */
  whole: {
    ...full,
    rounds: 2,
    eventsLone: 100,
    backfillCompanies: 50,
    backfillSmallCompanies: 300,
    analyticsCompanies: 40,
    analyticsLargeCompanies: 200,
    analyticsLoadRounds: 5,
  },
  quick: {
    rounds: 1,
    events512: 8_000,
    events64: 2_000,
    warmUpEvents: 1_500,
    eventsLone: 30,
    loneCompanies: 10,
    liveCompanies: 20,
    liveEvents: 2_000,
    backfillCompanies: 20,
    backfillDocuments: 500,
    backfillSmallCompanies: 200,
    intervalMeters: 3,
    intervalCalls: 4,
    intervalReadings: 5_000,
    analyticsCompanies: 20,
    analyticsDocuments: 1_000,
    analyticsMeters: 2,
    analyticsReadings: 25_500,
    analyticsLargeCompanies: 200,
    analyticsLoaded: 600,
    analyticsLoadRounds: 3,
    peersCompanies: 20,
    peersDocuments: 500,
    consolePlots: 500,
    growthCompanies: 200,
    growthDocuments: 500,
    growthWaiting: 50_000,
    growthEvents: 8_000,
    growthPlots: 2_000,
    growthEveryNthWork: 1,
  },
  /** Proves only that everything runs. */
  tiny: {
    rounds: 1,
    events512: 200,
    events64: 100,
    warmUpEvents: 50,
    eventsLone: 2,
    loneCompanies: 2,
    liveCompanies: 2,
    liveEvents: 60,
    backfillCompanies: 2,
    backfillDocuments: 110,
    backfillSmallCompanies: 3,
    intervalMeters: 1,
    intervalCalls: 1,
    intervalReadings: 200,
    analyticsCompanies: 10,
    analyticsDocuments: 40,
    analyticsMeters: 1,
    analyticsReadings: 200,
    analyticsLargeCompanies: 10,
    analyticsLoaded: 100,
    analyticsLoadRounds: 1,
    peersCompanies: 3,
    peersDocuments: 110,
    consolePlots: 4,
    growthCompanies: 10,
    growthDocuments: 20,
    growthWaiting: 200,
    growthEvents: 200,
    growthPlots: 10,
    growthEveryNthWork: 30,
  },
} as const satisfies Record<string, Size>;

export type SizeName = keyof typeof sizes;
