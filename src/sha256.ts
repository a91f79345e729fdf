/*
 * SHA-256 (FIPS 180-4) for browsers, which have it as a promise only: the simulator runs the same code as Node.js there, and
 * that wants the digest at once. Node.js itself never calls this.
 */

/** The first 32 bits of the fractional parts of a root of the first primes. */
function fractions(count: number, root: (prime: number) => number): Uint32Array {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++) {
    const isPrime = Array.from({ length: n - 2 }, (_, at) => at + 2).every((divisor) => n % divisor !== 0);
    if (isPrime) found.push((root(n) % 1) * 2 ** 32);
  }
  return Uint32Array.from(found);
}

let constants: { readonly start: Uint32Array; readonly rounds: Uint32Array } | null = null;

export function sha256InScript(data: Uint8Array): string {
  constants ??= { start: fractions(8, Math.sqrt), rounds: fractions(64, Math.cbrt) };
  const hash = Uint32Array.from(constants.start);
  const padded = pad(data);
  for (let at = 0; at < padded.byteLength; at += 64) addBlock(hash, padded, at, constants.rounds);
  return [...hash].map((word) => word.toString(16).padStart(8, '0')).join('');
}

/** A one bit, zeros, and the length in bits as the last 64 of a multiple of 512. */
function pad(data: Uint8Array): DataView {
  const bytes = new Uint8Array(Math.ceil((data.length + 9) / 64) * 64);
  bytes.set(data);
  bytes[data.length] = 0x80;
  const view = new DataView(bytes.buffer);
  view.setBigUint64(bytes.length - 8, BigInt(data.length) * 8n);
  return view;
}

function addBlock(hash: Uint32Array, view: DataView, from: number, rounds: Uint32Array): void {
  const words = new Uint32Array(64);
  for (let i = 0; i < 16; i++) words[i] = view.getUint32(from + 4 * i);
  for (let i = 16; i < 64; i++) {
    const [a, b] = [words[i - 15] as number, words[i - 2] as number];
    const low = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3);
    const high = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10);
    words[i] = (words[i - 16] as number) + low + (words[i - 7] as number) + high;
  }
  let [a, b, c, d, e, f, g, h] = hash as unknown as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < 64; i++) {
    const mixE = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const choice = (e & f) ^ (~e & g);
    const first = (h + mixE + choice + (rounds[i] as number) + (words[i] as number)) | 0;
    const mixA = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + mixA + majority) | 0];
  }
  for (const [at, word] of [a, b, c, d, e, f, g, h].entries()) hash[at] = (hash[at] as number) + word;
}

function rotate(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}
