/** A door at which requests wait until the test opens it, so that no test sleeps. */
export interface Door {
  pass(): Promise<void>;
  /** Lets in the waiting requests, and all later ones. */
  open(): void;
  readonly waiting: number;
}

export function createDoor(): Door {
  const waiting: (() => void)[] = [];
  let isOpen = false;
  return {
    pass: () => (isOpen ? Promise.resolve() : new Promise<void>((resolve) => waiting.push(resolve))),
    open() {
      isOpen = true;
      for (const go of waiting.splice(0)) go();
    },
    get waiting() {
      return waiting.length;
    },
  };
}
