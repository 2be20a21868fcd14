import type { DataCheck } from '../activities/checks.ts';
import { checking } from './activity-options.ts';

/** Checks the data of a run: opens and closes issues in `ops.data_issues`. */
export async function checkData(input: DataCheck): Promise<void> {
  await checking.checkData(input);
}
