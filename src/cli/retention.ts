import { checkOneOf, unexpected } from '../config.ts';
import { finishedStates } from '../job.ts';
import type { MulliganOptions } from '../mulligan.ts';
import { readDuration } from './flags.ts';

/** `completed=30d,dead=forever`; what is not named keeps its default. */
export function readRetention(text: string): NonNullable<MulliganOptions['retention']> {
  const kept = text.split(',').map((part) => {
    const [state = '', duration = '', ...more] = part.split('=');
    if (duration === '' || more.length > 0) {
      throw unexpected(
        '--retention',
        'state=duration, several with commas',
        text,
        'For example completed=30d,dead=forever.',
      );
    }
    checkOneOf(state, finishedStates, '--retention');
    return [state, duration === 'forever' ? null : readDuration(duration, `--retention ${state}`)];
  });
  return Object.fromEntries(kept);
}
