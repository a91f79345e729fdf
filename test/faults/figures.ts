/** What a soak is run for, beside its end. */
export function tell(what: string, figures: Readonly<Record<string, number>>): void {
  if (process.env.MULLIGAN_SOAK_SECONDS === undefined) return;
  const said = Object.entries(figures).map(([name, figure]) => `${figure} ${name}`);
  console.info(`${what}: ${said.join(', ')}`);
}
