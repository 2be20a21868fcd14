import type { RecordEventKind } from '../contract/event.ts';
import type { FailureCode } from '../contract/failures.ts';
import type { RunKind, RunState, Severity } from '../contract/names.ts';
import type { SchemaVersions } from '../contract/schema-versions.ts';

/** The measurements of a deployment. Every statement about its health is derived from them. */

/** The last finished run of a kind. Complete first backfills of a single company are left out. */
export interface LastRun {
  readonly runId: string;
  readonly state: RunState;
  readonly startedAt: string;
  readonly finishedAt: string;
  readonly error: string | null;
  /** Whether the only thing that it lacks is a decision on deletions, which somebody still has to make. */
  readonly awaitsDecision: boolean;
  /** Rows that changed or disappeared without the event that should have reported it. */
  readonly missedRows: number;
  /** Its parts by state: resources of companies, and the list of companies. */
  readonly parts: Readonly<Record<RunState, number>>;
}

/** A run that has not ended. */
export interface RunUnderWay {
  readonly runId: string;
  readonly startedAt: string;
  /** When it last stored a page, or began or ended a part. */
  readonly progressAt: string;
  readonly progressSecondsAgo: number;
}

/** The runs of a kind. */
export interface KindOfRuns {
  readonly running: number;
  /** The running run whose last page is the oldest. */
  readonly underWay: RunUnderWay | null;
  readonly last: LastRun | null;
  /** When the last complete run of all companies ended. */
  readonly lastCompleteAt: string | null;
  readonly lastCompleteSecondsAgo: number | null;
}

/** `due` is read at once, `waiting` is read again later, and `parked` waits until somebody acts. */
export const pendingStates = ['due', 'waiting', 'parked'] as const;
type PendingState = (typeof pendingStates)[number];

/** Pending events of a kind. */
export interface PendingEvents extends Readonly<Record<PendingState, number>> {
  /** How long its oldest due record has been due; null if none is due. */
  readonly oldestDueSeconds: number | null;
  /** How long the oldest pending event has waited; null if none is pending. */
  readonly oldestSeconds: number | null;
}

/** Pending events that were postponed for the same failure. */
export interface WaitingEvents {
  readonly code: FailureCode;
  /** The alphabetically first error message of these events. */
  readonly reason: string;
  readonly events: number;
  /** Number of companies of the events; for intervals, of meters. */
  readonly owners: number;
  readonly since: string;
  /** When the first of them are tried again. */
  readonly nextAttemptAt: string | null;
}

/** Work parked for one failure: events, and parts of backfills that no later run has read. */
export interface ParkedWork {
  readonly code: FailureCode;
  /** The alphabetically first error message of this work. */
  readonly reason: string;
  readonly events: number;
  /** Number of companies whose events wait; for intervals, of meters. */
  readonly owners: number;
  readonly parts: number;
  readonly since: string;
  /** When the events are tried again automatically; null if only a backfill or a resume tries again. */
  readonly nextAttemptAt: string | null;
}

/** Measures of whether the service's events arrive. */
export interface Silence {
  /** When the last event of the service was received; null if there was none. */
  readonly lastEventAt: string | null;
  /** Seconds since then or, without any event, since the first run began; null before that. */
  readonly quietSeconds: number | null;
  /**
   * Changes that runs found since the last event, or in the last day, and events should have reported. Runs
   * that ended while accepted events waited to be recorded are left out.
   */
  readonly missedRows: number;
  /** Companies with such changes, and when the last of them was found. */
  readonly missedCompanies: number;
  readonly missedAt: string | null;
}

/** The rows whose deletion waits for a decision. */
export interface Undecided {
  readonly byResource: readonly { readonly resource: string; readonly rows: number }[];
  readonly companies: number;
  /** How many of the rows the service itself lists as deleted. */
  readonly listedAsDeleted: number;
  /** What the bills among them cost, for each currency: `526,839.17 USD`. Empty if there are many bills. */
  readonly cost: readonly string[];
}

/** Signed deliveries that receivers refused. `reasons` and `since` start again after ten minutes without any. */
export interface RefusedDeliveries {
  readonly reasons: Readonly<Record<string, number>>;
  readonly since: string;
  /** When the last of them was reported. */
  readonly until: string;
  readonly untilSecondsAgo: number;
  /** From the first report to the last. */
  readonly lastedSeconds: number;
  /** How many were refused since the last complete run of all companies; 0 if such a run began after the last. */
  readonly unread: number;
}

/** An audit that found differences, and after which nothing has shown that they are gone. */
export interface DifferingAudit {
  readonly differences: number;
  readonly finishedAt: string;
}

/** The delay of the last events that were settled, in seconds from their receipt. */
interface Delay {
  readonly p50: number;
  readonly p99: number;
}

/** Why work is late: whether reads still settle events, and what holds up most of the waiting events. */
export interface LateWork {
  /** How long ago a read last settled events; null if none ever did. */
  readonly settledSecondsAgo: number | null;
  /** The failure that most of the waiting events have; null if none of them has failed yet. */
  readonly reason: { readonly code: FailureCode; readonly events: number } | null;
}

/**
 * Health from the tables of the warehouse; ages are in seconds. Counts stop one above `limits.countMax`, as
 * `countInWords` prints `10,000+`; those of dead and missing events at `limits.givenUpMax`.
 */
