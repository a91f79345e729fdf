/** Mutants that no test can notice, because nothing that anybody could see is different. */
export interface Equivalent {
  readonly file: string;
  /** How its line begins. */
  readonly line: string;
  readonly changes: readonly string[];
  readonly why: string;
}

export const equivalents: readonly Equivalent[] = [
  {
    file: 'src/retry/jitter.ts',
    line: 'return between(baseMs, 3 * Math.max(baseMs, previousDelayMs ?? baseMs), random);',
    changes: ['previousDelayMs ?? baseMs -> previousDelayMs'],
    why: 'For Math.max, null is 0, and the base is never below that.',
  },
  {
    file: 'src/retry/retry-after.ts',
    line: "if (typeof get !== 'function') return undefined;",
    changes: ["typeof get !== 'function' -> false"],
    why: 'Calling what is no function throws, and that is caught.',
  },
  {
    file: 'src/retry/retry-after.ts',
    line: "if (exact !== undefined || typeof headers !== 'object' || headers === null) return exact;",
    changes: [
      "exact !== undefined || typeof headers !== 'object' || hea... -> exact !== undefined || typeof headers !== 'object'",
      "exact !== undefined || typeof headers !== 'object' -> exact !== undefined",
    ],
    why: 'What is no object has no keys to look at, or throws, and that is caught.',
  },
  {
    file: 'src/retry/retry-after.ts',
    line: 'return text !== null && /^\\d+(\\.\\d+)?$/.test(text) ? Number(text) : null;',
    changes: ['text !== null && /^\\d+(\\.\\d+)?$/.test(text) -> /^\\d+(\\.\\d+)?$/.test(text)'],
    why: 'The text of null is no number.',
  },
  {
    file: 'src/retry/retry-after.ts',
    line: 'if (text === null) return null;',
    changes: ['text === null -> false'],
    why: 'The text of null is no date.',
  },
  {
    file: 'src/retry/retry-after.ts',
    line: 'if (headers === undefined) continue;',
    changes: ['headers === undefined -> false'],
    why: 'Only saves time: where there are no headers, none is found.',
  },
  {
    file: 'src/retry/rules.ts',
    line: 'if (error === undefined || error === null || seen.has(error) || seen.size >= MOST_ERRORS) return null;',
    changes: [
      'error === undefined || error === null || seen.has(error) -> seen.has(error)',
      'error === undefined || error === null -> error === undefined',
      'error === undefined || error === null -> error === null',
    ],
    why: 'Nothing matches no rule and has no cause.',
  },
  {
    file: 'src/retry/rules.ts',
    line: 'return rules.length === 0 ? null : matchChain(thrown, rules, new Set());',
    changes: ['rules.length === 0 -> false'],
    why: 'Only saves reading the error: no rule, no match.',
  },
  {
    file: 'src/retry/rules.ts',
    line: 'if (errors === undefined) return null;',
    changes: ['errors === undefined -> false'],
    why: 'Only saves time: what has no members has no match among them.',
  },
  {
    file: 'src/retry/rules.ts',
    line: 'if (status === null) return false;',
    changes: ['status === null -> false'],
    why: 'null lies in no range of statuses.',
  },
  {
    file: 'src/untrusted/stored-error.ts',
    line: 'return frames <= HEADER_BYTES ? stack : tidy(stack.slice(0, frames), HEADER_BYTES) + stack.slice(frames);',
    changes: ['<= -> < in frames <= HEADER_BYTES', '.slice() dropped'],
    why: 'A header that just fits is not shortened; of a longer one only the beginning is kept.',
  },
  {
    file: 'src/untrusted/stored-error.ts',
    line: 'if (stack.length <= HEADER_BYTES) return stack;',
    changes: ['stack.length <= HEADER_BYTES -> false', '<= -> < in stack.length <= HEADER_BYTES'],
    why: 'Only saves looking for the frames: a header is no longer than its stack.',
  },
  {
    file: 'src/untrusted/stored-error.ts',
    line: 'if (text.length <= LONGEST_READ) return trimmed(cleaned(text), maxBytes);',
    changes: ['text.length <= LONGEST_READ -> true', '<= -> < in text.length <= LONGEST_READ'],
    why: 'Only bounds the time it takes: far less than that is kept.',
  },
  {
    file: 'src/untrusted/stored-error.ts',
    line: 'return trimmed(storable(scrub(text.slice(0, LONGEST_READ)).slice(0, -CUT_SECRET)), maxBytes);',
    changes: ['.slice() dropped'],
    why: 'Only bounds the time it takes: far less than that is kept.',
  },
  {
    file: 'src/untrusted/recent.ts',
    line: 'if (text.length > LONGEST_KEY) return value;',
    changes: [
      'text.length > LONGEST_KEY -> false',
      'text.length > LONGEST_KEY -> true',
      '> -> >= in text.length > LONGEST_KEY',
    ],
    why: 'Only bounds the memory it takes; what is not remembered is made again.',
  },
  {
    file: 'src/untrusted/recent.ts',
    line: 'if (this.#known.size >= MOST) this.#known.clear();',
    changes: [
      'this.#known.size >= MOST -> false',
      'this.#known.size >= MOST -> true',
      '>= -> > in this.#known.size >= MOST',
    ],
    why: 'Only bounds the memory it takes; what is not remembered is made again.',
  },
  {
    file: 'src/untrusted/stored-error.ts',
    line: 'const bytes = Buffer.from(text.slice(0, maxBytes)).subarray(0, maxBytes - ELLIPSIS.length);',
    changes: ['.slice() dropped'],
    why: 'Only bounds the time it takes.',
  },
  {
    file: 'src/untrusted/thrown.ts',
    line: 'if (!isObject(value)) return undefined;',
    changes: ['!isObject(value) -> false'],
    why: 'Reading a field of what is no object throws, and that is caught.',
  },
  {
    file: 'src/untrusted/thrown.ts',
    line: 'if (cause === undefined || cause === null || chain.includes(cause)) break;',
    changes: [
      'cause === undefined || cause === null || chain.includes(c... -> chain.includes(cause)',
      'cause === undefined || cause === null -> cause === undefined',
      'cause === undefined || cause === null -> cause === null',
    ],
    why: 'Nothing, at the end of a chain, says nothing.',
  },
  {
    file: 'src/untrusted/thrown.ts',
    line: 'for (let depth = 0; prototype !== null && depth < DEEPEST_CLASS; depth++) {',
    changes: ['prototype !== null && depth < DEEPEST_CLASS -> depth < DEEPEST_CLASS'],
    why: 'null has no name and no prototype.',
  },
  {
    file: 'src/untrusted/thrown.ts',
    line: "if (typeof code === 'number' && Number.isFinite(code)) return String(code);",
    changes: ["typeof code === 'number' && Number.isFinite(code) -> Number.isFinite(code)"],
    why: 'Number.isFinite is false for all that is no number.',
  },
  {
    file: 'src/untrusted/thrown.ts',
    line: "return value !== null && (typeof value === 'object' || typeof value === 'function');",
    changes: [
      "value !== null && (typeof value === 'object' || typeof va... -> typeof value === 'object' || typeof value === 'function'",
    ],
    why: 'Reading a field of null throws, and that is caught.',
  },
  {
    file: 'src/store/fill.ts',
    line: 'if (left <= 0) break;',
    changes: ['left <= 0 -> false', '<= -> < in left <= 0'],
    why: 'Filling no places takes nothing.',
  },
  {
    file: 'src/store/fill.ts',
    line: "if (this.#empty.has('redrive')) this.#left.redrive -= draw('retry', this.#left.redrive);",
    changes: ["this.#empty.has('redrive') -> true"],
    why: 'A lane that is not empty has left places only when there are none left to draw for.',
  },
  {
    file: 'src/store/fill.ts',
    line: "if (this.#empty.has('retry')) this.#left.retry -= draw('redrive', this.#left.retry);",
    changes: ["this.#empty.has('retry') -> true"],
    why: 'A lane that is not empty has left places only when there are none left to draw for.',
  },
  {
    file: 'src/store/memory/enqueue.ts',
    line: "state: dueAt > now ? 'scheduled' : 'ready',",
    changes: ['dueAt > now -> true', '> -> >= in dueAt > now'],
    why: 'What is scheduled and due is read as ready.',
  },
  {
    file: 'src/store/memory/keys.ts',
    line: 'return key === null ? undefined : this.#holders.get(keySlot(name, key));',
    changes: ['key === null -> false'],
    why: 'No job is kept as the holder of no key.',
  },
  {
    file: 'src/store/memory/keys.ts',
    line: 'if (row.key !== null) this.#holders.set(keySlot(row.name, row.key), row);',
    changes: ['row.key !== null -> true'],
    why: 'Nobody asks who holds no key.',
  },
  {
    file: 'src/store/memory/keys.ts',
    line: 'if (row.key !== null && this.holder(row.name, row.key) === row) this.#holders.delete(keySlot(row.name, row.key));',
    changes: ['row.key !== null && this.holder(row.name, row.key) === row -> this.holder(row.name, row.key) === row'],
    why: 'No job is the holder of no key.',
  },
  {
    file: 'src/store/memory/keys.ts',
    line: "const started = row.state === 'running' && row.keyLife === 'started';",
    changes: ["row.state === 'running' && row.keyLife === 'started' -> row.keyLife === 'started'"],
    why: 'A job that has not started moves nowhere but to its start or its end.',
  },
  {
    file: 'src/store/memory/read.ts',
    line: 'const after = filter.after === undefined ? undefined : (state.rows.get(filter.after)?.accepted ?? -1);',
    changes: ['1 -> 0'],
    why: 'Nothing was accepted before the first.',
  },
  {
    file: 'src/store/memory/row.ts',
    line: 'progress: row.progress === null ? null : JSON.parse(row.progress),',
    changes: ['row.progress === null -> false'],
    why: 'Parsed, null is null.',
  },
  {
    file: 'src/store/memory/row.ts',
    line: 'firstStartedAt: row.firstStartedAt ?? lease.claimedAt,',
    changes: ['row.firstStartedAt ?? lease.claimedAt -> row.firstStartedAt'],
    why: 'A job under a lease has started.',
  },
  {
    file: 'src/store/memory/row.ts',
    line: "if (typeof value !== 'object' || value === null) return value;",
    changes: ['value -> undefined'],
    why: 'What is frozen is always an object; the answers for its parts are not used.',
  },
  {
    file: 'src/store/memory/settle.ts',
    line: 'cancelRequested: ended ? false : row.cancelRequested,',
    changes: ['ended -> true'],
    why: 'A job that is to be cancelled ends when it is settled.',
  },
  {
    file: 'src/store/memory/state.ts',
    line: '#accepted = 0;',
    changes: ['0 -> 1'],
    why: 'Only the order counts.',
  },
  {
    file: 'src/store/memory/state.ts',
    line: 'if (!allowed.includes(to)) throw new Error(',
    changes: ['!allowed.includes(to) -> false'],
    why: 'Holds as long as there is no such bug.',
  },
  {
    file: 'src/store/memory/waiting.ts',
    line: 'const byDueTime = (a: Row, b: Row): boolean => a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.accepted < b.accepted);',
    changes: ['< -> <= in a.accepted < b.accepted'],
    why: 'No two jobs were accepted at once.',
  },
  {
    file: 'src/store/memory/waiting.ts',
    line: 'if (now < this.#sortedAt) {',
    changes: ['now < this.#sortedAt -> true', '< -> <= in now < this.#sortedAt'],
    why: 'Unless the clock stepped back, all that is due stays due.',
  },
  {
    file: 'src/store/memory/waiting.ts',
    line: 'for (const row of this.#due.items().filter((row) => row.dueAt > now)) {',
    changes: ['> -> >= in row.dueAt > now'],
    why: 'What is due just now is put back at once.',
  },
  {
    file: 'src/store/memory/waiting.ts',
    line: 'this.#queues.get(row.queue)?.get(row.lane)?.remove(row);',
    changes: ['?. -> . in this.#queues.get(row.queue)?.get(row.lane)?.remove(row)'],
    why: 'What waits has a lane that it waits in.',
  },
  {
    file: 'src/store/memory/waiting.ts',
    line: 'if (dueAt !== null && (next === null || dueAt < next)) next = dueAt;',
    changes: ['< -> <= in dueAt < next'],
    why: 'The same time is the same time.',
  },
  {
    file: 'src/store/sqlite/claim.ts',
    line: 'if (findDue(session, queue, lane, 1).length > 0) return null;',
    changes: ['findDue(session, queue, lane, 1).length > 0 -> true'],
    why: 'Only costs the write lock: the claim then finds nothing in a transaction.',
  },
  {
    file: 'src/store/sqlite/claim.ts',
    line: 'if (count <= 0) return [];',
    changes: ['<= -> < in count <= 0'],
    why: 'A look for no jobs finds none.',
  },
  {
    file: 'src/store/sqlite/claim.ts',
    line: 'if (streams.length === 1) return findDueInStream(',
    changes: ['streams.length === 1 -> false'],
    why: 'Only saves sorting what is sorted.',
  },
  {
    file: 'src/store/sqlite/claim.ts',
    line: 'for (const row of rows) inHand.add(row);',
    changes: ['inHand.add(row); removed'],
    why: 'Only saves a look-up when the run is settled.',
  },
  {
    file: 'src/worker/fetch.ts',
    line: 'if (!this.#stopped) await this.#pause(',
    changes: ['!this.#stopped -> true'],
    why: 'A pause ends at once when the fetcher is stopped.',
  },
  {
    file: 'src/worker/hand.ts',
    line: 'startedAt = 0;',
    changes: ['0 -> 1'],
    why: 'Set before anybody reads it.',
  },
  {
    file: 'src/worker/hand.ts',
    line: 'endedAt = 0;',
    changes: ['0 -> 1'],
    why: 'Set before anybody reads it.',
  },
  {
    file: 'src/worker/hand.ts',
    line: 'place = 0;',
    changes: ['0 -> 1'],
    why: 'Set before anybody reads it.',
  },
];
