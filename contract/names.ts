/** Names that receivers, workers, commands and users of Temporal's web page must agree on. */

/**
 * One queue for each kind of work: a long backfill never delays an event, checks delay neither of them, and
 * nothing delays the watch of each minute.
 */
export const taskQueues = {
  events: 'metersync-events',
  backfill: 'metersync-backfill',
  checks: 'metersync-checks',
  watch: 'metersync-watch',
} as const;

/** The kinds of records that events name. */
export const catchUpKinds = ['connections', 'documents', 'intervals'] as const;
export type CatchUpKind = (typeof catchUpKinds)[number];

/** An owner of records of a kind: a company, or the meter of readings. */
export interface Queue {
  readonly kind: CatchUpKind;
  readonly owner: string;
}

/** The data that checks examine. Checks of intervals take longest, and reconciles read no intervals. */
export const checkKinds = ['bills', 'connections', 'intervals'] as const;
export type CheckKind = (typeof checkKinds)[number];

/** Why an issue is closed: its evidence is gone, its check is off, or its check was removed. */
export const closedReasons = ['evidence_gone', 'check_off', 'check_removed'] as const;
export type ClosedReason = (typeof closedReasons)[number];

/** How much an issue matters. */
export const severities = ['error', 'warning', 'info'] as const;
export type Severity = (typeof severities)[number];

export const workflowNames = {
  applyEvents: 'applyEvents',
  sweep: 'sweep',
  catchUp: 'catchUp',
  watch: 'watch',
  dropPayloads: 'dropPayloads',
  backfill: 'backfill',
  backfillUpdates: 'backfillUpdates',
  checkData: 'checkData',
} as const;

export const workflowIds = {
  /**
   * Names one event, or a group by its first event and the number of events that follow. `timestamp`: Unix
   * seconds of the delivery.
   */
  events: (firstId: string, count: number, timestamp: number): string =>
    count === 1 ? `event/${firstId}/${timestamp}` : `events/${firstId}+${count - 1}/${timestamp}`,
  /** Names a group of a replay by its first event, and by the replay's id in the log of operations. */
  replay: (firstId: string, operation: number): string => `replay/${firstId}/${operation}`,
  sweep: 'sweep',
  backfill: (runId: string): string => `backfill-run/${runId}`,
  reconcile: (runId: string): string => `reconcile/${runId}`,
  checkData: (runId: string): string => `checks/${runId}`,
} as const;

/** Reads the id of a replay in the log of operations from the id of its workflow. */
export function operationOf(workflowId: string): number | undefined {
  const [, operation] = /^replay\/.*\/(\d+)$/s.exec(workflowId) ?? [];
  return operation === undefined ? undefined : Number(operation);
}

export const signalNames = { wake: 'wake' } as const;
export const scheduleIds = {
  watch: 'metersync-watch',
  dropPayloads: 'metersync-drop-payloads',
  full: 'metersync-backfill',
  reconcile: 'metersync-reconcile',
} as const;

/** What became of an event. */
export const eventOutcomes = ['pending', 'applied', 'superseded', 'ignored', 'dead', 'missing'] as const;
export type EventOutcome = (typeof eventOutcomes)[number];

/** File formats of an export. */
export const exportFormats = ['csv', 'parquet'] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** Records whose history a command can print. */
export const tracedKinds = ['document', 'connection', 'meter'] as const;
export type TracedKind = (typeof tracedKinds)[number];

/** `full` reads everything that the service has; `reconcile` reads recent updates. */
export const runKinds = ['full', 'reconcile'] as const;
export type RunKind = (typeof runKinds)[number];

/** The resources that a reconcile reads, because they can be filtered by `updated`. */
export const reconciledResources = ['documents', 'usageData'] as const;
export type ReconciledResource = (typeof reconciledResources)[number];

/** States of a run, or of a part of it: one resource of a company. */
export const runStates = ['running', 'complete', 'partial', 'suspect', 'failed'] as const;
export type RunState = (typeof runStates)[number];

/** Who may do what: a viewer can look, an operator can act. */
export const operatorRoles = ['viewer', 'operator'] as const;
export type OperatorRole = (typeof operatorRoles)[number];

/** The actions of people, as the log of operations names them. */
export const operationActions = [
  'resume',
  'replay',
  'backfill',
  'reconcile',
  'schedule pause',
  'schedule resume',
  'schedule trigger',
  'deletes approve',
  'deletes reject',
  'deletes undo',
  'alerts acknowledge',
  'alerts unacknowledge',
  'issue acknowledge',
  'issue unacknowledge',
  'webhooks enable',
  'webhooks disable',
  'audit',
  'audit repair',
  'sites set',
  'views apply',
  'migrate',
  'doctor',
] as const;
export type OperationAction = (typeof operationActions)[number];

/** Where people start an action. */
export const operationSources = ['console', 'command'] as const;

/** How an action ended. An action without an outcome is under way, or its process ended before it. */
export const operationOutcomes = ['done', 'failed', 'refused'] as const;
export type OperationOutcome = (typeof operationOutcomes)[number];
