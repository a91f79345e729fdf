import { describe, expect, it } from 'vitest';
import { ConfigError } from '../errors.ts';
import { type EventName, Events, type Listener } from './events.ts';

const enqueued = { id: 'id', name: 'job', queue: 'default', existed: false };

function events() {
  const troubles: { name: EventName; error: unknown }[] = [];
  const trouble = Promise.withResolvers<void>();
  const all = new Events((name, error) => {
    troubles.push({ name, error });
    trouble.resolve();
  });
  return { events: all, troubles, trouble: trouble.promise };
}

describe('listeners', () => {
  it('get the events they were added for, in the order in which they were added', () => {
    const { events: all } = events();
    const heard: unknown[] = [];
    all.on('enqueued', (event) => heard.push(['first', event]));
    all.on('enqueued', (event) => heard.push(['second', event]));
    all.on('completed', () => heard.push('completed'));
    all.emit('enqueued', () => enqueued);
    expect(heard).toEqual([
      ['first', enqueued],
      ['second', enqueued],
    ]);
  });

  it('that do not exist cost nothing: the event is not made', () => {
    const { events: all } = events();
    const makes = (): never => {
      throw new Error('nobody asked');
    };
    all.emit('enqueued', makes);
    all.on('enqueued', () => {})();
    all.emit('enqueued', makes);
  });

  it.each([
    ['complted', 'completed'],
    ['leaseLost', 'lease-lost'],
    ['failed', 'retrying or dead'],
    ['stalled', 'rescued'],
  ])('of the unknown event %s are refused, with a hint at %s', (name, meant) => {
    const { events: all } = events();
    expect(() => all.on(name as EventName, () => {})).toThrow(ConfigError);
    expect(() => all.on(name as EventName, () => {})).toThrow(`got "${name}". Did you mean ${meant}?`);
  });

  it('stop when they say so, and saying it twice is saying it once', () => {
    const { events: all } = events();
    let heard = 0;
    const stop = all.on('enqueued', () => heard++);
    all.emit('enqueued', () => enqueued);
    stop();
    stop();
    all.emit('enqueued', () => enqueued);
    expect(heard).toBe(1);
  });

  it('that are one function added twice are two: each is stopped on its own', () => {
    const { events: all } = events();
    let heard = 0;
    const listener = (): void => void heard++;
    const stops = [all.on('enqueued', listener), all.on('enqueued', listener)];
    all.emit('enqueued', () => enqueued);
    expect(heard).toBe(2);
    stops[0]?.();
    all.emit('enqueued', () => enqueued);
    expect(heard).toBe(3);
  });

  it('may remove each other during an event', () => {
    const { events: all } = events();
    const heard: string[] = [];
    all.on('enqueued', () => {
      heard.push('first');
      stop();
    });
    const stop = all.on('enqueued', () => heard.push('second'));
    all.emit('enqueued', () => enqueued);
    expect(heard).toEqual(['first']);
  });

  it('may be added again during an event, and get the next event, not the same one again', () => {
    const { events: all } = events();
    let heard = 0;
    let stop: () => void;
    const again = (): void => {
      if (++heard > 10) throw new Error('told for ever');
      stop();
      stop = all.on('enqueued', again);
    };
    stop = all.on('enqueued', again);
    all.emit('enqueued', () => enqueued);
    expect(heard).toBe(1);
    all.emit('enqueued', () => enqueued);
    expect(heard).toBe(2);
  });

  it('that throw are reported, and the others still get the event', () => {
    const { events: all, troubles } = events();
    let heard = 0;
    const error = new Error('listener');
    all.on('enqueued', () => {
      throw error;
    });
    all.on('enqueued', () => heard++);
    all.emit('enqueued', () => enqueued);
    expect(heard).toBe(1);
    expect(troubles).toEqual([{ name: 'enqueued', error }]);
  });

  it('that reject later are reported, and do not end the process', async () => {
    const { events: all, troubles, trouble } = events();
    const error = new Error('later');
    all.on('enqueued', async () => {
      await null;
      throw error;
    });
    all.emit('enqueued', () => enqueued);
    await trouble;
    expect(troubles).toEqual([{ name: 'enqueued', error }]);
  });

  it('that return a hostile promise are reported', async () => {
    const { events: all, troubles, trouble } = events();
    const hostile = Object.defineProperty({}, 'then', {
      get() {
        throw new Error('then');
      },
    });
    all.on('enqueued', () => hostile);
    all.emit('enqueued', () => enqueued);
    await trouble;
    expect(troubles).toMatchObject([{ name: 'enqueued', error: { message: 'then' } }]);
  });

  it.each<[string, unknown, unknown, string]>([
    [
      'an event there is not',
      'retry',
      () => {},
      'on: expected one of enqueued, started, completed, retrying, dead, cancelled, released, rescued, lease-lost, settle-failed, gate, limited, got "retry".',
    ],
    ['a misspelt event', 'complete', () => {}, 'Did you mean completed?'],
    ['a property every object has', 'constructor', () => {}, 'got "constructor".'],
    ['no function', 'dead', 'log it', 'on("dead"): expected a function, got "log it".'],
  ])('cannot ask for %s', (_, name, listener, message) => {
    const { events: all } = events();
    const ask = (): unknown => all.on(name as EventName, listener as Listener<EventName>);
    expect(ask).toThrow(ConfigError);
    expect(ask).toThrow(message);
  });
});
