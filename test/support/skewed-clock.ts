/** For `node --import`: the wall clock of this process is wrong by the ms after the question mark of this file's URL. */
const skewMs = Number(new URL(import.meta.url).searchParams.get('ms'));
const RightDate = Date;

class SkewedDate extends RightDate {
  constructor(...given: []) {
    if (given.length === 0) super(SkewedDate.now());
    else super(...given);
  }

  static override now(): number {
    return RightDate.now() + skewMs;
  }
}

globalThis.Date = SkewedDate as DateConstructor;
