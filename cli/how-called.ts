/** How the user called the command: in a checkout through npm, otherwise by its name. */
export const howCalled = (env: NodeJS.ProcessEnv = process.env): string =>
  env.npm_lifecycle_event === undefined ? 'metersync' : 'npm run -s metersync --';