export interface WarehouseHealth {
  readonly pending: Readonly<Record<RecordEventKind, PendingEvents>>;
  /** How long the oldest due record has been due; null if none is due. */
  readonly oldestDueSeconds: number | null;
  /** Why due work is late; null if none is. */
  readonly late: LateWork | null;
  readonly dead: number;
  /** Events that became missing within the last day. */
  readonly missingLately: number;
  /** Events that wait because of a failure, by failure, most events first. */
  readonly waiting: readonly WaitingEvents[];
  /** Parked work by failure, longest parked first. An outage counts, too. */
  readonly parked: readonly ParkedWork[];
  readonly runs: Readonly<Record<RunKind, KindOfRuns>>;
  /** Whether any backfill of all companies ever ended with data. */
  readonly loaded: boolean;
  readonly undecidedDeletes: number;
  /** More about these deletions; null if there are none. */
  readonly undecided: Undecided | null;
  /** Rows that somebody decided to keep and that the service no longer has. */
  readonly keptDeletes: number;
  readonly rejectedRecords: number;
  readonly silence: Silence;
  /** Null if receivers refused no signed delivery. */
  readonly refused: RefusedDeliveries | null;
  /** The last of these audits; null if there is none. */
  readonly audit: DifferingAudit | null;
  /** After this many hours without an event, it is likely that none can arrive; 0 turns this off. */
  readonly silenceHours: number;
  /** From receipt to the row, and to the read of the record; null before the first event. */
  readonly delays: Readonly<Record<'row' | 'record', Delay | null>>;
  /** Interval events whose ranges have fewer readings than reported, and how many readings are lacking. */
  readonly intervalShortfall: { readonly events: number; readonly readings: number };
  /** Open issues of the data that nobody acknowledged. */
  readonly issues: readonly { readonly check: string; readonly severity: Severity; readonly open: number }[];
  readonly acknowledgedIssues: number;
  readonly watch: WatchHealth;
}

/** The watch, and the alarms that it opened. */
export interface WatchHealth {
  /** When it last ran; null before the first time. */
  readonly lookedAt: string | null;
  readonly lookedSecondsAgo: number | null;
  readonly open: readonly {
    readonly name: string;
    readonly key: string;
    readonly openedAt: string;
    /** When it was sent; null if it was not sent. */
    readonly notifiedAt: string | null;
  }[];
  /** Who acknowledged open findings, or findings that are about to open an alarm. */
  readonly acknowledged: readonly {
    readonly name: string;
    readonly key: string;
    readonly by: string;
    readonly at: string;
    readonly note: string | null;
    /** What the finding counted when it was acknowledged. A higher count is not acknowledged. */
    readonly counts: Readonly<Record<string, number>>;
  }[];
  /** For how long NOTIFY_URL has not accepted an alarm, and why not; null if no alarm waits. */
  readonly unsent: { readonly seconds: number; readonly error: string } | null;
}

export interface ScheduleHealth {
  readonly name: RunKind;
  readonly state: 'active' | 'paused' | 'absent';
  /** Whether the settings ask for it. */
  readonly isWanted: boolean;
  readonly reason: string | null;
  /** When it starts the next run, ISO 8601. */
  readonly next: string | null;
  /** The longest time between two of its next starts; null if there is no next start. */
  readonly intervalSeconds: number | null;
}

/** Health as Temporal shows it. */
export interface TemporalHealth {
  /** Queues without a worker. */
  readonly idle: readonly string[];
  /** The workers to which Temporal gives events, if none of them polls; otherwise null. */
  readonly absent: string | null;
  readonly schedules: readonly ScheduleHealth[];
  /** Groups of events that were acknowledged and are not yet recorded. */
  readonly openGroups: number;
  /** Groups among them that began to wait more than `recordPolicy.lagSeconds` ago, or `waitMaxSeconds` ago. */
  readonly lateGroups: number;
  readonly stalledGroups: number;
  /** Running workflows whose task failed several times in a row; null if this Temporal does not say. */
  readonly stuckWorkflows: number | null;
  /** Whether the last watch found Postgres away, so that it could not note that it looked. */
  readonly foundAway: boolean;
  /** When the client certificate for Temporal expires, ISO 8601; null if there is none. */
  readonly certificate: { readonly expiresAt: string; readonly secondsLeft: number } | null;
}

/** Why the warehouse or Temporal could not be reached, and what to do about it. */
export interface Away {
  readonly away: string;
  readonly todo: string;
  /** A summary in a few words, unless it does not answer. */
  readonly brief?: string;
  /** Set for a Temporal that neither runs here nor is configured: then no worker can be running. */
  readonly nothingRuns?: true;
}

export interface Health {
  readonly warehouse: WarehouseHealth | Away;
  readonly temporal: TemporalHealth | Away;
  /** Null while Postgres does not answer, or accepts no writes. */
  readonly schema: SchemaVersions | null;
  /** Servers that did not answer in time, but answered when they were asked again. */
  readonly slow?: readonly ('Postgres' | 'Temporal')[];
  /** Whether the sandbox replaces the service; not when not given. */
  readonly sandbox?: boolean;
}
