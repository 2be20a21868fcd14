import { Context } from '@temporalio/activity';
import { workflowNames } from '../../contract/names.ts';
import type { PageWritten } from '../../db/records/write-page.ts';
import type { ListedResource } from '../../db/resources.ts';

/** Rows of a resource that an activity wrote. */
export interface RowsWritten extends Pick<PageWritten, 'inserted' | 'changed' | 'rejected'> {
  readonly resource: ListedResource | 'intervals';
  readonly by: 'event' | 'catch_up' | 'backfill' | 'reconcile';
}

/** Reports rows that the activity wrote, with the work that it belongs to. */
export function noteWritten(
  { onWritten }: { readonly onWritten?: ((rows: RowsWritten) => void) | undefined },
  resource: RowsWritten['resource'],
  { inserted, changed, rejected }: PageWritten,
): void {
  if (onWritten === undefined) return;
  const { workflowType } = Context.current().info;
  const by =
    workflowType === workflowNames.sweep || workflowType === workflowNames.applyEvents
      ? 'catch_up'
      : workflowType === workflowNames.backfillUpdates
        ? 'reconcile'
        : 'backfill';
  onWritten({ resource, by, inserted, changed, rejected });
}
