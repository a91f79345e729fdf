import { peerById } from '../peers/index.ts';
import type { FromWorker, ToWorker } from './crew.ts';
import { chunks } from './measure.ts';
import type { OpenPeer, Running } from './peer.ts';
import { Recorder } from './recorder.ts';
import { jobs } from './workload.ts';

/* A worker in a process of its own: told what to do by messages, gone with the process that started it. */
const TICK_MS = 5;

let peer: OpenPeer | undefined;
let running: Running | undefined;
let recorder: Recorder | undefined;

process.on('disconnect', () => process.exit());
process.on('message', (message: ToWorker) => {
  obey(message).catch((error: unknown) =>
    say({ type: 'error', message: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});

async function obey(message: ToWorker): Promise<void> {
  switch (message.type) {
    case 'open':
      peer = await (await peerById(message.peer)).open(message.servers, message.space, message.guard);
      await peer.connect();
      return say({ type: 'opened' });
    case 'go': {
      recorder = new Recorder(message.assignment);
      const { progress, handler } = { progress: () => recorder?.progress(), handler: recorder.handler };
      let told = '';
      setInterval(() => {
        const now = progress();
        const text = JSON.stringify(now);
        if (now === undefined || text === told) return;
        told = text;
        say({ type: 'progress', progress: now });
      }, TICK_MS);
      for (const some of chunks(jobs(message.assignment.brings ?? 0), 1_000)) await peer?.enqueueBulk(some);
      running = await peer?.startWorker(handler, message.assignment);
      return say({ type: 'working' });
    }
    case 'stop':
    case 'report':
      if (message.type === 'stop') await running?.stop();
      if (recorder) say({ type: 'report', report: recorder.report() });
  }
}

function say(message: FromWorker): void {
  process.send?.(message);
}
