import type { Markup } from '../web/markup.ts';
import type { Asking } from './asking.ts';

/** What an action would do, before anybody confirms it. */
export interface Question {
  readonly title: string;
  /** How many of what, and the effect. */
  readonly says: string;
  /** What has to be filled in. */
  readonly fields?: Markup;
  readonly button: string;
  readonly danger?: boolean;
  /**
   * @param form what was filled in
   * @param operation its id in the log
   * @returns what it did
   * @throws Refused when there is nothing to do it with
   */
  readonly act: (
    form: URLSearchParams,
    progress: (words: string) => void,
    operation: number,
  ) => Promise<string>;
}

/** Reads what an action would do. @throws Refused when there is nothing to do */
export type Ask = (asking: Asking) => Promise<Question>;
