/**
 * One verified delivery, as it travels from the receiver through Temporal to the journal. The body is the
 * signed body without its secrets. It is text, or base64 if the text would exceed Temporal's payload limit.
 */
export interface DeliveredEvent {
  /** Message id: the same on every attempt to deliver the event (service.md 5.3). */
  readonly id: string;
  /** Unix seconds of this attempt. */
  readonly timestamp: number;
  /** When the receiver had the whole request: ISO 8601, UTC. */
  readonly receivedAt: string;
  readonly body?: string;
  readonly bodyBase64?: string;
}

/** Input of `applyEvents`. No other payload in Temporal carries events. */
export interface EventGroup {
  readonly events: readonly DeliveredEvent[];
  /** Number of signed deliveries that the receiver refused since its last report, by reason. Sent without events. */
  readonly refused?: Readonly<Record<string, number>>;
  /** Set when an operator replays events of the journal. */
  readonly replay?: Replay;
}

/** Which events a replay records again: all except applied events, or all. */
export type Replay = 'unapplied' | 'all';
