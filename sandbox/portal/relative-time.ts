import * as web from '../../web/times.ts';
import { fromText, type Micros } from '../timestamps.ts';

/** Says in words how long before or after `now` a timestamp is: "3 minutes ago", "in 5 hours", "just now". */
export const relativeTime = (at: string, now: Micros): string =>
  web.relativeTime(Number(fromText(at) - now) / 1_000_000);

/** A timestamp to the second: "21 Nov 2026, 09:47:41 UTC". */
export const readableTime = (at: string): string => web.readableTime(new Date(`${at.slice(0, 23)}Z`));

/** A timestamp with all of its digits: "2026-11-21 09:47:41.123456 UTC". */
export const exactTime = (at: string): string => `${at.replace('T', ' ')} UTC`;
