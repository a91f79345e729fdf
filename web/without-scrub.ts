/* What the pages have in the place of src/untrusted/scrub.ts: the server shows no credentials, and errors that are simulated have none. */

export const SECRET = '***';

export function scrub(text: string): string {
  return text;
}
