import { AsyncResource } from 'node:async_hooks';
import { describe, expect, it } from 'vitest';
import { ThreadPoolWork } from './thread-pool-work.ts';

describe('work in the thread pool', () => {
  it('of a native addon is under way until it is called back', () => {
    const work = new ThreadPoolWork();
    const [named, unnamed] = [{}, {}];
    work.made(1, 'bcrypt:hash', named, 0);
    work.made(2, undefined, unnamed, 0);
    expect(work.isUnderWay(10)).toBe(true);
    work.calledBack(1);
    expect(work.isUnderWay(10)).toBe(true);
    work.calledBack(2);
    expect(work.isUnderWay(10)).toBe(false);
  });

  it('of a native addon that never calls back is given up after five seconds', () => {
    const work = new ThreadPoolWork();
    const resource = {};
    work.made(1, 'addon', resource, 0);
    expect(work.isUnderWay(4_999)).toBe(true);
    expect(work.isUnderWay(5_000)).toBe(false);
  });

  it('with a callback is under way for as long as it takes', () => {
    const work = new ThreadPoolWork();
    const request = { ondone: () => {} };
    work.made(1, 'SCRYPTREQUEST', request, 0);
    expect(work.isUnderWay(3_600_000)).toBe(true);
    work.calledBack(1);
    expect(work.isUnderWay(3_600_000)).toBe(false);
  });

  it('of a zlib stream is under way while a write is, however often that happened', () => {
    const work = new ThreadPoolWork();
    const stream: { buffer: Uint8Array | null } = { buffer: null };
    work.made(1, 'ZLIB', stream, 0);
    for (let write = 0; write < 2; write++) {
      expect(work.isUnderWay(0)).toBe(false);
      stream.buffer = new Uint8Array(1);
      expect(work.isUnderWay(3_600_000)).toBe(true);
      work.calledBack(1);
      stream.buffer = null;
    }
  });

  it('is neither a resource of a library, nor what Node makes for a request over HTTP or for a synchronous call', () => {
    const work = new ThreadPoolWork();
    const resources = [new AsyncResource('pool'), {}, {}, {}];
    ['pool', 'HTTPCLIENTREQUEST', 'RANDOMBYTESREQUEST', 'Timeout'].forEach((kind, id) => {
      work.made(id, kind, resources[id] as object, 0);
    });
    expect(work.isUnderWay(0)).toBe(false);
  });
});
