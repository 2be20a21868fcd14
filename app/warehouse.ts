import type { Logger } from 'pino';
import { connectWarehouse, type Warehouse } from '../db/connect.ts';
import type { Settings } from './settings.ts';

export { companiesOfExternalId, hasCompany } from '../db/companies.ts';
export type { Database, Warehouse } from '../db/connect.ts';
export {
  approveDeletes,
  type InferredDeletes,
  readDeletes,
  rejectDeletes,
  undoDeletes,
} from '../db/deletes/decide.ts';
export { withoutStatement } from '../db/failures.ts';
export {
  type DataIssue,
  type DataIssueCheck,
  type IssueFilter,
  type IssueNames,
  listDataIssues,
  namesOfIssues,
  readChecks,
} from '../db/read/issues.ts';
export {
  eventLatency,
  type Latency,
  type ParkedWork,
  readStatus,
  type WarehouseStatus,
} from '../db/read/status.ts';
export { recordsWaiting } from '../db/read/waiting.ts';

/** Opens the warehouse as the settings say; `max` connections at most. */
export function openWarehouse(settings: Settings, url: string, log: Logger, max = 4): Warehouse {
  return connectWarehouse({
    url,
    timeZone: settings.service.timeZone,
    max,
    onError: (error) => log.warn({ err: error }, 'a connection to the warehouse was lost'),
  });
}
