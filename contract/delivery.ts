/**
 * One verified delivery, as it travels from the receiver through Temporal to the journal. The body is
 * what the service signed, less its secrets: as text, or as base64 where its JSON encoding would outgrow Temporal's payload limit.
 */
export interface DeliveredEvent {
  /** Message id: the same on every attempt to deliver the event (seed 5.3). */
  readonly id: string;
  /** Unix seconds of this attempt. */
  readonly timestamp: number;
  /** When the receiver had the whole request: ISO 8601, UTC. */
  readonly receivedAt: string;
  readonly body?: string;
  readonly bodyBase64?: string;
}

/** Input of `applyEvents`: the only payload that Temporal is given. */
export interface EventGroup {
  readonly events: readonly DeliveredEvent[];
  /** Set when somebody asked for events that the journal knows to be recorded anew. */
  readonly replay?: Replay;
}

/** Which known events a replay records anew: all but those that were applied, or those too. */
export type Replay = 'unapplied' | 'all';
