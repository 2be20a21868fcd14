/** Names that receivers, workers, the command and a person at Temporal's web page must agree on. */

/** Events have a queue of their own, so that a long backfill never delays one; and checks, which delay neither. */
export const taskQueues = {
  events: 'metersync-events',
  backfill: 'metersync-backfill',
  checks: 'metersync-checks',
} as const;

/** The kinds of records that events leave to be read again; one singleton catchUp workflow each. */
export const catchUpKinds = ['connections', 'documents', 'intervals'] as const;
export type CatchUpKind = (typeof catchUpKinds)[number];

/** The resources that a backfill reads for each company, in the order in which it reads them. */
export const companyResources = ['connections', 'meters', 'documents', 'usageData', 'intervals'] as const;
export type CompanyResource = (typeof companyResources)[number];

/** Everything that an audit compares. */
export const auditResources = ['companies', 'sites', ...companyResources] as const;
export type AuditResource = (typeof auditResources)[number];

/** What the checks look at: those over readings take longest, and reconciles read none. */
export const checkKinds = ['bills', 'connections', 'intervals'] as const;
export type CheckKind = (typeof checkKinds)[number];

/** Every check, as ops.data_issue_checks describes them. */
export const checkNames = [
  'bill_gap',
  'bill_overlap',
  'duplicate_bill',
  'unusual_period',
  'future_period',
  'amount_mismatch',
  'usage_mismatch',
  'usage_spike',
  'hidden_estimate',
  'zero_usage_with_cost',
  'negative_usage',
  'unit_changed',
  'currency_changed',
  'bad_dates',
  'late_bill',
  'orphan',
  'unknown_unit',
  'unknown_commodity',
  'unusable_amount',
  'unknown_status',
  'unhealthy_connection',
  'interval_coverage',
  'clock_change',
  'interval_bill_mismatch',
  'unusable_reading',
  'unknown_quality',
] as const;
export type CheckName = (typeof checkNames)[number];

/** Why an issue is closed: what showed it is gone, its check was left out, or is no longer one. */
export const closedReasons = ['evidence_gone', 'check_off', 'check_removed'] as const;
export type ClosedReason = (typeof closedReasons)[number];

/** How much an issue matters. */
export const severities = ['error', 'warning', 'info'] as const;
export type Severity = (typeof severities)[number];

export const workflowNames = {
  applyEvents: 'applyEvents',
  catchUp: 'catchUp',
  wakeCatchUps: 'wakeCatchUps',
  dropPayloads: 'dropPayloads',
  backfillAll: 'backfillAll',
  backfillCompany: 'backfillCompany',
  reconcile: 'reconcile',
  checkData: 'checkData',
} as const;

export const workflowIds = {
  /** A lone event, or a group named after its first event and how many follow it. Unix seconds of the delivery. */
  events: (firstId: string, count: number, timestamp: number): string =>
    count === 1 ? `event/${firstId}/${timestamp}` : `events/${firstId}+${count - 1}/${timestamp}`,
  /** A replay of kept events, named after the first of them. */
  replay: (firstId: string, replayId: string): string => `replay/${firstId}/${replayId}`,
  catchUp: (kind: CatchUpKind): string => `catch-up/${kind}`,
  backfillAll: (runId: string): string => `backfill-run/${runId}`,
  backfillCompany: (companyId: string): string => `backfill/${companyId}`,
  reconcile: (runId: string): string => `reconcile/${runId}`,
  checkData: (runId: string): string => `checks/${runId}`,
} as const;

export const signalNames = { wake: 'wake' } as const;
export const queryNames = { progress: 'progress' } as const;
export const scheduleIds = {
  wakeCatchUps: 'metersync-wake-catch-ups',
  dropPayloads: 'metersync-drop-payloads',
  full: 'metersync-backfill',
  reconcile: 'metersync-reconcile',
} as const;

/** What became of an event. */
export const eventOutcomes = ['pending', 'applied', 'superseded', 'ignored', 'dead', 'missing'] as const;
export type EventOutcome = (typeof eventOutcomes)[number];

/** What a table or view is exported as. */
export const exportFormats = ['csv', 'parquet'] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** Records whose whole story can be told. */
export const tracedKinds = ['document', 'connection', 'meter'] as const;
export type TracedKind = (typeof tracedKinds)[number];

/** Everything that the service has, or what was updated lately. */
export const runKinds = ['full', 'reconcile'] as const;
export type RunKind = (typeof runKinds)[number];

/** What of a company is read by what was updated lately: where the service has a filter for that. */
export const reconciledResources = ['documents', 'usageData'] as const;
export type ReconciledResource = (typeof reconciledResources)[number];

/** How a run, or one resource of a company in it, stands. */
export const runStates = ['running', 'complete', 'partial', 'suspect', 'failed'] as const;
export type RunState = (typeof runStates)[number];
