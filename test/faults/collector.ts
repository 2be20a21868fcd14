import type { TaskMeta } from 'vitest';
import type { Reporter, TestCase, TestModule } from 'vitest/node';

/** Collects the reports of passed tests while Vitest runs. */
export interface Collector extends Reporter {
  readonly passed: readonly TaskMeta[];
  readonly failed: boolean;
}

export function createCollector(): Collector {
  const passed: TaskMeta[] = [];
  let failed = false;
  return {
    passed,
    get failed() {
      return failed;
    },
    onTestCaseResult(test: TestCase) {
      const said = test.meta();
      if (test.result().state === 'failed') failed = true;
      else if (test.result().state === 'passed' && Object.keys(said).length > 0) passed.push(said);
    },
    onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]) {
      failed ||= errors.length > 0 || modules.some((module) => module.errors().length > 0);
    },
  };
}
