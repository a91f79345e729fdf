import { run } from '../../src/cli/program.ts';

export interface Printed {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line in this process, and catches what it prints: a thousand of them take a second. */
export async function inProcess(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Printed> {
  const streams = ['stdout', 'stderr'] as const;
  const text = { stdout: '', stderr: '' };
  const restore = streams.map((name) => {
    const stream = process[name];
    const listeners = stream.listeners('error');
    const { write } = stream;
    stream.write = ((chunk: unknown) => {
      text[name] += String(chunk);
      return true;
    }) as typeof write;
    return () => {
      stream.write = write;
      for (const added of stream.listeners('error').filter((one) => !listeners.includes(one))) {
        stream.off('error', added as () => void);
      }
    };
  });
  try {
    const code = await run(args, env);
    return { code, ...text };
  } finally {
    for (const undo of restore) undo();
  }
}
