import { counted } from './words.ts';

/** Migrations that this code knows, and that the warehouse has. */
export interface SchemaVersions {
  readonly known: number;
  readonly applied: number;
  /** Code that knows fewer migrations than this may not write. */
  readonly floor: number;
}

/** `ahead`: newer than the code, which may still write. `tooNew`: the code must not write. */
type SchemaFit = 'same' | 'behind' | 'ahead' | 'tooNew';

export function fitOf({ known, applied, floor }: SchemaVersions): SchemaFit {
  if (applied === known) return 'same';
  if (applied < known) return 'behind';
  return floor <= known ? 'ahead' : 'tooNew';
}

/** Why a migration refuses a newer schema: it would replace newer views with older views. */
export const newerSchema = 'the warehouse was migrated by a newer metersync: upgrade this metersync';

/** What was found and what to do about it, for each fit except `same`. */
export function describeFit(versions: SchemaVersions): { readonly saw: string; readonly todo: string } {
  const { known, applied, floor } = versions;
  if (applied < known)
    return {
      saw: `the warehouse lacks ${counted(known - applied, 'migration')}`,
      todo: 'Run metersync migrate first.',
    };
  const more = `the warehouse has ${counted(applied - known, 'migration')} that this metersync does not know`;
  if (fitOf(versions) === 'ahead')
    return { saw: `${more}, and accepts the writes of this metersync`, todo: 'Upgrade this metersync.' };
  return {
    saw: `${more}: code that writes to it has to know ${floor} migrations, and this metersync knows ${known}`,
    todo: 'Upgrade this metersync.',
  };
}
