import { type Client, isGrpcServiceError } from '@temporalio/client';
import { until } from './poll.ts';

/** gRPC's number of FAILED_PRECONDITION: Temporal does not know yet that the build polls. */
const failedPrecondition = 9;

/** Gives the work to a build, as `temporal worker deployment set-current-version` does. */
export async function promote(client: Client, deploymentName: string, buildId: string): Promise<void> {
  const { namespace } = client.options;
  await until(`build ${buildId} is current`, async () => {
    try {
      await client.workflowService.setWorkerDeploymentCurrentVersion({ namespace, deploymentName, buildId });
      return true;
    } catch (error) {
      if (isGrpcServiceError(error) && Number(error.code) === failedPrecondition) return false;
      throw error;
    }
  });
}
