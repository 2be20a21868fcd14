import type { DataCheck } from '../activities/check-data.ts';
import { checking } from './proxies.ts';

/** Looks at what a run has read: issues are opened and closed in `ops.data_issues`. */
export async function checkData(input: DataCheck): Promise<void> {
  await checking.checkData(input);
}
