/** Every workflow, under the name by which clients start it (contract/names.ts). */

export { backfill, backfillUpdates } from './backfill.ts';
export { catchUp } from './catch-up.ts';
export { checkData } from './checks.ts';
export { applyEvents } from './events.ts';
export { dropPayloads } from './retention.ts';
export { sweep } from './sweep.ts';
export { watch } from './watch.ts';
