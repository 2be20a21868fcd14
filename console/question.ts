import type { Markup } from '../web/markup.ts';
import type { Asking } from './asking.ts';

/** What an action would do, before anybody confirms it. */
export interface Question {
  readonly title: string;
  /** How many records the action applies to, and its effect. */
  readonly says: string;
  /** The fields to fill in. */
  readonly fields?: Markup;
  readonly button: string;
  readonly danger?: boolean;
  /**
   * @param form the values that were filled in
   * @param operation id of the operation in the log
   * @returns what it did
   * @throws Refused if it does not apply to anything
   */
  readonly act: (form: URLSearchParams, operation: number) => Promise<string>;
}

/** Reads what an action would do. @throws Refused when there is nothing to do */
export type Ask = (asking: Asking) => Promise<Question>;
