/** How much each measure does. */
export interface Size {
  /** Rounds of each measurement of a load, in turn with its reference. */
  readonly rounds: number;
  /** Events of a round with 512 and with 64 requests in flight. */
  readonly events512: number;
  readonly events64: number;
  /** Events that are sent before anything is timed. */
  readonly warmUpEvents: number;
  /** Rounds with metrics, in turn with as many rounds without. */
  readonly metricsRounds: number;
  /** Events that each get a workflow of their own. */
  readonly eventsUngrouped: number;
  readonly eventsApplied: number;
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
  /** Companies of the measures analytics, which measures a tenth of them first, and joins. */
  readonly analyticsCompanies: number;
  /** For each company: bills, meters with readings, and readings of such a meter. */
  readonly analyticsDocuments: number;
  readonly analyticsMeters: number;
  readonly analyticsReadings: number;
  /** Companies of the measure analytics-large, which reads their months. */
  readonly analyticsLargeCompanies: number;
  /** Documents that are loaded with and without history and catalogue. */
  readonly analyticsLoaded: number;
  /** Companies whose data is checked; each has this many bills, and the last one readings of a meter. */
  readonly checksCompanies: number;
  readonly checksBills: number;
  readonly checksReadings: number;
  readonly catalogueDocuments: number;
  readonly catalogueRounds: number;
  /** Changed documents of each listing, spread over it, because the depth of the search differs. */
  readonly catchUpChanged: number;
  /** Changes that the sandbox makes; each makes one or two events. */
  readonly historyChanges: number;
  readonly historyCompanies: number;
  /** Companies that are audited completely. An audit of a tenth of them comes first. */
  readonly auditCompanies: number;
  /** Days of readings of each company, by quarter-hours and by hours: 7,000 to 9,000 in 60 days. */
  readonly auditDays: number;
  readonly sandboxCompanies: number;
  /** Changes of a round; each makes one or two deliveries. */
  readonly sandboxChanges: number;
  /** Pages of a round, read from the sandbox and from the bare server. */
  readonly sandboxReads: number;
  /** Companies that a peer loads, and the small documents of each. */
  readonly peersCompanies: number;
  readonly peersDocuments: number;
  /** Companies of the console's warehouse, each with 200 events, 200 readings and 20 parts of runs. */
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
  /** Companies of a large customer. */
  readonly customerCompanies: number;
  /** Bills of each company, and days of readings of its two meters, by quarter-hours and by hours. */
  readonly customerBills: number;
  readonly customerDays: number;
  /** Changes of the records of the large customer. Each makes one or two events. */
  readonly customerChanges: number;
}

/** The goals are for this size. */
const full = {
  rounds: 3,
  events512: 12_000,
  events64: 4_000,
  warmUpEvents: 3_000,
  metricsRounds: 10,
  eventsUngrouped: 500,
  eventsApplied: 20_000,
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
  checksCompanies: 200,
  checksBills: 1_000,
  checksReadings: 25_500,
  catalogueDocuments: 3_000,
  catalogueRounds: 9,
  catchUpChanged: 9,
  historyChanges: 18_000,
  historyCompanies: 100,
  auditCompanies: 1_280,
  auditDays: 60,
  sandboxCompanies: 20,
  sandboxChanges: 12_000,
  sandboxReads: 20_000,
  peersCompanies: 100,
  peersDocuments: 500,
  consolePlots: 5_000,
  growthCompanies: 2_000,
  growthDocuments: 500,
  growthWaiting: 500_000,
  growthEvents: 10_000,
  growthPlots: 20_000,
  growthEveryNthWork: 1,
  customerCompanies: 1_000,
  customerBills: 200,
  customerDays: 15,
  customerChanges: 10_000,
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
    checksCompanies: 40,
    catalogueRounds: 5,
    historyChanges: 4_000,
    historyCompanies: 40,
    auditCompanies: 64,
  },
  quick: {
    rounds: 1,
    events512: 8_000,
    events64: 2_000,
    warmUpEvents: 1_500,
    metricsRounds: 3,
    eventsUngrouped: 200,
    eventsApplied: 8_000,
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
    checksCompanies: 20,
    checksBills: 1_000,
    checksReadings: 25_500,
    catalogueDocuments: 1_000,
    catalogueRounds: 3,
    catchUpChanged: 9,
    historyChanges: 4_000,
    historyCompanies: 40,
    auditCompanies: 32,
    auditDays: 60,
    sandboxCompanies: 10,
    sandboxChanges: 4_000,
    sandboxReads: 8_000,
    peersCompanies: 20,
    peersDocuments: 500,
    consolePlots: 500,
    growthCompanies: 200,
    growthDocuments: 500,
    growthWaiting: 50_000,
    growthEvents: 8_000,
    growthPlots: 2_000,
    growthEveryNthWork: 1,
    customerCompanies: 100,
    customerBills: 200,
    customerDays: 15,
    customerChanges: 1_000,
  },
  /** Proves only that everything runs. */
  tiny: {
    rounds: 1,
    events512: 200,
    events64: 100,
    warmUpEvents: 50,
    metricsRounds: 1,
    eventsUngrouped: 20,
    eventsApplied: 200,
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
    checksCompanies: 3,
    checksBills: 40,
    checksReadings: 200,
    catalogueDocuments: 100,
    catalogueRounds: 1,
    catchUpChanged: 1,
    historyChanges: 60,
    historyCompanies: 2,
    auditCompanies: 10,
    auditDays: 2,
    sandboxCompanies: 2,
    sandboxChanges: 60,
    sandboxReads: 60,
    peersCompanies: 3,
    peersDocuments: 110,
    consolePlots: 4,
    growthCompanies: 10,
    growthDocuments: 20,
    growthWaiting: 200,
    growthEvents: 200,
    growthPlots: 10,
    growthEveryNthWork: 30,
    customerCompanies: 3,
    customerBills: 20,
    customerDays: 2,
    customerChanges: 30,
  },
} as const satisfies Record<string, Size>;

export type SizeName = keyof typeof sizes;
