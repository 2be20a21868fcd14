import type { OperatorRole } from '../contract/names.ts';

/** The user who sent a request. */
export interface Identity {
  readonly name: string;
  readonly role: OperatorRole;
}
