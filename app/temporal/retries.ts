import {
  type ConnectionOptions,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
} from '@temporalio/client';

type Interceptor = NonNullable<ConnectionOptions['interceptors']>[number];
type Call = ReturnType<Parameters<Interceptor>[1]>;

/** gRPC's CANCELLED, which is not tried again. */
const cancelled = 1;

/** Ends a retry whose connection was closed. The SDK would throw in a timer and so end the process. */
const endWhenClosed = ((options, nextCall) => {
  try {
    return nextCall(options);
  } catch (error) {
    return endedCall((error as Error).message);
  }
}) as Interceptor;

function endedCall(details: string): Call {
  const nothing = (): void => {};
  return {
    start: (metadata, listener) => listener?.onReceiveStatus?.({ code: cancelled, details, metadata }),
    sendMessage: nothing,
    sendMessageWithContext: nothing,
    startRead: nothing,
    halfClose: nothing,
    cancelWithStatus: nothing,
    getPeer: () => '',
    getAuthContext: () => null,
  };
}

/** Retries requests as the SDK does by default, without harm when their connection is closed meanwhile. */
export const retries: readonly Interceptor[] = retriesIf(() => true);

/** Like `retries`, but a request is retried only if `isOn` returns true when it has failed. */
export function retriesIf(isOn: () => boolean): Interceptor[] {
  const usual = defaultGrpcRetryOptions();
  const retryableDecider: typeof usual.retryableDecider = (...failed) =>
    isOn() && usual.retryableDecider(...failed);
  return [makeGrpcRetryInterceptor({ ...usual, retryableDecider }), endWhenClosed];
}
