import type { Answer } from './answers.ts';

export interface Counted {
  readonly count: number;
  /** False: there are more. */
  readonly isExact: boolean;
}

type Forecast = Answer<'getForecast'>;
type Lane = Forecast['lanes'][number];

export interface Waiting {
  readonly ready: Counted;
  readonly retrying: Counted;
  readonly scheduled: Counted;
}

/** What waits in these lanes of a forecast, which reads a bounded number of rows, however many jobs wait. */
export function waitingIn(lanes: readonly Lane[], { isComplete }: Pick<Forecast, 'isComplete'>): Waiting {
  const isFresh = ({ lane }: Lane): boolean => lane === 'fresh';
  const sum = (parts: readonly Counted[]): Counted => ({
    count: parts.reduce((total, { count }) => total + count, 0),
    isExact: isComplete && parts.every(({ isExact }) => isExact),
  });
  return {
    ready: sum(lanes.map(({ due }) => due)),
    retrying: sum(lanes.filter((lane) => !isFresh(lane)).map(({ later }) => later)),
    scheduled: sum(lanes.filter(isFresh).map(({ later }) => later)),
  };
}
