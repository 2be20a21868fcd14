import { field } from '../../web/form.ts';
import { fromText, type Micros, secondsToMicros, toText } from '../timestamps.ts';

/** The choice of a time, as forms send it and show it again. */
export interface WindowChoice {
  readonly choice: WindowName;
  /** What was typed for `custom`: `YYYY-MM-DDTHH:MM[:SS]`, UTC. */
  readonly from: string;
  readonly until: string;
}

/** Seconds back from now; null for no limit. */
export const windows = {
  any: { name: 'Any time', seconds: null },
  '1h': { name: 'Last hour', seconds: 3_600 },
  '24h': { name: 'Last 24 hours', seconds: 86_400 },
  '7d': { name: 'Last 7 days', seconds: 604_800 },
  custom: { name: 'Custom…', seconds: null },
} as const;
export type WindowName = keyof typeof windows;

export function readWindow(form: URLSearchParams, otherwise: WindowName): WindowChoice {
  const asked = field(form, 'when');
  const choice = Object.hasOwn(windows, asked) ? (asked as WindowName) : otherwise;
  return { choice, from: field(form, 'from'), until: field(form, 'until') };
}

export interface TimeWindow {
  /** Inclusive; null for no limit. */
  readonly from: string | null;
  /** Exclusive; null for no limit. */
  readonly until: string | null;
}

/** Returns the window that a choice means at `now`, or what is wrong with the times that were typed. */
export function windowOf({ choice, from, until }: WindowChoice, now: Micros): TimeWindow | { wrong: string } {
  if (choice === 'custom') return customWindow(from, until);
  const { seconds } = windows[choice];
  return { from: seconds === null ? null : toText(now - secondsToMicros(seconds)), until: null };
}

function customWindow(from: string, until: string): TimeWindow | { wrong: string } {
  const first = momentOf(from);
  const last = momentOf(until);
  if (first === undefined || last === undefined) {
    return { wrong: 'Write times as date and time, for example 2026-07-01T14:30.' };
  }
  if (first === null && last === null) return { wrong: 'Choose when the time begins or ends.' };
  if (first !== null && last !== null && first >= last)
    return { wrong: 'The time must end after it begins.' };
  return { from: first === null ? null : toText(first), until: last === null ? null : toText(last) };
}

/** Null if nothing was typed, undefined for a text that is not a time. */
function momentOf(text: string): Micros | null | undefined {
  if (text === '') return null;
  const full = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$/.test(text) ? `${text}:00` : text;
  try {
    const at = fromText(full);
    return at >= 0n ? at : undefined;
  } catch {
    return undefined;
  }
}
