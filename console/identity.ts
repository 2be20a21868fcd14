import type { OperatorRole } from '../contract/names.ts';

/** Who asks. */
export interface Identity {
  readonly name: string;
  readonly role: OperatorRole;
}
