import type { Reporter, TestCase, TestModule } from 'vitest/node';
import type { FaultReport } from './fault.ts';

/** Collects the reports of faults while vitest runs. */
export interface Collector extends Reporter {
  readonly reports: readonly FaultReport[];
  readonly failed: boolean;
}

/** Calls `onReport` after each fault that passed, with all reports so far. */
export function createCollector(onReport: (reports: readonly FaultReport[]) => void): Collector {
  const reports: FaultReport[] = [];
  let failed = false;
  return {
    reports,
    get failed() {
      return failed;
    },
    onTestCaseResult(test: TestCase) {
      const { fault } = test.meta();
      if (test.result().state === 'failed') failed = true;
      else if (fault !== undefined) {
        reports.push(fault);
        onReport(reports);
      }
    },
    onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]) {
      failed ||= errors.length > 0 || modules.some((module) => module.errors().length > 0);
    },
  };
}
