import { userInfo } from 'node:os';

/** The user of the system, by number if it has no name. */
export function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
