import { hostname, userInfo } from 'node:os';
import { checkName } from './config.ts';

/** Who runs this process. A container may run one as a user without a name. */
export function operatorName(): string {
  try {
    return checkName(`${userInfo().username}@${hostname()}`, 'user');
  } catch {
    return 'api';
  }
}
