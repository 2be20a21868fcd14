import type { DataCheck } from '../activities/checks.ts';
import { checking } from './activity-options.ts';

/** Looks at what a run has read: issues are opened and closed in `ops.data_issues`. */
export async function checkData(input: DataCheck): Promise<void> {
  await checking.checkData(input);
}
