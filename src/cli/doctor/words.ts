const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const;

/** An amount of storage for people. */
export function size(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  for (; amount >= 1_000 && unit < UNITS.length - 1; unit++) amount /= 1_000;
  return `${unit > 0 && amount < 10 ? amount.toFixed(1) : Math.round(amount)} ${UNITS[unit]}`;
}

/** `1 job`, `12,345 jobs`. */
export function count(amount: number, one: string, many: string = `${one}s`): string {
  return `${amount.toLocaleString('en-US')} ${amount === 1 ? one : many}`;
}

/** The first few, and how many more there are. */
export function some(items: readonly string[], most: number = 5): string {
  const more = items.length - most;
  return more > 0 ? `${items.slice(0, most).join(', ')} and ${more} more` : items.join(', ');
}

/** `reports (3 jobs)`: jobs added up by a text, the most first. */
export function added(jobs: readonly { readonly text: string; readonly amount: number }[]): string[] {
  const groups = [...Map.groupBy(jobs, ({ text }) => text)].map(
    ([text, members]) => [text, members.reduce((sum, { amount }) => sum + amount, 0)] as const,
  );
  return groups.sort(([, a], [, b]) => b - a).map(([text, amount]) => `${text} (${count(amount, 'job')})`);
}
