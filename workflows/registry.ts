/** Every workflow, by the name that clients start it under (contract/names.ts). */
export { applyEvents } from './apply-events.ts';
export { backfillAll } from './backfill-all.ts';
export { backfillCompany } from './backfill-company.ts';
export { catchUp } from './catch-up.ts';
export { checkData } from './check-data.ts';
export { dropPayloads } from './drop-payloads.ts';
export { reconcile } from './reconcile.ts';
export { wakeCatchUps } from './wake-catch-ups.ts';
