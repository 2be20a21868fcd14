import { httpLimits } from '../../receiver/http-limits.ts';

/**
 * Returns how many sockets a receiver accepts: at most half of the files that this process may open. Beyond
 * the limit of files the system closes new sockets without notice, so no socket could make room for another.
 */
export function connectionsMaxFor(filesMax: number = openFilesMax()): number {
  return Math.min(httpLimits.connectionsMax, Math.floor(filesMax / 2));
}

/** Returns how many files and sockets this process may open; Infinity without a limit, or if it is not known. */
function openFilesMax(): number {
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft?: number | 'unlimited' } };
  };
  const max = userLimits?.open_files?.soft;
  return typeof max === 'number' ? max : Number.POSITIVE_INFINITY;
}
