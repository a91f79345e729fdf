import { vi } from 'vitest';
import { run } from '../../src/cli/program.ts';

export interface Commanded {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command in this process, and what it printed. */
export async function commanded(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Commanded> {
  const printed = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((stream) =>
    vi.spyOn(process[stream], 'write').mockImplementation((text) => {
      printed[stream] += String(text);
      return true;
    }),
  );
  try {
    return { code: await run(args, env), ...printed };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}
