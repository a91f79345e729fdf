/* Results: what handlers returned. */
export const resultsTables = `
  ALTER TABLE jobs ADD COLUMN result TEXT;   -- what the handler returned, as encodeResult in result.ts writes it
`;
